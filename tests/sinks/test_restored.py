"""Epochs that several sinks show, or one of each kind: decided, restated and restored together, or moved by a pack."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import BadRecords, EpochBusy
from lockstep.operations.restore import find_restorable, plan, restore
from lockstep.protocol.pack import Member, move_pack, require_all_moved
from lockstep.sinks import StdoutSink
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.wal.request import read_request
from stack.postgres import PostgresServer
from tests.crash.world import interval_of, rows_of_day, write_others, write_parquet
from tests.sinks import postgres_target
from tests.sinks.append.feed import Feed
from tests.sinks.kinds import EXACT, feed_of
from tests.sinks.mariadb_target import execute
from tests.sinks.postgres_target import LOCK_TIMEOUT
from tests.waiting import until

OTHERS = Counter([(0, 0, "!"), *rows_of_day(0)[1:]])


def test_rows_are_shown_and_come_back_by_one_decision_wherever_they_are(
    ledger_server: PostgresServer, warehouse_dsn: str, mariadb_dsn: str, memory: Path, capsysbinary: Any
) -> None:
    ledger = ledger_server.create_database(f"restored_{mariadb_dsn.rsplit('_', 1)[1]}")
    mart: dict[str, Any] = {"connection": "mart", "create": True, "lock_timeout": LOCK_TIMEOUT}
    sinks = [
        PostgresSink("warehouse", tables={"numbers": "public.numbers"}, connection="warehouse", create=True),
        MariaDbSink("mart", tables={"numbers": "numbers"}, **mart),
        MariaDbSink("redo", tables={"numbers": "redone"}, protocol="write_ahead", **mart),
        StdoutSink("look", output="numbers", committer=str(memory / "sent"), on_restate="send"),
    ]
    feed = Feed.of(ledger, memory, sinks, {"warehouse": warehouse_dsn, "mart": mariadb_dsn})
    feed.pipeline = replace(feed.pipeline, keep_wal=timedelta(days=1))

    def shown() -> list[Counter[Any]]:
        rows = "SELECT day, number, label FROM {} WHERE day = %s"
        return [
            Counter(postgres_target.execute(warehouse_dsn, rows.format("public.numbers"), 0)),
            *(Counter(execute(mariadb_dsn, rows.format(table), 0)) for table in ("numbers", "redone")),
        ]

    feed.decide(0)
    assert shown() == [Counter()] * 3
    feed.finish(0)
    assert shown() == [Counter(rows_of_day(0))] * 3
    again = RunKey("feed", "again", restate="a bug")
    with feed.runtime() as runtime:
        require_all_moved(move_pack(runtime, [again.member(interval_of(0), 0)], write_others))
    assert shown() == [OTHERS] * 3
    sent = capsysbinary.readouterr().out
    with feed.runtime() as runtime:
        current, wanted = find_restorable(runtime, 2, generation=0)
        assert (current.id, wanted.id) == (2, 1)
        assert plan(runtime, current, wanted).refusals == {}
        require_all_moved([restore(runtime, current, wanted, "it was right before")])
    assert shown() == [Counter(rows_of_day(0))] * 3
    assert all(one.agrees for one in feed.verify(3).values())
    before, after = (_told(out) for out in (sent, capsysbinary.readouterr().out))
    assert [(one["epoch"], one["ordinal"]) for one in after] == [(3, number) for number in range(20)]
    assert all(2 in one["replaces"] for one in after)
    assert len(before) == 40
    execute(mariadb_dsn, "DELETE FROM numbers LIMIT 1")
    execute(mariadb_dsn, "UPDATE redone SET label = 'another' LIMIT 1")
    found = feed.verify(3)
    assert [found[name].agrees for name in ("warehouse", "mart", "redo")] == [True, False, False]


def _told(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line)["lockstep"] for line in out.splitlines() if line]


DAYS = range(4)


def refuse_second_day(request_uri: str) -> None:
    if read_request(request_uri).sources["numbers"].end["day"] == 1:
        raise BadRecords("day 1 is not what it should be")
    write_parquet(request_uri)


@pytest.mark.tier("all")
@pytest.mark.parametrize("kind", EXACT)
def test_behind_an_epoch_of_a_cursor_that_failed_none_is_begun_and_each_is_shown_once(
    request: pytest.FixtureRequest, kind: str, memory: Path
) -> None:
    feed = feed_of(request, kind, memory, cursor=True)
    members = feed.move(DAYS, refuse_second_day)
    assert members[0].error is None
    assert isinstance(members[1].error, BadRecords)
    assert all(member.error is not None for member in members[2:]), "begun before it failed, and not decided"

    def moved(members: list[Member]) -> bool:
        """Nobody holds an epoch any more that the pack before had begun."""
        members[:] = feed.move(DAYS)
        return not any(isinstance(member.error, EpochBusy) for member in members)

    until(lambda: moved(members), "an epoch stays busy", seconds=90)
    assert [member.error for member in members] == [None] * len(DAYS)
    epochs = {member.epoch.id for member in members if member.epoch}  # a begin that was refused may have used a number
    assert len(epochs) == len(DAYS)
    assert [member.already for member in feed.move(DAYS)] == [True] * len(DAYS)
    for epoch in epochs:
        assert feed.state(epoch) == "cleaned"
        [found] = feed.verify(epoch).values()
        assert found.compared and found.agrees, found

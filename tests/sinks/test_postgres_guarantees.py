"""What PostgresSink does for each guarantee: where the record is, and what a crash between rows and record leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from lockstep.crash import CrashInjected, CrashPoint
from lockstep.epoch import Vote
from lockstep.errors import InvalidPipeline, TargetChanged
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing._sealed_rows import OUTPUT, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sinks.postgres_target import execute

ROWS = 50
WAL = sealed(ROWS)
AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:records"}
_numbers = count(1)


@pytest.fixture
def dsns(memory_server: PostgresServer) -> Iterator[dict[str, str]]:
    """Two fresh databases: for the rows, and for the records."""
    memory_server.start()
    names = {kind: f"{kind}_{next(_numbers)}" for kind in ("warehouse", "records")}
    yield {kind: memory_server.create_database(name) for kind, name in names.items()}
    memory_server.start()
    for name in names.values():
        memory_server.drop_database(name)


def sink(protocol: ProtocolName = "write_ahead", **arguments: Any) -> PostgresSink:
    tables = {OUTPUT: "public.target"}
    given: dict[str, Any] = {"protocol": protocol, "create": True, "lock_timeout": 0.3, **arguments}
    return PostgresSink("warehouse", tables=tables, connection="warehouse", **given)


def prepare(dsns: dict[str, str], given: PostgresSink) -> Vote:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", dsns)) as live:
        live.preflight({OUTPUT: WAL[0].schema})
        return live.prepare(epoch(), WAL)


def publish(dsns: dict[str, str], given: PostgresSink, vote: Vote) -> Publication:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", dsns)) as live:
        return live.publish(replace(epoch(), token=11), vote, WAL)


def rows(dsns: dict[str, str]) -> int:
    [(found,)] = execute(dsns["warehouse"], "SELECT count(*) FROM target")
    return int(found)


def crashed_after_the_rows(dsns: dict[str, str], given: PostgresSink, monkeypatch: pytest.MonkeyPatch) -> Vote:
    """A publisher dies when its rows are durable and nobody has recorded it."""
    vote = prepare(dsns, given)
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    monkeypatch.setenv("LOCKSTEP_CRASH", f"{CrashPoint.PUBLISH_AFTER_SINK_COMMIT}:raise")
    with pytest.raises(CrashInjected):
        publish(dsns, given, vote)
    assert rows(dsns) == ROWS
    return vote


REFUSED: list[tuple[ProtocolName, dict[str, Any], str]] = [
    ("two_phase", {"guarantee": "at_least_once", "committer": "/records"}, "exactly_once"),
    ("two_phase", {"guarantee": "none"}, "write_ahead"),
    ("two_phase", {"committer": "/records"}, "write_ahead"),
    ("write_ahead", {"guarantee": "perhaps"}, "none of none, at_least_once, exactly_once"),
    ("write_ahead", {"guarantee": "at_least_once"}, "needs a committer"),
    ("write_ahead", {"guarantee": "none", "committer": "/records"}, "nothing else takes one"),
    ("write_ahead", {"committer": "/records"}, "nothing else takes one"),
]


def test_a_promise_that_cant_be_kept_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for protocol, arguments, told in REFUSED:
        with subtests.test(f"{protocol} {arguments}"), pytest.raises(InvalidPipeline, match=told):
            sink(protocol, **arguments)


@pytest.mark.fault("E26")
@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": ["id"]}])
def test_at_least_once_sends_again_what_a_crash_left_unrecorded(
    dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any]
) -> None:
    arguments: dict[str, Any] = {**AT_LEAST_ONCE, **mode}
    given = sink(**arguments)
    vote = crashed_after_the_rows(dsns, given, monkeypatch)
    assert publish(dsns, given, vote) is Publication.SENT
    assert rows(dsns) == (ROWS if mode else 2 * ROWS), "an upsert changes nothing the second time"
    assert publish(dsns, given, vote) is Publication.FOUND
    assert execute(dsns["records"], "SELECT epoch FROM lockstep_sent WHERE epoch > 0") == [(1,)]
    assert execute(dsns["warehouse"], "SELECT count(*) FROM lockstep_marker") == [(0,)]


def test_none_remembers_nothing_and_waits_for_no_disk(dsns: dict[str, str]) -> None:
    given = sink(guarantee="none")
    execute(
        dsns["warehouse"],
        "CREATE TABLE settings (value text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO settings VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'",
    )
    vote = prepare(dsns, given)
    execute(
        dsns["warehouse"],
        "CREATE TRIGGER note AFTER INSERT ON target FOR EACH STATEMENT EXECUTE FUNCTION note()",
    )
    assert [publish(dsns, given, vote) for _ in range(2)] == [Publication.SENT] * 2
    assert rows(dsns) == 2 * ROWS
    assert execute(dsns["warehouse"], "SELECT DISTINCT value FROM settings") == [("off",)]
    assert publish(dsns, sink(), vote) is Publication.SENT
    assert ("on",) in execute(dsns["warehouse"], "SELECT DISTINCT value FROM settings")


def test_another_database_behind_the_connection_is_refused_though_nothing_is_promised(
    dsns: dict[str, str], memory_server: PostgresServer
) -> None:
    given = sink(guarantee="none")
    vote = prepare(dsns, given)
    elsewhere = dsns | {"warehouse": memory_server.create_database("elsewhere")}
    prepare(elsewhere, given)
    with pytest.raises(TargetChanged):
        publish(elsewhere, given, vote)
    assert rows(elsewhere) == 0
    memory_server.drop_database("elsewhere")

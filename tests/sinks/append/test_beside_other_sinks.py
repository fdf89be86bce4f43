"""A warehouse and a receiver in one epoch: decided together, each with its own guarantee, told apart by verify."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.environment import variable_of
from lockstep.errors import PublishBlocked, SinkRejected
from lockstep.operations.resolve import resolve
from lockstep.sinks.append_only import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.testing._children import fork
from stack.postgres import PostgresServer
from tests.crash.world import rows_of_day
from tests.sinks.append.feed import Feed
from tests.sinks.append.receiving import Receiver, receiving
from tests.sinks.append.scripted import scripted, status
from tests.sinks.postgres_target import execute

POINTS = ("before_sink", "after_marker", "after_write", "before_record", "after_record")


def no_row_seven(row: Mapping[str, Any]) -> str | None:
    return "seven" if row["number"] == 7 else None


@pytest.fixture
def http(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with receiving("http", memory) as receiver:
        yield receiver


@pytest.fixture
def connections(memory_server: PostgresServer, warehouse_dsn: str, http: Receiver) -> dict[str, str]:
    ledger = memory_server.create_database(f"beside_{http.port}")
    return {"ledger": ledger, "warehouse": warehouse_dsn, "receiver": http.url}


def feed_of(folder: Path, connections: dict[str, str], **arguments: Any) -> Feed:
    settings = {"committer": "postgres:ledger", **arguments}
    sinks = [
        PostgresSink("warehouse", tables={"numbers": "public.numbers"}, connection="warehouse", create=True),
        HttpSink("feed", output="numbers", connection="receiver", **settings),
    ]
    return Feed.of(connections["ledger"], folder, sinks, connections)


def in_the_warehouse(connections: dict[str, str], day: int) -> Counter[Any]:
    rows = "SELECT day, number, label FROM public.numbers WHERE day = %s"
    return Counter(execute(connections["warehouse"], rows, day))


def received(http: Receiver, day: int) -> Counter[Any]:
    rows = ((record["day"], record["number"], record["label"]) for record in http.records())
    return Counter(row for row in rows if row[0] == day)


def test_both_show_the_epoch_and_verify_says_what_it_can(
    memory: Path, connections: dict[str, str], http: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = feed_of(memory, connections)
    feed.decide(0)
    assert not http.records(), "something was sent before it was published"
    waiting = feed.verify(1)["feed"]
    assert waiting.problem == "not published yet: it is not recorded as sent"
    for _ in range(2):  # a published run that is cleared sends nothing again
        feed.finish(0)
        assert in_the_warehouse(connections, 0) == received(http, 0) == Counter(rows_of_day(0))
    found = feed.verify(1)
    assert found["warehouse"].agrees and found["warehouse"].note is None
    assert found["feed"].agrees and found["feed"].rows_shown is None
    assert found["feed"].note == "the target can't be read back"

    for name, value in connections.items():
        monkeypatch.setenv(variable_of(name), value)
    monkeypatch.setenv("LOCKSTEP_LEDGER", connections["ledger"])
    arguments = ["verify", "numbers", "--staging", str(memory / "staging")]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "1 compared, all agree; 1 can't be read back" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert {one["sink"]: one["note"] for one in told} == {"warehouse": None, "feed": "the target can't be read back"}

    execute(connections["ledger"], "DELETE FROM lockstep_sent WHERE epoch = 1")
    assert feed.verify(1)["feed"].problem == "it is not recorded as sent"
    assert CliRunner().invoke(app, arguments).exit_code == 3


def test_a_killed_publisher_is_finished_by_recovery(memory: Path, connections: dict[str, str], http: Receiver) -> None:
    feed = feed_of(memory, connections)
    for day, point in enumerate(POINTS):
        feed.decide(day)

        def publisher(day: int = day, point: str = point) -> None:
            os.environ.update(LOCKSTEP_TESTING="1", LOCKSTEP_CRASH=f"publish.{point}")
            feed.publish(day, "feed")

        assert fork(publisher).wait() == -9, f"the publisher did not come to {point}"
        report = feed.recover()
        assert report.finished == [day + 1] and not report.problems, point
        assert in_the_warehouse(connections, day) == received(http, day) == Counter(rows_of_day(day)), point
        assert all(one.agrees for one in feed.verify(day + 1).values()), point


def test_what_the_receiver_would_refuse_keeps_the_epoch_from_both(
    memory: Path, connections: dict[str, str], http: Receiver
) -> None:
    feed = feed_of(memory, connections, validator=f"{__name__}:no_row_seven")
    with pytest.raises(SinkRejected, match=r"no_row_seven refuses record .*/numbers/1/7: seven"):
        feed.decide(0)
    feed.recover()
    assert not in_the_warehouse(connections, 0) and not http.records()
    assert feed.state(1) == "staged"


@pytest.mark.fault("E21")
def test_a_receiver_that_refuses_a_decided_epoch_holds_up_nobody_else(
    memory: Path, connections: dict[str, str], http: Receiver
) -> None:
    with scripted("http", status(422, "no row seven, please")) as script:
        feed = feed_of(memory, {**connections, "receiver": f"http://127.0.0.1:{script.port}"})
        feed.decide(0)
        with pytest.raises(PublishBlocked, match="no row seven"):
            feed.publish(0, "feed")
        [problem] = feed.recover().problems
        assert "answered 422" in problem
        assert feed.state(1) == "committed"
        assert in_the_warehouse(connections, 0) == Counter(rows_of_day(0))
    feed.connections["receiver"] = http.url  # somebody has looked
    assert feed.recover().finished == [1]
    assert received(http, 0) == Counter(rows_of_day(0))


def test_a_person_can_go_on_without_what_the_receiver_never_takes(
    memory: Path, connections: dict[str, str], http: Receiver
) -> None:
    with scripted("http", status(422)) as script:
        feed = feed_of(memory, {**connections, "receiver": f"http://127.0.0.1:{script.port}"})
        feed.decide(0)
        assert feed.recover().problems
        with feed.runtime() as runtime:
            resolve(runtime, 1, "feed", "applied", "row seven was entered by hand")
        feed.finish(0)
    assert feed.state(1) == "cleaned"
    assert feed.verify(1)["feed"].problem == "it is not recorded as sent"


def test_without_a_guarantee_a_published_epoch_stays_published(
    memory: Path, connections: dict[str, str], http: Receiver
) -> None:
    feed = feed_of(memory, connections, committer=None, guarantee="none")
    feed.decide(0)
    assert feed.verify(1)["feed"].problem == "not published yet: guarantee none keeps no record of what was sent"
    feed.finish(0)
    feed.finish(0)
    assert received(http, 0) == Counter(rows_of_day(0))
    found = feed.verify(1)["feed"]
    assert found.agrees and found.note == "the target can't be read back"


def test_the_plan_and_the_ledger_hold_no_login(memory: Path, connections: dict[str, str]) -> None:
    feed = feed_of(memory, connections)
    feed.decide(0)
    [plan] = execute(connections["ledger"], "SELECT plan::text FROM lockstep.epoch")
    assert "HttpSink" in plan[0] and "clerk" not in plan[0]
    assert isinstance(feed.pipeline.sinks[1], AppendOnlySink)

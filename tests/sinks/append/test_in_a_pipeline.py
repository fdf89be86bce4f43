"""Receivers in a pipeline: decided together with a warehouse, told apart by verify, sent in the order of a cursor."""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.connections.environment import variable_of
from lockstep.crash import CrashPoint
from lockstep.errors import OutOfOrder, PublishBlocked, SinkUnavailable
from lockstep.ledger import migrate
from lockstep.ledger.report import Report
from lockstep.operations.rebuild import rebuild
from lockstep.protocol.recover import RecoveryReport
from lockstep.sinks import FunctionSink
from lockstep.sinks.append_only.base import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.append_only.lines import TcpSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.values import Publication, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import NothingSent
from lockstep.testing import OUTPUT, SealedRows, sealed
from lockstep.testing._crash_sweep import fork
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.crash.world import rows_of_day
from tests.sinks.append.feed import Feed
from tests.sinks.append.receiving import Receiver, Script, Sent, hang_up, line, receiving, scripted, status
from tests.sinks.kafka_watching import at
from tests.sinks.postgres_target import execute


@pytest.fixture
def http(memory: Path) -> Iterator[Receiver]:
    with receiving("http", memory) as receiver:
        yield receiver


@pytest.fixture
def connections(ledger_server: PostgresServer, warehouse_dsn: str, http: Receiver) -> dict[str, str]:
    ledger = ledger_server.create_database(f"beside_{http.port}")
    return {"ledger": ledger, "warehouse": warehouse_dsn, "receiver": http.url}


def feed_of(folder: Path, connections: dict[str, str]) -> Feed:
    sinks = [
        PostgresSink("warehouse", tables={"numbers": "public.numbers"}, connection="warehouse", create=True),
        HttpSink("feed", output="numbers", connection="receiver", committer="postgres:ledger"),
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


def test_verify_says_of_a_sink_without_a_guarantee_that_nothing_can_be_compared(
    memory: Path, connections: dict[str, str]
) -> None:
    sink = HttpSink("feed", output="numbers", connection="receiver", guarantee="none")
    feed = Feed.of(connections["ledger"], memory, [sink], connections)
    feed.decide(0)
    waiting = feed.verify(1)["feed"]
    assert waiting.problem == "not published yet: guarantee none keeps no record of what was sent"
    feed.finish(0)
    sent = feed.verify(1)["feed"]
    assert (sent.agrees, sent.note) == (True, "the target can't be read back")
    assert waiting.conclusive is sent.conclusive is waiting.compared is sent.compared is False


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


# --- epochs of a cursor ----------------------------------------------------------------------------------------------


def cursor_to(script: Script, folder: Path, server: PostgresServer, committer: str = "postgres:ledger") -> Feed:
    """Two receivers: `feed`, which fails, and `other`."""
    name = f"order_{script.port}"
    ledger = server.create_database(name)
    sinks = [TcpSink(name, output="numbers", connection=name, committer=committer) for name in ("feed", "other")]
    url = f"tcp://127.0.0.1:{script.port}"
    return Feed.of(ledger, folder, sinks, {"feed": url, "other": url, "ledger": ledger}, cursor=True)


def epochs_of(script: Script) -> list[int]:
    """Of each request in turn."""
    return [json.loads(request.body.splitlines()[0])["lockstep"]["epoch"] for request in script.requests]


@pytest.mark.parametrize("committer", ["{memory}/sent", "postgres:ledger"], ids=["folder", "table"])
def test_a_later_epoch_waits_until_the_failed_one_was_sent(
    memory: Path, ledger_server: PostgresServer, committer: str
) -> None:
    with scripted("tcp", hang_up) as script:
        feed = cursor_to(script, memory, ledger_server, committer.format(memory=memory))
        feed.decide(1)
        with pytest.raises(SinkUnavailable):
            feed.publish(1, "feed")
        feed.decide(2)
        with pytest.raises(OutOfOrder, match="epoch 1 is prepared in feed"):
            feed.publish(2, "feed")
        problems = [problem.split(":")[0] for problem in feed.recover().problems]
        assert problems == ["SinkUnavailable", "SinkUnavailable", "OutOfOrder"]
        assert set(epochs_of(script)) == {1}, "epoch 2 was sent before epoch 1"
        script.answers, script.requests = [line("ok\n")], []
        feed.publish(1, "other")
        feed.publish(2, "other")  # its own order only
        with pytest.raises(OutOfOrder):
            feed.publish(2, "feed")
        feed.publish(1, "feed")
        feed.publish(2, "feed")
        assert epochs_of(script) == [1, 2, 1, 2]
        feed.finish(1)
        feed.finish(2)
        assert epochs_of(script) == [1, 2, 1, 2], "something was sent again"


@pytest.mark.fault("G6")
def test_an_epoch_behind_one_that_is_being_published_is_no_problem_for_recovery(
    memory: Path, ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted("tcp", line("ok\n")) as script:
        feed = cursor_to(script, memory, ledger_server)
        for run in (1, 2):
            feed.decide(run)
        feed.publish(1, "other")
        reports: list[RecoveryReport] = []
        with at(CrashPoint.PUBLISH_AFTER_WRITE, lambda: reports.append(feed.recover()), monkeypatch):
            feed.publish(1, "feed")
        [report] = reports
        assert report.problems == [] and len(report.busy) == 2 and not report.complete
        assert feed.recover().complete


# --- at most once: no row twice, what may be missing is said ----------------------------------------------------------


MAY_BE_INCOMPLETE = "epoch 1 of sink feed may be incomplete: it is sent at most once, and its sending was cut off"
FREE_PORT_OF_NOBODY = 1


def sink_of(kind: str, folder: Path, **arguments: Any) -> AppendOnlySink:
    settings = {"committer": str(folder / "sent"), "guarantee": "at_most_once", "connection": "receiver", **arguments}
    if kind == "tcp":
        return TcpSink("feed", output=OUTPUT, **settings)
    few = {"records_per_request": 10, "requests_at_once": 1, "tries": 2}
    return HttpSink("feed", output=OUTPUT, **{**few, **settings})


class _InTens(SealedRows):
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(max_chunksize=10)


_batches = list[int]()


def fail(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    _batches.append(batch.num_rows)
    raise KeyError


# --- a person is told ------------------------------------------------------------------------------------------------


#: where a publisher is killed, whether its rows arrive, and whether its epoch was cut off
KILLS = [
    ("before_sink", True, False),
    ("before_record", True, False),
    ("after_record", True, False),
    ("after_marker", False, True),
    ("after_write", True, True),
]


@pytest.mark.fault("E29")
@pytest.mark.parametrize("counter", ["http"], indirect=True)
def test_a_killed_publisher_is_followed_by_one_who_says_what_may_be_missing(
    counter: Receiver, memory: Path, ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = ledger_server.create_database(f"amo_{counter.port}")
    connections = {"ledger": dsn, "receiver": counter.url}
    sink = HttpSink(
        "feed", output="numbers", connection="receiver", committer="postgres:ledger", guarantee="at_most_once"
    )
    feed = Feed.of(dsn, memory, [sink], connections)
    for name, value in connections.items():
        monkeypatch.setenv(variable_of(name), value)
    monkeypatch.setenv("LOCKSTEP_LEDGER", dsn)
    expected: Counter[Any] = Counter()
    for day, (point, arrived, cut_off) in enumerate(KILLS):
        number, incomplete = day + 1, MAY_BE_INCOMPLETE.replace("epoch 1", f"epoch {day + 1}")
        feed.decide(day)

        def publisher(day: int = day, point: str = point) -> None:
            os.environ.update(LOCKSTEP_TESTING="1", LOCKSTEP_CRASH=f"publish.{point}")
            feed.publish(day, "feed")

        assert fork(publisher).wait() == -9, f"the publisher did not come to {point}"
        report = feed.recover()
        assert report.finished == [number] and not report.problems
        expected += Counter(rows_of_day(day)) if arrived else Counter()
        assert Counter((one["day"], one["number"], one["label"]) for one in counter.records()) == expected, point

        with feed.runtime() as runtime, closing(Report(dsn)) as reading:
            participant = runtime.ledger.participants("numbers", number)["feed"]
            reasons = [one.reason for one in reading.history("numbers", number) if one.sink == "feed"]
            found = reading.pipeline("numbers")
        assert (participant.publication == "cut off") is cut_off
        assert (participant.unproven == incomplete) is cut_off
        assert (incomplete in reasons) is cut_off
        assert found is not None and found.verified_through == min(number, 3), "epochs 4 and 5 are those cut off"
        assert feed.verify(number)["feed"].problem == (incomplete if cut_off else None)
        feed.finish(day)  # a run that is cleared sends nothing
        assert len(counter.records()) == expected.total()

        if point in ("after_record", "after_write"):  # the last of each outcome
            shown = CliRunner().invoke(app, ["verify", "numbers", "--staging", str(memory / "staging")])
            assert shown.exit_code == (3 if cut_off else 0), shown.output
            for command in (["status"], ["status", "numbers", "--epoch", str(number), "--json"]):
                told = " ".join(CliRunner().invoke(app, command).output.split())
                assert ("may be incomplete" in told) is cut_off, told


@pytest.mark.fault("E29")
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded as cut off", "begun"])
def test_a_rebuilt_ledger_sends_nothing_again(recorded: bool, memory: Path, ledger_server: PostgresServer) -> None:
    _batches.clear()
    sink = FunctionSink(
        "own", output="numbers", function=fail, guarantee="at_most_once", committer=str(memory / "sent")
    )
    feed = Feed.of(ledger_server.create_database(f"lost_{uuid.uuid4().hex[:12]}"), memory, [sink], {})
    feed.decide(0)
    with pytest.raises(SinkUnavailable, match="what has not arrived is not sent"):
        feed.publish(0, "own")
    if recorded:
        feed.publish(0, "own")
    feed = dataclasses.replace(feed, ledger_dsn=ledger_server.create_database(f"rebuilt_{uuid.uuid4().hex[:12]}"))
    migrate(feed.ledger_dsn)
    with feed.runtime() as runtime:
        found = rebuild(runtime, "its disk is gone")
    assert ("was cut off on its way to own, and may be incomplete there" in " ".join(found.unproven)) is recorded
    assert not feed.recover().problems
    assert feed.verify(1)["own"].problem == MAY_BE_INCOMPLETE.replace("feed", "own")
    with feed.runtime() as runtime:
        assert runtime.ledger.participants("numbers", 1)["own"].unproven
    assert len(_batches) == 1


# --- what surely wasn't sent -----------------------------------------------------------------------------------------


@pytest.mark.fault("E29")
@pytest.mark.parametrize("kind", ["tcp", "http"])
def test_a_receiver_that_nobody_can_reach_costs_nothing(kind: str, memory: Path) -> None:
    away = {"receiver": f"{kind}://127.0.0.1:{FREE_PORT_OF_NOBODY}"}
    sent = Sent(sink_of(kind, memory), away)
    for _ in range(2):
        with pytest.raises(NothingSent, match="sink feed: the receiver behind connection receiver"):
            sent.publish()
    with receiving(kind, memory, drops_repeats=False) as receiver:
        sent.context = SinkContext(DEPLOYMENT, "pipe", {"receiver": receiver.url})
        assert [sent.publish(), sent.publish()] == [Publication.SENT, Publication.FOUND]
        assert len(receiver.records()) == 20


# --- what may have come ----------------------------------------------------------------------------------------------


@pytest.mark.fault("E29")
def test_a_request_that_may_have_come_is_never_tried_again(memory: Path) -> None:
    for number, answer in enumerate((status(503), status(429, Retry_After="1"), status(422), hang_up)):
        with scripted("http", status(200), answer, status(200)) as script:
            sink = sink_of("http", memory / str(number))
            sent = Sent(sink, {"receiver": f"http://127.0.0.1:{script.port}"}, rows=30)
            with pytest.raises(SinkUnavailable, match="what has not arrived is not sent"):
                sent.publish()
            assert [sent.publish(), sent.publish()] == [Publication.CUT_OFF] * 2
        assert [request.ordinals[0] for request in script.requests] == [0, 10]


def say_that_nothing_left(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    _batches.append(batch.num_rows)
    if len(_batches) in (1, 3):
        raise NothingSent("the line is busy")


@pytest.mark.fault("E29")
def test_what_never_left_is_taken_back_only_where_nothing_left_before(memory: Path) -> None:
    sink = FunctionSink(
        "own", output=OUTPUT, function=say_that_nothing_left, guarantee="at_most_once", committer=str(memory / "sent")
    )
    for number, in_tens in enumerate(((20,), (10, 10)), 1):  # rows of one output, and of two
        _batches.clear()
        at, wal = epoch(number), [_InTens(sealed(rows)[0].table) for rows in in_tens]
        with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
            live.preflight(None)
            vote = live.prepare(at, wal)
            with pytest.raises(NothingSent):
                live.publish(at, vote, wal)
            with pytest.raises(SinkUnavailable, match="the line is busy") as refused:  # at the second batch
                live.publish(at, vote, wal)
            assert not isinstance(refused.value, NothingSent)
            assert live.publish(at, vote, wal) is Publication.CUT_OFF
        assert _batches == [10, 10, 10]

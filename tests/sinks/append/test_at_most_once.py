"""Sent at most once: no row twice, whatever dies; what may be missing is said; what surely wasn't sent is sent."""

from __future__ import annotations

import dataclasses
import os
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.environment import variable_of
from lockstep.errors import InvalidPipeline, LedgerConflict, SinkUnavailable
from lockstep.ledger import migrate
from lockstep.ledger.report import Report
from lockstep.operations.rebuild import rebuild
from lockstep.sinks import FunctionSink, PostgresSink
from lockstep.sinks.append_only import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.append_only.tcp import TcpSink
from lockstep.sinks.committers import open_committer
from lockstep.sinks.committers.begun import BegunCommitter
from lockstep.sinks.values import Publication, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import NothingSent
from lockstep.testing import OUTPUT, SealedRows, sealed
from lockstep.testing._children import fork
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.crash.world import rows_of_day
from tests.sinks.append.feed import Feed
from tests.sinks.append.receiving import Receiver, receiving
from tests.sinks.append.scripted import Request, Sent, hang_up, scripted, status

MAY_BE_INCOMPLETE = "epoch 1 of sink feed may be incomplete: it is sent at most once, and its sending was cut off"
FREE_PORT_OF_NOBODY = 1


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def sink_of(kind: str, folder: Path, **arguments: Any) -> AppendOnlySink:
    settings = {"committer": str(folder / "sent"), "guarantee": "at_most_once", "connection": "receiver", **arguments}
    if kind == "tcp":
        return TcpSink("feed", output=OUTPUT, **settings)
    few = {"records_per_request": 10, "requests_at_once": 1, "tries": 2}
    return HttpSink("feed", output=OUTPUT, **{**few, **settings})


@pytest.fixture(params=["folder", "table"])
def make_beforehand(
    request: pytest.FixtureRequest, memory: Path, memory_server: PostgresServer
) -> Callable[[], BegunCommitter]:
    """A committer as each process makes its own."""
    setting, connections = str(memory / "sent"), dict[str, str]()
    if request.param == "table":
        setting, dsn = "postgres:records", memory_server.create_database(f"begun_{uuid.uuid4().hex[:12]}")
        connections["records"] = dsn

    def made() -> BegunCommitter:
        return BegunCommitter(open_committer("feed", setting, SinkContext(DEPLOYMENT, "pipe", connections)))

    made().create_resource()
    return made


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
    counter: Receiver, memory: Path, memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = memory_server.create_database(f"amo_{counter.port}")
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
def test_a_rebuilt_ledger_sends_nothing_again(recorded: bool, memory: Path, memory_server: PostgresServer) -> None:
    _batches.clear()
    sink = FunctionSink(
        "own", output="numbers", function=fail, guarantee="at_most_once", committer=str(memory / "sent")
    )
    feed = Feed.of(memory_server.create_database(f"lost_{uuid.uuid4().hex[:12]}"), memory, [sink], {})
    feed.decide(0)
    with pytest.raises(SinkUnavailable, match="what has not come is not sent again"):
        feed.publish(0, "own")
    if recorded:
        feed.publish(0, "own")
    feed = dataclasses.replace(feed, ledger_dsn=memory_server.create_database(f"rebuilt_{uuid.uuid4().hex[:12]}"))
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


def test_a_request_that_never_left_is_tried_again_beside_others_that_did(memory: Path) -> None:
    """Once one of an epoch's requests may have come, the epoch isn't taken back."""
    with scripted("http", status(200)) as script:
        url = f"http://127.0.0.1:{script.port}"
        sent = Sent(sink_of("http", memory), {"receiver": url})

        def take_away(handler: Any, request: Request) -> None:
            handler.server.socket.shutdown(
                socket.SHUT_RDWR
            )  # a close alone lets in who comes while the server polls it
            handler.server.socket.close()
            handler.close_connection = True
            status(200, Connection="close")(handler, request)

        script.answers[:] = [take_away]
        with pytest.raises(SinkUnavailable, match="can't be reached") as refused:
            sent.publish()
        assert not isinstance(refused.value, NothingSent)
    assert [request.ordinals[0] for request in script.requests] == [0]
    assert sent.publish() is Publication.CUT_OFF


def test_a_function_that_is_gone_costs_nothing(memory: Path) -> None:
    sink = FunctionSink(
        "own", output=OUTPUT, function="nowhere:send", guarantee="at_most_once", committer=str(memory / "sent")
    )
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.committer.create_resource()  # type: ignore[attr-defined]
        vote = live.prepare(epoch(), sealed(5))
        with pytest.raises(InvalidPipeline, match="nowhere:send"):
            live.publish(epoch(), vote, sealed(5))
        assert live.find_any_marker(1) is None


# --- what may have come ----------------------------------------------------------------------------------------------


@pytest.mark.fault("E29")
def test_a_request_that_may_have_come_is_never_tried_again(memory: Path) -> None:
    for number, answer in enumerate((status(503), status(429, Retry_After="1"), status(422), hang_up)):
        with scripted("http", status(200), answer, status(200)) as script:
            sink = sink_of("http", memory / str(number))
            sent = Sent(sink, {"receiver": f"http://127.0.0.1:{script.port}"}, rows=30)
            with pytest.raises(SinkUnavailable, match="what has not come is not sent again"):
                sent.publish()
            assert [sent.publish(), sent.publish()] == [Publication.CUT_OFF] * 2
        assert [request.ordinals[0] for request in script.requests] == [0, 10]


def test_records_that_were_not_acknowledged_are_not_sent_again(memory: Path) -> None:
    with scripted("tcp", hang_up) as script:
        sent = Sent(sink_of("tcp", memory), {"receiver": f"tcp://127.0.0.1:{script.port}"})
        with pytest.raises(SinkUnavailable, match="closed before it said ok: what has not come is not sent again"):
            sent.publish()
        assert sent.publish() is Publication.CUT_OFF
    assert len(script.requests) == 1


def fail_at_the_third(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    _batches.append(batch.num_rows)
    if len(_batches) == 3:
        raise KeyError


def test_a_function_gets_no_batch_twice(memory: Path) -> None:
    _batches.clear()
    sink = FunctionSink(
        "own", output=OUTPUT, function=fail_at_the_third, guarantee="at_most_once", committer=str(memory / "sent")
    )
    wal = [_InTens(sealed(50)[0].table)]
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.preflight(None)
        vote = live.prepare(epoch(), wal)
        with pytest.raises(SinkUnavailable, match=r"rows from 20 on: KeyError.*what has not come is not sent again"):
            live.publish(epoch(), vote, wal)
        assert live.publish(epoch(), vote, wal) is Publication.CUT_OFF
    assert _batches == [10, 10, 10]


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


# --- the record before the rows --------------------------------------------------------------------------------------


def test_what_has_begun_proves_a_decision_and_no_other(
    make_beforehand: Callable[[], BegunCommitter],
) -> None:
    committer, at = make_beforehand(), epoch(7, token=12)
    with pytest.raises(RuntimeError), committer.session(at) as session:
        assert session.claimed
        raise RuntimeError
    for found in (committer.newest(), list(committer.all()), [committer.find_begun(7)]):
        assert [(one.epoch, one.token, one.manifest_hash) for one in found if one] == [(7, 12, at.manifest_hash)]
    assert committer.is_checkpoint_committed(7) is None
    with pytest.raises(LedgerConflict, match="epoch 7 is recorded as begun with manifest"):
        make_beforehand().session(epoch(7, token=13, manifest="b")).__enter__()


def test_only_one_of_many_begins(make_beforehand: Callable[[], BegunCommitter]) -> None:
    def begin() -> None:
        os._exit(40 if make_beforehand()._elsewhere.begin(epoch(token=os.getpid())) else 50)

    children = [fork(begin) for _ in range(6)]
    assert sorted(child.wait() for child in children) == [40] + [50] * 5


def test_what_was_recorded_as_cut_off_stays_so(make_beforehand: Callable[[], BegunCommitter]) -> None:
    """The sender stood still, and goes on once somebody has followed it."""
    for number, go_on in enumerate(("end", "take_back"), start=1):
        sender, follower, at = make_beforehand(), make_beforehand(), epoch(number, token=10 + number)
        assert sender._elsewhere.begin(at)
        with follower.session(epoch(number, token=20 + number)) as session:
            assert not session.claimed
        if go_on == "end":
            sender.commit_checkpoint(at, session)
        else:
            sender._elsewhere.take_back(at)
        looking = make_beforehand()
        for marker in (looking.is_checkpoint_committed(number), *looking.newest(), list(looking.all())[-1]):
            assert marker is not None and not marker.whole
            assert (marker.epoch, marker.token) == (number, 20 + number)
        with make_beforehand().session(at) as session:
            assert not session.claimed
        assert not make_beforehand()._elsewhere.begin(at)


def test_whoever_has_a_transaction_keeps_more() -> None:
    with pytest.raises(InvalidPipeline, match="at_most_once' is none of none, at_least_once, exactly_once"):
        PostgresSink(
            "rows",
            tables={"rows": "public.rows"},
            connection="warehouse",
            protocol="write_ahead",
            guarantee="at_most_once",
            committer="postgres:ledger",
        )
    with pytest.raises(InvalidPipeline, match="committer is missing"):
        TcpSink("feed", output=OUTPUT, connection="receiver", guarantee="at_most_once")

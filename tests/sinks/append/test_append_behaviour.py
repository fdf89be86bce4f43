"""The behaviour suite, run against the append-only sinks, and FunctionSink, which gives the rows to a function."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import InvalidPipeline, PreflightRefused, SinkUnavailable
from lockstep.sdk import create_atomically
from lockstep.sinks import FunctionSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.testing import OUTPUT, SCHEMA, Behaviour, SealedRows, behaviours, sealed
from lockstep.testing._behaviour import CRASHES, UNREMEMBERED, processes_that_publish_at_once_show_the_rows_once
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sinks.append.receiving import PAGE, AppendUnderTest, Receiver, ReceiverUnderTest, StdoutUnderTest
from tests.sinks.documented import block_of
from tests.sinks.guarantees import expect_row

BEHAVIOURS = behaviours(AppendUnderTest)
#: what each sink is held to in every run; of functions all of it is
STRUCK = [one for one in BEHAVIOURS if one in CRASHES or one is processes_that_publish_at_once_show_the_rows_once]
REST = [one for one in BEHAVIOURS if one not in STRUCK]


@pytest.mark.parametrize("behaviour", STRUCK, ids=lambda one: one.__name__)
def test_sinks_with_a_receiver_that_are_struck(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory))


@pytest.mark.parametrize("behaviour", REST, ids=lambda one: one.__name__)
@pytest.mark.sample(4)
def test_sinks_with_a_receiver(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory))


@pytest.mark.parametrize("behaviour", UNREMEMBERED, ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_sinks_without_a_guarantee(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory, guarantee="none"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("counter", ["tcp", "http"], indirect=True)
@pytest.mark.sample(5)
def test_sinks_that_send_at_most_once(counter: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(counter, memory, guarantee="at_most_once"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_a_table_remembers_what_has_begun(
    memory: Path, ledger_server: PostgresServer, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = StdoutUnderTest(memory, "postgres:records", guarantee="at_most_once")
    dsn = ledger_server.create_database(f"begun_{uuid.uuid4().hex[:12]}")
    monkeypatch.setattr(target, "connections", lambda: {"records": dsn})
    with target.redirected():
        behaviour(target)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_stdout(memory: Path, behaviour: Behaviour) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        behaviour(target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(receiver: Receiver, memory: Path) -> None:
    name = f"{receiver.kind.capitalize()}Sink"
    expect_row(name, ReceiverUnderTest(receiver, memory))
    expect_row(f"{name}, none", ReceiverUnderTest(receiver, memory, guarantee="none"))


@pytest.mark.tier("all")
@pytest.mark.parametrize("counter", ["tcp", "http"], indirect=True)
def test_the_page_of_guarantees_tells_the_truth_of_those_at_most_once(counter: Receiver, memory: Path) -> None:
    target = ReceiverUnderTest(counter, memory, guarantee="at_most_once")
    expect_row(f"{counter.kind.capitalize()}Sink, at most once", target)


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("name", "guarantee"), [("", "at_least_once"), (", at most once", "at_most_once"), (", none", "none")]
)
@pytest.mark.parametrize("sink", ["StdoutSink", "FunctionSink"])
def test_the_page_of_guarantees_tells_the_truth_of_others(sink: str, name: str, guarantee: str, memory: Path) -> None:
    if sink == "FunctionSink":
        expect_row(f"{sink}{name}", FunctionUnderTest(memory, guarantee=guarantee))
    elif guarantee != "none":
        target = StdoutUnderTest(memory, guarantee=guarantee)
        with target.redirected():
            expect_row(f"{sink}{name}", target)


# --- functions --------------------------------------------------------------------------------------------------------


CONTEXT = SinkContext(DEPLOYMENT, "pipe", {})
FOLDER = "LOCKSTEP_TEST_SENT_TO"  #: an environment variable


def send(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    """Each batch as a file of its own, durable when this returns."""
    folder, buffer = Path(os.environ[FOLDER]), pa.BufferOutputStream()
    with pa.ipc.new_file(buffer, batch.schema) as file:
        file.write(batch)
    drafts = folder / ".drafts"
    drafts.mkdir(exist_ok=True)
    create_atomically(folder / f"{epoch.id}-{uuid.uuid4()}.arrow", buffer.getvalue().to_pybytes(), drafts)


def fail(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    raise KeyError(batch["name"].to_pylist())


class Sender:
    def send(self, batch: pa.RecordBatch, epoch: SinkEpoch) -> None: ...


class FunctionUnderTest(AppendUnderTest):
    def sink_with(self, committer: str | None) -> Sink:
        return FunctionSink("own", output=OUTPUT, function=send, committer=committer, **self.arguments)

    def records(self) -> list[dict[str, Any]]:
        return list(self.visible().to_pylist())

    def visible(self) -> pa.Table:
        found = [SCHEMA.empty_table()]
        for path in (self.folder / "rows").glob("*.arrow"):
            with pa.OSFile(str(path)) as file:
                found.append(pa.ipc.open_file(file).read_all())
        return pa.concat_tables(found)


@pytest.fixture(autouse=True)
def sent(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = memory / "rows"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    return folder


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once", "none"])
def test_functions(guarantee: str, memory: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for behaviour in UNREMEMBERED if guarantee == "none" else BEHAVIOURS:
        folder = memory / behaviour.__name__
        (folder / "rows").mkdir(parents=True)
        monkeypatch.setenv(FOLDER, str(folder / "rows"))
        with subtests.test(behaviour.__name__):
            behaviour(FunctionUnderTest(folder, guarantee=guarantee))


def test_the_plan_holds_the_functions_name() -> None:
    by_itself = FunctionSink("own", output=OUTPUT, function=send)
    assert by_itself == FunctionSink("own", output=OUTPUT, function=f"{__name__}:send")
    assert by_itself.spec()["arguments"]["function"] == f"{__name__}:send"
    assert Sink.from_spec(by_itself.spec()) == by_itself


def nested(**named: str) -> Callable[..., None]:
    def send(batch: Any, epoch: Any) -> None: ...

    for name, value in named.items():
        setattr(send, name, value)
    return send


def test_a_function_that_no_other_process_can_import_is_refused() -> None:
    cases: list[tuple[Any, str]] = [
        (lambda batch, epoch: None, "no name at the top of a module"),
        (nested(), "no name at the top of a module"),
        (Sender().send, "no name at the top of a module"),
        (partial(send), "no name at the top of a module"),
        (nested(__qualname__="send", __module__=__name__), "test_append_behaviour:send is another function"),
        (nested(__qualname__="send", __module__="__main__"), "the main program, which only this process has"),
    ]
    for function, told in cases:
        told = f"sink own: .* can't be imported by another process: .*{told}"
        with pytest.raises(InvalidPipeline, match=told):
            FunctionSink("own", output=OUTPUT, function=function)


def test_what_it_can_not_work_with_is_found_before_any_row() -> None:
    told = r"own: function .*(give module|is no function)"
    for function in ("nowhere:send", f"{__name__}:gone", f"{__name__}:FOLDER", "send"):
        sink = FunctionSink("own", output=OUTPUT, function=function)
        with sink.opened(CONTEXT) as live, pytest.raises(InvalidPipeline, match=told):
            live.preflight(None)
    sink = FunctionSink("own", output=OUTPUT, function=send)
    with sink.opened(CONTEXT) as live, pytest.raises(PreflightRefused, match="gave no output rows"):
        live.preflight({"others": SCHEMA})


def test_a_function_that_fails_is_asked_again_and_quotes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, wal = FunctionSink("own", output=OUTPUT, function=fail), sealed(10)
    with sink.opened(CONTEXT) as live:
        vote = live.prepare(epoch(), wal)
        with pytest.raises(
            SinkUnavailable, match="test_append_behaviour:fail failed with the rows from 0 on: KeyError"
        ) as refused:
            live.publish(epoch(), vote, wal)
        assert "two" not in str(refused.value) and refused.value.__cause__ is None
        monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
        with pytest.raises(SinkUnavailable, match="two"):
            live.publish(epoch(), vote, wal)


def test_the_page_s_function_sends(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (memory / "refunds_gauge.py").write_text(block_of(PAGE, "refunds_gauge"))
    monkeypatch.syspath_prepend(str(memory))
    wal = [SealedRows(pa.table({"amount": [-3, -4]}))]
    try:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as statsd:
            statsd.bind(("127.0.0.1", 0))
            statsd.settimeout(20)
            monkeypatch.setenv("STATSD_PORT", str(statsd.getsockname()[1]))
            with FunctionSink("gauge", output=OUTPUT, function="refunds_gauge:send").opened(CONTEXT) as live:
                live.preflight({OUTPUT: wal[0].schema})
                live.publish(epoch(), live.prepare(epoch(), wal), wal)
            assert statsd.recv(100) == b"refunds:-7|c"
    finally:
        sys.modules.pop("refunds_gauge", None)

"""FunctionSink: a function of one's own that gets the rows."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import InvalidPipeline, PreflightRefused, SinkUnavailable
from lockstep.sinks import FunctionSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SealedRows, SinkUnderTest, behaviours, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch
from tests.sinks.append import sending
from tests.sinks.append.receiving import PAGE
from tests.sinks.documented import block_of
from tests.sinks.guarantees import expect_row

CONTEXT = SinkContext(DEPLOYMENT, "pipe", {})


class FunctionUnderTest(SinkUnderTest):
    guarantee = Guarantee.AT_LEAST_ONCE
    votes_with_data = False
    reads_back = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sink(self, *, shared: bool = False) -> Sink:
        return self.sink_with("remembered")

    def sink_with(self, committer: str) -> Sink:
        if self.guarantee is Guarantee.NONE:
            return FunctionSink("own", output=OUTPUT, function=sending.send)
        folder = str(self.folder / committer)
        kept = self.guarantee.value
        return FunctionSink("own", output=OUTPUT, function=sending.send, guarantee=kept, committer=folder)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        with self.sink_with("elsewhere").opened(self.context()) as sink:
            sink.preflight(None)
        return self.sink_with("elsewhere"), self.context()

    def visible(self) -> pa.Table:
        found = [SCHEMA.empty_table()]
        for path in (self.folder / "sent").glob("*.arrow"):
            with pa.OSFile(str(path)) as file:
                found.append(pa.ipc.open_file(file).read_all())
        return pa.concat_tables(found)

    def unsettled(self) -> list[str]:
        return [str(path) for path in (self.folder / "remembered").rglob("*~*")]

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")


class Unremembered(FunctionUnderTest):
    guarantee = Guarantee.NONE


class AtMostOnce(FunctionUnderTest):
    guarantee = Guarantee.AT_MOST_ONCE


def sent_below(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = memory / "sent"
    folder.mkdir(parents=True)
    monkeypatch.setenv(sending.FOLDER, str(folder))
    return folder


@pytest.fixture(autouse=True)
def sent(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return sent_below(memory, monkeypatch)


@pytest.mark.parametrize("kind", [FunctionUnderTest, AtMostOnce, Unremembered], ids=lambda one: one.guarantee.name)
def test_the_suite_of_all_sinks(
    kind: type[FunctionUnderTest], memory: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for behaviour in behaviours(kind):
        folder = memory / behaviour.__name__
        sent_below(folder, monkeypatch)
        with subtests.test(behaviour.__name__):
            behaviour(kind(folder))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(memory: Path) -> None:
    expect_row("FunctionSink", FunctionUnderTest(memory))
    expect_row("FunctionSink, none", Unremembered(memory))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_of_one_at_most_once(memory: Path) -> None:
    expect_row("FunctionSink, at most once", AtMostOnce(memory))


# --- its name --------------------------------------------------------------------------------------------------------


def test_the_plan_holds_the_functions_name() -> None:
    by_itself = FunctionSink("own", output=OUTPUT, function=sending.send)
    by_name = FunctionSink("own", output=OUTPUT, function="tests.sinks.append.sending:send")
    assert by_itself == by_name
    assert by_itself.spec() == {
        "type": "lockstep.sinks:FunctionSink",
        "arguments": {
            "name": "own",
            "output": OUTPUT,
            "function": "tests.sinks.append.sending:send",
            "guarantee": "none",
            "committer": None,
        },
    }
    assert Sink.from_spec(by_itself.spec()) == by_itself


def nested() -> Callable[..., None]:
    def send(batch: Any, epoch: Any) -> None: ...

    return send


def not_its_own_name() -> Callable[..., None]:
    def send(batch: Any, epoch: Any) -> None: ...

    send.__qualname__, send.__module__ = "send", sending.__name__
    return send


def of_the_program() -> Callable[..., None]:
    def send(batch: Any, epoch: Any) -> None: ...

    send.__qualname__, send.__module__ = "send", "__main__"
    return send


def test_a_function_that_no_other_process_can_import_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str]] = [
        (lambda batch, epoch: None, "no name at the top of a module"),
        (nested(), "no name at the top of a module"),
        (sending.Sender().send, "no name at the top of a module"),
        (partial(sending.send), "no name at the top of a module"),
        (not_its_own_name(), "sending:send is another one"),
        (of_the_program(), "a module that only this process has"),
    ]
    for function, told in cases:
        told = f"sink own: .* can't be imported by another process: .*{told}"
        with subtests.test(str(function)), pytest.raises(InvalidPipeline, match=told):
            FunctionSink("own", output=OUTPUT, function=function)


def test_a_name_that_leads_nowhere_is_found_before_any_row(subtests: pytest.Subtests) -> None:
    told = r"own: function .*(give module|is no function)"
    for function in ("nowhere:send", f"{sending.__name__}:gone", f"{sending.__name__}:FOLDER", "send"):
        sink = FunctionSink("own", output=OUTPUT, function=function)
        with (
            subtests.test(function),
            sink.opened(CONTEXT) as live,
            pytest.raises(InvalidPipeline, match=told),
        ):
            live.preflight(None)


# --- what it is given ------------------------------------------------------------------------------------------------


def test_a_function_that_fails_is_asked_again_and_quotes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, wal = FunctionSink("own", output=OUTPUT, function=sending.fail), sealed(10)
    with sink.opened(CONTEXT) as live:
        vote = live.prepare(epoch(), wal)
        with pytest.raises(SinkUnavailable, match="sending:fail failed with the rows from 0 on: KeyError") as refused:
            live.publish(epoch(), vote, wal)
        assert "two" not in str(refused.value) and refused.value.__cause__ is None
        monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
        with pytest.raises(SinkUnavailable, match="two"):
            live.publish(epoch(), vote, wal)


class WithAnEmptyBatch(SealedRows):
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([], SCHEMA)
        yield from super().__iter__()


def test_a_function_gets_no_batch_without_rows(sent: Path) -> None:
    sink = FunctionSink("own", output=OUTPUT, function=sending.send)
    for rows in (0, 5):
        wal = [WithAnEmptyBatch(sealed(rows)[0].table)]
        with sink.opened(CONTEXT) as live:
            live.publish(epoch(), live.prepare(epoch(), wal), wal)
        assert len(list(sent.glob("*.arrow"))) == (1 if rows else 0)


def test_an_output_that_the_transform_does_not_give_is_refused() -> None:
    sink = FunctionSink("own", output=OUTPUT, function=sending.send)
    with sink.opened(CONTEXT) as live, pytest.raises(PreflightRefused, match="gave no output rows"):
        live.preflight({"others": SCHEMA})


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

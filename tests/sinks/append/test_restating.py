"""What was sent can't be taken back: an epoch in another's place is refused, or sent after it and told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import InvalidPipeline, LedgerConflict, PreflightRefused
from lockstep.sinks import FunctionSink, HttpSink, StdoutSink, TcpSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.testing import OUTPUT, SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch

CONTEXT = SinkContext(DEPLOYMENT, "pipe", {"receiver": "http://127.0.0.1:1", "feed": "tcp://127.0.0.1:1"})
FIRST = epoch()
SECOND = epoch(2, token=20, manifest="b", replaced=[FIRST])
CALLED: list[SinkEpoch] = []


def call(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    CALLED.append(epoch)


def stdout(folder: Path, **arguments: Any) -> Sink:
    return StdoutSink("look", output=OUTPUT, committer=str(folder), **arguments)


def function(folder: Path, **arguments: Any) -> Sink:
    return FunctionSink(
        "own", output=OUTPUT, function=call, committer=str(folder), guarantee="at_least_once", **arguments
    )


def http(folder: Path, **arguments: Any) -> Sink:
    return HttpSink("events", output=OUTPUT, connection="receiver", committer=str(folder), **arguments)


def tcp(folder: Path, **arguments: Any) -> Sink:
    return TcpSink("feed", output=OUTPUT, connection="feed", committer=str(folder), **arguments)


def publish(sink: Sink, at: SinkEpoch, wal: list[SealedRows]) -> None:
    with sink.opened(CONTEXT) as live:
        live.preflight(None)
        live.publish(at, live.prepare(at, wal), wal)


@pytest.mark.fault("N4")
def test_it_is_refused_unless_the_sink_says_send(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for of in (stdout, function, http, tcp):
        before, now = of(tmp_path), of(tmp_path, on_restate="send")
        with subtests.test(of.__name__):
            with before.opened(CONTEXT) as live, pytest.raises(PreflightRefused, match="on_restate='send'"):
                live.require_replaceable()
            with now.opened(CONTEXT) as live:
                live.require_replaceable()
            with pytest.raises(InvalidPipeline, match="'refuse' nor 'send'"):
                of(tmp_path, on_restate="drop")
            assert before.spec() == now.spec()
            assert Sink.from_spec(before.spec(), now.settings()) == now


def test_it_is_refused_where_nobody_remembers_what_was_sent() -> None:
    sink = StdoutSink("look", output=OUTPUT, guarantee="none", on_restate="send")
    with sink.opened(CONTEXT) as live, pytest.raises(PreflightRefused, match="guarantee='none'"):
        live.require_replaceable()


def test_each_record_names_the_epoch_whose_place_it_takes(tmp_path: Path, capsysbinary: Any) -> None:
    sink = stdout(tmp_path, on_restate="send")
    for at, rows in ((FIRST, 2), (SECOND, 3)):
        publish(sink, at, sealed(rows))
    told = [json.loads(line)["lockstep"] for line in capsysbinary.readouterr().out.splitlines() if line]
    assert [(one["epoch"], one.get("replaces"), one["ordinal"]) for one in told] == [
        *((1, None, number) for number in range(2)),
        *((2, [1], number) for number in range(3)),
    ]


def test_a_function_is_told_whose_place_its_rows_take(tmp_path: Path) -> None:
    CALLED.clear()
    for at in (FIRST, SECOND):
        publish(function(tmp_path, on_restate="send"), at, sealed(1))
    assert [[one.id for one in at.replaced] for at in CALLED] == [[], [1]]


def test_nothing_takes_the_place_of_what_was_not_sent_as_decided(tmp_path: Path) -> None:
    sink = stdout(tmp_path, on_restate="send")
    with pytest.raises(LedgerConflict, match="no marker"):
        publish(sink, SECOND, sealed(1))
    publish(sink, epoch(manifest="another life"), sealed(1))
    with pytest.raises(LedgerConflict, match="the marker of manifest"):
        publish(sink, SECOND, sealed(1))

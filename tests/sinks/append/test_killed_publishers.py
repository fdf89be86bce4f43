"""Publishers are killed at every call: a receiver that drops repeats by their keys has each record once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lockstep.sinks.committers import _lone_sender as lone_sender
from lockstep.testing import calls_from
from lockstep.testing._crash_sweep import (
    Decision,
    Round,
    Trace,
    child_at_step,
    finish,
    prepares_and_publishes,
    steps_of,
)
from lockstep.testing._under_test import opened
from stack.postgres import PostgresServer
from tests.sampling import Sampling
from tests.sinks.append.receiving import AppendUnderTest, Receiver, ReceiverUnderTest, StdoutUnderTest

ROWS = 8
Share = Callable[[Sequence[int]], list[int]]


@pytest.fixture(autouse=True)
def soon_at_a_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never: a slow run would make more calls than another one, those of its beats. Who dies is followed at once."""
    monkeypatch.setattr(lone_sender, "STANDSTILL", 300.0)


SINK = tuple(f"append_only.{name}" for name in ("open_sink", "records", "tcp", "http", "_http_receiver", "stdout"))
COMMITTER = ("committers.outside", "committers._folder", "committers._table", "committers._lone_sender", "durable_file")
#: they send what they do in one thread, so that each call has its place
ONE_THREAD: dict[str, dict[str, Any]] = {"http": {"requests_at_once": 1}, "tcp": {}}


def calls(*modules: str) -> Trace:
    return calls_from(*(f"lockstep.sinks.{module}" for module in modules))


def kill_at_calls(target: AppendUnderTest, trace: Trace, folder: Path, share: Share, least: int) -> list[Round]:
    """Prepare and publish an epoch for each call of a share of them, of which there are at `least` so many, dying
    there; let another process finish it. Returns the epochs.

    A publisher may come to its end first: the last calls are fewer where an answer arrives in one piece.
    """
    rounds = (Round(target, number, ROWS, Decision(folder / f"decision-{number}")) for number in count(1))
    done = [next(rounds), next(rounds)]
    finish(done[0])
    steps = steps_of(prepares_and_publishes, trace, done[1], folder / "steps")
    assert len(steps) >= least
    numbers, killed = share(range(len(steps))), 0
    for index in numbers:
        done.append(next(rounds))
        with child_at_step(done[-1], prepares_and_publishes, trace, index, signal.SIGKILL) as child:
            assert child.wait() in (0, -signal.SIGKILL), f"step {index} ({steps[index]})"
            killed += child.code != 0
        finish(done[-1])
    assert killed >= len(numbers) - 3, f"{killed} of {len(numbers)} came to their step"
    return done


def keys_of(target: AppendUnderTest) -> Counter[tuple[int, int]]:
    envelopes = [record["lockstep"] for record in target.records()]
    return Counter((one["epoch"], one["ordinal"]) for one in envelopes)


def every_key(rounds: Sequence[Round]) -> Counter[tuple[int, int]]:
    return Counter((round.number, ordinal) for round in rounds for ordinal in range(ROWS))


@pytest.fixture
def a_third(sampling: Sampling) -> Share:
    return lambda numbers: sampling.share(numbers, 0, 3)


def test_a_receiver_that_drops_repeats_has_every_record_once(receiver: Receiver, memory: Path, a_third: Share) -> None:
    target = ReceiverUnderTest(receiver, memory, **ONE_THREAD[receiver.kind])
    rounds = kill_at_calls(target, calls(*SINK, *COMMITTER), memory, a_third, 80)
    assert keys_of(target) == every_key(rounds)
    with opened(target) as sink:
        sink.preflight(None)
    assert target.unsettled() == [], "the next epoch's begin leaves drafts of killed processes behind"


@pytest.mark.parametrize("receiver", ["tcp"], indirect=True)
def test_a_receiver_has_every_record_once_when_a_table_remembers(
    receiver: Receiver, memory: Path, memory_server: PostgresServer, a_third: Share
) -> None:
    target = ReceiverUnderTest(receiver, memory, "postgres:records", **ONE_THREAD[receiver.kind])
    target.others["records"] = memory_server.create_database(f"records_{receiver.kind}")
    rounds = kill_at_calls(target, calls("committers._table"), memory, a_third, 10)
    assert keys_of(target) == every_key(rounds)


def test_what_reads_standard_output_loses_nothing_and_can_tell_the_repeats(memory: Path) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        rounds = kill_at_calls(target, calls("append_only.stdout"), memory, list, 1)
    found = keys_of(target)
    assert found.keys() == every_key(rounds).keys()
    assert found.total() > len(found), "no kill fell between the rows and their record: the sweep shows nothing"

"""A KafkaSink under test, and a reader of committed records who reads its topic throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Vote
from lockstep.sinks.values import SinkEpoch
from lockstep.testing import SealedRows, sealed
from lockstep.testing._under_test import epoch, expect_rows, prepare, publish
from tests.sinks.kafka_admin import cluster_of, held
from tests.sinks.kafka_observer import Observer, observed
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest
from tests.waiting import until

ROWS = 1000  #: an epoch


@dataclass
class Watched:
    """A target with epoch 1 in it, as a reader who has seen that is known to read."""

    target: KafkaUnderTest
    observer: Observer

    def voted(self, number: int = 2, **more: Any) -> tuple[SinkEpoch, Vote, list[SealedRows]]:
        wal = sealed(ROWS, start=ROWS * number)
        at_ = replace(epoch(number), **more)
        return at_, prepare(self.target, at_, wal), wal

    def expect(self, *epochs: int, in_turn: bool = True) -> None:
        """Fail unless the reader saw these epochs, and no other but the first."""
        self.observer.expect(dict.fromkeys((1, *epochs), ROWS), in_turn=in_turn)
        expect_rows(self.target, *(sealed(ROWS, start=ROWS * n) for n in (1, *epochs)))
        assert not self.target.unsettled()

    def saw(self, number: int) -> bool:
        return any(one.epoch == number for one in self.observer.look())


@contextmanager
def watching(target: KafkaUnderTest) -> Iterator[Watched]:
    with observed(target.broker, target.topic, PARTITIONS) as observer:
        found = Watched(target, observer)
        publish(target, *found.voted(1))
        until(lambda: len(observer.look()) == ROWS, "the reader doesn't read")
        yield found


@contextmanager
def at(point: CrashPoint, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do `action` when `point` is first reached."""
    left = [action]
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    stop = crash.observe(lambda reached: left.pop()() if reached is point and left else None)
    try:
        yield
    finally:
        stop()


def until_sent(target: KafkaUnderTest) -> None:
    until(lambda: holds(target), "no record arrived")


def holds(target: KafkaUnderTest) -> bool:
    """Whether a transaction is open in the topic right now."""
    return bool(held(target.broker, target.topic, PARTITIONS))


def records_in(target: KafkaUnderTest) -> int:
    """How many offsets the topic has used, for open transactions and aborted ones, too."""
    with cluster_of(target.broker) as cluster:
        return sum(cluster.ends(target.topic, range(PARTITIONS)).values())


def once(*actions: Callable[[], object]) -> Callable[[], None]:
    """Does all of them when it is first called."""
    left = list(actions)

    def act() -> None:
        while left:
            left.pop(0)()

    return act


@dataclass(frozen=True)
class Interrupted(SealedRows):
    """Rows in whose middle something happens, each time that they are read."""

    action: Callable[[], object] = print

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        first, *others = super().__iter__()
        yield first
        self.action()
        yield from others

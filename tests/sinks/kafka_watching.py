"""A reader of committed records who reads a topic throughout, in a process of its own, and what is done meanwhile."""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Vote
from lockstep.sinks.values import SinkEpoch
from lockstep.testing import SealedRows, sealed
from lockstep.testing._crash_sweep import Child, ended, fork
from lockstep.testing._under_test import epoch, expect_rows, prepare, publish
from tests.sinks.kafka_admin import Brokers, cluster_of, held
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest
from tests.waiting import until

ROWS = 1000  #: an epoch


@dataclass(frozen=True, order=True)
class Seen:
    """One record, where it stood, and what its header said."""

    partition: int
    offset: int
    epoch: int
    ordinal: int


@dataclass
class Observer:
    """What the reader has seen so far, in the order in which it came. `told`, `end`: pipes from it, and to it."""

    broker: Brokers
    topic: str
    process: Child
    told: int
    end: int
    seen: list[Seen] = field(default_factory=list)
    _rest: str = ""

    def look(self) -> list[Seen]:
        """Everything that it has seen by now."""
        while select.select([self.told], [], [], 0)[0] and self._take():
            pass
        return self.seen

    def finish(self) -> list[Seen]:
        """Let it read to the end, and go."""
        if self.process.code is None:
            os.write(self.end, b"now")
            while self._take():
                pass
            assert self.process.wait() == 0
        return self.seen

    def _take(self) -> bool:
        read = os.read(self.told, 1 << 16).decode()
        *lines, self._rest = (self._rest + read).split("\n")
        self.seen += [Seen(*map(int, line.split())) for line in lines]
        return bool(read)

    def expect(
        self, epochs: dict[int, int], *, in_turn: bool = True, ordered: bool = True, which: slice = slice(None)
    ) -> None:
        """Fail unless it saw `epochs` (id → rows) once and whole: nothing lost, doubled, out of order or aborted.

        `in_turn`: one epoch ends before the next one begins, in each partition. `ordered`: each in its order. `which`:
        the rows of each epoch that this topic gets, by their places.
        """
        seen = self.finish()
        wanted = Counter((epoch, n) for epoch, rows in epochs.items() for n in range(rows)[which])
        found = Counter((one.epoch, one.ordinal) for one in seen)
        lost, more = wanted - found, found - wanted
        assert not lost, f"lost: {sorted(lost)[:5]} and others, {lost.total()} in all"
        assert not more, f"doubled or foreign: {sorted(more)[:5]} and others, {more.total()} in all"
        for partition in range(PARTITIONS):
            here = [one for one in seen if one.partition == partition]
            assert here == sorted(here), f"partition {partition} was read out of order"
            for number in {one.epoch for one in here}:
                ordinals = [one.ordinal for one in here if one.epoch == number]
                assert not ordered or ordinals == sorted(ordinals), f"partition {partition}, epoch {number}: no order"
            blocks = [number for number, _ in groupby(one.epoch for one in here)]
            assert not in_turn or len(blocks) == len(set(blocks)), f"partition {partition}: epochs are mixed: {blocks}"
        stands: list[Seen] = []
        _read(self.broker, self.topic, stands.append, lambda: True)
        assert sorted(seen) == sorted(stands), "it saw records that aren't there for a reader who comes later"


@contextmanager
def observed(broker: Brokers, topic: str) -> Iterator[Observer]:
    """A reader that has begun to read."""
    (told, telling), (ending, end) = os.pipe(), os.pipe()

    def work() -> None:
        signal.alarm(0)  # it reads as long as the test lasts
        with os.fdopen(telling, "w", buffering=1) as out:
            tell = partial(print, file=out)
            _read(broker, topic, lambda one: tell(*astuple(one)), lambda: bool(select.select([ending], [], [], 0)[0]))

    with ended(fork(work)) as process:
        os.close(telling)
        yield Observer(broker, topic, process, told, end)
    for left in (told, ending, end):
        os.close(left)


def _read(broker: Brokers, topic: str, told: Callable[[Seen], object], ending: Callable[[], bool]) -> None:
    """Tell every committed record; ends at the ends that the partitions have when `ending` is true at last."""
    reader = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "observer", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 50, "log_level": 0}
        | {"reconnect.backoff.max.ms": 500}
    )
    wanted: dict[int, int] | None = None
    reached = dict.fromkeys(range(PARTITIONS), 0)
    with closing(reader):
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in reached])
        while wanted is None or any(reached[number] < end for number, end in wanted.items()):
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                told(_seen(message))
            elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                reached[message.partition()] = message.offset()
            elif message is None and wanted is None and ending():
                with cluster_of(broker) as cluster:
                    wanted = cluster.ends(topic, range(PARTITIONS))


def _seen(message: Message) -> Seen:
    *_, epoch, ordinal = dict(message.headers())["lockstep"].decode().split("/")
    return Seen(message.partition(), message.offset(), int(epoch), int(ordinal))


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
    with observed(target.broker, target.topic) as observer:
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


def struck_at(
    point: CrashPoint,
    how: signal.Signals,
    work: Callable[[], object],
    *,
    times: int = 1,
    before: Callable[[], object] = lambda: None,
) -> Child:
    """Does `work` in a process that strikes itself when it comes to `point` for the so manyth time, after `before`."""
    left = [how] * times

    def strike(reached: CrashPoint) -> None:
        if reached is point and left and (signalled := left.pop()) and not left:
            before()
            os.kill(os.getpid(), signalled)

    def attempt() -> None:
        os.environ["LOCKSTEP_TESTING"] = "1"
        crash.observe(strike)
        work()

    return fork(attempt, quiet=True)


def wait_until_struck(child: Child, how: signal.Signals) -> None:
    if how is signal.SIGSTOP:
        assert child.wait_until_stopped()
    else:
        assert child.wait() == -how


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
    """Rows between whose batches something happens, each time that they are read."""

    action: Callable[[], object] = print

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(super().__iter__()):
            if number:
                self.action()
            yield batch

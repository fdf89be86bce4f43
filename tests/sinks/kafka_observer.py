"""A reader of committed records that reads throughout a test, in a process of its own, and what it saw.

python -m tests.sinks.kafka_observer BOOTSTRAP TOPIC PARTITIONS        one line for each record, until stdin is closed
and every partition is read to the end that it then has
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TextIO

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from tests.sinks.kafka_admin import Brokers

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 120


@dataclass(frozen=True, order=True)
class Seen:
    """One record, where it stood, and what its header said."""

    partition: int
    offset: int
    epoch: int
    ordinal: int


@dataclass
class Observer:
    """What the reader has seen so far, in the order in which it came."""

    broker: Brokers
    topic: str
    partitions: int
    process: subprocess.Popen[str]
    seen: list[Seen] = field(default_factory=list)
    _rest: str = ""

    def look(self) -> list[Seen]:
        """Everything that it has seen by now."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while waiting.select(0):
                read = os.read(self.process.stdout.fileno(), 1 << 16).decode()
                if not read:
                    break
                self._take(read)
        return self.seen

    def finish(self) -> list[Seen]:
        """Let it read to the end, and go."""
        if self.process.stdin is None:
            return self.seen
        self.process.stdin.close()
        self.process.stdin = None
        told, _ = self.process.communicate(timeout=SECONDS)
        self._take(told)
        assert self.process.returncode == 0
        return self.seen

    def expect(
        self, epochs: dict[int, int], *, in_turn: bool = True, ordered: bool = True, which: slice = slice(None)
    ) -> None:
        """Fail unless it saw `epochs` (id → rows) once and whole: nothing lost, doubled, out of order or aborted.

        `in_turn`: one epoch ends before the next one begins, in each partition. `ordered`: each in its order. `which`:
        the rows of each epoch that this topic gets, by their places.
        """
        seen = self.finish()
        self._expect_each_once(seen, epochs, which)
        for partition, here in groupby(sorted(seen, key=lambda one: one.partition), lambda one: one.partition):
            self._expect_order(partition, list(here), in_turn, ordered)
        stands = _standing(self)
        assert sorted(seen) == sorted(stands), "it saw records that aren't there for a reader who comes later"

    def _expect_each_once(self, seen: list[Seen], epochs: dict[int, int], which: slice) -> None:
        wanted = Counter((epoch, n) for epoch, rows in epochs.items() for n in range(rows)[which])
        found = Counter((one.epoch, one.ordinal) for one in seen)
        lost, more = wanted - found, found - wanted
        assert not lost, f"lost: {sorted(lost)[:5]} and others, {lost.total()} in all"
        assert not more, f"doubled or foreign: {sorted(more)[:5]} and others, {more.total()} in all"

    def _expect_order(self, partition: int, seen: list[Seen], in_turn: bool, ordered: bool) -> None:
        offsets = [one.offset for one in seen]
        assert offsets == sorted(set(offsets)), f"partition {partition} was read out of order"
        for epoch in {one.epoch for one in seen}:
            ordinals = [one.ordinal for one in seen if one.epoch == epoch]
            assert not ordered or ordinals == sorted(ordinals), f"partition {partition}: epoch {epoch} is out of order"
        blocks = [epoch for epoch, _ in groupby(one.epoch for one in seen)]
        assert not in_turn or len(blocks) == len(set(blocks)), f"partition {partition}: epochs are mixed: {blocks}"

    def _take(self, read: str) -> None:
        *lines, self._rest = (self._rest + read).split("\n")
        self.seen += [Seen(*map(int, line.split())) for line in lines]


@contextmanager
def observed(broker: Brokers, topic: str, partitions: int) -> Iterator[Observer]:
    """A reader that has begun to read."""
    command = [sys.executable, "-m", "tests.sinks.kafka_observer", broker.bootstrap, topic, str(partitions)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Observer(broker, topic, partitions, process)
    finally:
        process.kill()
        process.communicate()


def _standing(observer: Observer) -> list[Seen]:
    found: list[Seen] = []
    read(observer.broker.bootstrap, observer.topic, observer.partitions, found.append, lambda: True)
    return found


def read(
    bootstrap: str, topic: str, partitions: int, told: Callable[[Seen], object], ending: Callable[[], bool]
) -> None:
    """Tell every committed record; ends at the ends that the partitions have when `ending` is true at last."""
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "observer", "isolation.level": "read_committed", "log_level": 0}
        | {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 50}
        | {"reconnect.backoff.max.ms": 500}
    )
    wanted: dict[int, int] | None = None
    reached = dict.fromkeys(range(partitions), 0)
    with closing(reader):
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in reached])
        while wanted is None or any(reached[number] < end for number, end in wanted.items()):
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                told(_seen(message))
            elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                reached[message.partition()] = message.offset()
            elif message is None and wanted is None and ending():
                with closing(Cluster({"bootstrap.servers": bootstrap}, Asker("observer"))) as cluster:
                    wanted = cluster.ends(topic, range(partitions))


def _seen(message: Message) -> Seen:
    header = dict(message.headers())["lockstep"].decode()
    *_, epoch, ordinal = header.split("/")
    return Seen(message.partition(), message.offset(), int(epoch), int(ordinal))


def _print(one: Seen, out: TextIO = sys.stdout) -> None:
    out.write(f"{one.partition} {one.offset} {one.epoch} {one.ordinal}\n")
    out.flush()


def _stdin_is_closed() -> bool:
    with selectors.DefaultSelector() as waiting:
        waiting.register(sys.stdin, selectors.EVENT_READ)
        return bool(waiting.select(0)) and not sys.stdin.read()


if __name__ == "__main__":
    read(sys.argv[1], sys.argv[2], int(sys.argv[3]), _print, _stdin_is_closed)

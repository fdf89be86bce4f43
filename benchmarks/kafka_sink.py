"""Records a second of KafkaSink, against Kafka's own producer performance tool with records of the same size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.paths import DEPLOYMENT, START
from benchmarks.ways import Way
from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from lockstep.epoch import Interval, Vote
from lockstep.sinks import KafkaSink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Publication, SinkContext, SinkEpoch
from lockstep.wal.reading import SealedWal
from lockstep.wal.staging import Staging
from stack.kafka import KafkaBroker

_numbers = count(1)

GROUP = "KafkaSink"
SIZE = 100  #: bytes of a record's value, but for JSON, where it is about that
PARTITIONS = 3
BATCHES = ("batch.size=1000000", "linger.ms=20", "buffer.memory=67108864", "compression.type=lz4")
AT_LEAST = "at_least_once"


@dataclass(frozen=True)
class Voted:
    """An epoch that is decided, and the sink that it goes to. `begun`: when its check began, by the clock."""

    sink: KafkaSink
    live: OpenSink
    epoch: SinkEpoch
    vote: Vote
    sealed: SealedWal
    begun: float


@dataclass(frozen=True)
class Place:
    """A broker, and sealed WALs of `rows` rows by name."""

    broker: KafkaBroker
    folder: Path
    rows: int
    wals: dict[str, tuple[str, str]]

    def topic(self) -> str:
        """A new one."""
        name = f"bench-{next(_numbers)}"
        with closing(Cluster({"bootstrap.servers": self.broker.bootstrap}, Asker("bench"))) as cluster:
            cluster.create_topic(name, PARTITIONS, {})
        return name

    def tool(self, *more: str) -> float:
        """Seconds by the rate that the tool itself tells; its Java's start doesn't count."""
        sized = ["--num-records", str(self.rows), "--record-size", str(SIZE), "--throughput", "-1"]
        settings = ["--producer-props", f"bootstrap.servers={self.broker.bootstrap}", "acks=all", *more]
        main = "org.apache.kafka.tools.ProducerPerformance"
        told = self.broker.run_tool(main, ["--topic", self.topic(), *sized, *settings])
        rate = float(told.strip().splitlines()[-1].split("sent, ")[1].split(" ")[0])
        return self.rows / rate

    def sink(self, wal: str, *, prepare: bool = False, apart: Executor | None = None, **more: Any) -> float:
        """Seconds of publication, every check included; with `prepare` also of the check before the decision. `apart`:
        whose processes send a shard each, before who publishes looks for them."""
        with self._voted(wal, more) as voted:
            decided = time.perf_counter()
            if apart is not None:
                self._send_apart(voted, wal, apart)
            voted.live.publish(voted.epoch, voted.vote, voted.sealed.outputs(voted.sink.outputs))
            return time.perf_counter() - (voted.begun if prepare else decided)

    def busiest(self, wal: str, apart: Executor, **more: Any) -> float:
        """CPU seconds of that process which takes the most of them, where each shard has one of its own."""
        with self._voted(wal, more) as voted:
            return max(self._send_apart(voted, wal, apart))

    def _send_apart(self, voted: Voted, wal: str, apart: Executor) -> list[float]:
        send = partial(
            _send_shard, voted.sink, self.broker.bootstrap, self.folder, voted.epoch, voted.vote, self.wals[wal]
        )
        return list(apart.map(send, range(voted.sink.shards)))

    @contextmanager
    def _voted(self, wal: str, more: dict[str, Any]) -> Iterator[Voted]:
        """A new topic, an epoch that was voted for to be sent there, and its sink, open."""
        if more.get("guarantee") == AT_LEAST:
            more["committer"] = str(self.folder / "sent")
        sink = KafkaSink("rows", output="flights", topic=self.topic(), connection="to", **more)
        sealed = Staging(str(self.folder / "staging")).open(*self.wals[wal])
        number = next(_numbers)
        start = START + timedelta(days=number)  # a range is shown once
        epoch = SinkEpoch(number, 1, self.wals[wal][1], START, Interval(start, start + timedelta(days=1)))
        with sink.opened(SinkContext(DEPLOYMENT, "bench", {"to": self.broker.bootstrap})) as live:
            live.preflight({name: sealed.manifest.outputs[name].schema for name in sink.outputs})
            begun = time.perf_counter()
            vote = live.prepare(epoch, sealed.outputs(sink.outputs))
            yield Voted(sink, live, epoch, vote, sealed, begun)


@contextmanager
def ways(broker: KafkaBroker, folder: Path, rows: int) -> Iterator[list[Way]]:
    """What `python -m benchmarks.kafka` measures of the sink."""
    from benchmarks.epochs import seal

    wals = {name: seal(table, folder, number) for number, (name, table) in enumerate(_tables(rows).items(), 1)}
    here = Place(broker, folder, rows, wals)
    here.tool()  # the broker's Java becomes warm
    yield [
        Way(GROUP, "kafka-producer-perf-test, acks=all", here.tool),
        Way(GROUP, "…, with KafkaSink's batches", lambda: here.tool(*BATCHES)),
        Way(GROUP, "exactly_once", lambda: here.sink("values", value="value"), of=AT_LEAST),
        Way(GROUP, AT_LEAST, lambda: here.sink("values", value="value", guarantee=AT_LEAST)),
        Way(GROUP, "none", lambda: here.sink("values", value="value", guarantee="none")),
        Way(GROUP, "exactly_once, keys", lambda: here.sink("keyed", key="key", value="value")),
        Way(GROUP, "exactly_once, JSON", lambda: here.sink("objects"), of="at_least_once, JSON"),
        Way(GROUP, "at_least_once, JSON", lambda: here.sink("objects", guarantee=AT_LEAST)),
        Way(GROUP, "exactly_once, with prepare", lambda: here.sink("values", prepare=True, value="value")),
    ]


@contextmanager
def shards(broker: KafkaBroker, folder: Path, rows: int) -> Iterator[list[Way]]:
    """One transaction, and two shards: both by one process, and each by one of its own that is there already."""
    from benchmarks.epochs import seal

    tables = {name: table for name, table in _tables(rows).items() if name != "values"}
    wals = {name: seal(table, folder, number) for number, (name, table) in enumerate(tables.items(), 1)}
    here = Place(broker, folder, rows, wals)
    columns: dict[str, Any] = {"key": "key", "value": "value"}
    keyed, objects = partial(here.sink, "keyed", **columns), partial(here.sink, "objects")
    kinds = [
        ("shards, keys", keyed, partial(here.busiest, "keyed", **columns)),
        ("shards, JSON", objects, partial(here.busiest, "objects")),
    ]
    with ProcessPoolExecutor(2, get_context("spawn")) as apart:
        for kind in (keyed, objects):
            kind(shards=2, apart=apart)  # they import what they need
        yield [way for name, kind, busiest in kinds for way in _shard_ways(name, kind, busiest, apart)]


def _shard_ways(name: str, publish: Callable[..., float], busiest: Callable[..., float], apart: Executor) -> list[Way]:
    cpu = f"{name}: CPU s of the busiest process"
    return [
        Way(name, "one transaction", publish),
        Way(name, "two shards by one process", partial(publish, shards=2)),
        Way(name, "two shards by two processes", partial(publish, shards=2, apart=apart)),
        Way(cpu, "one transaction", partial(busiest, apart=apart)),
        Way(cpu, "two shards by two processes", partial(busiest, apart=apart, shards=2)),
    ]


def _send_shard(
    sink: KafkaSink, bootstrap: str, folder: Path, epoch: SinkEpoch, vote: Vote, wal: tuple[str, str], shard: int
) -> float:
    """What `publish_shard` does with a sink; CPU seconds of all threads."""
    before = time.process_time()
    sealed = Staging(str(folder / "staging")).open(*wal)
    with sink.opened(SinkContext(DEPLOYMENT, "bench", {"to": bootstrap})) as live:
        for batches in sealed.outputs(sink.outputs):
            batches.check()
        assert live.publish_shard(epoch, vote, sealed.outputs(sink.outputs), shard) is Publication.SENT
    return time.process_time() - before


def letters(rows: int, each: int) -> pa.Array:
    """Random capitals, as the tool sends them."""
    text = np.random.default_rng(1).integers(65, 91, rows * each, dtype=np.uint8)
    offsets = np.arange(0, (rows + 1) * each, each, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


def _tables(rows: int) -> dict[str, pa.Table]:
    ids = pa.array(np.arange(rows))
    delays = pa.array(np.arange(rows, dtype=np.int32) % 1440)
    objects = {"id": ids, "origin": letters(rows, 3), "tailnum": letters(rows, 37), "delay": delays}
    return {
        "values": pa.table({"value": letters(rows, SIZE)}),
        "keyed": pa.table({"key": ids.cast(pa.string()), "value": letters(rows, SIZE)}),
        "objects": pa.table(objects),
    }

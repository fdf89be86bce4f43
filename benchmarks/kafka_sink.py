"""Records a second of KafkaSink, against Kafka's own producer performance tool with records of the same size."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.paths import DEPLOYMENT, START
from benchmarks.ways import Way
from lockstep.epoch import Interval
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from lockstep.sinks import KafkaSink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.wal.staging import Staging
from stack.kafka import KafkaBroker

_numbers = count(1)

GROUP = "KafkaSink"
SIZE = 100  #: bytes of a record's value, but for JSON, where it is about that
PARTITIONS = 3
BATCHES = ("batch.size=1000000", "linger.ms=20", "buffer.memory=67108864", "compression.type=lz4")
AT_LEAST = "at_least_once"


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

    def sink(self, wal: str, *, prepare: bool = False, **more: Any) -> float:
        """Seconds of publication, every check included; with `prepare` also of the check before the decision."""
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
            voted = time.perf_counter()
            live.publish(epoch, vote, sealed.outputs(sink.outputs))
            return time.perf_counter() - (begun if prepare else voted)


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

"""Out of Kafka: a whole stage job of a `KafkaSource`, against Spark alone: the same range into the same files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.ways import Way
from lockstep import Pipeline
from lockstep.compute.stage import stage_epoch
from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from lockstep.epoch import SourceRange
from lockstep.errors import SourceRefused, SourceUnavailable
from lockstep.sinks import FileSink
from lockstep.sources import KafkaSource, SourceContext
from lockstep.spark.session import connect
from lockstep.wal.request import StageRequest
from lockstep.wal.staging import Staging
from stack.kafka import KafkaBroker
from stack.processes import Processes
from stack.spark import ConnectServer

TOPIC = "bench-in"
WARM_UP = 2  #: times that each way runs before it is measured: Java is still compiling in the second
SCHEMA = "id BIGINT, origin STRING, at STRING, delay DOUBLE, carrier STRING"
DEPLOYMENT = "00000000-0000-4000-8000-000000000000"
_WRITE = {"compression": "zstd", "parquet.enable.dictionary": "false", "parquet.column.statistics.enabled": "false"}
_tokens = count(1)


@dataclass(frozen=True)
class Place:
    """A broker with a topic of `rows` records, a warm Spark, and a folder."""

    broker: KafkaBroker
    spark: Any
    folder: Path
    rows: int

    def plainly(self, columns: str) -> float:
        """Seconds of Spark alone: its defaults, offsets of its own, no count."""
        target = self.folder / f"plain-{next(_tokens)}"
        started = time.perf_counter()
        raw = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        frame = raw.option("kafka.isolation.level", "read_committed").option("subscribe", TOPIC).load()
        frame.selectExpr(*columns.split("; ")).write.options(**_WRITE).parquet(target.as_uri())
        return time.perf_counter() - started

    def planned(self) -> float:
        """Seconds of what begin and the check before a read ask of the brokers, connecting included."""
        started = time.perf_counter()
        source = KafkaSource(TOPIC, connection="kafka")
        with source.opened(
            SourceContext("bench", "events", lambda paths: set(), {"kafka": self.broker.bootstrap})
        ) as live:
            end = live.latest(None, None)
            live.latest(end, None)
            planned = time.perf_counter() - started
            live.check(None, end)
        if sum(last for _, last in end["topics"][TOPIC]["partitions"].values()) != self.rows:
            raise SystemExit(f"{end}, {self.rows} were sent")
        return planned

    def staged(self, transform: Callable[..., Any], *, seal: bool = False, **source: Any) -> float:
        """Seconds of a stage job, its counts compared with what was sent; with `seal`, of what the task adds too."""
        pipeline = _pipeline(transform, source)
        token, staging = next(_tokens), Staging(str(self.folder / "staging"))
        place = staging.folder(DEPLOYMENT, "bench", token, token)
        staging.create(place)
        started = time.perf_counter()
        connections = {"kafka": self.broker.bootstrap}
        context = SourceContext("bench", "events", lambda paths: set(), connections)
        found = pipeline.sources["events"].open(context)
        ranges = {"events": SourceRange(None, found.latest(None, None))}
        request = StageRequest(
            pipeline="",
            epoch=token,
            token=token,
            folder=staging.uri_of(place),
            outputs=("rows",),
            sources=ranges,
            timestamp=datetime.now(UTC),
        )
        result = stage_epoch(self.spark, pipeline, request, connections)
        if seal:
            found.check(None, ranges["events"].end)
            staging.seal(
                place,
                deployment=DEPLOYMENT,
                pipeline="bench",
                epoch=token,
                token=token,
                outputs=("rows",),
                observed=result.rows,
                sources=result.sources,
            )
        seconds = time.perf_counter() - started
        if result.rows != {"rows": self.rows} or result.sources["events"].rows != self.rows:
            raise SystemExit(f"{result}, {self.rows} were sent")
        return seconds


def _pipeline(transform: Callable[..., Any], source: Mapping[str, Any]) -> Pipeline:
    events = KafkaSource(TOPIC, connection="kafka", **source)
    sink = FileSink("out", output="rows", path="nowhere")
    return Pipeline(name="bench", sources={"events": events}, transform=transform, sinks=[sink])


def as_it_is(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"rows": inputs["events"]}


def flat(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"rows": inputs["events"].selectExpr("key", "value.*", "topic", "partition", "offset", "timestamp")}


@contextmanager
def ways(broker: KafkaBroker, folder: Path, rows: int, partitions: int) -> Iterator[list[Way]]:
    """The topic filled, Spark warm."""
    _fill(broker, rows, partitions)
    processes = Processes(folder / "processes.json")
    server = ConnectServer(processes, folder / "spark")
    others = "topic; partition; offset; timestamp"
    try:
        server.wait(server.launch({"spark.driver.memory": "3g"}))
        place = Place(broker, connect(server.url), folder, rows)
        parsed = f"key; from_json(CAST(value AS STRING), '{SCHEMA}') AS v; {others}"
        found = [
            Way("bytes", "Spark alone", lambda: place.plainly(f"key; value; {others}")),
            Way("bytes", "KafkaSource, stage job", lambda: place.staged(as_it_is)),
            Way("bytes", "…, sealed", lambda: place.staged(as_it_is, seal=True)),
            Way("JSON", "Spark alone", lambda: place.plainly(parsed)),
            Way("JSON", "KafkaSource, stage job", lambda: place.staged(flat, value="json", value_schema=SCHEMA)),
        ]
        found.append(Way("planning", "an epoch twice: the first and the next", place.planned))
        for way in found * WARM_UP:
            way.run()
        yield found
        place.spark.stop()
    finally:
        processes.stop()


def _fill(broker: KafkaBroker, rows: int, partitions: int) -> None:
    """JSON of about 100 bytes."""
    settings = {"bootstrap.servers": broker.bootstrap}
    cluster = Cluster(settings, Asker("bench", SourceUnavailable, SourceRefused))
    cluster.create_topic(TOPIC, partitions, {})
    cluster.close()
    producer = Producer({**settings, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number in range(rows):
        row = {"id": number, "origin": "JFK", "at": "2013-01-01T05:00:00Z", "delay": number % 100 / 4, "carrier": "UA"}
        value, key = json.dumps(row, separators=(",", ":")).ljust(100), str(number % 1000)
        while True:
            try:
                producer.produce(TOPIC, value.encode(), key=key.encode(), partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker didn't take all records")

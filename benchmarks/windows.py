"""`python -m benchmarks.windows`: Kafka → one-hour windows → Kafka, by Lockstep's epochs and by Structured Streaming.

One interleaved run on one broker and one warm Spark: each round measures every way once, the same records cut into as
many epochs as batches. What arrived is compared with what was sent. Quote ratios, not seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import pyarrow as pa
import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console

from benchmarks import data
from benchmarks.cpu import cpu_of_tree
from benchmarks.servers import SETTINGS
from benchmarks.ways import Way, measure, show
from lockstep import Pipeline, Windows, run_epoch
from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from lockstep.errors import SourceRefused, SourceUnavailable
from lockstep.ledger import migrate
from lockstep.sinks import FileSink, KafkaSink
from lockstep.sources import KafkaSource
from lockstep.spark.session import connect
from stack.home import Home
from stack.kafka import KafkaBroker
from stack.postgres import PostgresServer
from stack.processes import Processes
from stack.spark import ConnectServer

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
PARTITIONS = 4
_CHECKPOINT_MS = 500
SCHEMA = "id BIGINT, origin STRING, at TIMESTAMP, delay INT, carrier STRING"
CLOSING = "ZZZ"  #: origin of the records that close every window before them; not compared
_YEAR, _STEP = 336_776, 364 * 24 * 3600 * 1_000_000
_numbers = count(1)

Sums = dict[tuple[str, str], tuple[int, int]]  #: flights and delay by origin and hour


@dataclass
class Place:
    """A broker with the events, a ledger, a warm Spark, a folder. `expected`: what the windows must hold."""

    broker: KafkaBroker
    ledger: str
    spark: Any
    folder: Path
    rows: int
    expected: Sums
    trees: Mapping[str, int]  #: process ids of the servers, by name
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def way(self, name: str, group: str, make: Callable[[str], Callable[[], None]], *, ours: bool = True) -> Way:
        """`make` gets the name of an empty topic and gives what is measured. Wrong sums of `ours` end the run; those of
        others are told beside their time."""

        def run() -> float:
            out = f"out-{next(_numbers)}"
            _create_topic(self.broker, out, 1)
            work = make(out)
            before, started = self._cpu(), time.perf_counter()
            work()
            seconds = time.perf_counter() - started
            self.cpu.setdefault(name, []).append(self._cpu() - before)
            if (found := _sums(self.broker, out)) != self.expected:
                told = f"{name}: of {len(self.expected)} windows in {out} {_describe_difference(found, self.expected)}"
                if ours:
                    raise SystemExit(told)
                _err.print(told)
            return seconds

        return Way(group, name, run)

    def _cpu(self) -> float:
        return time.process_time() + sum(map(cpu_of_tree, self.trees.values()))


def _epochs(place: Place, epochs: int) -> Callable[[str], Callable[[], None]]:
    """As many whole epochs by `run_epoch`, each with its share of the records."""

    def make(out: str) -> Callable[[], None]:
        hourly = Windows(
            schema="origin STRING, flights BIGINT, delay BIGINT",
            key=["origin"],
            time="at",
            size=timedelta(hours=1),
            aggregates={"flights": "count(*)", "delay": "sum(delay)"},
            out_of_order=timedelta(minutes=30),
            partition="partition",
        )

        def by_hour(inputs: Any, state: Any) -> Any:
            events = inputs["events"].selectExpr("value.*", "CAST(partition AS STRING) AS partition")
            found = hourly.fold(events, state)
            return {"hourly": found.results, "late": found.late}, found.state

        cap: dict[str, Any] = {"max_rows_per_epoch": -(-place.rows // epochs)} if epochs > 1 else {}
        pipeline = Pipeline(
            name=out,
            sources={"events": KafkaSource("events", connection="kafka", value="json", value_schema=SCHEMA, **cap)},
            transform=by_hour,
            state=hourly.state(),
            sinks=[
                KafkaSink("topic", output="hourly", topic=out, connection="kafka", key="origin"),
                FileSink("late", output="late", path=str(place.folder / "late" / out)),
            ],
        )
        connections = {"kafka": place.broker.bootstrap}
        staging = str(place.folder / "staging")

        def work() -> None:
            for _ in range(epochs):
                run_epoch(pipeline, ledger=place.ledger, staging=staging, spark=place.spark, connections=connections)

        return work

    return make


def _batches(place: Place, batches: int) -> Callable[[str], Callable[[], None]]:
    """Structured Streaming in as many micro-batches: its Kafka sink, which is at least once."""

    def make(out: str) -> Callable[[], None]:
        from pyspark.sql import functions as F

        servers = {"kafka.bootstrap.servers": place.broker.bootstrap}

        def work() -> None:
            reader = place.spark.readStream.format("kafka").options(**servers, subscribe="events")
            reader = reader.option("startingOffsets", "earliest")
            if batches > 1:
                reader = reader.option("maxOffsetsPerTrigger", -(-place.rows // batches))
            parsed = F.from_json(F.col("value").cast("string"), SCHEMA).alias("v")
            grouped = reader.load().select(parsed).select("v.*").withWatermark("at", "30 minutes")
            hours = grouped.groupBy(F.window("at", "1 hour"), "origin")
            folded = hours.agg(F.count("*").alias("flights"), F.sum("delay").alias("delay"))
            columns = F.struct("origin", F.col("window.start").alias("window_start"), "flights", "delay")
            writer = folded.select(F.to_json(columns).alias("value")).writeStream.format("kafka").options(**servers)
            writer = writer.option("topic", out).option("checkpointLocation", str(place.folder / "checkpoints" / out))
            query = writer.outputMode("append").trigger(availableNow=True).start()
            query.awaitTermination()
            if query.exception():
                raise SystemExit(str(query.exception()))

        return work

    return make


def _flink(stack: ExitStack, place: Place) -> Way:
    """A streaming job over all records that are there, by a warm Flink, exactly once."""
    from benchmarks.rivals.speed.flink_session import VERSION, flink_session, program

    work = Home.from_environment().root / "rivals"
    built = program(work)
    built.set_up()
    session = stack.enter_context(flink_session(built, place.folder))
    place.trees = {**place.trees, "flink": session.pid}

    def make(out: str) -> Callable[[], None]:
        def job() -> None:
            session.run(
                "win",
                bootstrap=place.broker.bootstrap,
                **{"in": "events"},
                out=out,
                prefix=out,
                mode="eo",
                checkpoints=place.folder / "checkpoints-flink",
                interval=_CHECKPOINT_MS,
                reuse="true",
            )

        return job

    return place.way(f"{VERSION}, exactly once", "cut in 1", make, ours=False)


@contextmanager
def _running(folder: Path, rows: int, jobs: bool) -> Iterator[Place]:
    folder.mkdir(parents=True)
    os.environ["PGPASSFILE"] = str(folder / "pgpass")
    postgres = PostgresServer(folder / "postgres", passfile=folder / "pgpass", settings=SETTINGS)
    processes = Processes(folder / "processes.json")
    broker = KafkaBroker(folder / "broker", optimised=True)
    try:
        postgres.start()
        broker.start()
        ledger = postgres.create_database("ledger")
        migrate(ledger)
        server = ConnectServer(processes, folder / "spark")
        (folder / "events").mkdir()
        told = {"spark.eventLog.dir": f"file://{folder}/events", "spark.eventLog.compress": "false"}
        logging = {"spark.eventLog.enabled": "true", **told} if jobs else {}
        started = server.launch({"spark.driver.memory": "3g", **logging})
        server.wait(started)
        _err.print(f"sending {rows:,} records …")
        expected = _send(broker, rows)
        spark = connect(server.url)
        trees = {"spark": started.pid, "kafka": broker.pid or 0, "postgres": postgres.pid or 0}
        yield Place(broker, ledger, spark, folder, rows, expected, trees)
        spark.stop()
    finally:
        processes.stop()
        broker.remove()
        postgres.remove()


def _create_topic(broker: KafkaBroker, name: str, partitions: int) -> None:
    asker = Asker("bench", SourceUnavailable, SourceRefused)
    cluster = Cluster({"bootstrap.servers": broker.bootstrap}, asker)
    cluster.create_topic(name, partitions, {})
    cluster.close()


def _send(broker: KafkaBroker, rows: int) -> Sums:
    """Flights in the order of their hours, year after year, and at the end what closes all windows."""
    _create_topic(broker, "events", PARTITIONS)
    settings = {"linger.ms": 50, "queue.buffering.max.messages": 500_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    expected: Sums = {}
    for number, event in enumerate(_events(rows)):
        while True:
            try:
                value = json.dumps({"id": number, **event}, separators=(",", ":")).encode()
                producer.produce("events", value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        if event["origin"] != CLOSING:
            window = (event["origin"], event["at"][:13])
            flights, delay = expected.get(window, (0, 0))
            expected[window] = (flights + 1, delay + (event["delay"] or 0))
    if producer.flush(120):
        raise SystemExit("the broker didn't take all records")
    return expected


def _events(rows: int) -> Iterator[dict[str, Any]]:
    year = data.flights(_YEAR).select(["origin", "carrier", "dep_delay", "time_hour"])
    year = year.sort_by([("time_hour", "ascending"), ("carrier", "ascending")])
    base = year["time_hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    columns = [year[name].to_pylist() for name in ("origin", "carrier", "dep_delay")]
    sent = 0
    for copy in count():
        for origin, carrier, delay, micros in zip(*columns, base, strict=True):
            if sent == rows - PARTITIONS:
                for _ in range(PARTITIONS):  # a broker refuses a result of the future, Flink's has its window's time
                    yield {"origin": CLOSING, "at": _time(micros + copy * _STEP + _STEP), "delay": 0, "carrier": "XX"}
                return
            at = _time(micros + copy * _STEP)
            yield {"origin": origin, "at": at, "delay": delay, "carrier": carrier}
            sent += 1


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sums(broker: KafkaBroker, topic: str) -> Sums:
    """What readers of committed records find; a window that stands twice is no window of anybody's."""
    settings = {"group.id": topic, "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest", **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Sums = {}
    ended = False
    while not ended:
        for message in consumer.consume(10_000, 5.0):
            if message.error():
                ended = True
                break
            row = json.loads(message.value() or b"{}")
            window = (row["origin"], str(row["window_start"]).replace(" ", "T")[:13])
            if row["origin"] != CLOSING:
                found[window] = (row["flights"], row.get("delay") or 0) if window not in found else (-1, -1)
    consumer.close()
    return found


def _describe_difference(found: Sums, expected: Sums) -> str:
    missing = sum(window not in found for window in expected)
    twice = sum(count < 0 for count, _ in found.values())
    lost = sum(max(count - found.get(window, (0, 0))[0], 0) for window, (count, _) in expected.items())
    return f"{missing} are missing, {twice} stand twice, {lost} records aren't in theirs"


def _jobs(folder: Path) -> tuple[int, int]:
    """Spark jobs and SQL executions that the event log tells of so far."""
    lines = [line for path in folder.rglob("*") if path.is_file() for line in path.read_text().splitlines()]
    events = [json.loads(line).get("Event", "") for line in lines if line.startswith("{")]
    return events.count("SparkListenerJobStart"), sum(event.endswith("SQLExecutionStart") for event in events)


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Records.")] = 1_000_000,
    cuts: Annotated[str, typer.Option(help="Into how many epochs, and batches, they are cut.")] = "1,10",
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    warm: Annotated[int, typer.Option(min=0, help="How often each way runs before that.")] = 1,
    only: Annotated[str, typer.Option(help="Measure ways whose name holds this.")] = "",
    flink: Annotated[bool, typer.Option(help="Measure Flink's job too: it needs a JDK and Maven.")] = False,
    jobs: Annotated[bool, typer.Option(help="Tell Spark's jobs too, by its event log, which costs time.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure each way in turn, print seconds, shares of Structured Streaming, and CPU seconds of all processes."""
    folder = Home.from_environment().root / f"bench-windows-{os.getpid()}"
    try:
        with ExitStack() as stack:
            place = stack.enter_context(_running(folder, rows, jobs))
            ways = []
            for cut in map(int, cuts.split(",")):
                theirs, ours = f"Structured Streaming, {cut} batches", f"Lockstep, {cut} epochs"
                ways.append(place.way(theirs, f"cut in {cut}", _batches(place, cut), ours=False))
                ways.append(place.way(ours, f"cut in {cut}", _epochs(place, cut)))
            if flink:
                ways.append(_flink(stack, place))
            ways = [way for way in ways if only in way.name]
            _warm(place, ways, warm, jobs)
            measure(ways, rounds, _err.print)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"{rows:,} records, Kafka → windows → Kafka", as_json)
    for name, seconds in place.cpu.items():
        _err.print(f"{name}: {median(seconds):.1f} s of CPU, all processes")


def _warm(place: Place, ways: list[Way], times: int, jobs: bool) -> None:
    for _ in range(times):
        for way in ways:
            before = _jobs(place.folder / "events")
            seconds = way.run()
            after = _jobs(place.folder / "events")
            told = f", {after[0] - before[0]} jobs in {after[1] - before[1]} executions" if jobs else ""
            _err.print(f"warm-up: {way.name} {seconds:.2f} s{told}")
    place.cpu.clear()


if __name__ == "__main__":
    app()

"""`python -m benchmarks.kafka_sink`: records a second of KafkaSink, against Kafka's own producer performance tool.

One broker, records of one size, every way once a round. Quote ratios, not seconds.
"""

from __future__ import annotations

import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import psutil
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.paths import DEPLOYMENT, START
from lockstep.epoch import Interval
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from lockstep.sinks import KafkaSink
from lockstep.sinks.base import SinkContext, SinkEpoch
from lockstep.wal.staging import Staging
from stack.home import Home
from stack.kafka import KafkaBroker

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
_epochs = count(1)

SIZE = 100
PARTITIONS = 3
TOOL, TUNED = "kafka-producer-perf-test", "…, with KafkaSink's batches"
BATCHES = ("batch.size=1000000", "linger.ms=20", "buffer.memory=67108864")
EXACTLY, AT_LEAST, NONE = "exactly_once", "at_least_once", "none"
KEYED, JSON, JSON_AT_LEAST = "exactly_once, with keys", "exactly_once, JSON", "at_least_once, JSON"


@dataclass
class Round:
    """Seconds of one way. `cpu` of this process, `broker` of the broker's, both while publishing."""

    publish: float
    prepare: float = 0.0
    cpu: float = 0.0
    broker: float = 0.0


@dataclass
class Way:
    """One way into a topic."""

    name: str
    run: Callable[[], Round]
    rounds: list[Round] = field(default_factory=list)

    def middle(self, what: str) -> float:
        return median(getattr(one, what) for one in self.rounds)


@dataclass
class Place:
    """A broker, and sealed WALs of `rows` rows by name."""

    broker: KafkaBroker
    folder: Path
    rows: int
    wals: dict[str, tuple[str, str]]

    def topic(self) -> str:
        """A new one."""
        name = f"bench-{next(_epochs)}"
        with closing(Cluster({"bootstrap.servers": self.broker.bootstrap}, Asker("bench"))) as cluster:
            cluster.create_topic(name, PARTITIONS, {})
        return name

    def tool(self, *more: str) -> Round:
        """The rate that the tool itself tells; its Java's start doesn't count."""
        sized = ["--num-records", str(self.rows), "--record-size", str(SIZE), "--throughput", "-1"]
        settings = ["--producer-props", f"bootstrap.servers={self.broker.bootstrap}", "acks=all", *more]
        main = "org.apache.kafka.tools.ProducerPerformance"
        told = self.broker.run_tool(main, ["--topic", self.topic(), *sized, *settings])
        rate = float(told.strip().splitlines()[-1].split("sent, ")[1].split(" ")[0])
        return Round(self.rows / rate)

    def sink(self, wal: str, **more: Any) -> Round:
        if more.get("guarantee") == AT_LEAST:
            more["committer"] = str(self.folder / "sent")
        sink = KafkaSink("rows", output="flights", topic=self.topic(), connection="to", **more)
        sealed = Staging(str(self.folder / "staging")).open(*self.wals[wal])
        epoch = SinkEpoch(next(_epochs), 1, self.wals[wal][1], START, Interval(START, START.replace(day=2)))
        with sink.opened(SinkContext(DEPLOYMENT, "bench", {"to": self.broker.bootstrap})):
            sink.preflight({name: sealed.manifest.outputs[name].schema for name in sink.outputs})
            begun = time.perf_counter()
            vote = sink.prepare(epoch, sealed.outputs(sink.outputs))
            prepared, own, broker = time.perf_counter(), _own_cpu(), self._broker_cpu()
            sink.publish(epoch, vote, sealed.outputs(sink.outputs))
            published = time.perf_counter()
        return Round(published - prepared, prepared - begun, _own_cpu() - own, self._broker_cpu() - broker)

    def _broker_cpu(self) -> float:
        times = psutil.Process(self.broker.pid).cpu_times()
        return float(times.user + times.system)

    def ways(self) -> list[Way]:
        return [
            Way(TOOL, self.tool),
            Way(TUNED, lambda: self.tool(*BATCHES)),
            Way(EXACTLY, lambda: self.sink("values", value="value")),
            Way(AT_LEAST, lambda: self.sink("values", value="value", guarantee=AT_LEAST)),
            Way(NONE, lambda: self.sink("values", value="value", guarantee=NONE)),
            Way(KEYED, lambda: self.sink("keyed", key="key", value="value")),
            Way(JSON, lambda: self.sink("objects")),
            Way(JSON_AT_LEAST, lambda: self.sink("objects", guarantee=AT_LEAST)),
        ]


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def letters(rows: int, each: int) -> pa.Array:
    """Random capitals, as the tool sends them."""
    text = np.random.default_rng(1).integers(65, 91, rows * each, dtype=np.uint8)
    offsets = np.arange(0, (rows + 1) * each, each, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


def tables(rows: int) -> dict[str, pa.Table]:
    """The rows of each WAL; a record has about `SIZE` bytes in all of them."""
    ids = pa.array(np.arange(rows))
    keys = pa.array(ids.cast(pa.string()))
    delays = pa.array(np.arange(rows, dtype=np.int32) % 1440)
    objects = {"id": ids, "origin": letters(rows, 3), "tailnum": letters(rows, 37), "delay": delays}
    return {
        "values": pa.table({"value": letters(rows, SIZE)}),
        "keyed": pa.table({"key": keys, "value": letters(rows, SIZE)}),
        "objects": pa.table(objects),
    }


@contextmanager
def place(folder: Path, rows: int) -> Iterator[Place]:
    """A broker without Java's short cuts of the tests, and the WALs. Everything is gone at the end."""
    from benchmarks.__main__ import seal

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _err.print(f"making {rows:,} rows …")
        wals = {name: seal(table, folder, n) for n, (name, table) in enumerate(tables(rows).items(), 1)}
        with KafkaBroker(folder / "kafka", optimised=True).for_a_while() as broker:
            yield Place(broker, folder, rows, wals)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ratios(ways: list[Way]) -> dict[str, float]:
    """What the aims speak of, in the order of `main`'s output; larger is better."""
    rate = {way.name: 1 / way.middle("publish") for way in ways if way.rounds}
    pairs = ((EXACTLY, AT_LEAST), (EXACTLY, TOOL), (EXACTLY, TUNED), (JSON, JSON_AT_LEAST), (JSON, TOOL))
    return {f"{one} / {base}": rate[one] / rate[base] for one, base in pairs if one in rate and base in rate}


def measure(ways: list[Way], rounds: int) -> None:
    """Every way once a round; once before that doesn't count, for the broker's Java to become warm."""
    for number in range(rounds + 1):
        _err.print(f"round {number} of {rounds} …" if number else "warming up …")
        for way in ways:
            done = way.run()
            if number:
                way.rounds.append(done)


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Records of one epoch.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="Measure this way alone; may be given again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure, print records a second and the ratios of the aims."""
    with place(Home.from_environment().root / "bench-kafka-sink", rows) as here:
        ways = here.ways()
        if unknown := sorted(set(only or ()) - {way.name for way in ways}):
            raise typer.BadParameter(f"{unknown}: there are {[way.name for way in ways]}", param_hint="--only")
        ways = [way for way in ways if not only or way.name in only]
        measure(ways, rounds)
    if as_json:
        told = [{"way": way.name, "rows": rows, "rounds": [asdict(one) for one in way.rounds]} for way in ways]
        typer.echo(json.dumps({"ways": told, "ratios": ratios(ways)}))
    else:
        show(ways, rows)


def show(ways: list[Way], rows: int) -> None:
    out = Console(width=max(Console().width, 110))
    table = Table(title=f"{rows:,} records of about {SIZE} bytes, medians", title_justify="left")
    for column in ("way", "publish s", "min-max", "k records/s", "CPU s", "broker's CPU s", "prepare s"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way in ways:
        seconds = [one.publish for one in way.rounds]
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        cells = [f"{way.middle(what):.2f}" if way.middle(what) else "" for what in ("cpu", "broker", "prepare")]
        table.add_row(way.name, f"{median(seconds):.2f}", spread, f"{rows / median(seconds) / 1000:.0f}", *cells)
    out.print(table)
    for what, ratio in ratios(ways).items():
        out.print(f"{what}: {ratio:.2f}")


if __name__ == "__main__":
    app()

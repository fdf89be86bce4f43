"""`python -m benchmarks.lake`: epochs into Delta and Iceberg tables, against plain appends of the same file.

One interleaved run: each round measures every way once, rows are counted behind each. Then what sealing, preparing and
publishing take by number and size of files, without Spark. Quote ratios, not seconds.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from rich.console import Console

from benchmarks import data
from benchmarks.paths import DEPLOYMENT, START, Place
from benchmarks.servers import running
from benchmarks.ways import Way, measure, medians
from lockstep import Pipeline, run_epoch
from lockstep.epoch import Interval
from lockstep.sinks import DeltaSink, IcebergSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.sources import FileSource
from lockstep.wal.staging import Staging
from stack.delta import DELTA_SPARK
from stack.home import Home
from stack.spark import connectors

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
EPOCHS = "whole epochs"
BYTES = "the bytes of whole epochs"
FILES = (1, 10, 100)
OUTPUT, COLUMN = "flights", "lockstep_epoch"
_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Lake:
    """Tables of one run, each used by one way and appended to in every round."""

    def __init__(self, place: Place, source: Path, rows: int) -> None:
        self.place, self.source, self.rows = place, source, rows
        self.root = place.folder / "lake"
        self.bytes: dict[tuple[str, str], list[int]] = defaultdict(list)
        uri = place.warehouse.replace("postgresql://", "postgresql+psycopg2://")
        self.catalog = SqlCatalog("lake", uri=uri, warehouse=f"file://{self.root}")
        self.catalog.create_namespace_if_not_exists("db")
        self._days = count()

    def sink(self, kind: str, name: str) -> Sink:
        if kind == "DeltaSink":
            return DeltaSink("lake", output=OUTPUT, path=str(self.root / name), create=True)
        return IcebergSink(
            "lake", output=OUTPUT, table=f"db.{name}", catalog="lake", location=str(self.root / name), create=True
        )

    def rows_of(self, kind: str, name: str) -> int:
        if kind == "DeltaSink":
            return int(DeltaTable(str(self.root / name)).count()) if (self.root / name / "_delta_log").exists() else 0
        return self.catalog.load_table(f"db.{name}").scan().count() if self.catalog.table_exists(f"db.{name}") else 0

    def append(self, way: str, kind: str, name: str, work: Callable[[], object]) -> float:
        """Seconds of `work`; its bytes are kept by the way's name, its rows counted."""
        rows, size = self.rows_of(kind, name), _bytes_below(self.root / name)
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        _require(self.rows_of(kind, name) - rows, self.rows)
        self.bytes[(EPOCHS, way)].append(_bytes_below(self.root / name) - size)
        return seconds

    # --- the ways ---

    def epoch(self, kind: str, name: str) -> None:
        day = START + timedelta(days=next(self._days))
        landing = self.place.folder / "landing" / name
        landing.mkdir(parents=True, exist_ok=True)
        for read in landing.iterdir():
            read.unlink()  # a second name of one file would be refused
        (landing / f"{day:%Y-%m-%d}.parquet").hardlink_to(self.source)
        files = f"{landing}/{{interval_start:%Y-%m-%d}}.parquet"
        run_epoch(
            Pipeline(
                name=name,
                sources={OUTPUT: FileSource(files, format="parquet", schema=data.SPARK_SCHEMA)},
                transform=dict,
                sinks=[self.sink(kind, name)],
                version="bench",
            ),
            interval=(day, day + timedelta(days=1)),
            ledger=self.place.ledger,
            staging=str(self.place.folder / "staging"),
            spark=self.place.spark,
            connections={"lake": self.place.warehouse},
        )

    def spark_append(self, name: str) -> None:
        frame = self.place.spark.read.schema(data.SPARK_SCHEMA).parquet(str(self.source))
        frame.write.format("delta").mode("append").save(str(self.root / name))

    def write_deltalake(self, name: str) -> None:
        write_deltalake(str(self.root / name), pq.read_table(self.source), mode="append")

    def pyiceberg_append(self, name: str) -> None:
        rows = pq.read_table(self.source)
        place = f"file://{self.root / name}"
        self.catalog.create_table_if_not_exists(f"db.{name}", rows.schema, location=place).append(rows)

    def ways(self, with_spark: bool) -> list[Way]:
        def way(said: str, kind: str, name: str, work: Callable[[], object]) -> Way:
            return Way(EPOCHS, said, lambda: self.append(said, kind, name, work))

        found = [
            way(SPARK, "DeltaSink", "spark_append", lambda: self.spark_append("spark_append")),
            way("DeltaSink", "DeltaSink", "delta", lambda: self.epoch("DeltaSink", "delta")),
            way("IcebergSink", "IcebergSink", "iceberg", lambda: self.epoch("IcebergSink", "iceberg")),
            way("write_deltalake", "DeltaSink", "deltalake", lambda: self.write_deltalake("deltalake")),
            way("pyiceberg append", "IcebergSink", "pyiceberg", lambda: self.pyiceberg_append("pyiceberg")),
        ]
        return found if with_spark else found[1:]


SPARK = "Spark's Delta append"


class Files:
    """One epoch after another of so many files, each of `table`, sealed and published by the library's own calls."""

    def __init__(self, lake: Lake, kind: str, files: int, table: pa.Table) -> None:
        self.lake, self.kind, self.files, self.table = lake, kind, files, table
        self.name = f"{kind.lower()}_{files}_{table.num_rows}"
        self.group = f"{files} files of {table.num_rows:,} rows"
        self.sink = lake.sink(kind, self.name)
        self.context = SinkContext(DEPLOYMENT, self.name, {"lake": lake.place.warehouse})
        self.staging = Staging(str(lake.place.folder / "staging"))
        self._numbers = count(1)
        self.epoch: Any = None
        self.vote: Any = None
        self.sealed: Any = None
        with self.sink.opened(self.context) as live:
            live.preflight({OUTPUT: table.schema})

    def seal(self) -> float:
        number = next(self._numbers)
        home = self.sink.home(self.context)
        assert home is not None
        there = self.staging.home(home, DEPLOYMENT, self.name)
        folder = Path(home.table.removeprefix("file://")) / there.folder(number, 1) / OUTPUT
        rows = self.table.append_column(COLUMN, pa.array([number] * self.table.num_rows, pa.int64()))
        for file in range(self.files):
            data.write_parquet(rows, folder / f"part-{file:05}.zstd.parquet")
        wal = self.staging.folder(DEPLOYMENT, self.name, number, 1)
        self.staging.create(wal)
        started = time.perf_counter()
        manifest = self.staging.seal(
            wal,
            deployment=DEPLOYMENT,
            pipeline=self.name,
            epoch=number,
            token=1,
            outputs=(OUTPUT,),
            observed={OUTPUT: self.files * self.table.num_rows},
            sources={},
            homes={OUTPUT: home},
        )
        seconds = time.perf_counter() - started
        start = START + timedelta(days=number)
        self.epoch = SinkEpoch(number, 1, manifest.hash, START, Interval(start, start + timedelta(days=1)))
        self.sealed = self.staging.open(wal, manifest.hash)
        return seconds

    def prepare(self) -> float:
        with self.sink.opened(self.context) as live:
            started = time.perf_counter()
            self.vote = live.prepare(self.epoch, self.sealed.outputs(self.sink.outputs))
            return time.perf_counter() - started

    def publish(self) -> float:
        before = self.lake.rows_of(self.kind, self.name)
        with self.sink.opened(self.context) as live:
            started = time.perf_counter()
            live.publish(self.epoch, self.vote, self.sealed.outputs(self.sink.outputs))
            seconds = time.perf_counter() - started
        _require(self.lake.rows_of(self.kind, self.name) - before, self.files * self.table.num_rows)
        return seconds

    def ways(self) -> list[Way]:
        return [
            Way(self.group, f"{self.kind}, {step.__name__}", step) for step in (self.seal, self.prepare, self.publish)
        ]


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0


def _require(found: int, rows: int) -> None:
    if found != rows:
        raise SystemExit(f"{found:,} rows arrived, {rows:,} were sent")


@app.command()
def main(
    rows: Annotated[
        int, typer.Option(min=1000, help="Rows of an epoch; the largest files have a hundredth.")
    ] = 3_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="'epochs' or 'files' alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure, print seconds of wall and CPU, bytes below each table, and seconds by number and size of files."""
    if unknown := sorted(set(only or ()) - {"epochs", "files"}):
        raise typer.BadParameter(f"{unknown}: there are epochs, files", param_hint="--only")
    folder = Home.from_environment().root / "bench-lake"
    shutil.rmtree(folder, ignore_errors=True)
    settings = {}
    if DELTA_SPARK.present:
        jars = [*filter(None, [connectors().get("spark.jars")]), *map(str, DELTA_SPARK.paths())]
        settings = {**_DELTA_SETTINGS, "spark.jars": ",".join(jars)}
    else:
        _err.print(f"{SPARK} is left out: its jars are not here, `make delta` fetches them")
    try:
        table = data.flights(rows)
        source = data.write_parquet(table, folder / "flights.parquet")
        with running(folder, jdbc=False, spark_settings=settings) as place:
            lake, ways = Lake(place, source, rows), list[Way]()
            if not only or "epochs" in only:
                ways += _measured(lake.ways(DELTA_SPARK.present), rounds, place, lake)
            if not only or "files" in only:
                sizes = (max(1, rows // 1000), rows // 100)
                shapes = [(files, size) for files in FILES for size in sizes]
                some = [
                    Files(lake, kind, files, table.slice(0, size))
                    for files, size in shapes
                    for kind in ("DeltaSink", "IcebergSink")
                ]
                ways += _measured([way for one in some for way in one.ways()], rounds, place, lake)
            lake.catalog.engine.dispose()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _show(ways, lake, as_json)


def _measured(ways: list[Way], rounds: int, place: Place, lake: Lake) -> list[Way]:
    daemons = place.servers.values()
    measure(ways, 1, lambda _: _err.print("warming up …"), daemons)
    for way in ways:
        way.forget()
        lake.bytes.pop((way.group, way.name), None)
    measure(ways, rounds, _err.print, daemons)
    return ways


def _show(ways: list[Way], lake: Lake, as_json: bool) -> None:
    if as_json:
        told = [way.to_json(lake.rows) for way in ways]
        sized = [
            {**way.to_json(lake.rows), "group": BYTES, "bytes": lake.bytes[(EPOCHS, way.name)]}
            for way in ways
            if way.group == EPOCHS
        ]
        typer.echo(json.dumps(told + sized))
        return
    out = Console(width=max(Console().width, 120))
    if epochs := [way for way in ways if way.group == EPOCHS]:
        out.print(medians(epochs, lake.rows, f"{lake.rows:,} rows by 12 columns, source to visible, medians"))
    plain = lake.bytes.get((EPOCHS, SPARK))
    for (_, name), sizes in lake.bytes.items():
        share = f", {median(sizes) / median(plain):.3f} of {SPARK}" if plain else ""
        out.print(f"bytes below the table, {name}: {median(sizes):,.0f}{share}")
    for way in ways:
        if way.group != EPOCHS:
            out.print(f"{way.group}: {way.name}: {way.median:.3f} s, {median(way.cpu):.2f} CPU s around it")


if __name__ == "__main__":
    app()

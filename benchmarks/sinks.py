"""`python -m benchmarks.sinks`: rows a second of every sink, against what loads its target in bulk without it.

One interleaved run: each round measures every way once. Quote ratios, not seconds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console

from benchmarks import bulk, data, receivers
from benchmarks.paths import DEPLOYMENT, START, fresh_table
from benchmarks.ways import Way, measure, show
from lockstep.epoch import Interval
from lockstep.sinks import ByColumns, FileSink, HttpSink, MariaDbSink, PostgresSink, StdoutSink, TcpSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.wal.staging import Staging
from stack.home import Home
from stack.mariadb import MariaDbServer, Setting, mariadbd
from stack.postgres import PostgresServer

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
_epochs = count(1)

#: Room enough that no checkpoint falls into a measurement by chance.
POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
MARIADB: dict[str, Setting] = {"innodb_buffer_pool_size": "1G", "innodb_log_file_size": "2G", "local_infile": 1}


@dataclass(frozen=True)
class Place:
    """Where a run happens: a sealed WAL, its rows, and folders."""

    table: pa.Table
    folder: Path
    wal: tuple[str, str]

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def publish(self, described: Sink, connections: dict[str, str]) -> float:
        """Seconds of prepare and publish, every check included; preflight's short transactions come before."""
        sealed = Staging(str(self.folder / "staging")).open(*self.wal)
        number, day = next(_epochs), timedelta(1)
        start = START + number * day  # a range is shown once
        epoch = SinkEpoch(number, 1, self.wal[1], START, Interval(start, start + day))
        with described.opened(SinkContext(DEPLOYMENT, "bench", connections)) as sink:
            sink.preflight({name: sealed.manifest.outputs[name].schema for name in sink.outputs})
            started = time.perf_counter()
            vote = sink.prepare(epoch, sealed.outputs(sink.outputs))
            sink.publish(epoch, vote, sealed.outputs(sink.outputs))
            seconds = time.perf_counter() - started
        if sum(vote.rows.values()) != self.rows:
            raise SystemExit(f"{sink.name}: {vote.rows} rows, {self.rows} are sealed")
        return seconds

    @property
    def sent(self) -> str:
        """A folder that remembers what was sent."""
        return str(self.folder / "sent")


# --- the targets -----------------------------------------------------------------------------------------------------


@contextmanager
def postgres(place: Place) -> Iterator[list[Way]]:
    passfile = place.folder / "pgpass"
    os.environ["PGPASSFILE"] = str(passfile)
    encoded = data.write_encoded(place.table, place.folder / "rows.bin", 1)
    with PostgresServer(place.folder / "postgres", passfile=passfile, settings=POSTGRES).for_a_while() as server:
        dsn = server.create_database("warehouse")

        def sink(**more: Any) -> float:
            fresh_table(dsn, "rows")
            if more.get("mode") == "upsert":
                bulk.forget_table(dsn, "rows")
            made = PostgresSink("rows", tables={"flights": "public.rows"}, connection="to", create=True, **more)
            return place.publish(made, {"to": dsn})

        yield [
            Way("PostgreSQL", "COPY of a ready file", lambda: bulk.copy(dsn, encoded, place.rows)),
            Way("PostgreSQL", "two_phase", lambda: sink(protocol="two_phase")),
            Way("PostgreSQL", "write_ahead", lambda: sink(protocol="write_ahead")),
            Way("PostgreSQL", "upsert", lambda: sink(mode="upsert", key=["id"])),
        ]


@contextmanager
def mariadb(place: Place) -> Iterator[list[Way]]:
    text = bulk.write_text(place.table, place.folder / "rows.tsv")
    with MariaDbServer(place.folder / "mariadb", settings=MARIADB).for_a_while() as server:
        dsn = server.create_database("warehouse")

        def sink(**more: Any) -> float:
            server.drop_database("warehouse")
            server.create_database("warehouse")
            made = MariaDbSink("rows", tables={"flights": "rows"}, connection="to", create=True, **more)
            return place.publish(made, {"to": dsn})

        yield [
            Way("MariaDB", "LOAD DATA of a ready file", lambda: bulk.load_data(server, text, place.rows)),
            Way("MariaDB", "two_phase", lambda: sink(protocol="two_phase")),
            Way("MariaDB", "write_ahead", lambda: sink(protocol="write_ahead")),
            Way("MariaDB", "upsert", lambda: sink(mode="upsert", key=["id"])),
        ]


@contextmanager
def files(place: Place) -> Iterator[list[Way]]:
    def sink(**more: Any) -> float:
        out = place.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return place.publish(FileSink("rows", output="flights", path=str(out), **more), {})

    def csv_sink() -> float:
        return sink(format="csv")

    plain = place.folder / "plain"
    yield [
        Way("Parquet", "pyarrow's write_table, fsync", lambda: bulk.write_parquet(place.table, plain)),
        Way("Parquet", "FileSink", sink),
        Way("Parquet by carrier", "pyarrow's write_dataset, fsync", lambda: bulk.write_dataset(place.table, plain)),
        Way("Parquet by carrier", "FileSink, ByColumns", lambda: sink(bucket=ByColumns("carrier"))),
        Way("CSV", "pyarrow's write_csv, fsync", lambda: bulk.write_csv(place.table, plain)),
        Way("CSV", "FileSink", csv_sink),
    ]


@contextmanager
def lines(place: Place) -> Iterator[list[Way]]:
    ready = bulk.write_lines(place.table, place.folder / "rows.jsonl")
    with receivers.tcp() as tcp, receivers.http() as http:

        def sink(kind: Callable[..., Sink], to: str, **more: Any) -> float:
            made = kind("rows", output="flights", connection="to", committer=place.sent, **more)
            return place.publish(made, {"to": to})

        def stdout() -> float:
            with bulk.stdout_to_null():
                return place.publish(StdoutSink("rows", output="flights", committer=place.sent), {})

        yield [
            Way("stdout", "write of a ready file", lambda: bulk.write_to_null(ready)),
            Way("stdout", "StdoutSink", stdout),
            Way("TCP", "sendall of a ready file", lambda: bulk.send(ready, tcp)),
            Way("TCP", "TcpSink", lambda: sink(TcpSink, tcp)),
            Way("HTTP", "POSTs of a ready file", lambda: bulk.post(ready, http)),
            Way("HTTP", "HttpSink", lambda: sink(HttpSink, http)),
        ]


# --- the run ---------------------------------------------------------------------------------------------------------


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the epoch.")] = 500_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="Measure this target alone; may be given again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure every sink, print rows a second and the share of its target's bulk loader."""
    folder = Home.from_environment().root / "bench-sinks"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with ExitStack() as stack:
            ways = _measure(stack, _place(folder, rows), rounds, only or [])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"{rows:,} rows by 12 columns", as_json)


def _place(folder: Path, rows: int) -> Place:
    from benchmarks.epochs import seal

    _err.print(f"making {rows:,} rows …")
    folder.mkdir(parents=True)
    folder.chmod(0o711)
    table = data.flights(rows)
    return Place(table, folder, seal(table, folder, 1))


def _measure(stack: ExitStack, place: Place, rounds: int, only: list[str]) -> list[Way]:
    targets = [postgres, files, lines]
    if mariadbd() is not None:
        targets.insert(1, mariadb)
    else:
        _err.print("MariaDB is left out: mariadbd is not installed")
    ways = [way for target in targets for way in stack.enter_context(target(place))]
    if unknown := sorted(set(only) - {way.group for way in ways}):
        raise typer.BadParameter(f"{unknown}: there are {sorted({way.group for way in ways})}", param_hint="--only")
    ways = [way for way in ways if not only or way.group in only]
    measure(ways, rounds, _err.print)
    return ways


if __name__ == "__main__":
    app()

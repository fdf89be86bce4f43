"""The ways into Postgres that are compared: the limit, Lockstep's sink, a whole Lockstep epoch, Spark's own JDBC."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import parse_dsn

from benchmarks.data import SPARK_SCHEMA, TABLE
from lockstep import Pipeline, run_epoch, run_epochs
from lockstep.audits import Audit
from lockstep.epoch import Interval
from lockstep.sinks import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.sources import FileSource
from lockstep.wal.staging import Staging

DEPLOYMENT = "00000000-0000-4000-8000-000000000000"
START = datetime(2013, 1, 1, tzinfo=UTC)
_days = count()
_epochs = count(1)


@dataclass(frozen=True)
class Place:
    """Where a benchmark runs."""

    ledger: str
    warehouse: str
    folder: Path
    url: str  #: of the Spark Connect server
    spark: Any
    jdbc: str | None  #: JDBC URL with login, or None without the driver
    servers: Mapping[str, int] = field(default_factory=dict)  #: process ids of "spark" and "postgres"
    logs: Mapping[str, Path] = field(default_factory=dict)  #: their logs


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, and the rows it moved."""

    seconds: float
    rows: int


def timed(work: Callable[[], int]) -> Timing:
    """Run `work`, which returns its rows."""
    started = time.perf_counter()
    rows = work()
    return Timing(time.perf_counter() - started, rows)


def fresh_table(dsn: str, name: str) -> None:
    """An empty table without an index; what stood in it is gone and checkpointed, so that no round pays for another."""
    with connected(dsn) as cursor:
        cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
        cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(TABLE)))
        cursor.execute("CHECKPOINT")


def copy_limit(place: Place, encoded: Path, rows: int) -> Timing:
    """(a) COPY BINARY of a file that was encoded beforehand, one session, one commit."""
    fresh_table(place.warehouse, "limit_copy")

    def copy() -> int:
        connection = psycopg2.connect(place.warehouse)
        with connection, connection.cursor() as cursor, encoded.open("rb") as file:
            cursor.copy_expert("COPY limit_copy FROM STDIN (FORMAT binary)", file, size=1 << 18)
            copied = int(cursor.rowcount)
        connection.close()
        return copied

    return _checked(timed(copy), rows)


def sink_from_wal(place: Place, wal: tuple[str, str], rows: int, protocol: ProtocolName) -> Timing:
    """(b) PostgresSink from a sealed WAL: prepare and publish, every check included."""
    fresh_table(place.warehouse, "sink_rows")
    sink = postgres_sink("sink_rows", protocol)
    return _checked(timed(lambda: publish_from_wal(place.warehouse, place.folder, wal, sink)), rows)


def publish_from_wal(warehouse: str, folder: Path, wal: tuple[str, str], sink: PostgresSink) -> int:
    """Take one sealed WAL through prepare and publish; the rows that were voted for."""
    sealed = Staging(str(folder / "staging")).open(*wal)
    number = next(_epochs) + int(time.time() * 1000)
    start = START + timedelta(milliseconds=number)  # a target that has shown a range refuses it under another number
    epoch = SinkEpoch(number, 1, wal[1], START, Interval(start, start + timedelta(milliseconds=1)))
    with sink.opened(SinkContext(DEPLOYMENT, "bench", {"warehouse": warehouse})) as live:
        live.preflight({name: sealed.manifest.outputs[name].schema for name in sink.outputs})
        vote = live.prepare(epoch, sealed.outputs(sink.outputs))
        live.publish(epoch, vote, sealed.outputs(sink.outputs))
    return sum(vote.rows.values())


def whole_epoch(place: Place, file: Path, rows: int, table: str = "epoch_rows", audits: Sequence[Audit] = ()) -> Timing:
    """(c) A whole warm epoch by run_epoch: source, Spark, WAL, seal, prepare, decision, publication, cleanup."""
    fresh_table(place.warehouse, table)
    return _checked(timed(lambda: one_epoch(place, file, table, audits=audits)), rows)


def one_epoch(place: Place, file: Path, table: str, spark: Any = None, audits: Sequence[Audit] = ()) -> int:
    """Run the next day's epoch from `file`, CSV or Parquet by its name, linked under that day's.

    `spark`: another than the place's session.
    """
    day = START + timedelta(days=next(_days))
    landing = place.folder / "landing" / table
    landing.mkdir(parents=True, exist_ok=True)
    for read in landing.iterdir():
        read.unlink()  # a second name of one file would be refused
    (landing / f"{day:%Y-%m-%d}{file.suffix}").hardlink_to(file)
    report = run_epoch(
        replace(day_pipeline(table, landing, file.suffix), audits=audits),
        interval=(day, day + timedelta(days=1)),
        ledger=place.ledger,
        staging=str(place.folder / "staging"),
        spark=spark or place.spark,
        connections={"warehouse": place.warehouse},
    )
    return report.rows["flights"] + report.quarantined.get("flights", 0)


def bare_spark(place: Place, file: Path, encoded: Path, rows: int) -> Timing:
    """What nobody gets around: Spark reads the same file and writes Parquet, then the same rows go in by `copy_limit`.

    Nothing is counted, sealed, checked or decided.
    """
    source = day_pipeline("bare", file.parent, file.suffix).sources["flights"]
    assert isinstance(source, FileSource)
    reader = place.spark.read.schema(SPARK_SCHEMA).options(**source.options)
    frame = reader.csv(str(file), header=True) if file.suffix == ".csv" else reader.parquet(str(file))

    def write() -> int:
        frame.write.mode("overwrite").parquet(str(place.folder / "bare"))
        return rows

    return Timing(timed(write).seconds + copy_limit(place, encoded, rows).seconds, rows)


def packed_epochs(place: Place, file: Path, table: str, count: int) -> Timing:
    """As many days' epochs, each of a copy of `file`, by one call of run_epochs."""
    fresh_table(place.warehouse, table)
    landing = place.folder / "landing" / table
    landing.mkdir(parents=True, exist_ok=True)
    days = [START + timedelta(days=next(_days)) for _ in range(count)]
    for day in days:
        shutil.copyfile(file, landing / f"{day:%Y-%m-%d}{file.suffix}")

    def run() -> int:
        reports = run_epochs(
            day_pipeline(table, landing, file.suffix),
            intervals=[(day, day + timedelta(days=1)) for day in days],
            ledger=place.ledger,
            staging=str(place.folder / "staging"),
            spark=place.url,
            connections={"warehouse": place.warehouse},
        )
        return sum(report.rows["flights"] for report in reports)

    return timed(run)


def jdbc_append(place: Place, csv: Path, rows: int) -> Timing:
    """(d) What users do today: Spark reads the same file and appends by JDBC. A retry doubles the rows."""
    fresh_table(place.warehouse, "jdbc_rows")

    def append() -> int:
        frame = place.spark.read.csv(str(csv), schema=SPARK_SCHEMA, header=True, nullValue="NA")
        append_by_jdbc(place, frame, "jdbc_rows")
        return rows_in(place.warehouse, "jdbc_rows")

    return _checked(timed(append), rows)


def append_by_jdbc(place: Place, frame: Any, table: str) -> None:
    """As Spark's users do who have looked up what makes it fast."""
    frame.write.format("jdbc").mode("append").options(
        url=place.jdbc,
        dbtable=table,
        driver="org.postgresql.Driver",
        batchsize=10_000,
        reWriteBatchedInserts="true",
        numPartitions=2,
    ).save()


def rows_in(dsn: str, table: str, schema: str = "public") -> int:
    """How many rows a table holds."""
    with connected(dsn) as cursor:
        cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table)))
        return int(cursor.fetchone()[0])


def peak_memory(place: Place, wal: tuple[str, str], protocol: str) -> int:
    """Peak resident bytes of a process that does nothing but prepare and publish this WAL."""
    fresh_table(place.warehouse, "memory_rows")
    command = [sys.executable, "-m", "benchmarks.publisher", place.warehouse, str(place.folder), *wal, protocol]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


def own_peak() -> int:
    """Peak resident bytes of this process so far."""
    status = Path("/proc/self/status").read_text()  # ru_maxrss would carry over the peak of the process that forked us
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def postgres_sink(table: str, protocol: ProtocolName) -> PostgresSink:
    return PostgresSink(
        "warehouse", tables={"flights": f"public.{table}"}, connection="warehouse", protocol=protocol, shared=True
    )


def day_pipeline(table: str, landing: Path, suffix: str) -> Pipeline:
    files = f"{landing}/{{interval_start:%Y-%m-%d}}{suffix}"
    csv = suffix == ".csv"
    return Pipeline(
        name=table,
        sources={
            "flights": FileSource(
                files,
                format="csv" if csv else "parquet",
                schema=SPARK_SCHEMA,
                options={"nullValue": "NA"} if csv else {},
            )
        },
        transform=dict,
        sinks=[postgres_sink(table, "two_phase")],
        version="bench",
    )


def _checked(timing: Timing, rows: int) -> Timing:
    if timing.rows != rows:
        raise SystemExit(f"{timing.rows:,} rows arrived, {rows:,} were sent")
    return timing


def jdbc_url(dsn: str) -> str:
    """The same for JDBC, which finds the password where libpq does."""
    parts = parse_dsn(dsn)
    return f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}?user={parts['user']}"


class connected:
    """An autocommitting cursor."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg2.connect(dsn)
        self._connection.autocommit = True

    def __enter__(self) -> Any:
        return self._connection.cursor()

    def __exit__(self, *_: object) -> None:
        self._connection.close()

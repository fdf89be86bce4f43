"""Flights from files into one PostgreSQL table, by what users would take for it. Each way's rows are counted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks import data, paths
from benchmarks.rivals.speed.dlt_process import Dlt
from benchmarks.rivals.speed.flink_session import VERSION, FlinkSession, flink_session, program
from benchmarks.ways import Way, WayFailed

GROUP = "files → PostgreSQL"
LIMIT, CSV, PARQUET = "COPY of a ready file", "Lockstep, CSV", "Lockstep, Parquet"
JDBC, XA, AT_LEAST_ONCE = "Spark JDBC append, CSV", f"{VERSION} XA, CSV", f"{VERSION} at least once, CSV"
DLT_COPY, DLT_ADBC = "dlt, Parquet by COPY", "dlt, Parquet by ADBC"
_CHECKPOINT_MS = 1000
_numbers = count()


def ways(stack: ExitStack, place: paths.Place, work: Path, rows: int, say: Callable[[str], None]) -> list[Way]:
    """Those whose programs can be had; `work` keeps programs from run to run."""
    table = data.flights(rows)
    csv = data.write_csv(table, place.folder / "flights.csv")
    # CsvReaderFormat can't split a file: two halves, so that both of Flink's slots read
    halves = [
        data.write_csv(part, place.folder / f"half-{number}.csv")
        for number, part in enumerate((table.slice(0, rows // 2), table.slice(rows // 2)))
    ]
    parquet = data.write_parquet(table, place.folder / "flights.parquet")
    encoded = data.write_encoded(table, place.folder / "flights.bin", 1)
    del table
    runs: dict[str, Callable[[], float]] = {
        LIMIT: lambda: paths.copy_limit(place, encoded, rows).seconds,
        CSV: lambda: paths.whole_epoch(place, csv, rows).seconds,
        PARQUET: lambda: paths.whole_epoch(place, parquet, rows, "parquet_rows").seconds,
    }
    if place.jdbc is None:
        say(f"{JDBC} is left out: its driver can't be had")
    else:
        runs[JDBC] = lambda: paths.jdbc_append(place, csv, rows).seconds
    if (flink := _flink(stack, work, place.folder, say)) is not None:
        runs[XA] = partial(_run_flink, flink, place, "xa", halves, rows)
        runs[AT_LEAST_ONCE] = partial(_run_flink, flink, place, "alo", halves, rows)
    if (dlt := _dlt(work, say)) is not None:
        runs[DLT_COPY] = partial(_run_dlt, dlt, place, parquet, "csv", rows)
        runs[DLT_ADBC] = partial(_run_dlt, dlt, place, parquet, "parquet", rows)
    return [Way(GROUP, name, run) for name, run in runs.items()]


def _flink(stack: ExitStack, work: Path, folder: Path, say: Callable[[str], None]) -> FlinkSession | None:
    flink = program(work)
    try:
        flink.set_up()
    except (SystemExit, subprocess.CalledProcessError) as error:
        say(f"{VERSION} is left out: {error}")
        return None
    return stack.enter_context(flink_session(flink, folder))


def _dlt(work: Path, say: Callable[[str], None]) -> Dlt | None:
    dlt = Dlt(work)
    try:
        dlt.set_up()
    except subprocess.CalledProcessError as error:
        say(f"dlt is left out: {error}")
        return None
    return dlt


def _run_flink(flink: FlinkSession, place: paths.Place, mode: str, files: list[Path], rows: int) -> float:
    table = f"flink_{mode}"
    paths.fresh_table(place.warehouse, table)
    seconds = flink.run(
        "pg",
        mode=mode,
        table=table,
        url=paths.jdbc_url(place.warehouse),
        files=",".join(file.as_uri() for file in files),
        checkpoints=place.folder / "checkpoints",
        interval=_CHECKPOINT_MS,
        reuse="true",
    )
    return _checked(seconds, place.warehouse, "public", table, rows)


def _run_dlt(dlt: Dlt, place: paths.Place, parquet: Path, file_format: str, rows: int) -> float:
    password = (place.folder / "pgpass").read_text().splitlines()[0].rsplit(":", 1)[-1]
    dataset = f"dlt_{file_format}_{next(_numbers)}"
    seconds = dlt.load(parquet, place.warehouse, password, dataset, file_format, place.folder)
    return _checked(seconds, place.warehouse, dataset, "flights", rows)


def _checked(seconds: float, dsn: str, schema: str, table: str, rows: int) -> float:
    if (arrived := paths.rows_in(dsn, table, schema)) != rows:
        raise WayFailed(f"{schema}.{table}: {arrived:,} rows arrived, {rows:,} were sent")
    return seconds

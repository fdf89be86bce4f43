"""`python -m benchmarks.restating`: what it takes to replace days that are shown, against deleting and loading by hand.

Every way replaces the rows of the same days by those of the same corrected Parquet files in a PostgreSQL table that has
an index on the column by which a day's rows are found. By hand means a loop over the days: what readers see meanwhile,
and what a kill leaves, is nobody's. Quote ratios, not seconds.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import psycopg2
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import typer
from psycopg2 import sql
from rich.console import Console

from benchmarks import data
from benchmarks.paths import START, Place, append_by_jdbc, connected, day_pipeline, fresh_table, rows_in, timed
from benchmarks.servers import running
from benchmarks.ways import Way, WayFailed, measure, show
from lockstep import run_epochs
from lockstep.sinks import PostgresSink
from stack.home import Home

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
GROUP = "replace days"
RESTATED, COPIED, BY_JDBC = (
    "lockstep restate",
    "DELETE and COPY, a transaction a day",
    "DELETE, then Spark's JDBC append",
)
TABLES = {RESTATED: "restated", COPIED: "copied_days", BY_JDBC: "appended_days"}


@app.command()
def main(
    days: Annotated[int, typer.Option(min=1, help="How many days are replaced.")] = 30,
    rows: Annotated[int, typer.Option(min=100, help="Rows a day.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Load the days in each way's table, then replace all of them by each way in turn."""
    folder = Home.from_environment().root / "bench-restating"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with running(folder, jdbc=True) as place:
            ways = Days(place, days, rows).measured(rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, days * rows, f"{days} days of {rows:,} rows replaced", as_json)


class Days:
    """The same days in one table for each way."""

    def __init__(self, place: Place, days: int, rows: int) -> None:
        self._place, self._rows = place, rows
        self._days = [START + timedelta(days=number) for number in range(days)]
        table = data.flights(rows)
        self._landing = place.folder / "landing"
        self._files = [data.write_parquet(table, self._landing / f"{day:%Y-%m-%d}.parquet") for day in self._days]
        sink = PostgresSink("warehouse", tables={"flights": f"public.{TABLES[RESTATED]}"}, connection="warehouse")
        self._pipeline = replace(day_pipeline(TABLES[RESTATED], self._landing, ".parquet"), sinks=[sink])
        self._reasons = 0

    def measured(self, rounds: int) -> list[Way]:
        for table in TABLES.values():
            fresh_table(self._place.warehouse, table)
            self._execute(sql.SQL("CREATE INDEX ON {} (lockstep_epoch)").format(sql.Identifier(table)))
        self._move(None)
        for table in (TABLES[COPIED], TABLES[BY_JDBC]):
            self._copy_all(table)
        self._execute(sql.SQL("VACUUM ANALYZE"))
        replaced: dict[str, Callable[[], None]] = {
            COPIED: partial(self._copy_all, TABLES[COPIED]),
            BY_JDBC: self._append_all,
            RESTATED: self._restate,
        }
        ways = [Way(GROUP, name, partial(self._replace, name, work)) for name, work in replaced.items()]
        measure(ways, 1, _err.print)  # warm
        for way in ways:
            way.forget()
        measure(ways, rounds, _err.print, self._place.servers.values())
        return ways

    def _replace(self, way: str, work: Callable[[], None]) -> float:
        """Seconds of the work alone; the table is as it was, so that each round begins alike."""

        def run() -> int:
            work()
            return len(self._days) * self._rows

        timing = timed(run)
        if (found := rows_in(self._place.warehouse, TABLES[way])) != timing.rows:
            raise WayFailed(f"{found:,} rows are there, {timing.rows:,} should be")
        self._execute(sql.SQL("VACUUM ANALYZE"))
        self._execute(sql.SQL("CHECKPOINT"))
        return timing.seconds

    def _restate(self) -> None:
        self._reasons += 1
        self._move(f"corrected {self._reasons} times")

    def _move(self, reason: str | None) -> None:
        intervals: Sequence[tuple[datetime, datetime]] = [(day, day + timedelta(days=1)) for day in self._days]
        run_epochs(
            self._pipeline,
            intervals=intervals,
            ledger=self._place.ledger,
            staging=str(self._place.folder / "staging"),
            spark=self._place.url,
            connections={"warehouse": self._place.warehouse},
            restate=reason,
        )

    def _copy_all(self, table: str) -> None:
        for number, file in enumerate(self._files):
            _copy(self._place.warehouse, table, number, file)

    def _append_all(self) -> None:
        if self._place.jdbc is None:
            raise WayFailed("the JDBC driver can't be had")
        table = TABLES[BY_JDBC]
        for number, file in enumerate(self._files):
            self._execute(_delete(table, number))
            frame = self._place.spark.read.parquet(str(file)).selectExpr("*", f"{number}L AS lockstep_epoch")
            append_by_jdbc(self._place, frame, table)

    def _execute(self, statement: sql.Composable) -> None:
        with connected(self._place.warehouse) as cursor:
            cursor.execute(statement)


def _delete(table: str, day: int) -> sql.Composed:
    return sql.SQL("DELETE FROM {} WHERE lockstep_epoch = {}").format(sql.Identifier(table), sql.Literal(day))


def _copy(dsn: str, table: str, day: int, file: Path) -> None:
    """One day, as a careful script would do it: readers of this one table see its old or its new rows."""
    rows = pq.read_table(file)
    rows = rows.append_column("lockstep_epoch", pa.array([day] * rows.num_rows, pa.int64()))
    text = io.BytesIO()
    pv.write_csv(rows, text, pv.WriteOptions(include_header=False))
    text.seek(0)
    columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier(table), columns)
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute(_delete(table, day))
        cursor.copy_expert(copy, text, size=1 << 18)
    connection.close()


if __name__ == "__main__":
    app()

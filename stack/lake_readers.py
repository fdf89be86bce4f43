"""What somebody sees of each day who has never heard of Lockstep: by deltalake, pyiceberg and SQL; and in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date

import psycopg2
import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import csv
from pyiceberg.catalog.sql import SqlCatalog

from stack.landing import open_data
from stack.s3 import REGION, S3Server

SUMMED = ["distance", "dep_delay"]
EPOCH = "lockstep_epoch"


@dataclass(frozen=True)
class DayTotals:
    """Of one day: rows, miles, minutes of delay, and by how many epochs the rows came."""

    rows: int
    distance: int
    delay: int
    epochs: int = 1


Totals = Mapping[date, DayTotals]


class LakeReaders:
    """Of the tables that `spark_apps.flights_lake` fills, each by its own means."""

    def __init__(self, s3: S3Server, warehouse: str, catalog: str, table: str) -> None:
        """`warehouse`, `catalog`: DSNs."""
        self._s3, self._warehouse, self._catalog, self._table = s3, warehouse, catalog, table

    def totals(self) -> dict[str, Totals]:
        return {"Delta": self.delta(), "Postgres": self.postgres(), "Iceberg": self.iceberg()}

    def delta(self) -> Totals:
        options = {**self._s3.environment, "AWS_ALLOW_HTTP": "true"}
        if not DeltaTable.is_deltatable("s3://lake/delta/flights", options):
            return {}
        table = DeltaTable("s3://lake/delta/flights", storage_options=options)
        return _totals_of(pa.table(table.scan(columns=["date", *SUMMED, EPOCH]).read_all()))

    def iceberg(self) -> Totals:
        login = {"s3.access-key-id": self._s3.access_key, "s3.secret-access-key": self._s3.secret_key}
        place = {"s3.endpoint": self._s3.endpoint, "s3.region": REGION}
        uri = self._catalog.replace("postgresql://", "postgresql+psycopg2://")
        with closing(SqlCatalog("catalog", uri=uri, **login, **place)) as catalog:
            if not catalog.table_exists(self._table):
                return {}
            wanted = ("date", *SUMMED, EPOCH)
            return _totals_of(catalog.load_table(self._table).scan(selected_fields=wanted).to_arrow())

    def postgres(self) -> Totals:
        with closing(psycopg2.connect(self._warehouse)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('public.flights')")
            if cursor.fetchone() == (None,):
                return {}
            cursor.execute(_BY_DAY)
            return {day: DayTotals(*totals) for day, *totals in cursor.fetchall()}


_BY_DAY = """
    SELECT date, count(*), sum(distance), sum(dep_delay), count(DISTINCT lockstep_epoch)
    FROM public.flights GROUP BY date
"""


def totals_of_wheel(days: Sequence[date]) -> Totals:
    """What the data itself has of these days."""
    columns = csv.ConvertOptions(include_columns=["year", "month", "day", *SUMMED], null_values=["NA"])
    with open_data("flights") as data:
        found = csv.read_csv(data, convert_options=columns)
    summed = found.group_by(["year", "month", "day"]).aggregate([([], "count_all"), *((one, "sum") for one in SUMMED)])
    by_day = {date(*row[:3]): DayTotals(*row[3:]) for row in zip(*_columns(summed), strict=True)}
    return {day: by_day[day] for day in days}


def _totals_of(rows: pa.Table) -> Totals:
    aggregates = [([], "count_all"), *((one, "sum") for one in SUMMED), (EPOCH, "count_distinct")]
    summed = rows.group_by("date").aggregate(aggregates)
    return {day: DayTotals(*totals) for day, *totals in zip(*_columns(summed), strict=True)}


def _columns(found: pa.Table) -> list[list[int]]:
    """Keys first, whichever order the version of Arrow has."""
    keys = [name for name in found.column_names if name in ("year", "month", "day", "date")]
    return [found[name].to_pylist() for name in [*keys, *(one for one in found.column_names if one not in keys)]]

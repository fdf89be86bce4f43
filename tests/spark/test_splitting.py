"""Rows of an epoch in files of one partition each, told apart as Iceberg and Delta tell them."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, YearTransform
from pyiceberg.types import DateType, IcebergType, TimestampType, TimestamptzType

from lockstep.compute import _table_files
from lockstep.compute._table_files import by_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """
    id INT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, name STRING, amount DECIMAL(30,4), flag BOOLEAN, raw BINARY,
    nested STRUCT<a: INT, b: MAP<STRING, INT>>
"""
EPOCH = datetime(1970, 1, 1)
_TRANSFORMS: dict[str, Any] = {
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
}
_TYPES: dict[str, IcebergType] = {"at": TimestamptzType(), "local": TimestampType(), "day": DateType()}


def _rows(spark: SparkSession) -> DataFrame:
    """Instants around hours, days, months and years, before and after 1970; each value several times, and nulls."""
    edges = [
        datetime(*at) for at in ((1969, 12, 31), (1970, 1, 1), (2013, 1, 1), (2013, 3, 1), (1, 1, 2), (9999, 12, 31))
    ]
    moments = [at + timedelta(microseconds=step) for at in edges for step in (-1, 0, 1, 3_600_000_000 - 1)]
    rows: list[tuple[Any, ...]] = [
        (
            number,
            at.replace(tzinfo=UTC),
            at,
            at.date(),
            ["a", "A", "", 'x"],["y', "null"][number % 5],
            Decimal(10**25) + number % 3,
            number % 2 == 0,
            bytes([number % 4]),
            (number, {"k": number}),
        )
        for number, at in enumerate([*moments, *moments])
    ]
    rows += [(1000 + number, *[None] * 8) for number in range(3)]
    return spark.createDataFrame(rows, SCHEMA)


def _found(frame: DataFrame) -> dict[int, list[Any]]:
    """The rows of each of Spark's partitions."""
    from pyspark.sql import functions as F

    rows = frame.select(
        F.spark_partition_id().alias("part"), "*", F.unix_micros("at").alias("micros"), F.hex("raw").alias("hex")
    )
    parts: dict[int, list[Any]] = defaultdict(list)
    for row in rows.drop("at", "raw").collect():
        parts[row["part"]].append(row)
    return parts


def _value(text: str, row: Any) -> object:
    time, _, column = text.rpartition("(")
    column = column.rstrip(")")
    if column == "raw":
        return row["hex"]
    if not time:
        return row["micros"] if column == "at" else row[column]
    value = row["micros"] if column == "at" else row[column]
    if isinstance(value, datetime):
        value = (value - EPOCH) // timedelta(microseconds=1)
    elif isinstance(value, date):
        value = (value - EPOCH.date()).days
    return _TRANSFORMS[time].transform(_TYPES[column])(value)


TIMES = [
    f"{time}({column})"
    for column in ("at", "local", "day")
    for time in _TRANSFORMS
    if (time, column) != ("hour", "day")
]


@pytest.fixture(autouse=True)
def as_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions make columns for Spark Connect, as they do where a session is made from a URL."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")


@pytest.mark.parametrize(
    "partition_by",
    [
        *([one] for one in (*TIMES, "at", "local", "day", "name", "amount", "flag", "raw")),
        ["flag", "name", "year(day)"],
    ],
    ids=" ".join,
)
@pytest.mark.sample(3)
def test_each_file_has_rows_of_one_partition_and_none_is_lost(spark: SparkSession, partition_by: list[str]) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = _rows(spark)
        parts = _found(by_partition(rows, "rows", partition_by, 1))
        found = [row for part in parts.values() for row in part]
        assert Counter(row["id"] for row in found) == Counter(row["id"] for row in rows.select("id").collect())
        values = [{tuple(_value(text, row) for text in partition_by) for row in part} for part in parts.values()]
        assert all(len(one) == 1 for one in values)
        assert len(values) == len({value for one in values for value in one}), "one file each, as all of it is small"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_large_partition_is_several_files(spark: SparkSession) -> None:
    rows = spark.range(1000).selectExpr("id", "IF(id < 900, 'large', 'small') AS name", "array(id) AS nested")
    parts = _parts(by_partition(rows, "rows", ["name"], 10))
    assert sorted(" ".join({row["name"] for row in part}) for part in parts) == ["large"] * 9 + ["small"]


def test_an_epoch_of_too_many_partitions_is_left_as_the_transform_made_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_table_files, "MAX_PARTITIONS", 3)
    made = spark.range(0, 40, 1, 4).selectExpr("id", "id DIV 10 AS hour")
    left = by_partition(made, "rows", ["hour"], 1)
    assert left.columns == ["id", "hour"]
    assert [[row["id"] for row in part] for part in _parts(left)] == [list(range(n, n + 10)) for n in (0, 10, 20, 30)]
    assert "output rows: an epoch has rows of more than 3 partitions by hour" in caplog.text


def _parts(frame: DataFrame) -> list[list[Any]]:
    from pyspark.sql import functions as F

    parts: dict[int, list[Any]] = defaultdict(list)
    for row in frame.select(F.spark_partition_id().alias("part"), "*").collect():
        parts[row["part"]].append(row)
    return [parts[number] for number in sorted(parts)]

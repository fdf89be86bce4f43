"""`filtering_reader.py polars|duckdb|deltalake|spark delta|parquet <place> [<jars>]`: filters each column of a table of
`tables()` by each of its values with `=`, `<` and `>`, and prints which filters count other rows than there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from importlib import import_module
from operator import eq, gt, lt
from pathlib import Path
from typing import Any

import pyarrow as pa

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, ">": gt}
Count = Callable[[str, str, Any], int]  #: of the rows whose column, operator and value agree
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 2.0**-30, None]
TIMES = [datetime(1, 1, 1), datetime(1500, 2, 28, 0, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)]
TIMES += [datetime(2013, 1, 1, 0, 0, 0, 1999), datetime(9999, 12, 31, 23, 59, 59, 999999)]
ODD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.int8(), [-(2**7), 2**7 - 1, 0, -1, 1, None]),
    "l": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1, -1, 0, None]),
    "f": (pa.float32(), FLOATS),
    "d": (pa.float64(), FLOATS),
    "s.x": (pa.float64(), FLOATS),
    "price": (pa.decimal128(16, 2), ["89999999999999.99", "-99999999999999.99", "9999999999999.99", "0.01", "0", None]),
    "small": (pa.decimal128(10, 6), ["0.000001", "-0.000001", "0.00001", "9999.999999", "0", None]),
    "huge": (pa.decimal128(38, 0), [f"1{'0' * 37}", f"-1{'0' * 37}", f"{2**53 + 1}", f"{2**53}", "1", None]),
    "text": (pa.string(), ["", "x" * 5000, "\U0010ffff" * 40, "\ud7ff" * 40, "é" * 33, None]),
    "day": (pa.date32(), [date(1, 1, 1), date(1500, 2, 28), date(1969, 12, 31), date(2013, 1, 1), date.max, None]),
    "moment": (pa.timestamp("us", "UTC"), [*(moment.replace(tzinfo=UTC) for moment in TIMES), None]),
    "local": (pa.timestamp("us"), [*TIMES, None]),
}


def tables() -> list[pa.Table]:
    """One of each value, four rows long; of floats half are 0.5 instead."""
    return [pa.table({name.partition(".")[0]: _column(name, number) for name in ODD}) for number in range(6)]


def _column(name: str, number: int) -> pa.Array:
    values = _rows(name)[4 * number : 4 * number + 4]
    if name == "s.x":
        return pa.array([{"x": value} for value in values], pa.struct([("x", pa.float64())]))
    return pa.array(values, ODD[name][0])


def _rows(name: str) -> list[Any]:
    type, values = ODD[name]
    found = [Decimal(value) if value and pa.types.is_decimal(type) else value for value in values]
    return [row for value in found for row in ([value, 0.5] * 2 if values is FLOATS else [value] * 4)]


def there(name: str, operator: str, value: Any) -> int:
    """As SQL counts: NaN is larger than every number, and equal to itself."""

    def order(value: Any) -> Any:
        return (value != value, 0 if value != value else value)

    return sum(OPERATORS[operator](order(row), order(value)) for row in _rows(name) if row is not None)


def by_polars(kind: str, place: str) -> Count:
    pl = import_module("polars")
    frame = pl.scan_delta(place) if kind == "delta" else pl.scan_parquet(f"{place}/*.parquet")
    schema = frame.collect_schema()

    def count(name: str, operator: str, value: Any) -> int:
        column = pl.col("s").struct.field("x") if name == "s.x" else pl.col(name)
        literal = pl.lit(value, dtype=pl.Float64 if name == "s.x" else schema[name])
        return int(frame.filter(OPERATORS[operator](column, literal)).select(pl.len()).collect().item())

    return count


def by_duckdb(kind: str, place: str) -> Count:
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for extension in Path(duckdb.__file__).parents[1].rglob("delta.duckdb_extension"):
        connection.load_extension(str(extension))
    table = f"delta_scan('{place}')" if kind == "delta" else f"read_parquet('{place}/*.parquet')"
    connection.sql("SET TimeZone = 'UTC'")
    types = {name: type for name, type, *_ in connection.sql(f"DESCRIBE FROM {table}").fetchall()} | {"s.x": "DOUBLE"}

    def count(name: str, operator: str, value: Any) -> int:
        query = f"SELECT count(*) FROM {table} WHERE {name} {operator} CAST(? AS {types[name]})"
        return int(connection.execute(query, [value]).fetchall()[0][0])

    return count


def by_deltalake(kind: str, place: str) -> Count:
    """`to_pyarrow_dataset` isn't tried: it takes a file without bounds of a column for one with bounds of null."""
    from deltalake import DeltaTable

    kinds = {"int8": "Int8", "int64": "Int64", "float": "Float32", "double": "Float64", "string": "Utf8"}
    kinds |= {"date32[day]": "Date32", "timestamp[us]": "Timestamp(Microsecond, None)"}
    kinds |= {"timestamp[us, tz=UTC]": 'Timestamp(Microsecond, Some("UTC"))'}

    def count(name: str, operator: str, value: Any) -> int:
        column, type = "s['x']" if name == "s.x" else f'"{name}"', str(ODD[name][0])
        predicate = f"{column} {operator} arrow_cast('{value}', '{kinds.get(type, type.capitalize())}')"
        return int(pa.table(DeltaTable(place).scan(columns=["b"], predicate=predicate).read_all()).num_rows)

    return count


def by_spark(kind: str, place: str) -> Count:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F

    builder = SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[4])
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false")
    for setting in ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"):
        builder = builder.config(setting, "1")
    catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    frame = builder.config("spark.sql.catalog.spark_catalog", catalog).getOrCreate().read.format(kind).load(place)
    types = {field.name: field.dataType.simpleString() for field in frame.schema} | {"s.x": "double"}
    counts: dict[tuple[str, str, str], int] = {}
    for name, (_, values) in ODD.items():  # one job for each
        filters = [(name, operator, str(value)) for value in values[:-1] for operator in operators_of("spark", value)]
        found = [
            frame.where(OPERATORS[operator](F.col(name), F.lit(text).cast(types[name]))).select(F.lit(number))
            for number, (_, operator, text) in enumerate(filters)
        ]
        rows = reduce(DataFrame.unionAll, found).toDF("n").groupBy("n").count().collect()
        by_number = {int(row[0]): int(row[1]) for row in rows}
        counts |= {one: by_number.get(number, 0) for number, one in enumerate(filters)}
    return lambda name, operator, value: counts[name, operator, str(value)]


def operators_of(reader: str, value: Any) -> list[str]:
    """Spark takes long for each, and needs the others for NaN only."""
    return list(OPERATORS) if reader != "spark" or isinstance(value, float) else ["="]


if __name__ == "__main__":
    reader, kind, place = sys.argv[1:4]
    by = {"polars": by_polars, "duckdb": by_duckdb, "deltalake": by_deltalake, "spark": by_spark}
    pushed = by[reader](kind, place)
    for name, (type, values) in ODD.items():
        for value in (Decimal(one) if pa.types.is_decimal(type) else one for one in values[:-1]):
            for operator in operators_of(reader, value):
                if (found := pushed(name, operator, value)) != (rows := there(name, operator, value)):
                    print(f"WRONG {name} {operator} {str(value)[:40]!r}: {found} rows of {rows}")
    print("DONE")

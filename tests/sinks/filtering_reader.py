"""`filtering_reader.py polars|duckdb|deltalake|pyarrow|spark delta|parquet <place> [<jars>]`: filters each column of a
table by each of its values, with `=`, `<` and `>`, and prints which filters find other rows than the same reader does
once it has all of them in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from operator import eq, gt, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, ">": gt}
Count = Callable[[str, str, Any], int]  #: of the rows whose column, operator and value agree
NESTED = "s.x"


def _text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def by_polars(kind: str, place: str) -> tuple[Count, Count]:
    pl = import_module("polars")
    lazy = pl.scan_delta(place) if kind == "delta" else pl.scan_parquet(f"{place}/*.parquet")
    whole = lazy.collect()

    def counting(frame: Any) -> Count:
        def count(name: str, operator: str, value: Any) -> int:
            column = pl.col("s").struct.field("x") if name == NESTED else pl.col(name)
            literal = pl.lit(value, dtype=pl.Float64 if name == NESTED else whole.schema[name])
            return frame.filter(OPERATORS[operator](column, literal)).lazy().select(pl.len()).collect().item()

        return count

    return counting(lazy), counting(whole)


def by_duckdb(kind: str, place: str) -> tuple[Count, Count]:
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    if kind == "delta":
        module = find_spec("duckdb_extension_delta")
        assert module is not None and module.origin is not None
        connection.load_extension(str(next(Path(module.origin).parent.rglob("delta.duckdb_extension"))))
    lazy = f"delta_scan('{place}')" if kind == "delta" else f"read_parquet('{place}/*.parquet')"
    connection.sql("SET TimeZone = 'UTC'")
    connection.sql(f"CREATE TEMP TABLE whole AS SELECT * FROM {lazy}")
    types = {name: type for name, type, *_ in connection.sql("DESCRIBE whole").fetchall()} | {NESTED: "DOUBLE"}

    def counting(table: str) -> Count:
        def count(name: str, operator: str, value: Any) -> int:
            query = f"SELECT count(*) FROM {table} WHERE {name} {operator} CAST(? AS {types[name]})"
            return connection.execute(query, [value]).fetchall()[0][0]

        return count

    return counting(lazy), counting("whole")


def by_deltalake(kind: str, place: str) -> tuple[Count, Count]:
    """`to_pyarrow_dataset` isn't tried: it holds `column >= null` against a file without bounds of a column."""
    from deltalake import DeltaTable

    table = DeltaTable(place)
    rows = pa.table(table.scan().read_all())
    rows = rows.append_column(NESTED, pc.struct_field(rows["s"], "x"))
    kinds = {"int8": "Int8", "int32": "Int32", "int64": "Int64", "float": "Float32", "double": "Float64"}
    kinds |= {"string": "Utf8", "date32[day]": "Date32", "timestamp[us]": "Timestamp(Microsecond, None)"}
    kinds |= {"timestamp[us, tz=UTC]": 'Timestamp(Microsecond, Some("UTC"))'}

    def pushed(name: str, operator: str, value: Any) -> int:
        column = "s['x']" if name == NESTED else f'"{name}"'
        kind = str(rows.schema.field(name).type)
        literal = f"arrow_cast('{_text(value)}', '{kinds.get(kind, kind.capitalize())}')"
        return pa.table(table.scan(columns=["b"], predicate=f"{column} {operator} {literal}").read_all()).num_rows

    def order(value: Any) -> Any:
        return (value != value, 0 if value != value else value)

    def whole(name: str, operator: str, value: Any) -> int:
        there = (one for one in rows[name].to_pylist() if one is not None)
        return sum(OPERATORS[operator](order(one), order(value)) for one in there)

    return pushed, whole


def by_pyarrow(kind: str, place: str) -> tuple[Count, Count]:
    lazy = ds.dataset(place, format="parquet")

    def counting(dataset: Any) -> Count:
        def count(name: str, operator: str, value: Any) -> int:
            type = pa.float64() if name == NESTED else lazy.schema.field(name).type
            return dataset.count_rows(filter=OPERATORS[operator](ds.field(*name.split(".")), pa.scalar(value, type)))

        return count

    return counting(lazy), counting(ds.dataset(lazy.to_table()))


def by_spark(kind: str, place: str) -> tuple[Count, Count]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    settings = {
        "spark.jars": sys.argv[4],
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    lazy = session.read.format(kind).load(place)
    whole = session.createDataFrame(lazy.toArrow())
    types = {field.name: field.dataType.simpleString() for field in lazy.schema} | {NESTED: "double"}

    def counting(frame: Any) -> Count:
        def count(name: str, operator: str, value: Any) -> int:
            literal = F.lit(_text(value)).cast(types[name])
            return frame.where(OPERATORS[operator](F.col(name), literal)).count()

        return count

    return counting(lazy), counting(whole.cache())


if __name__ == "__main__":
    reader, kind, place = sys.argv[1:4]
    from tests.sinks.odd_values import ODD

    by = {"polars": by_polars, "duckdb": by_duckdb, "deltalake": by_deltalake, "pyarrow": by_pyarrow, "spark": by_spark}
    pushed, whole = by[reader](kind, place)
    for name, values in ODD.items():
        for value in values[:-1]:
            for operator in OPERATORS if reader != "spark" or isinstance(value, float) else "=":
                if (found := pushed(name, operator, value)) != (there := whole(name, operator, value)):
                    print(f"WRONG {name} {operator} {str(value)[:40]!r}: {found} rows, in memory {there}")
    print("DONE")

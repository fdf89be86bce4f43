"""The hash by which this process finds a key's bucket is Spark's own, or a row would be looked for where it isn't."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from lockstep.compute._key_hash import buckets_of, can_hash, hashes_of
from lockstep.compute._local_rows import arrow_schema
from lockstep.compute.state import bucket_of
from lockstep.spark.ddl import struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400
chance = random.Random(11)


def text() -> str:
    return "".join(chance.choices("ab é\0✓🌍", k=chance.choice([0, 1, 3, 4, 5, 7, 8, 9, 15, 31, 32, 33, 40, 64, 71])))


def whole(bits: int) -> int:
    edge: int = 2 ** (bits - 1)
    return chance.choice([0, -1, -edge, edge - 1, chance.getrandbits(bits - 1)])


def decimal(digits: int, scale: int) -> Decimal:
    number = chance.choice([0, 1, -1, 127, 128, -128, -129, 10**digits - 1, 1 - 10**digits])
    drawn = chance.randrange(10 ** chance.randint(1, digits)) * chance.choice([1, -1])
    found = Decimal(chance.choice([number, drawn])).as_tuple()
    return Decimal((found.sign, found.digits, -scale))  # whatever the context rounds to


MAKERS: dict[str, Any] = {
    "BOOLEAN": lambda: chance.random() < 0.5,
    "TINYINT": lambda: whole(8),
    "SMALLINT": lambda: whole(16),
    "INT": lambda: whole(32),
    "BIGINT": lambda: whole(64),
    "STRING": text,
    "BINARY": lambda: text().encode(),
    "DATE": lambda: date(1, 1, 1) + timedelta(days=chance.randrange(3_600_000)),
    "TIMESTAMP": lambda: datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(3 * 10**17)),
    "TIMESTAMP_NTZ": lambda: datetime(1, 1, 1) + timedelta(microseconds=chance.randrange(3 * 10**17)),
    "DECIMAL(5,2)": lambda: decimal(5, 2),
    "DECIMAL(18,4)": lambda: decimal(18, 4),
    "DECIMAL(19,0)": lambda: decimal(19, 0),
    "DECIMAL(38,10)": lambda: decimal(38, 10),
}


def drawn(columns: dict[str, str], nulls: float = 0.1) -> pa.Table:
    schema = arrow_schema(struct_of(", ".join(f"{name} {kind}" for name, kind in columns.items())))
    arrays = []
    for field, kind in zip(schema, columns.values(), strict=True):
        values = [None if chance.random() < nulls else MAKERS[kind]() for _ in range(ROWS)]
        arrays.append(pa.array(values, field.type))
    table = pa.Table.from_arrays(arrays, schema=schema)
    return pa.concat_tables([table.slice(0, 7), table.slice(7)])  # whose arrays have an offset


def test_hashes_are_those_of_spark(session: SparkSession, subtests: pytest.Subtests) -> None:
    columns = {f"c{number}": kind for number, kind in enumerate(MAKERS)}
    named = {kind: name for name, kind in columns.items()}
    several = [["STRING", "TIMESTAMP"], ["BIGINT", "STRING", "INT", "DECIMAL(38,10)"], [*MAKERS]]
    keys = [[named[kind] for kind in kinds] for kinds in [*([kind] for kind in MAKERS), *several]]
    table = drawn(columns)
    assert all(can_hash(field.type) for field in table.schema)
    frame = session.createDataFrame(table, struct_of(", ".join(f"{name} {kind}" for name, kind in columns.items())))
    hashes = [F.xxhash64(*key).alias(f"h{at}") for at, key in enumerate(keys)]
    buckets = [bucket_of(key, 13).alias(f"b{at}") for at, key in enumerate(keys)]
    theirs = frame.select(*hashes, *buckets).toArrow()
    for at, key in enumerate(keys):
        with subtests.test(kinds=[columns[name] for name in key]):
            assert np.array_equal(hashes_of(table, key).view(np.int64), theirs[f"h{at}"].to_numpy())
            assert np.array_equal(buckets_of(table, key, 13), theirs[f"b{at}"].to_numpy())


def test_what_spark_hashes_otherwise_is_left_to_it() -> None:
    others = [pa.float64(), pa.float32(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])]
    assert [kind for kind in others if can_hash(kind)] == []

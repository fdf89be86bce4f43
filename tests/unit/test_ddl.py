"""One reading of Spark's DDL: what a definition says without Spark is what Spark is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lockstep.ddl import Field, fields_of
from lockstep.errors import InvalidPipeline
from lockstep.spark.ddl import struct_of
from lockstep.windows import Windows

SCHEMAS = {
    "k STRING NOT NULL, n BIGINT": ["STRING", "BIGINT"],
    "k string  not null comment 'a, b NOT NULL', n long comment \"it's\"": ["STRING", "BIGINT"],
    "k: INTEGER, n : NUMERIC( 10 , 2 ) NOT NULL": ["INT", "DECIMAL(10,2)"],
    "k TIMESTAMP_LTZ, n DEC(5) COMMENT 'it\\'s, so'": ["TIMESTAMP", "DECIMAL(5)"],
    "k REAL NOT\tNULL, n Decimal(38,18)": ["FLOAT", "DECIMAL(38,18)"],
}


@pytest.mark.fault("J17")
def test_windows_and_spark_are_told_the_same_types(subtests: pytest.Subtests) -> None:
    for ddl in SCHEMAS:
        with subtests.test(ddl=ddl):
            windows = Windows(schema=ddl, key=["k"], time="at", size=timedelta(hours=1), aggregates={"n": "max(x)"})
            assert list(windows.columns().values()) == SCHEMAS[ddl]
            assert [field.dataType for field in struct_of(ddl)] == [
                field.dataType
                for field in struct_of(", ".join(f"{name} {kind}" for name, kind in windows.columns().items()))
            ]
            for state in windows.state().values():
                struct_of(state.schema)


def test_a_nested_type_keeps_its_names() -> None:
    ddl = "`a``b` STRUCT<X: INT NOT NULL, `y,z` ARRAY<MAP<STRING, DECIMAL(4,1)>>> COMMENT 'c'"
    assert fields_of(ddl) == [Field("a`b", "STRUCT<X: INT NOT NULL, `y,z` ARRAY<MAP<STRING, DECIMAL(4,1)>>>")]
    assert struct_of(ddl).simpleString() == "struct<a`b:struct<X:int,y,z:array<map<string,decimal(4,1)>>>>"


@pytest.mark.fault("J17")
def test_what_is_no_schema_is_refused(subtests: pytest.Subtests) -> None:
    for ddl in ("", "a", "a INT,", "a INT b INT, c", "a INT NULL", "a NOT NULL", "a INT COMMENT none"):
        with subtests.test(ddl=ddl), pytest.raises(InvalidPipeline, match="schema: "):
            struct_of(ddl)

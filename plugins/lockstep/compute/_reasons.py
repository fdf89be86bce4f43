"""Why a record doesn't parse, asked of the parser that refused it: which column, which type, and never which value."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from lockstep.definition.ddl import Field, fields_of, quote_name
from lockstep.sources._checked_schema import plain_text
from lockstep.sources.records import BAD, Reading

_NAMED = 3


def reasons_of(spark: SparkSession, reading: Reading, records: Sequence[str]) -> list[str]:
    """A reason a record. Each is parsed again with all columns as text, then with one of them as what it should be."""
    fields = fields_of(reading.schema or "")
    tried = ", ".join(_fails(reading, fields, typed) for typed in (None, *fields))
    frame = spark.createDataFrame(list(enumerate(records)), "number INT, value STRING")
    found = {row["number"]: row["fails"] for row in frame.selectExpr("number", f"array({tried}) AS fails").collect()}
    return [_reason(reading, fields, found[number]) for number in range(len(records))]


def _fails(reading: Reading, fields: Sequence[Field], typed: Field | None) -> str:
    columns = [f"{quote_name(field.name)} {plain_text(field.type) if field is typed else 'STRING'}" for field in fields]
    parsed = reading.parser(", ".join(columns), "value")
    return f"{parsed}.{BAD} IS NOT NULL"


def _reason(reading: Reading, fields: Sequence[Field], fails: Sequence[bool]) -> str:
    if fails[0]:
        counted = f"another number of values than the schema's {len(fields)} columns"
        return counted if reading.format == "csv" else "no JSON object"
    failed = [field for field, wrong in zip(fields, fails[1:], strict=True) if wrong]
    columns = [f"column {field.name} is no {field.type}" for field in failed]
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return ", ".join(columns[:_NAMED]) + more if columns else "doesn't parse"

"""What stands in Kafka's records as Spark columns, those that can't be decoded marked as a file's bad records are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lockstep.errors import InvalidPipeline
from lockstep.sources.kafka.ranges import TopicRange
from lockstep.sources.records import BAD, FILE, Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY, _VALUE = "_lockstep_key", "_lockstep_value"
PLACE = "concat('kafka:', topic, '/', partition, '@', offset)"
OTHERS = ("topic", "partition", "offset", "timestamp")


class Encoding(StrEnum):
    """What the bytes of a key or a value are."""

    BYTES = "bytes"
    STRING = "string"  #: UTF-8
    JSON = "json"  #: one object
    AVRO = "avro"  #: one record, without a schema registry's prefix


@dataclass(frozen=True)
class Decoding:
    """One of a record's two parts. `schema`: Spark DDL for JSON, the writer's Avro schema as JSON for Avro."""

    column: str
    encoding: Encoding
    schema: str | None

    @classmethod
    def of(cls, where: str, column: str, encoding: str, schema: str | None) -> Decoding:
        """Raises `InvalidPipeline`."""
        if encoding not in tuple(Encoding):
            raise InvalidPipeline(f"{where}: {column}={encoding!r} is none of {', '.join(Encoding)}")
        needs = encoding in (Encoding.JSON, Encoding.AVRO)
        if needs != (schema is not None):
            raise InvalidPipeline(f"{where}: {column}_schema goes with {column}='json' or 'avro', and only with them")
        return cls(column, Encoding(encoding), schema)

    def parsed(self) -> str:
        """The part, parsed, as an SQL expression."""
        text = f"CAST({self.column} AS STRING)"
        match self.encoding:
            case Encoding.BYTES:
                return self.column
            case Encoding.STRING:
                return text
            case Encoding.JSON:
                options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{BAD}')"
                return f"from_json({text}, {_literal(f'{self.schema}, {BAD} STRING')}, {options})"
            case Encoding.AVRO:
                return f"from_avro({self.column}, {_literal(self.schema or '')}, map('mode', 'PERMISSIVE'))"

    def is_bad(self, parsed: str) -> str:
        """Whether the bytes aren't what they should be, as an SQL condition; no bytes are no fault."""
        match self.encoding:
            case Encoding.BYTES:
                return "false"
            case Encoding.STRING:
                return f"NOT coalesce(is_valid_utf8({parsed}), true)"
            case Encoding.JSON:
                return f"({parsed}.{BAD} IS NOT NULL OR {self.column} IS NOT NULL AND {parsed} IS NULL)"
            case Encoding.AVRO:
                return f"({self.column} IS NOT NULL AND {parsed} IS NULL)"

    def shown(self, parsed: str, fields: tuple[str, ...]) -> str:
        """The part as the transform gets it."""
        if self.encoding is not Encoding.JSON:
            return f"{parsed} AS {self.column}"
        members = ", ".join(f"{parsed}.{_quoted(name)} AS {_quoted(name)}" for name in fields)
        return f"IF({self.column} IS NULL, NULL, struct({members})) AS {self.column}"


def read_ranges(
    spark: SparkSession,
    ranges: Mapping[str, TopicRange],
    settings: Mapping[str, str],
    key: Decoding,
    value: Decoding,
    *,
    headers: bool,
) -> Records:
    """Exactly the committed records of the ranges: key, value, topic, partition, offset, timestamp[, headers].

    A record that isn't what `key` or `value` say has BAD: its value's bytes as text, where that is text.
    """
    options = _options(ranges, settings) | {"includeHeaders": str(headers).lower()}
    raw = spark.read.format("kafka").options(**options).load()
    frame = raw.selectExpr("*", f"{key.parsed()} AS {_KEY}", f"{value.parsed()} AS {_VALUE}")
    parts = [key.shown(_KEY, _fields(spark, key)), value.shown(_VALUE, _fields(spark, value))]
    columns = ["key", "value", *OTHERS, *(["headers"] if headers else [])]
    marks = key.encoding is not Encoding.BYTES or value.encoding is not Encoding.BYTES
    if not marks:
        return Records(frame.selectExpr(*parts, *columns[2:]), tuple(columns))
    bad = f"({key.is_bad(_KEY)} OR {value.is_bad(_VALUE)})"
    raw_text = "coalesce(CAST(value AS STRING), '')"
    marked = [f"CASE WHEN {bad} THEN {raw_text} END AS {BAD}", f"CASE WHEN {bad} THEN {PLACE} END AS {FILE}"]
    return Records(_of(frame, parts, columns, marked), tuple(columns), marked=True)


def _of(frame: DataFrame, parts: list[str], columns: list[str], marked: list[str]) -> DataFrame:
    return frame.selectExpr(*parts, *columns[2:], *marked)


def _options(ranges: Mapping[str, TopicRange], settings: Mapping[str, str]) -> dict[str, str]:
    """Spark's options. A plan that fails is printed by Spark with its options: redact `sasl.jaas.config` there."""
    taken = {
        name: {n: pair for n, pair in range.partitions.items() if pair[1] > pair[0]} for name, range in ranges.items()
    }
    taken = {name: partitions for name, partitions in taken.items() if partitions}
    return {
        **{f"kafka.{name}": value for name, value in settings.items()},
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "assign": json.dumps({name: sorted(partitions) for name, partitions in taken.items()}),
        "startingOffsets": _offsets({name: {n: f for n, (f, _) in p.items()} for name, p in taken.items()}),
        "endingOffsets": _offsets({name: {n: e for n, (_, e) in p.items()} for name, p in taken.items()}),
    }


def _offsets(found: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps({name: {str(n): offset for n, offset in offsets.items()} for name, offsets in found.items()})


def _fields(spark: SparkSession, decoding: Decoding) -> tuple[str, ...]:
    if decoding.encoding is not Encoding.JSON:
        return ()
    return tuple(spark.createDataFrame([], decoding.schema or "").columns)


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

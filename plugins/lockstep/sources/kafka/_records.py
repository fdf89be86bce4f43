"""The committed records of frozen ranges as Spark reads them, those that can't be decoded marked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockstep.sources.kafka._decoding import Decoding
from lockstep.sources.kafka._ranges import TopicRange
from lockstep.sources.records import BAD, FILE, WHY, Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY, _VALUE = "_lockstep_key", "_lockstep_value"
PLACE = "concat('kafka:', topic, '/', partition, '@', offset)"
OTHERS = ("topic", "partition", "offset", "timestamp")
_RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_OFFSETS_A_TASK, _FEWEST_TASKS = 50_000, 8
#: After every poll Spark asks for the partition's ends, which drops what was fetched ahead: with 500 records a poll, as
#: by default, brokers send most records many times. And the question waits behind a fetch at the partition's end. More
#: records cost memory: Spark keeps each partition's last poll for five minutes. `java.…` of the connection goes first.
_FETCHING = {"max.poll.records": "10000", "fetch.max.wait.ms": "10"}


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

    A record that isn't what `key` or `value` say has BAD: a JSON object of its `key` and `value`, or `key_base64` and
    `value_base64` where they are no text; and WHY where functions or registries tell it. Raises `InvalidPipeline` for a
    function that can't be imported.
    """
    columns = ("key", "value", *OTHERS, *(["headers"] if headers else []))
    clients = {f"kafka.{name}": value for name, value in (_FETCHING | dict(settings)).items()}
    raw = _raw(spark, ranges, {**clients, "includeHeaders": str(headers).lower()})
    if not (key.may_fail or value.may_fail):
        return Records(raw.select(*columns), columns)
    raw = _given(raw.select(*columns), key, value)
    frame = raw.selectExpr("*", f"{key.decode_sql} AS {_KEY}", f"{value.decode_sql} AS {_VALUE}")
    bad = f"({key.fault_sql(_KEY)} OR {value.fault_sql(_VALUE)})"
    frame = frame.selectExpr(
        f"{key.cast_sql(_KEY)} AS key",
        f"{value.cast_sql(_VALUE)} AS value",
        *columns[2:],
        f"CASE WHEN {bad} THEN to_json(struct({key.raw_sql}, {value.raw_sql})) END AS {BAD}",
        f"CASE WHEN {bad} THEN {PLACE} END AS {FILE}",
        *_why(key, value),
    )
    for part in (key, value):
        if part.wrapper_field:
            frame = frame.withColumn(part.column, frame[part.column][part.wrapper_field])
        elif part.added_field:
            frame = frame.withColumn(part.column, frame[part.column].dropFields(part.added_field))
    return Records(frame, columns, marked=True)


def _given(raw: DataFrame, *parts: Decoding) -> DataFrame:
    """With what functions make of the parts."""
    own = [part for part in parts if part.function]
    if not own:
        return raw
    from lockstep.spark.decoding import Decoder, load_function, with_decoded

    found = [Decoder(one.column, one.given, load_function(one.column, one.function), one.schema) for one in own]
    return with_decoded(raw, found)


def _why(*parts: Decoding) -> list[str]:
    """What is told of malformed bytes, if that may be something."""
    told = [part.why_sql for part in parts if part.why_sql]
    return [f"coalesce({', '.join(told)}) AS {WHY}"] if told else []


def _raw(spark: SparkSession, ranges: Mapping[str, TopicRange], options: Mapping[str, str]) -> DataFrame:
    """What Spark's own source gives. It takes no range of nothing."""
    taken = {
        name: {n: pair for n, pair in range.partitions.items() if pair[1] > pair[0]} for name, range in ranges.items()
    }
    taken = {name: partitions for name, partitions in taken.items() if partitions}
    if not taken:
        return spark.createDataFrame([], _RAW)
    frame = (
        spark.read.format("kafka")
        .options(**options)
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "true")
        .option("assign", json.dumps({name: sorted(partitions) for name, partitions in taken.items()}))
        .option("startingOffsets", _offsets({name: {n: f for n, (f, _) in p.items()} for name, p in taken.items()}))
        .option("endingOffsets", _offsets({name: {n: e for n, (_, e) in p.items()} for name, p in taken.items()}))
        .load()
    )
    tasks = tasks_of([end - first for partitions in taken.values() for first, end in partitions.values()])
    return frame if tasks is None else frame.coalesce(tasks)


def tasks_of(offsets: Sequence[int]) -> int | None:
    """How many tasks read ranges of so many offsets each; None: one each, as Spark does it.

    A task costs some hundredths of a second, and leaves a file an output: small ranges share one. Never so few that a
    small cluster would stand idle.
    """
    tasks = max(_FEWEST_TASKS, -(-sum(offsets) // _OFFSETS_A_TASK))
    return tasks if tasks < len(offsets) else None


def _offsets(found: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps({name: {str(n): offset for n, offset in offsets.items()} for name, offsets in found.items()})

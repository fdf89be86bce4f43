"""Committed records of frozen ranges as Spark reads them, with undecodable ones marked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.consumers import committed_records
from lockstep.sources._checked_schema import BAD, WHY
from lockstep.sources.kafka._decoding import Decoding
from lockstep.sources.kafka._ranges import TopicRange
from lockstep.sources.records import FILE, SourceRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.connections.kafka.schema_registry import SchemaRegistry

_KEY, _VALUE = "_lockstep_key", "_lockstep_value"
PLACE = "concat('kafka:', topic, '/', partition, '@', offset)"
METADATA = ("topic", "partition", "offset", "timestamp")
_RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_READ_HERE = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _lockstep_time BIGINT"
)
_TIME = "_lockstep_time"  #: milliseconds since 1970
_YEAR_10000 = 253_402_300_800_000
_UNREADABLE = (1 << 63) // 1000 + 1  #: milliseconds whose microseconds exceed 64 bits
_ODD_TIME = f"{_TIME} >= {_YEAR_10000}"
_OFFSETS_A_TASK, _FEWEST_TASKS = 50_000, 8
#: After every poll Spark queries the partition's ends, which discards prefetched records: with the default of 500
#: records a poll, brokers send most records many times. The query also waits for a fetch at the partition's end. More
#: records need memory: Spark keeps each partition's last poll for five minutes. The connection's `java.…` has priority.
_FETCHING = {"max.poll.records": "10000", "fetch.max.wait.ms": "10"}

_MAX_IDS = 1000  #: arbitrary bytes may name as many ids as there are records


def read_ranges(
    spark: SparkSession,
    ranges: Mapping[str, TopicRange],
    settings: Mapping[str, str],
    key: Decoding,
    value: Decoding,
    cluster: Cluster,
    *,
    headers: bool,
) -> SourceRecords:
    """Read exactly the committed records of the ranges: key, value, topic, partition, offset, timestamp[, headers].

    A record that can't be decoded, or with a time beyond the year 9999, has BAD, a JSON object of its `key` and
    `value`, or of `key_base64` and `value_base64` if they aren't text; and WHY, if functions or registries give a
    reason or its time is invalid. Raises `InvalidPipeline` for a function that can't be imported.
    """
    columns = ("key", "value", *METADATA, *(["headers"] if headers else []))
    clients = {f"kafka.{name}": value for name, value in (_FETCHING | dict(settings)).items()}
    options = {**clients, "includeHeaders": str(headers).lower()}
    odd = any(_firsts(cluster, name, range, _YEAR_10000) for name, range in ranges.items())
    raw = _with_times(spark, ranges, options, cluster) if odd else _raw(spark, ranges, options)
    if not (key.may_fail or value.may_fail or odd):
        return SourceRecords(raw.select(*columns), columns)
    raw = _with_functions(raw.select(*columns, *([_TIME] if odd else [])), key, value)
    frame = raw.selectExpr("*", f"{key.decode_sql} AS {_KEY}", f"{value.decode_sql} AS {_VALUE}")
    bad = f"({key.fault_sql(_KEY)} OR {value.fault_sql(_VALUE)}{f' OR {_ODD_TIME}' if odd else ''})"
    frame = frame.selectExpr(
        f"{key.cast_sql(_KEY)} AS key",
        f"{value.cast_sql(_VALUE)} AS value",
        *columns[2:],
        f"CASE WHEN {bad} THEN to_json(struct({key.raw_sql}, {value.raw_sql})) END AS {BAD}",
        f"CASE WHEN {bad} THEN {PLACE} END AS {FILE}",
        *_why(key, value, odd=odd),
    )
    for part in (key, value):
        if part.wrapper_field:
            frame = frame.withColumn(part.column, frame[part.column][part.wrapper_field])
        elif part.added_field:
            frame = frame.withColumn(part.column, frame[part.column].dropFields(part.added_field))
    return SourceRecords(frame, columns, marked=True)


def _with_functions(raw: DataFrame, *parts: Decoding) -> DataFrame:
    """Add the columns that functions make of the parts."""
    if not any(part.function for part in parts):
        return raw
    from lockstep.spark.decoding import Decoder, load_function, with_decoded

    return with_decoded(
        raw,
        [
            Decoder(part.column, part.given, load_function(part.column, part.function), part.schema)
            for part in parts
            if part.function
        ],
    )


def _why(*parts: Decoding, odd: bool) -> list[str]:
    """Return the column with the reason why bytes or times are malformed, if there may be one."""
    time = f"CASE WHEN {_ODD_TIME} THEN concat('its time is ', {_TIME}, ' ms after 1970, beyond the year 9999') END"
    reasons = [time] * odd + [part.why_sql for part in parts if part.why_sql]
    return [f"coalesce({', '.join(reasons)}) AS {WHY}"] if reasons else []


def _firsts(cluster: Cluster, name: str, range: TopicRange, time: int) -> dict[int, int]:
    """Return the first offset at or after this time for each partition with such a record in its range."""
    firsts = cluster.offsets_at(name, range.partitions, time) if range.offsets else {}
    return {n: at for n, at in firsts.items() if at is not None and at < range.partitions[n][1]}


def _with_times(
    spark: SparkSession, ranges: Mapping[str, TopicRange], options: Mapping[str, str], cluster: Cluster
) -> DataFrame:
    """Return `_raw` with _TIME. Spark fails at times with microseconds beyond 64 bits.

    In each partition, the records from the first to the last such record are read here instead.
    """
    before, behind, rows = dict[str, TopicRange](), dict[str, TopicRange](), list[tuple[Any, ...]]()
    for name, range in ranges.items():
        firsts, read, odd = _firsts(cluster, name, range, _UNREADABLE), list[Any](), dict[int, list[int]]()
        starts = {n: max(at, range.partitions[n][0]) for n, at in firsts.items()}
        with cluster.who.naming(f"reading {name}"):
            for records in committed_records(cluster.settings, name, starts, {n: range.ends[n] for n in starts}):
                for record in records:
                    if record.timestamp()[1] >= _UNREADABLE:
                        odd.setdefault(record.partition(), []).append(record.offset())
                    if record.partition() in odd:
                        read.append(record)
        rows += [
            (record.key(), record.value(), name, n, record.offset(), record.headers(), record.timestamp()[1])
            for record in read
            if record.offset() <= odd[n := record.partition()][-1]
        ]
        cut = {n: (first, odd[n][0] if n in odd else end) for n, (first, end) in range.partitions.items()}
        before[name] = replace(range, partitions=cut)
        behind[name] = replace(range, partitions={n: (offsets[-1] + 1, range.ends[n]) for n, offsets in odd.items()})
    frame = _raw(spark, before, options).unionByName(_raw(spark, behind, options), allowMissingColumns=True)
    frame = frame.selectExpr("*", f"unix_millis(timestamp) AS {_TIME}")
    if not rows:
        return frame
    time = f"CASE WHEN {_TIME} < {_UNREADABLE} THEN timestamp_millis({_TIME}) END AS timestamp"
    here = spark.createDataFrame(rows, _READ_HERE).selectExpr("*", time)
    return frame.unionByName(here, allowMissingColumns=True)


def _raw(spark: SparkSession, ranges: Mapping[str, TopicRange], options: Mapping[str, str]) -> DataFrame:
    """Read by Spark's own source, which doesn't accept empty ranges."""
    nonempty = {
        name: {n: pair for n, pair in range.partitions.items() if pair[1] > pair[0]} for name, range in ranges.items()
    }
    nonempty = {name: partitions for name, partitions in nonempty.items() if partitions}
    if not nonempty:
        return spark.createDataFrame([], _RAW)
    frame = (
        spark.read.format("kafka")
        .options(**options)
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "true")
        .option("assign", json.dumps({name: sorted(partitions) for name, partitions in nonempty.items()}))
        .option("startingOffsets", _offsets({name: {n: f for n, (f, _) in p.items()} for name, p in nonempty.items()}))
        .option("endingOffsets", _offsets({name: {n: e for n, (_, e) in p.items()} for name, p in nonempty.items()}))
        .load()
    )
    tasks = tasks_of([end - first for partitions in nonempty.values() for first, end in partitions.values()])
    return frame if tasks is None else frame.coalesce(tasks)


def tasks_of(offsets: Sequence[int]) -> int | None:
    """Return the number of tasks for ranges of so many offsets each; None: one task per range, Spark's default.

    A task costs some hundredths of a second and writes a file per output, so small ranges share one; but enough tasks
    remain for a small cluster.
    """
    tasks = max(_FEWEST_TASKS, -(-sum(offsets) // _OFFSETS_A_TASK))
    return tasks if tasks < len(offsets) else None


def _offsets(topics: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps({name: {str(n): offset for n, offset in offsets.items()} for name, offsets in topics.items()})


def confirm_bad(
    registry: SchemaRegistry, parts: Sequence[tuple[Decoding, tuple[str, ...]]], records: SourceRecords
) -> None:
    """Raise `SourceUnavailable` if malformed records name schemas that the registry returns only now.

    Records are sent after their schema is registered, yet a lagging node of the registry or a cache may have missed it.
    `parts`: those that were read by writers' schemas, each with its subjects. Called only if there are malformed
    records.
    """
    for part, subjects in parts:
        text, base64 = (f"get_json_object({BAD}, '$.{part.column}{suffix}')" for suffix in ("", "_base64"))
        data = f"coalesce(unbase64({base64}), encode({text}, 'UTF-8'))"
        has_prefix = f"hex(substring({data}, 1, 1)) = '00' AND length({data}) >= 5"
        bad = records.frame.where(f"{BAD} IS NOT NULL AND {records.every_column} AND {has_prefix}")
        id = f"CAST(conv(hex(substring({data}, 2, 4)), 16, 10) AS BIGINT) AS id"
        ids = {row.id for row in bad.selectExpr(id).distinct().limit(_MAX_IDS).collect()}
        unknown = ids - set(part.writers or {})
        if unknown and (late_schemas := registry.find_known(unknown, subjects)):
            raise registry.who.unavailable(
                f"{registry.who.name}: the schema registry of connection {registry.connection} returned schemas "
                f"{', '.join(map(str, sorted(late_schemas)))} of {', '.join(subjects)} only after their records were "
                "read and considered malformed: a node of it, or a cache, was behind; nothing was sealed"
            )

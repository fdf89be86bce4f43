"""Audits of an output that Spark reads: each file's bytes are compared with the manifest where an executor parses them.

What is found is what DuckDB finds by the audit's query, see `lockstep.audits.in_spark`. One job counts for all audits
that judge row by row, one looks for keys that come twice, and rows that offend are fetched by one of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lockstep.audits.asking import SAMPLE
from lockstep.audits.audit import Query
from lockstep.audits.in_spark import Found
from lockstep.audits.rule import Key, Newest, Rule
from lockstep.compute._by_value import ship_ours
from lockstep.compute._file_reading import spread
from lockstep.compute._row_rules import offends
from lockstep.ddl import quote_name
from lockstep.errors import StageFailed
from lockstep.spark.session import session
from lockstep.wal.executor_reading import Sealed, read_sealed
from lockstep.wal.reading import SealedWal
from lockstep.wal.request import from_hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS = 10_000


def ask_spark(
    target: str | SparkSession,
    wal: SealedWal,
    output: str,
    audits: Sequence[Query],
    parameters: Mapping[str, object],
) -> dict[str, Found]:
    """What audits find of one output, in a session of `target`: an `AskSpark`, but for the first argument."""
    with session(target) as spark:
        return _Output(spark, wal, output).ask(audits, parameters)


class _Output:
    def __init__(self, spark: SparkSession, wal: SealedWal, output: str) -> None:
        ship_ours()
        self._spark, self._wal = spark, wal
        self._manifest = wal.manifest.outputs[output]

    def ask(self, audits: Sequence[Query], parameters: Mapping[str, object]) -> dict[str, Found]:
        """Raises `StageFailed` if another number of rows was read than was sealed, and whatever Spark does."""
        found: dict[str, Found] = {}
        rules = {one.name: one.asked for one in audits if isinstance(one.asked, Rule)}
        newest = {one.name: one.asked for one in audits if isinstance(one.asked, Newest)}
        found |= self._judge(rules, newest, parameters)
        for one in audits:
            if isinstance(one.asked, Key):
                found[one.name] = self._twice(one.asked)
        return found

    def _judge(
        self, rules: Mapping[str, Rule], newest: Mapping[str, Newest], parameters: Mapping[str, object]
    ) -> dict[str, Found]:
        """What is counted by one job over all rows."""
        if not rules and not newest:
            return {}
        frame = self._frame([*(str(one.column) for one in rules.values()), *(one.column for one in newest.values())])
        counts = {name: F.count(F.when(offends(rule, frame, name), 1)) for name, rule in rules.items()}
        counts |= {name: F.max(quote_name(one.column)) for name, one in newest.items()}
        columns = [column.alias(f"audit {at}") for at, column in enumerate(counts.values())]
        [told] = frame.agg(F.count(F.lit(1)).alias("rows"), *columns).toArrow().to_pylist()
        if (rows := told["rows"]) != self._manifest.rows:
            raise StageFailed(f"Spark read {rows} of {self._manifest.rows} rows of output {self._manifest.name}")
        answers = dict(zip(counts, [told[f"audit {at}"] for at in range(len(counts))], strict=True))
        found = {name: self._rows(rule, name, int(answers[name])) for name, rule in rules.items()}
        return found | {name: _stale(one, answers[name], parameters) for name, one in newest.items()}

    def _rows(self, rule: Rule, name: str, count: int) -> Found:
        if not count:
            return 0, []
        frame = self._frame(self._manifest.schema.names)
        return count, frame.where(offends(rule, frame, name)).limit(SAMPLE).toArrow().to_pylist()

    def _twice(self, key: Key) -> Found:
        columns = [quote_name(name) for name in key.columns]
        frame = self._frame(key.columns)
        known = " AND ".join(f"{name} IS NOT NULL" for name in columns)
        keys = frame.where(known).groupBy(*columns).agg(F.count(F.lit(1)).alias("times")).where("times > 1")
        [told] = keys.agg(F.count(F.lit(1)).alias("keys")).toArrow().to_pylist()
        return int(told["keys"]), keys.limit(SAMPLE).toArrow().to_pylist() if told["keys"] else []

    def _frame(self, columns: Sequence[str]) -> DataFrame:
        """The sealed rows, of these columns."""
        wanted = {name.casefold() for name in columns}
        fields = [field for field in self._manifest.schema if field.name.casefold() in wanted]
        manifest, names = self._manifest, [field.name for field in fields]
        storage = from_hadoop_uri(self._wal.storage.uri_of("").rstrip("/"), self._wal.storage.options)
        folder = f"{self._wal.manifest.rows_in or self._wal.folder}/{manifest.name}"
        sealed = Sealed(storage, folder, manifest.schema, manifest.files)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value
            return read_sealed(sealed, names, batches)

        files = [(at, file.path) for at, file in enumerate(manifest.files)]
        schema = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
        return spread(self._spark, files, min(len(files), _TASKS)).mapInArrow(read, schema)


def _stale(asked: Newest, newest: Any, parameters: Mapping[str, object]) -> Found:
    """As the query of `fresh_until` says it: one row, if the newest value isn't new enough."""
    wanted = cast(datetime, parameters["interval_end"] or parameters["planned_at"]) - asked.within
    if newest is None:
        return 1, [{"newest": None}]
    at = newest if isinstance(newest, datetime) else datetime.combine(newest, datetime.min.time())
    at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return (1, [{"newest": newest}]) if at < wanted else (0, [])

"""Audits of an output that Spark reads: each file's bytes are compared with the manifest where an executor parses them.

What is found is what DuckDB finds by the audit's query, see `lockstep.audits.in_spark`. One job counts for all audits
that judge row by row, one looks for keys that come twice, and rows that offend are fetched by one of their own.
A function of a user's makes a query, which is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lockstep.audits.audit import Function, Query
from lockstep.audits.calling import call, describe_kind, plain_rows, refuse, require_columns, require_fewer
from lockstep.audits.evaluate import SAMPLE
from lockstep.audits.in_spark import Found
from lockstep.audits.rule import Key, Newest, Rule
from lockstep.compute._by_value import ship_ours, ship_package
from lockstep.compute._file_reading import spread
from lockstep.compute._row_rules import offends
from lockstep.definition.ddl import quote_name
from lockstep.errors import AuditFailed, StageFailed
from lockstep.observability.redaction import cause, describe_error
from lockstep.spark.session import session
from lockstep.wal.reading import Sealed, SealedWal, read_sealed
from lockstep.wal.request import from_hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = 10_000


def ask_spark(
    target: str | SparkSession,
    wal: SealedWal,
    output: str,
    audits: Sequence[Query | Function],
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

    def ask(self, audits: Sequence[Query | Function], parameters: Mapping[str, object]) -> dict[str, Found]:
        """Raises `StageFailed` if another number of rows was read than was sealed, and whatever Spark does."""
        found: dict[str, Found] = {}
        queries = [one for one in audits if isinstance(one, Query)]
        rules = {one.name: one.asked for one in queries if isinstance(one.asked, Rule)}
        newest = {one.name: one.asked for one in queries if isinstance(one.asked, Newest)}
        found |= self._judge(rules, newest, parameters)
        for query in queries:
            if isinstance(query.asked, Key):
                found[query.name] = self._twice(query.asked)
        return found | {one.name: self._own(one) for one in audits if isinstance(one, Function)}

    def _own(self, audit: Function) -> Found:
        """By a function of the user's. Raises `AuditFailed`, and `StageFailed` for what Spark fails at as it runs."""
        names = self._manifest.schema.names
        if len({name.casefold() for name in names}) < len(names):
            raise AuditFailed(
                f"audit {audit.name}: output {self._manifest.name} has columns whose names differ in case alone, which "
                "Spark can't tell apart: say over='arrow'"
            )
        ship_package(audit.function.partition(":")[0])
        frame = self._frame(names)
        try:
            rows = call(audit, frame, PySparkException)
            if not isinstance(rows, DataFrame):
                raise refuse(audit, f"{describe_kind(rows)}: give a DataFrame of the rows that offend")
            require_columns(audit, _types(rows, frame.columns), dict(_types(frame, frame.columns)))
            [told] = rows.agg(F.count(F.lit(1)).alias("rows")).toArrow().to_pylist()
            sample = plain_rows(rows.limit(SAMPLE).toArrow()) if told["rows"] else []
        except AnalysisException as error:
            said = " ".join(str(error).split("\n\nJVM stacktrace:")[0].split(";")[0].split())
            raise AuditFailed(f"audit {audit.name}: {audit.function} fails: {said}; correct it, then replan") from None
        except PySparkException as error:  # it may quote a value
            raise StageFailed(
                f"audit {audit.name}: Spark fails at what {audit.function} gives: {describe_error(error)}"
            ) from cause(error, quotes=True)
        require_fewer(audit, int(told["rows"]), self._manifest.rows)
        return int(told["rows"]), sample

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
        return count, plain_rows(frame.where(offends(rule, frame, name)).limit(SAMPLE).toArrow())

    def _twice(self, key: Key) -> Found:
        columns = [quote_name(name) for name in key.columns]
        frame = self._frame(key.columns)
        known = " AND ".join(f"{name} IS NOT NULL" for name in columns)
        keys = frame.where(known).groupBy(*columns).agg(F.count(F.lit(1)).alias("times")).where("times > 1")
        [told] = keys.agg(F.count(F.lit(1)).alias("keys")).toArrow().to_pylist()
        return int(told["keys"]), plain_rows(keys.limit(SAMPLE).toArrow()) if told["keys"] else []

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
        return spread(self._spark, files, max(1, min(len(files), _TASKS))).mapInArrow(read, schema)


def _types(frame: DataFrame, known: Sequence[str]) -> list[tuple[str, object]]:
    """Of each column, by the name that the output has for it: Spark takes one in any case for it."""
    names = {name.casefold(): name for name in known}
    return [(names.get(field.name.casefold(), field.name), field.dataType.simpleString()) for field in frame.schema]


def _stale(asked: Newest, newest: Any, parameters: Mapping[str, object]) -> Found:
    """As the query of `fresh_until` says it: one row, if the newest value isn't new enough."""
    wanted = cast(datetime, parameters["interval_end"] or parameters["planned_at"]) - asked.within
    if newest is None:
        return 1, [{"newest": None}]
    at = newest if isinstance(newest, datetime) else datetime.combine(newest, datetime.min.time())
    at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return (1, [{"newest": newest}]) if at < wanted else (0, [])

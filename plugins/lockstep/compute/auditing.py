"""Audits of an output by Spark: executors compare each file's bytes with the manifest before they parse them.

The result is that of the audit's query in DuckDB, see `lockstep.audits.evaluate`. One job counts for all audits that
judge row by row, one job looks for duplicate keys, and one fetches samples of rows that offend. A user's function
returns a query, which is counted.
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

from lockstep.audits.audit import Function, Key, Newest, Query, Rule
from lockstep.audits.calling import call, describe_kind, plain_rows, refuse, require_columns, require_fewer
from lockstep.audits.evaluate import SAMPLE, Found
from lockstep.compute._executors import ship_ours, ship_package, spread
from lockstep.compute._quarantining import offends
from lockstep.definition.ddl import quote_name
from lockstep.errors import AuditFailed, StageFailed
from lockstep.observability.redaction import cause, describe_error
from lockstep.spark.session import session
from lockstep.wal.reading import Sealed, SealedWal, read_sealed
from lockstep.wal.request import from_hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_TASKS = 10_000


def ask_spark(
    target: str | SparkSession,
    wal: SealedWal,
    output: str,
    audits: Sequence[Query | Function],
    parameters: Mapping[str, object],
) -> dict[str, Found]:
    """Evaluate audits of one output in a session of `target`; with the first argument bound this is an `AskSpark`."""
    with session(target) as spark:
        return _Output(spark, wal, output).ask(audits, parameters)


class _Output:
    def __init__(self, spark: SparkSession, wal: SealedWal, output: str) -> None:
        ship_ours()
        self._spark, self._wal = spark, wal
        self._manifest = wal.manifest.outputs[output]

    def ask(self, audits: Sequence[Query | Function], parameters: Mapping[str, object]) -> dict[str, Found]:
        """Evaluate the audits. Raises `StageFailed` if another number of rows was read than was sealed, and Spark's
        errors."""
        results: dict[str, Found] = {}
        queries = [audit for audit in audits if isinstance(audit, Query)]
        rules = {audit.name: audit.asked for audit in queries if isinstance(audit.asked, Rule)}
        newest = {audit.name: audit.asked for audit in queries if isinstance(audit.asked, Newest)}
        results |= self._judge(rules, newest, parameters)
        for query in queries:
            if isinstance(query.asked, Key):
                results[query.name] = self._twice(query.asked)
        return results | {audit.name: self._own(audit) for audit in audits if isinstance(audit, Function)}

    def _own(self, audit: Function) -> Found:
        """Evaluate a user's function. Raises `AuditFailed`, and `StageFailed` if Spark fails to run its query."""
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
            [counted] = rows.agg(F.count(F.lit(1)).alias("rows")).toArrow().to_pylist()
            sample = plain_rows(rows.limit(SAMPLE).toArrow()) if counted["rows"] else []
        except AnalysisException as error:
            reason = " ".join(str(error).split("\n\nJVM stacktrace:")[0].split(";")[0].split())
            raise AuditFailed(
                f"audit {audit.name}: {audit.function} fails: {reason}; correct it, then replan"
            ) from None
        except PySparkException as error:  # it may quote a value
            raise StageFailed(
                f"audit {audit.name}: Spark fails to run the query of {audit.function}: {describe_error(error)}"
            ) from cause(error, quotes=True)
        require_fewer(audit, int(counted["rows"]), self._manifest.rows)
        return int(counted["rows"]), sample

    def _judge(
        self, rules: Mapping[str, Rule], newest: Mapping[str, Newest], parameters: Mapping[str, object]
    ) -> dict[str, Found]:
        """Evaluate row rules and freshness by one job over all rows."""
        if not rules and not newest:
            return {}
        frame = self._frame(
            [*(str(audit.column) for audit in rules.values()), *(audit.column for audit in newest.values())]
        )
        counts = {name: F.count(F.when(offends(rule, frame, name), 1)) for name, rule in rules.items()}
        counts |= {name: F.max(quote_name(audit.column)) for name, audit in newest.items()}
        columns = [column.alias(f"audit {at}") for at, column in enumerate(counts.values())]
        [counted] = frame.agg(F.count(F.lit(1)).alias("rows"), *columns).toArrow().to_pylist()
        if (rows := counted["rows"]) != self._manifest.rows:
            raise StageFailed(f"Spark read {rows} of {self._manifest.rows} rows of output {self._manifest.name}")
        answers = dict(zip(counts, [counted[f"audit {at}"] for at in range(len(counts))], strict=True))
        results = {name: self._rows(rule, name, int(answers[name])) for name, rule in rules.items()}
        return results | {name: _stale(audit, answers[name], parameters) for name, audit in newest.items()}

    def _rows(self, rule: Rule, name: str, count: int) -> Found:
        if not count:
            return 0, []
        frame = self._frame(self._manifest.schema.names)
        return count, plain_rows(frame.where(offends(rule, frame, name)).limit(SAMPLE).toArrow())

    def _twice(self, key: Key) -> Found:
        columns = [quote_name(name) for name in key.columns]
        frame = self._frame(key.columns)
        complete = " AND ".join(f"{name} IS NOT NULL" for name in columns)
        keys = frame.where(complete).groupBy(*columns).agg(F.count(F.lit(1)).alias("times")).where("times > 1")
        [counted] = keys.agg(F.count(F.lit(1)).alias("keys")).toArrow().to_pylist()
        return int(counted["keys"]), plain_rows(keys.limit(SAMPLE).toArrow()) if counted["keys"] else []

    def _frame(self, columns: Sequence[str]) -> DataFrame:
        """The sealed rows with these columns."""
        folded = {name.casefold() for name in columns}
        fields = [field for field in self._manifest.schema if field.name.casefold() in folded]
        manifest, names = self._manifest, [field.name for field in fields]
        storage = from_hadoop_uri(self._wal.storage.uri_of("").rstrip("/"), self._wal.storage.options)
        folder = f"{self._wal.manifest.rows_in or self._wal.folder}/{manifest.name}"
        sealed = Sealed(storage, folder, manifest.schema, manifest.files)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value
            return read_sealed(sealed, names, batches)

        files = [(at, file.path) for at, file in enumerate(manifest.files)]
        schema = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
        return spread(self._spark, files, max(1, min(len(files), _MAX_TASKS))).mapInArrow(read, schema)


def _types(frame: DataFrame, columns: Sequence[str]) -> list[tuple[str, object]]:
    """Names and types of the columns, named as in `columns`: Spark ignores the case of names."""
    names = {name.casefold(): name for name in columns}
    return [(names.get(field.name.casefold(), field.name), field.dataType.simpleString()) for field in frame.schema]


def _stale(audit: Newest, newest: Any, parameters: Mapping[str, object]) -> Found:
    """The result of the query of `fresh_until`: one row if the newest value isn't new enough."""
    oldest = cast(datetime, parameters["interval_end"] or parameters["planned_at"]) - audit.within
    if newest is None:
        return 1, [{"newest": None}]
    at = newest if isinstance(newest, datetime) else datetime.combine(newest, datetime.min.time())
    at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return (1, [{"newest": newest}]) if at < oldest else (0, [])

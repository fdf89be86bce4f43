"""Evaluates audits: SQL by DuckDB in this process, over rows whose bytes are compared with the manifest while they are
read.

DuckDB spills what doesn't fit into its memory to a temporary folder. Only the columns that audits name are read, unless
rows offend; counts come from the seal.
"""

from __future__ import annotations

import logging
import math
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lockstep.audits._sql import EXPECTED, VALUE, Text, compose, differing, expected_groups, grouped
from lockstep.audits.audit import (
    Audit,
    Conserved,
    Function,
    Key,
    Matches,
    Newest,
    Over,
    Query,
    RowCount,
    Rule,
    Steady,
    Value,
    Volume,
)
from lockstep.audits.calling import MOST_BYTES, offending, plain_rows
from lockstep.connections.duckdb import MEMORY, WatchedBatches, engine
from lockstep.connections.postgres.connection import read_rows
from lockstep.definition.conservation import UNACCOUNTED
from lockstep.epoch import AuditResult, Interval, Json
from lockstep.errors import AuditFailed, LockstepError, NotConfigured, StageFailed, Terminal
from lockstep.wal.reading import SealedWal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_log = logging.getLogger(__name__)
_MOST_GROUPS = 100_000  #: of what a foreign system says
_PATIENCE = timedelta(minutes=10)  #: with its answer
SAMPLE = 20  #: rows that offend, kept of each audit
_SEVERAL = "it replaces several epochs, and the bound is for one"
_SHOWN = ("BinderException", "CatalogException", "ParserException", "PermissionException", "SyntaxException")

VARIABLE = "LOCKSTEP_AUDIT_BYTES"
_BYTES = 4 << 30  #: what one process reads, hashes and compares in some minutes
_DIGITS = 18  #: of decimals: what they are compared in then has room for both sides

Found: TypeAlias = tuple[int, list[dict[str, Any]]]  #: how many rows a query gives, and some of them
#: Asks Spark audits of one output, with the occasion's parameters: what it found, by the audit's name.
AskSpark: TypeAlias = Callable[[SealedWal, str, Sequence[Query | Function], Mapping[str, object]], Mapping[str, Found]]


@dataclass(frozen=True)
class AuditContext:
    """The audited epoch. `planned_at`: when its range was planned first, also if a later epoch reads it again.
    `before(n)`: for the last n decided epochs, newest first, the seal's summary and the measures of audits by name.
    `replaced`: summaries of the replaced epochs, if there are several."""

    epoch: int
    interval: Interval | None
    planned_at: datetime
    before: Callable[[int], Sequence[tuple[Json, Mapping[str, float]]]]
    connections: Mapping[str, str] = field(default_factory=dict)  #: DSNs by id, of what outputs are to match
    replaced: Sequence[Json] = ()

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters that a query may use, by name."""
        return {
            "epoch": self.epoch,
            "interval_start": _naive(self.interval.start) if self.interval else None,
            "interval_end": _naive(self.interval.end) if self.interval else None,
            "planned_at": _naive(self.planned_at),
        }


@dataclass(frozen=True)
class Answer:
    """`sample`: some of the offending rows, or what was compared. `away`: all of them are in quarantine."""

    result: AuditResult
    sample: list[dict[str, Any]] = field(default_factory=list)
    away: bool = False


def ask(
    audits: Sequence[Audit], context: AuditContext, wal: SealedWal, ask_spark: AskSpark | None = None
) -> list[Answer]:
    """Every audit's answer. `ask_spark`: where Spark is at hand, for outputs that are too large for this process.
    Raises `AuditFailed`, `WalCorrupt`, `PackageMissing` without DuckDB."""
    by_spark = _results_of_spark(audits, context, wal, ask_spark) if ask_spark is not None else {}
    local = [audit for audit in audits if audit.name not in by_spark]
    _warn_of_large(local, wal)
    with ExitStack() as stack:
        database = _Database(context, wal, local)
        stack.callback(database.close)
        own = _Own(context, wal, ask_spark)
        return [
            own.answer(audit) if isinstance(audit, Function) else _answer(audit, context, wal, database, by_spark)
            for audit in audits
        ]


def _warn_of_large(audits: Sequence[Audit], wal: SealedWal) -> None:
    """Warn of large outputs that this process reads, because SQL audits run in DuckDB only."""
    limit, sql_audits = task_audits(), [audit for audit in audits if isinstance(audit, Query | Steady | Matches)]
    for output in wal.manifest.outputs.values():
        names = [audit.name for audit in sql_audits if output.name in audit.outputs and not audit.quarantine]
        if names and output.bytes > limit:
            _log.warning(
                "the task reads output %s, which is %s bytes, for %s; what doesn't fit into memory is spilled to its "
                "temporary folder",
                output.name,
                f"{output.bytes:,}",
                ", ".join(names),
            )


def _results_of_spark(
    audits: Sequence[Audit], context: AuditContext, wal: SealedWal, ask_spark: AskSpark
) -> Mapping[str, Found]:
    """Spark's results by audit. Where Spark fails, the audit runs in this process, which reports what is wrong."""
    results: dict[str, Found] = {}
    for output, queries in for_spark(audits, wal).items():
        try:
            results |= ask_spark(wal, output, queries, context.parameters)
        except Exception as error:
            why = str(error) if isinstance(error, LockstepError) else type(error).__name__  # another may quote a value
            _log.warning("the task reads output %s to audit it, Spark didn't: %s", output, why)
    return results


def _answer(
    audit: Audit, context: AuditContext, wal: SealedWal, database: _Database, by_spark: Mapping[str, Found]
) -> Answer:
    match audit:
        case Query(quarantine=True):
            return _quarantined(audit, wal)
        case Query():
            rows, sample = by_spark.get(audit.name) or database.offending(audit)
            return Answer(AuditResult(audit.name, rows, audit.blocking), sample)
        case Matches():
            rows, sample = database.differing(audit, _expected(audit, context))
            return Answer(AuditResult(audit.name, rows, audit.blocking), sample)
        case RowCount():
            return _count(audit, wal, several=bool(context.replaced))
        case Conserved():
            return _unbalanced(audit, wal)
        case Steady() if context.replaced:
            return Answer(AuditResult(audit.name, 0, audit.blocking, told=f"not asked: {_SEVERAL}"))
        case Steady():
            return _compare(
                audit, database.number(audit), [measures.get(audit.name) for _, measures in _earlier(audit, context)]
            )
        case Volume():
            [output] = audit.outputs
            value = float(wal.manifest.outputs[output].rows)
            if context.replaced:
                return _compare_sum(audit, value, [_rows(summary, output) for summary in context.replaced])
            return _compare(audit, value, [_rows(summary, output) for summary, _ in _earlier(audit, context)])
    raise AuditFailed(f"audit {audit.name}: nobody knows how to ask a {type(audit).__name__}")


def _expected(audit: Matches, context: AuditContext) -> pa.Table:
    """The foreign system's groups and values. Raises `SourceUnavailable` if it doesn't answer: the epoch waits without
    a verdict."""
    where = f"audit {audit.name}, connection {audit.connection}"
    try:
        dsn = context.connections[audit.connection]
    except KeyError:
        raise AuditFailed(f"{where}: there is no connection of that id") from None
    start, end = (context.interval.start, context.interval.end) if context.interval else (None, None)
    parameters = {
        "epoch": context.epoch,
        "interval_start": start,
        "interval_end": end,
        "planned_at": context.planned_at,
    }
    try:
        columns, rows = read_rows(where, dsn, audit.query, parameters, max_rows=_MOST_GROUPS, within=_PATIENCE)
    except Terminal as error:
        raise AuditFailed(f"{error}; correct the audit, then take the new one by replan") from error
    names = [*audit.by, "value"]
    if len(columns) != len(names):
        raise AuditFailed(f"{where}: it gave {len(columns)} columns, expected are {len(names)}: {', '.join(names)}")
    values = zip(*rows, strict=True) if rows else [[] for _ in names]
    try:
        compared = pa.table([pa.array(list(column)) for column in values], names=[*audit.by, VALUE])
        groups = {row[:-1] for row in rows}
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:  # it may quote a value
        raise AuditFailed(
            f"{where}: what it gave can't be compared ({type(error).__name__}). Give numbers, text, dates or times, no "
            "json and no array; a numeric that is NaN or infinite has to be cast to float8. Correct the audit, then "
            "take the new one by replan"
        ) from None
    if len(groups) < len(rows):
        raise AuditFailed(f"{where}: it gave a group more than once, by {', '.join(audit.by) or 'none'}")
    return compared


def _typed(audit: Matches, expected: pa.Table, types: pa.Schema) -> pa.Table:
    """A column without a value has the type of what it is compared with, which an output may write in another case."""
    fields = [
        pa.field(field.name, types.field(index).type) if pa.types.is_null(field.type) else field
        for index, field in enumerate(expected.schema)
    ]
    try:
        return expected.cast(pa.schema(fields))
    except pa.ArrowException as error:
        raise AuditFailed(
            f"audit {audit.name}: a column in which all is null has no type to be compared in ({type(error).__name__})"
        ) from None


def _earlier(audit: Volume, context: AuditContext) -> Sequence[tuple[Json, Mapping[str, float]]]:
    return context.before(audit.epochs)


def _rows(summary: Json, output: str) -> int | None:
    rows: int | None = summary.get("outputs", {}).get(output, {}).get("rows")
    return rows


def _count(audit: RowCount, wal: SealedWal, several: bool) -> Answer:
    [output] = audit.outputs
    rows, at_least, at_most = wal.manifest.outputs[output].rows, audit.at_least, None if several else audit.at_most
    if (at_least is None or rows >= at_least) and (at_most is None or rows <= at_most):
        left_out = audit.at_most is not None and at_most is None
        message = f"{rows:,} rows, at most {audit.at_most:,} not asked: {_SEVERAL}" if left_out else None
        return Answer(AuditResult(audit.name, 0, audit.blocking, told=message))
    bounds = " and ".join(
        f"{word} {bound:,}" for word, bound in (("at least", at_least), ("at most", at_most)) if bound is not None
    )
    return Answer(AuditResult(audit.name, 1, audit.blocking, told=f"{rows:,} rows, {bounds} expected"))


def _quarantined(audit: Query, wal: SealedWal) -> Answer:
    """The count of rows that went to quarantine before the seal. Raises `AuditFailed` if the seal doesn't mention the
    audit."""
    [output] = audit.outputs
    quarantined = wal.manifest.quarantined.get(output)
    if quarantined is None or audit.name not in quarantined.audits:
        raise AuditFailed(
            f"audit {audit.name}: the seal of {wal.folder} doesn't say that it was asked: replan the epoch"
        )
    rows = quarantined.audits[audit.name]
    message = f"{rows:,} row{'s' if rows != 1 else ''} in quarantine" if rows else None
    return Answer(AuditResult(audit.name, rows, False, told=message), away=True)


def _unbalanced(audit: Conserved, wal: SealedWal) -> Answer:
    """Unbalanced counts of the seal that concern the audit's outputs."""
    balances = wal.manifest.balances.items()
    unbalanced = {name: counts for name, counts in balances if UNACCOUNTED in counts and {*audit.outputs} & {*counts}}
    rows = sum(counts[UNACCOUNTED] for counts in unbalanced.values())
    messages = [
        f"{name}: {', '.join(f'{n:,} {term}' for term, n in counts.items())}" for name, counts in unbalanced.items()
    ]
    return Answer(AuditResult(audit.name, rows, audit.blocking, told="; ".join(messages) or None))


def _compare(audit: Volume, value: float, earlier: Sequence[float | None]) -> Answer:
    """Compare with the median of earlier epochs; without any, nothing offends."""
    values = [earlier_value for earlier_value in earlier if earlier_value is not None]
    if not values:
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    return _near(audit, value, statistics.median(values), f"the {len(values)} epochs before")


def _compare_sum(audit: Volume, value: float, replaced: Sequence[float | None]) -> Answer:
    """Compare with the sum of the replaced epochs; if one of them is unknown, nothing offends."""
    values = [replaced_value for replaced_value in replaced if replaced_value is not None]
    if len(values) < len(replaced):
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    return _near(audit, value, sum(values), f"the {len(values)} epochs that it replaces")


def _near(audit: Volume, value: float, expected: float, basis: str) -> Answer:
    tolerance = abs(expected) * audit.within
    if expected - tolerance <= value <= expected + tolerance:
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    message = f"{value:,.12g}, {basis} let expect {expected - tolerance:,.12g} to {expected + tolerance:,.12g}"
    return Answer(AuditResult(audit.name, 1, audit.blocking, value, message))


class _Own:
    """Runs functions of users. Each gets its own copy of the rows, because it may change them."""

    def __init__(self, context: AuditContext, wal: SealedWal, ask_spark: AskSpark | None) -> None:
        self._occasion, self._wal, self._ask_spark = context, wal, ask_spark

    def answer(self, audit: Function) -> Answer:
        """Raises `AuditFailed`: what can't be asked has not passed."""
        rows, sample = self._in_spark(audit) if audit.over == Over.SPARK else self._here(audit)
        return Answer(AuditResult(audit.name, rows, audit.blocking), sample)

    def _here(self, audit: Function) -> Found:
        rows = offending(audit, self._table(audit))
        return rows.num_rows, plain_rows(rows.slice(0, SAMPLE))

    def _table(self, audit: Function) -> pa.Table:
        [output] = self._wal.outputs(audit.outputs)
        batches, size = list[pa.RecordBatch](), 0
        for batch in output:
            batches.append(batch)
            size += batch.nbytes
            if size > MOST_BYTES:
                raise AuditFailed(
                    f"audit {audit.name}: output {output.output} is more than {MOST_BYTES:,} bytes in memory, and "
                    f"{audit.function} gets all of it at once: let it be over='spark', then take that by replan"
                )
        return pa.Table.from_batches(batches, output.schema)

    def _in_spark(self, audit: Function) -> Found:
        if self._ask_spark is None:
            raise AuditFailed(f"audit {audit.name} is over a DataFrame, and no Spark is at hand here: say over='arrow'")
        try:
            [result] = self._ask_spark(self._wal, audit.outputs[0], [audit], self._occasion.parameters).values()
        except StageFailed:
            self._wal.check(audit.outputs)  # damaged, it says that, whatever Spark made of it
            raise
        return result


class _Database:
    """The outputs that are asked about, each a table of its name, read when first asked for; in DuckDB's memory or its
    folder of spilled pages. What is asked reaches no file and no network."""

    def __init__(self, context: AuditContext, wal: SealedWal, audits: Sequence[Audit]) -> None:
        self._parameters, self._wal, self._audits = context.parameters, wal, audits
        self._stack = ExitStack()
        self._read: dict[str, int] = {}  # how many columns of each output
        self._link: DuckDBPyConnection | None = None

    def offending(self, audit: Query) -> tuple[int, list[dict[str, Any]]]:
        """Number of rows that a query returns, and a sample of them with all columns."""
        query = Text(audit.query)
        with self._asking(audit) as link:
            parameters = self._wanted(link, audit, query)
            [(rows,)] = link.execute(compose("SELECT count(*) FROM (\n{query}\n)", query=query), parameters).fetchall()
            if not rows:
                return 0, []
            for output in audit.outputs:
                self._load(link, output, whole=True)
            some = compose("SELECT * FROM (\n{query}\n) LIMIT {most}", query=query, most=Text(str(SAMPLE)))
            result = link.execute(some, parameters)
            names = [column[0] for column in result.description or ()]
            return int(rows), [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def differing(self, audit: Matches, expected: pa.Table) -> tuple[int, list[dict[str, Any]]]:
        """Number of groups that differ from the expected ones, and a sample of them."""
        [output] = audit.outputs
        actual = grouped(output, audit.measure, audit.by)
        with self._asking(audit) as link:
            types = link.sql(compose("{found} LIMIT 0", found=actual)).to_arrow_table().schema
            link.register("lockstep_arriving", _typed(audit, expected, types))
            create = "CREATE OR REPLACE TABLE {table} AS SELECT * FROM lockstep_arriving"
            link.execute(compose(create, table=EXPECTED))
            link.unregister("lockstep_arriving")
            result = link.execute(differing(actual, expected_groups(audit.by), audit.by, audit.within))
            names = [column[0] for column in result.description or ()]
            rows = result.fetchall()
            return len(rows), [dict(zip(names, row, strict=True)) for row in rows[:SAMPLE]]

    def number(self, audit: Steady) -> float:
        """The number that a measure gives."""
        with self._asking(audit) as link:
            rows = link.execute(audit.measure, self._wanted(link, audit, audit.measure)).fetchall()
        value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
        number = float(value) if isinstance(value, int | float | Decimal) else math.nan
        if not math.isfinite(number):
            raise AuditFailed(
                f"audit {audit.name}: its measure gives no number: let it give one for no rows, too, such as "
                "coalesce(sum(amount), 0)"
            )
        return number

    def close(self) -> None:
        self._stack.close()

    @contextmanager
    def _asking(self, audit: Audit) -> Iterator[DuckDBPyConnection]:
        """Connected, with the audit's outputs at hand; what is wrong with the question is `AuditFailed`."""
        if self._link is None:
            self._link = self._stack.enter_context(engine())
        import duckdb

        try:
            for output in audit.outputs:
                self._load(self._link, output)
            self._require_columns(audit)
            yield self._link
        except duckdb.OutOfMemoryException:  # of the disk, too
            raise AuditFailed(
                f"audit {audit.name} can't be asked: DuckDB has {MEMORY} of memory, and no room left to spill the rest "
                "in the task's temporary folder (TMPDIR): make room and clear it, or ask less"
            ) from None
        except duckdb.Error as error:
            kind = type(error).__name__
            detail = f": {str(error).splitlines()[0]}" if kind in _SHOWN else ""  # any other may quote a value
            raise AuditFailed(
                f"audit {audit.name} can't be asked, {kind}{detail}; correct it, then take the new one by replan"
            ) from (error if detail else None)

    def _load(self, link: DuckDBPyConnection, output: str, whole: bool = False) -> None:
        """Make the output's table, of the columns that are asked about, or of all."""
        loaded = (existing for existing in self._read if existing != output)
        if twin := next((existing for existing in loaded if existing.casefold() == output.casefold()), None):
            raise AuditFailed(f"SQL can't tell the outputs {twin} and {output} apart: rename one in the transform")
        [batches] = self._wal.outputs([output])
        columns = batches.schema.names if whole else self._columns(output, batches.schema.names)
        if self._read.get(output, 0) >= len(columns):
            return
        if len({name.casefold() for name in columns}) < len(columns):  # DuckDB would take one for the other
            raise AuditFailed(
                f"output {output} has columns whose names differ in case alone, which SQL can't tell apart: rename one "
                "in the transform"
            )
        schema = pa.schema([batches.schema.field(name) for name in columns])
        rows = WatchedBatches(schema, batches.of_columns(columns))
        link.register("lockstep_arriving", rows.reader())
        try:
            link.execute(compose("CREATE OR REPLACE TABLE {output} AS SELECT * FROM lockstep_arriving", output=output))
        except Exception:
            if rows.error is not None:
                raise rows.error from None
            raise
        finally:
            link.unregister("lockstep_arriving")
        self._read[output] = len(columns)

    def _require_columns(self, audit: Audit) -> None:
        """A name that is none of a column's may be a table's, or one of DuckDB's own."""
        if not isinstance(audit, Query) or audit.columns is None:
            return
        [batches] = self._wal.outputs(audit.outputs)
        existing = {name.casefold() for name in batches.schema.names}
        if missing := [name for name in audit.columns if name.casefold() not in existing]:
            raise AuditFailed(
                f"audit {audit.name} asks for the column {', '.join(missing)} of output {batches.output}, which has "
                f"{', '.join(batches.schema.names)}; correct it, then take the new one by replan"
            )

    def _columns(self, output: str, columns: Sequence[str]) -> list[str]:
        """Columns that audits of this output name, in the output's order; all if one doesn't say."""
        names: set[str] = set()
        for audit in self._audits:
            if output in audit.outputs and isinstance(audit, Query | Steady | Matches) and not audit.quarantine:
                if not isinstance(audit, Query) or audit.columns is None:
                    return list(columns)
                names.update(audit.columns)
        return [name for name in columns if name.casefold() in {audit.casefold() for audit in names}] or list(columns)

    def _wanted(self, link: DuckDBPyConnection, audit: Audit, query: str) -> dict[str, object]:
        """The parameters that the query names."""
        statements = link.extract_statements(query)
        if len(statements) != 1:
            raise AuditFailed(f"audit {audit.name} is {len(statements)} statements: give one SELECT")
        names = set(statements[0].named_parameters)
        if unknown := sorted(names - self._parameters.keys()):
            raise AuditFailed(
                f"audit {audit.name} names ${', $'.join(unknown)}: there are ${', $'.join(self._parameters)}"
            )
        return {name: self._parameters[name] for name in names}


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


def task_audits() -> int:
    """Largest output, in bytes, that audits read in the task; Spark reads larger ones. Raises `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_BYTES))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of bytes; 0 leaves all reading to Spark")
    return int(text)


def for_spark(audits: Sequence[Audit], wal: SealedWal) -> dict[str, list[Query]]:
    """{output: queries that Spark evaluates}."""
    limit, queries = task_audits(), dict[str, list[Query]]()
    for audit in audits:
        if not isinstance(audit, Query) or audit.quarantine or audit.asked is None:
            continue
        output = wal.manifest.outputs[audit.outputs[0]]
        if output.home is None and output.bytes > limit and is_alike(audit.asked, output.schema):
            queries.setdefault(output.name, []).append(audit)
    return queries


def is_alike(test: Rule | Key | Newest, schema: pa.Schema) -> bool:
    """True if Spark and DuckDB agree on the result for columns of these types."""
    if len({name.casefold() for name in schema.names}) < len(schema.names):
        return False
    types = {field.name.casefold(): field.type for field in schema}
    match test:
        case Key():
            kinds = [types.get(name.casefold()) for name in test.columns]
            return all(item is not None and not pa.types.is_nested(item) for item in kinds)
        case Newest():
            kind = types.get(test.column.casefold())
            return kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
        case Rule(offence="where"):
            return False
    kind = types.get((test.column or "").casefold())
    values = [*test.values, *(bound for bound in (test.at_least, test.at_most) if bound is not None)]
    return kind is not None and len({*map(type, values)}) <= 1 and all(_compares_alike(kind, item) for item in values)


def _compares_alike(kind: pa.DataType, value: Value) -> bool:
    types = pa.types
    match value:
        case bool():
            return bool(types.is_boolean(kind))
        case int():
            if types.is_decimal(kind):
                return bool(kind.precision <= _DIGITS and abs(value) < 10**9)
            return bool(types.is_signed_integer(kind) and -(2**63) <= value < 2**63)
        case float():
            return bool(types.is_float64(kind))
        case Decimal():
            parts = value.as_tuple()
            exponent = parts.exponent if isinstance(parts.exponent, int) else _DIGITS
            fits = len(parts.digits) + abs(exponent) <= _DIGITS
            return bool(types.is_decimal(kind) and kind.precision <= _DIGITS and fits)
        case date():
            return bool(types.is_timestamp(kind) or types.is_date(kind))
        case str():
            return bool(types.is_string(kind) or types.is_large_string(kind))
    return False

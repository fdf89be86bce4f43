"""Asking audits: SQL by DuckDB in this process, over rows whose bytes are compared with the manifest as they are read.

DuckDB spills what doesn't fit into its memory to a folder that goes with the question. Of an output only those columns
are read that its audits name, unless rows offend; what the seal has counted isn't read at all.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep.audits._matching import EXPECTED, VALUE, differing, grouped
from lockstep.audits._matching import expected as wanted
from lockstep.audits._sql import Text, compose
from lockstep.audits.audit import Audit, Conserved, Function, Matches, Over, Query, RowCount, Steady, Volume
from lockstep.audits.calling import MOST_BYTES, offending, plain_rows
from lockstep.audits.in_spark import AskSpark, Found, for_spark, task_audits
from lockstep.connections.duckdb.engine import MEMORY, WatchedBatches, engine
from lockstep.connections.postgres.connection import read_rows
from lockstep.definition.conservation import UNACCOUNTED
from lockstep.epoch import AuditResult, Interval, Json
from lockstep.errors import AuditFailed, LockstepError, StageFailed, Terminal
from lockstep.wal.reading import SealedWal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_log = logging.getLogger(__name__)
_MOST_GROUPS = 100_000  #: of what a foreign system says
_PATIENCE = timedelta(minutes=10)  #: with its answer
SAMPLE = 20  #: rows that offend, kept of each audit
_SEVERAL = "it takes the place of several epochs, and this is of one"
_SHOWN = ("BinderException", "CatalogException", "ParserException", "PermissionException", "SyntaxException")


@dataclass(frozen=True)
class AuditContext:
    """Of which epoch is asked. `planned_at`: of one that reads a cursor's range again, when that was first planned.
    `before(n)`: of the last n decided ones, the youngest first, the summary of the seal and what audits measured, by
    name. `replaced`: the summaries of those whose place it takes, where these have read more than one epoch's range."""

    epoch: int
    interval: Interval | None
    planned_at: datetime
    before: Callable[[int], Sequence[tuple[Json, Mapping[str, float]]]]
    connections: Mapping[str, str] = field(default_factory=dict)  #: DSNs by id, of what outputs are to match
    replaced: Sequence[Json] = ()

    @property
    def parameters(self) -> dict[str, object]:
        """What a query may name by `$`."""
        return {
            "epoch": self.epoch,
            "interval_start": _naive(self.interval.start) if self.interval else None,
            "interval_end": _naive(self.interval.end) if self.interval else None,
            "planned_at": _naive(self.planned_at),
        }


@dataclass(frozen=True)
class Answer:
    """`sample`: some of the rows that offend, or what was compared. `away`: they all stand in quarantine."""

    result: AuditResult
    sample: list[dict[str, Any]] = field(default_factory=list)
    away: bool = False


def ask(
    audits: Sequence[Audit], occasion: AuditContext, wal: SealedWal, ask_spark: AskSpark | None = None
) -> list[Answer]:
    """Every audit's answer. `ask_spark`: where Spark is at hand, for outputs that are too large for this process.
    Raises `AuditFailed`, `WalCorrupt`, `PackageMissing` without DuckDB."""
    told = _told_by_spark(audits, occasion, wal, ask_spark) if ask_spark is not None else {}
    here = [one for one in audits if one.name not in told]
    _tell_large(here, wal)
    with ExitStack() as held:
        database = _Database(occasion, wal, here)
        held.callback(database.close)
        own = _Own(occasion, wal, ask_spark)
        return [
            own.answer(one) if isinstance(one, Function) else _answer(one, occasion, wal, database, told)
            for one in audits
        ]


def _tell_large(audits: Sequence[Audit], wal: SealedWal) -> None:
    """Which outputs this process reads though they are large: an audit's SQL is DuckDB's, and not Spark's."""
    most, asking = task_audits(), [one for one in audits if isinstance(one, Query | Steady | Matches)]
    for output in wal.manifest.outputs.values():
        asked = [one.name for one in asking if output.name in one.outputs and not one.quarantine]
        if asked and output.bytes > most:
            _log.warning(
                "the task reads output %s, which is %s bytes, for %s; what doesn't fit into memory is spilled to its "
                "temporary folder",
                output.name,
                f"{output.bytes:,}",
                ", ".join(asked),
            )


def _told_by_spark(
    audits: Sequence[Audit], occasion: AuditContext, wal: SealedWal, ask_spark: AskSpark
) -> Mapping[str, Found]:
    """What Spark has found, by audit. Where it fails it tells nothing: this process asks, and says what is wrong."""
    told: dict[str, Found] = {}
    for output, asked in for_spark(audits, wal).items():
        try:
            told |= ask_spark(wal, output, asked, occasion.parameters)
        except Exception as error:
            why = str(error) if isinstance(error, LockstepError) else type(error).__name__  # another may quote a value
            _log.warning("the task reads output %s to audit it, Spark didn't: %s", output, why)
    return told


def _answer(
    audit: Audit, occasion: AuditContext, wal: SealedWal, database: _Database, told: Mapping[str, Found]
) -> Answer:
    match audit:
        case Query(quarantine=True):
            return _away(audit, wal)
        case Query():
            rows, sample = told.get(audit.name) or database.offending(audit)
            return Answer(AuditResult(audit.name, rows, audit.blocking), sample)
        case Matches():
            rows, sample = database.differing(audit, _expected(audit, occasion))
            return Answer(AuditResult(audit.name, rows, audit.blocking), sample)
        case RowCount():
            return _count(audit, wal, several=bool(occasion.replaced))
        case Conserved():
            return _account(audit, wal)
        case Steady() if occasion.replaced:
            return Answer(AuditResult(audit.name, 0, audit.blocking, told=f"not asked: {_SEVERAL}"))
        case Steady():
            return _compare(
                audit, database.number(audit), [known.get(audit.name) for _, known in _earlier(audit, occasion)]
            )
        case Volume():
            [output] = audit.outputs
            value = float(wal.manifest.outputs[output].rows)
            if occasion.replaced:
                return _compare_sum(audit, value, [_rows(summary, output) for summary in occasion.replaced])
            return _compare(audit, value, [_rows(summary, output) for summary, _ in _earlier(audit, occasion)])
    raise AuditFailed(f"audit {audit.name}: nobody knows how to ask a {type(audit).__name__}")


def _expected(audit: Matches, occasion: AuditContext) -> pa.Table:
    """What the foreign system says: the columns of a group, and the value. Raises `SourceUnavailable` where it doesn't
    answer: then there is no verdict, and the epoch waits."""
    where = f"audit {audit.name}, connection {audit.connection}"
    try:
        dsn = occasion.connections[audit.connection]
    except KeyError:
        raise AuditFailed(f"{where}: there is no connection of that id") from None
    start, end = (occasion.interval.start, occasion.interval.end) if occasion.interval else (None, None)
    asked = {"epoch": occasion.epoch, "interval_start": start, "interval_end": end, "planned_at": occasion.planned_at}
    try:
        columns, rows = read_rows(where, dsn, audit.query, asked, max_rows=_MOST_GROUPS, within=_PATIENCE)
    except Terminal as error:
        raise AuditFailed(f"{error}; correct the audit, then take the new one by replan") from error
    names = [*audit.by, "value"]
    if len(columns) != len(names):
        raise AuditFailed(f"{where}: it gave {len(columns)} columns, expected are {len(names)}: {', '.join(names)}")
    values = zip(*rows, strict=True) if rows else [[] for _ in names]
    try:
        compared = pa.table([pa.array(list(one)) for one in values], names=[*audit.by, VALUE])
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
        pa.field(one.name, types.field(at).type) if pa.types.is_null(one.type) else one
        for at, one in enumerate(expected.schema)
    ]
    try:
        return expected.cast(pa.schema(fields))
    except pa.ArrowException as error:
        raise AuditFailed(
            f"audit {audit.name}: a column in which all is null has no type to be compared in ({type(error).__name__})"
        ) from None


def _earlier(audit: Volume, occasion: AuditContext) -> Sequence[tuple[Json, Mapping[str, float]]]:
    return occasion.before(audit.epochs)


def _rows(summary: Json, output: str) -> int | None:
    rows: int | None = summary.get("outputs", {}).get(output, {}).get("rows")
    return rows


def _count(audit: RowCount, wal: SealedWal, several: bool) -> Answer:
    [output] = audit.outputs
    rows, least, most = wal.manifest.outputs[output].rows, audit.at_least, None if several else audit.at_most
    if (least is None or rows >= least) and (most is None or rows <= most):
        left_out = audit.at_most is not None and most is None
        told = f"{rows:,} rows, at most {audit.at_most:,} not asked: {_SEVERAL}" if left_out else None
        return Answer(AuditResult(audit.name, 0, audit.blocking, told=told))
    bounds = " and ".join(
        f"{word} {bound:,}" for word, bound in (("at least", least), ("at most", most)) if bound is not None
    )
    return Answer(AuditResult(audit.name, 1, audit.blocking, told=f"{rows:,} rows, {bounds} expected"))


def _away(audit: Query, wal: SealedWal) -> Answer:
    """Its rows were asked before the seal, and have left. Raises `AuditFailed` for a WAL of which nobody says so."""
    [output] = audit.outputs
    found = wal.manifest.quarantined.get(output)
    if found is None or audit.name not in found.audits:
        raise AuditFailed(
            f"audit {audit.name}: the seal of {wal.folder} doesn't say that it was asked: replan the epoch"
        )
    rows = found.audits[audit.name]
    told = f"{rows:,} row{'s' if rows != 1 else ''} in quarantine" if rows else None
    return Answer(AuditResult(audit.name, rows, False, told=told), away=True)


def _account(audit: Conserved, wal: SealedWal) -> Answer:
    """As the seal has counted: of balances that some output of the audit is part of, those that don't agree."""
    balances = wal.manifest.balances.items()
    found = {name: counts for name, counts in balances if UNACCOUNTED in counts and {*audit.outputs} & {*counts}}
    rows = sum(counts[UNACCOUNTED] for counts in found.values())
    told = [f"{name}: {', '.join(f'{n:,} {term}' for term, n in counts.items())}" for name, counts in found.items()]
    return Answer(AuditResult(audit.name, rows, audit.blocking, told="; ".join(told) or None))


def _compare(audit: Volume, value: float, known: Sequence[float | None]) -> Answer:
    """With the median of what is known of the epochs before; of none, nothing offends."""
    found = [one for one in known if one is not None]
    if not found:
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    return _near(audit, value, statistics.median(found), f"the {len(found)} epochs before")


def _compare_sum(audit: Volume, value: float, known: Sequence[float | None]) -> Answer:
    """With what all have together whose place is taken; if of one it isn't known, nothing offends."""
    found = [one for one in known if one is not None]
    if len(found) < len(known):
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    return _near(audit, value, sum(found), f"the {len(found)} epochs that it replaces")


def _near(audit: Volume, value: float, expected: float, whose: str) -> Answer:
    play = abs(expected) * audit.within
    if expected - play <= value <= expected + play:
        return Answer(AuditResult(audit.name, 0, audit.blocking, value))
    told = f"{value:,.12g}, {whose} let expect {expected - play:,.12g} to {expected + play:,.12g}"
    return Answer(AuditResult(audit.name, 1, audit.blocking, value, told))


class _Own:
    """Functions of users. Each gets rows that were read for it alone: what it makes of them is nobody else's."""

    def __init__(self, occasion: AuditContext, wal: SealedWal, ask_spark: AskSpark | None) -> None:
        self._occasion, self._wal, self._ask_spark = occasion, wal, ask_spark

    def answer(self, audit: Function) -> Answer:
        """Raises `AuditFailed`: what can't be asked has not passed."""
        rows, sample = self._in_spark(audit) if audit.over == Over.SPARK else self._here(audit)
        return Answer(AuditResult(audit.name, rows, audit.blocking), sample)

    def _here(self, audit: Function) -> Found:
        found = offending(audit, self._table(audit))
        return found.num_rows, plain_rows(found.slice(0, SAMPLE))

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
            [found] = self._ask_spark(self._wal, audit.outputs[0], [audit], self._occasion.parameters).values()
        except StageFailed:
            self._wal.check(audit.outputs)  # damaged, it says that, whatever Spark made of it
            raise
        return found


class _Database:
    """The outputs that are asked about, each a table of its name, read when first asked for; in DuckDB's memory or its
    folder of spilled pages. What is asked reaches no file and no network."""

    def __init__(self, occasion: AuditContext, wal: SealedWal, audits: Sequence[Audit]) -> None:
        self._parameters, self._wal, self._audits = occasion.parameters, wal, audits
        self._held = ExitStack()
        self._read: dict[str, int] = {}  # how many columns of each output
        self._link: DuckDBPyConnection | None = None

    def offending(self, audit: Query) -> tuple[int, list[dict[str, Any]]]:
        """How many rows a query gives, and some of them, with all their columns."""
        query = Text(audit.query)
        with self._asking(audit) as link:
            wanted = self._wanted(link, audit, query)
            [(rows,)] = link.execute(compose("SELECT count(*) FROM (\n{query}\n)", query=query), wanted).fetchall()
            if not rows:
                return 0, []
            for output in audit.outputs:
                self._load(link, output, whole=True)
            some = compose("SELECT * FROM (\n{query}\n) LIMIT {most}", query=query, most=Text(str(SAMPLE)))
            found = link.execute(some, wanted)
            names = [column[0] for column in found.description or ()]
            return int(rows), [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def differing(self, audit: Matches, expected: pa.Table) -> tuple[int, list[dict[str, Any]]]:
        """How many groups differ from what was expected, and some of them."""
        [output] = audit.outputs
        found = grouped(output, audit.measure, audit.by)
        with self._asking(audit) as link:
            types = link.sql(compose("{found} LIMIT 0", found=found)).to_arrow_table().schema
            link.register("lockstep_arriving", _typed(audit, expected, types))
            create = "CREATE OR REPLACE TABLE {table} AS SELECT * FROM lockstep_arriving"
            link.execute(compose(create, table=EXPECTED))
            link.unregister("lockstep_arriving")
            told = link.execute(differing(found, wanted(audit.by), audit.by, audit.within))
            names = [column[0] for column in told.description or ()]
            rows = told.fetchall()
            return len(rows), [dict(zip(names, row, strict=True)) for row in rows[:SAMPLE]]

    def number(self, audit: Steady) -> float:
        """The number that a measure gives."""
        with self._asking(audit) as link:
            found = link.execute(audit.measure, self._wanted(link, audit, audit.measure)).fetchall()
        value = found[0][0] if len(found) == 1 and len(found[0]) == 1 else None
        number = float(value) if isinstance(value, int | float | Decimal) else math.nan
        if not math.isfinite(number):
            raise AuditFailed(
                f"audit {audit.name}: its measure gives no number: let it give one for no rows, too, such as "
                "coalesce(sum(amount), 0)"
            )
        return number

    def close(self) -> None:
        self._held.close()

    @contextmanager
    def _asking(self, audit: Audit) -> Iterator[DuckDBPyConnection]:
        """Connected, with the audit's outputs at hand; what is wrong with the question is `AuditFailed`."""
        if self._link is None:
            self._link = self._held.enter_context(engine())
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
            said = f": {str(error).splitlines()[0]}" if kind in _SHOWN else ""  # any other may quote a value
            raise AuditFailed(
                f"audit {audit.name} can't be asked, {kind}{said}; correct it, then take the new one by replan"
            ) from (error if said else None)

    def _load(self, link: DuckDBPyConnection, output: str, whole: bool = False) -> None:
        """Make the output's table, of the columns that are asked about, or of all."""
        others = (other for other in self._read if other != output)
        if twin := next((other for other in others if other.casefold() == output.casefold()), None):
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
        known = {name.casefold() for name in batches.schema.names}
        if missing := [name for name in audit.columns if name.casefold() not in known]:
            raise AuditFailed(
                f"audit {audit.name} asks for the column {', '.join(missing)} of output {batches.output}, which has "
                f"{', '.join(batches.schema.names)}; correct it, then take the new one by replan"
            )

    def _columns(self, output: str, known: Sequence[str]) -> list[str]:
        """Those that audits of this output name, or all of them, in their order."""
        wanted: set[str] = set()
        for one in self._audits:
            if output in one.outputs and isinstance(one, Query | Steady | Matches) and not one.quarantine:
                if not isinstance(one, Query) or one.columns is None:
                    return list(known)
                wanted.update(one.columns)
        return [name for name in known if name.casefold() in {one.casefold() for one in wanted}] or list(known)

    def _wanted(self, link: DuckDBPyConnection, audit: Audit, query: str) -> dict[str, object]:
        """Those of the parameters that the query names."""
        statements = link.extract_statements(query)
        if len(statements) != 1:
            raise AuditFailed(f"audit {audit.name} is {len(statements)} statements: give one SELECT")
        named = set(statements[0].named_parameters)
        if unknown := sorted(named - self._parameters.keys()):
            raise AuditFailed(
                f"audit {audit.name} names ${', $'.join(unknown)}: there are ${', $'.join(self._parameters)}"
            )
        return {name: self._parameters[name] for name in named}


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)

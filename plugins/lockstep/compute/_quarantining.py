"""Rows that audits send to quarantine: taken out of an output as it is written, and written to a folder of their own.

Each row is judged where the output's own job writes it, and counted there: how many offend, by which audit, and a sum
of their hashes. If any do, a second job writes these, and these alone. It computes them once more, so it has to come to
the same number and the same sum: any other row would be lost, or in both places.

`offends` is an audit's rule as a Spark condition: true of the rows that DuckDB finds by the audit's query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import reduce
from operator import add, eq, gt, lt, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from lockstep.audits.audit import Rule, Value, rules_by_output
from lockstep.compute._counting import ObservedFrame
from lockstep.definition.ddl import quote_name
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, StageFailed
from lockstep.wal.request import QuarantineCount

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MARK = "lockstep_offends"  #: while a job runs: a bit for each audit
AUDITS = "lockstep_audits"  #: column of quarantine: the audits that the row offends
_MAX_AUDITS = 63  #: bits of a BIGINT without its sign


def offends(rule: Rule, frame: DataFrame, audit: str) -> Column:
    """A column that is true for rows that offend, else null or false. Raises `InvalidPipeline` for a missing column."""
    if rule.offence == "where":
        return F.expr(f"({rule.condition})")
    matching = [field for field in frame.schema.fields if field.name.casefold() == (rule.column or "").casefold()]
    if len(matching) != 1:
        raise InvalidPipeline(
            f"audit {audit} looks at column {rule.column}, and the output has {len(matching)} of that name; it has "
            f"{', '.join(frame.columns)}: correct the transform, or the audit, and then `lockstep replan`"
        )
    [field] = matching
    column, kind = F.col(quote_name(field.name)), field.dataType
    match rule.offence:
        case "null":
            return column.isNull()
        case "not_in":
            return ~reduce(or_, [_compared(kind, column, value, eq) for value in rule.values])
    bounds = []
    if rule.at_least is not None:
        bounds.append(_compared(kind, column, rule.at_least, lt))
    if rule.at_most is not None:
        bounds.append(_compared(kind, column, rule.at_most, gt))
    return reduce(or_, bounds)


def _compared(kind: DataType, column: Column, value: Value, compare: Callable[[Column, Column], Column]) -> Column:
    """Compare times as instants in any session zone: a time without a zone is in UTC, a date is its first instant."""
    if isinstance(value, date) and isinstance(kind, DateType | TimestampNTZType):
        return compare(column.cast("timestamp_ntz"), F.lit(_naive(value).isoformat(sep=" ")).cast("timestamp_ntz"))
    if isinstance(value, date) and isinstance(kind, TimestampType):
        return compare(column, F.lit(_naive(value).replace(tzinfo=UTC)))
    return compare(column, F.lit(value))


def _naive(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value


@dataclass(frozen=True)
class _Marked:
    """An output with a column of the audits that each row offends; `observed` counts them."""

    frame: DataFrame
    rules: Mapping[str, Rule]
    observed: ObservedFrame

    @classmethod
    def of(cls, output: str, frame: DataFrame, rules: Mapping[str, Rule]) -> _Marked:
        if len(rules) > _MAX_AUDITS:
            raise InvalidPipeline(
                f"output {output}: {len(rules)} audits send rows to quarantine; at most {_MAX_AUDITS} may"
            )
        if reserved := {_MARK, AUDITS} & {name.casefold() for name in frame.columns}:
            raise InvalidPipeline(
                f"output {output}: its columns {sorted(reserved)} are reserved for quarantine: rename them"
            )
        bits = [
            F.when(offends(rule, frame, name), 1 << at).otherwise(0) for at, (name, rule) in enumerate(rules.items())
        ]
        marked = frame.withColumn(_MARK, reduce(add, bits).cast("bigint"))
        by_audit = {f"audit {at}": f"count(CASE WHEN {_MARK} & {1 << at}L <> 0 THEN 1 END)" for at in range(len(rules))}
        offending = f"count(CASE WHEN {_MARK} <> 0 THEN 1 END)"
        counts = {"rows": "count(1)", "offending": offending, **_hashes(frame.schema), **by_audit}
        return cls(marked, rules, ObservedFrame.of(marked, **counts))

    def quarantined(self) -> DataFrame:
        """The rows that offend, with the names of the audits."""
        names = [F.when(F.col(_MARK).bitwiseAND(1 << at) != 0, F.lit(name)) for at, name in enumerate(self.rules)]
        return self.frame.where(f"{_MARK} <> 0").withColumn(AUDITS, F.concat_ws(", ", *names))


@dataclass(frozen=True)
class Quarantining:
    """The rows that one execution sends to quarantine. `rules`: by output and by audit."""

    rules: Mapping[str, Mapping[str, Rule]]
    _marked: dict[str, _Marked] = field(default_factory=dict)

    @classmethod
    def of(cls, specs: Sequence[Json]) -> Quarantining:
        """Read the rules from the audits that the plan froze."""
        return cls(rules_by_output(specs))

    @property
    def offends(self) -> Mapping[str, str]:
        """SQL by output that is true of a marked row that goes to quarantine."""
        return dict.fromkeys(self.rules, f"{_MARK} <> 0")

    def mark(self, outputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Return the transform's outputs, marked, and counted as they are written; forgets an earlier run."""
        self._marked.clear()
        self._marked.update({name: _Marked.of(name, outputs[name], rules) for name, rules in self.rules.items()})
        return {name: self._marked[name].observed.frame if name in self._marked else outputs[name] for name in outputs}

    def keep(self, marked: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        """Return the rows that stay in the outputs, without the mark."""
        return {
            name: frame.where(f"{_MARK} = 0").drop(_MARK) if name in self._marked else frame
            for name, frame in marked.items()
        }

    def frames(self) -> dict[str, DataFrame]:
        """Return the rows that a second job would write, by output."""
        return {name: marked.quarantined() for name, marked in self._marked.items()}

    def settle(self, written: Mapping[str, int], write: Callable[[DataFrame, str], int]) -> dict[str, QuarantineCount]:
        """Write the rows that offend by `write`, after the outputs' jobs, which wrote `written` rows.

        Raises `StageFailed` unless each row is either in the output or in quarantine.
        """
        quarantined = {}
        for output, marked in self._marked.items():
            counts = marked.observed.counts()
            if not counts:
                raise StageFailed(f"Spark wrote output {output} without counting the rows that offend audits")
            rows = int(counts["offending"])
            if written[output] + rows != counts["rows"]:
                raise StageFailed(
                    f"output {output}: of {counts['rows']} rows {written[output]} were written, {rows} offend audits; "
                    "nothing was sealed"
                )
            audits = {name: int(counts[f"audit {at}"]) for at, name in enumerate(marked.rules)}
            if rows:
                again = ObservedFrame.of(marked.quarantined(), **_hashes(marked.frame.drop(_MARK).schema))
                moved = write(again.frame.drop(_MARK), output)
                if (moved, again.counts().get("hashes")) != (rows, counts["hashes"]):
                    recount = f"they were {moved}" if moved != rows else "they were others"
                    raise StageFailed(
                        f"output {output}: {rows} rows offend audits, and computed again for quarantine {recount}; "
                        "nothing was sealed. Is the transform deterministic? Random numbers, the time, and the first "
                        "row without an order are not"
                    )
            quarantined[output] = QuarantineCount(rows, audits)
        return quarantined


def _hashes(schema: StructType) -> dict[str, str]:
    """The SQL sum of the hashes of rows that offend. The same number of rows with the same sum are the same rows, but
    for one chance in 2**64."""
    columns = ", ".join(
        f"{name} IS NULL, {f'CAST({name} AS STRING)' if _has_map(field.dataType) else name}"
        for field in schema.fields
        for name in [quote_name(field.name)]
    )
    row_hash = f"CAST(xxhash64({_MARK}, {columns}) AS DECIMAL(20, 0))"
    return {"hashes": f"coalesce(sum(CASE WHEN {_MARK} <> 0 THEN {row_hash} END), 0)"}


def _has_map(kind: DataType) -> bool:
    """True if the type contains maps or variants, which Spark can't hash."""
    match kind:
        case ArrayType():
            return _has_map(kind.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType | VariantType)

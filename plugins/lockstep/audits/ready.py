"""Ready audits, and `sql` for one's own. Names follow dbt's and SQLMesh's where these have one.

Each gives the rows that offend; nulls never offend but in `not_null` and `fresh_until`. SQL is DuckDB's; an output is a
table of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

from lockstep.audits._sql import Text, Value, compose, identifier, literal
from lockstep.audits.audit import Audit, Conserved, Query, RowCount, Steady, Volume
from lockstep.errors import InvalidPipeline


def not_null(output: str, column: str, *, name: str | None = None, blocking: bool = True) -> Audit:
    """No row lacks `column`."""
    query = compose("SELECT * FROM {output} WHERE {column} IS NULL", output=output, column=column)
    return _query(name, "not_null", output, [column], query, blocking)


def unique(output: str, columns: str | Sequence[str], *, name: str | None = None, blocking: bool = True) -> Audit:
    """No two rows of the epoch agree in all of `columns`; what offends is a key that comes more than once."""
    key = [columns] if isinstance(columns, str) else list(columns)
    if not key:
        raise InvalidPipeline(f"unique({output!r}, …): name at least one column")
    query = compose(
        "SELECT {key}, count(*) AS times FROM {output} WHERE {known} GROUP BY {key} HAVING count(*) > 1",
        output=output,
        key=Text(", ".join(map(identifier, key))),
        known=Text(" AND ".join(f"{identifier(one)} IS NOT NULL" for one in key)),
    )
    return _query(name, "unique", output, key, query, blocking)


def accepted_values(
    output: str, column: str, values: Iterable[Value], *, name: str | None = None, blocking: bool = True
) -> Audit:
    """`column` has one of `values`, or none."""
    accepted = Text(", ".join(map(literal, values)))
    if not accepted:
        raise InvalidPipeline(f"accepted_values({output!r}, {column!r}, …): give at least one value")
    query = compose(
        "SELECT * FROM {output} WHERE {column} NOT IN ({accepted})", output=output, column=column, accepted=accepted
    )
    return _query(name, "accepted_values", output, [column], query, blocking)


def in_range(
    output: str,
    column: str,
    at_least: Value | None = None,
    at_most: Value | None = None,
    *,
    name: str | None = None,
    blocking: bool = True,
) -> Audit:
    """`column` lies between the two, themselves included. NaN lies above every number."""
    value, bounds = identifier(column), []
    if at_least is not None:
        bounds.append(f"{value} < {literal(at_least)}")
    if at_most is not None:
        bounds.append(f"{value} > {literal(at_most)}")
    if not bounds:
        raise InvalidPipeline(f"in_range({output!r}, {column!r}): give at_least, at_most or both")
    query = compose("SELECT * FROM {output} WHERE {outside}", output=output, outside=Text(" OR ".join(bounds)))
    return _query(name, "in_range", output, [column], query, blocking)


def row_count(
    output: str,
    at_least: int | None = 1,
    at_most: int | None = None,
    *,
    name: str | None = None,
    blocking: bool = True,
) -> Audit:
    """The epoch has so many rows. No row is read: the seal has counted them."""
    if at_least is None and at_most is None:
        raise InvalidPipeline(f"row_count({output!r}): give at_least, at_most or both")
    return RowCount(
        name=name or _name("row_count", output),
        outputs=(output,),
        blocking=blocking,
        at_least=at_least,
        at_most=at_most,
    )


def fresh_until(
    output: str,
    column: str,
    within: timedelta = timedelta(),
    *,
    name: str | None = None,
    blocking: bool = True,
) -> Audit:
    """The newest value of a date or time `column` reaches the end of the epoch's interval, or of a pipeline without
    intervals the time at which the epoch was planned, but for `within`. An epoch without rows doesn't."""
    query = compose(
        "SELECT max({column}) AS newest FROM {output} HAVING max({column}) IS NULL "
        "OR CAST(max({column}) AS TIMESTAMP) < coalesce($interval_end, $planned_at) - to_microseconds({within})",
        output=output,
        column=column,
        within=Text(str(within // timedelta(microseconds=1))),
    )
    return _query(name, "fresh_until", output, [column], query, blocking)


def conserved(*outputs: str, name: str | None = None, blocking: bool = True) -> Audit:
    """Rows travel into `outputs` as the pipeline's `conservation` says. Without this audit an epoch in which they don't
    isn't sealed; with it, it is sealed and held. What offends are rows that are lost, or too many."""
    return Conserved(name=name or _name("conserved", *outputs), outputs=outputs, blocking=blocking)


def volume(
    output: str, *, epochs: int = 7, within: float = 0.5, name: str | None = None, blocking: bool = True
) -> Audit:
    """The epoch's rows lie within the share `within` of the median of the last `epochs` decided before it. Without any
    there is nothing to compare with. No row is read: the ledger has the counts of all."""
    return Volume(
        name=name or _name("volume", output), outputs=(output,), blocking=blocking, epochs=epochs, within=within
    )


def steady(
    output: str,
    measure: str,
    *,
    epochs: int = 7,
    within: float = 0.5,
    name: str | None = None,
    blocking: bool = True,
) -> Audit:
    """The same of `measure`, an SQL aggregate over the output, such as `sum(amount)` or
    `count(*) FILTER (WHERE carrier IS NULL)`. Its history begins with the first epoch that has one of that name."""
    return Steady(
        name=name or _name("steady", output, measure),
        outputs=(output,),
        blocking=blocking,
        epochs=epochs,
        within=within,
        measure=compose("SELECT {measure} FROM {output}", measure=Text(measure), output=output),
    )


def sql(name: str, query: str, *, outputs: Sequence[str] | str, blocking: bool = True) -> Audit:
    """One's own: `query` is a SELECT over `outputs`, whose rows are those that offend. It may use $epoch,
    $interval_start, $interval_end and $planned_at, times in UTC without a zone; those of the interval are null in a
    pipeline without."""
    read = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    return Query(name=name, outputs=read, blocking=blocking, query=query.strip().rstrip(";"))


def _query(name: str | None, kind: str, output: str, columns: Sequence[str], query: str, blocking: bool) -> Audit:
    called = name or _name(kind, output, *columns)
    return Query(name=called, outputs=(output,), blocking=blocking, query=query, columns=tuple(dict.fromkeys(columns)))


def _name(kind: str, *parts: str) -> str:
    """`not_null_orders_id`, as dbt would call it."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", "_".join((kind, *parts))).strip("_")[:120]

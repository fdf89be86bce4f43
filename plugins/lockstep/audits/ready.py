"""Ready audits, and `sql` and `function` for one's own. Names follow dbt's and SQLMesh's where these have one.

Each gives the rows that offend; nulls never offend but in `not_null` and `fresh_until`. SQL is DuckDB's; an output is a
table of its name. With `quarantine=True` rows that offend leave the output before the seal: only where one row is
judged by itself. Raises `InvalidPipeline`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lockstep.audits._sql import OWN_NAMES, Text, compose, differing, grouped, identifier, literal
from lockstep.audits.audit import (
    Asked,
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
from lockstep.definition.user_code import reference_to, remember_source
from lockstep.errors import InvalidPipeline


def not_null(
    output: str, column: str, *, name: str | None = None, blocking: bool = True, quarantine: bool = False
) -> Audit:
    """No row lacks `column`."""
    query = compose("SELECT * FROM {output} WHERE {column} IS NULL", output=output, column=column)
    rule = Rule("null", column)
    return _query(name, "not_null", output, [column], query, blocking, rule, quarantine)


def unique(
    output: str,
    columns: str | Sequence[str],
    *,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """No two rows of the epoch agree in all of `columns`; what offends is a key that comes more than once. None of its
    rows goes to quarantine: which one is to stay only the transform can say."""
    key = [columns] if isinstance(columns, str) else list(columns)
    if quarantine:
        raise InvalidPipeline(
            f"unique({output!r}, …) can't send rows to quarantine: of rows with one key nobody has said which is the "
            "right one; choose it in the transform (row_number over the key), or let the audit hold the epoch"
        )
    if not key:
        raise InvalidPipeline(f"unique({output!r}, …): name at least one column")
    query = compose(
        "SELECT {key}, count(*) AS times FROM {output} WHERE {known} GROUP BY {key} HAVING count(*) > 1",
        output=output,
        key=Text(", ".join(map(identifier, key))),
        known=Text(" AND ".join(f"{identifier(column)} IS NOT NULL" for column in key)),
    )
    return _query(name, "unique", output, key, query, blocking, Key(tuple(key)))


def accepted_values(
    output: str,
    column: str,
    values: Iterable[Value],
    *,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """`column` has one of `values`, or none."""
    accepted_list = tuple(values)
    accepted = Text(", ".join(map(literal, accepted_list)))
    if not accepted:
        raise InvalidPipeline(f"accepted_values({output!r}, {column!r}, …): give at least one value")
    query = compose(
        "SELECT * FROM {output} WHERE {column} NOT IN ({accepted})", output=output, column=column, accepted=accepted
    )
    rule = Rule("not_in", column, accepted_list)
    return _query(name, "accepted_values", output, [column], query, blocking, rule, quarantine)


def in_range(
    output: str,
    column: str,
    at_least: Value | None = None,
    at_most: Value | None = None,
    *,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
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
    rule = Rule("outside", column, at_least=at_least, at_most=at_most)
    return _query(name, "in_range", output, [column], query, blocking, rule, quarantine)


def none_where(
    output: str, condition: str, *, name: str | None = None, blocking: bool = True, quarantine: bool = False
) -> Audit:
    """`condition` is true for no row. With `quarantine` it is Spark SQL, evaluated while the rows are written;
    otherwise DuckDB SQL."""
    if not condition.strip():
        raise InvalidPipeline(f"none_where({output!r}, …): say what may be true of no row")
    query = compose("SELECT * FROM {output} WHERE ({condition})", output=output, condition=Text(condition))
    return Query(
        name=name or _name("none_where", output, condition),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
        query=query,
        asked=Rule("where", condition=condition),
    )


def row_count(
    output: str,
    at_least: int | None = 1,
    at_most: int | None = None,
    *,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """The epoch has so many rows. No row is read: the seal has counted them."""
    if at_least is None and at_most is None:
        raise InvalidPipeline(f"row_count({output!r}): give at_least, at_most or both")
    return RowCount(
        name=name or _name("row_count", output),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
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
    quarantine: bool = False,
) -> Audit:
    """The newest value of a date or time `column` reaches the end of the epoch's interval, or of a pipeline without
    intervals the time at which what the epoch reads was first planned, but for `within`. An epoch without
    rows doesn't."""
    query = compose(
        "SELECT max({column}) AS newest FROM {output} HAVING max({column}) IS NULL "
        "OR CAST(max({column}) AS TIMESTAMP) < coalesce($interval_end, $planned_at) - to_microseconds({within})",
        output=output,
        column=column,
        within=Text(str(within // timedelta(microseconds=1))),
    )
    return _query(name, "fresh_until", output, [column], query, blocking, Newest(column, within), quarantine)


def conserved(*outputs: str, name: str | None = None, blocking: bool = True, quarantine: bool = False) -> Audit:
    """Rows travel into `outputs` as the pipeline's `conservation` says. Without this audit an epoch in which they don't
    isn't sealed; with it, it is sealed and held. What offends are rows that are lost, or too many."""
    called, blocks = name or _name("conserved", *outputs), blocking and not quarantine
    return Conserved(name=called, outputs=outputs, blocking=blocks, quarantine=quarantine)


def volume(
    output: str,
    *,
    epochs: int = 7,
    within: float = 0.5,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """The epoch's rows lie within the share `within` of the median of the last `epochs` decided before it. Without any
    there is nothing to compare with. No row is read: the ledger has the counts of all."""
    return Volume(
        name=name or _name("volume", output),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
        epochs=epochs,
        within=within,
    )


def steady(
    output: str,
    measure: str,
    *,
    epochs: int = 7,
    within: float = 0.5,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """Like `volume`, for `measure`: an SQL aggregate over the output, such as `sum(amount)` or `count(*) FILTER (WHERE
    carrier IS NULL)`. The history starts with the first epoch that has an audit of this name."""
    return Steady(
        name=name or _name("steady", output, measure),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
        epochs=epochs,
        within=within,
        measure=compose("SELECT {measure} FROM {output}", measure=Text(measure), output=output),
    )


def sql(
    name: str, query: str, *, outputs: Sequence[str] | str, blocking: bool = True, quarantine: bool = False
) -> Audit:
    """A query of your own: a SELECT over `outputs` that returns the offending rows. It may use $epoch, $interval_start,
    $interval_end and $planned_at, times in UTC without a zone; the interval's are null in a pipeline without
    intervals."""
    read = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    blocks = blocking and not quarantine
    return Query(name=name, outputs=read, blocking=blocks, quarantine=quarantine, query=query.strip().rstrip(";"))


def function(
    output: str,
    check: str | Callable[[Any], Any],
    *,
    over: str = Over.ARROW,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """A function of your own, itself or as "module:function", gets all rows of `output` and returns the offending ones.

    `over="arrow"`: it gets a `pyarrow.Table` in the task and returns a `pyarrow.Table`, or a boolean array with one
    value a row; null means false. `over="spark"`: it gets a DataFrame and returns one. The result has one or more
    columns of the output, and not more rows than it. The function must be importable from the top of a module; a plan
    freezes its version.
    """
    try:
        reference = check if isinstance(check, str) else reference_to(check)
    except InvalidPipeline as error:
        raise InvalidPipeline(f"function({output!r}, …): {error}") from error
    remember_source(reference)
    return Function(
        name=name or _name(reference.rpartition(":")[2], output),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
        function=reference,
        over=over,
    )


@dataclass(frozen=True)
class Foreign:
    """A query at another database: `query`, in its SQL, returns the columns of the groups and one number."""

    connection: str
    query: str


def foreign(connection: str, query: str) -> Foreign:
    """The other side of `matches`: `query` is a SELECT at the PostgreSQL server of `connection`. It returns the columns
    of `by` in their order, then the number. It may use %(epoch)s, %(interval_start)s, %(interval_end)s and
    %(planned_at)s, times with a zone; a percent sign is written %%."""
    return Foreign(connection, query)


def matches(
    output: str,
    measure: str,
    against: str | Foreign,
    *,
    by: str | Sequence[str] = (),
    within: float = 0.0,
    name: str | None = None,
    blocking: bool = True,
    quarantine: bool = False,
) -> Audit:
    """`measure`, an SQL aggregate over the output such as `sum(amount)`, is in each group what it is `against`, give or
    take the share `within` of that: the same of another output of the epoch, or what `foreign` says. `by`: the columns
    of a group; none: all rows are one. What offends is a group that differs, or that one side alone has."""
    key = (by,) if isinstance(by, str) else tuple(by)
    if not (math.isfinite(within) and within >= 0):
        raise InvalidPipeline(f"matches({output!r}, …): within is a share of at least 0, not {within}")
    if reserved := [column for column in key if column.casefold() in OWN_NAMES]:
        raise InvalidPipeline(
            f"matches({output!r}, …): groups can't go by {', '.join(reserved)}: the comparison has columns of that name"
        )
    called, blocks = name or _name("matches", output, measure, *key), blocking and not quarantine
    if isinstance(against, Foreign):
        return Matches(
            name=called,
            outputs=(output,),
            blocking=blocks,
            quarantine=quarantine,
            measure=measure,
            by=key,
            within=float(within),
            connection=against.connection,
            query=against.query.strip().rstrip(";"),
        )
    query = differing(grouped(output, measure, key), grouped(against, measure, key), key, within)
    read = tuple(dict.fromkeys((output, against)))
    return Query(name=called, outputs=read, blocking=blocks, quarantine=quarantine, query=query)


def _query(
    name: str | None,
    kind: str,
    output: str,
    columns: Sequence[str],
    query: str,
    blocking: bool,
    test: Asked | None = None,
    quarantine: bool = False,
) -> Audit:
    return Query(
        name=name or _name(kind, output, *columns),
        outputs=(output,),
        blocking=blocking and not quarantine,
        quarantine=quarantine,
        query=query,
        columns=tuple(dict.fromkeys(columns)),
        asked=test,
    )


def _name(kind: str, *parts: str) -> str:
    """`not_null_orders_id`, as dbt would call it."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", "_".join((kind, *parts))).strip("_")[:120]

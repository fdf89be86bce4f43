"""Calls a user's audit function: the planned version of it, whose result must be rows of the output.

Errors are reported by kind and place, because their text may quote a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from lockstep.audits.audit import Function
from lockstep.definition.user_code import LIVE, describe_place, describe_version, import_function
from lockstep.errors import AuditFailed, InvalidPipeline, Retryable
from lockstep.observability.redaction import cause, describe_raised

MOST_BYTES = 2 << 30  #: of an output in memory, as a function over Arrow gets it
_THEN = "correct it, then take the new one by replan"


def load(audit: Function) -> Callable[[Any], Any]:
    """The function that the plan froze. Raises `AuditFailed` where it is gone, or another one by now."""
    try:
        version, function = describe_version(audit.function), import_function(audit.function)
    except InvalidPipeline as error:
        raise AuditFailed(f"audit {audit.name}: {error}; put it back, or take today's audits by replan") from error
    if version != audit.version:
        edited = "; its file was edited since this process has loaded it: start that anew" if LIVE in version else ""
        raise AuditFailed(
            f"audit {audit.name}: the epoch was planned with version {audit.version} of {audit.function}, and it is "
            f"{version} now{edited}; put the old one back, or take today's by replan"
        )
    return function


def call(audit: Function, rows: Any, passing: type[Exception] = Retryable) -> Any:
    """The result of the audit's function. Raises `AuditFailed`; passes on `Retryable` and exceptions of kind
    `passing`."""
    function = load(audit)
    try:
        return function(rows)
    except (Retryable, passing):
        raise
    except (Exception, SystemExit) as error:  # it is the user's, and ends nothing but the question
        raise failure(audit, error, f" ({describe_place(error, __file__)})") from cause(_plain(error), quotes=True)


def failure(audit: Function, error: BaseException, where: str = "") -> AuditFailed:
    """The error for a function that raised `error`, or whose result did when it was evaluated."""
    return AuditFailed(f"audit {audit.name}: {audit.function} fails: {describe_raised(error)}{where}; {_THEN}")


def _plain(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")


def refuse(audit: Function, gives: str) -> AuditFailed:
    """The error for a result that isn't rows of the output."""
    return AuditFailed(f"audit {audit.name}: {audit.function} gives {gives}; {_THEN}")


def offending(audit: Function, table: pa.Table) -> pa.Table:
    """The rows of the output that offend by a function over Arrow. Raises `AuditFailed`."""
    result = call(audit, table)
    if isinstance(result, pa.Array | pa.ChunkedArray):
        return _chosen(audit, table, result)
    if not isinstance(result, pa.Table):
        raise refuse(
            audit, f"{describe_kind(result)}: give a pyarrow.Table of the rows that offend, or a boolean array"
        )
    require_columns(
        audit,
        zip(result.column_names, result.schema.types, strict=True),
        {field.name: field.type for field in table.schema},
    )
    require_fewer(audit, result.num_rows, table.num_rows)
    return result


def _chosen(audit: Function, table: pa.Table, mask: pa.Array | pa.ChunkedArray) -> pa.Table:
    if not pa.types.is_boolean(mask.type):
        raise refuse(audit, f"an array of {mask.type}: give booleans, one a row")
    if len(mask) != table.num_rows:
        raise refuse(audit, f"{len(mask):,} booleans, and the output has {table.num_rows:,} rows: give one a row")
    return table.filter(mask)


def require_columns(audit: Function, result: Iterable[tuple[str, object]], types: Mapping[str, object]) -> None:
    """Raise `AuditFailed` unless they are columns of the output, one at least, each of its type."""
    columns = list(result)
    strange = [
        f"{name} ({kind})" + (f", which is {types[name]} in the output" if name in types else "")
        for name, kind in columns
        if types.get(name) != kind
    ]
    if strange or not columns:
        gives = f"columns that the output doesn't have: {'; '.join(strange)}" if strange else "rows without a column"
        raise refuse(audit, f"{gives}. Give rows of the output, with any of its columns: {', '.join(types)}")


def require_fewer(audit: Function, offending: int, sealed: int) -> None:
    """Raise `AuditFailed` if more rows offend than there are."""
    if offending > sealed:
        raise refuse(audit, f"{offending:,} rows, and the output has {sealed:,}: give each row that offends once")


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Its rows, for people: a column with values that Python has no type for, such as a date past the year 9999, as
    text, or by its type."""
    columns = [_plain_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError, pa.ArrowException):
        pass
    try:
        return list(column.cast(pa.string()).to_pylist())
    except (ValueError, pa.ArrowException):
        return [f"<{column.type}>"] * len(column)


def describe_kind(value: object) -> str:
    """The value's type, with an article."""
    return "None" if value is None else f"a {type(value).__name__}"

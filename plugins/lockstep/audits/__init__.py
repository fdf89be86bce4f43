"""Audits of an epoch's output, before anything of it is visible: `Pipeline(audits=[…])`."""

from lockstep.audits.audit import Audit, Conserved, Function, Matches, Query, RowCount, Steady, Volume
from lockstep.audits.ready import (
    accepted_values,
    conserved,
    foreign,
    fresh_until,
    function,
    in_range,
    matches,
    none_where,
    not_null,
    row_count,
    sql,
    steady,
    unique,
    volume,
)

__all__ = [
    "Audit",
    "Conserved",
    "Function",
    "Matches",
    "Query",
    "RowCount",
    "Steady",
    "Volume",
    "accepted_values",
    "conserved",
    "foreign",
    "fresh_until",
    "function",
    "in_range",
    "matches",
    "none_where",
    "not_null",
    "row_count",
    "sql",
    "steady",
    "unique",
    "volume",
]

"""Which audits Spark may be asked, of outputs that are too many bytes for one process: those it answers as DuckDB does.

An audit's SQL is DuckDB's, so what is asked in SQL stays in the task. So does a comparison that the two engines make in
different types. A function over a DataFrame goes there whatever the size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from lockstep.audits.audit import Audit, Function, Query
from lockstep.audits.rule import Key, Newest, Rule, Value
from lockstep.errors import NotConfigured
from lockstep.wal.reading import SealedWal

VARIABLE = "LOCKSTEP_AUDIT_BYTES"
_BYTES = 4 << 30  #: what one process reads, hashes and compares in some minutes
_DIGITS = 18  #: of decimals: what they are compared in then has room for both sides

Found: TypeAlias = tuple[int, list[dict[str, Any]]]  #: how many rows a query gives, and some of them
#: Asks Spark audits of one output, with the occasion's parameters: what it found, by the audit's name.
AskSpark: TypeAlias = Callable[[SealedWal, str, Sequence[Query | Function], Mapping[str, object]], Mapping[str, Found]]


def task_audits() -> int:
    """How many bytes of an output its audits read in the task; those of a larger one Spark is asked. Raises
    `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_BYTES))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of bytes; 0 leaves all reading to Spark")
    return int(text)


def for_spark(audits: Sequence[Audit], wal: SealedWal) -> dict[str, list[Query]]:
    """Those that Spark is to be asked, by output."""
    most, found = task_audits(), dict[str, list[Query]]()
    for one in audits:
        if not isinstance(one, Query) or one.quarantine or one.asked is None:
            continue
        output = wal.manifest.outputs[one.outputs[0]]
        if output.home is None and output.bytes > most and is_alike(one.asked, output.schema):
            found.setdefault(output.name, []).append(one)
    return found


def is_alike(asked: Rule | Key | Newest, schema: pa.Schema) -> bool:
    """Whether Spark and DuckDB give one answer, of columns of these types."""
    if len({name.casefold() for name in schema.names}) < len(schema.names):
        return False
    types = {field.name.casefold(): field.type for field in schema}
    match asked:
        case Key():
            found = [types.get(name.casefold()) for name in asked.columns]
            return all(one is not None and not pa.types.is_nested(one) for one in found)
        case Newest():
            kind = types.get(asked.column.casefold())
            return kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
        case Rule(offence="where"):
            return False
    kind = types.get((asked.column or "").casefold())
    values = [*asked.values, *(bound for bound in (asked.at_least, asked.at_most) if bound is not None)]
    return kind is not None and len({*map(type, values)}) <= 1 and all(_compares_alike(kind, one) for one in values)


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
            told = value.as_tuple()
            exponent = told.exponent if isinstance(told.exponent, int) else _DIGITS
            fits = len(told.digits) + abs(exponent) <= _DIGITS
            return bool(types.is_decimal(kind) and kind.precision <= _DIGITS and fits)
        case date():
            return bool(types.is_timestamp(kind) or types.is_date(kind))
        case str():
            return bool(types.is_string(kind) or types.is_large_string(kind))
    return False

"""Columns of bytes decoded by a Python function on Spark's workers."""

from __future__ import annotations

import errno
import importlib
import socket
import ssl
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from gzip import BadGzipFile
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from lockstep.definition.ddl import literal
from lockstep.errors import InvalidPipeline
from lockstep.spark._pyspark import to_arrow_schema
from lockstep.spark.python_readers import ship

FOUND, WHY = "found", "why"


@dataclass(frozen=True)
class Decoder:
    """Decodes the bytes of `column` by `function`, which returns a mapping by the columns of `schema` (Spark DDL), or
    None for no row. If it raises, the bytes are malformed, except for errors of the system, see
    `_says_nothing_of_the_record`."""

    column: str
    into: str
    function: Callable[[bytes], Any]
    schema: str

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))


def load_function(where: str, reference: str) -> Callable[[bytes], Any]:
    """Import the function `module:name`. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise InvalidPipeline(f"{where}: {reference} can't be imported: {error}") from error
    if not callable(function):
        raise InvalidPipeline(f"{where}: {reference} is a {type(function).__name__}, not a function")
    return cast("Callable[[bytes], Any]", function)


def with_decoded(frame: DataFrame, decoders: Sequence[Decoder]) -> DataFrame:
    """Add a column STRUCT<found, why> for each decoder: `found` is the decoded row, or `why` the reason why the bytes
    are malformed, which quotes nothing of them. Null bytes, and bytes decoded to None, have neither.

    Functions travel by value with their package, unless it is an installed package, which workers must have. Raises
    `InvalidPipeline` for a schema that Arrow has no types for.
    """
    ship(_decode)
    added, parts = [], []
    for decoder in decoders:
        _ship_function(decoder.function)
        kind = _type_of(frame, decoder)
        field = StructField(decoder.into, StructType([StructField(FOUND, kind), StructField(WHY, StringType())]))
        added.append(field)
        [arrow] = to_arrow_schema(StructType([field]))
        declared = to_arrow_schema(frame.sparkSession.createDataFrame([], decoder.schema).schema)
        parts.append((decoder.column, decoder.into, decoder.name, decoder.function, arrow.type, pa.struct(declared)))

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for column, into, *how in parts:
                columns[into] = _decode(columns[column].to_pylist(), *how)
            yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    return frame.mapInArrow(cast(Any, decode), StructType([*frame.schema.fields, *added]))


def _type_of(frame: DataFrame, decoder: Decoder) -> StructType:
    """The type of a row, as of `from_json`, where every column is nullable."""
    schema = frame.sparkSession.range(0).selectExpr(f"from_json('', {literal(decoder.schema)}) AS {FOUND}").schema
    kind = schema[FOUND].dataType
    try:
        to_arrow_schema(schema)
    except Exception as error:
        raise InvalidPipeline(f"{decoder.name}: Python can't give {decoder.schema}: {error}") from error
    return cast(StructType, kind)


def _ship_function(function: Callable[[bytes], Any]) -> None:
    """Have Spark pickle the function by value with its package, unless that is installed."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    package = sys.modules.get(module.__name__.partition(".")[0]) if module else None
    file = getattr(module, "__file__", None)
    if package is None or file is None or package.__name__ == "lockstep":
        return
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    if not any(Path(file).resolve().is_relative_to(Path(folder).resolve()) for folder in folders):
        cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]


# --- for the workers, which get this by value: it may use nothing of Lockstep ---

_Fits = Callable[[Any], bool]
#: Arrow's errors for values that don't fit a type.
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)
_MAX_FLOAT = 3.4028235677973366e38  #: greater values are infinite as FLOAT


def _decode(
    values: Sequence[bytes | None],
    name: str,
    function: Callable[[bytes], Any],
    type: pa.StructType,
    declared: pa.StructType | None = None,
) -> pa.StructArray:
    kind = type.field(0).type
    fits = _judge_fields(declared or kind)
    rows: list[dict[str, Any] | None] = []
    whys: list[str | None] = []
    for value in values:
        row, why = (None, None) if value is None else _call(value, name, function)
        if row is not None and (misfitting := next((column for column, fit in fits if not fit(row.get(column))), None)):
            why = _misfit(name, row, kind.field(misfitting))
            row = None
        rows.append(row)
        whys.append(why)
    try:
        structs = pa.array(rows, kind)
    except _MISFITS:
        for number, row in enumerate(rows):
            if row is not None and (field := _unfitting(row, kind)) is not None:
                rows[number], whys[number] = None, _misfit(name, row, field)
        structs = pa.array(rows, kind)
    return pa.StructArray.from_arrays([structs, pa.array(whys, pa.string())], fields=[type.field(0), type.field(1)])


def _call(value: bytes, name: str, function: Callable[[bytes], Any]) -> tuple[dict[str, Any] | None, str | None]:
    try:
        decoded = function(value)
        if decoded is None or isinstance(decoded, Mapping):
            return (None if decoded is None else dict(decoded)), None
    except Exception as error:  # any error of the user's code; its text may quote the record
        if _says_nothing_of_the_record(error):
            raise
        return None, f"{name} raised {error.__class__.__name__}"
    return None, f"{name} returned a {decoded.__class__.__name__}, not a mapping"


#: Errors of connections and timeouts; `ssl` and `socket` have their own classes, and some have only a number.
_OF_CONNECTIONS = (ConnectionError, TimeoutError, ssl.SSLError, socket.gaierror, socket.herror)
_NUMBERS_OF_CONNECTIONS = frozenset(
    {
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT),
        *(errno.ENOTCONN, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.EMFILE, errno.ENFILE),
    }
)


def _says_nothing_of_the_record(error: BaseException) -> bool:
    """True if the task has to fail and be retried, as the same bytes may then be decoded.

    This is so if the system failed, and if any cause of the error is a connection's or a timeout, even if a client has
    wrapped it.
    """
    if isinstance(error, MemoryError | ImportError) or (isinstance(error, OSError) and not _is_of_data(error)):
        return True
    return any(_is_of_connection(cause) for cause in _causes(error))


def _is_of_data(error: OSError) -> bool:
    """True for errors as of Python's decompressors: without a number, which system calls have, and of no subclass,
    which may mean anything."""
    return isinstance(error, BadGzipFile) or (type(error) is OSError and error.errno is None)


def _is_of_connection(error: BaseException) -> bool:
    return isinstance(error, _OF_CONNECTIONS) or (isinstance(error, OSError) and error.errno in _NUMBERS_OF_CONNECTIONS)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, with those of `__context__`, as many clients raise without `from`, or `from None`."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        exception = waiting.pop()
        if exception is None or id(exception) in seen:
            continue
        seen.add(id(exception))
        yield exception
        waiting += [
            exception.__cause__,
            exception.__context__,
            *(exception.exceptions if isinstance(exception, BaseExceptionGroup) else ()),
        ]


def _misfit(name: str, row: Mapping[str, Any], field: pa.Field) -> str:
    return (
        f"{name} returned a {row.get(field.name).__class__.__name__} for column {field.name}, which isn't {field.type}"
    )


def _unfitting(row: Mapping[str, Any], kind: pa.StructType) -> pa.Field | None:
    """The first column with a value that Arrow can't convert; None if all fit."""
    for field in kind:
        try:
            pa.array([row.get(field.name)], field.type)
        except _MISFITS:
            return field
    return None


def _judge(kind: pa.DataType) -> _Fits:
    """A function that is true for None and values of a class that fits the type. Arrow judges only their size: it would
    accept a fraction as a whole number, a time as a date, a number as a time."""
    fits = _judge_value(kind)
    return lambda value: value is None or fits(value)


def _judge_fields(kind: pa.StructType) -> list[tuple[str, _Fits]]:
    return [(field.name, (_judge if field.nullable else _judge_value)(field.type)) for field in kind]


def _judge_value(kind: pa.DataType) -> _Fits:
    if pa.types.is_struct(kind):
        columns = _judge_fields(kind)
        return lambda value: isinstance(value, Mapping) and all(fits(value.get(name)) for name, fits in columns)
    if pa.types.is_map(kind):
        of_key, of_item = _judge(kind.key_type), _judge(kind.item_type)
        return lambda value: isinstance(value, Mapping) and all(of_key(k) and of_item(v) for k, v in value.items())
    if pa.types.is_list(kind):
        fits = _judge(kind.value_type)
        return lambda value: isinstance(value, list | tuple) and all(map(fits, value))
    if pa.types.is_float32(kind):
        return lambda value: (
            _is_number(value, Real) and not (_MAX_FLOAT <= abs(value) < inf or 0 < abs(value) <= 2**-150)
        )
    if pa.types.is_integer(kind):
        return lambda value: _is_number(value, Integral)
    if pa.types.is_floating(kind):
        return lambda value: _is_number(value, Real)
    if pa.types.is_decimal(kind):
        return lambda value: isinstance(value, Decimal) or _is_number(value, Integral)
    if pa.types.is_date(kind):
        return lambda value: isinstance(value, date) and not isinstance(value, datetime)
    classes: Any = {pa.types.is_boolean: bool, pa.types.is_string: str, pa.types.is_binary: (bytes, bytearray)}
    classes |= {pa.types.is_timestamp: datetime, pa.types.is_time: time, pa.types.is_duration: timedelta}
    accepted = next((accepted for is_of, accepted in classes.items() if is_of(kind)), object)
    if not pa.types.is_temporal(kind):
        return lambda value: isinstance(value, accepted)
    # Arrow drops pandas' nanoseconds, and a zone if the type has none
    lost = ("nanosecond", "nanoseconds") if getattr(kind, "tz", None) else ("nanosecond", "nanoseconds", "tzinfo")
    return lambda value: isinstance(value, accepted) and not any(getattr(value, name, None) for name in lost)


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)

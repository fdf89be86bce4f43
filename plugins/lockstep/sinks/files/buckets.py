"""Which folder each row of an epoch goes to; the idea of bucket assigners is Flink's (BucketingSink, FileSink).

A bucket depends on the row and, without an event-time column, on when the epoch was planned: never on a clock, so that
every attempt and every repair gives the same folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from lockstep.definition.user_code import import_function
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline
from lockstep.observability.redaction import cause, describe_raised
from lockstep.sinks.files._bucket_names import NULL, folder_of, needs_escaping, require_bucket, text_of

BY_HOUR = "dt=%Y-%m-%d/hour=%H"
BY_DAY = "dt=%Y-%m-%d"

Codes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True)
class Assigned:
    """The bucket of row n is `buckets[codes[n]]`."""

    buckets: tuple[str, ...]
    codes: Codes


class Buckets(Protocol):
    """An assigner: immutable, and JSON in the plan."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that stand in folder names and not in the files."""

    def to_json(self) -> Json:
        """What `buckets_of` makes the same assigner of."""

    def unfit(self, schema: pa.Schema) -> list[str]:
        """One text for each reason why rows of `schema` can't be assigned or given back."""

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        """ValueError (ArrowInvalid is one) if a row has no bucket."""

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        """The value of a left-out column in every row of `bucket`."""


# --- by time ---------------------------------------------------------------------------------------------------------

_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda at: f"{at.year:04d}",
    "%m": lambda at: f"{at.month:02d}",
    "%d": lambda at: f"{at.day:02d}",
    "%j": lambda at: f"{at.timetuple().tm_yday:03d}",
    "%H": lambda at: f"{at.hour:02d}",
    "%M": lambda at: f"{at.minute:02d}",
}
_MINUTE = 60_000_000  # microseconds
_FIRST, _LAST = (
    int((at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    for at in (datetime.min, datetime.max.replace(microsecond=0))
)


@dataclass(frozen=True)
class ByTime:
    """By a column of timestamps or dates, in UTC; without one, by when the epoch was planned.

    `folders`: the bucket's path, of %Y %m %d %j %H %M. A timestamp without a time zone is taken as UTC; a null goes to
    folders that carry Hive's name for it after their key, `null` without one. The column stays in the files. Raises
    `InvalidPipeline`.
    """

    column: str | None = None
    folders: str = BY_HOUR

    def __post_init__(self) -> None:
        known = set(re.findall("%.?", self.folders))
        if not known or known - set(_DIRECTIVES):
            raise InvalidPipeline(f"folders {self.folders!r}: give a path made of {' '.join(_DIRECTIVES)}")
        try:
            require_bucket(self._rendered(datetime(2013, 1, 1)))
        except ValueError as error:
            raise InvalidPipeline(f"folders {self.folders!r}: {error}") from error

    @property
    def left_out(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Json:
        return {"by": "time", "column": self.column, "folders": self.folders}

    def unfit(self, schema: pa.Schema) -> list[str]:
        keys = [folder.partition("=")[0].lower() for folder in self.folders.split("/") if "=" in folder]
        twice = [f"column {name!r} is also the name of a folder" for name in schema.names if name.lower() in keys]
        if self.column is None:
            return twice
        if schema.names.count(self.column) != 1:
            return [*twice, f"there is no column {self.column!r}"]
        dtype = schema.field(self.column).type
        if types.is_timestamp(dtype) or types.is_date32(dtype):
            return twice
        return [*twice, f"column {self.column!r} is no time: it has the type {dtype}"]

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        if self.column is None:
            bucket = self._rendered(planned.astimezone(UTC))
            return Assigned((bucket,), np.zeros(batch.num_rows, np.int64))
        step = _MINUTE if "%M" in self.folders else 60 * _MINUTE
        column = batch.column(self.column)
        times = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
        starts = times.fill_null(0).to_numpy() // step * step
        found = pa.array(starts, mask=times.is_null().to_numpy(zero_copy_only=False)).dictionary_encode("encode")
        buckets = tuple(self._bucket(start) for start in found.dictionary.to_pylist())
        return Assigned(buckets, _codes(found))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        raise LookupError(f"column {column.name!r} stands in the files")

    def _bucket(self, start: int | None) -> str:
        if start is None:
            return "/".join(_of_a_null(folder) for folder in self.folders.split("/"))
        if not _FIRST <= start <= _LAST:
            raise ValueError(f"column {self.column!r} holds a time outside of the years 1 to 9999")
        return self._rendered(datetime.fromtimestamp(0, UTC) + np.timedelta64(start, "us").item())

    def _rendered(self, at: datetime) -> str:
        return re.sub("%.", lambda found: _DIRECTIVES[found[0]](at), self.folders)


def _of_a_null(folder: str) -> str:
    """Hive's name alone begins with an underscore: readers would skip it."""
    key, equals, value = folder.rpartition("=")
    return f"{key}={NULL}" if equals and "%" in value else "null" if "%" in folder else folder


# --- by columns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class ByColumns:
    """By the values of columns, as Hive partitions: `carrier=AA/month=1`.

    The columns stand in the folder names and not in the files, as Hive and Spark have it. They are texts, integers,
    booleans or dates: types whose values a name gives back. A null has Hive's name; an empty text is refused, since
    readers take it for a null. Raises `InvalidPipeline`.
    """

    columns: tuple[str, ...]

    def __init__(self, *columns: str) -> None:
        bad = [name for name in columns if not name or name[0] in "._" or needs_escaping(name)]
        if not columns or bad or len(set(columns)) < len(columns):
            raise InvalidPipeline(f"buckets by the columns {columns}: name each once, by plain names")
        object.__setattr__(self, "columns", columns)

    @property
    def left_out(self) -> tuple[str, ...]:
        return self.columns

    def to_json(self) -> Json:
        return {"by": "columns", "columns": list(self.columns)}

    def unfit(self, schema: pa.Schema) -> list[str]:
        missing = [f"there is no column {name!r}" for name in self.columns if schema.names.count(name) != 1]
        kept = [schema.field(name) for name in self.columns if schema.names.count(name) == 1]
        found = [f"column {f.name!r} of the type {f.type} has no exact name" for f in kept if not _nameable(f.type)]
        every = [] if set(schema.names) - set(self.columns) else ["no column is left for the files"]
        return missing + found + every

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        first, *others = self.columns
        folders, codes = self._folders(first, batch.column(first))
        for name in others:
            inner, more = self._folders(name, batch.column(name))
            pairs, codes = np.unique(codes * len(inner) + more, return_inverse=True)
            split = [divmod(int(pair), len(inner)) for pair in pairs]
            folders = [f"{folders[outer]}/{inner[last]}" for outer, last in split]
        return Assigned(tuple(folders), codes.astype(np.int64))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        folder = bucket.split("/")[self.columns.index(column.name)]
        return pa.scalar(text_of(folder), pa.string()).cast(column.type)

    def _folders(self, name: str, column: pa.Array) -> tuple[list[str], Codes]:
        found = column.dictionary_encode("encode")
        texts = found.dictionary.cast(pa.string())
        if not texts.cast(column.type).equals(found.dictionary):
            raise ValueError(f"column {name!r} holds a value that its text doesn't give back")
        return [folder_of(name, text) for text in texts.to_pylist()], _codes(found)


def _nameable(dtype: pa.DataType) -> bool:
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(text or types.is_integer(dtype) or types.is_boolean(dtype) or types.is_date32(dtype))


# --- by a function ---------------------------------------------------------------------------------------------------

_SAMPLE = 100  # rows that are asked for twice


@dataclass(frozen=True)
class ByFunction:
    """By a function of your own, `"module:function"`: it takes a RecordBatch and returns one text a row, the bucket.

    A row's bucket may depend on that row alone: a repair asks again, with rows cut into other batches. Part of every
    batch is asked for twice, and two answers are refused. All columns stay in the files. Raises `InvalidPipeline`.
    """

    function: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", self.function):
            raise InvalidPipeline(f"buckets by {self.function!r}: name a function as 'module:function'")

    @property
    def left_out(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Json:
        return {"by": "function", "function": self.function}

    def unfit(self, schema: pa.Schema) -> list[str]:
        try:
            import_function(self.function)
        except InvalidPipeline as error:
            return [str(error)]
        return []

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        answer = self._ask(batch)
        if not self._ask(batch.slice(0, _SAMPLE)).equals(answer.slice(0, _SAMPLE)):
            raise ValueError(f"{self.function} gave two buckets for one row: it may depend on that row alone")
        found = answer.dictionary_encode()
        return Assigned(tuple(found.dictionary.to_pylist()), _codes(found))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        raise LookupError(f"column {column.name!r} stands in the files")

    def _ask(self, batch: pa.RecordBatch) -> pa.Array:
        try:
            answer = import_function(self.function)(batch)
        except Exception as error:  # it is the user's
            raise ValueError(f"{self.function} failed with {describe_raised(error)}") from cause(error, quotes=True)
        found = answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else answer
        if not isinstance(found, pa.Array) or found.type != pa.string() or len(found) != batch.num_rows:
            told = f"{found.type}[{len(found)}]" if isinstance(found, pa.Array) else type(answer).__name__
            raise ValueError(f"{self.function} gave {told} for {batch.num_rows} rows, expected is a text each")
        if found.null_count:
            raise ValueError(f"{self.function} gave no bucket to {found.null_count} rows")
        return found


# --- from the plan ---------------------------------------------------------------------------------------------------


def buckets_of(content: Buckets | Mapping[str, Json]) -> Buckets:
    """The assigner itself, or the one that `to_json` told of. Raises `InvalidPipeline`."""
    match content:
        case ByTime() | ByColumns() | ByFunction():
            return content
        case {"by": "time", "column": column, "folders": folders}:
            return ByTime(column, folders)
        case {"by": "columns", "columns": columns}:
            return ByColumns(*columns)
        case {"by": "function", "function": function}:
            return ByFunction(function)
    raise InvalidPipeline(f"{content!r} is no way to assign buckets: use ByTime, ByColumns or ByFunction")


def _codes(found: pa.DictionaryArray) -> Codes:
    return np.asarray(found.indices.to_numpy(zero_copy_only=False), dtype=np.int64)

"""Assignment of an epoch's rows to folders, after Flink's bucket assigners, and folder names as Hive partitions.

A bucket depends on the row and, without an event-time column, on the time the epoch was planned, never on the clock:
every attempt and every repair gives the same folders. Escaped characters are those of Hive and Spark (`FileUtils`,
`ExternalCatalogUtils`): %XX, as in a URI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import types

from lockstep.definition.user_code import import_function
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline
from lockstep.observability.redaction import cause, describe_raised

NULL = "__HIVE_DEFAULT_PARTITION__"  #: folder name of a null, as in Hive
_MAX_BYTES = 1024  #: of a bucket's name
_MAX_FOLDER_BYTES = 255
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(32))))


def folder_of(key: str, text: str | None) -> str:
    """The folder `key=text`. Raises ValueError for texts that readers take for null."""
    if text == "" or text == NULL:
        raise ValueError(f"column {key!r} holds the text {text!r}, which readers of folder names take for a null")
    return f"{key}={NULL if text is None else escaped(text)}"


def escaped(text: str) -> str:
    """`text` with escaped characters."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def text_of(folder: str) -> str | None:
    """Inverse of `folder_of`."""
    value = folder.partition("=")[2]
    return None if value == NULL else unquote(value)


def needs_escaping(text: str) -> bool:
    return not _ESCAPED.isdisjoint(text)


def require_bucket(bucket: str) -> str:
    """Return `bucket` if it is a valid path below the target; raise ValueError otherwise."""
    if not bucket:
        raise ValueError("the bucket '' has no name")
    if len(bucket.encode()) > _MAX_BYTES:
        raise ValueError(f"the bucket {bucket[:60]!r}… has {len(bucket.encode())} bytes, the limit is {_MAX_BYTES}")
    for folder in bucket.split("/"):
        if problem := _problem(folder):
            raise ValueError(f"the bucket {bucket!r} {problem}")
    return bucket


def _problem(folder: str) -> str | None:
    if not folder:
        return "is absolute, ends with a slash, or has an empty folder"
    if folder[0] in "._":
        return f"has a folder {folder!r}: readers skip names with '.' or '_' in front"
    if any(ord(char) < 32 or ord(char) == 127 for char in folder):
        return "has a control character"
    if len(folder.encode()) > _MAX_FOLDER_BYTES:
        return f"has a folder of {len(folder.encode())} bytes, the limit is {_MAX_FOLDER_BYTES}"
    return None


BY_HOUR = "dt=%Y-%m-%d/hour=%H"
BY_DAY = "dt=%Y-%m-%d"

Codes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True)
class Assigned:
    """Assignment of rows: the bucket of row n is `buckets[codes[n]]`."""

    buckets: tuple[str, ...]
    codes: Codes


class Buckets(Protocol):
    """Assigns rows to buckets: immutable, and JSON in the plan."""

    @property
    def path_columns(self) -> tuple[str, ...]:
        """Columns that are in folder names and not in the files."""

    def to_json(self) -> Json:
        """Input of `buckets_of`."""

    def misfits(self, schema: pa.Schema) -> list[str]:
        """One sentence for each reason why rows of `schema` can't be assigned or restored."""

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        """Assign each row. Raises ValueError (such as ArrowInvalid) if a row has no bucket."""

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        """Value of a path column in every row of `bucket`."""


# --- by time ---------------------------------------------------------------------------------------------------------

_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda time: f"{time.year:04d}",
    "%m": lambda time: f"{time.month:02d}",
    "%d": lambda time: f"{time.day:02d}",
    "%j": lambda time: f"{time.timetuple().tm_yday:03d}",
    "%H": lambda time: f"{time.hour:02d}",
    "%M": lambda time: f"{time.minute:02d}",
}
_MINUTE = 60_000_000  # microseconds
_FIRST, _LAST = (
    int((at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    for at in (datetime.min, datetime.max.replace(microsecond=0))
)


@dataclass(frozen=True)
class ByTime:
    """Folders by a column of timestamps or dates, in UTC; without a column, by the time the epoch was planned.

    `folders`: the bucket's path, of %Y %m %d %j %H %M. A timestamp without a time zone counts as UTC. A null goes to
    folders with Hive's name for it after their key, or to `null` without a key. The column stays in the files. Raises
    `InvalidPipeline`.
    """

    column: str | None = None
    folders: str = BY_HOUR

    def __post_init__(self) -> None:
        directives = set(re.findall("%.?", self.folders))
        if not directives or directives - set(_DIRECTIVES):
            raise InvalidPipeline(f"folders {self.folders!r}: give a path made of {' '.join(_DIRECTIVES)}")
        try:
            require_bucket(self._rendered(datetime(2013, 1, 1)))
        except ValueError as error:
            raise InvalidPipeline(f"folders {self.folders!r}: {error}") from error

    @property
    def path_columns(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Json:
        return {"by": "time", "column": self.column, "folders": self.folders}

    def misfits(self, schema: pa.Schema) -> list[str]:
        keys = [folder.partition("=")[0].lower() for folder in self.folders.split("/") if "=" in folder]
        twice = [f"column {name!r} is also the name of a folder" for name in schema.names if name.lower() in keys]
        if self.column is None:
            return twice
        if schema.names.count(self.column) != 1:
            return [*twice, f"there is no column {self.column!r}"]
        dtype = schema.field(self.column).type
        if types.is_timestamp(dtype) or types.is_date32(dtype):
            return twice
        return [*twice, f"column {self.column!r} isn't a time: it has the type {dtype}"]

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        if self.column is None:
            bucket = self._rendered(planned.astimezone(UTC))
            return Assigned((bucket,), np.zeros(batch.num_rows, np.int64))
        step = _MINUTE if "%M" in self.folders else 60 * _MINUTE
        column = batch.column(self.column)
        times = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
        starts = times.fill_null(0).to_numpy() // step * step
        encoded = pa.array(starts, mask=times.is_null().to_numpy(zero_copy_only=False)).dictionary_encode("encode")
        buckets = tuple(self._bucket(start) for start in encoded.dictionary.to_pylist())
        return Assigned(buckets, _codes(encoded))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        raise LookupError(f"column {column.name!r} is in the files")

    def _bucket(self, start: int | None) -> str:
        if start is None:
            return "/".join(_of_a_null(folder) for folder in self.folders.split("/"))
        if not _FIRST <= start <= _LAST:
            raise ValueError(f"column {self.column!r} holds a time outside of the years 1 to 9999")
        return self._rendered(datetime.fromtimestamp(0, UTC) + np.timedelta64(start, "us").item())

    def _rendered(self, time: datetime) -> str:
        return re.sub("%.", lambda match: _DIRECTIVES[match[0]](time), self.folders)


def _of_a_null(folder: str) -> str:
    """Folder of a null. With a key it is Hive's name; alone that begins with an underscore, and readers would skip
    it."""
    key, equals, value = folder.rpartition("=")
    return f"{key}={NULL}" if equals and "%" in value else "null" if "%" in folder else folder


# --- by columns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class ByColumns:
    """Folders by values of columns, as Hive partitions: `carrier=AA/month=1`.

    The columns are in the folder names and not in the files, as with Hive and Spark. They are texts, integers, booleans
    or dates: types that a name restores exactly. A null gets Hive's name; an empty text is refused, because readers
    take it for null. Raises `InvalidPipeline`.
    """

    columns: tuple[str, ...]

    def __init__(self, *columns: str) -> None:
        bad = [name for name in columns if not name or name[0] in "._" or needs_escaping(name)]
        if not columns or bad or len(set(columns)) < len(columns):
            raise InvalidPipeline(f"buckets by the columns {columns}: name each once, by plain names")
        object.__setattr__(self, "columns", columns)

    @property
    def path_columns(self) -> tuple[str, ...]:
        return self.columns

    def to_json(self) -> Json:
        return {"by": "columns", "columns": list(self.columns)}

    def misfits(self, schema: pa.Schema) -> list[str]:
        missing = [f"there is no column {name!r}" for name in self.columns if schema.names.count(name) != 1]
        columns = [schema.field(name) for name in self.columns if schema.names.count(name) == 1]
        unnameable = [
            f"column {f.name!r} of the type {f.type} has no exact name" for f in columns if not _nameable(f.type)
        ]
        empty = [] if set(schema.names) - set(self.columns) else ["no column is left for the files"]
        return missing + unnameable + empty

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        first, *rest = self.columns
        folders, codes = self._folders(first, batch.column(first))
        for name in rest:
            inner, more = self._folders(name, batch.column(name))
            pairs, codes = np.unique(codes * len(inner) + more, return_inverse=True)
            split = [divmod(int(pair), len(inner)) for pair in pairs]
            folders = [f"{folders[outer]}/{inner[last]}" for outer, last in split]
        return Assigned(tuple(folders), codes.astype(np.int64))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        folder = bucket.split("/")[self.columns.index(column.name)]
        return pa.scalar(text_of(folder), pa.string()).cast(column.type)

    def _folders(self, name: str, column: pa.Array) -> tuple[list[str], Codes]:
        encoded = column.dictionary_encode("encode")
        texts = encoded.dictionary.cast(pa.string())
        if not texts.cast(column.type).equals(encoded.dictionary):
            raise ValueError(f"column {name!r} holds a value that can't be restored from its text")
        return [folder_of(name, text) for text in texts.to_pylist()], _codes(encoded)


def _nameable(dtype: pa.DataType) -> bool:
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(text or types.is_integer(dtype) or types.is_boolean(dtype) or types.is_date32(dtype))


# --- by a function ---------------------------------------------------------------------------------------------------

_SAMPLE = 100  # rows per batch that the function is called for twice


@dataclass(frozen=True)
class ByFunction:
    """Folders by a function, `"module:function"`, that takes a RecordBatch and returns one text per row, the bucket.

    A row's bucket may depend on that row alone: a repair calls the function again, with rows in other batches. The
    function is called twice for part of every batch, and different results are refused. All columns stay in the files.
    Raises `InvalidPipeline`.
    """

    function: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", self.function):
            raise InvalidPipeline(f"buckets by {self.function!r}: name a function as 'module:function'")

    @property
    def path_columns(self) -> tuple[str, ...]:
        return ()

    def to_json(self) -> Json:
        return {"by": "function", "function": self.function}

    def misfits(self, schema: pa.Schema) -> list[str]:
        try:
            import_function(self.function)
        except InvalidPipeline as error:
            return [str(error)]
        return []

    def assign(self, batch: pa.RecordBatch, planned: datetime) -> Assigned:
        answer = self._ask(batch)
        if not self._ask(batch.slice(0, _SAMPLE)).equals(answer.slice(0, _SAMPLE)):
            raise ValueError(f"{self.function} returned two buckets for one row: it must depend on that row alone")
        encoded = answer.dictionary_encode()
        return Assigned(tuple(encoded.dictionary.to_pylist()), _codes(encoded))

    def restore(self, bucket: str, column: pa.Field) -> pa.Scalar:
        raise LookupError(f"column {column.name!r} is in the files")

    def _ask(self, batch: pa.RecordBatch) -> pa.Array:
        try:
            answer = import_function(self.function)(batch)
        except Exception as error:  # it is the user's
            raise ValueError(f"{self.function} failed with {describe_raised(error)}") from cause(error, quotes=True)
        buckets = answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else answer
        if not isinstance(buckets, pa.Array) or buckets.type != pa.string() or len(buckets) != batch.num_rows:
            description = f"{buckets.type}[{len(buckets)}]" if isinstance(buckets, pa.Array) else type(answer).__name__
            raise ValueError(f"{self.function} returned {description} for {batch.num_rows} rows, not one text per row")
        if buckets.null_count:
            raise ValueError(f"{self.function} returned no bucket for {buckets.null_count} rows")
        return buckets


# --- from the plan ---------------------------------------------------------------------------------------------------


def buckets_of(content: Buckets | Mapping[str, Json]) -> Buckets:
    """The assigner itself, or the one that `to_json` describes. Raises `InvalidPipeline`."""
    match content:
        case ByTime() | ByColumns() | ByFunction():
            return content
        case {"by": "time", "column": column, "folders": folders}:
            return ByTime(column, folders)
        case {"by": "columns", "columns": columns}:
            return ByColumns(*columns)
        case {"by": "function", "function": function}:
            return ByFunction(function)
    raise InvalidPipeline(f"{content!r} doesn't assign buckets: use ByTime, ByColumns or ByFunction")


def _codes(encoded: pa.DictionaryArray) -> Codes:
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)

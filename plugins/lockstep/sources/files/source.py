"""Files as a source: those of an interval's path template, or those that are new in a watched folder."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lockstep.connections.names import Dataset, dataset_at
from lockstep.connections.object_store.address import is_object_store
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.files._lines import require_lines
from lockstep.sources.files.file_systems import file_system_of, is_mounted
from lockstep.sources.files.open_source import OpenFileSnapshot, OpenFileSource
from lockstep.sources.files.paths import interval_fields
from lockstep.sources.records import Reading

Format = Literal["csv", "json", "parquet", "text"]
_FORMATS = ("csv", "json", "parquet", "text")
#: RFC 4180: a quote inside a quoted field is doubled. Spark's default, a backslash, calls such rows malformed.
_CSV_DEFAULTS = {"header": "true", "escape": '"'}
#: An empty field is NULL, and "" the empty text; for Spark both are NULL. No file contains this nullValue.
_CSV_EMPTY = {"emptyValue": "", "nullValue": "\ufdd0lockstep\ufdd0"}
#: Options, in lower case, with which Spark would read other rows than the frozen files', or hide malformed ones.
_OURS = frozenset(
    {
        *("mode", "columnnameofcorruptrecord", "columnpruning", "enforceschema", "badrecordspath", "inferschema"),
        *("ignoremissingfiles", "ignorecorruptfiles", "pathglobfilter", "recursivefilelookup", "modifiedbefore"),
        *("modifiedafter", "path", "paths", "linesep", "comment", "unescapedquotehandling", "timezone"),
        *("enabledatetimeparsingfallback",),
    }
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileSource(Source):
    """Files on a mounted file system, on HDFS or in an object store.

    `path`: a mounted path, where relative paths start at LOCKSTEP_HOME or the current folder; `hdfs://cluster/path`; or
    `s3://bucket/prefix` and the like (see `Address`), where `?` starts options and isn't a wildcard. With
    {interval_start…} or {interval_end…} (str.format with datetimes in `timezone`; may contain `*`, `?`, `**`) it is an
    interval source. Otherwise it is a cursor source that watches a folder or pattern: each file belongs to one epoch,
    oldest first by time of change. Names, including folders below a wildcard, that start with "." or "_", or end in
    .tmp, .inprogress or .crc, are ignored. A file that changes after an epoch read it isn't read again.

    `schema`: Spark DDL; CSV headers must match it. `options`: Spark's reader options (CSV defaults: `header` true,
    `escape` a double quote). `missing`: whether an interval without files is an error or empty. `spans`: the longest
    interval that one name of the path covers; the default is the finest unit of time in it. `on_bad_records`: malformed
    rows fail the epoch, or are quarantined beside the WAL. `grow`: read the lines that writers append to files. `once`:
    read everything in one epoch, and nothing later. `hash`: also freeze the files' sha256. `formerly`: former paths of
    the watched folder, under which files were read. `max_files_per_epoch`, `max_bytes_per_epoch`: limits for watched
    folders.

    Positions are `{"files": [{"path", "size", "mtime_ns"[, "etag"][, "sha256"][, "known_as"]}, …], "roots"}`; roots are
    the present and former root folders. Those of intervals have `"expects"`, the pattern of the files; growing files
    have `"from"`, `"to"`, `"digest"`. Raises `InvalidPipeline`.
    """

    path: str = field(kw_only=False)
    format: Format = "csv"
    schema: str | None = None
    watch: bool = False
    once: bool = False
    grow: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    missing: Literal["error", "empty"] = "error"
    spans: timedelta | None = None
    on_bad_records: Literal["fail", "quarantine"] = "fail"
    hash: bool = False
    max_files_per_epoch: int | None = None
    max_bytes_per_epoch: int | None = None
    formerly: str | Sequence[str] = ()
    timezone: str = "UTC"
    identity: KeyedBy = field(init=False)
    operational: ClassVar[frozenset[str]] = frozenset(
        {
            *("format", "schema", "options", "on_bad_records", "missing", "hash", "watch", "once", "grow", "formerly"),
            *("max_files_per_epoch", "max_bytes_per_epoch", "spans", "timezone"),
        }
    )

    def __post_init__(self) -> None:
        file_system_of(self.path)  # first, as other errors could show a path with a secret
        formerly = (self.formerly,) if isinstance(self.formerly, str) else tuple(self.formerly)
        object.__setattr__(self, "formerly", formerly)
        fields = interval_fields(self.path)
        if self.watch and fields:
            raise InvalidPipeline(f"source {self.path!r}: a watched folder has no {sorted(fields)}")
        object.__setattr__(self, "identity", KeyedBy.INTERVAL if fields else KeyedBy.CURSOR)
        self._require_sound_reading()
        if self.timezone != "UTC" and not fields:
            raise InvalidPipeline(f"source {self.path!r}: timezone is only for paths with an interval")
        try:
            if self.timezone != "UTC":  # don't open a time zone file while a DAG is parsed
                ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidPipeline(
                f"source {self.path!r}: unknown timezone {self.timezone!r}: use a name like 'Europe/London'"
            ) from error
        if self.missing not in ("error", "empty") or self.on_bad_records not in ("fail", "quarantine"):
            raise InvalidPipeline(
                f"source {self.path!r}: missing must be 'error' or 'empty', on_bad_records 'fail' or 'quarantine'"
            )
        caps = (self.max_files_per_epoch, self.max_bytes_per_epoch)
        if any(cap is not None and cap < 1 for cap in caps):
            raise InvalidPipeline(f"source {self.path!r}: caps per epoch must be at least 1, are {caps}")
        if self.identity is KeyedBy.INTERVAL and caps != (None, None):
            raise InvalidPipeline(f"source {self.path!r}: an interval is read whole; caps are for watched folders")
        if isinstance(self.spans, int | float):
            object.__setattr__(self, "spans", timedelta(seconds=self.spans))  # seconds, as plans store it
        if self.spans is not None and (self.identity is KeyedBy.CURSOR or self.spans <= timedelta()):
            raise InvalidPipeline(f"source {self.path!r}: spans is {self.spans}; it must be the length of an interval")
        self._require_sound_watch(caps)

    def _require_sound_watch(self, caps: tuple[int | None, int | None]) -> None:
        if (self.once or self.grow or self.formerly) and self.identity is KeyedBy.INTERVAL:
            raise InvalidPipeline(
                f"source {self.path!r}: once, grow and formerly are for watched folders, not for intervals"
            )
        if self.once and (self.grow or caps != (None, None)):
            raise InvalidPipeline(
                f"source {self.path!r}: once reads everything in one epoch, and nothing later: don't set caps or grow"
            )
        for folder in self.formerly:
            file_system_of(folder)
        if self.grow:
            require_lines(self.path, self.reading)
        if self.grow and not is_mounted(self.path):
            raise InvalidPipeline(
                f"source {self.path!r}: grow requires a mounted folder (objects are replaced): don't set grow, and "
                "have the writer create new files"
            )

    def _require_sound_reading(self) -> None:
        if self.format not in _FORMATS:
            raise InvalidPipeline(f"source {self.path!r}: format is {self.format!r}, must be one of {_FORMATS}")
        if reserved := sorted(name for name in self.options if name.lower() in _OURS):
            raise InvalidPipeline(f"source {self.path!r}: options {reserved} can't be set: rows would be lost silently")
        may_be_empty = self.identity is KeyedBy.CURSOR or self.missing == "empty"
        if self.schema is None and (self.format in ("csv", "json") or (self.format == "parquet" and may_be_empty)):
            raise InvalidPipeline(f"source {self.path!r}: give a schema (Spark DDL: 'id BIGINT, name STRING')")
        if self.schema is not None and self.format == "text":
            raise InvalidPipeline(f"source {self.path!r}: text has one column, `value STRING`; don't set a schema")
        reading = self.reading
        multi_line = self.format == "csv" and reading.option("multiline", "false").lower() == "true"
        if multi_line and reading.option("escape", "") != reading.option("quote", '"'):
            raise InvalidPipeline(
                f"source {self.path!r}: with multiLine, escape must be the quote, or rows could be lost"
            )
        if reading.marks:
            _ = reading.checked_schema.schema  # refuses unsupported types here, not in Spark's job

    @property
    def reading(self) -> Reading:
        """The settings by which Spark reads the files."""
        set_names = {name.lower() for name in self.options}
        defaults = _CSV_DEFAULTS | _CSV_EMPTY if self.format == "csv" else {}
        options = {name: value for name, value in defaults.items() if name.lower() not in set_names} | dict(
            self.options
        )
        for name in options:
            if name.lower() in ("encoding", "charset"):
                options[name] = charset_of(self.path, self.format, options[name])
        if self.format == "json":  # UTF-8 is the default; if set, Spark would convert numbers read as text to doubles
            options = {name: value for name, value in options.items() if name.lower() not in ("encoding", "charset")}
        return Reading(self.format, self.schema, options)

    # --- identity ---

    def reads_from(self) -> str:
        return f"files {self.path.partition('?')[0] if is_object_store(self.path) else self.path}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        """Return the folder: the path up to the first part with a field or wildcard."""
        place = self.path.partition("?")[0] if is_object_store(self.path) else self.path
        fixed = re.split(r"[{*?\[]", place, maxsplit=1)[0]
        folder = fixed if fixed == place else fixed.rpartition("/")[0]
        return (dataset_at(folder or "."),)

    def why_no_snapshot(self) -> str | None:
        if (self.max_files_per_epoch, self.max_bytes_per_epoch) != (None, None):
            return "a snapshot has all existing files, and caps exclude some of them"
        if self.once or self.formerly:
            return "once and formerly say which files were read before, and a snapshot has all existing files"
        return None

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenFileSource(self, context)

    def open_snapshot(self, context: SourceContext) -> OpenFileSource:
        return OpenFileSnapshot(self, context)


def charset_of(where: str, format: str, encoding: str) -> str:
    """Return Java's name of a Python codec with one byte per character, or of UTF-8. Raises `InvalidPipeline`."""
    try:
        codec = codecs.lookup(encoding).name
    except LookupError:
        codec = encoding
    java = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8"}
    if format == "csv":
        java |= {"ascii": "US-ASCII", "koi8-r": "KOI8-R", "koi8-u": "KOI8-U"}
        java |= {f"iso8859-{n}": f"ISO-8859-{n}" for n in (*range(1, 10), 13, 15)} | {
            f"cp{n}": f"windows-{n}" for n in range(1250, 1259)
        }
    if codec not in java:
        raise InvalidPipeline(
            f"source {where!r}: encoding {encoding!r} isn't supported for {format}: convert the files to UTF-8, or use "
            f"one of {', '.join(sorted(java))}"
        )
    return java[codec]

"""Files as a source: those an interval's path template means, or those that are new in a watched folder."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lockstep.connections.dataset import Dataset
from lockstep.connections.folder_dataset import dataset_at
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
#: Nothing is NULL, and "" the empty text; for Spark both are NULL. No file has the text that means NULL then.
_CSV_EMPTY = {"emptyValue": "", "nullValue": "\ufdd0lockstep\ufdd0"}
#: Options, in small letters, with which Spark would read other rows than the frozen files hold, or hide bad ones.
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
    """Files on a mounted file system, where relative paths start at LOCKSTEP_HOME, or at the current folder; of HDFS,
    `hdfs://cluster/path`; or objects of a store, `s3://bucket/prefix`, which `Address` understands; there `?` begins
    its options and is no wildcard.

    `path` with {interval_start…} or {interval_end…} (str.format with datetimes in `timezone`; may hold `*`, `?`, `**`)
    gives an interval source. Any other path is watched: a folder or pattern whose files each belong to one epoch, the
    oldest first, whatever their names; a cursor source. Names that start with "." or "_", those of folders below a
    wildcard, too, or end in .tmp, .inprogress or .crc are not there yet. A file that changes after an epoch took it is
    not read again.

    `schema`: Spark DDL; CSV headers must agree with it. `options`: Spark's reader options (CSV: `header` is true and
    `escape` a double quote unless you say otherwise). `missing`: what an interval without a file means.
    `spans`: the longest interval whose data one name of the path holds; unless given, the finest unit of time in it.
    `on_bad_records`: a row that doesn't parse fails the epoch, or goes to quarantine beside the WAL. `hash`: also
    freeze the files' sha256. `formerly`: what the watched folder was called when files of it were read, if that folder
    isn't there any more under that name.
    Positions are `{"files": [{"path", "size", "mtime_ns"[, "etag"][, "sha256"][, "known_as"]}, …], "roots"}`, the roots
    being the folders that they are, or were, below; of an interval also `"expects"`: where its files were looked for;
    growing files also have `"from"`, `"to"`, `"digest"`. Raises `InvalidPipeline`.
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
        file_system_of(self.path)  # before anything could repeat a path with a secret in it
        formerly = (self.formerly,) if isinstance(self.formerly, str) else tuple(self.formerly)
        object.__setattr__(self, "formerly", formerly)
        fields = interval_fields(self.path)
        if self.watch and fields:
            raise InvalidPipeline(f"source {self.path!r}: a watched folder has no {sorted(fields)}")
        object.__setattr__(self, "identity", KeyedBy.INTERVAL if fields else KeyedBy.CURSOR)
        self._require_sound_reading()
        if self.timezone != "UTC" and not fields:
            raise InvalidPipeline(f"source {self.path!r}: timezone is for paths with an interval; leave it away")
        try:
            if self.timezone != "UTC":  # whose file isn't opened while a DAG is parsed
                ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidPipeline(
                f"source {self.path!r}: timezone {self.timezone!r} isn't known here: say one like 'Europe/London'"
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
            object.__setattr__(self, "spans", timedelta(seconds=self.spans))  # as a plan has it
        if self.spans is not None and (self.identity is KeyedBy.CURSOR or self.spans <= timedelta()):
            raise InvalidPipeline(f"source {self.path!r}: spans is {self.spans}; it is a length of intervals")
        self._require_sound_watch(caps)

    def _require_sound_watch(self, caps: tuple[int | None, int | None]) -> None:
        if (self.once or self.grow or self.formerly) and self.identity is KeyedBy.INTERVAL:
            raise InvalidPipeline(
                f"source {self.path!r}: once, grow and formerly are for watched folders, not for intervals"
            )
        if self.once and (self.grow or caps != (None, None)):
            raise InvalidPipeline(
                f"source {self.path!r}: once takes everything in one epoch, and nothing later: leave caps and grow away"
            )
        for folder in self.formerly:
            file_system_of(folder)
        if self.grow:
            require_lines(self.path, self.reading)
        if self.grow and not is_mounted(self.path):
            raise InvalidPipeline(
                f"source {self.path!r}: only files of mounted folders are followed as they grow (objects are "
                "replaced): leave grow away, and have the writer put new files"
            )

    def _require_sound_reading(self) -> None:
        if self.format not in _FORMATS:
            raise InvalidPipeline(f"source {self.path!r}: format is {self.format!r}, must be one of {_FORMATS}")
        if taken := sorted(name for name in self.options if name.lower() in _OURS):
            raise InvalidPipeline(f"source {self.path!r}: options {taken} are Lockstep's: rows would be lost unseen")
        may_be_empty = self.identity is KeyedBy.CURSOR or self.missing == "empty"
        if self.schema is None and (self.format in ("csv", "json") or (self.format == "parquet" and may_be_empty)):
            raise InvalidPipeline(f"source {self.path!r}: give a schema (Spark DDL: 'id BIGINT, name STRING')")
        if self.schema is not None and self.format == "text":
            raise InvalidPipeline(f"source {self.path!r}: text has one column, `value STRING`; leave the schema away")
        quote, whole = self.reading.option("quote", '"'), self.reading.option("multiline", "false").lower() == "true"
        if self.format == "csv" and whole and self.reading.option("escape", "") != quote:
            raise InvalidPipeline(
                f"source {self.path!r}: with multiLine, escape must be the quote, or rows could be lost"
            )
        if self.reading.marks:
            _ = self.reading.strict.schema  # or what no text can be checked as is refused only by Spark's job

    @property
    def reading(self) -> Reading:
        """How Spark reads the files."""
        given = {name.lower() for name in self.options}
        defaults = _CSV_DEFAULTS | _CSV_EMPTY if self.format == "csv" else {}
        options = {name: value for name, value in defaults.items() if name.lower() not in given} | dict(self.options)
        for name in options:
            if name.lower() in ("encoding", "charset"):
                options[name] = charset_of(self.path, self.format, options[name])
        if self.format == "json":  # UTF-8 as it is; said, Spark would give numbers as their doubles where it reads text
            options = {name: value for name, value in options.items() if name.lower() not in ("encoding", "charset")}
        return Reading(self.format, self.schema, options)

    # --- what it is ---

    def reads_from(self) -> str:
        return f"files {self.path.partition('?')[0] if is_object_store(self.path) else self.path}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        """The folder: what comes before the first part that is filled in, or stands for many names."""
        place = self.path.partition("?")[0] if is_object_store(self.path) else self.path
        fixed = re.split(r"[{*?\[]", place, maxsplit=1)[0]
        folder = fixed if fixed == place else fixed.rpartition("/")[0]
        return (dataset_at(folder or "."),)

    def why_no_snapshot(self) -> str | None:
        if (self.max_files_per_epoch, self.max_bytes_per_epoch) != (None, None):
            return "a snapshot has all files that are there, and caps leave some of them away"
        if self.once or self.formerly:
            return "once and formerly say which files were read before, and a snapshot has all that are there"
        return None

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenFileSource(self, context)

    def open_snapshot(self, context: SourceContext) -> OpenFileSource:
        return OpenFileSnapshot(self, context)


def charset_of(where: str, format: str, encoding: str) -> str:
    """What Java calls a codec of Python's, of one byte a character or UTF-8. Raises `InvalidPipeline`."""
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
            f"source {where!r}: encoding {encoding!r} isn't read from {format}: convert the files to UTF-8, or say one "
            f"of {', '.join(sorted(java))}"
        )
    return java[codec]

"""Files as a source: those an interval's path template means, or those that are new in a watched folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from lockstep.epoch import ChangedFile, Claim, Identity, Interval, Position
from lockstep.errors import IntervalMissing, InvalidPipeline, SourceNotReady
from lockstep.home import absolute
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.files._changes import find_changed, find_late
from lockstep.sources.files._frozen_file import FrozenFile
from lockstep.sources.files._growth import FrozenRange
from lockstep.sources.files._lines import has_header, read_ranges, require_lines
from lockstep.sources.files._paths import (
    interval_fields,
    pattern_of,
    pattern_of_all,
    require_local,
    require_readable,
)
from lockstep.sources.files._watched_folder import WatchedFolder
from lockstep.sources.files.places import EXPECTS, ROOTS, Places, require_one_name
from lockstep.sources.records import OpenRecordSource, Reading, Records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Format = Literal["csv", "json", "parquet", "text"]
_FORMATS = ("csv", "json", "parquet", "text")
#: RFC 4180: a quote inside a quoted field is doubled. Spark's default, a backslash, calls such rows malformed.
_CSV_DEFAULTS = {"header": "true", "escape": '"'}
#: Options, in small letters, with which Spark would read other rows than the frozen files hold, or hide bad ones.
_OURS = frozenset(
    {
        *("mode", "columnnameofcorruptrecord", "columnpruning", "enforceschema", "badrecordspath", "inferschema"),
        *("ignoremissingfiles", "ignorecorruptfiles", "pathglobfilter", "recursivefilelookup", "modifiedbefore"),
        *("modifiedafter", "path", "paths"),
    }
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileSource(Source):
    """Files on a mounted file system; relative paths start at LOCKSTEP_HOME, or at the current folder.

    `path` with {interval_start…} or {interval_end…} (str.format with datetimes in UTC; may hold `*`, `?`, `**`) gives
    an interval source. Any other path is watched: a folder or pattern whose files each belong to one epoch, the oldest
    first, whatever their names; a cursor source. Names that start with "." or "_", or end in .tmp, .inprogress or .crc
    are not there yet. A file that changes after an epoch took it is not read again.

    `schema`: Spark DDL; CSV headers must agree with it. `options`: Spark's reader options (CSV: `header` is true and
    `escape` a double quote unless you say otherwise). `missing`: what an interval without a file means.
    `on_bad_records`: a row that doesn't parse fails the epoch, or goes to quarantine beside the WAL. `hash`: also
    freeze the files' sha256. `formerly`: what the watched folder was called when files of it were read, if that folder
    isn't there any more under that name.
    Positions are {"files": [{"path", "size", "mtime_ns"[, "sha256"][, "known_as"]}, …], "roots": the folders that they
    are, or were, below}, and of an interval also {"expects": where its files were looked for}; growing files also have
    {"from", "to", "digest"}. Raises `InvalidPipeline`.
    """

    path: str = field(kw_only=False)
    format: Format = "csv"
    schema: str | None = None
    watch: bool = False
    once: bool = False
    grow: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    missing: Literal["error", "empty"] = "error"
    on_bad_records: Literal["fail", "quarantine"] = "fail"
    hash: bool = False
    max_files_per_epoch: int | None = None
    max_bytes_per_epoch: int | None = None
    formerly: str | Sequence[str] = ()
    identity: Identity = field(init=False)
    operational: ClassVar[frozenset[str]] = frozenset(
        {
            *("format", "schema", "options", "on_bad_records", "missing", "hash", "watch", "once", "grow", "formerly"),
            *("max_files_per_epoch", "max_bytes_per_epoch"),
        }
    )

    def __post_init__(self) -> None:
        require_local(self.path)
        formerly = (self.formerly,) if isinstance(self.formerly, str) else tuple(self.formerly)
        object.__setattr__(self, "formerly", formerly)
        fields = interval_fields(self.path)
        if self.watch and fields:
            raise InvalidPipeline(f"source {self.path!r}: a watched folder has no {sorted(fields)}")
        object.__setattr__(self, "identity", Identity.INTERVAL if fields else Identity.CURSOR)
        self._require_sound_reading()
        if self.missing not in ("error", "empty") or self.on_bad_records not in ("fail", "quarantine"):
            raise InvalidPipeline(
                f"source {self.path!r}: missing must be 'error' or 'empty', on_bad_records 'fail' or 'quarantine'"
            )
        caps = (self.max_files_per_epoch, self.max_bytes_per_epoch)
        if any(cap is not None and cap < 1 for cap in caps):
            raise InvalidPipeline(f"source {self.path!r}: caps per epoch must be at least 1, are {caps}")
        if self.identity is Identity.INTERVAL and caps != (None, None):
            raise InvalidPipeline(f"source {self.path!r}: an interval is read whole; caps are for watched folders")
        self._require_sound_watch(caps)

    def _require_sound_watch(self, caps: tuple[int | None, int | None]) -> None:
        if (self.once or self.grow or self.formerly) and self.identity is Identity.INTERVAL:
            raise InvalidPipeline(
                f"source {self.path!r}: once, grow and formerly are for watched folders, not for intervals"
            )
        if self.once and (self.grow or caps != (None, None)):
            raise InvalidPipeline(
                f"source {self.path!r}: once takes everything in one epoch, and nothing later: leave caps and grow away"
            )
        if self.grow:
            require_lines(self.path, self.reading)

    def _require_sound_reading(self) -> None:
        if self.format not in _FORMATS:
            raise InvalidPipeline(f"source {self.path!r}: format is {self.format!r}, must be one of {_FORMATS}")
        if taken := sorted(name for name in self.options if name.lower() in _OURS):
            raise InvalidPipeline(f"source {self.path!r}: options {taken} are Lockstep's: rows would be lost unseen")
        may_be_empty = self.identity is Identity.CURSOR or self.missing == "empty"
        if self.schema is None and (self.format in ("csv", "json") or (self.format == "parquet" and may_be_empty)):
            raise InvalidPipeline(f"source {self.path!r}: give a schema (Spark DDL: 'id BIGINT, name STRING')")
        if self.schema is not None and self.format == "text":
            raise InvalidPipeline(f"source {self.path!r}: text has one column, `value STRING`; leave the schema away")

    @property
    def reading(self) -> Reading:
        """How Spark reads the files."""
        defaults = _CSV_DEFAULTS if self.format == "csv" else {}
        return Reading(self.format, self.schema, {**defaults, **self.options})

    # --- what it is ---

    def reads_from(self) -> str:
        return f"files {self.path}"

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenFileSource(self, context)


class OpenFileSource(OpenRecordSource):
    """Lists the files that are there, and compares frozen ones with what they are by now."""

    def __init__(self, source: FileSource, context: SourceContext) -> None:
        self._source, self._context = source, context
        self.on_bad_records = source.on_bad_records

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """The files of this epoch. Raises `SourceNotReady`, `IntervalMissing`, and of growing files `SourceChanged`."""
        path = self._source.path
        try:
            if self._source.identity is Identity.CURSOR:
                return self._watched(start)
            if interval is None:
                raise IntervalMissing(f"source {path!r} needs a data interval")
            return self._of_interval(interval)
        except OSError as error:
            raise SourceNotReady(f"source {path!r} can't be listed: {error}") from error

    def _of_interval(self, interval: Interval) -> Position:
        expected, everywhere = pattern_of(self._source.path, interval), pattern_of_all(self._source.path)
        places = Places.of(everywhere)
        found = places.files(expected)
        if not found and self._source.missing == "error":
            raise SourceNotReady(f"{interval} expects {expected}, and there is no such file yet")
        files = [FrozenFile.of(path, hashed=self._source.hash, name=name) for name, path in found.items()]
        require_one_name(files, places, everywhere)
        for file in files:
            require_readable(file.path)
        return {EXPECTS: expected, "files": [file.to_json() for file in files], ROOTS: places.to_json()}

    def _watched(self, start: Position | None) -> Position:
        source, where = self._source, pattern_of(self._source.path)
        places = Places.of(where, start, [absolute(folder) for folder in source.formerly])
        caps = source.max_files_per_epoch, source.max_bytes_per_epoch
        folder = WatchedFolder(where, places, *caps, source.hash, has_header(source.reading))
        files: Sequence[FrozenFile | FrozenRange] = ()
        if not source.once or start is None:
            files = folder.new_lines(self._context) if source.grow else folder.new_files(self._context)
        return {"files": [file.to_json() for file in files], ROOTS: places.to_json()}

    def claims(self, start: Position | None, end: Position) -> list[Claim]:
        return [file.claim() for file in _files(end)]

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        for file in _files(end):
            file.check()

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not end["files"]

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> Records:
        """Every record of the frozen files, with the malformed ones marked."""
        files = _files(end)
        if ranges := [file for file in files if isinstance(file, FrozenRange)]:
            return read_ranges(spark, self._source.reading, ranges)
        return self._source.reading.read(spark, [file.path for file in files])

    # --- for people ---

    def late_files(self, start: Position | None, end: Position) -> list[str]:
        return find_late(end, self._context.claimed)

    def changed_files(self, start: Position | None, end: Position) -> list[ChangedFile]:
        return find_changed(end)


def _files(end: Position) -> list[FrozenFile | FrozenRange]:
    return [FrozenRange.from_json(file) if "to" in file else FrozenFile.from_json(file) for file in end["files"]]

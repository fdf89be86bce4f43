"""An opened FileSource, and an opened snapshot of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.connections.object_store.address import is_object_store
from lockstep.definition.ddl import fields_of
from lockstep.epoch import ChangedFile, Claim, Interval, KeyedBy, Position
from lockstep.errors import BadRecords, IntervalMissing, SourceChanged, SourceNotReady, SourceRefused
from lockstep.sources.base import SourceContext
from lockstep.sources.files._columns import Footer, columns_of_folders, header_of, read_parquet, with_folders
from lockstep.sources.files._lines import has_header, read_ranges
from lockstep.sources.files._watched_folder import (
    EXPECTS,
    ROOTS,
    FileNames,
    WatchedFolder,
    find_changed,
    find_late,
    require_one_name,
)
from lockstep.sources.files.file_systems import file_system_of
from lockstep.sources.files.frozen import FileRange, FrozenFile
from lockstep.sources.files.paths import (
    length_on_clocks,
    pattern_of,
    pattern_of_all,
    require_readable,
    skipped_name,
    span_of_name,
    twin_of,
)
from lockstep.sources.records import FrozenFiles, OpenRecordSource, Reading, SourceRecords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.sources.files.source import FileSource


class OpenFileSource(OpenRecordSource):
    """Lists existing files, and compares frozen files with their current state."""

    def __init__(self, source: FileSource, context: SourceContext) -> None:
        self._source, self._context = source, context
        self._file_system = file_system_of(source.path)
        self.on_bad_records = source.on_bad_records
        self._footers: dict[str, Footer] = {}  # by path: of Parquet files, each read once

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Return the files of this epoch.

        Raises `SourceNotReady`, `IntervalMissing`, and for growing files `SourceChanged`.
        """
        path = self._source.path
        try:
            if self._source.identity is KeyedBy.CURSOR:
                return self._watched(start)
            if interval is None:
                raise IntervalMissing(f"source {path!r} needs a data interval")
            return self._of_interval(interval)
        except OSError as error:
            raise SourceNotReady(f"source {path!r} can't be listed: {error}") from error

    def _of_interval(self, interval: Interval) -> Position:
        absolute, path, zone = self._file_system.place, self._source.path, self._source.timezone
        pattern = pattern_of(path, interval, zone)
        max_span = span_of_name(path, self._source.spans)
        length = length_on_clocks(interval, zone)
        if max_span is not None and length > max_span:
            last_part = Interval(interval.end - max_span, interval.end)
            raise SourceRefused(
                f"source {path!r}: the interval {interval} is longer than what one name of the path stands for "
                f"({max_span}): {absolute(pattern)} would be read, and later files, such as "
                f"{absolute(pattern_of(path, last_part, zone))}, would not. Run each interval separately, or set "
                f"FileSource(…, spans={length!r}) if one file does contain that much; if the schedule follows local "
                "time, set timezone= as well"
            )
        by_unit = max_span is not None and max_span > timedelta(seconds=1) and max_span == span_of_name(path, None)
        if by_unit and (skipped := skipped_name(path, interval, zone)) is not None:
            raise SourceRefused(
                f"source {path!r}: no interval has the name {absolute(skipped)}, as {interval} begins before it and "
                f"ends after it in {zone}: schedule in that time zone, or name the files by UTC without timezone="
            )
        if (same_named := twin_of(path, interval, zone)) is not None:
            raise SourceRefused(
                f"source {path!r}: clocks of {zone} are set back: {interval} and {same_named} have the same name, "
                f"{absolute(pattern)}: put %z into the path, or name the files by UTC without timezone="
            )
        expected, everywhere = absolute(pattern), absolute(pattern_of_all(path))
        names = FileNames.of(self._file_system, everywhere)
        paths_by_name = names.files_at(expected)
        if not paths_by_name and self._source.missing == "error":
            # `where` needs the options of a store's path
            where = pattern if is_object_store(path) else expected
            raise SourceNotReady(f"{interval} expects {expected}, and there is no such file yet", [where])
        if self._source.hash:
            files = [self._file_system.facts_now(path, hashed=True, name=name) for name, path in paths_by_name.items()]
        else:
            files = [self._file_system.facts(path, name) for name, path in paths_by_name.items()]
        require_one_name(files, names, everywhere)
        for file in files:
            require_readable(file.path)
        return {EXPECTS: expected, "files": [file.to_json() for file in files], ROOTS: names.to_json()}

    def _watched(self, start: Position | None) -> Position:
        source, where = self._source, self._file_system.place(pattern_of(self._source.path))
        formerly = [file_system_of(folder).place(folder) for folder in source.formerly]
        names = FileNames.of(self._file_system, where, start, formerly)
        caps = source.max_files_per_epoch, source.max_bytes_per_epoch
        folder = WatchedFolder(where, names, *caps, source.hash, has_header(source.reading))
        files: Sequence[FrozenFile | FileRange] = ()
        if not source.once or start is None:
            files = folder.new_lines(self._context) if source.grow else folder.new_files(self._context)
        return {"files": [file.to_json() for file in files], ROOTS: names.to_json()}

    def claims(self, start: Position | None, end: Position) -> list[Claim]:
        return [file.claim() for file in _files(end)]

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        files = _files(end)
        for file in files:
            if isinstance(file, FileRange):
                file.check()
        whole = [file for file in files if isinstance(file, FrozenFile)]
        if self._file_system.parallel_calls == 1 or len(whole) < 2:
            for file in whole:
                self._require_same(file)
            return
        with ThreadPoolExecutor(self._file_system.parallel_calls) as pool:
            for done in [pool.submit(self._require_same, file) for file in whole]:
                done.result()

    def _require_same(self, file: FrozenFile) -> None:
        try:
            now = self._file_system.facts_now(file.path, hashed=file.sha256 is not None)
        except SourceNotReady as error:
            if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                raise  # it may be unchanged, and readable again later
            raise SourceChanged(f"{error}; the plan froze it: bring it back as it was, or `lockstep replan`") from error
        file.require_same(now)

    def join(self, ends: Sequence[Position]) -> Position:
        return {**ends[-1], "files": [file for end in ends for file in end["files"]]}

    def bytes_planned(self, start: Position | None, end: Position) -> int:
        return sum(file.ends - file.starts if isinstance(file, FileRange) else file.size for file in _files(end))

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not end["files"]

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords:
        """Return every record of the frozen files, with malformed ones marked."""
        files = _files(end)
        if ranges := [file for file in files if isinstance(file, FileRange)]:
            return read_ranges(spark, self._source.reading, ranges)
        listing = self._listing(files)

        def read(reading: Reading) -> SourceRecords:
            if reading.format != "parquet" or not files:
                return reading.read(spark, listing)
            paths = dict(zip(listing.files, listing.paths, strict=True))
            footers = dict(zip(listing.files, self._footers_of(files), strict=True))
            return read_parquet(reading.reader(spark, listing), reading.schema, paths, footers)

        return with_folders(self._source.reading, self._columns_of_folders(listing, files), read)

    def read_sound(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords | None:
        files = _files(end)
        if any(isinstance(file, FileRange) for file in files):
            return None
        listing = self._listing(files)
        return None if self._columns_of_folders(listing, files) else self._source.reading.read_sound(spark, listing)

    def _listing(self, files: Iterable[FrozenFile | FileRange]) -> FrozenFiles:
        return FrozenFiles({self._file_system.spark_uri(file.path): file.to_json() for file in files})

    def _columns_of_folders(self, listing: FrozenFiles, files: Sequence[FrozenFile | FileRange]) -> dict[str, str]:
        """Return SQL of the declared columns that folders provide, and not footers or the first file's header."""
        reading = self._source.reading
        fields = fields_of(reading.schema) if reading.schema and files else []
        if reading.format == "parquet" and fields:
            footers = self._footers_of(files)
            fields = [field for field in fields if not any(footer.name_of(field.name) for footer in footers)]
        if has_header(reading) and any("=" in uri for uri in listing.files):
            try:
                with closing(self._file_system.open(files[0].path)) as file:
                    header = header_of(file, reading)
            except OSError as error:
                raise SourceNotReady(f"input file {files[0].path} can't be read: {error}") from error
            fields = [field for field in fields if field.name.casefold() not in header]
        return columns_of_folders(fields, listing.files)

    def rows_held(self, start: Position | None, end: Position) -> int | None:
        """Return the row count in the footers of Parquet files; None for other formats."""
        if self._source.format != "parquet":
            return None
        return sum(footer.rows for footer in self._footers_of(_files(end)))

    def _footers_of(self, files: Iterable[FrozenFile | FileRange]) -> list[Footer]:
        with ThreadPoolExecutor(self._file_system.parallel_calls) as pool:
            return list(pool.map(self._footer, [file.path for file in files]))

    def _footer(self, path: str) -> Footer:
        try:
            if path not in self._footers:
                with closing(self._file_system.open(path)) as file:
                    self._footers[path] = Footer.of(file)
            return self._footers[path]
        except pa.ArrowInvalid as error:
            why = f"input file {path} is no complete Parquet file: {error}"
            raise BadRecords(f"{why}; replace it with the complete file, then `lockstep replan`") from error
        except (OSError, pa.ArrowException) as error:
            raise SourceNotReady(f"the footer of input file {path} can't be read: {error}") from error

    # --- for `lockstep status` ---

    def late_files(self, start: Position | None, end: Position) -> list[str]:
        return find_late(self._file_system, end, self._context.claimed)

    def changed_files(self, start: Position | None, end: Position) -> list[ChangedFile]:
        return find_changed(self._file_system, end)


def _files(end: Position) -> list[FrozenFile | FileRange]:
    return [FileRange.from_json(file) if "to" in file else FrozenFile.from_json(file) for file in end["files"]]


class OpenFileSnapshot(OpenFileSource):
    """All files that exist, claimed by no epoch. A change within an epoch is still `SourceChanged`."""

    def __init__(self, source: FileSource, context: SourceContext) -> None:
        unclaimed = replace(
            context, claimed=lambda paths: set(), claims=lambda paths: {}, claimed_by_head=lambda heads: set()
        )
        super().__init__(source, unclaimed)

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Raise `SourceNotReady` if there is no file, unless the source says `missing="empty"`.

        It may be about to arrive, and without it rows would be joined with nothing.
        """
        end = super().latest(None, interval)
        if not end["files"] and self._source.missing == "error":
            where = self._file_system.place(pattern_of(self._source.path))
            raise SourceNotReady(f"a snapshot of {where} can't be taken, as there is no such file yet", [where])
        return end

    def claims(self, start: Position | None, end: Position) -> list[Claim]:
        return []

    def late_files(self, start: Position | None, end: Position) -> list[str]:
        """Return files of an interval that arrived after planning; a restatement with fresh input reads them."""
        own = {claim.path for claim in super().claims(start, end)}
        return find_late(self._file_system, end, lambda paths: own)

    def changed_files(self, start: Position | None, end: Position) -> list[ChangedFile]:
        """Return changed files of an interval. Changes between epochs are normal in a folder that all of them read."""
        return super().changed_files(start, end) if EXPECTS in end else []

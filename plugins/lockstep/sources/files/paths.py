"""Files that a path stands for: an interval's template filled in, or the content of a watched folder."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import string
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.sources.files.file_systems import FileSystem, FolderEntry, file_system_of

FIELDS = frozenset({"interval_start", "interval_end"})
#: The last one is used by Hadoop's copies; Spark ignores it silently.
_UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")
#: Directives of strftime, finest first, and the span of moments that share a name.
_NAMED_SPANS = (
    ("fSsTcrX+", timedelta(seconds=1)),
    ("MR", timedelta(minutes=1)),
    ("HIkl", timedelta(hours=1)),
    ("pP", timedelta(hours=12)),
    ("aAdDeFjuwx", timedelta(days=1)),
    ("UVW", timedelta(days=7)),
    ("bBhm", timedelta(days=31)),
    ("CGgYy", timedelta(days=366)),
)


def interval_fields(path: str) -> set[str]:
    """Return the fields of a path template. Raises `InvalidPipeline` for any but interval_start and interval_end."""
    try:
        used = {field for _, field, _, _ in string.Formatter().parse(path) if field is not None}
    except ValueError as error:
        raise InvalidPipeline(f"source path {path!r} is no valid template: {error}; double literal braces") from error
    if used - FIELDS:
        raise InvalidPipeline(
            f"source path {path!r} uses {sorted(used - FIELDS)}; it may use {{interval_start}} and {{interval_end}}"
        )
    return used


def span_of_name(path: str, declared: timedelta | None) -> timedelta | None:
    """Return the longest interval that one name of the template stands for; None if names fit intervals of any length.

    That is `declared`, or the finest unit of time in the template. Names fit any length if both bounds occur in the
    same unit, or no unit of time occurs.
    """
    letters_by_field: dict[str, set[str]] = {}
    for _, field, spec, _ in string.Formatter().parse(path):
        if field is not None:
            letters_by_field.setdefault(field, set()).update(re.findall(r"%[-_0^#EO]*(.)", spec or "%s"))
    spans = [
        next((span for directives, span in _NAMED_SPANS if letters & set(directives)), None)
        for letters in letters_by_field.values()
    ]
    if len(spans) == 2 and spans[0] == spans[1]:
        return None
    return declared or min(filter(None, spans), default=None)


def twin_of(path: str, interval: Interval, timezone: str) -> Interval | None:
    """Return another interval with the same name, because clocks of `timezone` are set back between the two."""
    for bound in (interval.start, interval.end):
        local = bound.astimezone(ZoneInfo(timezone))
        back = local.replace(fold=1).astimezone(UTC) - local.replace(fold=0).astimezone(UTC)
        for shift in (back, -back) if interval.end - interval.start <= back else ():
            twin = Interval(interval.start + shift, interval.end + shift)
            if pattern_of(path, twin, timezone) == pattern_of(path, interval, timezone):
                return twin
    return None


def skipped_name(path: str, interval: Interval, timezone: str) -> str | None:
    """Return the name of an instant within the interval that is neither its start's nor its end's; None if there is
    none.

    A day of 23 hours lies within 24 hours, and a February within a month of 31 days.
    """
    step = (interval.end - interval.start) / 24
    moments = [interval.start + step * number for number in range(24)] + [interval.end]
    names = [pattern_of(path, moment, timezone) for moment in moments]
    return next((name for name in names if name not in (names[0], names[-1])), None)


def length_on_clocks(interval: Interval, timezone: str) -> timedelta:
    """Return the interval's length as clocks of `timezone` show it, but at most the elapsed time.

    A day on which clocks are set back or forward has 24 hours.
    """
    start, end = (bound.astimezone(ZoneInfo(timezone)).replace(tzinfo=None) for bound in (interval.start, interval.end))
    return min(interval.end - interval.start, end - start)


def pattern_of(path: str, interval: Interval | datetime | None = None, timezone: str = "UTC") -> str:
    """Return `path` filled in with an interval's bounds, or a moment, in the time of `timezone`."""
    ends = dict.fromkeys(FIELDS, interval) if isinstance(interval, datetime) else {}
    if isinstance(interval, Interval):
        ends = {"interval_start": interval.start, "interval_end": interval.end}
    local = {name: end.astimezone(ZoneInfo(timezone)) for name, end in ends.items()}
    moments = {name: _Moment.combine(end.date(), end.timetz()).replace(fold=end.fold) for name, end in local.items()}
    return path.format(**moments)  # `combine` loses fold, which distinguishes two hours with one name


class _Moment(datetime):
    """A time with platform-independent formats.

    The C library's `%Y` doesn't pad years below 1000, and its `%s` depends on the machine's time zone.
    """

    def __format__(self, format_spec: str) -> str:
        parts = {"%Y": f"{self.year:04}", "%G": f"{self.isocalendar().year:04}", "%F": f"{self.year:04}-%m-%d"}
        parts["%s"] = str(int(self.timestamp()))
        return super().__format__(re.sub("%.", lambda match: parts.get(match[0], match[0]), format_spec))


def pattern_of_all(path: str) -> str:
    """Return a glob pattern of the files for all intervals."""
    pattern = ""
    for text, field, spec, _ in string.Formatter().parse(path):
        pattern += text
        if field is not None:  # a format with slashes stands for several folders
            pattern += "/".join(["*"] * ((spec or "").count("/") + 1))
    return pattern


def folder_of(where: str) -> str:
    """Return the folder that contains all files of an absolute pattern: its longest prefix without wildcards."""
    if not glob.has_magic(where):
        return os.path.dirname(where) if os.path.isfile(where) else where  # noqa: PTH113, PTH120
    while glob.has_magic(where):
        where = os.path.dirname(where)  # noqa: PTH120
    return where


def require_readable(path: str) -> None:
    """Raise `SourceRefused` for a name that Hadoop's file systems, and so Spark, can't read."""
    folder, _, name = (path.partition("://")[2].partition("/")[2] or path).rpartition("/")
    if ":" in name or (":" in folder and re.search(r"[\\{}\[\]*?]", path)):
        raise SourceRefused(
            f"input file {path}: Spark can't read a file whose name has a colon in it, nor one in such a folder if the "
            "path also has one of \\ { } [ ] * ?: rename it, or its folder"
        )


def files_at(files: FileSystem, where: str) -> list[str]:
    """Return the finished files that match a pattern now, absolute and sorted. A folder means its own files."""
    return sorted(set(each_file(files, where)))


def each_file(files: FileSystem, where: str) -> Iterator[str]:
    """Yield the same files unordered, possibly repeated if two wildcards match, without building a list.

    A missing path is treated as empty. A path that can't be examined raises `OSError`.
    """
    entries = list(files.at(where))
    for entry in entries:
        yield from _files_of(files, entry)
    if not entries and glob.has_magic(where):
        folder, name = os.path.split(where)
        if name == "**":
            for subfolder in _folders(files, where):
                yield from _files_in(files, subfolder)
            return
        for subfolder in _folders(files, folder):
            yield from _matching(files, subfolder, name)


def _folders(files: FileSystem, pattern: str) -> Iterator[str]:
    """Yield the folders that match a pattern; a pattern without wildcards is yielded unchecked.

    Python's `glob` isn't used because it treats unreadable folders as empty.
    """
    if not glob.has_magic(pattern):
        yield pattern
        return
    above, name = os.path.split(pattern)
    matches = _matcher(name)
    for folder in _folders(files, above):
        if name == "**":
            yield from _tree(files, folder, set())
        elif glob.has_magic(name):
            yield from (entry.path for entry in files.entries(folder) if matches(entry.name) and _is_folder(entry))
        else:
            yield os.path.join(folder, name)  # noqa: PTH118


def _tree(files: FileSystem, folder: str, seen: set[str]) -> Iterator[str]:
    """Yield the folder and all folders below it. Follows links, but enters no folder twice: links may form circles."""
    if files.has_links:
        if (real := os.path.realpath(folder)) in seen:
            return
        seen.add(real)
    yield folder
    for entry in files.entries(folder):
        if not _is_hidden(entry.name) and _is_folder(entry):
            yield from _tree(files, entry.path, seen)


def _matching(files: FileSystem, folder: str, name: str) -> Iterator[str]:
    """Yield matching files in `folder`, and all files in its matching subfolders."""
    if not glob.has_magic(name):
        for entry in files.at(os.path.join(folder, name)):  # noqa: PTH118
            yield from _files_of(files, entry)
        return
    matches = _matcher(name)
    for entry in files.entries(folder):
        if not matches(entry.name) or _is_hidden(entry.name):
            continue
        if _is_folder(entry):  # known from the listing, without examining the file
            yield from _files_in(files, entry.path)
        elif is_finished(entry.name):
            yield entry.path


def _matcher(name: str) -> Callable[[str], bool]:
    """Return a predicate for names that match a wildcard; hidden names match only hidden wildcards."""
    matches, hidden = re.compile(fnmatch.translate(name)).match, _is_hidden(name)
    return lambda candidate: (hidden or not _is_hidden(candidate)) and matches(candidate) is not None


def _is_hidden(name: str) -> bool:
    """Return True if Spark ignores the name, as it does for files being written. `_column=value` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _files_of(files: FileSystem, entry: FolderEntry) -> Iterator[str]:
    if entry.is_dir():
        yield from _files_in(files, entry.path)
    elif is_finished(entry.name):
        yield entry.path


def _files_in(files: FileSystem, folder: str) -> Iterator[str]:
    for entry in files.entries(folder):
        if is_finished(entry.name) and entry.is_file():
            yield entry.path


def _is_folder(entry: FolderEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno != errno.ELOOP:  # a circular link
            raise
        return False


def is_finished(path: str) -> bool:
    """Return False for names that writers and Hadoop's readers use for unfinished files."""
    name = path.rpartition("/")[2]
    return not name.startswith((".", "_")) and not name.endswith(_UNFINISHED)


def is_anything_at(place: str) -> bool:
    """Return True if an absolute path or pattern matches a finished file now.

    Raises `OSError`, `InvalidPipeline`, and errors of the file system.
    """
    files = file_system_of(place)
    return next(each_file(files, files.place(place)), None) is not None

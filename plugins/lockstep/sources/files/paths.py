"""Which files a path means: an interval's template filled in, or what lies in a watched folder."""

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
#: The last one is what Hadoop copies under: Spark passes over it without a word.
_UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")
#: Directives of strftime from the finest to the coarsest, and the span of the moments that share a name.
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
    """The fields that a path template uses. Raises `InvalidPipeline` for any but interval_start and interval_end."""
    try:
        found = {field for _, field, _, _ in string.Formatter().parse(path) if field is not None}
    except ValueError as error:
        raise InvalidPipeline(f"source path {path!r} is no template: {error}; double braces of names") from error
    if found - FIELDS:
        raise InvalidPipeline(
            f"source path {path!r} uses {sorted(found - FIELDS)}; it may use {{interval_start}} and {{interval_end}}"
        )
    return found


def span_of_name(path: str, given: timedelta | None) -> timedelta | None:
    """The longest interval that a path template names by one name: `given`, or the finest unit of time in it. None if
    that doesn't depend on the length: the template has both bounds by one unit, or no unit of time."""
    named: dict[str, set[str]] = {}
    for _, field, spec, _ in string.Formatter().parse(path):
        if field is not None:
            named.setdefault(field, set()).update(re.findall(r"%[-_0^#EO]*(.)", spec or "%s"))
    spans = [next((span for each, span in _NAMED_SPANS if letters & set(each)), None) for letters in named.values()]
    if len(spans) == 2 and spans[0] == spans[1]:
        return None
    return given or min(filter(None, spans), default=None)


def twin_of(path: str, interval: Interval, timezone: str) -> Interval | None:
    """The interval that `path` has the same name for, as clocks of `timezone` are set back from one to the other."""
    for bound in (interval.start, interval.end):
        local = bound.astimezone(ZoneInfo(timezone))
        back = local.replace(fold=1).astimezone(UTC) - local.replace(fold=0).astimezone(UTC)
        for shift in (back, -back) if interval.end - interval.start <= back else ():
            twin = Interval(interval.start + shift, interval.end + shift)
            if pattern_of(path, twin, timezone) == pattern_of(path, interval, timezone):
                return twin
    return None


def skipped_name(path: str, interval: Interval, timezone: str) -> str | None:
    """The name of an instant within the interval that neither its start nor its end has; None if all have one of the
    two. A day of 23 hours lies within 24 hours, and a February within a month of 31 days."""
    step = (interval.end - interval.start) / 24
    moments = [interval.start + step * number for number in range(24)] + [interval.end]
    names = [pattern_of(path, moment, timezone) for moment in moments]
    return next((name for name in names if name not in (names[0], names[-1])), None)


def length_on_clocks(interval: Interval, timezone: str) -> timedelta:
    """The interval's length as clocks of `timezone` show it: 24 hours of a day on which they are set back or forward;
    never more than what elapses."""
    start, end = (bound.astimezone(ZoneInfo(timezone)).replace(tzinfo=None) for bound in (interval.start, interval.end))
    return min(interval.end - interval.start, end - start)


def pattern_of(path: str, interval: Interval | datetime | None = None, timezone: str = "UTC") -> str:
    """Where `path` leads for an interval, or a moment, whose bounds are written as clocks of `timezone` show them."""
    ends = dict.fromkeys(FIELDS, interval) if isinstance(interval, datetime) else {}
    if isinstance(interval, Interval):
        ends = {"interval_start": interval.start, "interval_end": interval.end}
    local = {name: end.astimezone(ZoneInfo(timezone)) for name, end in ends.items()}
    moments = {name: _Moment.combine(end.date(), end.timetz()).replace(fold=end.fold) for name, end in local.items()}
    return path.format(**moments)  # `combine` loses fold, which tells two hours of one name apart


class _Moment(datetime):
    """A time that any machine writes alike: the C library's `%Y` has no zeros before a smaller year, and its `%s`
    goes by the time zone of the machine."""

    def __format__(self, form: str) -> str:
        parts = {"%Y": f"{self.year:04}", "%G": f"{self.isocalendar().year:04}", "%F": f"{self.year:04}-%m-%d"}
        parts["%s"] = str(int(self.timestamp()))
        return super().__format__(re.sub("%.", lambda found: parts.get(found[0], found[0]), form))


def pattern_of_all(path: str) -> str:
    """A pattern of the files that `path` means for any interval."""
    parts = string.Formatter().parse(path)
    return "".join(text + ("" if field is None else _any(spec)) for text, field, spec, _ in parts)


def _any(spec: str | None) -> str:
    return "/".join(["*"] * ((spec or "").count("/") + 1))


def folder_of(where: str) -> str:
    """The folder that all files of an absolute pattern lie in or below: as far as it has no wildcard."""
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
    """The finished files that a pattern means now, absolute and sorted. A folder means those in it, not below it."""
    return sorted(set(each_file(files, where)))


def each_file(files: FileSystem, where: str) -> Iterator[str]:
    """The same as they are listed: in no order, one that two wildcards match perhaps twice. No list of all is made.

    What isn't there is nothing, but what can't be looked at may be anything: that raises `OSError`.
    """
    there = list(files.at(where))
    for entry in there:
        yield from _files_of(files, entry)
    if not there and glob.has_magic(where):
        folder, name = os.path.split(where)
        if name == "**":
            for one in _folders(files, where):
                yield from _files_in(files, one)
            return
        for one in _folders(files, folder):
            yield from _matching(files, one, name)


def _folders(files: FileSystem, pattern: str) -> Iterator[str]:
    """Those that a pattern means; perhaps also what is no folder, or not there, where it names that without wildcards.

    Not by `glob`, which takes a folder that it may not read for an empty one.
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
    """The folder and those below it. Links are followed, but no folder is entered twice: they may lead in a circle."""
    if files.has_links:
        if (real := os.path.realpath(folder)) in seen:
            return
        seen.add(real)
    yield folder
    for entry in files.entries(folder):
        if not _is_hidden(entry.name) and _is_folder(entry):
            yield from _tree(files, entry.path, seen)


def _matching(files: FileSystem, folder: str, name: str) -> Iterator[str]:
    """Files in `folder` whose names match, and files in its folders whose names match."""
    if not glob.has_magic(name):
        for entry in files.at(os.path.join(folder, name)):  # noqa: PTH118
            yield from _files_of(files, entry)
        return
    matches = _matcher(name)
    for entry in files.entries(folder):
        if not matches(entry.name) or _is_hidden(entry.name):
            continue
        if _is_folder(entry):  # known from the listing: no look at the file itself
            yield from _files_in(files, entry.path)
        elif is_finished(entry.name):
            yield entry.path


def _matcher(name: str) -> Callable[[str], bool]:
    """Whether a name is one that a wildcard means: a hidden one only if the wildcard is hidden, too."""
    matches, hidden = re.compile(fnmatch.translate(name)).match, _is_hidden(name)
    return lambda found: (hidden or not _is_hidden(found)) and matches(found) is not None


def _is_hidden(name: str) -> bool:
    """Whether Spark takes it for no data: what is being written has such names. `_column=value` is a partition."""
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
        if error.errno != errno.ELOOP:  # a link in a circle leads nowhere
            raise
        return False


def is_finished(path: str) -> bool:
    """False for names that writers, and Hadoop's readers, use for files that aren't there yet."""
    name = path.rpartition("/")[2]
    return not name.startswith((".", "_")) and not name.endswith(_UNFINISHED)


def is_anything_at(place: str) -> bool:
    """Whether an absolute path, or a pattern, means a finished file now. Raises `OSError`, `InvalidPipeline`, and what
    else the file system behind it raises."""
    files = file_system_of(place)
    return next(each_file(files, files.place(place)), None) is not None

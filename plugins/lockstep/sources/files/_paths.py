"""Which files a path means: an interval's template filled in, or what lies in a watched folder."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import string
from collections.abc import Callable, Iterator

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.home import absolute

FIELDS = frozenset({"interval_start", "interval_end"})
#: The last one is what Hadoop copies under: Spark passes over it without a word.
_UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")


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


def require_local(path: str) -> None:
    """Raise `InvalidPipeline` for a path that leads elsewhere than to a mounted file system."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise InvalidPipeline(f"source path {path!r}: FileSource reads mounted folders; leave the scheme away")


def pattern_of(path: str, interval: Interval | None = None) -> str:
    """Where `path` leads for `interval`: an absolute path or pattern."""
    bounds = {"interval_start": interval.start, "interval_end": interval.end} if interval else {}
    return absolute(path.format(**bounds))


def pattern_of_all(path: str) -> str:
    """An absolute pattern of the files that `path` means for any interval."""
    parts = string.Formatter().parse(path)
    return absolute("".join(text + ("" if field is None else _any(spec)) for text, field, spec, _ in parts))


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
    folder, _, name = path.rpartition("/")
    if ":" in name or (":" in folder and re.search(r"[\\{}\[\]*?]", path)):
        raise SourceRefused(
            f"input file {path}: Spark can't read a file whose name has a colon in it, nor one in such a folder if the "
            "path also has one of \\ { } [ ] * ?: rename it, or its folder"
        )


def files_at(where: str) -> list[str]:
    """The finished files that a pattern means now, absolute and sorted. A folder means those in it, not below it."""
    return sorted(set(each_file(where)))


def each_file(where: str) -> Iterator[str]:
    """The same as they are listed: in no order, one that two wildcards match perhaps twice. No list of all is made.

    What isn't there is nothing, but what can't be looked at may be anything: that raises `OSError`.
    """
    if _exists(where):
        yield from _at(where)
    elif glob.has_magic(where):
        folder, name = os.path.split(where)
        if name == "**":
            for one in _folders(where):
                yield from _files_in(one)
            return
        for one in _folders(folder):
            yield from _matching(one, name)


def _folders(pattern: str) -> Iterator[str]:
    """Those that a pattern means; perhaps also what is no folder, or not there, where it names that without wildcards.

    Not by `glob`, which takes a folder that it may not read for an empty one.
    """
    if not glob.has_magic(pattern):
        yield pattern
        return
    above, name = os.path.split(pattern)
    matches = _matcher(name)
    for folder in _folders(above):
        if name == "**":
            yield from _tree(folder)
        elif glob.has_magic(name):
            yield from (entry.path for entry in _entries(folder) if matches(entry.name) and _is_folder(entry))
        else:
            yield os.path.join(folder, name)  # noqa: PTH118


def _tree(folder: str, seen: set[str] | None = None) -> Iterator[str]:
    """The folder and those below it. Links are followed, but no folder is entered twice: they may lead in a circle."""
    seen = set() if seen is None else seen
    if (real := os.path.realpath(folder)) in seen:
        return
    seen.add(real)
    yield folder
    for entry in _entries(folder):
        if not entry.name.startswith(".") and _is_folder(entry):
            yield from _tree(entry.path, seen)


def _matching(folder: str, name: str) -> Iterator[str]:
    """Files in `folder` whose names match, and files in its folders whose names match."""
    if not glob.has_magic(name):
        if _exists(path := os.path.join(folder, name)):  # noqa: PTH118
            yield from _at(path)
        return
    matches = _matcher(name)
    for entry in _entries(folder):
        if not matches(entry.name) or entry.name.startswith("."):
            continue
        if _is_folder(entry):  # known from the listing: no look at the file itself
            yield from _files_in(entry.path)
        elif is_finished(entry.name):
            yield entry.path


def _matcher(name: str) -> Callable[[str], bool]:
    """Whether a name is one that a wildcard means: a hidden one only if the wildcard begins with a dot, too."""
    matches, hidden = re.compile(fnmatch.translate(name)).match, name.startswith(".")
    return lambda found: (hidden or not found.startswith(".")) and matches(found) is not None


def _at(path: str) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112
        yield from _files_in(path)
    elif is_finished(path):
        yield path


def _files_in(folder: str) -> Iterator[str]:
    for entry in _entries(folder):
        if is_finished(entry.name) and entry.is_file():
            yield entry.path


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        yield from entries


def _exists(path: str) -> bool:
    """As `os.path.lexists`, which says no of what it may not look at, too."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
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

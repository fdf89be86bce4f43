"""Which files a path means: an interval's template filled in, or what lies in a watched folder."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import string
from collections.abc import Iterator
from contextlib import suppress

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline
from lockstep.home import absolute

FIELDS = frozenset({"interval_start", "interval_end"})
_UNFINISHED = (".tmp", ".inprogress", ".crc")


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


def files_at(where: str) -> list[str]:
    """The finished files that a pattern means now, absolute and sorted. A folder means those in it, not below it."""
    return sorted(set(each_file(where)))


def each_file(where: str) -> Iterator[str]:
    """The same as they are listed: in no order, one that two wildcards match perhaps twice. No list of all is made."""
    if os.path.lexists(where):
        yield from _at(where)
    elif glob.has_magic(where):
        folder, name = os.path.split(where)
        if name == "**":
            for found in glob.iglob(where, recursive=True):  # noqa: PTH207
                yield from _at(found)
        for one in glob.iglob(f"{folder}/", recursive=True) if glob.has_magic(folder) else [folder]:  # noqa: PTH207
            yield from _matching(one, name)


def _matching(folder: str, name: str) -> Iterator[str]:
    """Files in `folder` whose names match, and files in its folders whose names match."""
    if not glob.has_magic(name):
        if os.path.lexists(path := os.path.join(folder, name)):  # noqa: PTH118
            yield from _at(path)
        return
    matches = re.compile(fnmatch.translate(name)).match
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if not matches(entry.name) or entry.name.startswith("."):
                continue
            if entry.is_dir():  # known from the listing: no look at the file itself
                yield from _at(entry.path)
            elif is_finished(entry.name):
                yield entry.path


def _at(path: str) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112
        if is_finished(path):
            yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if is_finished(entry.name) and entry.is_file():
                yield entry.path


def is_finished(path: str) -> bool:
    """False for names that writers, and Hadoop's readers, use for files that aren't there yet."""
    name = path.rpartition("/")[2]
    return not name.startswith((".", "_")) and not name.endswith(_UNFINISHED)

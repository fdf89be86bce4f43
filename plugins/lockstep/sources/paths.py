"""Which files a path means: an interval's template filled in, or what lies in a watched folder."""

from __future__ import annotations

import glob
import os
import re
import string
from pathlib import Path

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
    found = [where] if os.path.lexists(where) else sorted(glob.glob(where, recursive=True))  # noqa: PTH207
    files: list[str] = []
    for name in found:
        files += _files_in(name) if Path(name).is_dir() else [name]
    return [file for file in dict.fromkeys(files) if is_finished(file)]


def _files_in(folder: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_file())


def is_finished(path: str) -> bool:
    """False for names that writers, and Hadoop's readers, use for files that aren't there yet."""
    name = Path(path).name
    return not name.startswith((".", "_")) and not name.endswith(_UNFINISHED)

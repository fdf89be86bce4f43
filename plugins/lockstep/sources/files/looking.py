"""A look for files by a place alone, for whoever has no source at hand."""

from __future__ import annotations

from lockstep.sources.files._paths import each_file
from lockstep.sources.files._schemes import file_system_of


def is_anything_at(place: str) -> bool:
    """Whether an absolute path, or a pattern, means a finished file now. Raises `OSError`, `InvalidPipeline`, and what
    else the file system behind it raises."""
    files = file_system_of(place)
    return next(each_file(files, files.place(place)), None) is not None

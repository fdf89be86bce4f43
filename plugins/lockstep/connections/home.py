"""Where relative paths of a pipeline's definition lead: to LOCKSTEP_HOME, or to the current folder."""

from __future__ import annotations

import os
from pathlib import Path


def absolute(path: str) -> str:
    """`path` as an absolute one, with '..' resolved; a URI with a scheme stays as it is."""
    if "://" in path:
        return path
    return os.path.abspath(  # noqa: PTH100 - symlinks stay
        Path(os.environ.get("LOCKSTEP_HOME", "."), path)
    )

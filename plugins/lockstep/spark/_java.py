"""Which Java Spark would start here, for who is told that it didn't start."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

OLDEST = 17
_SECONDS = 30


def java_found() -> str:
    """The program and the version that it tells of itself, in a few words."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None:
        return "found none: JAVA_HOME isn't set, and no java is on the PATH"
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} can't be run: {type(error).__name__}"
    said = (done.stderr or done.stdout).strip().splitlines()
    # its first line may be what JAVA_TOOL_OPTIONS says, passwords included
    told = next((line for line in said if ' version "' in line), "it says nothing of its version")
    return f"found {program}: {told}"

"""Find a Java that Spark runs on. Plain standard library: `make setup` runs it before anything is installed.

python3 -m stack.java        prints the program's path, or one line that says what is wrong
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from stack.errors import JavaMissing

OLDEST = 17


def find_java() -> Path:
    """The `java` of JAVA_HOME, or else of the PATH. Raises JavaMissing when there is none, or one older than 17."""
    program, source = _candidate()
    version = _version(program)
    if version < OLDEST:
        raise JavaMissing(
            f"Java {OLDEST} or newer is needed, as Spark 4 is compiled for it, "
            f"found {version or 'no usable one'} at {program} ({source}): "
            f"install openjdk-{OLDEST}-jre-headless or set JAVA_HOME"
        )
    return program


def java_home() -> Path:
    """The folder that Spark's scripts want in JAVA_HOME."""
    return find_java().resolve().parent.parent


def _candidate() -> tuple[Path, str]:
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / "java", "by JAVA_HOME"
    if found := shutil.which("java"):
        return Path(found), "first on the PATH"
    raise JavaMissing(
        f"Java {OLDEST} or newer is needed, found none: install openjdk-{OLDEST}-jre-headless or set JAVA_HOME"
    )


def _version(program: Path) -> int:
    """The feature number (8, 11, 17, …); 0 when the program doesn't run."""
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaMissing as missing:
        sys.exit(str(missing))

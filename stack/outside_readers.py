"""polars, and DuckDB with its extensions for lakes, by which tests read what Lockstep published.

They are in a folder of their own: the extensions come as wheels for one version of DuckDB, which needn't be the one
that `lockstep wal show` asks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stack.errors import StackError

SECONDS = 600
_DUCKDB, _POLARS = "1.5.5", "2.1.0"
WANTED = (
    *(f"polars=={_POLARS}", f"polars-runtime-32=={_POLARS}"),
    f"duckdb=={_DUCKDB}",
    *(f"duckdb-extension-{name}=={_DUCKDB}" for name in ("avro", "delta", "iceberg")),
)
FOLDER = Path(sys.prefix) / "readers"
_STAMP = FOLDER / "fetched.txt"


def present() -> bool:
    """Whether exactly these were fetched, whole."""
    return _STAMP.exists() and _STAMP.read_text().split() == list(WANTED)


def fetch() -> None:
    """Bring them all from the package index, or leave things as they were. Raises `StackError`."""
    if present():
        return
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as scratch:
        fresh = Path(scratch, "readers")
        uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--no-deps")
        command = [*uv, "--target", str(fresh), *WANTED]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            raise StackError(f"the readers could not be fetched: {done.stderr.strip()[-300:]}")
        (fresh / _STAMP.name).write_text("\n".join(WANTED))
        shutil.rmtree(FOLDER, ignore_errors=True)
        fresh.rename(FOLDER)


if __name__ == "__main__":
    try:
        print(f"polars and DuckDB: {'here already' if present() else 'fetching …'}", flush=True)
        fetch()
    except StackError as error:
        sys.exit(str(error))

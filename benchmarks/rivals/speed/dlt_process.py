"""dlt as a whole process, in an environment that is made for it once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg2.extensions import parse_dsn

from benchmarks.ways import WayFailed

_PACKAGES = ("dlt[postgres]", "pyarrow", "adbc-driver-postgresql", "adbc-driver-manager")


@dataclass(frozen=True)
class Dlt:
    """`work`: keeps the environment from run to run."""

    work: Path

    @property
    def _python(self) -> Path:
        return self.work / "dlt" / "bin" / "python"

    def set_up(self) -> None:
        """Raises `CalledProcessError` where its packages can't be had."""
        if (self.work / "dlt" / "ready").exists():
            return
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", str(self.work / "dlt")], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", str(self._python), *_PACKAGES], check=True)
        (self.work / "dlt" / "ready").touch()

    def load(self, parquet: Path, dsn: str, password: str, dataset: str, file_format: str, folder: Path) -> float:
        """Seconds of the process, from its start to its end; the rows are in table `flights` of schema `dataset`."""
        parts = parse_dsn(dsn)
        url = f"postgresql://{parts['user']}:{password}@{parts['host']}:{parts['port']}/{parts['dbname']}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        script = Path(__file__).with_name("dlt_load.py")
        command = [str(self._python), str(script), str(parquet), dataset, file_format, str(folder / dataset)]
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, input=url, capture_output=True, text=True, check=False)
        if done.returncode:
            raise WayFailed(done.stderr[-2000:].replace(password, "…"))
        return time.perf_counter() - began

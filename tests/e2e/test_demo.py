"""The demos, as `make demo`, on a stack of its own, and `make demo-lake` run them: what they move, prove and notice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from stack.home import CHECKOUT, Home, Ports
from stack.lifecycle import Stack
from stack.postgres import free_port
from stack.s3 import SPARK_S3, weed

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Ran:
    code: int
    report: dict[str, Any]
    error: str

    def differing(self) -> set[str]:
        return {check["what"] for check in self.report["checks"] if not check["agrees"]}


@dataclass(frozen=True)
class DemoHome:
    """A home with ports of its own, and the demo run in it as a process."""

    stack: Stack

    def demo(self, days: int) -> Ran:
        ports = self.stack.home.ports
        names = {f"LOCKSTEP_PORT_{name.upper()}": str(port) for name, port in vars(ports).items()}
        done = subprocess.run(
            [sys.executable, "-m", "stack", "demo", "--days", str(days), "--json"],
            check=False,
            capture_output=True,
            text=True,
            cwd=CHECKOUT,
            env={**os.environ, **names, "LOCKSTEP_HOME": str(self.stack.home.root)},
        )
        return Ran(done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr)

    def sql(self, statement: str) -> None:
        dsn, passfile = self.stack.environment["LOCKSTEP_WAREHOUSE"], str(self.stack.home.passfile)
        with closing(psycopg2.connect(dsn, passfile=passfile)) as connection:
            connection.autocommit = True
            connection.cursor().execute(statement)


@pytest.fixture(scope="module")
def home() -> Iterator[DemoHome]:
    """A stack that is up before the first demo, so that it stays up for all of them."""
    root = Path(tempfile.mkdtemp(prefix="lockstep-demo-"))
    root.chmod(0o711)
    ports = Ports(postgres=free_port(), spark=free_port(), airflow=free_port(), kafka=free_port())
    stack = Stack(Home(root, ports), kafka=False)
    try:
        stack.up()
        yield DemoHome(stack)
    finally:
        stack.clean()
        shutil.rmtree(root, ignore_errors=True)


def test_a_demo_publishes_its_days_and_all_counts_agree_also_when_it_runs_again(home: DemoHome) -> None:
    ran = home.demo(2)
    assert ran.code == 0, ran.error
    assert ran.report["agrees"] and not ran.report["repeated"]
    assert [row["rows"]["flights"] for row in ran.report["epochs"]] == [842, 943]
    assert [row["state"] for row in ran.report["epochs"]] == ["cleaned", "cleaned"]
    assert home.stack.is_up, "a stack that was up stays up"
    restated = ran.report["restated"]
    assert (restated["old"]["flights"], restated["new"]["flights"]) == (677, 842)
    old, new = ({str(restated[one]["epoch"]): restated[one]["flights"]} for one in ("old", "new"))
    seen = {what: [look for look, _ in restated["seen"][what]] for what in ("table", "files", "cut")}
    assert seen["table"] == seen["files"] == [old, new]
    assert [look for look in seen["cut"] if look != [{}, {}]] == [[old, old], [new, new]]

    again = home.demo(2)
    assert again.code == 0, again.error
    assert again.report["repeated"], "nothing changes"
    assert {check["one"] for check in again.report["checks"]} >= {"ledger rows", "flights rows", "output files"}
    restated = again.report["restated"]
    assert restated["old"]["flights"] == restated["new"]["flights"] == 842, "the day is right, and restated again"
    assert restated["new"]["epoch"] > restated["old"]["epoch"]


def test_a_row_that_somebody_changed_in_the_sink_is_noticed_even_where_it_is_replaced(home: DemoHome) -> None:
    for day in (1, 2):
        first = f"(SELECT min(ctid) FROM public.flights WHERE day = {day})"
        home.sql(f"UPDATE public.flights SET tailnum = 'N00000' WHERE ctid = {first}")
    ran = home.demo(2)
    assert ran.code == 1
    assert ran.differing() == {"flights out, before", "flights out"}, "as many rows as before: only the digest tells"


def test_a_run_that_fails_is_explained_and_the_next_demo_adds_its_day(home: DemoHome) -> None:
    home.sql("ALTER TABLE public.flights SET UNLOGGED")
    ran = home.demo(3)
    assert ran.code == 1
    assert "the run of 2013-01-03 failed" in ran.error
    assert "task begin failed" in ran.error or "task prepare.warehouse failed" in ran.error
    assert "UNLOGGED" in ran.error
    home.sql("ALTER TABLE public.flights SET LOGGED")
    again = home.demo(3)
    assert [row["state"] for row in again.report["epochs"]] == ["cleaned"] * 3, again.error


def test_of_lakehouse_tables_every_reader_agrees_after_two_runs_were_killed_and_nothing_is_left(tmp_path: Path) -> None:
    if weed() is None or not SPARK_S3.present:
        pytest.skip("the S3 server is there for Linux only, and `make s3` fetches what Spark reaches it by")
    done = subprocess.run(
        [sys.executable, "-m", "stack", "demo-lake", "--days", "3", "--json"],
        check=False,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "LOCKSTEP_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["agrees"]
    assert [sorted(rows.values()) for _, rows in report["seen"]] == [
        [0, 0, 0],
        [943, 943, 943],
        [0, 0, 914],
        [914, 914, 914],
    ]
    assert not (tmp_path / "lake").exists()

"""An Airflow that was there before, with a DAG of its own, and the commands by which the README adds Lockstep to it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg2
import pytest

from lockstep.epoch import Interval
from lockstep.ledger import Ledger
from lockstep.states import EpochState
from stack.postgres import PostgresServer
from tests.package.installed import PROJECT, ROOT, SHOP, Installed, empty_environment, install_into, versions_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # an environment with everything is made, and two runs in it

OWN = """
import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, task
from airflow.timetables.interval import CronDataIntervalTimetable

HOME = Path(os.environ.get("LOCKSTEP_HOME", "."))


@task
def fetch(data_interval_start):
    (HOME / "landing" / f"{data_interval_start:%Y-%m-%d}.csv").write_text("id,amount\\n1,10.50\\n2,-3.00\\n3,1.25\\n")


@task
def report():
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    [(rows, amount)] = PostgresHook("warehouse").get_records("SELECT count(*), sum(amount) FROM paid")
    with (HOME / "reported").open("a") as reported:
        print(rows, amount, file=reported)


daily = CronDataIntervalTimetable("@daily", timezone="UTC")
with DAG("own", schedule=daily, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    fetch() >> report()
"""
WITH_AN_EPOCH = OWN.replace(
    "from airflow", "from lockstep import EpochTaskGroup\nfrom shop import pipeline\nfrom airflow", 1
)
WITH_AN_EPOCH = WITH_AN_EPOCH.replace("fetch() >> report()", "fetch() >> EpochTaskGroup(pipeline) >> report()")
DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
#: not the one that requirements.txt pins: what that replaces would pass unseen
[OLDEST] = re.findall(r"apache-airflow>=([\d.]+)", " ".join(PROJECT["optional-dependencies"]["airflow"]))


def _commands() -> list[list[str]]:
    """Of the README's section, and word for word those of the page that it leads to."""
    section = (ROOT / "README.md").read_text().partition("## Adding it to an Airflow that runs already")[2]
    lines = re.findall(r"^    (\S.*)$", section.partition("\n## ")[0], re.M)
    page = (ROOT / "docs" / "how-to" / "add-to-airflow.md").read_text()
    assert "\n".join(f"    {line}" for line in lines) in page
    return [shlex.split(line) for line in lines]


@dataclass(frozen=True)
class User:
    """Of an Airflow that had `before`, versions by name, when Lockstep was added to it, and of a ledger."""

    airflow: Installed
    home: Path
    before: Mapping[str, str]
    ledger: str

    @property
    def dags(self) -> Path:
        return self.home / "dags"

    def run(self, *command: str, **environment: str) -> str:
        """What an `airflow` or `lockstep` of the environment prints when it succeeds."""
        own = {"AIRFLOW_HOME": str(self.home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        done = self.airflow.run(*command, **own, **environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def user(dist: Path, ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    home = tmp_path_factory.mktemp("user")
    airflow = empty_environment(home)
    install_into(airflow, f"apache-airflow=={OLDEST}")
    user = User(airflow, home, versions_of(airflow), ledger_server.create_database("added"))
    user.dags.mkdir()
    (user.dags / "own.py").write_text(OWN)
    user.run("airflow", "db", "migrate")
    (python, *build), (pip, install, *wanted), (program, *arguments) = _commands()
    assert (python, pip, install) == ("python", "pip", "install")
    subprocess.run([sys.executable, *build], cwd=dist.parent / "clone", check=True)
    (airflow.cwd / "dist").symlink_to(dist.parent / "clone" / "dist")
    install_into(airflow, *(one.replace("<yours>", user.before["apache-airflow"]) for one in wanted))
    user.run(program, *arguments[:-1], user.ledger)
    yield user
    shutil.rmtree(airflow.folder, ignore_errors=True)
    ledger_server.drop_database("added")


def test_an_airflow_gains_lockstep_by_three_commands_and_nothing_of_it_is_replaced(user: User) -> None:
    after = versions_of(user.airflow)
    assert after["apache-airflow"] == OLDEST
    assert {name: after.get(name) for name in user.before} == user.before
    user.run("lockstep", "status", LOCKSTEP_LEDGER=user.ledger)


@pytest.mark.fault("H10")
def test_a_group_between_the_tasks_of_a_dag_that_was_there_moves_each_day_once(
    user: User, warehouse_dsn: str, spark_connect: str, tmp_path: Path
) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text(SHOP)
    (user.dags / "own.py").write_text(WITH_AN_EPOCH)
    host, _, port = spark_connect.rpartition(":")
    environment = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(user.dags),
        "AIRFLOW_CONN_LOCKSTEP_LEDGER": user.ledger,
        "AIRFLOW_CONN_WAREHOUSE": warehouse_dsn,
        "AIRFLOW_CONN_SPARK": json.dumps({"conn_type": "spark_connect", "host": host, "port": int(port)}),
        "LOCKSTEP_HOME": str(tmp_path),
        "LOCKSTEP_STAGING": str(tmp_path / "staging"),
        "PYTHONPATH": str(tmp_path / "pipelines"),
    }
    date = f"{DAY.end:%Y-%m-%d}"  # by which Airflow knows the run of the day that ended then
    with closing(Ledger(user.ledger)) as ledger:
        for run in (1, 2):
            user.run("airflow", "dags", "test", "own", date, **environment)
            epoch = ledger.epoch_of_interval("shop", DAY)
            assert epoch is not None and (epoch.id, epoch.state) == (1, EpochState.CLEANED)
            # both tasks ran, each in its place: nobody else lands the file, and the rows stood there
            assert (tmp_path / "reported").read_text().splitlines() == ["2 11.75"] * run
            with closing(psycopg2.connect(warehouse_dsn)) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT id, amount::text FROM paid ORDER BY id")
                assert cursor.fetchall() == [(1, "10.50"), (3, "1.25")]

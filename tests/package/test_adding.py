"""An Airflow that was there before, with a DAG of its own, and the commands by which the README adds Lockstep to it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.package.installed import ROOT, empty_environment, install_into, versions_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # an environment with everything is made

OWN = """
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

with DAG("own", schedule=None):
    EmptyOperator(task_id="nothing")
"""
RECOVERY = """# an Airflow DAG
from lockstep import recovery_dag

dag = recovery_dag()
"""
LOADED = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="tests")
assert not bag.import_errors, bag.import_errors
print(*sorted(bag.dags))
"""


def _commands() -> list[list[str]]:
    """Of the README's section, and word for word those of the page that it leads to."""
    section = (ROOT / "README.md").read_text().partition("## Adding it to an Airflow that runs already")[2]
    lines = re.findall(r"^    (\S.*)$", section.partition("\n## ")[0], re.M)
    page = (ROOT / "docs" / "how-to" / "add-to-airflow.md").read_text()
    assert "\n".join(f"    {line}" for line in lines) in page
    return [shlex.split(line) for line in lines]


def test_an_airflow_gains_lockstep_by_three_commands_and_nothing_of_it_is_replaced(
    dist: Path, ledger_dsn: str, tmp_path: Path
) -> None:
    airflow = empty_environment(tmp_path)
    constraints = ("-c", ROOT / "requirements.txt")
    install_into(airflow, "apache-airflow", *constraints)
    before = versions_of(airflow)
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "own.py").write_text(OWN)
    (airflow.cwd / "dist").symlink_to(dist)  # what `make wheel` leaves in a checkout
    (airflow.cwd / "requirements.txt").symlink_to(ROOT / "requirements.txt")

    make_wheel, (_, _, *wanted), (program, *arguments) = _commands()
    assert make_wheel == ["make", "wheel"]
    install_into(airflow, *wanted)
    migrated = airflow.run(program, *arguments[:-1], ledger_dsn)
    assert migrated.returncode == 0, migrated.stderr

    after = versions_of(airflow)
    assert {name: after.get(name) for name in before} == before
    (dags / "lockstep_recovery.py").write_text(RECOVERY)
    loaded = airflow.python(LOADED, str(dags), AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    assert loaded.splitlines()[-1] == "lockstep_recovery own"
    assert airflow.run("lockstep", "status", LOCKSTEP_LEDGER=ledger_dsn).returncode == 0

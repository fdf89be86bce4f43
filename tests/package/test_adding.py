"""An Airflow that was there before, with a DAG of its own, and the commands by which the README adds Lockstep to it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.installed import PROJECT, ROOT, empty_environment, install_into, versions_of

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
try:
    from airflow.dag_processing.dagbag import DagBag
    bag = DagBag(dag_folder=sys.argv[1], bundle_path=sys.argv[1], bundle_name="tests")
except ImportError:  # 3.1
    from airflow.models.dagbag import DagBag
    bag = DagBag(dag_folder=sys.argv[1])
assert not bag.import_errors, bag.import_errors
print(*sorted(bag.dags))
"""
#: not the one that requirements.txt pins: what that replaces would pass unseen
[OLDEST] = re.findall(r"apache-airflow>=([\d.]+)", " ".join(PROJECT["optional-dependencies"]["airflow"]))


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
    install_into(airflow, f"apache-airflow=={OLDEST}")
    before = versions_of(airflow)
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "own.py").write_text(OWN)
    (python, *build), (pip, install, *wanted), (program, *arguments) = _commands()
    assert (python, pip, install) == ("python", "pip", "install")
    subprocess.run([sys.executable, *build], cwd=dist.parent / "clone", check=True)
    (airflow.cwd / "dist").symlink_to(dist.parent / "clone" / "dist")
    install_into(airflow, *(one.replace("<yours>", before["apache-airflow"]) for one in wanted))
    migrated = airflow.run(program, *arguments[:-1], ledger_dsn)
    assert migrated.returncode == 0, migrated.stderr

    after = versions_of(airflow)
    assert after["apache-airflow"] == OLDEST
    assert {name: after.get(name) for name in before} == before
    (dags / "lockstep_recovery.py").write_text(RECOVERY)
    loaded = airflow.python(LOADED, str(dags), AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    assert loaded.splitlines()[-1] == "lockstep_recovery own"
    assert airflow.run("lockstep", "status", LOCKSTEP_LEDGER=ledger_dsn).returncode == 0

"""The shipped DAG files as the DAG processor meets them: they import, load little, and touch nothing but code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases
from tests.dags.airflow_parts import before_3_2, dag_bag

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

CHECKOUT = Path(__file__).parents[2]
FILES = sorted((CHECKOUT / "dags").glob("*.py"))

PARSE = """
import json, sys, sysconfig
import airflow.sdk, lockstep.orchestration.recovery
from importlib.machinery import SourceFileLoader
code = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sys.argv[1])
touched = []
def watch(event, arguments):
    if event.startswith(("socket.", "subprocess.", "sqlite3.", "os.system", "os.exec", "shutil.", "os.mkdir", "time.")):
        touched.append(event)
    elif event == "open":
        path, mode = str(arguments[0]), arguments[1] or "r"
        written = any(letter in mode for letter in "wax+") and not path.split(".")[-1].startswith("pyc")
        if written or not path.startswith(code) or path.endswith((".csv", ".json", ".parquet")):
            touched.append(f"open {path}")
sys.addaudithook(watch)
found = {}
for file in sys.argv[2:]:
    before = set(sys.modules)
    SourceFileLoader("parsed", file).load_module()
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    found[file] = {"touched": list(touched), "loaded": sorted(loaded - sys.stdlib_module_names)}
import lockstep.orchestration.plugin
pages = [name for name in sys.modules if name.startswith("lockstep.ui")]
print(json.dumps({"files": found, "pages": pages}))
"""


#: The library, the example's own code, and the drivers of the sinks that it names. No Spark, no pandas, no provider.
LIGHT = {"lockstep", "spark_apps", "parsed", "airflow", "pyarrow", "numpy", "pgpq", "psycopg2", "confluent_kafka"}
LIGHT |= {"sqlalchemy"}  # more of it: Airflow has loaded the rest


@cache
def parsed() -> dict[str, Any]:
    """What importing each file did in a fresh process, once Airflow and Lockstep themselves were imported."""
    if before_3_2():
        pytest.skip("3.1 loads its schemas of params when the first DAG is parsed")
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'plugins'}"}
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(CHECKOUT), *map(str, FILES)],
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return dag_bag(CHECKOUT / "dags")


def test_every_file_is_found_and_imports(bag: DagBag) -> None:
    assert not bag.import_errors
    assert set(bag.dags) == {"flights", "kafka_windows", "lockstep_recovery"}
    assert {Path(dag.fileloc).name for dag in bag.dags.values()} == {file.name for file in FILES}


def test_no_dag_has_a_cycle(bag: DagBag) -> None:
    for dag in bag.dags.values():
        dag.check_cycle()


def test_every_dag_has_an_owner_tags_and_a_description(bag: DagBag) -> None:
    for dag in bag.dags.values():
        assert dag.tags and dag.doc_md and dag.owner != "airflow"


def test_every_sink_of_the_flights_has_its_prepare_and_its_publish(bag: DagBag) -> None:
    from spark_apps.flights import pipeline

    tasks = set(bag.dags["flights"].task_ids)
    for sink in pipeline.sinks:
        assert {f"prepare.{sink.name}", f"publish.{sink.name}"} <= tasks


@cases("file", FILES)
def test_parsing_touches_no_network_no_process_and_no_file_but_code_and_never_waits(file: Path) -> None:
    assert parsed()["files"][str(file)]["touched"] == []


@cases("file", FILES)
def test_parsing_loads_the_library_and_drivers_and_nothing_heavier(file: Path) -> None:
    assert set(parsed()["files"][str(file)]["loaded"]) <= LIGHT


def test_no_dag_file_and_no_task_waits_for_what_serves_pages() -> None:
    assert parsed()["pages"] == []


def test_files_are_thin() -> None:
    assert [file.name for file in FILES if len(file.read_text().splitlines()) >= 80] == []


def test_the_plugin_loader_leaves_the_library_and_the_standard_library_alone() -> None:
    script = (
        "import types, sys; before = types\n"
        "from airflow import plugins_manager\n"
        "if hasattr(plugins_manager, '_get_plugins'):\n"
        "    plugins, errors = plugins_manager._get_plugins()\n"
        "else:\n"  # 3.1
        "    plugins_manager.ensure_plugins_loaded()\n"
        "    plugins, errors = plugins_manager.plugins, plugins_manager.import_errors\n"
        "assert not errors, errors\n"
        "assert 'lockstep' in [plugin.name for plugin in plugins], plugins\n"
        "import types as after; assert after is before\n"
        "bare = [m for m in ('digest', 'epoch', 'begin', 'states', 'ledger') if m in sys.modules]\n"
        "assert not bare, bare\n"
        "import lockstep.wal.digest\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "AIRFLOW__CORE__PLUGINS_FOLDER": str(CHECKOUT / "plugins"), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

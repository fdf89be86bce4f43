"""The DAG files that are shipped, and those that the documentation shows, as the DAG processor meets them; and the
settings of docker-compose.yaml, which Airflow would pass over if it had no such ones."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, before_3_2, dag_bag, first_run

CHECKOUT = Path(__file__).parents[2]
SHIPPED = ("flights", "kafka_windows", "lockstep_recovery")  #: a user may put others beside them
FILES = [CHECKOUT / "dags" / f"{name}.py" for name in SHIPPED]

PARSE = """
import json, sys, sysconfig
import airflow.sdk, lockstep.airflow.dag
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
import lockstep.airflow.plugin
pages = [name for name in sys.modules if name.startswith("lockstep.airflow.ui")]
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


def test_every_file_is_found_and_imports() -> None:
    bag = dag_bag(CHECKOUT / "dags")
    assert not {Path(file).name for file in bag.import_errors} & {file.name for file in FILES}
    assert {Path(bag.dags[name].fileloc) for name in SHIPPED} == set(FILES)
    for name in SHIPPED:
        assert bag.dags[name].tags and bag.dags[name].doc_md and bag.dags[name].owner != "airflow"


@cases("file", FILES)
def test_parsing_touches_and_loads_nothing_but_the_library_and_drivers_and_never_waits(file: Path) -> None:
    found = parsed()["files"][str(file)]
    assert found["touched"] == [], "no network, no process, and no file but code"
    assert set(found["loaded"]) <= LIGHT


def test_no_dag_file_and_no_task_waits_for_what_serves_pages() -> None:
    assert parsed()["pages"] == []


# --- the documentation ---

BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.M | re.S)
NAMED = re.compile(r'(?:# |""")dags/(\w+)\.py: an Airflow DAG')
MAKERS = {"DAG", "dag", "epoch_dag", "EpochTaskGroup", "recovery_dag", "compaction_dag"}
LAUNCHERS = CHECKOUT / "docs" / "how-to" / "launchers.md"


class Shown(NamedTuple):
    page: Path
    text: str

    def file(self) -> str | None:
        """What it says that it is."""
        named = NAMED.match(self.text)
        return named and f"{named[1]}.py"


def blocks(page: Path) -> list[Shown]:
    return [Shown(page, textwrap.dedent(text)) for _, text in BLOCK.findall(page.read_text())]


PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EVERY = [block for page in PAGES for block in blocks(page)]
DAG_FILES = [block for block in EVERY if block.file()]
#: What the files name and no package has: the README's own pipeline.
[ORDERS] = [
    block.text for block in EVERY if block.page == CHECKOUT / "README.md" and "# spark_apps/orders.py" in block.text
]


def imports_of(text: str) -> set[tuple[str, str]]:
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {(node.module or "", alias.name) for node in found for alias in node.names}


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pipeline, and as far as a file needs it that is only parsed, a provider."""
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    orders, livy = ModuleType("spark_apps.orders"), ModuleType("airflow.providers.apache.livy.hooks.livy")
    vars(livy)["LivyHook"] = object
    for module in (orders, livy):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(ORDERS, "orders.py", "exec"), vars(orders))


def test_every_block_that_makes_a_dag_says_so_in_its_first_line() -> None:
    """Airflow passes a file over that lacks the word, and a reader has to know where it belongs."""
    makers = [block for block in EVERY if MAKERS & {name for _, name in imports_of(block.text)}]
    assert len(makers) > 5
    assert [block for block in makers if not block.file()] == []


def with_the_launcher_that_the_page_names(block: Shown) -> str:
    """The file, ended as the page says: with a launcher's class and the line that makes the DAG."""
    [line] = re.findall(r"^    (dag = orders_dag\(.*\))$", block.page.read_text(), re.M)
    [launcher] = [one.text for one in EVERY if one.page == block.page and "class LivyLauncher" in one.text]
    return f"{block.text}\n{launcher}\n{line}\n"


@cases("block", DAG_FILES)
@pytest.mark.usefixtures("imported")
def test_a_dag_file_of_the_documentation_makes_its_dag(block: Shown, tmp_path: Path) -> None:
    import airflow.sdk

    lacks = [
        name for module, name in imports_of(block.text) if module == "airflow.sdk" and not hasattr(airflow.sdk, name)
    ]
    if lacks:
        pytest.skip(f"this Airflow's SDK has no {', '.join(sorted(lacks))}")
    file = tmp_path / "dags" / str(block.file())
    file.parent.mkdir()
    file.write_text(with_the_launcher_that_the_page_names(block) if block.page == LAUNCHERS else block.text)
    bag = dag_bag(file.parent)
    assert not bag.import_errors
    [dag] = bag.dags.values()
    assert dag.dag_id == file.stem and dag.task_ids
    dag.check_cycle()
    known = as_airflow_has_it(dag)
    assert "Asset" in type(known.timetable).__name__ or first_run(known), "its schedule has runs"


def test_every_setting_of_airflow_in_the_deployment_is_one_that_it_has() -> None:
    from airflow.configuration import conf

    services = yaml.safe_load((CHECKOUT / "docker-compose.yaml").read_text())["services"].values()
    settings = {name for one in services for name in one.get("environment", {}) if name.startswith("AIRFLOW__")}
    described = conf.configuration_description.items()
    known = {f"AIRFLOW__{section}__{option}".upper() for section, one in described for option in one["options"]}
    assert len(settings) > 10
    assert settings - known == set()

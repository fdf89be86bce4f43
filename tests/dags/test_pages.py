"""The DAG files that the documentation shows, as the DAG processor meets them."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, dag_bag, first_run

CHECKOUT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.M | re.S)
NAMED = re.compile(r'(?:# |""")dags/(\w+)\.py: an Airflow DAG')
MAKERS = {"DAG", "dag", "epoch_dag", "EpochTaskGroup", "recovery_dag", "compaction_dag"}
LAUNCHERS = "docs/how-to/launchers.md"


class Shown(NamedTuple):
    page: str
    text: str

    def file(self) -> str | None:
        """What it says that it is."""
        named = NAMED.match(self.text)
        return named and f"{named[1]}.py"


def blocks(page: Path) -> list[Shown]:
    name = page.relative_to(CHECKOUT).as_posix()
    return [Shown(name, textwrap.dedent(text)) for _, text in BLOCK.findall(page.read_text())]


PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EVERY = [block for page in PAGES for block in blocks(page)]
DAG_FILES = [block for block in EVERY if block.file()]
#: What the files name and no package has: the README's own pipeline.
[ORDERS] = [block.text for block in EVERY if block.page == "README.md" and "# spark_apps/orders.py" in block.text]


def imports_of(text: str) -> set[tuple[str, str]]:
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {(node.module or "", alias.name) for node in found for alias in node.names}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    module = ModuleType("spark_apps.orders")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(ORDERS, "orders.py", "exec"), module.__dict__)


@pytest.fixture
def livy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a file needs it that is only parsed."""
    module = ModuleType("airflow.providers.apache.livy.hooks.livy")
    vars(module)["LivyHook"] = object
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_every_block_that_makes_a_dag_says_so_in_its_first_line() -> None:
    """Airflow passes a file over that lacks the word, and a reader has to know where it belongs."""
    makers = [block for block in EVERY if MAKERS & {name for _, name in imports_of(block.text)}]
    assert len(makers) > 5
    assert [block for block in makers if not block.file()] == []


def with_the_launcher_that_the_page_names(block: Shown) -> str:
    """The file, ended as the page says: with a launcher's class and the line that makes the DAG."""
    page = (CHECKOUT / block.page).read_text()
    [line] = re.findall(r"^    (dag = orders_dag\(.*\))$", page, re.M)
    [launcher] = [one.text for one in blocks(CHECKOUT / block.page) if "class LivyLauncher" in one.text]
    return f"{block.text}\n{launcher}\n{line}\n"


@cases("block", DAG_FILES)
@pytest.mark.usefixtures("orders", "livy")
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

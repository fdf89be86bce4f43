"""The README's own pipeline, and the notebook that runs it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import lockstep
from lockstep import Pipeline

README = Path(__file__).parents[2] / "README.md"


def _example(first_line: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S)
    [found] = [block for block in blocks if block.startswith(first_line)]
    return str(found)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The README's `spark_apps/orders.py`, importable."""
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    module = ModuleType("spark_apps.orders")
    monkeypatch.setitem(sys.modules, "spark_apps.orders", module)
    exec(compile(_example("# spark_apps/orders.py"), "orders.py", "exec"), module.__dict__)
    return module


def test_the_shortest_pipeline_is_a_pipeline_that_another_process_can_import(orders: ModuleType) -> None:
    assert isinstance(orders.pipeline, Pipeline)
    assert orders.pipeline.reference() == "spark_apps.orders:pipeline"


@pytest.mark.slow
def test_the_notebook_runs(
    orders: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ledger_dsn: str,
    warehouse_dsn: str,
    spark_connect: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    landing = tmp_path / "landing" / "orders"
    landing.mkdir(parents=True)
    (landing / "2026-01-01.csv").write_text("id,customer,amount\n1,a,10.50\n2,b,-3.00\n3,a,1.25\n")
    for name, value in {
        "LEDGER": ledger_dsn,
        "WAREHOUSE": warehouse_dsn,
        "STAGING": str(tmp_path / "staging"),
        "SPARK": spark_connect,
    }.items():
        monkeypatch.setenv(f"LOCKSTEP_{name}", value)
    exec(compile(_example("# in a notebook"), "notebook", "exec"), {"__name__": "__main__"})
    assert "cleaned {'paid': 2, 'refunds': 1}" in capsys.readouterr().out
    assert [Path(path).name for path in lockstep.files(str(tmp_path / "out" / "refunds"))]

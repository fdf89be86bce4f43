"""docs/tutorial.md, done as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import lockstep

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def _write(folder: Path, source: str) -> None:
    """A Python block, into the file that its first line names."""
    named = re.match(r"# ([\w/]+\.py)", source)
    assert named, source
    path = folder / named[1]
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)


@pytest.mark.tier("all")
@pytest.mark.slow
def test_the_tutorial_does_what_it_says(
    tmp_path: Path, ledger_dsn: str, warehouse_dsn: str, spark_connect: str
) -> None:
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "LOCKSTEP_"))}
    environment = inherited | {
        "LOCKSTEP_HOME": str(tmp_path / "home"),
        "LOCKSTEP_LEDGER": ledger_dsn,
        "LOCKSTEP_WAREHOUSE": warehouse_dsn,
        "LOCKSTEP_STAGING": str(tmp_path / "staging"),
        "LOCKSTEP_SPARK": spark_connect,
    }
    said, answers = "", 0
    for language, text in BLOCK.findall(TUTORIAL.read_text()):
        if language == "python":
            _write(tmp_path, text)
        elif language == "text":
            answers += 1
            assert said == text
        elif not text.startswith("make "):  # tests/e2e and tests/cli/test_env.py do these
            done = subprocess.run(
                ["bash", "-euc", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            said = done.stdout
            assert done.returncode == 0, f"{text}\n{said}\n{done.stderr}"
    assert answers == 4


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
    assert orders.pipeline.reference() == "spark_apps.orders:pipeline", "another process can import it"
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

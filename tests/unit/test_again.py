"""A test that fails by the load alone is run again; a test that fails by itself fails; many don't fail by the load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import MOST, run_again

BROKEN, MENDED = "def test_{}():\n    assert False\n", "def test_{}():\n    assert True\n"


def run(root: Path, text: str, tests: int) -> None:
    """Once, as it is written now."""
    (root / "test_it.py").write_text("".join(text.format(number) for number in range(tests)))
    subprocess.run([sys.executable, "-m", "pytest", "--quiet"], cwd=root, check=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_what_passes_the_second_time_is_told_as_flaky(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(root, BROKEN, MOST)
    (root / "test_it.py").write_text((root / "test_it.py").read_text().replace("False", "True"))
    assert run_again(root) == 0
    assert "flaky: test_it.py::test_0\n" in capfd.readouterr().err


def test_what_fails_again_fails(root: Path) -> None:
    run(root, BROKEN, 1)
    assert run_again(root) == 1


def test_many_are_not_run_again(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(root, BROKEN, MOST + 1)
    (root / "test_it.py").write_text((root / "test_it.py").read_text().replace("False", "True"))
    assert run_again(root) == 1
    assert "more than" in capfd.readouterr().err


def test_a_failure_of_something_else_is_not_forgiven(root: Path) -> None:
    assert run_again(root) == 1
    run(root, MENDED, 1)
    assert run_again(root) == 1

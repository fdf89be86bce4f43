"""What a run of the suite says while it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """\
from tests.suite import EarlyFailures

def pytest_configure(config):
    config.pluginmanager.register(EarlyFailures(config))
"""
TESTS = """\
def test_first():
    assert 1 == 2, "they differ"

def test_second():
    print("the second begins")
"""


@pytest.mark.parametrize("shared_out", [(), ("--numprocesses", "1")], ids=["by one process", "shared out"])
def test_a_failure_is_told_when_it_happens(tmp_path: Path, shared_out: tuple[str, ...]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--quiet", "--capture", "no", *shared_out]
    told = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    ).stdout
    line = "call failed: test_it.py::test_first AssertionError: they differ\n"
    assert line in told
    assert told.index(line) < told.index("= FAILURES =")
    if not shared_out:
        assert told.index(line) < told.index("the second begins")

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


@pytest.mark.tier("all")
def test_a_failure_is_told_when_it_happens(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--quiet", "--capture", "no"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = "call failed: test_it.py::test_first AssertionError: they differ\n"
    for shared_out, next_said in ([], "the second begins"), (["--numprocesses", "1"], "= FAILURES ="):
        told = subprocess.run(
            [*command, *shared_out], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        ).stdout
        assert line in told
        assert told.index(line) < told.index(next_said) <= told.index("= FAILURES =")

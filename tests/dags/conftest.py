"""Airflow without a database: it gets a home of its own before anything imports it.

These tests import it within them: that takes seconds, and every process that runs tests reads every file.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

_home = tempfile.TemporaryDirectory(prefix="lockstep-airflow-")
os.environ.setdefault("AIRFLOW_HOME", _home.name)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))


@pytest.fixture(scope="session", autouse=True)
def airflow() -> None:
    """No single test is to take the seconds."""

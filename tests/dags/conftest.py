"""Airflow without a database: it gets a home of its own before anything imports it.

These tests import it within them: that takes seconds, and every process that runs tests reads every file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from stack.postgres import PostgresServer
from tests.crash.world import make_world
from tests.dags.observed import Observed

_home = tempfile.TemporaryDirectory(prefix="lockstep-airflow-")
os.environ.setdefault("AIRFLOW_HOME", _home.name)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))


@pytest.fixture(scope="session", autouse=True)
def airflow() -> None:
    """No single test is to take the seconds."""


_numbers = count(1)


@pytest.fixture
def observed(memory_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observed]:
    """Operators on a real ledger, a table and a folder, which Airflow's Connections name."""
    names = [f"observed_{kind}_{next(_numbers)}" for kind in ("ledger", "warehouse")]
    ledger, warehouse = (memory_server.create_database(name) for name in names)
    world = make_world(ledger, warehouse, tmp_path, "two_phase")
    monkeypatch.setenv("LOCKSTEP_STAGING", str(world.staging_folder))
    for name, database in zip(("LOCKSTEP_LEDGER", "WAREHOUSE"), names, strict=True):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", memory_server.dsn(database).replace("postgresql://", "postgres://"))
    yield Observed(world)
    for name in names:
        memory_server.drop_database(name)

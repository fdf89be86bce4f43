"""Airflow without a database: it gets a home of its own before anything imports it.

These tests import it within them: that takes seconds, and every process that runs tests reads every file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from lockstep.ledger import Ledger
from stack.postgres import PostgresServer
from tests.crash.world import make_world
from tests.dags.observed import Observed
from tests.worlds import two_databases

_home = tempfile.TemporaryDirectory(prefix="lockstep-airflow-")
os.environ.setdefault("AIRFLOW_HOME", _home.name)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(Path(__file__).parents[2] / "plugins"))


@pytest.fixture(scope="session", autouse=True)
def airflow() -> None:
    """No single test is to take the seconds."""


@pytest.fixture
def ledger(ledger_server: PostgresServer, migrated: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An empty ledger, and Airflow's Connection to it."""
    dsn = ledger_server.create_database(f"ledger_{uuid4().hex}", migrated)
    monkeypatch.setenv("AIRFLOW_CONN_LOCKSTEP_LEDGER", dsn.replace("postgresql://", "postgres://"))
    with closing(Ledger(dsn)) as opened:
        yield opened


@pytest.fixture
def observed(
    ledger_server: PostgresServer, migrated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Observed]:
    """Operators on a real ledger, a table and a folder, which Airflow's Connections name."""
    with two_databases(ledger_server, migrated) as databases:
        world = make_world(databases["ledger"], databases["warehouse"], tmp_path, "two_phase")
        monkeypatch.setenv("LOCKSTEP_STAGING", str(world.staging_folder))
        for name, dsn in (("LOCKSTEP_LEDGER", world.ledger_dsn), ("WAREHOUSE", world.warehouse_dsn)):
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", dsn.replace("postgresql://", "postgres://"))
        yield Observed(world)

"""What the command line is tried on: a real ledger, and real sinks that the environment names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from stack.postgres import PostgresServer
from tests.crash.world import World, make_world

Lockstep = Callable[..., Result]
_numbers = count(1)


@pytest.fixture
def databases(memory_server: PostgresServer) -> Iterator[dict[str, str]]:
    """A ledger's and a warehouse's, on the server that makes them soonest: nothing here is about power or disks."""
    number = next(_numbers)
    names = {kind: f"cli_{kind}_{number}" for kind in ("ledger", "warehouse")}
    yield {kind: memory_server.create_database(name) for kind, name in names.items()}
    for name in names.values():
        memory_server.drop_database(name)


@pytest.fixture
def world(databases: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = make_world(databases["ledger"], databases["warehouse"], tmp_path, "two_phase")
    monkeypatch.setenv("LOCKSTEP_LEDGER", made.ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", str(made.staging_folder))
    monkeypatch.setenv("LOCKSTEP_WAREHOUSE", made.warehouse_dsn)
    return made


@pytest.fixture
def lockstep(world: World, monkeypatch: pytest.MonkeyPatch) -> Lockstep:
    """`lockstep` with some arguments, in a terminal of so many columns."""

    def run(*arguments: Any, columns: int = 200) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return run

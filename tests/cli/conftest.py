"""What the command line is tried on: a real ledger, and real sinks that the environment names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from lockstep.cli import app
from stack.postgres import PostgresServer
from tests.crash.world import World, make_world
from tests.worlds import two_databases

Lockstep = Callable[..., Result]


@pytest.fixture(scope="package", autouse=True)
def parser() -> Iterator[None]:
    """Made of the application once, not for each command: that takes longer than most of what they do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("typer.testing._get_command", cache(get_command))
        yield


def point_to(world: World, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LOCKSTEP_LEDGER", world.ledger_dsn)
    environment.setenv("LOCKSTEP_STAGING", str(world.staging_folder))
    environment.setenv("LOCKSTEP_WAREHOUSE", world.warehouse_dsn)


@pytest.fixture
def databases(ledger_server: PostgresServer, migrated: str) -> Iterator[dict[str, str]]:
    with two_databases(ledger_server, migrated) as made:
        yield made


@pytest.fixture
def world(databases: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = make_world(databases["ledger"], databases["warehouse"], tmp_path, "two_phase")
    point_to(made, monkeypatch)
    return made


@pytest.fixture
def lockstep(monkeypatch: pytest.MonkeyPatch) -> Lockstep:
    """`lockstep` with some arguments, in a terminal of so many columns."""

    def run(*arguments: Any, columns: int = 200) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return run

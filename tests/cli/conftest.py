"""What the command line is tried on: a real ledger, and real sinks that the environment names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from tests.crash.world import World, make_world

Lockstep = Callable[..., Result]


@pytest.fixture
def world(ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = make_world(ledger_dsn, warehouse_dsn, tmp_path, "two_phase")
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

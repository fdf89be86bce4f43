"""`lockstep rebuild`: shown first, written when a person agrees, refused where too little is proven."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from lockstep.epoch import RunKey
from lockstep.ledger import migrate
from stack.postgres import PostgresServer
from tests.cli.conftest import Lockstep
from tests.crash.world import World

DEFINED = ("--definition", "numbers_definition:pipeline")


@pytest.fixture
def lost(world: World, lockstep: Lockstep, ledger_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two days are published, the third half, and the ledger is another one, empty."""
    for last in ("cleanup", "cleanup", "publish.warehouse"):
        day = next(world.days)
        world.run_until(RunKey("rebuild", f"run {day}"), day, last)
    ledger = ledger_server.create_database(f"{world.ledger_dsn.rpartition('/')[2]}_rebuilt")
    migrate(ledger)
    monkeypatch.setenv("LOCKSTEP_LEDGER", ledger)
    module: Any = ModuleType("numbers_definition")
    module.pipeline = world.pipeline
    monkeypatch.setitem(sys.modules, "numbers_definition", module)
    return replace(world, ledger_dsn=ledger)


def test_a_plan_writes_nothing_and_agreeing_writes_it(lost: World, lockstep: Lockstep) -> None:
    found = next(one for one in json.loads(lockstep("doctor", "--json").stdout) if one["about"] == "numbers")
    assert found["command"] == "`lockstep rebuild numbers --plan`"
    planned = json.loads(lockstep("rebuild", "numbers", "--plan", "--json", *DEFINED).stdout)
    assert (planned["epochs"], planned["half_published"], planned["refused"]) == (3, [3], [])
    assert lost.execute(lost.ledger_dsn, "SELECT count(*) FROM lockstep.pipeline") == [(0,)]
    shown = lockstep("rebuild", "numbers", "--plan", *DEFINED)
    assert shown.exit_code == 0
    assert "3 epochs would be in the ledger, 2 of them shown by every sink" in shown.output
    assert "half published: epoch 3; recovery publishes it in files" in shown.output
    assert "not proven: " in shown.output and "→ lockstep rebuild numbers --agree --reason …" in shown.output
    agreed = lockstep("rebuild", "numbers", "--agree", "--reason", "its disk is gone", *DEFINED)
    assert agreed.exit_code == 0, agreed.output
    assert "3 epochs are in the ledger" in agreed.output
    assert lockstep("recover").exit_code == 0
    for day in range(3):
        lost.require_exactly_once(day)
    again = lockstep("rebuild", "numbers", "--plan", *DEFINED)
    assert again.exit_code == 1 and "only an empty one is rebuilt" in again.stderr


def test_what_is_refused_is_told_and_nothing_is_written(lost: World, lockstep: Lockstep) -> None:
    for said in ((), ("--agree",), ("--plan", "--agree", "--reason", "x"), ("--plan", "--reason", "x")):
        assert lockstep("rebuild", "numbers", *said, *DEFINED).exit_code == 2, "one of the two has to be said"
    for folder in lost.left_in_staging():
        shutil.rmtree(lost.staging_folder / folder)
    refused = lockstep("rebuild", "numbers", "--agree", "--reason", "a try", *DEFINED)
    assert refused.exit_code == 1
    assert "refused: epoch 3 is not shown by files" in refused.output and "nothing is written" in refused.output
    assert lost.execute(lost.ledger_dsn, "SELECT count(*) FROM lockstep.pipeline") == [(0,)]

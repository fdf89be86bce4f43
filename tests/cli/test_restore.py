"""`lockstep restore`: what it would do, and what it does."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from lockstep.epoch import RunKey
from tests.cli.conftest import Lockstep
from tests.crash.restating_world import wrong_rows
from tests.crash.test_kept_wals import pass_time
from tests.crash.world import World, rows_of_day, write_others

SAID = ("--definition", "numbers_definition:pipeline", "--reason", "it was right before")


@pytest.fixture
def kept(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Whose day 0 showed epoch 1 first, and shows epoch 2."""
    kept = replace(world, pipeline=replace(world.pipeline, keep_wal=timedelta(days=1)))
    module = ModuleType("numbers_definition")
    module.pipeline = kept.pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numbers_definition", module)
    for job, run in ((write_others, RunKey("cli", "first")), (None, RunKey("cli", "second", restate="a bug"))):
        for task in kept.tasks():
            kept.run_task(task, run, 0, *([job] if job else []))
    return kept


def told(lockstep: Lockstep, *arguments: Any, code: int = 0) -> Any:
    result = lockstep("restore", "numbers", *arguments, *SAID, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_plan_says_what_would_be_shown_in_place_of_what_and_changes_nothing(kept: World, lockstep: Lockstep) -> None:
    found = told(lockstep, "--epoch", 1, "--plan")
    assert (found["epoch"], found["generation"], found["shown"], found["refusals"]) == (1, 0, 2, {})
    assert found["rows"] == found["shown_rows"] == {"numbers": 20}
    assert found["kept_since"] is not None
    assert found["other_columns"] == []
    assert told(lockstep, "--epoch", 2, "--generation", 0, "--plan") == found
    said = lockstep("restore", "numbers", "--epoch", 1, "--plan", *SAID).output
    assert "epoch 1 (generation 0): numbers 20; its WAL is kept since" in said
    assert "in place of epoch 2, which is shown: numbers 20" in said
    assert kept._looking.last_epoch("numbers").id == 2  # type: ignore[union-attr]
    kept.execute(kept.warehouse_dsn, "DELETE FROM public.lockstep_marker")
    refused = told(lockstep, "--epoch", 1, "--plan", code=1)["refusals"]
    assert "sink warehouse holds no marker of it" in refused["warehouse"]


def test_rows_come_back_and_the_same_command_again_finds_that_all_is_done(kept: World, lockstep: Lockstep) -> None:
    [done] = told(lockstep, "--epoch", 1)
    assert (done["epoch"], done["state"], done["already_published"]) == (3, "cleaned", False)
    assert [kept.shown_in_warehouse(0), kept.shown_in_files(0), kept.bare_files(0)] == [wrong_rows(0)] * 3
    [again] = told(lockstep, "--epoch", 1)
    assert (again["epoch"], again["already_published"]) == (3, True)
    assert told(lockstep, "--epoch", 2)[0]["epoch"] == 4
    assert kept.shown_in_warehouse(0) == Counter(rows_of_day(0))
    since = lockstep("restore", "numbers", "--epoch", 1, *SAID)
    assert since.exit_code == 1
    assert "it was replaced since: give another reason" in since.stderr.replace("\n", " ")
    history = lockstep("status", "numbers", "--epoch", 3).output
    assert "the rows of epoch 1 again: it was right before" in history.replace("\n", " ")


def test_what_can_not_be_meant_or_is_not_kept_any_more_is_refused(kept: World, lockstep: Lockstep) -> None:
    refusals: list[tuple[tuple[Any, ...], str]] = [
        (("--epoch", 2), "it is the current generation"),
        (("--epoch", 1, "--generation", 1), "it is the current generation"),
        (("--epoch", 1, "--generation", 7), "has no generation 7, it has 0 (epoch 1), 1 (epoch 2)"),
        (("--epoch", 7), "no epoch 7"),
        (("--epoch", 1, "--reason", " "), "say why"),
    ]
    for arguments, said in refusals:
        result = lockstep("restore", "numbers", *SAID, *arguments)
        assert result.exit_code == 1 and said in result.stderr.replace("\n", " "), result.output
        assert kept._looking.last_epoch("numbers").id == 2  # type: ignore[union-attr]
    pass_time(kept, 1, timedelta(days=2))
    assert kept.recover().problems == []
    assert "isn't kept" in told(lockstep, "--epoch", 1, "--plan", code=1)["refusals"][""]
    result = lockstep("restore", "numbers", "--epoch", 1, *SAID)
    assert result.exit_code == 1
    assert "lockstep wal list numbers" in result.output
    assert kept._looking.last_epoch("numbers").id == 2  # type: ignore[union-attr]

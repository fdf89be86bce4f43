"""`lockstep env` finds the stack that runs, from wherever it is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from lockstep.operations import dev_stacks


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder outside of any checkout, as a user who runs nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("LOCKSTEP_HOME", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def stack(home: Path) -> Path:
    """What a stack that runs from `home` leaves there, and says to the user."""
    home.mkdir(parents=True)
    (home / dev_stacks.ENVIRONMENT).write_text(json.dumps({"LOCKSTEP_HOME": str(home)}))
    dev_stacks.remember(home)
    return home


def env(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["env", *arguments])


def test_it_is_found_from_any_folder_and_the_checkout_that_one_is_in_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = [stack(tmp_path / "other")]
    assert env().stdout == f"export LOCKSTEP_HOME={homes[0]}\n"
    homes.append(stack(tmp_path / "a checkout" / ".lockstep"))
    refused = env()
    assert refused.exit_code == 1
    assert all(f"LOCKSTEP_HOME={home}" in refused.stderr for home in homes), "one has to be named"
    assert env("--home", str(homes[0])).stdout == f"export LOCKSTEP_HOME={homes[0]}\n"
    monkeypatch.chdir(homes[1].parent)
    assert env().stdout == f"export LOCKSTEP_HOME='{homes[1]}'\n"


def test_what_was_stopped_or_another_user_has_put_into_a_folder_above_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, killed = stack(tmp_path / "stopped"), stack(tmp_path / "killed")
    dev_stacks.forget(stopped)
    (killed / dev_stacks.ENVIRONMENT).unlink()
    assert "no stack runs: start one with `make up`" in env().stderr
    refused = env("--home", str(tmp_path / "mine"))
    assert refused.exit_code == 1 and f"no stack runs from {tmp_path / 'mine'}" in refused.stderr
    stack(tmp_path / ".lockstep")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert env().exit_code == 1

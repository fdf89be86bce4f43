"""`lockstep env` finds the stack that runs, from wherever it is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lockstep import stacks
from lockstep.cli import app


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside of any checkout, and a user who runs nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("LOCKSTEP_HOME", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def stack(home: Path) -> Path:
    """What a stack that runs from `home` leaves there, and says to the user."""
    home.mkdir(parents=True)
    (home / stacks.ENVIRONMENT).write_text(json.dumps({"LOCKSTEP_HOME": str(home)}))
    stacks.remember(home)
    return home


def env(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["env", *arguments])


def found(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_found_from_any_folder(tmp_path: Path) -> None:
    home = stack(tmp_path / "checkout" / ".lockstep")
    assert found(env()) == f"export LOCKSTEP_HOME={home}\n"


def test_the_checkout_that_one_is_in_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack(tmp_path / "other")
    home = stack(tmp_path / "checkout" / ".lockstep")
    (tmp_path / "checkout" / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "checkout" / "docs")
    assert found(env()) == f"export LOCKSTEP_HOME={home}\n"


def test_what_another_user_has_put_into_a_folder_above_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack(tmp_path / ".lockstep")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert env().exit_code == 1


def test_of_several_one_has_to_be_named(tmp_path: Path) -> None:
    homes = [stack(tmp_path / name) for name in ("one", "two")]
    refused = env()
    assert refused.exit_code == 1
    assert all(f"LOCKSTEP_HOME={home}" in refused.stderr for home in homes)
    assert found(env("--home", str(homes[1]))) == f"export LOCKSTEP_HOME={homes[1]}\n"


def test_one_that_was_stopped_is_no_longer_found(tmp_path: Path) -> None:
    stopped, killed = stack(tmp_path / "stopped"), stack(tmp_path / "killed")
    stacks.forget(stopped)
    (killed / stacks.ENVIRONMENT).unlink()
    refused = env()
    assert (refused.exit_code, refused.stderr) == (
        1,
        "NotConfigured: no stack runs: start one with `make up` in a checkout of Lockstep\n",
    )


def test_a_home_without_a_running_stack_is_refused_by_name(tmp_path: Path) -> None:
    stack(tmp_path / "other")
    refused = env("--home", str(tmp_path / "mine"))
    assert refused.exit_code == 1 and f"no stack runs from {tmp_path / 'mine'}" in refused.stderr

"""What a person reads in a terminal: lists that fit it, attempts that count from one, a problem once."""

from __future__ import annotations

import json
import re

import pytest

from lockstep.epoch import RunKey
from lockstep.ledger import Ledger
from tests.cli.conftest import Lockstep
from tests.crash.world import World


def _run_as_airflow(world: World, day: int) -> None:
    """With an actor for every task, as long as Airflow's are."""
    run = RunKey("numbers", f"scheduled__2013-01-{day + 1:02}T00:00:00+00:00")
    for task in world.tasks():
        with pytest.MonkeyPatch.context() as patched:
            actor = f"airflow:{run.dag_id}/{run.run_id}/{task}#1"
            patched.setattr("lockstep.ledger._connection.default_actor", lambda actor=actor: actor)
            world.run_task(task, run, day)


def test_epochs_and_the_history_of_one_fit_the_terminal(world: World, lockstep: Lockstep) -> None:
    world.run(RunKey("cli", "0"), 0)
    _run_as_airflow(world, 1)
    world.run_until(RunKey("cli", "half"), 2, "prepare.warehouse")
    for columns in (80, 120):
        shown = lockstep("status", columns=columns).output
        assert all(len(line) <= columns for line in shown.splitlines())
        rows = [line.split() for line in shown.splitlines() if re.match(r"\s*\d+ ", line)]
        assert [row[0] for row in rows] == ["3", "2", "1"]
        assert len(shown.splitlines()) <= len(rows) + 4
        assert re.search(r"1 +2013-01-01 +cleaned +1 .*20 .*2 committed", shown)
        half = "files pending, warehouse prepared" if columns > 80 else "1 of 2 prepared"
        assert re.search(rf"3 +2013-01-03 +staged +1 .*{half}", shown)
        shown = lockstep("status", "numbers", "--epoch", 2, columns=columns).output
        moves = json.loads(lockstep("status", "numbers", "--epoch", 2, "--json").stdout)
        assert len(moves) == 11
        lines = shown.splitlines()
        assert all(len(line) <= columns for line in lines)
        assert len(lines) <= 2 * len(moves)
        for part in ("planned → staged", "pending → prepared", "prepared → published", "published → cleaned"):
            assert part in shown
        for one in moves:
            assert one["actor"] in shown


def test_an_attempt_counts_from_one_for_people_and_keeps_its_token_for_programs(
    world: World, lockstep: Lockstep, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lockstep")
    world.run(RunKey("cli", "other"), 0)
    run = RunKey("cli", "run")
    world.run_until(run, 1, "prepare.warehouse")
    token = world.epoch_of(1).attempt
    assert token > 1
    assert f"attempt 1 (token {token})" in caplog.text
    [pipeline] = json.loads(lockstep("status", "numbers", "--json").stdout)
    [first] = [one for one in pipeline["epochs"] if one["epoch"]["id"] == 2]
    assert (first["epoch"]["attempt"], first["attempts"]) == (token, 1)
    world.run_task("abort", run, 1)
    world.run_task("begin", run, 1)
    again = world.epoch_of(1).attempt
    history = lockstep("status", "numbers", "--epoch", 2).output
    assert f"attempt 1 (token {token})" in history
    assert f"attempt 2 (token {again})" in history
    moves = json.loads(lockstep("status", "numbers", "--epoch", 2, "--json").stdout)
    assert [(one["attempt"], one["ordinal"]) for one in moves if one["sink"] is None] == [
        (token, 1),
        (token, 1),
        (token + 3, None),  # of the abort: nobody's
        (again, 2),
    ]


def test_who_comes_too_late_is_told_which_attempt_it_was_and_what_to_clear(world: World) -> None:
    world.run(RunKey("cli", "other"), 0)
    late, ledger = RunKey("cli", "late"), Ledger(world.ledger_dsn)
    world.run_until(late, 1, "stage")
    old = ledger.find_run(late)
    assert old is not None
    world.expire_leases()
    world.run_task("begin", RunKey("cli", "young"), 1)
    young = world.epoch_of(1).attempt
    said = rf"attempt 1 \(token {old.token}\) .* attempt 2 \(token {young}\).*clear from begin: " + re.escape(
        "`airflow dags clear cli --run-id late`"
    )
    with pytest.raises(Exception, match=said):
        world.run_task("prepare.files", late, 1)


def test_a_problem_of_many_epochs_is_told_once_with_their_numbers(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for day in range(3):
        world.run_until(RunKey("cli", f"{day}"), day, "commit")
    with monkeypatch.context() as patched:
        patched.setenv("LOCKSTEP_WAREHOUSE", "postgresql://postgres@127.0.0.1:1/nowhere")
        down = lockstep("recover")
        [report] = json.loads(lockstep("recover", "--json").stdout)
    assert down.exit_code == 75
    [problem] = [line for line in down.output.splitlines() if "problem" in line]
    assert "SinkUnavailable: sink warehouse" in problem
    assert problem.endswith("(epochs 1, 2, 3)")
    assert report["problems"] == [problem.partition("problem: ")[2]]
    assert caplog.text.count("SinkUnavailable") <= 2  # once a round
    done = lockstep("recover")
    assert (done.exit_code, done.output) == (0, "numbers: 3 finished, 0 voided, 0 swept\n")

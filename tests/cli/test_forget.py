"""A mistyped pipeline: what never began leaves nothing, what never decided anything can be forgotten."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import psycopg2
import pytest

from lockstep.epoch import RunKey
from lockstep.errors import InvalidPipeline, LockstepError, PreflightRefused
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.pipeline import Pipeline
from lockstep.sinks.files import FileSink
from lockstep.sinks.postgres import PostgresSink
from tests.cli.conftest import Lockstep
from tests.crash.world import World, untouched

RUN = RunKey("cli", "run")


def _mistyped(world: World, table: str = "public.nmbers") -> World:
    sink = PostgresSink("warehouse", tables={"numbers": table}, connection="warehouse")
    pipeline = Pipeline("nmbers", world.pipeline.sources, untouched, [sink])
    return replace(world, pipeline=pipeline)


def _known(world: World) -> list[str]:
    return [found.name for found in Report(world.ledger_dsn).pipelines(limit=1)]


@pytest.mark.fault("H22")
def test_a_pipeline_that_never_passed_its_preflight_leaves_nothing_in_the_ledger(
    world: World, lockstep: Lockstep
) -> None:
    with pytest.raises(PreflightRefused, match=r"public\.nmbers"):
        _mistyped(world).run_task("begin", RUN, 0)
    assert _known(world) == []
    assert Ledger(world.ledger_dsn).find_run(RUN) is None
    result = lockstep("forget", "nothing", "--reason", "a test")
    assert (result.exit_code, result.stderr) == (1, "UnknownEpoch: the ledger has no pipeline nothing\n")


# --- lockstep forget ---


def _renamed(world: World, name: str) -> World:
    old = world.pipeline
    return replace(world, pipeline=Pipeline(name, old.sources, old.transform, old.sinks))


@pytest.mark.fault("H22")
def test_what_never_decided_anything_is_forgotten_with_all_that_it_left(world: World, lockstep: Lockstep) -> None:
    for reached in ("begin", "stage", "prepare.warehouse", "prepare.files"):
        name = f"nmbers_{reached.replace('.', '_')}"
        _renamed(world, name).run_until(RunKey("cli", name), 0, reached)
        done = lockstep("forget", name, "--reason", "a typing error")
        assert done.exit_code == 0, done.output
        assert f"{name} is forgotten" in done.output
        assert name not in lockstep("status").output
        world.require_tidy()
    world.run(RunKey("cli", "right"), 0)  # the tables and the folder belong to nobody
    world.require_exactly_once(0)


@pytest.mark.fault("Q7")
def test_looking_at_a_forgotten_pipeline_takes_no_target_for_it(world: World, lockstep: Lockstep) -> None:
    _renamed(world, "nmbers").run_until(RUN, 0, "prepare.warehouse")
    assert lockstep("forget", "nmbers", "--reason", "a typing error").exit_code == 0
    for option in ((), ("--fix",)):
        assert "the pipeline was forgotten" in lockstep("doctor", "nmbers", *option).output
    world.run(RunKey("cli", "right"), 0)
    world.require_exactly_once(0)


def test_who_forgot_and_why_can_still_be_asked_and_the_name_stays_taken(world: World, lockstep: Lockstep) -> None:
    _renamed(world, "nmbers").run_until(RUN, 0, "stage")
    lockstep("forget", "nmbers", "--reason", "a typing error")
    assert re.search(r"forgotten on .* by .*\(a typing error\)", lockstep("status", "nmbers").output)
    assert json.loads(lockstep("status", "nmbers", "--json").stdout)[0]["forgotten"]
    assert "a typing error" in lockstep("status", "nmbers", "--epoch", 1).output
    for run, day in ((RUN, 0), (RunKey("cli", "later"), 1)):
        with pytest.raises(InvalidPipeline, match=r"forgotten on .*\(a typing error\).*another"):
            _renamed(world, "nmbers").run_task("begin", run, day)


@pytest.mark.fault("H20")
def test_what_ever_decided_anything_is_never_forgotten(world: World, lockstep: Lockstep) -> None:
    world.run_until(RUN, 0, "commit")
    world.run_until(RunKey("cli", "second"), 1, "prepare.warehouse")
    for further in ((), ("publish.warehouse", "publish.files"), ("cleanup",)):
        for task in further:
            world.run_task(task, RUN, 0)
        refused = lockstep("forget", "numbers", "--reason", "regret")
        assert refused.exit_code == 1
        assert "IllegalTransition: can't forget pipeline numbers: epoch 1 is " in refused.stderr
        assert world.state_of(1) == "staged"
    world.run(RunKey("cli", "second"), 1, start="prepare.files")
    for day in (0, 1):
        world.require_exactly_once(day)


@pytest.mark.fault("H20")
def test_nobody_forgets_by_hand_what_has_an_epoch(world: World) -> None:
    world.run_task("begin", RUN, 0)
    assert _known(world) == ["numbers"]
    assert Ledger(world.ledger_dsn).recovery_grace("numbers") == world.pipeline.recovery_grace
    with pytest.raises(psycopg2.Error, match="epochs that are not void"):
        world.execute(
            world.ledger_dsn,
            "UPDATE lockstep.pipeline SET forgotten_at = now(), forgotten_by = 'me', forgotten_reason = 'hm', "
            "swept_until = now()",
        )


@pytest.mark.fault("H21")
def test_a_run_that_goes_on_after_its_pipeline_was_forgotten_shows_nothing(world: World, lockstep: Lockstep) -> None:
    old = _renamed(world, "nmbers")
    old.run_until(RUN, 0, "prepare.warehouse")
    assert lockstep("forget", "nmbers", "--reason", "a typing error").exit_code == 0
    for task in ("stage", "prepare.files", "commit", "publish.warehouse", "cleanup"):
        with pytest.raises(LockstepError):
            old.run_task(task, RUN, 0)
    world.require_nothing_shown(0)
    world.require_tidy()


@pytest.mark.fault("H21")
def test_recovery_looks_after_a_forgotten_pipeline_only_where_an_old_process_may_prepare(
    world: World, lockstep: Lockstep
) -> None:
    _renamed(world, "nmbers").run_until(RUN, 0, "stage")
    digits = replace(world, pipeline=_into_files("digits", world))
    digits.run_until(RunKey("cli", "digits"), 0, "prepare.digits")
    for name in ("nmbers", "digits"):
        assert lockstep("forget", name, "--reason", "a test").exit_code == 0
    assert Report(world.ledger_dsn).recoverable() == ["digits"]
    assert [one["pipeline"] for one in json.loads(lockstep("recover", "--json").stdout)] == ["digits"]


def test_forgetting_goes_on_where_a_sink_could_not_be_reached(
    world: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    _renamed(world, "nmbers").run_until(RUN, 0, "prepare.files")
    with monkeypatch.context() as patched:
        patched.setenv("LOCKSTEP_WAREHOUSE", "postgresql://postgres@127.0.0.1:1/nowhere")
        first = lockstep("forget", "nmbers", "--reason", "a typing error")
    assert first.exit_code == 75
    assert "run the same command again" in first.output
    again = lockstep("forget", "nmbers", "--reason", "a typing error")
    assert again.exit_code == 0, again.output
    world.require_tidy()
    world.run(RunKey("cli", "right"), 0)
    assert lockstep("forget", "nmbers", "--reason", "once more").exit_code == 0  # takes nothing from the new owner
    world.run(RunKey("cli", "next"), 1)
    world.require_exactly_once(1)


def _into_files(name: str, world: World) -> Pipeline:
    sink = FileSink(name, output="numbers", path=str(world.folder / name), format="parquet")
    return Pipeline(name, world.pipeline.sources, untouched, [sink])

"""Design table, second half: what people and machines do to a run. Whatever it is, every row shows up once."""

from __future__ import annotations

import os
import signal
from datetime import date, timedelta
from pathlib import Path

import pytest
from psycopg2 import sql

from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.detached import GATE
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]


@pytest.mark.fault("A6", "H5")
def test_a_clear_of_a_task_with_its_downstream_and_one_of_a_whole_published_run_verify_and_change_nothing(
    world: World,
) -> None:
    landed = world.land("orders", "2024-02-02")
    run_id = world.run("orders", "2024-02-02")
    before = world.epoch("orders", "2024-02-02")
    world.api.clear("orders", run_id, "stage", downstream=True)
    world.require_success("orders", run_id)
    assert world.epoch("orders", "2024-02-02") == before
    world.require_published_once("orders", "2024-02-02", landed)
    world.api.clear_run("orders", run_id)
    world.require_success("orders", run_id)
    assert world.epoch("orders", "2024-02-02") == before
    assert "its marker agrees" in world.api.log("orders", run_id, "publish.warehouse")
    world.require_published_once("orders", "2024-02-02", landed)


@pytest.mark.fault("C13", "H5", "H25")
def test_a_refusal_aborts_recovery_is_red_a_single_clear_fails_at_once_and_a_clear_from_begin_succeeds(
    world: World,
) -> None:
    landed = world.land("refused", "2024-02-03")
    world.query(sql.SQL("CREATE TABLE public.refused (id text, day text, amount float8, lockstep_epoch bigint)"))
    run_id = world.trigger("refused", "2024-02-03")
    assert world.api.wait_run("refused", run_id) == "failed"
    tasks = world.api.tasks("refused", run_id)
    assert (tasks["prepare.warehouse"]["state"], tasks["prepare.warehouse"]["try_number"]) == ("failed", 1)
    assert tasks["abort"]["state"] == "success"
    world.require_nothing_shown("refused", "2024-02-03")
    assert world.prepared() == []

    stuck = world.epoch("refused", "2024-02-03")
    red = world.round()
    assert world.api.run_state("lockstep_recovery", red) == "failed"
    states = world.api.states("lockstep_recovery", red)
    assert (states.pop("stuck_epochs"), states.pop("fail_on_unemitted")) == ("failed", "skipped")
    assert set(states.values()) == {"success"}
    assert stuck is not None
    said = world.api.log("lockstep_recovery", red, "stuck_epochs")
    assert f"pipeline refused: an epoch is stuck; epoch {stuck.id} (" in said

    world.query(sql.SQL("DROP TABLE public.refused"))
    world.api.clear("refused", run_id, "prepare.warehouse", downstream=False)
    assert world.api.wait_run("refused", run_id) == "failed"
    assert world.api.tasks("refused", run_id)["prepare.warehouse"]["state"] == "failed"
    assert "clear from begin" in world.api.log("refused", run_id, "prepare.warehouse")

    world.api.clear("refused", run_id, "begin", downstream=True)
    world.require_success("refused", run_id)
    world.require_published_once("refused", "2024-02-03", landed)
    told = world.api.log("lockstep_recovery", world.round(), "stuck_epochs")
    assert "pipeline refused: an epoch is stuck" not in told, "of days that it has no epoch of the log may tell"


@pytest.mark.fault("D10", "H6")
@pytest.mark.parametrize("day, marked", [("2024-02-04", "success"), ("2024-02-05", "skipped")])
def test_marking_an_unprepared_sink_a_success_or_skipped_makes_commit_refuse(
    world: World, day: str, marked: str
) -> None:
    landed = world.land("held", day)
    world.close_gate(day)
    run_id = world.trigger("held", day)
    world.wait_at_gate(day)
    world.api.mark_task("held", run_id, "prepare.warehouse", marked)
    world.open_gate(day)
    assert world.api.wait_run("held", run_id) == "failed"
    assert world.api.tasks("held", run_id)["commit"]["try_number"] == 1
    assert "NotPrepared" in world.api.log("held", run_id, "commit")
    world.require_nothing_shown("held", day)
    world.api.clear("held", run_id, "begin", downstream=True)
    world.require_success("held", run_id)
    world.require_published_once("held", day, landed)


@pytest.mark.fault("B6", "C25", "H2")
def test_kill_9_of_the_task_in_mid_stage_is_retried_and_what_spark_still_writes_is_rubbish(world: World) -> None:
    landed = world.land("held", "2024-02-06")
    world.close_gate("2024-02-06")
    run_id = world.trigger("held", "2024-02-06")
    world.wait_at_gate("2024-02-06")
    world.kill_task("held", run_id, "stage")
    world.wait_at_gate("2024-02-06")  # the second try, while Spark still runs the first one's job
    assert world.api.tasks("held", run_id)["stage"]["try_number"] == 2
    world.open_gate("2024-02-06")
    world.require_success("held", run_id)
    world.require_published_once("held", "2024-02-06", landed)


@pytest.mark.fault("H4", "H6")
def test_a_run_marked_failed_in_mid_stage_is_taken_over_by_the_next_run(world: World) -> None:
    landed = world.land("held", "2024-02-07")
    world.close_gate("2024-02-07")
    failed = world.trigger("held", "2024-02-07")
    world.wait_at_gate("2024-02-07")
    world.api.mark_run("held", failed, "failed")
    next_run = world.trigger("held", "2024-02-07")
    world.api.wait_task("held", next_run, "begin", {"up_for_reschedule", "success"})
    world.open_gate("2024-02-07")
    world.require_success("held", next_run)
    world.require_published_once("held", "2024-02-07", landed)


@pytest.mark.fault("H16")
def test_recovery_voids_the_attempt_of_a_deleted_run_and_leaves_one_alone_that_waits_for_a_slot(world: World) -> None:
    """Whatever hold it is asked for: to the ledger both look dead."""
    world.api.set_pool("narrow", 0)
    waits = world.land("held", "2024-02-15")
    waiting_run = world.trigger("held", "2024-02-15", dag_id="narrow")
    landed = world.land("held", "2024-02-08")
    world.close_gate("2024-02-08")
    run_id = world.trigger("held", "2024-02-08")
    world.wait_at_gate("2024-02-08")
    before = world.epoch("held", "2024-02-08")
    world.api.mark_run("held", run_id, "failed")
    world.api.delete_run("held", run_id)
    world.wait_lease_out("held", "2024-02-08")
    world.open_gate("2024-02-08")
    world.api.wait_task("narrow", waiting_run, "prepare.warehouse", {"scheduled"})
    world.wait_lease_out("held", "2024-02-15")
    waiting = world.epoch("held", "2024-02-15")
    world.recover(recovery_grace_minutes=0)
    after = world.epoch("held", "2024-02-08")
    assert before is not None and after is not None and after.attempt > before.attempt
    assert world.epoch("held", "2024-02-15") == waiting
    world.api.set_pool("narrow", 2)
    world.require_success("narrow", waiting_run)
    world.require_published_once("held", "2024-02-15", waits)
    world.run("held", "2024-02-08")
    world.require_published_once("held", "2024-02-08", landed)


@pytest.mark.fault("E1", "H16")
def test_recovery_finishes_a_decided_epoch_whose_run_is_gone_and_meanwhile_other_rounds_do_the_others(
    world: World,
) -> None:
    landed = world.land("held", "2024-02-09")
    world.close_gate("2024-02-09")
    run_id = world.trigger("held", "2024-02-09")
    world.wait_at_gate("2024-02-09")
    world.api.mark_task("held", run_id, "publish.warehouse", "failed")
    world.open_gate("2024-02-09")
    assert world.api.wait_run("held", run_id) == "failed"
    assert world.state("held", "2024-02-09") == "committed"
    assert not world.in_warehouse("held", "2024-02-09")
    world.api.delete_run("held", run_id)
    with world.recovering("held"):
        states = world.api.states("lockstep_recovery", world.round())
    done = [state for task, state in states.items() if task.startswith("recover")]
    assert done.count("skipped") == 1 and set(done) == {"skipped", "success"}, states
    assert world.state("held", "2024-02-09") == "committed"
    world.recover()
    world.require_published_once("held", "2024-02-09", landed)
    world.recover()
    epoch = world.epoch("held", "2024-02-09")
    assert epoch is not None
    for asset in ("held/warehouse", *(["held/warehouse:epochs"] if world.partitions else [])):
        told = [event for event in world.api.events_of(asset) if event["extra"].get("epoch") == epoch.id]
        assert len(told) == 1 and told[0]["source_dag_id"] == "lockstep_recovery"


@pytest.mark.fault("F2", "H6")
def test_marking_a_publish_a_success_leaves_it_to_cleanup_to_refuse_and_recovery_to_finish(world: World) -> None:
    landed = world.land("held", "2024-02-10")
    world.close_gate("2024-02-10")
    run_id = world.trigger("held", "2024-02-10")
    world.wait_at_gate("2024-02-10")
    world.api.mark_task("held", run_id, "publish.warehouse", "success")
    world.open_gate("2024-02-10")
    assert world.api.wait_run("held", run_id) == "failed"
    assert "IllegalTransition" in world.api.log("held", run_id, "cleanup")
    world.recover()
    world.require_published_once("held", "2024-02-10", landed)


# --- jobs that work elsewhere take no slot ---

AT_WORK = 4
LONG = 400.0  #: seconds, for so many processes on a machine that is busy with other things
DAYS = [str(date(2024, 5, 1) + timedelta(days=day)) for day in range(AT_WORK)]
CLEARED = DAYS[0]


@pytest.mark.timeout(1200)
@pytest.mark.fault("B24")
def test_jobs_at_work_take_no_slot_and_what_they_wrote_is_shown_once_whoever_dies(
    world: World, stack: TestedStack
) -> None:
    world.api.set_pool("staging", 2)
    world.close_gate(GATE)
    landed = {day: world.land("left", day) for day in DAYS}
    runs = {day: world.trigger("left", day) for day in DAYS}

    def deferred() -> int:
        states = world.api.all_states("left", "stage")
        return sum(states.get(run_id) == "deferred" for run_id in runs.values())

    wait_for(lambda: deferred() == AT_WORK, "every job to be left to itself", LONG)
    pool = world.api.pool("staging")
    assert (pool["running_slots"], pool["queued_slots"], pool["open_slots"]) == (0, 0, 2)
    assert pool["deferred_slots"] == AT_WORK
    assert "waiting, JobAtWork: job " in world.api.log("left", runs[CLEARED], "stage")
    assert _launched(world) == AT_WORK

    world.api.clear("left", runs[CLEARED], "stage", downstream=True)
    wait_for(lambda: _launched(world) == AT_WORK + 1 and deferred() == AT_WORK, "a second job of the day")
    wait_for(lambda: _ended(world) == 1, "its first one to be cancelled")

    stack.airflow.kill("triggerer")
    world.hold_publisher("sealer")
    world.open_gate(GATE)
    wait_for(lambda: _ended(world) == AT_WORK + 1, "all jobs to end, while nobody looks", LONG)
    stack.airflow.start("triggerer")
    os.kill(world.wait_for_held_publisher("sealer"), signal.SIGKILL)  # with a manifest that the ledger doesn't know
    world.release_publisher("sealer")
    for day in DAYS:
        world.require_success("left", runs[day])
    for day in DAYS:
        world.require_published_once("left", day, landed[day])
    tries = [int(world.api.tasks("left", runs[day])["stage"]["try_number"]) for day in DAYS]
    assert sorted(tries)[:-2] == [1] * (AT_WORK - 2), "to wait cost none"
    assert AT_WORK + 2 <= _launched(world) <= sum(tries), "no try launches twice"


def _launched(world: World) -> int:
    return len(list((world.home / "jobs").glob("*.pid")))


def _ended(world: World) -> int:
    return len([place for place in (world.home / "jobs").glob("*") if not Path(place).suffix])

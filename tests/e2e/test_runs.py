"""Design table, first half: what the scheduler and people start moves the epoch to `cleaned`, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.groups import Row
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

SINKS = ("warehouse", "archive")


def test_scheduled_runs_move_their_intervals(world: World) -> None:
    days = ["2024-01-01", "2024-01-02"]
    landed = {day: world.land("scheduled", day) for day in days}
    world.api.unpause("scheduled")
    world.wait_states("scheduled", days, "cleaned")
    for run_id in world.api.runs("scheduled"):
        world.require_success("scheduled", run_id)
    for day in days:
        world.require_published_once("scheduled", day, landed[day])


def test_a_trigger_with_params_moves_the_interval_that_they_name_and_tells_assets_of_epoch_and_rows(
    world: World,
) -> None:
    landed = world.land("orders", "2024-01-04")
    run_id = world.run("orders", "2024-01-04")
    world.require_published_once("orders", "2024-01-04", landed)
    assert world.api.states("orders", run_id)["abort"] == "skipped"
    epoch = world.epoch("orders", "2024-01-04")
    assert epoch is not None
    about = {"pipeline": "orders", "epoch": epoch.id}
    for task_id, further in (("stage", {}), ("publish.warehouse", {"sink": "warehouse"})):
        lines = world.api.log_entries("orders", run_id, task_id)
        ours = [line for line in lines if str(line.get("logger", "")).startswith("lockstep.protocol")]
        fielded = [line for line in ours if (about | further).items() <= line.items()]
        assert fielded and all(line["token"] >= epoch.attempt for line in fielded), lines
    events = world.api.asset_events("orders", run_id)
    named = {event["name"]: event.get("partition_key") for event in events}
    start = "2024-01-04T00:00:00" if world.partitions else None
    partitions = {f"orders/{sink}:epochs": start for sink in SINKS} if world.partitions else {}
    assert named == {**{f"orders/{sink}": None for sink in SINKS}, **partitions} and len(events) == len(named)
    assert epoch.summary
    for event in events:
        extra = event["extra"]
        assert (extra["epoch"], extra["rows"]) == (epoch.id, {"orders": landed.total()})
        assert extra["digest"] == {"orders": epoch.summary["outputs"]["orders"]["digest"]}

    world.api.clear("orders", run_id, "publish.warehouse", downstream=True)
    world.require_success("orders", run_id)
    assert len(world.api.asset_events("orders", run_id)) == len(events), "what they know they aren't told again"


def test_a_trigger_without_an_interval_is_refused_at_once_with_the_params_that_give_one(world: World) -> None:
    world.api.unpause("orders")
    run_id = world.api.trigger("orders")
    assert world.api.wait_run("orders", run_id) == "failed"
    assert world.api.tasks("orders", run_id)["begin"]["try_number"] == 1
    log = world.api.log("orders", run_id, "begin")
    assert "IntervalMissing" in log and "interval_start" in log and "interval_end" in log


@pytest.mark.fault("H9")
def test_a_backfill_moves_each_interval_in_any_order_and_a_second_one_changes_nothing(world: World) -> None:
    days = ["2024-01-05", "2024-01-06"]
    landed = {day: world.land("orders", day) for day in days}
    world.api.unpause("orders")
    world.api.backfill("orders", days[0], days[-1], run_backwards=True, max_active_runs=2)
    epochs = {day: world.epoch("orders", day) for day in days}
    world.api.backfill("orders", days[0], days[-1], reprocess_behavior="completed")
    for day in days:
        world.require_published_once("orders", day, landed[day])
        assert world.epoch("orders", day) == epochs[day]


@pytest.mark.fault("H24")
def test_a_task_waits_for_its_input_without_a_failed_try_and_says_for_what_and_a_run_that_goes_leaves_nothing_behind(
    world: World,
) -> None:
    run_id = world.trigger("orders", "2024-01-15")
    world.api.wait_task("orders", run_id, "begin", {"up_for_reschedule"})
    world.api.clear_run("orders", run_id)
    world.api.wait_task("orders", run_id, "begin", {"up_for_reschedule"})
    assert "gives up in 2:00:00" in world.api.log("orders", run_id, "begin")  # its patience counts anew
    world.api.mark_run("orders", run_id, "failed")
    world.api.delete_run("orders", run_id)
    assert world.epoch("orders", "2024-01-15") is None
    run_id = world.trigger("orders", "2024-01-15")
    world.api.wait_task("orders", run_id, "begin", {"up_for_reschedule"})
    assert world.epoch("orders", "2024-01-15") is None
    log = world.api.log("orders", run_id, "begin")
    assert "waiting, SourceNotReady: " in log and "2024-01-15.csv" in log and "gives up in" in log
    assert "error_detail" not in log
    landed = world.land("orders", "2024-01-15")
    world.require_success("orders", run_id)
    assert world.api.tasks("orders", run_id)["begin"]["try_number"] == 1
    world.require_published_once("orders", "2024-01-15", landed)


@pytest.mark.fault("A3", "H8")
def test_two_runs_of_one_epoch_at_once_end_green_with_one_set_of_rows(world: World) -> None:
    landed = world.land("held", "2024-01-09")
    world.close_gate("2024-01-09")
    first = world.trigger("held", "2024-01-09")
    world.wait_at_gate("2024-01-09")
    epoch = world.epoch("held", "2024-01-09")
    second = world.trigger("held", "2024-01-09")
    world.api.wait_task("held", second, "begin", {"up_for_reschedule"})
    assert "EpochBusy" in world.api.log("held", second, "begin")
    world.open_gate("2024-01-09")
    world.require_success("held", first)
    world.require_success("held", second)
    world.require_published_once("held", "2024-01-09", landed)
    after = world.epoch("held", "2024-01-09")
    assert epoch is not None and after is not None and after.attempt == epoch.attempt


def test_a_cursor_pipeline_takes_what_is_new_since_its_last_epoch(world: World) -> None:
    first = world.land("watched", "2024-01-10")
    world.api.unpause("watched")
    world.require_success("watched", world.api.trigger("watched"))
    second = world.land("watched", "2024-01-11")
    world.require_success("watched", world.api.trigger("watched"))
    for day, landed in {"2024-01-10": first, "2024-01-11": second}.items():
        assert world.in_warehouse("watched", day) == landed
        assert world.in_archive("watched", day) == landed


@pytest.mark.parametrize("pipeline", ["mistaken", "mistaken_submitted"])
def test_a_mistake_in_a_transform_is_one_sentence_at_the_end_of_the_log(world: World, pipeline: str) -> None:
    world.land(pipeline, "2024-01-13")
    run_id = world.trigger(pipeline, "2024-01-13")
    assert world.api.wait_run(pipeline, run_id) == "failed"
    entries = world.api.log_entries(pipeline, run_id, "stage")
    told = [entry for entry in entries if entry.get("level") == "error"]
    assert [entry["event"] for entry in told] == ["Task failed with exception"]
    [cause] = told[0]["error_detail"]
    assert cause["exc_type"] == "InvalidPipeline" and cause["exc_value"].count("\n") == 0
    assert "`amuont` cannot be resolved" in cause["exc_value"] and "Filter" not in cause["exc_value"]
    assert len(cause["frames"]) <= 8
    assert "org.apache.spark" not in str(entries)
    after = [entry["event"] for entry in entries[entries.index(told[0]) + 1 :]]
    after = [event for event in after if "openlineage" not in event.lower()]  # the provider's, which is switched off
    assert set(after) <= {"::group::Post Execute", "Retry policy decision", "::endgroup::"}


# --- packs: many epochs by one run of one task ---


def test_a_backfill_puts_up_to_a_pack_of_its_intervals_into_a_run(world: World) -> None:
    days = [f"2024-03-{day:02}" for day in range(4, 11)]  # from Monday to Sunday
    landed = {day: world.land("packed", day) for day in days}
    world.api.unpause("packed")
    world.api.backfill("packed", days[0], days[-1])
    runs = world.api.runs("packed")
    assert list(runs.values()) == ["success"] * 3
    for day in days:
        world.require_published_once("packed", day, landed[day])
    archived = [event["extra"] for event in world.api.events_of("packed/archive")]
    assert sorted(len(extra["epochs"]) for extra in archived) == [1, 3, 3]
    assert sum(extra["rows"]["orders"] for extra in archived) == sum(rows.total() for rows in landed.values())
    if world.partitions:
        require_a_week(world, days, landed)


def require_a_week(world: World, days: list[str], landed: Mapping[str, Counter[Row]]) -> None:
    """Each day is a partition, with what is of that day alone, and whoever waits for all of them has run, once."""
    partitions = world.api.events_of("packed/archive:epochs")
    told = {event["partition_key"]: event["extra"] for event in partitions}
    assert len(partitions) == len(told) and set(told) == {f"{day}T00:00:00" for day in days}
    for day in days:
        extra, epoch = told[f"{day}T00:00:00"], world.epoch("packed", day)
        assert epoch is not None
        assert (extra["epoch"], extra["rows"]) == (epoch.id, {"orders": landed[day].total()})
    wait_for(lambda: list(world.api.runs("weekly").values()) == ["success"], "the one run of the whole week")
    [run_id] = world.api.runs("weekly")
    assert "2024-03-04 to 2024-03-10, nothing is missing" in world.api.log("weekly", run_id, "ask")


def test_kill_9_of_the_task_is_retried_and_each_epoch_is_shown_once(world: World) -> None:
    days = ["2024-03-21", "2024-03-22", "2024-03-23"]
    landed = {day: world.land("packed", day) for day in days}
    world.close_gate(days[2])
    run_id = world.trigger("packed", days[0], days[-1])
    world.wait_at_gate(days[2])
    world.wait_states("packed", days[:2], "cleaned")
    world.kill_task("packed", run_id, "pack")
    world.wait_at_gate(days[2])  # the second try, while Spark still runs the first one's job
    world.open_gate(days[2])
    world.require_success("packed", run_id)
    assert world.api.tasks("packed", run_id)["pack"]["try_number"] == 2
    for day in days:
        world.require_published_once("packed", day, landed[day])
    world.api.clear_run("packed", run_id)
    world.require_success("packed", run_id)
    for day in days:
        world.require_published_once("packed", day, landed[day])


# --- what a run tells those who only listen ---


def heard(stack: TestedStack) -> list[str]:
    """Every metric that has come since."""
    found: list[str] = []
    while True:
        try:
            found += stack.metrics.recv(65_536).decode().splitlines()
        except BlockingIOError:
            return found


def told_of(stack: TestedStack, kind: str) -> dict[str, Any]:
    """By its name the last event of this kind of each job."""
    lines = stack.lineage.read_text().splitlines() if stack.lineage.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return {event["job"]["name"]: event for event in events if event["eventType"] == kind}


def test_a_run_tells_lineage_and_metrics_what_its_sinks_show(world: World, stack: TestedStack) -> None:
    day = "2024-02-20"
    rows, told = world.land("orders", day).total(), heard(stack)
    told.clear()
    run_id = world.trigger("orders", day, dag_id="observed")

    def all_told() -> bool:
        told.extend(heard(stack))
        rows_told = {f"airflow.lockstep.rows.orders.{sink}.orders:{rows}|c" for sink in SINKS}
        return (
            rows_told <= {*told} and {f"observed.publish.{sink}" for sink in SINKS} <= told_of(stack, "COMPLETE").keys()
        )

    wait_for(all_told, "rows by StatsD, and events of both sinks")
    world.require_success("observed", run_id)
    epoch = world.epoch("orders", day)
    assert epoch is not None
    for sink in SINKS:
        event = told_of(stack, "COMPLETE")[f"observed.publish.{sink}"]
        [output] = event["outputs"]
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == rows
        [named] = event["run"]["facets"]["lockstep_epochs"]["epochs"]
        assert (named["pipeline"], named["epoch"]) == ("orders", epoch.id)
        assert any(line.startswith(f"airflow.lockstep.phase.duration.orders.publish.{sink}:") for line in told)
    # of what a person marks, the provider tells the end whoever asked for it, so only who starts is looked at
    assert {name.partition(".")[0] for name in told_of(stack, "START")} == {"observed"}, "nobody else asked for it"

"""What `epoch_dag` makes of a pipeline: phases, rules, retries, form. How it behaves, tests/e2e shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import lockstep
from lockstep import errors
from lockstep.audits import row_count
from lockstep.errors import InvalidPipeline, Retryable, Terminal
from lockstep.pipeline import Pipeline
from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, deserialized, first_run, serialized, weighs_by
from tests.dags.pipelines import ORDERS, SHARDED, Days, Numbers, pipeline_of

if TYPE_CHECKING:
    from airflow.sdk import DAG

START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


def epoch_dag(pipeline: Pipeline, **arguments: Any) -> DAG:
    from lockstep.orchestration.dag import epoch_dag

    return epoch_dag(pipeline, **arguments)


@pytest.fixture
def dag() -> DAG:
    return epoch_dag(ORDERS, schedule="@daily", start_date=START, tags={"sales"})


def test_the_phases_follow_each_other(dag: DAG) -> None:
    upstream = {task.task_id: task.upstream_task_ids for task in dag.tasks}
    assert upstream == {
        "begin": set(),
        "stage": {"begin"},
        "prepare.raw": {"stage"},
        "prepare.copy": {"stage"},
        "commit": {"prepare.raw", "prepare.copy"},
        "publish.raw": {"commit"},
        "publish.copy": {"commit"},
        "cleanup": {"publish.raw", "publish.copy"},
        "abort": {"begin", "stage", "prepare.raw", "prepare.copy", "commit"},
    }
    assert {task.task_id for task in dag.leaves} == {"cleanup", "abort"}
    assert not any(task.is_teardown or task.is_setup for task in dag.tasks)
    assert dag.tags == {"lockstep", "sales"}
    assert all(task.owner == "lockstep" and task.doc_md for task in dag.tasks)
    assert dag.get_task("abort").task_display_name == "abort, after a failure"
    assert dag.catchup is False
    assert dag.edge_info["prepare.downstream_join_id"]["commit"]["label"] == "votes"
    assert dag.edge_info["commit"]["publish.upstream_join_id"]["label"] == "decided"
    labels = [edge["label"] for edges in dag.edge_info.values() for edge in edges.values()]
    assert labels.count("a failure before the commit") == 1
    assert dag.edge_info["commit"]["abort"]["label"] == "a failure before the commit"


def test_audits_are_one_task_before_prepare_and_change_no_other() -> None:
    from lockstep.orchestration.operators import AuditOperator

    plain = {task.task_id: task.upstream_task_ids for task in epoch_dag(ORDERS, schedule="@daily").tasks}
    audited = replace(ORDERS, audits=(row_count("orders"),))
    made = epoch_dag(audited, schedule="@daily", dag_id="audited")
    for sink in ("raw", "copy"):
        plain[f"prepare.{sink}"] = plain[f"prepare.{sink}"] - {"stage"} | {"audit"}
    plain["abort"] = plain["abort"] | {"audit"}
    plain["audit"] = {"stage"}
    assert {task.task_id: task.upstream_task_ids for task in made.tasks} == plain
    task = made.get_task("audit")
    assert isinstance(task, AuditOperator) and task.trigger_rule == "none_failed" and task.doc_md
    labels = {edge["label"] for edges in made.edge_info.values() for edge in edges.values()}
    assert {"a sealed WAL", "nothing offends"} <= labels


def test_abort_fires_on_the_first_failure_before_the_commit_and_every_other_task_on_none(dag: DAG) -> None:
    from airflow.sdk import TriggerRule

    rules = {task.task_id: task.trigger_rule for task in dag.tasks}
    assert rules.pop("abort") == TriggerRule.ONE_FAILED
    assert rules.pop("begin") == TriggerRule.ALL_SUCCESS
    assert set(rules.values()) == {TriggerRule.NONE_FAILED}


@pytest.mark.fault("H17")
def test_later_phases_go_first_when_slots_are_scarce(dag: DAG) -> None:
    assert {weighs_by(task) for task in dag.tasks} == {"upstream"}


def test_terminal_errors_end_the_retries_and_others_do_not(dag: DAG) -> None:
    from lockstep.orchestration._airflow import as_raised

    assert all(task.retries for task in dag.tasks)
    raised: dict[type[Exception], Exception] = {kind: as_raised(kind("what was found")) for kind in KINDS}  # type: ignore[arg-type]
    told = {kind: {fails_at_once(task, error) for task in dag.tasks} for kind, error in raised.items()}
    assert told == {kind: {issubclass(kind, Terminal)} for kind in KINDS}


def test_without_retry_policies_a_terminal_error_is_of_a_class_that_airflow_does_not_try_again_and_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lockstep.orchestration import _airflow

    monkeypatch.setattr(_airflow, "HAS_RETRY_POLICIES", False)
    dag = epoch_dag(ORDERS, schedule="@daily", start_date=START)
    raised: dict[type[Exception], Exception] = {kind: _airflow.as_raised(kind("what was found")) for kind in KINDS}  # type: ignore[arg-type]
    assert all(isinstance(error, kind) for kind, error in raised.items())
    assert {kind: (type(error).__name__, str(error)) for kind, error in raised.items()} == {
        kind: (kind.__name__, "what was found") for kind in KINDS
    }
    told = {kind: {fails_at_once(task, error) for task in dag.tasks} for kind, error in raised.items()}
    assert told == {kind: {issubclass(kind, Terminal)} for kind in KINDS}


def fails_at_once(task: Any, error: Exception) -> bool:
    """As Airflow decides it."""
    from lockstep.orchestration._airflow import AirflowFailException

    policy = getattr(task, "retry_policy", None)
    told = policy is not None and policy.evaluate(error, try_number=1, max_tries=task.retries).action.value == "fail"
    return told or isinstance(error, AirflowFailException)


def test_retries_back_off_from_seconds_to_minutes(dag: DAG) -> None:
    from lockstep.orchestration._airflow import growth_of

    for task in dag.tasks:
        assert (task.retry_delay, task.max_retry_delay) == (timedelta(seconds=5), timedelta(minutes=5))
        assert growth_of(task) == 2


def test_every_task_waits_as_long_as_the_dag_says(dag: DAG) -> None:
    from lockstep.orchestration._waiting import PATIENCE
    from lockstep.orchestration.operators import EpochOperator

    def patience_of(dag: DAG) -> set[timedelta]:
        return {task.patience for task in dag.tasks if isinstance(task, EpochOperator)}

    assert all(isinstance(task, EpochOperator) for task in dag.tasks)
    assert patience_of(dag) == {PATIENCE}
    assert patience_of(epoch_dag(ORDERS, schedule="@daily", start_date=START, patience=timedelta(hours=9))) == {
        timedelta(hours=9)
    }


def test_arguments_of_the_user_win() -> None:
    dag = epoch_dag(
        ORDERS,
        schedule="@daily",
        start_date=START,
        dag_id="other",
        default_args={"owner": "sales", "retries": 1},
        max_active_runs=2,
        catchup=True,
    )
    assert (dag.dag_id, dag.max_active_runs, dag.catchup) == ("other", 2, True)
    assert {(task.owner, task.retries) for task in dag.tasks} == {("sales", 1)}


def test_a_hold_shorter_than_the_retries_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="hold is 0:01:00"):
        epoch_dag(pipeline_of(Days(), hold=timedelta(minutes=1)), schedule="@daily", start_date=START)


@cases(
    "schedule, length",
    [("@daily", timedelta(days=1)), ("*/10 * * * *", timedelta(minutes=10)), (timedelta(hours=6), timedelta(hours=6))],
)
def test_a_cron_string_and_a_timedelta_make_real_data_intervals_in_utc(schedule: Any, length: timedelta) -> None:
    made = epoch_dag(ORDERS, schedule=schedule, start_date=START)
    found = as_airflow_has_it(made).iter_dagrun_infos_between(START, START + timedelta(days=1))
    spans = [run.data_interval for run in found if run.data_interval]
    assert all(span.end == span.start + length for span in spans)
    assert spans[0].start == START and spans[0].start.utcoffset() == timedelta()


@cases("schedule", [None, "@once"])
def test_other_schedules_stay_as_they_are(schedule: str | None) -> None:
    found: object = epoch_dag(ORDERS, schedule=schedule, start_date=START).schedule
    assert found == schedule


def test_trigger_and_backfill_forms_ask_for_no_interval_beside_airflows_own(dag: DAG) -> None:
    assert not dag.params and not epoch_dag(pipeline_of(Numbers())).params
    assert set(epoch_dag(ORDERS, schedule="@daily", start_date=START, params={"mine": 1}).params) == {"mine"}


def test_a_cursor_pipeline_runs_as_many_epochs_at_once_as_it_allows() -> None:
    assert epoch_dag(pipeline_of(Numbers())).max_active_runs == 3


def test_each_sink_publishes_assets_of_its_own(dag: DAG) -> None:
    from lockstep.orchestration.dag import asset_of

    assets = {task.task_id: task.outlets for task in dag.tasks if task.outlets}
    assert set(assets) == {"publish.raw", "publish.copy"}
    assert asset_of("orders", "raw") in assets["publish.raw"] and asset_of("orders", "copy") in assets["publish.copy"]
    assert not {asset.name for asset in assets["publish.raw"]} & {asset.name for asset in assets["publish.copy"]}


@pytest.fixture
def mapped() -> DAG:
    return epoch_dag(SHARDED, schedule="@daily", start_date=START, map_shards=True)


def test_shards_are_mapped_before_publish_which_looks_for_all_of_them(mapped: DAG) -> None:
    plain = {task.task_id: task.upstream_task_ids for task in epoch_dag(SHARDED, dag_id="plain").tasks}
    plain["publish.totals"] |= {"publish_shards.totals"}
    plain["publish_shards.totals"] = {"commit"}
    assert {task.task_id: task.upstream_task_ids for task in mapped.tasks} == plain
    assert mapped.get_task("publish_shards.totals").downstream_task_ids == {"publish.totals"}
    assert mapped.edge_info["commit"]["publish_shards.upstream_join_id"]["label"] == "decided"


def test_each_shard_is_a_task_instance_by_its_name(mapped: DAG) -> None:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

    from lockstep.orchestration.operators import PublishShardOperator

    task = mapped.get_task("publish_shards.totals")
    assert isinstance(task, MappedOperator)
    assert task.expand_input.value == {"shard": [0, 1, 2]}
    assert task.map_index_template == "shard {{ task.shard }}"
    one = task.unmap({"shard": 2})
    assert isinstance(one, PublishShardOperator)
    assert (one.shard, one.sink, one.pipeline) == (2, "totals", SHARDED)
    assert (one.trigger_rule, weighs_by(one), one.outlets) == ("none_failed", "upstream", [])


def test_a_dag_of_mapped_shards_is_the_same_at_each_parse(mapped: DAG) -> None:
    """An address in it would make each parse a new version of the DAG."""
    again = Pipeline(SHARDED.name, SHARDED.sources, lambda inputs: inputs, SHARDED.sinks)
    other = epoch_dag(again, schedule="@daily", start_date=START, map_shards=True)
    assert json.dumps(serialized(other)) == json.dumps(serialized(mapped))


@cases(
    "pipeline, arguments, why",
    [(ORDERS, {}, "no sink has more than one shard"), (SHARDED, {"pack": 3}, "leave one of them away")],
)
def test_shards_are_not_mapped_where_there_is_nothing_to_map(
    pipeline: Pipeline, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidPipeline, match=why):
        epoch_dag(pipeline, schedule="@daily", start_date=START, map_shards=True, **arguments)


@cases(
    "make",
    [
        lambda: epoch_dag(ORDERS, schedule="@daily", start_date=START),
        lambda: epoch_dag(pipeline_of(Numbers())),
        lambda: epoch_dag(SHARDED, schedule="@daily", start_date=START, map_shards=True),
        lambda: lockstep.recovery_dag(),
    ],
)
def test_a_dag_survives_serialization_and_carries_nothing_of_its_pipeline(make: Callable[[], DAG]) -> None:
    made = make()
    made.check_cycle()
    text = json.dumps(serialized(made))
    back = deserialized(json.loads(text))
    assert json.dumps(serialized(made)) == text
    assert {task.task_id: task.upstream_task_ids for task in back.tasks} == {
        task.task_id: task.upstream_task_ids for task in made.tasks
    }
    assert "out/raw" not in text


@cases("schedule", ["@daily", timedelta(days=1)])
def test_start_and_end_are_the_schedules_and_not_the_tasks(schedule: str | timedelta) -> None:
    """Airflow leaves tasks out of a manual run before their start or after their end: it would be green, and nothing
    would have moved."""
    made = epoch_dag(ORDERS, schedule=schedule, start_date=START, end_date=START + timedelta(days=2), catchup=True)
    back = as_airflow_has_it(made)
    assert back.end_date is back.start_date is None
    assert all(task.end_date is task.start_date is None for task in back.tasks)

    def starts(first: datetime) -> list[datetime]:
        runs = back.iter_dagrun_infos_between(first, START + timedelta(days=9))
        return [run.data_interval.start for run in runs if run.data_interval]

    assert starts(START) == [START + timedelta(days=day) for day in range(3)]
    assert starts(START - timedelta(days=2)) == [START + timedelta(days=day) for day in range(-2, 3)], "a backfill"
    assert first_run(back).data_interval.start == START


def test_a_dag_that_is_only_triggered_has_no_start_and_no_end_that_leave_out_its_tasks() -> None:
    back = as_airflow_has_it(epoch_dag(ORDERS, start_date=START, end_date=START + timedelta(days=2)))
    assert all(task.end_date is task.start_date is None for task in back.tasks)


def test_a_schedule_that_catches_up_begins_at_its_start_and_one_that_does_not_is_not_before_it() -> None:
    from airflow.timetables.base import TimeRestriction

    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    for start, catchup in ((START, True), (tomorrow, False), (tomorrow, True)):
        back = as_airflow_has_it(epoch_dag(ORDERS, schedule="@daily", start_date=start, catchup=catchup))
        assert back._time_restriction == TimeRestriction(None, None, catchup)
        assert first_run(back).logical_date == start


def test_every_error_is_either_retryable_or_terminal() -> None:
    kinds = set(KINDS) - {errors.LockstepError}
    assert all(issubclass(kind, Retryable) != issubclass(kind, Terminal) for kind in kinds)

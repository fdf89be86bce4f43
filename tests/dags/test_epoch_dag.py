"""What `epoch_dag` makes of a pipeline: phases, rules, retries, form, and where in a DAG file it may stand: whatever is
written there is found by Airflow, or refused by name. How it behaves, tests/e2e shows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lockstep
from lockstep import errors
from lockstep.audits import row_count
from lockstep.errors import InvalidPipeline, Retryable, Terminal
from lockstep.pipeline import Pipeline
from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, dag_bag, deserialized, first_run, serialized, weighs_by
from tests.dags.pipelines import ORDERS, SHARDED, Numbers, pipeline_of

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk import DAG

    Parse = Callable[[str], DagBag]

START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


def epoch_dag(pipeline: Pipeline, **arguments: Any) -> DAG:
    from lockstep.airflow.dag import epoch_dag

    return epoch_dag(pipeline, **arguments)


@pytest.fixture
def dag() -> DAG:
    return epoch_dag(ORDERS, schedule="@daily", start_date=START, tags={"sales"})


def test_the_phases_follow_each_other(dag: DAG) -> None:
    from lockstep.airflow._airflow import growth_of

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
    rules = {task.task_id: task.trigger_rule for task in dag.tasks}
    assert (rules.pop("abort"), rules.pop("begin")) == ("one_failed", "all_success")
    assert set(rules.values()) == {"none_failed"}
    assert not any(task.is_teardown or task.is_setup for task in dag.tasks)
    assert {(task.retry_delay, growth_of(task)) for task in dag.tasks} == {(timedelta(seconds=5), 2)}
    assert dag.tags == {"lockstep", "sales"}
    assert all(task.owner == "lockstep" and task.doc_md for task in dag.tasks)
    assert dag.get_task("abort").task_display_name == "abort, after a failure"
    assert dag.catchup is False and not dag.params and not epoch_dag(pipeline_of(Numbers())).params
    assert dag.edge_info["prepare.downstream_join_id"]["commit"]["label"] == "votes"
    assert dag.edge_info["commit"]["publish.upstream_join_id"]["label"] == "decided"
    labels = [edge["label"] for edges in dag.edge_info.values() for edge in edges.values()]
    assert labels.count("a failure before the commit") == 1
    assert dag.edge_info["commit"]["abort"]["label"] == "a failure before the commit"


def test_audits_are_one_task_before_prepare_and_change_no_other() -> None:
    from lockstep.airflow.operators import AuditOperator

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


@pytest.mark.fault("H17")
def test_later_phases_go_first_when_slots_are_scarce(dag: DAG) -> None:
    assert {weighs_by(task) for task in dag.tasks} == {"upstream"}


@cases("policies", [None, False])
def test_terminal_errors_end_the_retries_and_others_do_not(monkeypatch: pytest.MonkeyPatch, policies: Any) -> None:
    """Without retry policies each is of a class that Airflow does not try again, and of its own."""
    from lockstep.airflow import _airflow

    if policies is not None:
        monkeypatch.setattr(_airflow, "HAS_RETRY_POLICIES", policies)
    tasks = epoch_dag(ORDERS, schedule="@daily", start_date=START).tasks
    assert all(task.retries for task in tasks)
    for kind in KINDS:
        error: Exception = _airflow.as_raised(kind("what was found"))  # type: ignore[arg-type]
        assert isinstance(error, kind) and (type(error).__name__, str(error)) == (kind.__name__, "what was found")
        assert {fails_at_once(task, error) for task in tasks} == {issubclass(kind, Terminal)}, kind
        assert issubclass(kind, Retryable) != issubclass(kind, Terminal) or kind is errors.LockstepError


def test_arguments_of_the_user_win(dag: DAG) -> None:
    from lockstep.airflow._base_operator import MAX_WAIT

    mine: Any = {"dag_id": "other", "default_args": {"owner": "sales", "retries": 1}, "max_active_runs": 2}
    mine |= {"catchup": True, "max_wait": timedelta(hours=9), "params": {"mine": 1}}
    given = epoch_dag(ORDERS, schedule="@daily", start_date=START, **mine)
    assert (given.dag_id, given.max_active_runs, given.catchup, set(given.params)) == ("other", 2, True, {"mine"})
    tasks: list[Any] = [*given.tasks, *dag.tasks]
    waits = {(task.owner, task.retries, task.max_wait) for task in tasks}
    assert waits == {("sales", 1, timedelta(hours=9)), ("lockstep", dag.get_task("begin").retries, MAX_WAIT)}
    assert epoch_dag(pipeline_of(Numbers())).max_active_runs == 3, "as many epochs at once as it allows"


def fails_at_once(task: Any, error: Exception) -> bool:
    """As Airflow decides it."""
    from lockstep.airflow._airflow import AirflowFailException

    policy = getattr(task, "retry_policy", None)
    told = policy is not None and policy.evaluate(error, try_number=1, max_tries=task.retries).action.value == "fail"
    return told or isinstance(error, AirflowFailException)


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


def test_shards_are_mapped_by_their_names_before_publish_which_looks_for_all_of_them() -> None:
    from lockstep.airflow.operators import PublishShardOperator

    mapped = epoch_dag(SHARDED, schedule="@daily", start_date=START, map_shards=True)
    plain = {task.task_id: task.upstream_task_ids for task in epoch_dag(SHARDED, dag_id="plain").tasks}
    plain["publish.totals"] |= {"publish_shards.totals"}
    plain["publish_shards.totals"] = {"commit"}
    assert {task.task_id: task.upstream_task_ids for task in mapped.tasks} == plain
    assert mapped.edge_info["commit"]["publish_shards.upstream_join_id"]["label"] == "decided"
    task: Any = mapped.get_task("publish_shards.totals")
    assert task.expand_input.value == {"shard": [0, 1, 2]}
    assert task.map_index_template == "shard {{ task.shard }}"
    one = task.unmap({"shard": 2})
    assert isinstance(one, PublishShardOperator)
    assert (one.shard, one.sink, one.pipeline) == (2, "totals", SHARDED)
    assert (one.trigger_rule, weighs_by(one), one.outlets) == ("none_failed", "upstream", [])
    """An address in it would make each parse a new version of the DAG."""
    again = Pipeline(SHARDED.name, SHARDED.sources, lambda inputs: inputs, SHARDED.sinks)
    other = epoch_dag(again, schedule="@daily", start_date=START, map_shards=True)
    assert json.dumps(serialized(other)) == json.dumps(serialized(mapped))


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
    triggered = as_airflow_has_it(epoch_dag(ORDERS, start_date=START, end_date=START + timedelta(days=2)))
    assert all(task.end_date is task.start_date is None for task in [*back.tasks, *triggered.tasks])

    def starts(first: datetime) -> list[datetime]:
        runs = back.iter_dagrun_infos_between(first, START + timedelta(days=9))
        return [run.data_interval.start for run in runs if run.data_interval]

    assert starts(START) == [START + timedelta(days=day) for day in range(3)]
    assert starts(START - timedelta(days=2)) == [START + timedelta(days=day) for day in range(-2, 3)], "a backfill"
    assert first_run(back).data_interval.start == START


def test_a_schedule_that_catches_up_begins_at_its_start_and_one_that_does_not_is_not_before_it() -> None:
    from airflow.timetables.base import TimeRestriction

    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    for start, catchup in ((START, True), (tomorrow, False), (tomorrow, True)):
        back = as_airflow_has_it(epoch_dag(ORDERS, schedule="@daily", start_date=start, catchup=catchup))
        assert back._time_restriction == TimeRestriction(None, None, catchup)
        assert first_run(back).logical_date == start


@pytest.mark.fault("R11")
def test_what_a_timedelta_schedule_leaves_out_is_whole_intervals_that_a_backfill_fills() -> None:
    from airflow.timetables.base import DataInterval, TimeRestriction
    from pendulum import instance

    step, begin = timedelta(hours=7), instance(START + timedelta(minutes=41))
    made = epoch_dag(ORDERS, schedule=step, start_date=begin)
    stored: Any = made.timetable
    timetable = type(stored).deserialize(stored.serialize())

    def newest(last: DataInterval | None) -> Any:
        restriction = TimeRestriction(None, None, catchup=False)
        return timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction).data_interval

    moved = begin + timedelta(minutes=3)  # an earlier start_date had other bounds
    for last, origin in ((None, begin), (DataInterval(moved - step, moved), moved)):
        run = newest(last)
        assert (run.start - origin).as_timedelta() % step == timedelta()
        assert run.end <= datetime.now(UTC) < run.end + step
    filled = list(as_airflow_has_it(made).iter_dagrun_infos_between(moved, run.start))
    assert filled[0].logical_date == moved and filled[-1].data_interval == run
    assert newest(run).start == run.end


@pytest.mark.fault("R15")
@cases("schedule", ["@daily", timedelta(days=1)])
def test_a_schedule_goes_on_behind_a_manual_run_that_has_the_logical_date_of_a_scheduled_one(schedule: Any) -> None:
    """Airflow takes the manual run for the scheduled one, and computes the next from its data interval."""
    from types import SimpleNamespace

    from airflow.timetables.base import Timetable
    from pendulum import instance

    day, later = timedelta(days=1), timedelta(hours=1)
    back: Any = as_airflow_has_it(epoch_dag(ORDERS, schedule=schedule, start_date=START, catchup=True))
    if not hasattr(Timetable, "run_info_from_dag_run"):
        pytest.skip("Airflow 3.1 asks no timetable")

    def next_after(date: datetime, start: datetime, end: datetime, run_type: str = "manual") -> Any:
        moments = {"logical_date": date, "run_after": end, "data_interval_start": start, "data_interval_end": end}
        fields = {name: instance(moment) for name, moment in moments.items()}
        run = SimpleNamespace(**fields, run_type=run_type, partition_key=None, partition_date=None)
        counted = back.timetable.run_info_from_dag_run(dag_run=run).data_interval
        following = back.timetable._next(counted, back._time_restriction)
        return following.logical_date

    assert next_after(START + day, START, START + day) == START + 2 * day, "the interval that had ended by then"
    assert next_after(START + day, START + 5 * day, START + 9 * day) == START + 2 * day
    assert next_after(START, START, START + 7 * day, "scheduled") == START + 7 * day, "a pack"
    if schedule == "@daily":
        assert next_after(START + later, START - day, START) == START, "of no scheduled run: Airflow's own way"


# --- where in a file it may stand ---

HEAD = """
'''An airflow dag file.'''
from airflow.sdk import DAG
from lockstep import epoch_dag
from tests.dags.pipelines import ORDERS
"""


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """What the DAG processor makes of a file that ends in these lines."""

    def parsed(lines: str) -> DagBag:
        (tmp_path / "file.py").write_text(f"{HEAD}{lines}{os.linesep}")
        return dag_bag(tmp_path)

    return parsed


@pytest.mark.fault("H23")
@cases(
    "lines",
    [
        "epoch_dag(ORDERS)",
        "def make():\n    epoch_dag(ORDERS)\nmake()",
        "for name in ('orders', 'again'):\n    epoch_dag(ORDERS, dag_id=name)",
        "made = [epoch_dag(ORDERS)]",
    ],
)
def test_a_dag_is_found_whether_its_result_has_a_name_or_not(parse: Parse, lines: str) -> None:
    bag = parse(lines)
    assert not bag.import_errors
    assert "orders" in bag.dags and set(bag.dags) <= {"orders", "again"}


def test_a_dag_that_asks_not_to_be_registered_needs_a_name(parse: Parse) -> None:
    assert not parse("epoch_dag(ORDERS, auto_register=False)").dags
    assert set(parse("made = epoch_dag(ORDERS, auto_register=False)").dags) == {"orders"}


@pytest.mark.fault("H23")
def test_within_another_dag_it_is_refused_by_name_instead_of_adding_nothing(parse: Parse) -> None:
    from airflow.sdk import DAG, TaskGroup, dag

    bag = parse("with DAG('mine'):\n    epoch_dag(ORDERS)")
    [error] = bag.import_errors.values()
    assert "InvalidPipeline" in error and "inside DAG mine" in error and "dag_id='mine'" in error
    assert not bag.dags

    @dag(dag_id="mine")
    def mine() -> None:
        lockstep.epoch_dag(ORDERS)

    with pytest.raises(InvalidPipeline, match="inside DAG mine"):
        mine()
    with DAG("other"), TaskGroup("group"), pytest.raises(InvalidPipeline, match="inside DAG other"):
        lockstep.epoch_dag(ORDERS)
    for make in (lockstep.recovery_dag, lockstep.compaction_dag):
        with DAG("mine"), pytest.raises(InvalidPipeline, match=f"{make.__name__} is called inside DAG mine"):
            make()
    assert lockstep.epoch_dag(ORDERS).task_ids, "after a refusal Airflow makes DAGs as before"


# --- others ---


def test_the_compaction_dag_asks_which_tables_there_are_and_compacts_each_with_what_it_was_told() -> None:
    dag: Any = lockstep.compaction_dag(target_bytes=1 << 20, min_files=3, expire=timedelta(days=7))
    assert (dag.dag_id, dag.max_active_runs, dag.catchup) == ("lockstep_compaction", 1, False)
    task = dag.get_task("compact")
    assert task.upstream_task_ids == {"tables"}
    told = {name: task.partial_kwargs[name] for name in ("target_bytes", "min_files", "expire", "retries")}
    assert told == {"target_bytes": 1 << 20, "min_files": 3, "expire": timedelta(days=7), "retries": 2}


def test_a_dag_takes_a_launcher_in_place_of_a_connection() -> None:
    from lockstep.airflow._launching import OwnLauncher, PackLauncher, launcher
    from tests.dags.launching import LooseLauncher, pipeline

    mine = LooseLauncher()
    made: Any = epoch_dag(pipeline, schedule="@daily", launcher=mine)
    assert made.get_task("stage").own_launcher is mine
    assert as_airflow_has_it(made).has_task("stage")
    assert isinstance(launcher(pipeline, "no such connection", {}, mine), OwnLauncher)
    packed: Any = epoch_dag(pipeline, schedule="@daily", launcher=mine, pack=3).get_task("pack")
    assert packed.own_launcher is mine and isinstance(PackLauncher(pipeline, "none", {}, mine)._make(), OwnLauncher)
    with pytest.raises(InvalidPipeline, match="launcher, which Lockstep sets itself"):
        epoch_dag(pipeline, schedule="@daily", task_args={"stage": {"launcher": mine}})

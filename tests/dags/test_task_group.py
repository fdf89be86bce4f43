"""`EpochTaskGroup` in somebody's DAG: where its tasks stand, what reaches them, and what is refused while it is parsed.
How it behaves, tests/e2e/test_groups.py shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lockstep.audits import row_count
from lockstep.epoch import Interval, RunKey
from lockstep.errors import InvalidPipeline, RestateRefused
from lockstep.pipeline import Pipeline
from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, deserialized, serialized
from tests.dags.observed import DAY, RUN, Observed
from tests.dags.pipelines import NUMBERS, ORDERS, SHARDED, Days, pipeline_of

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from lockstep.airflow.task_group import EpochTaskGroup

START = datetime(2024, 1, 1, tzinfo=UTC)
RETURNS = replace(pipeline_of(Days()), name="returns")


@contextmanager
def dag_of(dag_id: str = "mine", schedule: Any = None, **arguments: Any) -> Iterator[DAG]:
    from airflow.sdk import DAG

    with DAG(dag_id, schedule=schedule, start_date=START, **arguments) as made:
        yield made


def group(pipeline: Pipeline, **arguments: Any) -> EpochTaskGroup:
    import lockstep

    made: EpochTaskGroup = lockstep.EpochTaskGroup(pipeline, **arguments)
    return made


def mapped(pipelines: list[Pipeline], **arguments: Any) -> EpochTaskGroup:
    import lockstep

    made: EpochTaskGroup = lockstep.EpochTaskGroup.mapped(pipelines, **arguments)
    return made


def step(task_id: str) -> Any:
    """A task of the user's."""
    from airflow.providers.standard.operators.empty import EmptyOperator

    return EmptyOperator(task_id=task_id)


@pytest.fixture
def dag() -> DAG:
    """Two groups between tasks of the user's."""
    with dag_of() as made:
        step("extract") >> [group(ORDERS), group(RETURNS, group_id="back")] >> step("report")
    return made


def upstream(dag: DAG) -> dict[str, set[str]]:
    return {task.task_id: set(task.upstream_task_ids) for task in dag.tasks}


def test_a_group_has_the_tasks_of_epoch_dag_under_its_prefix_and_a_leaf(dag: DAG) -> None:
    from lockstep.airflow._airflow import no_retry_of_terminal
    from lockstep.airflow.dag import epoch_dag

    alone = upstream(epoch_dag(ORDERS, schedule="@daily", start_date=START))
    expected = {f"orders.{task}": {f"orders.{one}" for one in before} for task, before in alone.items()}
    expected["orders.begin"] = {"extract"}
    found = {task: before for task, before in upstream(dag).items() if task.startswith("orders.")}
    assert found == {**expected, "orders.moved": {"orders.cleanup", "orders.abort"}}
    same = ("trigger_rule", "weight_rule", "retries", "retry_delay", "doc_md", "outlets")
    for task in epoch_dag(ORDERS, schedule="@daily", start_date=START).tasks:
        inside = dag.get_task(f"orders.{task.task_id}")
        expected_of = {name: getattr(task, name) for name in same}
        assert {name: getattr(inside, name) for name in same} == expected_of
        assert all(getattr(inside, argument) is not None for argument in no_retry_of_terminal())


@pytest.mark.fault("H27")
def test_what_follows_waits_for_cleanup_and_whatever_follows_a_run_fails_by_a_leaf_of_the_group(dag: DAG) -> None:
    assert upstream(dag)["report"] == {"orders.cleanup", "back.cleanup"}
    assert {task.task_id for task in dag.leaves} >= {"orders.moved", "back.moved"}
    leaf = dag.get_task("orders.moved")
    assert leaf.trigger_rule == "none_failed_min_one_success" and leaf.inherits_from_empty_operator
    """As clear and `airflow tasks test` take one."""
    part = dag.partial_subset("orders.commit", include_upstream=True)
    assert {"extract", "orders.begin", "orders.prepare.raw", "orders.commit"} <= set(part.task_ids)
    assert "back.begin" not in part.task_ids
    for task in dag.tasks:
        assert task.task_group is not None and task.task_group.children[task.task_id] is task, "the DAG stays whole"


def test_within_a_group_of_the_users_the_prefixes_add_up() -> None:
    from airflow.sdk import TaskGroup

    with dag_of() as made, TaskGroup("shop"):
        group(ORDERS)
    assert {"shop.orders.begin", "shop.orders.prepare.raw", "shop.orders.moved"} <= set(made.task_ids)
    with dag_of() as made:
        group(ORDERS) >> group(RETURNS)
        group(NUMBERS).output >> step("report")
    assert upstream(made)["returns.begin"] == {"orders.cleanup"}
    assert upstream(made)["report"] == {"numbers.cleanup"}
    with dag_of() as made:
        group(replace(ORDERS, name="shop.orders"))
    assert "shop_orders.begin" in made.task_ids
    with dag_of() as made:
        step("extract") >> group(ORDERS, pack=1) >> step("report")
        group(NUMBERS, pack=9)
    assert upstream(made)["report"] == {"orders.pack"} and upstream(made)["orders.pack"] == {"extract"}


def test_what_follows_a_group_of_the_users_waits_for_no_abort_which_a_good_run_skips() -> None:
    from airflow.sdk import TaskGroup

    with dag_of() as made:
        with TaskGroup("shop") as shop:
            group(ORDERS)
            mapped([RETURNS], group_id="all")
        step("extract") >> shop >> step("report")
    assert upstream(made)["report"] == {"shop.orders.moved", "shop.all.moved"}
    assert upstream(made)["shop.orders.moved"] == {"shop.orders.cleanup", "shop.orders.abort"}
    assert {task for task, before in upstream(made).items() if "extract" in before} == {
        "shop.orders.begin",
        "shop.all.pipelines",
    }


def test_arguments_reach_the_tasks_of_their_phase_and_of_their_sink() -> None:
    task_args = {
        "begin": {"trigger_rule": "none_failed_min_one_success"},
        "stage": {"pool": "spark", "queue": "big", "executor_config": {"cpu": 4}, "max_wait": timedelta(hours=9)},
        "prepare": {"pool": "loads", "priority_weight": 7},
        "prepare.copy": {"pool": "slow"},
        "audit": {"execution_timeout": timedelta(minutes=5)},
    }
    with dag_of() as made:
        group(replace(ORDERS, audits=(row_count("orders"),)), task_args=task_args)
        group(SHARDED, map_shards=True, task_args={"publish_shards": {"pool": "kafka"}})
    stage, raw, copy = (made.get_task(f"orders.{name}") for name in ("stage", "prepare.raw", "prepare.copy"))
    assert (stage.pool, stage.queue, stage.executor_config) == ("spark", "big", {"cpu": 4})
    assert stage.max_wait == timedelta(hours=9)  # type: ignore[union-attr]
    assert (raw.pool, copy.pool, copy.priority_weight) == ("loads", "slow", 7)
    assert made.get_task("orders.audit").execution_timeout == timedelta(minutes=5)
    assert made.get_task("orders.begin").trigger_rule == "none_failed_min_one_success"
    assert made.get_task("orders.publish.raw").pool == "default_pool"
    assert made.get_task("sharded.publish_shards.totals").pool == "kafka"


@cases(
    "task_args, why",
    [
        ({"stagging": {"pool": "x"}}, "names 'stagging'"),
        ({"prepare.nothing": {"pool": "x"}}, "names 'prepare.nothing'"),
        ({"stage.raw": {"pool": "x"}}, "names 'stage.raw'"),
        ({"stage": {"task_id": "x", "sink": "y"}}, "sets sink, task_id"),
        ({"publish": {"outlets": []}}, "sets outlets"),
        ({"commit": {"trigger_rule": "all_done"}}, "sets a trigger_rule"),
    ],
)
def test_arguments_that_would_go_nowhere_or_break_the_protocol_are_refused(task_args: Any, why: str) -> None:
    with dag_of(), pytest.raises(InvalidPipeline, match=re.escape(why)):
        group(ORDERS, task_args=task_args)


def test_callbacks_owner_and_retries_of_the_dag_and_its_groups_count_more_than_lockstep_s() -> None:
    from airflow.sdk import TaskGroup

    from lockstep.airflow._airflow import no_retry_of_terminal

    def tell(context: Any) -> None: ...

    theirs = {"owner": "sales", "retries": 1, "on_failure_callback": tell}
    slower: Any = {"retry_delay": timedelta(seconds=9)}
    with dag_of(default_args=theirs) as made, TaskGroup("shop", default_args=slower):
        group(ORDERS, default_args={"queue": "big"})
    for name in ("begin", "prepare.raw", "cleanup", "abort"):
        task = made.get_task(f"shop.orders.{name}")
        assert (task.owner, task.retries, task.retry_delay, task.queue) == ("sales", 1, timedelta(seconds=9), "big")
        assert task.on_failure_callback == [tell], name
        assert all(getattr(task, argument) is not None for argument in no_retry_of_terminal()), name


@pytest.mark.fault("H28")
def test_a_schedule_whose_runs_have_no_interval_is_refused_for_interval_pipelines() -> None:
    from airflow.sdk import Asset

    from lockstep.airflow._airflow import CronDataIntervalTimetable, CronTriggerTimetable

    daily: Any = {"timezone": "UTC"}
    for schedule in ("@daily", timedelta(days=1), CronTriggerTimetable("@daily", **daily), [Asset("lockstep://a/b")]):
        with dag_of(schedule=schedule), pytest.raises(InvalidPipeline, match="CronDataIntervalTimetable"):
            group(ORDERS)
        with dag_of(schedule=schedule):
            group(NUMBERS)
    triggered = CronTriggerTimetable("@daily", interval=timedelta(days=1), **daily)
    for taken in (CronDataIntervalTimetable("@daily", **daily), triggered, None):
        with dag_of(schedule=taken):
            assert group(ORDERS).children


@pytest.mark.fault("H28")
def test_a_task_that_waits_for_the_run_before_needs_a_begin_that_does() -> None:
    with dag_of(), pytest.raises(InvalidPipeline, match=r"orders\.commit wait for the run before"):
        group(ORDERS, task_args={"commit": {"depends_on_past": True}})
    with dag_of(), pytest.raises(InvalidPipeline, match=r"numbers\.publish"):
        group(NUMBERS, task_args={"publish": {"wait_for_downstream": True}})
    with dag_of(default_args={"depends_on_past": True}) as made:
        group(ORDERS)
    waits = {task.task_id.removeprefix("orders."): task.depends_on_past for task in made.tasks}
    assert waits["begin"] and waits["commit"] and not waits["abort"] and not waits["moved"]


def in_a_mapped_group() -> None:
    from airflow.sdk import task_group

    @task_group
    def each(number: int) -> None:
        group(ORDERS)

    each.expand(number=[1, 2])


@pytest.mark.fault("H28")
@cases(
    "arguments, make, why",
    [
        ({"fail_fast": True}, lambda: group(ORDERS), "fail_fast"),
        ({}, lambda: [group(ORDERS), group(ORDERS, group_id="again")], "is already moved by DAG mine"),
        ({}, lambda: [mapped([ORDERS], group_id="all"), group(ORDERS)], "is already moved by DAG mine"),
        ({}, lambda: group(ORDERS, pack=3), "use pack=1"),
        ({}, lambda: group(ORDERS, map_shards=True), "no sink has more than one shard"),
        ({}, lambda: group(SHARDED, map_shards=True, pack=1), "omit one of them"),
        ({}, lambda: group(pipeline_of(Days(), recovery_grace=timedelta(minutes=1))), "recovery_grace is 0:01:00"),
        ({}, lambda: mapped([], group_id="all"), "mapped over none"),
        ({}, lambda: mapped([ORDERS, ORDERS], group_id="all"), "orders more than once"),
        ({}, in_a_mapped_group, "is a mapped task group"),
    ],
)
def test_what_cant_go_well_is_refused_by_name(arguments: Any, make: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidPipeline, match="is in no DAG"):
        group(ORDERS)
    with dag_of(**arguments), pytest.raises(InvalidPipeline, match=re.escape(why)):
        make()


@pytest.mark.fault("R16")
def test_many_pipelines_are_instances_of_one_mapped_task_by_their_names() -> None:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

    from lockstep.airflow.operators import MappedPackOperator, pipelines_in

    with dag_of() as made:
        rule = {"pack": {"trigger_rule": "all_done"}}
        step("extract") >> mapped([ORDERS, NUMBERS], group_id="all", task_args=rule) >> step("report")
    task: Any = made.get_task("all.pack")
    names: Any = made.get_task("all.pipelines")
    assert (names.upstream_task_ids, names.trigger_rule, task.trigger_rule) == ({"extract"}, "all_done", "all_success")
    assert names.execute({}) == ["orders", "numbers"]
    assert task.expand_input.value["pipeline_name"].operator is names, (
        "a cleared instance goes by what the run had, not the file"
    )
    assert upstream(made)["all.pack"] == {"all.pipelines"}
    with pytest.raises(InvalidPipeline, match="pipeline returns of this run is missing"):
        task.unmap({"pipeline_name": "returns"})
    assert isinstance(task, MappedOperator) and task.map_index_template == "{{ task.pipeline_name }}"
    assert upstream(made)["report"] == {"all.pack"} and upstream(made)["all.moved"] == {"all.pack"}
    one = task.unmap({"pipeline_name": "numbers"})
    assert isinstance(one, MappedPackOperator) and (one.pipeline, one.pipeline_name, one.part) == (
        NUMBERS,
        "numbers",
        True,
    )
    alias, *partitions = task.outlets
    assert alias.name == one.alias == "lockstep.mine.all"
    assert {asset.uri.removesuffix("/epochs") for asset in partitions} <= {
        f"lockstep://{name}/{sink}" for name in ("orders", "numbers") for sink in ("raw", "copy")
    }
    assert list(pipelines_in(made)) == ["orders", "numbers"]


def test_arguments_and_callbacks_reach_every_instance_of_a_mapped_task_and_no_secret_the_stored_dag() -> None:
    def tell(context: Any) -> None: ...

    pack = {"pool": "x", "queue": "big", "executor_config": {"cpu": 4}, "execution_timeout": timedelta(hours=1)}
    pack |= {"max_active_tis_per_dagrun": 16, "max_wait": timedelta(hours=9), "on_failure_callback": tell}
    conf = {"spark.hadoop.fs.s3a.secret.key": "hunter2"}
    submit = {"conf": conf, "env_vars": {"TOKEN": "hunter2"}, "packages": "a:b"}
    more: Any = {"default_args": {"priority_weight": 7}, "spark_submit": submit}
    with dag_of(default_args={"on_success_callback": tell, "owner": "sales"}) as made:
        mapped([ORDERS, RETURNS], group_id="all", task_args={"pack": pack}, **more)
        group(NUMBERS, spark_submit=submit)
    task: Any = made.get_task("all.pack")
    for one in (task, *(task.unmap({"pipeline_name": name}) for name in ("orders", "returns"))):
        assert (one.pool, one.queue, one.executor_config, one.owner) == ("x", "big", {"cpu": 4}, "sales")
        assert (one.execution_timeout, one.priority_weight) == (timedelta(hours=1), 7)
        assert (one.on_failure_callback, one.on_success_callback) == ([tell], [tell])
        assert one.max_active_tis_per_dagrun == 16
    returns = task.unmap({"pipeline_name": "returns"})
    assert returns.max_wait == timedelta(hours=9) and returns.spark_submit == submit
    stored = serialized(made)
    assert "hunter2" not in json.dumps(stored) and "a:b" not in json.dumps(stored)
    back: Any = deserialized(stored).get_task("all.pack")
    assert back.has_on_failure_callback and back.has_on_success_callback
    assert (back.pool, back.queue, back.max_active_tis_per_dagrun) == ("x", "big", 16)


@cases("make", [lambda: group(ORDERS), lambda: mapped([ORDERS, RETURNS], group_id="all")])
def test_a_dag_with_groups_survives_serialization_with_nothing_of_its_pipelines_and_no_dates_if_it_is_only_triggered(
    make: Any,
) -> None:
    """By its dates Airflow would end a run of an earlier interval green, and nothing would have moved."""
    from lockstep.airflow._airflow import CronDataIntervalTimetable

    def made(**arguments: Any) -> DAG:
        with dag_of(**arguments) as dag:
            step("extract") >> make() >> step("report")
        return dag

    dag = made(end_date=START + timedelta(days=2))
    dag.check_cycle()
    text = json.dumps(serialized(dag))
    back = deserialized(json.loads(text))
    assert {task.task_id: task.upstream_task_ids for task in back.tasks} == upstream(dag)
    assert "out/raw" not in text and json.dumps(serialized(made(end_date=START + timedelta(days=2)))) == text
    assert {(task.start_date, task.end_date) for task in back.tasks} == {(None, None)}
    daily = CronDataIntervalTimetable("@daily", timezone="UTC")
    for kept in (made(schedule=daily, catchup=True), made(default_args={"start_date": START})):
        assert {task.start_date for task in as_airflow_has_it(kept).tasks} == {START}


# --- the run of one pipeline of several ------------------------------------------------------------------------------


def context_of(**params: Any) -> Any:
    return {"params": params, "data_interval_start": START, "data_interval_end": START + timedelta(days=1)}


def test_each_pipeline_of_a_run_has_a_row_of_its_own_and_epoch_dag_s_stays_the_run_s(dag: DAG) -> None:
    from lockstep.airflow.dag import epoch_dag

    context: Any = {"ti": SimpleNamespace(dag_id="mine", run_id="manual 1")}
    commit: Any = dag.get_task("back.commit")
    assert commit._run(context) == RunKey("mine", "manual 1/returns")
    alone: Any = epoch_dag(ORDERS, schedule="@daily").get_task("commit")
    assert alone._run(context) == RunKey("mine", "manual 1")


def test_a_conf_names_whose_rows_it_would_replace_or_is_refused_before_anything_begins() -> None:
    from lockstep.airflow._run_conf import read_restate_reason

    def reason(given: Any) -> str | None:
        return read_restate_reason(context_of(lockstep_restate=given), "orders", ["orders", "returns"])

    assert reason(None) is reason({"returns": "late file"}) is None
    assert reason({"orders": " late file "}) == "late file"
    whose = r'say whose rows are to be replaced, by a conf {"lockstep_restate": {"orders": "why"}}'
    stranger = "names 'ordres', and this DAG moves orders, returns"
    refused: list[tuple[Any, str]] = [("late file", whose), ({"ordres": "late file"}, stranger)]
    for given, why in [*refused, ({"orders": ""}, "say why"), (["orders"], "say why")]:
        with pytest.raises(RestateRefused, match=re.escape(why)):
            reason(given)


def test_an_interval_in_the_conf_is_for_the_interval_pipelines_of_a_dag() -> None:
    span = {"interval_start": "2024-05-01T00:00:00+00:00", "interval_end": "2024-05-02T00:00:00+00:00"}
    with dag_of() as made:
        group(ORDERS)
        group(NUMBERS)
    orders: Any = made.get_task("orders.begin")
    numbers: Any = made.get_task("numbers.begin")
    may = datetime(2024, 5, 1, tzinfo=UTC)
    assert orders._interval(context_of(**span)) == Interval(may, may + timedelta(days=1))
    assert numbers._interval(context_of(**span)) is None
    with dag_of() as made:
        group(NUMBERS)
    alone: Any = made.get_task("numbers.begin")
    with pytest.raises(InvalidPipeline, match="its epochs are numbers"):
        alone._interval(context_of(**span))


@pytest.mark.fault("R1")
def test_a_group_that_is_skipped_in_a_cleared_run_moves_nothing_of_what_an_earlier_try_began(
    observed: Observed,
) -> None:
    from lockstep.airflow._airflow import AirflowSkipException

    with dag_of(RUN.dag_id) as made:
        step("branch") >> group(observed.world.pipeline)
    name = observed.world.pipeline.name
    behind = [task for task in made.tasks if task.task_id not in ("branch", f"{name}.begin", f"{name}.moved")]
    run = replace(RUN, run_id=f"{RUN.run_id}/{name}")

    def execute(task: Any, begin: str) -> Any:
        context: Any = observed.context(task)
        context["ti"].get_task_states = lambda **asked: {RUN.run_id: {f"{name}.begin": begin}}
        return task.execute(context)

    execute(made.get_task(f"{name}.begin"), "running")
    observed.world.run_task("stage", run, DAY)
    for voided in (False, True):
        for task in behind:
            with pytest.raises(AirflowSkipException):
                execute(task, "skipped")
        assert observed.world.epoch_of(DAY).state == "staged"
        if not voided:
            observed.world.run_task("abort", run, DAY)
    execute(made.get_task(f"{name}.begin"), "running")
    execute(made.get_task(f"{name}.prepare.warehouse"), "success")
    assert not observed.world.shown_in_warehouse(DAY)

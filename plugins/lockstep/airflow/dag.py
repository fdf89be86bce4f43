"""The DAGs: one that moves a pipeline's epochs, one that recovers all pipelines, and one that compacts their tables.
`EpochTaskGroup` adds the tasks of a pipeline to another DAG."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule
from airflow.sdk.definitions._internal.contextmanager import DagContext  # no public API for the current DAG

from lockstep.airflow._airflow import CronTriggerTimetable
from lockstep.airflow._base_operator import MAX_WAIT
from lockstep.airflow._phases import SPARK, Phases, describe, require_pack_size, retry_arguments
from lockstep.airflow._run_conf import (
    PIPELINE,
    RECOVERY_GRACE,
    RESOLVE_ENTRY,
    RESOLVE_EPOCH,
    RESOLVE_SINK,
    makes_intervals,
    timetable_of,
)
from lockstep.airflow.assets import asset_of
from lockstep.airflow.operators import (
    CompactOperator,
    EmitAssetEventsOperator,
    FailOnUnemittedEvents,
    ListCompactableOperator,
    ListPipelinesOperator,
    RecoverOperator,
    StuckEpochsCheck,
)
from lockstep.airflow.timetables import knows_its_bounds
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.launchers import JobLauncher
from lockstep.pipeline import Pipeline
from lockstep.sinks.compacting import MIN_FILES, TARGET_BYTES

__all__ = ["OWNER", "TAG", "asset_of", "epoch_dag", "require_no_dag_around"]

OWNER = TAG = "lockstep"
PARALLEL_INTERVALS = 8  #: default of `max_active_runs` for an interval pipeline
ROUNDS_AT_ONCE = 4  #: runs of the recovery DAG, so that one slow pipeline doesn't delay the others
RECOVERY_TAG = "lockstep recovery"  #: by which the pages find the DAG, whatever its id is
_RECOVERY_PARAMS = {
    RECOVERY_GRACE: Param(
        None,
        type=["null", "integer"],
        minimum=0,
        title="Recovery grace, in minutes",
        description="Void undecided attempts that had no heartbeat for longer and have no unfinished task in Airflow. "
        "Empty: the pipeline's own grace, by default two hours.",
    ),
    PIPELINE: Param(
        None, type=["null", "string"], title="Pipeline", description="Recover this one alone. Empty: every pipeline."
    ),
    RESOLVE_EPOCH: Param(
        None,
        type=["null", "integer"],
        title="Resolve: epoch",
        description="Set by the page: first apply the resolution that a user has given for this epoch.",
    ),
    RESOLVE_SINK: Param(None, type=["null", "string"], title="Resolve: sink", description="The epoch's sink."),
    RESOLVE_ENTRY: Param(
        None, type=["null", "integer"], title="Resolve: entry", description="The history entry with the resolution."
    ),
}
_RECOVERY_DOC = "Recovers every pipeline in the ledger, also those whose DAG is paused or deleted."
_COMPACTION_DOC = "Compacts the tables that are made of epochs' files, of every pipeline in the ledger."


def epoch_dag(
    pipeline: Pipeline,
    *,
    schedule: Any = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    dag_id: str | None = None,
    spark_conn_id: str = SPARK,
    spark_submit: Mapping[str, Any] | None = None,
    max_wait: timedelta = MAX_WAIT,
    pack: int | None = None,
    map_shards: bool = False,
    task_args: Mapping[str, Mapping[str, Any]] | None = None,
    launcher: JobLauncher | None = None,
    default_args: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] | list[str] | set[str] = (),
    **dag_args: Any,
) -> DAG:
    """The DAG that moves `pipeline`'s epochs: one run, one epoch; with `pack` one task for up to that many epochs.

    `schedule`: a cron string or a timedelta makes data intervals in UTC. `start_date` and `end_date` bound the
    schedule, not manual runs.
    `spark_conn_id`: `sc://…` for Spark Connect, or a master for spark-submit, with `spark_submit` as further arguments
    of Airflow's SparkSubmitHook.
    `max_wait`: how long a task waits in all for input, another run or the epoch before. A waiting task is rescheduled,
    or deferred if `default_args` or Airflow's configuration say so.
    `pack`: for catching up and backfills. A run of an interval pipeline takes the intervals of the schedule in its data
    interval; one of a cursor pipeline continues until there is no input left. If an epoch fails the others continue.
    `map_shards`: publish the shards of a sink concurrently, by a mapped task with an instance for each.
    `launcher`: stages on another Spark than that of `spark_conn_id`, see docs/how-to/launchers.md.
    `task_args`: {phase: arguments of its tasks}, such as {"stage": {"pool": "spark"}, "prepare.<sink>": {…}}.
    `default_args`, `params` and `tags` are added to Lockstep's own; `dag_args` are Airflow's. Airflow finds the DAG
    whether the result is assigned to a name or not.

    Raises `InvalidPipeline` if recovery would void attempts that are still being retried, for an invalid `pack`, for
    `map_shards` without a sink of several shards, for `task_args` that Lockstep sets itself, and inside another DAG.
    """
    require_no_dag_around("epoch_dag")
    defaults = {"catchup": False, "doc_md": describe(pipeline)}
    by_interval = pipeline.identity is KeyedBy.INTERVAL
    defaults["max_active_runs"] = PARALLEL_INTERVALS if by_interval else pipeline.max_in_flight
    if pack is not None:
        require_pack_size(pipeline, pack)
        if by_interval and not makes_intervals(pipeline, schedule):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: pack={pack} needs a schedule that is a cron string or a timedelta, which "
                "defines the epochs' intervals. For a DAG that is only triggered give start_date and end_date of the "
                "past, or leave it paused"
            )
        defaults["max_active_runs"] = 1
    timetable = timetable_of(pipeline, schedule, start_date, end_date, pack)
    dag = DAG(
        dag_id or pipeline.name,
        schedule=timetable,
        start_date=start_date,
        end_date=end_date,
        default_args={"owner": OWNER, **retry_arguments(), **(default_args or {})},
        params=params,
        tags={TAG, *tags},
        **{**defaults, **dag_args},
    )
    if knows_its_bounds(timetable):
        dag.start_date = dag.end_date = None  # else Airflow leaves the tasks out of manual runs outside of them
    with dag:
        phases = Phases(pipeline, spark_conn_id, spark_submit or {}, max_wait, task_args or {}, launcher=launcher)
        phases.make(pack=pack, schedule=schedule, map_shards=map_shards)
    return dag


def with_own(own: Mapping[str, Any], dag_args: Mapping[str, Any]) -> dict[str, Any]:
    """Lockstep's arguments of a DAG overridden by the user's; `default_args`, `params` and `tags` are merged."""
    both = {name: {**own.get(name, {}), **(dag_args.get(name) or {})} for name in ("default_args", "params")}
    return {**own, **dag_args, **both, "tags": {*own["tags"], *(dag_args.get("tags") or ())}}


def require_no_dag_around(function: str) -> None:
    """Raise `InvalidPipeline` inside `with DAG(…)` or `@dag`: the function makes a DAG of its own and would add
    nothing to the outer one."""
    around = DagContext.get_current()
    if around is not None:
        raise InvalidPipeline(
            f"{function} is called inside DAG {around.dag_id}: it makes a DAG of its own. Call it "
            f"outside of `with DAG(…)` or `@dag`, and give it that DAG's arguments: {function}(…, "
            f"dag_id={around.dag_id!r}, schedule=…). Between tasks of that DAG EpochTaskGroup(pipeline) moves epochs"
        )


def recovery_dag(dag_id: str = "lockstep_recovery", *, schedule: str = "*/5 * * * *", **dag_args: Any) -> DAG:
    """The DAG that recovers every pipeline in the ledger, each in a task of its own. `dag_args` are Airflow's.

    `recover` fails with the problems that remain, `stuck_epochs` with epochs that need a person. `emit_asset_events`
    emits the events that publishing tasks didn't get to emit, and `fail_on_unemitted` fails with those that couldn't be
    emitted. There are no retries: the next run is one. While one `recover` takes long, later runs recover the others.
    Raises `InvalidPipeline` inside another DAG.
    """
    require_no_dag_around("recovery_dag")
    own = {
        "schedule": CronTriggerTimetable(schedule, timezone="UTC"),
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "default_args": {"owner": OWNER, "retries": 0},
        "params": _RECOVERY_PARAMS,
        "doc_md": _RECOVERY_DOC,
        "tags": {TAG, RECOVERY_TAG},
        "max_active_runs": ROUNDS_AT_ONCE,
        "catchup": False,
        "is_paused_upon_creation": False,
    }
    with DAG(dag_id, **with_own(own, dag_args)) as dag:
        pipelines = ListPipelinesOperator(task_id="pipelines", doc_md="Lists the pipelines in the ledger.")
        recovered = RecoverOperator.partial(
            task_id="recover",
            doc_md="Publishes decided epochs, voids dead attempts, deletes what they left.",
            map_index_template="{{ task.pipeline }}",
        ).expand(pipeline=pipelines.output)
        emitted = EmitAssetEventsOperator(
            task_id="emit_asset_events",
            doc_md="Emits the asset events of published epochs that no publishing task emitted: after a recovery, a "
            "worker's death, or a pack of which one epoch was given up.",
            trigger_rule=TriggerRule.ALL_DONE,
            max_active_tis_per_dag=1,  # two concurrent runs would both emit
        )
        recovered >> emitted
        FailOnUnemittedEvents.partial(
            task_id="fail_on_unemitted",
            doc_md="Fails with the events that `emit_asset_events` couldn't emit: that task itself must succeed, or "
            "Airflow writes none of its events. Skipped if there are none.",
        ).expand(unemitted=emitted.output)
        recovered >> StuckEpochsCheck(
            task_id="stuck_epochs",
            doc_md="Fails while `lockstep status` reports anything stuck, with one sentence and one command a "
            "pipeline.",
            trigger_rule=TriggerRule.ALL_DONE,
        )
    return dag


def compaction_dag(
    dag_id: str = "lockstep_compaction",
    *,
    schedule: str = "30 3 * * *",
    target_bytes: int = TARGET_BYTES,
    min_files: int = MIN_FILES,
    expire: timedelta | None = None,
    **dag_args: Any,
) -> DAG:
    """The DAG that lists the compactable sinks in the ledger and compacts each table in a task of its own, two at
    once.

    `target_bytes`: approximate size of a file; `min_files`: small files that a partition needs before it is
    rewritten; `expire`: also delete files that no table version newer than this consists of. `dag_args` are
    Airflow's. A task whose table another writer changed meanwhile is retried twice. Raises `InvalidPipeline` inside
    another DAG.
    """
    require_no_dag_around("compaction_dag")
    own = {
        "schedule": CronTriggerTimetable(schedule, timezone="UTC"),
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "default_args": {"owner": OWNER, "retries": 2, "retry_delay": timedelta(minutes=10)},
        "doc_md": _COMPACTION_DOC,
        "tags": {TAG},
        "max_active_runs": 1,
        "catchup": False,
        "max_active_tasks": 2,
    }
    with DAG(dag_id, **with_own(own, dag_args)) as dag:
        tables = ListCompactableOperator(task_id="tables", doc_md="Lists the compactable sinks in the ledger.")
        CompactOperator.partial(
            task_id="compact",
            target_bytes=target_bytes,
            min_files=min_files,
            expire=expire,
            doc_md="Rewrites the small files of published epochs into few, by one commit of the table.",
            map_index_template="{{ task.pipeline }}.{{ task.sink }}",
        ).expand_kwargs(tables.output)
    return dag

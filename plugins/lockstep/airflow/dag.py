"""The DAG of a pipeline: the tasks of its phases, and nothing else. Into another DAG `EpochTaskGroup` puts them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions._internal.contextmanager import DagContext  # nothing public names the DAG around a call

from lockstep.airflow._intervals import makes_intervals, timetable_of
from lockstep.airflow._phases import SPARK, Phases, describe, require_most
from lockstep.airflow._retrying import retry_arguments
from lockstep.airflow._waiting import PATIENCE
from lockstep.airflow.assets import asset_of
from lockstep.airflow.timetables import knows_its_bounds
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.launchers import JobLauncher
from lockstep.pipeline import Pipeline

__all__ = ["OWNER", "TAG", "asset_of", "epoch_dag", "require_no_dag_around"]

OWNER = TAG = "lockstep"
PARALLEL_INTERVALS = 8  #: runs at once of an interval pipeline, unless the DAG says otherwise


def epoch_dag(
    pipeline: Pipeline,
    *,
    schedule: Any = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    dag_id: str | None = None,
    spark_conn_id: str = SPARK,
    spark_submit: Mapping[str, Any] | None = None,
    max_wait: timedelta = PATIENCE,
    pack: int | None = None,
    map_shards: bool = False,
    task_args: Mapping[str, Mapping[str, Any]] | None = None,
    launcher: JobLauncher | None = None,
    default_args: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] | list[str] | set[str] = (),
    **dag_args: Any,
) -> DAG:
    """The DAG that moves `pipeline`'s epochs: one run, one epoch; with `pack`, one run, one task, up to so many epochs.

    `schedule`: a cron string or a timedelta makes real data intervals in UTC. `start_date` and `end_date` bound it,
    and no manual run.
    `spark_conn_id`: `sc://…` for Spark Connect, or a master for spark-submit, with `spark_submit` as further arguments
    of Airflow's SparkSubmitHook.
    `max_wait`: how long a task waits, rescheduled and not failed, for input, another run or the epoch before; for files
    deferred, if `default_args` or Airflow's configuration say so.
    `pack`: for catching up and backfills. A run of an interval pipeline takes the intervals of the schedule that its
    data interval is made of; one of a cursor pipeline goes on until there is nothing left to read. What fails is one
    epoch, the others go on.
    `map_shards`: a sink of several shards has them sent side by side, by a mapped task with an instance for each.
    `launcher`: has Spark stage elsewhere than `spark_conn_id` leads, as docs/how-to/launchers.md tells.
    `task_args`: {phase: arguments of its tasks}, such as {"stage": {"pool": "spark"}, "prepare.<sink>": {…}}.
    `default_args`, `params`, `tags` are added to Lockstep's own, and `dag_args` are Airflow's. Airflow finds the DAG
    whether the result is given a name or not. Raises `InvalidPipeline` when recovery would void attempts that are still
    being retried, for a `pack` that can't be, for `map_shards` where there is nothing to map, for `task_args` that are
    Lockstep's own, and inside another DAG.
    """
    require_no_dag_around("epoch_dag")
    defaults = {"catchup": False, "max_active_runs": _runs_at_once(pipeline), "doc_md": describe(pipeline)}
    if pack is not None:
        _require_pack(pipeline, pack, schedule)
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
        dag.start_date = dag.end_date = None  # its tasks would have them, and Airflow leave these out of manual runs
    with dag:
        phases = Phases(pipeline, spark_conn_id, spark_submit or {}, max_wait, task_args or {}, launcher=launcher)
        phases.make(pack=pack, schedule=schedule, map_shards=map_shards)
    return dag


def _require_pack(pipeline: Pipeline, pack: int, schedule: Any) -> None:
    require_most(pipeline, pack)
    if pipeline.identity is KeyedBy.INTERVAL and not makes_intervals(pipeline, schedule):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: pack={pack} needs a schedule that is a cron string or a timedelta, which says "
            "what interval an epoch has. For a DAG that is only triggered give start_date and end_date of the past, "
            "or leave it paused"
        )


def with_own(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a DAG of Lockstep's, and over them a user's: `default_args`, `params` and `tags` are added to."""
    both = {name: {**own.get(name, {}), **(given.get(name) or {})} for name in ("default_args", "params")}
    return {**own, **given, **both, "tags": {*own["tags"], *(given.get("tags") or ())}}


def require_no_dag_around(function: str) -> None:
    """Raise `InvalidPipeline` inside `with DAG(…)` or `@dag`: what is made there is a DAG of its own, and nothing would
    be added to the one around it."""
    around = DagContext.get_current()
    if around is not None:
        raise InvalidPipeline(
            f"{function} stands inside DAG {around.dag_id}: it makes a whole DAG and adds to no other. Call it "
            f"outside of `with DAG(…)` or `@dag`, and give it that DAG's arguments: {function}(…, "
            f"dag_id={around.dag_id!r}, schedule=…). Between tasks of that DAG EpochTaskGroup(pipeline) moves epochs"
        )


def _runs_at_once(pipeline: Pipeline) -> int:
    match pipeline.identity:
        case KeyedBy.INTERVAL:
            return PARALLEL_INTERVALS
        case KeyedBy.CURSOR:
            return pipeline.max_in_flight

"""The DAG of a pipeline: begin → stage → prepare[sink…] → commit → publish[sink…] → cleanup, and abort beside it; audit
before prepare where the pipeline has audits.

Airflow decides when a task runs, and only the ledger whether it counts: the tasks after `begin` run even where a person
skipped what comes before them, and refuse by what the ledger says. `abort` fires on a failure before the commit, may
run beside a living sibling, and leaves the run failed, because `cleanup`, the other leaf, never got to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, Label, TaskGroup, TriggerRule, WeightRule
from airflow.sdk.definitions._internal.contextmanager import DagContext  # nothing public names the DAG around a call

from lockstep.epoch import Identity
from lockstep.errors import InvalidPipeline
from lockstep.orchestration._intervals import makes_intervals, timetable_of
from lockstep.orchestration._retrying import require_hold, retry_arguments
from lockstep.orchestration._waiting import PATIENCE
from lockstep.orchestration.operators import (
    AbortOperator,
    AuditOperator,
    BeginOperator,
    CleanupOperator,
    CommitOperator,
    PackOperator,
    PrepareOperator,
    PublishOperator,
    PublishShardOperator,
    StageOperator,
)
from lockstep.orchestration.page import page_root
from lockstep.orchestration.timetables import ends
from lockstep.pack import MOST
from lockstep.pipeline import Pipeline

OWNER = TAG = "lockstep"
PARALLEL_INTERVALS = 8  #: runs at once of an interval pipeline, unless the DAG says otherwise
SPARK = "spark"  #: id of the Connection to Spark

_DOCS = {
    "begin": "Freezes what this epoch reads and opens an attempt. What older attempts left is rolled back.",
    "stage": "Spark writes the epoch's output as files; this task then seals them. Clear it to stage again.",
    "audit": "Asks the sealed rows what the plan froze. Where rows offend, the epoch is held: nothing of it is shown "
    "unless a person releases it.",
    "prepare": "The sink takes the sealed rows without showing them, then votes. Nothing is visible yet.",
    "commit": "One row in the ledger: the decision. It counts the votes there; Airflow's task states don't matter.",
    "publish": "The sink shows the epoch, once, however often this runs. Repeated until it has worked.",
    "publish_shards": "One task instance a shard: sends its rows in a transaction of its own, side by side with the "
    "others. `publish` then finds every shard's marker, and sends what is missing.",
    "cleanup": "Deletes the staged files. Counts, digests and the manifest stay.",
    "abort": "Skipped in a good run. Runs when a task before the commit failed: voids this attempt, rolls back what it "
    "left. To try again, clear the run from `begin`.",
    "pack": "Moves each epoch of the run from its source into every sink, many at once, each decided for itself. A "
    "retry, or a clear, finds what is done and does the rest.",
}


def epoch_dag(
    pipeline: Pipeline,
    *,
    schedule: Any = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    dag_id: str | None = None,
    spark_conn_id: str = SPARK,
    spark_submit: Mapping[str, Any] | None = None,
    patience: timedelta = PATIENCE,
    pack: int | None = None,
    map_shards: bool = False,
    default_args: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] | list[str] | set[str] = (),
    **dag_args: Any,
) -> DAG:
    """The DAG that moves `pipeline`'s epochs: one run, one epoch; with `pack`, one run, one task, up to so many epochs.

    `schedule`: a cron string or a timedelta makes real data intervals in UTC; `end_date` ends it, but no manual run.
    `spark_conn_id`: `sc://…` for Spark Connect, or a master for spark-submit, with `spark_submit` as further arguments
    of Airflow's SparkSubmitHook.
    `patience`: how long a task waits, rescheduled and not failed, for input, another run or the epoch before.
    `pack`: for catching up and backfills. A run of an interval pipeline takes the intervals of the schedule that its
    data interval is made of; one of a cursor pipeline goes on until there is nothing left to read. What fails is one
    epoch, the others go on.
    `map_shards`: a sink of several shards has them sent side by side, by a mapped task with an instance for each.
    `default_args`, `params`, `tags` are added to Lockstep's own, and `dag_args` are Airflow's. Airflow finds the DAG
    whether the result is given a name or not. Raises `InvalidPipeline` when recovery would void attempts that are still
    being retried, for a `pack` that can't be, for `map_shards` where there is nothing to map, and inside another DAG.
    """
    require_no_dag_around("epoch_dag")
    if map_shards:
        _require_shards(pipeline, pack)
    defaults = {"catchup": False, "max_active_runs": _runs_at_once(pipeline), "doc_md": _describe(pipeline)}
    if pack is not None:
        _require_pack(pipeline, pack, schedule)
        defaults["max_active_runs"] = 1
    timetable = timetable_of(pipeline, schedule, end_date, pack)
    dag = DAG(
        dag_id or pipeline.name,
        schedule=timetable,
        start_date=start_date,
        end_date=None if ends(timetable) else end_date,
        default_args={"owner": OWNER, **retry_arguments(), **(default_args or {})},
        params=params,
        tags={TAG, *tags},
        **{**defaults, **dag_args},
    )
    with dag:
        if pack is None:
            _tasks(pipeline, spark_conn_id, spark_submit or {}, patience, map_shards)
        else:
            _pack(pipeline, pack, schedule, spark_conn_id, spark_submit or {}, patience)
    return dag


def _require_pack(pipeline: Pipeline, pack: int, schedule: Any) -> None:
    if isinstance(pack, bool) or not isinstance(pack, int) or not 1 <= pack <= MOST:
        raise InvalidPipeline(f"pipeline {pipeline.name}: pack is {pack!r}; it has to be a number from 1 to {MOST}")
    if pipeline.identity is Identity.INTERVAL and not makes_intervals(pipeline, schedule):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: pack={pack} needs a schedule that is a cron string or a timedelta, which says "
            "what interval an epoch has. For a DAG that is only triggered give start_date and end_date of the past, "
            "or leave it paused"
        )


def _require_shards(pipeline: Pipeline, pack: int | None) -> None:
    if pack is not None:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: pack={pack} moves epochs in one task, map_shards=True maps tasks of one epoch: "
            "leave one of them away"
        )
    if not any(sink.shards > 1 for sink in pipeline.sinks):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: map_shards=True, but no sink has more than one shard: give a KafkaSink "
            "shards=…, or leave map_shards away"
        )


def _pack(
    pipeline: Pipeline,
    pack: int,
    schedule: Any,
    spark_conn_id: str,
    spark_submit: Mapping[str, Any],
    patience: timedelta,
) -> None:
    task = PackOperator(
        task_id="pack",
        pipeline=pipeline,
        most=pack,
        schedule=schedule if pipeline.identity is Identity.INTERVAL else None,
        assets={sink.name: asset_of(pipeline.name, sink.name) for sink in pipeline.sinks},
        spark_conn_id=spark_conn_id,
        spark_submit=spark_submit,
        patience=patience,
        doc_md=_DOCS["pack"],
    )
    require_hold(pipeline, [task])


def _tasks(
    pipeline: Pipeline, spark_conn_id: str, spark_submit: Mapping[str, Any], patience: timedelta, map_shards: bool
) -> None:
    common: dict[str, Any] = {"pipeline": pipeline, "patience": patience, "weight_rule": WeightRule.UPSTREAM}
    later = {**common, "trigger_rule": TriggerRule.NONE_FAILED}
    begin = BeginOperator(task_id="begin", doc_md=_DOCS["begin"], **common)
    stage = StageOperator(
        task_id="stage", doc_md=_DOCS["stage"], spark_conn_id=spark_conn_id, spark_submit=spark_submit, **later
    )
    with TaskGroup("prepare", tooltip=_DOCS["prepare"]) as preparing:
        prepared = [
            PrepareOperator(task_id=sink.name, sink=sink.name, doc_md=_DOCS["prepare"], **later)
            for sink in pipeline.sinks
        ]
    commit = CommitOperator(task_id="commit", doc_md=_DOCS["commit"], **later)
    with TaskGroup("publish", tooltip=_DOCS["publish"]) as publishing:
        for sink in pipeline.sinks:
            asset = asset_of(pipeline.name, sink.name)
            PublishOperator(task_id=sink.name, sink=sink.name, asset=asset, doc_md=_DOCS["publish"], **later)
    if map_shards:
        _map_shards(pipeline, commit, publishing, later)
    cleanup = CleanupOperator(task_id="cleanup", doc_md=_DOCS["cleanup"], **later)
    abort = AbortOperator(
        task_id="abort",
        task_display_name="abort, after a failure",  # in a good run the UI paints it pink, as it is skipped
        doc_md=_DOCS["abort"],
        trigger_rule=TriggerRule.ONE_FAILED,
        **common,
    )

    begin >> Label("a frozen range") >> stage
    audits = [AuditOperator(task_id="audit", doc_md=_DOCS["audit"], **later)] if pipeline.audits else []
    for audit in audits:
        stage >> Label("a sealed WAL") >> audit >> Label("nothing offends") >> preparing
    if not audits:
        stage >> Label("a sealed WAL") >> preparing
    preparing >> Label("votes") >> commit >> Label("decided") >> publishing >> Label("shown") >> cleanup
    commit >> Label("a failure before the commit") >> abort
    [begin, stage, *audits, *prepared] >> abort  # for the same reason; said once, or the graph is full of it
    require_hold(pipeline, [begin, stage, *audits, prepared[0], commit])


def _map_shards(pipeline: Pipeline, commit: CommitOperator, publishing: TaskGroup, later: Mapping[str, Any]) -> None:
    """Before a sink's `publish`, which so may find that all is done, and does whatever isn't."""
    with TaskGroup("publish_shards", tooltip=_DOCS["publish_shards"]) as sending:
        for sink in pipeline.sinks:
            if sink.shards > 1:
                mapped = PublishShardOperator.partial(
                    task_id=sink.name,
                    sink=sink.name,
                    doc_md=_DOCS["publish_shards"],
                    map_index_template="shard {{ task.shard }}",
                    **later,
                ).expand(shard=list(range(sink.shards)))
                mapped >> publishing.children[f"publish.{sink.name}"]
    commit >> Label("decided") >> sending


def require_no_dag_around(function: str) -> None:
    """Raise `InvalidPipeline` inside `with DAG(…)` or `@dag`: what is made there is a DAG of its own, and nothing would
    be added to the one around it."""
    around = DagContext.get_current()
    if around is not None:
        raise InvalidPipeline(
            f"{function} stands inside DAG {around.dag_id}: it makes a whole DAG and adds to no other. Call it "
            f"outside of `with DAG(…)` or `@dag`, and give it that DAG's arguments: {function}(…, "
            f"dag_id={around.dag_id!r}, schedule=…). For tasks after an epoch schedule another DAG on its assets"
        )


def asset_of(pipeline: str, sink: str) -> Asset:
    """What a pipeline publishes in a sink; its events carry epoch id and rows. Schedule other DAGs on it."""
    return Asset(name=f"{pipeline}.{sink}", uri=f"lockstep://{pipeline}/{sink}", group="lockstep")


def _runs_at_once(pipeline: Pipeline) -> int:
    match pipeline.identity:
        case Identity.INTERVAL:
            return PARALLEL_INTERVALS
        case Identity.CURSOR:
            return pipeline.max_in_flight


def _describe(pipeline: Pipeline) -> str:
    rows = [f"| {sink.name} | {', '.join(sink.outputs)} | {sink.guarantee.value} |" for sink in pipeline.sinks]
    return (
        f"**{pipeline.name}** moves {', '.join(pipeline.sources)} in epochs, each by two-phase commit: retry, clear "
        "or kill any task, every input row shows up in every sink once.\n\n"
        + "\n".join(["| sink | outputs | guarantee |", "|---|---|---|", *rows])
        + f"\n\n[Its epochs]({page_root()}/pipelines/{pipeline.name})"
    )

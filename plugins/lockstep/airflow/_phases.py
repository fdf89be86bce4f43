"""The tasks that move a pipeline's epochs: begin → stage → prepare[sink…] → commit → publish[sink…] → cleanup, with
abort on failure, and audit before prepare if the pipeline has audits. They are added to the current DAG or task group.

Airflow decides when a task runs, and only the ledger whether it counts: the tasks after `begin` run even if a user
skipped those before them, and refuse by the ledger's state. `abort` fires on a failure before the commit, may run next
to a running sibling, and leaves the run failed, because `cleanup`, the other leaf, never ran.

Tasks are retried with growing pauses, except after errors that a retry can't fix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, BaseOperator, Label, TaskGroup, TriggerRule, WeightRule

from lockstep.airflow._airflow import HAS_PARTITIONS, TWOFOLD, growth_of, no_retry_of_terminal
from lockstep.airflow._base_operator import MAX_WAIT
from lockstep.airflow._launching import Submission
from lockstep.airflow.assets import alias_of, inlets_of, partitions_of
from lockstep.airflow.operators import (
    AbortOperator,
    AuditOperator,
    BeginOperator,
    CleanupOperator,
    CommitOperator,
    MappedNamesOperator,
    MappedPackOperator,
    PackOperator,
    PrepareOperator,
    PublishOperator,
    PublishShardOperator,
    StageOperator,
)
from lockstep.airflow.page import page_root
from lockstep.epoch import KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.launchers import JobLauncher
from lockstep.pipeline import Pipeline
from lockstep.protocol.pack import MAX_EPOCHS

RETRIES = 4
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)
NAMES = "pipelines"  #: id of the task before a mapped pack
SPARK = "spark"  #: id of the Connection to Spark
_DOCS = {
    "begin": "Freezes the input of this epoch and opens an attempt. Leftovers of older attempts are rolled back.",
    "stage": "Spark writes the epoch's output as files; this task then seals them. Clear it to stage again.",
    "audit": "Runs the plan's audits on the sealed rows. If rows offend, the epoch is held: nothing of it is shown "
    "unless a person releases it.",
    "prepare": "The sink stores the sealed rows invisibly, then votes.",
    "commit": "Writes the decision, one row in the ledger, if all votes are there; Airflow's task states don't matter.",
    "publish": "Makes the epoch visible in the sink, once, however often this runs. Retried until it succeeds.",
    "publish_shards": "One task instance for each shard: sends its rows in a transaction of its own, concurrently "
    "with the others. `publish` then finds every shard's marker and sends what is missing.",
    "cleanup": "Deletes the staged files. Counts, digests and the manifest stay.",
    "abort": "Skipped in a good run. Runs when a task before the commit failed: voids this attempt and rolls back what "
    "it left. To try again, clear the run from `begin`.",
    "pack": "Moves the epochs of the run from their source into every sink, concurrently, each with its own "
    "decision. A retry or a clear finds what is done and does the rest.",
}
_SINK_PHASES = frozenset({"prepare", "publish", "publish_shards"})
#: arguments that Lockstep sets itself
_OWN = frozenset(
    {
        "alias",
        "dag",
        "launcher",
        "max_epochs",
        "outlets",
        "part",
        "pipeline",
        "pipeline_name",
        "pipelines",
        "schedule",
        "shard",
    }
    | {"sink", "spark_conn_id", "spark_submit", "task_group", "task_id"}
)
_FIXED_RULE = _DOCS.keys() - {"begin", "pack"}  #: phases whose trigger rule users can't change


def retry_arguments() -> dict[str, Any]:
    """Arguments of every Lockstep task; a DAG's own `default_args` override them."""
    return {
        "retries": RETRIES,
        "retry_delay": FIRST_PAUSE,
        "max_retry_delay": LONGEST_PAUSE,
        "retry_exponential_backoff": TWOFOLD,
        **no_retry_of_terminal(),
    }


def longest_wait(task: BaseOperator) -> timedelta:
    """Upper bound of the sum of the pauses between a task's tries: Airflow's jitter at most doubles each."""
    longest = _seconds(task.max_retry_delay) if task.max_retry_delay is not None else math.inf
    growth = growth_of(task)
    pauses = (2 * _seconds(task.retry_delay) * growth ** min(retry, 40) for retry in range(task.retries or 0))
    return timedelta(seconds=sum(min(pause, longest) for pause in pauses))


def _seconds(delay: timedelta | float) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay


def require_recovery_grace(pipeline: Pipeline, path: Iterable[BaseOperator]) -> None:
    """Raise `InvalidPipeline` if recovery would void an attempt that is still being retried."""
    needed = sum((longest_wait(task) for task in path), timedelta())
    if pipeline.recovery_grace < needed:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: recovery_grace is {pipeline.recovery_grace}, but the retries "
            f"before the commit may pause for {needed} in all: recovery would void live attempts. Set a longer "
            "recovery_grace or fewer retries"
        )


@dataclass(frozen=True)
class Phases:
    """Makes the tasks of a pipeline. `task_args`: {phase: arguments of its tasks}, or {"prepare.<sink>": …} for
    those of one sink. `part`: the DAG may move several pipelines. Raises `InvalidPipeline`."""

    pipeline: Pipeline
    spark_conn_id: str = SPARK
    spark_submit: Mapping[str, Any] = field(default_factory=dict)
    max_wait: timedelta = MAX_WAIT
    task_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    part: bool = False
    launcher: JobLauncher | None = None

    def __post_init__(self) -> None:
        require_task_args([self.pipeline], self.task_args)

    def make(self, *, pack: int | None = None, schedule: Any = None, map_shards: bool = False) -> None:
        """Make a task for each phase; with `pack` one task for up to that many epochs, into which `schedule` splits
        an interval pipeline's run. `map_shards`: also a task instance for each shard of a sink that has several."""
        if map_shards:
            self._require_shards(pack)
        if pack is not None:
            self._pack(pack, schedule if self.pipeline.identity is KeyedBy.INTERVAL else None)
        else:
            self._phases(map_shards)

    def _phases(self, map_shards: bool) -> None:
        begin = BeginOperator(**self._args("begin"))
        stage = StageOperator(**self._spark, **self._args("stage"))
        audits = (
            [AuditOperator(spark_conn_id=self.spark_conn_id, **self._args("audit"))] if self.pipeline.audits else []
        )
        with TaskGroup("prepare", tooltip=_DOCS["prepare"]) as preparing:
            prepared = [PrepareOperator(**self._args("prepare", sink.name)) for sink in self.pipeline.sinks]
        commit = CommitOperator(**self._args("commit"))
        with TaskGroup("publish", tooltip=_DOCS["publish"]) as publishing:
            published = {sink.name: PublishOperator(**self._args("publish", sink.name)) for sink in self.pipeline.sinks}
        shards = self._map_shards(commit, published) if map_shards else []
        cleanup = CleanupOperator(**self._args("cleanup"))
        abort = AbortOperator(**self._args("abort"))

        begin >> Label("a frozen range") >> stage
        for audit in audits:
            stage >> Label("a sealed WAL") >> audit >> Label("nothing offends") >> preparing
        if not audits:
            stage >> Label("a sealed WAL") >> preparing
        preparing >> Label("votes") >> commit >> Label("decided") >> publishing >> Label("shown") >> cleanup
        commit >> Label("a failure before the commit") >> abort
        [begin, stage, *audits, *prepared] >> abort  # without a label each, which would clutter the graph
        require_recovery_grace(self.pipeline, [begin, stage, *audits, max(prepared, key=longest_wait), commit])
        later = [stage, *audits, *prepared, commit, *published.values(), *shards, cleanup]
        _require_order_of_runs(self.pipeline, begin, later)

    def _pack(self, max_epochs: int, schedule: Any) -> None:
        require_pack_size(self.pipeline, max_epochs)
        task = PackOperator(
            max_epochs=max_epochs,
            schedule=schedule,
            **self._spark,
            **self._args("pack"),
        )
        require_recovery_grace(self.pipeline, [task])

    def _map_shards(self, commit: CommitOperator, published: Mapping[str, PublishOperator]) -> list[Any]:
        """Make tasks that run before a sink's `publish`, which finds what they did and does the rest."""
        tasks = []
        with TaskGroup("publish_shards", tooltip=_DOCS["publish_shards"]) as sending:
            for sink in self.pipeline.sinks:
                if sink.shards > 1:
                    mapped = PublishShardOperator.partial(
                        map_index_template="shard {{ task.shard }}", **self._args("publish_shards", sink.name)
                    ).expand(shard=list(range(sink.shards)))
                    mapped >> published[sink.name]
                    tasks.append(mapped)
        commit >> Label("decided") >> sending
        return tasks

    def _require_shards(self, pack: int | None) -> None:
        if pack is not None:
            raise InvalidPipeline(
                f"pipeline {self.pipeline.name}: pack={pack} moves epochs in one task, map_shards=True maps tasks of "
                "one epoch: omit one of them"
            )
        if not any(sink.shards > 1 for sink in self.pipeline.sinks):
            raise InvalidPipeline(
                f"pipeline {self.pipeline.name}: map_shards=True, but no sink has more than one shard: give a "
                "KafkaSink shards=…, or omit map_shards"
            )

    @property
    def _spark(self) -> dict[str, Any]:
        """Arguments of a task that has Spark stage."""
        by = {"spark_conn_id": self.spark_conn_id, "spark_submit": self.spark_submit}
        return {**by, "launcher": self.launcher}

    def _args(self, phase: str, sink: str | None = None) -> dict[str, Any]:
        """Arguments of a task."""
        own = {"pipeline": self.pipeline, "part": self.part, **({"sink": sink} if sink else {})}
        return {**_arguments(phase, self.max_wait, self.task_args, sink), **own}


def map_packs(
    pipelines: Sequence[Pipeline],
    alias: str,
    *,
    spark_conn_id: str,
    spark_submit: Mapping[str, Any],
    max_wait: timedelta,
    task_args: Mapping[str, Mapping[str, Any]],
) -> None:
    """Make one mapped task with an instance for each pipeline, which moves an epoch of it. `alias`: of the asset
    events. The task before it keeps the names for the run, so that a cleared instance finds its pipeline even if the
    file's list has changed."""
    require_task_args(pipelines, task_args)
    arguments = _arguments("pack", max_wait, task_args)
    rule = {"trigger_rule": arguments.pop("trigger_rule")} if "trigger_rule" in arguments else {}
    names = MappedNamesOperator(task_id=NAMES, names=[pipeline.name for pipeline in pipelines], **rule)
    task: Any = MappedPackOperator.partial(
        pipelines={pipeline.name: pipeline for pipeline in pipelines},
        alias=alias,
        inlets=[asset for pipeline in pipelines for asset in inlets_of(pipeline)],
        outlets=[alias_of(alias), *(asset for pipeline in pipelines for asset in _partitions_of(pipeline))],
        max_epochs=1,
        schedule=None,
        spark_conn_id=spark_conn_id,
        spark_submit=Submission(spark_submit),
        part=True,
        map_index_template="{{ task.pipeline_name }}",
        **arguments,
    ).expand(pipeline_name=names.output)
    for pipeline in pipelines:
        require_recovery_grace(pipeline, [task])


def describe(pipeline: Pipeline) -> str:
    """Documentation of the DAG or group in Markdown."""
    rows = [f"| {sink.name} | {', '.join(sink.outputs)} | {sink.guarantee.value} |" for sink in pipeline.sinks]
    return (
        f"**{pipeline.name}** moves {', '.join(pipeline.sources)} in epochs, each by two-phase commit: retry, clear "
        "or kill any task, every input row shows up in every sink once.\n\n"
        + "\n".join(["| sink | outputs | guarantee |", "|---|---|---|", *rows])
        + f"\n\n[Its epochs]({page_root()}/pipelines/{pipeline.name})"
    )


def require_pack_size(pipeline: Pipeline, pack: int) -> None:
    if isinstance(pack, bool) or not isinstance(pack, int) or not 1 <= pack <= MAX_EPOCHS:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: pack is {pack!r}; it has to be a number from 1 to {MAX_EPOCHS}"
        )


def require_task_args(pipelines: Iterable[Pipeline], task_args: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `InvalidPipeline` for an unknown phase, and for arguments that Lockstep sets itself."""
    sinks = {sink.name for pipeline in pipelines for sink in pipeline.sinks}
    for place, arguments in task_args.items():
        phase, _, sink = place.partition(".")
        if phase not in _DOCS or (sink and (phase not in _SINK_PHASES or sink not in sinks)):
            raise InvalidPipeline(
                f"task_args names {place!r}, which is neither a phase ({', '.join(_DOCS)}) nor one of a sink, such as "
                f"'prepare.{min(sinks)}'"
            )
        if own := sorted(_OWN & arguments.keys()):
            raise InvalidPipeline(f"task_args[{place!r}] sets {', '.join(own)}, which Lockstep sets itself")
        if phase in _FIXED_RULE and "trigger_rule" in arguments:
            raise InvalidPipeline(
                f"task_args[{place!r}] sets a trigger_rule: {phase} needs Lockstep's, so that the ledger's state "
                "refuses what a person marked by hand. Only begin, or pack, may have another"
            )


def _arguments(
    phase: str, max_wait: timedelta, task_args: Mapping[str, Mapping[str, Any]], sink: str | None = None
) -> dict[str, Any]:
    """Lockstep's arguments of a task, overridden by the user's."""
    arguments: dict[str, Any] = {"task_id": sink or phase, "doc_md": _DOCS[phase], "max_wait": max_wait}
    match phase:
        case "pack":
            pass
        case "begin":
            arguments |= {"weight_rule": WeightRule.UPSTREAM}
        case "abort":
            arguments |= {"weight_rule": WeightRule.UPSTREAM, "trigger_rule": TriggerRule.ONE_FAILED}
            arguments |= {
                "task_display_name": "abort, after a failure"
            }  # the UI shows it in pink as skipped in a good run
            arguments |= {"depends_on_past": False, "wait_for_downstream": False}  # an abort must not wait
        case _:
            arguments |= {"weight_rule": WeightRule.UPSTREAM, "trigger_rule": TriggerRule.NONE_FAILED}
    return {**arguments, **task_args.get(phase, {}), **(task_args.get(f"{phase}.{sink}", {}) if sink else {})}


def _partitions_of(pipeline: Pipeline) -> list[Asset]:
    return [partitions_of(pipeline.name, sink.name) for sink in pipeline.sinks] if HAS_PARTITIONS else []


def _require_order_of_runs(pipeline: Pipeline, begin: BaseOperator, later: Iterable[Any]) -> None:
    """Raise `InvalidPipeline` if a task waits for the run before but `begin` doesn't: epochs are numbered in the
    order in which runs begin; if numbers and runs cross, each run would wait for the other."""
    crossed = [task.task_id for task in later if task.depends_on_past]
    if crossed and not begin.depends_on_past:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: {', '.join(crossed[:3])} wait for the run before (depends_on_past or "
            f"wait_for_downstream), and {begin.task_id} doesn't: a later run may begin the earlier epoch, and each "
            "would wait for the other. Give begin depends_on_past=True, too, or none of them"
        )

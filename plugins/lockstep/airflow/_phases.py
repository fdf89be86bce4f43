"""The tasks that move a pipeline's epochs: begin → stage → prepare[sink…] → commit → publish[sink…] → cleanup, and
abort beside it; audit before prepare where the pipeline has audits. They are made into the DAG or the group around.

Airflow decides when a task runs, and only the ledger whether it counts: the tasks after `begin` run even where a person
skipped what comes before them, and refuse by what the ledger says. `abort` fires on a failure before the commit, may
run beside a living sibling, and leaves the run failed, because `cleanup`, the other leaf, never got to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, BaseOperator, Label, TaskGroup, TriggerRule, WeightRule

from lockstep.airflow._airflow import HAS_PARTITIONS
from lockstep.airflow._launching import Submission
from lockstep.airflow._retrying import longest_wait, require_hold
from lockstep.airflow._waiting import PATIENCE
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

NAMES = "pipelines"  #: id of the task before a mapped pack
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


_OF_SINKS = frozenset({"prepare", "publish", "publish_shards"})
#: What a task of Lockstep's is made of, and no argument of the user's.
_OWN = frozenset(
    {"alias", "dag", "launcher", "most", "of", "outlets", "part", "pipeline", "pipelines", "schedule", "shard"}
    | {"sink", "spark_conn_id", "spark_submit", "task_group", "task_id"}
)
_BY_RULE = _DOCS.keys() - {"begin", "pack"}  #: the tasks that run by a rule of Lockstep's


@dataclass(frozen=True)
class Phases:
    """How the tasks of a pipeline are made. `task_args`: {phase: arguments of its tasks}, or {"prepare.<sink>": …} for
    those of one sink. `part`: the pipeline is one of those that the DAG moves. Raises `InvalidPipeline`."""

    pipeline: Pipeline
    spark_conn_id: str = SPARK
    spark_submit: Mapping[str, Any] = field(default_factory=dict)
    max_wait: timedelta = PATIENCE
    task_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    part: bool = False
    launcher: JobLauncher | None = None

    def __post_init__(self) -> None:
        require_task_args([self.pipeline], self.task_args)

    def make(self, *, pack: int | None = None, schedule: Any = None, map_shards: bool = False) -> None:
        """A task for each phase; with `pack` one task for up to so many epochs, into which `schedule` cuts an interval
        pipeline's run. `map_shards`: an instance for each shard of a sink that has several."""
        if map_shards:
            self._require_shards(pack)
        if pack is not None:
            self._pack(pack, schedule if self.pipeline.identity is KeyedBy.INTERVAL else None)
        else:
            self._phases(map_shards)

    def _phases(self, map_shards: bool) -> None:
        begin = BeginOperator(**self._of("begin"))
        stage = StageOperator(**self._spark, **self._of("stage"))
        audits = [AuditOperator(spark_conn_id=self.spark_conn_id, **self._of("audit"))] if self.pipeline.audits else []
        with TaskGroup("prepare", tooltip=_DOCS["prepare"]) as preparing:
            prepared = [PrepareOperator(**self._of("prepare", sink.name)) for sink in self.pipeline.sinks]
        commit = CommitOperator(**self._of("commit"))
        with TaskGroup("publish", tooltip=_DOCS["publish"]) as publishing:
            published = {sink.name: PublishOperator(**self._of("publish", sink.name)) for sink in self.pipeline.sinks}
        shards = self._map_shards(commit, published) if map_shards else []
        cleanup = CleanupOperator(**self._of("cleanup"))
        abort = AbortOperator(**self._of("abort"))

        begin >> Label("a frozen range") >> stage
        for audit in audits:
            stage >> Label("a sealed WAL") >> audit >> Label("nothing offends") >> preparing
        if not audits:
            stage >> Label("a sealed WAL") >> preparing
        preparing >> Label("votes") >> commit >> Label("decided") >> publishing >> Label("shown") >> cleanup
        commit >> Label("a failure before the commit") >> abort
        [begin, stage, *audits, *prepared] >> abort  # for the same reason; said once, or the graph is full of it
        require_hold(self.pipeline, [begin, stage, *audits, max(prepared, key=longest_wait), commit])
        later = [stage, *audits, *prepared, commit, *published.values(), *shards, cleanup]
        _require_order_of_runs(self.pipeline, begin, later)

    def _pack(self, most: int, schedule: Any) -> None:
        require_most(self.pipeline, most)
        task = PackOperator(
            most=most,
            schedule=schedule,
            **self._spark,
            **self._of("pack"),
        )
        require_hold(self.pipeline, [task])

    def _map_shards(self, commit: CommitOperator, published: Mapping[str, PublishOperator]) -> list[Any]:
        """Before a sink's `publish`, which so may find that all is done, and does whatever isn't."""
        made = []
        with TaskGroup("publish_shards", tooltip=_DOCS["publish_shards"]) as sending:
            for sink in self.pipeline.sinks:
                if sink.shards > 1:
                    mapped = PublishShardOperator.partial(
                        map_index_template="shard {{ task.shard }}", **self._of("publish_shards", sink.name)
                    ).expand(shard=list(range(sink.shards)))
                    mapped >> published[sink.name]
                    made.append(mapped)
        commit >> Label("decided") >> sending
        return made

    def _require_shards(self, pack: int | None) -> None:
        if pack is not None:
            raise InvalidPipeline(
                f"pipeline {self.pipeline.name}: pack={pack} moves epochs in one task, map_shards=True maps tasks of "
                "one epoch: leave one of them away"
            )
        if not any(sink.shards > 1 for sink in self.pipeline.sinks):
            raise InvalidPipeline(
                f"pipeline {self.pipeline.name}: map_shards=True, but no sink has more than one shard: give a "
                "KafkaSink shards=…, or leave map_shards away"
            )

    @property
    def _spark(self) -> dict[str, Any]:
        """Arguments of a task that has Spark stage."""
        by = {"spark_conn_id": self.spark_conn_id, "spark_submit": self.spark_submit}
        return {**by, "launcher": self.launcher}

    def _of(self, phase: str, sink: str | None = None) -> dict[str, Any]:
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
    """One mapped task, with an instance for each pipeline that moves an epoch of it. `alias`: of the asset events. The
    task before it keeps the names for the run, so that a cleared instance has its pipeline whatever the file lists."""
    require_task_args(pipelines, task_args)
    arguments = _arguments("pack", max_wait, task_args)
    rule = {"trigger_rule": arguments.pop("trigger_rule")} if "trigger_rule" in arguments else {}
    names = MappedNamesOperator(task_id=NAMES, names=[one.name for one in pipelines], **rule)
    task: Any = MappedPackOperator.partial(
        pipelines={one.name: one for one in pipelines},
        alias=alias,
        inlets=[asset for one in pipelines for asset in inlets_of(one)],
        outlets=[alias_of(alias), *(asset for one in pipelines for asset in _partitions_of(one))],
        most=1,
        schedule=None,
        spark_conn_id=spark_conn_id,
        spark_submit=Submission(spark_submit),
        part=True,
        map_index_template="{{ task.of }}",
        **arguments,
    ).expand(of=names.output)
    for one in pipelines:
        require_hold(one, [task])


def describe(pipeline: Pipeline) -> str:
    """For people, in Markdown."""
    rows = [f"| {sink.name} | {', '.join(sink.outputs)} | {sink.guarantee.value} |" for sink in pipeline.sinks]
    return (
        f"**{pipeline.name}** moves {', '.join(pipeline.sources)} in epochs, each by two-phase commit: retry, clear "
        "or kill any task, every input row shows up in every sink once.\n\n"
        + "\n".join(["| sink | outputs | guarantee |", "|---|---|---|", *rows])
        + f"\n\n[Its epochs]({page_root()}/pipelines/{pipeline.name})"
    )


def require_most(pipeline: Pipeline, most: int) -> None:
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_EPOCHS:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: pack is {most!r}; it has to be a number from 1 to {MAX_EPOCHS}"
        )


def require_task_args(pipelines: Iterable[Pipeline], task_args: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `InvalidPipeline` for a phase that there is not, and for arguments that are Lockstep's own."""
    sinks = {sink.name for one in pipelines for sink in one.sinks}
    for place, given in task_args.items():
        phase, _, sink = place.partition(".")
        if phase not in _DOCS or (sink and (phase not in _OF_SINKS or sink not in sinks)):
            raise InvalidPipeline(
                f"task_args names {place!r}, which is neither a phase ({', '.join(_DOCS)}) nor one of a sink, such as "
                f"'prepare.{min(sinks)}'"
            )
        if own := sorted(_OWN & given.keys()):
            raise InvalidPipeline(f"task_args[{place!r}] gives {', '.join(own)}, which Lockstep gives its tasks itself")
        if phase in _BY_RULE and "trigger_rule" in given:
            raise InvalidPipeline(
                f"task_args[{place!r}] gives a trigger_rule: {phase} runs by Lockstep's, so that what a person marked "
                "is refused by what the ledger says. Only begin, or pack, may have another"
            )


def _arguments(
    phase: str, max_wait: timedelta, task_args: Mapping[str, Mapping[str, Any]], sink: str | None = None
) -> dict[str, Any]:
    """Lockstep's, and over them the user's."""
    found: dict[str, Any] = {"task_id": sink or phase, "doc_md": _DOCS[phase], "max_wait": max_wait}
    match phase:
        case "pack":
            pass
        case "begin":
            found |= {"weight_rule": WeightRule.UPSTREAM}
        case "abort":
            found |= {"weight_rule": WeightRule.UPSTREAM, "trigger_rule": TriggerRule.ONE_FAILED}
            found |= {
                "task_display_name": "abort, after a failure"
            }  # in a good run the UI paints it pink: it's skipped
            found |= {"depends_on_past": False, "wait_for_downstream": False}  # to give up needs nobody's leave
        case _:
            found |= {"weight_rule": WeightRule.UPSTREAM, "trigger_rule": TriggerRule.NONE_FAILED}
    return {**found, **task_args.get(phase, {}), **(task_args.get(f"{phase}.{sink}", {}) if sink else {})}


def _partitions_of(pipeline: Pipeline) -> list[Asset]:
    return [partitions_of(pipeline.name, sink.name) for sink in pipeline.sinks] if HAS_PARTITIONS else []


def _require_order_of_runs(pipeline: Pipeline, begin: BaseOperator, later: Iterable[Any]) -> None:
    """Raise `InvalidPipeline` where a task waits for the run before, and `begin` doesn't: epochs are numbered in the
    order in which runs begin, and with the numbers crossed each run would wait for the other."""
    crossed = [task.task_id for task in later if task.depends_on_past]
    if crossed and not begin.depends_on_past:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: {', '.join(crossed[:3])} wait for the run before (depends_on_past or "
            f"wait_for_downstream), and {begin.task_id} doesn't: a later run may begin the earlier epoch, and each "
            "would wait for the other. Give begin depends_on_past=True, too, or none of them"
        )

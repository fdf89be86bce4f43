"""One operator for each role: it opens the runtime, calls its role and closes. The returned value is for people to
read."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context
from airflow.sdk.definitions.mappedoperator import MappedOperator

from lockstep.airflow._actors import actor_of, pending_tasks
from lockstep.airflow._airflow import AirflowSkipException
from lockstep.airflow._base_operator import LockstepOperator, WaitingOperator, keep_lease
from lockstep.airflow._launching import Launcher, PackLauncher, asking, launcher
from lockstep.airflow._run_conf import (
    PIPELINE,
    cut,
    interval_of,
    read_conf,
    read_recovery_grace,
    read_replan,
    read_resolve_request,
    refuse_replan,
    refuse_restore,
    with_restate_request,
)
from lockstep.airflow._telemetry import (
    collect_lineage,
    count_rows,
    lineage_enabled,
    metrics_enabled,
    send_gauges,
    timed,
    with_parent_run,
)
from lockstep.airflow.assets import AssetEventEmitter, alias_of, inlets_of, outlets_of, rows_of
from lockstep.airflow.connections import LEDGER, AirflowConnections, login, staging_uri
from lockstep.airflow.page import EpochLink
from lockstep.epoch import Epoch, Interval, KeyedBy, RunKey
from lockstep.errors import (
    EpochBusy,
    EpochsStuck,
    IntervalMissing,
    InvalidPipeline,
    JobAtWork,
    KeysHeld,
    LockstepError,
    OutOfOrder,
    PackUnfinished,
    PublishBusy,
    RecoveryIncomplete,
    Retryable,
    SourceNotReady,
    TargetFull,
    TooManyInFlight,
    UnknownEpoch,
)
from lockstep.features.assembly import runtime_for
from lockstep.launchers import JobLauncher
from lockstep.ledger import Ledger, migrate
from lockstep.ledger.report import Report
from lockstep.observability import suggestions
from lockstep.operations.compact import compact, compactable_sinks
from lockstep.operations.replan import replan_for
from lockstep.operations.resolve import NothingAsked, resolve_as_asked
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.protocol.audit import audit
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.pack import Member, move_pack, require_all_moved
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish, publish_shard
from lockstep.protocol.recover import recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import Leaving, stage
from lockstep.states import ParticipantState, Role
from lockstep.wal.staging import Staging

_READING = ("begin", "stage", "publish")  #: phases whose lineage has inputs


@contextmanager
def open_runtime(name: str, definition: Pipeline | None, context: Context) -> Iterator[Runtime]:
    """The runtime of one try of a task: ledger and sinks from Airflow's Connections, the try as the ledger's actor."""
    with closing(Ledger(login(LEDGER), actor_of(context["ti"]))) as ledger:
        connections = AirflowConnections()
        yield runtime_for(name, ledger, Staging(staging_uri()), connections, definition)


class EpochOperator(WaitingOperator):
    """A task of one run's epoch. Only the ledger knows which epoch and attempt that is."""

    operator_extra_links = (EpochLink(),)
    #: errors that pass when other tasks have done their part: waited for, not failures
    awaited: tuple[type[Retryable], ...] = (OutOfOrder, KeysHeld, PublishBusy)
    phase = ""  #: in metrics
    sink: str | None = None

    def __init__(self, *, pipeline: Pipeline, part: bool = False, **arguments: Any) -> None:
        """`part`: the DAG may move several pipelines, so this one's run has a row of its own in the ledger."""
        super().__init__(**arguments)
        self.pipeline = pipeline
        self.part = part

    def perform(self, context: Context) -> dict[str, Any]:
        if self._begin_was_skipped(context):
            raise AirflowSkipException("begin was skipped, because a task before it was")
        interval = None
        with suppress(IntervalMissing, InvalidPipeline):  # `begin` reports what is wrong
            interval = self._interval(context)
        run = self._run(context, interval)
        with open_runtime(self.pipeline.name, self.pipeline, context) as runtime:
            try:
                with timed(self.pipeline.name, self.phase, self.sink, (*self.awaited, UnknownEpoch)):
                    return self.act(runtime, run, context)
            except self.awaited as missing:
                wait = self.wait_for([missing], missing, context)
                keep_lease(runtime, run, wait.pause)
            finally:
                self._collect_lineage(runtime, run)
        raise self.deferral(wait)

    def _collect_lineage(self, runtime: Runtime, run: RunKey) -> None:
        if not lineage_enabled():
            return
        try:
            attempt = runtime.find_attempt(run)
            epochs = [runtime.epoch_of(attempt)] if attempt is not None else []
        except LockstepError:  # the task fails with it or has failed
            return
        sinks = [self.sink] if self.sink is not None and self.phase == "publish" else []
        self.lineage = collect_lineage(runtime, epochs, reads=self.phase in _READING, sinks=sinks)

    def _run(self, context: Context, interval: Interval | None = None) -> RunKey:
        run = RunKey(context["ti"].dag_id, context["ti"].run_id, interval)
        return run.part(self.pipeline.name) if self.part else run

    def _pipelines_of_dag(self) -> dict[str, Pipeline]:
        """All pipelines that the DAG moves, by name."""
        around: DAG | None = self.get_dag()
        return pipelines_in(around) if around is not None else {self.pipeline.name: self.pipeline}

    def _interval(self, context: Context) -> Interval | None:
        interval_pipelines = [
            pipeline for pipeline in self._pipelines_of_dag().values() if pipeline.identity is KeyedBy.INTERVAL
        ]
        return interval_of(self.pipeline, context, alone=not interval_pipelines)

    def _begin_was_skipped(self, context: Context) -> bool:
        """Return whether `begin` was skipped since the run was last cleared, as by a branch that wasn't taken: then
        the group moves nothing, even if an earlier try of the run began an epoch. If nothing comes before `begin`, a
        user skipped it, and the ledger decides."""
        around: DAG | None = self.get_dag()
        begins = [task for task in operators_in(around) if isinstance(task, BeginOperator)] if around else []
        begin = next((task for task in begins if task.pipeline.name == self.pipeline.name), None)
        if begin is None or begin.task_id == self.task_id or not begin.upstream_task_ids:
            return False
        ti = context["ti"]
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[begin.task_id], run_ids=[ti.run_id])
        return bool(states.get(ti.run_id, {}).get(begin.task_id) == "skipped")

    @abstractmethod
    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        """Call the role."""


class BeginOperator(EpochOperator):
    """Freeze the source ranges, open an attempt."""

    phase = "begin"
    awaited = (*EpochOperator.awaited, SourceNotReady, EpochBusy, TooManyInFlight, TargetFull)

    def perform(self, context: Context) -> dict[str, Any]:
        migrate(login(LEDGER))
        return super().perform(context)

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        run = with_restate_request(run, context, self.pipeline.name, self._pipelines_of_dag())
        interval = self._interval(context)
        why, number = read_replan(context, self._pipelines_of_dag())
        if why is not None:
            replan_for(runtime, replace(run, interval=interval), why, number)
        return _summarize(begin(runtime, run, interval))


class StageOperator(EpochOperator):
    """Have Spark write the WAL, then seal it. The Connection says at run time where Spark is."""

    phase = "stage"
    awaited = (*EpochOperator.awaited, JobAtWork)

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        spark_conn_id: str,
        spark_submit: Mapping[str, Any],
        launcher: JobLauncher | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **{"inlets": inlets_of(pipeline), **arguments})
        self.own_launcher = launcher
        self.spark_conn_id = spark_conn_id
        self.spark_submit = dict(spark_submit)
        self._launcher: Launcher | None = None

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        submit = with_parent_run(self.spark_submit, context)
        self._launcher = launcher(self.pipeline, self.spark_conn_id, submit, self.own_launcher)
        jobs = self._launcher.jobs
        leaving = Leaving(jobs, new=self.deferrable) if jobs is not None else None
        return _summarize(stage(runtime, run, self._launcher, self._launcher.reference, leaving=leaving))

    def on_kill(self) -> None:
        """Cancel the Spark job, as its output will never be sealed. In a thread, because this is a signal handler
        and the interrupted code may hold the client's locks."""
        if self._launcher is not None:
            threading.Thread(target=self._launcher.cancel, daemon=True, name="cancel").start()


class AuditOperator(EpochOperator):
    """Run the audits in the plan on the sealed WAL, before any sink takes part; for large outputs on Spark Connect,
    if the Connection is to it."""

    phase = "audit"

    def __init__(self, *, spark_conn_id: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.spark_conn_id = spark_conn_id

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        verdict = audit(runtime, run, asking(self.spark_conn_id))
        if verdict is None:
            return {"outcome": "planned without audits"}
        offending = {result.name: result.offending for result in verdict.results}
        return {"outcome": verdict.outcome.value, "offending": offending}


class PrepareOperator(EpochOperator):
    """Bring one sink's vote into the ledger."""

    phase = "prepare"
    sink: str

    def __init__(self, *, sink: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.sink = sink

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        vote = prepare(runtime, run, self.sink)
        return {"sink": self.sink, "rows": dict(vote.rows) if vote else "decided before"}


class CommitOperator(EpochOperator):
    """Commit the epoch if every sink of the plan has voted."""

    phase = "commit"

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        return _summarize(commit(runtime, run))


class PublishOperator(EpochOperator):
    """Publish the committed epoch in one sink, and emit its asset event if it is missing."""

    phase = "publish"
    sink: str

    def __init__(self, *, pipeline: Pipeline, sink: str, **arguments: Any) -> None:
        super().__init__(pipeline=pipeline, **{"outlets": outlets_of(pipeline.name, [sink]), **arguments})
        self.sink = sink

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        counted = not metrics_enabled()
        if not counted and (attempt := runtime.find_attempt(run)) is not None:
            part = runtime.ledger.participants(attempt.pipeline, attempt.epoch).get(self.sink)
            counted = part is not None and part.state is ParticipantState.PUBLISHED  # by an earlier try
        epoch = publish(runtime, run, self.sink)
        outputs = next(sink.outputs for sink in self.pipeline.sinks if sink.name == self.sink)
        summary = {**_summarize(epoch), "sink": self.sink, "rows": rows_of(epoch, outputs)}
        if not counted:
            count_rows(epoch.pipeline, self.sink, summary["rows"])
        AssetEventEmitter(runtime.ledger, Role.PUBLISH).emit_epoch(self, context, epoch, self.sink)
        return summary


class PublishShardOperator(EpochOperator):
    """Publish one shard of the committed epoch in one sink; `publish` finds it done."""

    phase = "publish_shard"
    sink: str

    def __init__(self, *, sink: str, shard: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.sink = sink
        self.shard = shard

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        return {**_summarize(publish_shard(runtime, run, self.sink, self.shard)), "sink": self.sink}


class CleanupOperator(EpochOperator):
    """Delete the WAL once every sink has published."""

    phase = "cleanup"

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        return _summarize(cleanup(runtime, run))


class AbortOperator(EpochOperator):
    """Void this run's undecided attempt and roll back what it left. The run stays failed, as `cleanup` never ran."""

    phase = "abort"

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        epoch = abort(runtime, run, f"a task of run {run.run_id} failed before the commit")
        return _summarize(epoch) if epoch else {"epoch": None}


class PackOperator(EpochOperator):
    """Move up to `max_epochs` epochs from begin to cleanup: of an interval pipeline those in the run's interval, of a
    cursor as many as there is input for. A retry finds each of them again. `schedule`: splits an interval pipeline's
    run; None: it is one epoch."""

    phase = "pack"
    awaited = BeginOperator.awaited

    def __init__(
        self,
        *,
        max_epochs: int,
        pipeline: Pipeline,
        schedule: str | timedelta | None,
        spark_conn_id: str,
        spark_submit: Mapping[str, Any],
        launcher: JobLauncher | None = None,
        **arguments: Any,
    ) -> None:
        assets = {"inlets": inlets_of(pipeline), "outlets": outlets_of(pipeline.name, _names_of_sinks(pipeline))}
        super().__init__(pipeline=pipeline, **{**assets, **arguments})
        self.own_launcher = launcher
        self.max_epochs = max_epochs
        self.schedule = schedule
        self.spark_conn_id = spark_conn_id
        self.spark_submit = dict(spark_submit)
        self._launcher: PackLauncher | None = None

    def perform(self, context: Context) -> dict[str, Any]:
        migrate(login(LEDGER))
        runs = self._runs(context)
        submit = with_parent_run(self.spark_submit, context)
        self._launcher = PackLauncher(self.pipeline, self.spark_conn_id, submit, self.own_launcher)
        with open_runtime(self.pipeline.name, self.pipeline, context) as runtime:
            jobs = self._launcher
            with timed(self.pipeline.name, self.phase, None, ()):
                members = move_pack(
                    runtime, runs, jobs, jobs.reference, jobs.jobs, ask_spark=asking(self.spark_conn_id)
                )
            self._observe(runtime, members)
            try:
                require_all_moved(members)
            except PackUnfinished as unfinished:
                errors = [member.error for member in members if member.error is not None]
                awaited = [error for error in errors if isinstance(error, self.awaited)]
                if len(awaited) < len(errors):
                    raise
                raise self.deferral(self.wait_for(awaited, unfinished, context)) from None
            epochs = [member.epoch for member in members if member.epoch]
            self._emitter(runtime).emit_pack(self, context, epochs, _names_of_sinks(self.pipeline))
        return {"pipeline": self.pipeline.name, "epochs": [_summarize(epoch) for epoch in epochs]}

    def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
        raise NotImplementedError("a pack has many runs")

    def _runs(self, context: Context) -> list[RunKey]:
        run = with_restate_request(self._run(context), context, self.pipeline.name, self._pipelines_of_dag())
        refuse_restore(run)
        refuse_replan(context, self._pipelines_of_dag())
        span = self._interval(context)
        if span is None:
            count = self.max_epochs if run.epoch is None else 1
            return [run.member(None, number) for number in range(1, count + 1)]
        if self.schedule is None:
            return [run.member(span, 0)]
        return [run.member(interval, 0) for interval in cut(self.pipeline, span, self.schedule, self.max_epochs)]

    def _observe(self, runtime: Runtime, members: Sequence[Member]) -> None:
        """Count the newly published rows, and collect the lineage of all published epochs."""
        moved = [
            (member.epoch, member.already) for member in members if member.epoch is not None and member.error is None
        ]
        sinks = _names_of_sinks(self.pipeline)
        self.lineage = collect_lineage(runtime, [epoch for epoch, _ in moved], reads=True, sinks=sinks)
        for epoch in [epoch for epoch, already in moved if not already]:
            for sink in self.pipeline.sinks:
                count_rows(epoch.pipeline, sink.name, rows_of(epoch, sink.outputs))

    def _emitter(self, runtime: Runtime) -> AssetEventEmitter:
        return AssetEventEmitter(runtime.ledger, Role.PUBLISH)

    def on_kill(self) -> None:
        """Cancel all running jobs, as in `StageOperator`."""
        if self._launcher is not None:
            threading.Thread(target=self._launcher.cancel, daemon=True, name="cancel").start()


class MappedPackOperator(PackOperator):
    """The pack of one of many pipelines: the one called `pipeline_name`.

    Every instance has the same outlets: an alias, through which it emits its pipeline's events, and the partitioned
    assets of all pipelines, as an alias can't have partitions.
    """

    def __init__(self, *, pipelines: Mapping[str, Pipeline], pipeline_name: str, alias: str, **arguments: Any) -> None:
        if pipeline_name not in pipelines:
            raise InvalidPipeline(
                f"pipeline {pipeline_name} of this run is missing from its mapped group: add it again"
            )
        super().__init__(pipeline=pipelines[pipeline_name], **arguments)
        self.pipeline_name = pipeline_name
        self.alias = alias

    def _emitter(self, runtime: Runtime) -> AssetEventEmitter:
        return AssetEventEmitter(runtime.ledger, Role.PUBLISH, alias_of(self.alias))


class MappedNamesOperator(LockstepOperator):
    """Return the names of the pipelines that the run's mapped packs move."""

    def __init__(self, *, names: Sequence[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.names = list(names)

    def perform(self, context: Context) -> list[str]:
        return self.names


class GroupEnd(BaseOperator):
    """Does nothing and never starts: the scheduler lets it follow `cleanup`, so that the run fails if that failed."""

    inherits_from_empty_operator = True

    def execute(self, context: Context) -> None:
        pass


def operators_in(dag: DAG) -> list[EpochOperator]:
    """The unmapped Lockstep tasks of a DAG."""
    return [task for task in dag.tasks if isinstance(task, EpochOperator)]


def pipelines_in(dag: DAG) -> dict[str, Pipeline]:
    """All pipelines that the DAG moves, by name."""
    pipelines = {task.pipeline.name: task.pipeline for task in operators_in(dag)}
    for task in dag.tasks:
        if isinstance(task, MappedOperator) and issubclass(task.operator_class, MappedPackOperator):
            pipelines |= task.partial_kwargs["pipelines"]
    return pipelines


class ListPipelinesOperator(LockstepOperator):
    """Return the names of the pipelines in the ledger, whether their DAGs still exist or not, or only the one that
    the run asks for. Raises `UnknownEpoch` if the ledger doesn't have that."""

    def perform(self, context: Context) -> list[str]:
        dsn = login(LEDGER)
        migrate(dsn)
        only = read_conf(context).get(PIPELINE)
        with closing(Report(dsn)) as report:
            names = report.recoverable()
        if only not in (None, "", *names):
            raise UnknownEpoch(
                f"the ledger has no pipeline {only!r:.60} to recover: `lockstep status` lists those it has"
            )
        return [name for name in names if only in (None, "", name)]


class RecoverOperator(LockstepOperator):
    """Recover one pipeline, given its name only. If the run asks for it, first apply a user's resolution of a
    committed epoch. A scheduled run skips a pipeline that another run is recovering. Raises `RecoveryIncomplete`
    with the remaining problems."""

    def __init__(self, *, pipeline: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.pipeline = pipeline

    def perform(self, context: Context) -> dict[str, Any]:
        recovery_grace = read_recovery_grace(context)
        resolution = read_resolve_request(self.pipeline, context)
        by_schedule = recovery_grace is None and read_conf(context).get(PIPELINE) in (None, "")
        with (
            open_runtime(self.pipeline, None, context) as runtime,
            runtime.ledger.recovering(self.pipeline) as exclusive,
        ):
            if by_schedule and not exclusive:
                raise AirflowSkipException(f"another run is recovering pipeline {self.pipeline}")
            if resolution is not None:
                try:
                    resolve_as_asked(runtime, *resolution)
                except NothingAsked as done:  # for example by an earlier try: only the recovery remains
                    self.log.warning("%s", done)
            with closing(Report(login(LEDGER))) as history:
                report = recover(runtime, recovery_grace, lambda epoch: pending_tasks(epoch, history, context))
        if report.problems:
            raise RecoveryIncomplete(f"pipeline {self.pipeline}: " + "; ".join(report.problems))
        return {"finished": report.finished, "voided": report.voided, "swept": report.swept}


class ListCompactableOperator(LockstepOperator):
    """Return pipeline and name of every sink whose table `lockstep compact` supports."""

    def perform(self, context: Context) -> list[dict[str, str]]:
        with closing(Report(login(LEDGER))) as report:
            pipelines = report.recoverable()
        sinks = []
        for pipeline in pipelines:
            with open_runtime(pipeline, None, context) as runtime:
                sinks += [{"pipeline": pipeline, "sink": sink} for sink in compactable_sinks(runtime)]
        return sinks


class CompactOperator(LockstepOperator):
    """Compact the table of one sink, given names only."""

    def __init__(
        self,
        *,
        pipeline: str,
        sink: str,
        target_bytes: int,
        min_files: int,
        expire: timedelta | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.pipeline = pipeline
        self.sink = sink
        self.target_bytes = target_bytes
        self.min_files = min_files
        self.expire = expire

    def perform(self, context: Context) -> dict[str, Any]:
        with open_runtime(self.pipeline, None, context) as runtime:
            compaction = compact(
                runtime,
                self.sink,
                target_bytes=self.target_bytes,
                min_files=self.min_files,
                expire=self.expire,
                progress=self._log_progress,
            )
        return asdict(compaction)

    def _log_progress(self, done: int, of: int) -> None:
        self.log.info("%s of %s small files are rewritten", done, of)


class EmitAssetEventsOperator(LockstepOperator):
    """Emit the asset events that publishing tasks didn't get to emit. Returns one text if some sinks' couldn't be
    emitted; `FailOnUnemittedEvents` fails with it, because Airflow drops the events of a task that fails."""

    def perform(self, context: Context) -> list[str]:
        with closing(Ledger(login(LEDGER), actor_of(context["ti"]))) as ledger:
            failures = AssetEventEmitter(ledger, Role.RECOVER).emit_pending(self, context)
        return ["\n".join(failures)] if failures else []


class FailOnUnemittedEvents(LockstepOperator):
    """Fail with what `EmitAssetEventsOperator` couldn't emit. Mapped over its result: if that is empty there is no
    such task."""

    def __init__(self, *, unemitted: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.unemitted = unemitted

    def perform(self, context: Context) -> None:
        raise RecoveryIncomplete(self.unemitted)


class StuckEpochsCheck(LockstepOperator):
    """Fail while any pipeline has an epoch that needs a person, with one sentence for each pipeline. Intervals
    without an epoch are only logged: they may be left out on purpose."""

    def perform(self, context: Context) -> None:
        with closing(Report(login(LEDGER))) as report:
            pipelines = report.pipelines(limit=0)
            send_gauges(report)
        for pipeline in pipelines:
            if pipeline.holes:
                first, more = pipeline.holes[0], len(pipeline.holes) - 1
                rest = f" and {more:,} more" if more else ""
                self.log.warning(
                    "pipeline %s: no epoch for %s%s: %s", pipeline.name, first, rest, suggestions.fill(first)
                )
        troubles = [trouble for pipeline in pipelines if (trouble := pipeline.trouble)]
        if troubles:
            raise EpochsStuck("\n".join(troubles))


def _summarize(epoch: Epoch) -> dict[str, Any]:
    span = str(epoch.interval) if epoch.interval else None
    return {"pipeline": epoch.pipeline, "epoch": epoch.id, "interval": span, "state": epoch.state.value}


def _names_of_sinks(pipeline: Pipeline) -> list[str]:
    return [sink.name for sink in pipeline.sinks]

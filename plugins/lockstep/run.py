"""Runs the roles in this process, without Airflow: for notebooks, tests and a first try."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from lockstep.audits.audit import Function, Query
from lockstep.audits.evaluate import AskSpark, Found
from lockstep.distribution import naming_extra
from lockstep.epoch import Epoch, EpochReport, Interval, KeyedBy, RunKey
from lockstep.errors import IntervalMissing, IntervalOverlap, InvalidPipeline, LedgerRefused, LockstepError
from lockstep.features.assembly import runtime_for
from lockstep.features.early_load import EarlyLoads
from lockstep.features.generations import require_input, require_number, require_reason
from lockstep.ledger import Ledger, migrate
from lockstep.observability.suggestions import NOTEBOOK
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.protocol.audit import audit
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.pack import move_pack, require_all_moved, require_size
from lockstep.protocol.planned_sinks import find_redefined
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import RecoveryReport, finish_decided
from lockstep.protocol.recover import recover as recover_pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.sinks.base import SinkPool
from lockstep.states import DECIDED, SHOWN
from lockstep.wal.reading import SealedWal
from lockstep.wal.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger(__name__)


def raise_one_sentence(act: Callable[P, R]) -> Callable[P, R]:
    """Make `act` raise errors of Lockstep without their traceback, which is logged at DEBUG."""

    @wraps(act)
    def wrapped(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return act(*arguments, **keywords)
        except LockstepError as error:
            _log.debug("traceback", exc_info=True)
            failure = error
        raise failure.with_traceback(None) from None  # outside of the handler, so that nothing is chained to it

    return wrapped


@raise_one_sentence
def run_epoch(
    pipeline: Pipeline,
    *,
    interval: tuple[datetime, datetime] | None = None,
    ledger: str,
    staging: str,
    spark: SparkSession | str,
    connections: Mapping[str, str],
    run_id: str | None = None,
    restate: str | None = None,
    input: str | None = None,
    epoch: int | None = None,
) -> EpochReport:
    """Move one epoch from its source into every sink, and return a report of it.

    `interval`: a pair of aware datetimes, for an interval pipeline. `ledger`: a DSN; its schema is migrated first.
    `staging`: a URI. `spark`: a session, or the address of one ("sc://…", "local[*]"). `connections`: DSNs by id.
    `run_id`: pass the same one to continue a run that died. Calling again after any error doubles nothing.
    `restate`: the reason why a published interval is read again and its rows are replaced in every sink; of a cursor
    pipeline, epoch number `epoch`. `input`: what is read then, "fresh" (the interval's current data, the default) or
    "frozen" (exactly what was read, always for a cursor).

    An error before the decision aborts the attempt, and is raised without its traceback, which the logger `lockstep`
    has at DEBUG.
    """
    span = Interval(*interval) if interval is not None else None
    reason = require_reason(restate)
    reads, number = require_input(input, reason), require_number(epoch, reason)
    run = RunKey(NOTEBOOK, run_id or f"run_epoch__{uuid.uuid4()}", span, reason, input=reads, epoch=number)
    with _runtime(pipeline.name, pipeline, ledger, staging, connections, migrating=True) as runtime:
        if pipeline.identity is KeyedBy.CURSOR:
            finish_decided(runtime)  # the next epoch is published after the one before it
        opened = begin(runtime, run, span)
        already = opened.state in SHOWN
        if opened.state in DECIDED:
            stage(runtime, run, in_process(pipeline, spark, connections))  # where its WAL is damaged and still needed
        else:
            _decide(runtime, run, in_process(pipeline, spark, connections), asking(spark))
        for sink in opened.plan.sinks:
            publish(runtime, run, sink)
        return report_of(runtime, cleanup(runtime, run), already)


@raise_one_sentence
def run_epochs(
    pipeline: Pipeline,
    *,
    intervals: Iterable[tuple[datetime, datetime]] | None = None,
    most: int | None = None,
    ledger: str,
    staging: str,
    spark: SparkSession | str,
    connections: Mapping[str, str],
    run_id: str | None = None,
    restate: str | None = None,
    input: str | None = None,
    jobs: int | None = None,
) -> list[EpochReport]:
    """Move many epochs as `run_epoch` moves one, but faster: on one Spark session and one connection to each system,
    with `jobs` epochs (default: one a core) staged concurrently, and decided together.

    `intervals`: for an interval pipeline, in any order. `most`: for a cursor pipeline, the maximum number of epochs; it
    ends earlier when nothing is left to read. `restate`, `input`: as for `run_epoch`, for intervals. Epochs fail one by
    one: the others go on. Then `PackUnfinished` is raised, or `PackFailed` if a retry doesn't help, and names them;
    call again for them, with the same `run_id` or none. Returns the epochs' reports, in the order of `intervals`.
    """
    reason = require_reason(restate)
    reads = require_input(input, reason)
    run = RunKey(NOTEBOOK, run_id or f"run_epochs__{uuid.uuid4()}", restate=reason, input=reads)
    runs = _members(pipeline, run, intervals, most)
    with _runtime(pipeline.name, pipeline, ledger, staging, connections, migrating=True) as runtime:
        launch = in_process(pipeline, spark, connections)
        members = move_pack(runtime, runs, launch, jobs=jobs, ask_spark=asking(spark))
        require_all_moved(members)
        return [report_of(runtime, member.epoch, member.already) for member in members if member.epoch]


def _members(
    pipeline: Pipeline, run: RunKey, intervals: Iterable[tuple[datetime, datetime]] | None, most: int | None
) -> list[RunKey]:
    if pipeline.identity is KeyedBy.INTERVAL:
        if intervals is None or most is not None:
            raise IntervalMissing(f"pipeline {pipeline.name} has an epoch an interval: give run_epochs intervals=")
        spans = [Interval(*bounds) for bounds in intervals]
        if len(set(spans)) < len(spans):
            raise IntervalOverlap(f"pipeline {pipeline.name}: run_epochs was given an interval twice")
        return [run.member(span, number) for number, span in enumerate(require_size(spans), 1)]
    if intervals is not None or most is None:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}'s epochs are numbers, no source of it reads by interval: give run_epochs most=, "
            "how many epochs it may move, and no intervals="
        )
    return [run.member(None, number) for number in require_size(range(1, most + 1))]


@raise_one_sentence
def recover(
    pipeline: Pipeline | str,
    *,
    ledger: str,
    staging: str,
    connections: Mapping[str, str],
    recovery_grace: timedelta | None = None,
) -> RecoveryReport:
    """Finish the pipeline's decided epochs, void its dead attempts, sweep its rubbish. A name is enough."""
    definition = pipeline if isinstance(pipeline, Pipeline) else None
    name = definition.name if definition else str(pipeline)
    with _runtime(name, definition, ledger, staging, connections) as runtime:
        return recover_pipeline(runtime, recovery_grace)


def in_process(pipeline: Pipeline, spark: SparkSession | str, connections: Mapping[str, str] | None = None) -> Launch:
    """Return a `Launch` that runs the staging job from this process. `connections`: DSNs of the sources by id."""

    def launch(request_uri: str) -> None:
        with naming_extra("Spark"):
            from lockstep.compute.stage import launch_request

        launch_request(request_uri, spark, pipeline, {} if connections is None else connections)

    return launch


def asking(spark: SparkSession | str) -> AskSpark:
    """Return an `AskSpark` of this process, which connects on the first question."""

    def ask(
        wal: SealedWal, output: str, audits: Sequence[Query | Function], parameters: Mapping[str, object]
    ) -> Mapping[str, Found]:
        with naming_extra("Spark"):
            from lockstep.compute.auditing import ask_spark

        return ask_spark(spark, wal, output, audits, parameters)

    return ask


def report_of(runtime: Runtime, epoch: Epoch, already_published: bool) -> EpochReport:
    """Return the ledger's report of an epoch."""
    summary: dict[str, Any] = epoch.summary or {}
    participants = runtime.ledger.participants(epoch.pipeline, epoch.id)
    defined = runtime.definition
    return EpochReport(
        pipeline=epoch.pipeline,
        epoch=epoch.id,
        interval=epoch.interval,
        state=epoch.state,
        attempt=epoch.attempt,
        already_published=already_published,
        rows={name: output["rows"] for name, output in summary.get("outputs", {}).items()},
        sources=summary.get("sources", {}),
        publications={name: participant.publication or "" for name, participant in participants.items()},
        verdict=runtime.ledger.verdict(epoch.pipeline, epoch.id) if epoch.plan.audits else None,
        quarantined={name: participant["rows"] for name, participant in summary.get("quarantined", {}).items()},
        redefined=find_redefined(epoch, defined.sink_specs(), defined.reads_from()) if defined else (),
    )


def _decide(runtime: Runtime, run: RunKey, launch: Launch, ask_spark: AskSpark) -> None:
    try:
        with EarlyLoads() as early:
            loading = runtime.with_feature(early)
            epoch = stage(loading, run, launch)
            if epoch.plan.audits:
                audit(runtime, run, ask_spark)
            for sink in epoch.plan.sinks:
                prepare(loading, run, sink)
        commit(runtime, run)
    except Exception as error:
        try:
            abort(runtime, run, f"{type(error).__name__}: {error}")
        except LockstepError as late:
            _log.warning("nothing was decided, and what the attempt left remains for `recover`: %s", late)
        raise


@contextmanager
def _runtime(
    name: str,
    definition: Pipeline | None,
    ledger: str,
    staging: str,
    connections: Mapping[str, str],
    *,
    migrating: bool = False,
) -> Iterator[Runtime]:
    """Yield a runtime with one connection to each system, which serves every step."""
    with closing(Ledger(ledger)) as opened, closing(SinkPool()) as pool:
        if migrating:
            _require_migrated(opened, ledger)
        yield runtime_for(name, opened, Staging(staging), connections, definition, pool)


def _require_migrated(ledger: Ledger, dsn: str) -> None:
    """Migrate a ledger that is new or too old to work with; only connect to any other."""
    try:
        ledger.deployment()
    except LedgerRefused:
        migrate(dsn)

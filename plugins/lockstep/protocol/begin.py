"""begin: freeze the source ranges, open an attempt, void what older attempts left."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Claim, Epoch, Interval, KeyedBy, Plan, Position, RunKey, SourceRange
from lockstep.errors import (
    EpochBusy,
    EpochVoid,
    IntervalMissing,
    IntervalOverlap,
    InvalidPipeline,
    PlanMismatch,
    PreflightRefused,
    SourceRefused,
    Terminal,
    TooManyInFlight,
    WalCorrupt,
)
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_log_context, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.hooks import Planner, first_answer
from lockstep.protocol.identity import require_known_markers, require_same_pipeline
from lockstep.protocol.planned_sinks import describe_redefined, find_changed_sinks, find_redefined
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.sweep import require_known_leftovers, require_known_pending, roll_back
from lockstep.protocol.targets import find_last_shown, require_same_target, require_shown_still
from lockstep.sources.base import SourceContext, planned_source
from lockstep.states import DECIDED, UNDECIDED, EpochState

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
_PLANNING_TRIES = 5


def begin(runtime: Runtime, run: RunKey, interval: Interval | None = None) -> Epoch:
    """Return the run's epoch: that of an earlier try, the one of its interval, an abandoned one, or a new one.

    A decided epoch is returned as it is: the later roles finish or verify it. A run that is to `restate` the range, or
    to `restore` what an earlier generation showed, gets the epoch that replaces it. Raises `EpochBusy`,
    `SourceNotReady`, `TooManyInFlight`, `TargetFull` to be tried again; `RunMismatch`, `NameTaken`, `IntervalMissing`,
    `IntervalOverlap`, `SourceClaimed`, `PlanMismatch`, `EpochVoid`, `RestateRefused`, `WalGone`, `WalCorrupt`,
    `PreflightRefused`, `TargetChanged`, `LedgerConflict` for a person.
    """
    epoch = begin_unless_idle(runtime, run, interval, idle=False)
    assert epoch is not None
    return epoch


@log_context
def begin_unless_idle(
    runtime: Runtime, run: RunKey, interval: Interval | None = None, *, idle: bool = True
) -> Epoch | None:
    """Like `begin`; return None if a new epoch of a cursor pipeline would read nothing and `idle` is True."""
    pipeline = runtime.defined
    bind_log_context(pipeline=pipeline.name)
    run = replace(run, interval=interval or run.interval)
    _require_range(runtime, run)
    require_same_pipeline(runtime)
    runtime.ledger.update_pipeline(
        pipeline.name, pipeline.identity, pipeline.recovery_grace, pipeline.sink_settings(), pipeline.wal_retention
    )
    try:
        epoch = _open(runtime, run, interval, idle=idle)
    except _NothingToRead:
        return None
    reach(CrashPoint.BEGIN_AFTER_OPEN)
    bind_log_context(pipeline=epoch.pipeline, epoch=epoch.id, token=epoch.attempt)
    if epoch.state in UNDECIDED:
        epoch = unless_superseded(partial(_roll_back_older, runtime, epoch), partial(_find_decided, runtime, epoch))
    _log.info("%s is %s, %s", epoch, epoch.state, runtime.ledger.attempt_name(epoch))
    for feature in runtime.features:
        feature.begun(runtime, epoch)
    if names := find_redefined(epoch, pipeline.sink_specs(), pipeline.reads_from()):
        _log.warning("%s", describe_redefined(epoch, names))
    return epoch


def _require_range(runtime: Runtime, run: RunKey) -> None:
    """Refuse an interval for a cursor pipeline, and a new epoch without one for an interval pipeline."""
    pipeline, attempt = runtime.defined, runtime.find_attempt(run)
    for feature in runtime.features:
        feature.requested(runtime, run)
    if pipeline.identity is KeyedBy.CURSOR and run.interval is not None:
        raise InvalidPipeline(
            f"pipeline {pipeline.name} was given the interval {run.interval}, and its epochs are numbers: no source of "
            "it reads by interval (a FileSource does if its path has a placeholder such as {interval_start:%Y-%m-%d}, "
            "a KafkaSource with by_interval=True). Give the source one, or leave the interval away"
        )
    if pipeline.identity is KeyedBy.INTERVAL and run.interval is None and attempt is None:
        raise IntervalMissing(
            f"pipeline {pipeline.name} needs a data interval: give run_epoch interval=(start, end), or trigger "
            "the DAG with one"
        )


def _roll_back_older(runtime: Runtime, epoch: Epoch) -> Epoch:
    """Roll back what older attempts left. Discard the sealed WAL if it isn't as it was sealed: it is staged again."""
    roll_back(runtime, epoch)
    reach(CrashPoint.BEGIN_AFTER_ROLLBACK)
    if epoch.state is not EpochState.STAGED:
        return epoch
    try:
        wal = open_wal(runtime.staging, epoch)
        wal.check()
        for feature in runtime.features:
            feature.checking_wal(runtime, epoch, wal.manifest)
    except WalCorrupt as error:
        _log.warning("%s is staged again: %s", epoch, error)
        own = Attempt(epoch.pipeline, epoch.id, epoch.attempt)  # not the run's: a retry may have opened a younger one
        return runtime.ledger.discard_seal(own, str(error))
    return epoch


def _find_decided(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    """Return the epoch if tasks of this attempt, which didn't wait for `begin`, have decided it. Raises `Fenced`."""
    attempt = Attempt(epoch.pipeline, epoch.id, epoch.attempt)
    runtime.ledger.require_current(attempt)
    current = runtime.epoch_of(attempt)
    return current if current.state in DECIDED else None


class _NothingToRead(Exception):
    """Every range of the plan is empty, and the caller wants no epoch then."""


def _open(runtime: Runtime, run: RunKey, interval: Interval | None, *, idle: bool) -> Epoch:
    for _ in range(_PLANNING_TRIES):
        epoch = _find(runtime, run, interval)
        plan: Planner = partial(_plan_next, runtime, run, interval, idle=idle)
        for feature in runtime.features:
            epoch, plan = feature.opening(runtime, run, epoch, plan)
        if epoch is not None:
            return _resume(runtime, run, epoch)
        last = last_number(runtime)
        try:
            planned = plan()
        except Terminal:
            if last_number(runtime) == last:
                raise
            continue  # another run has planned meanwhile, maybe this very interval, or the files that are missing now
        if planned is not None:
            return planned
    raise EpochBusy(f"pipeline {runtime.pipeline}: other runs keep planning the next epoch first; try again")


def _find(runtime: Runtime, run: RunKey, interval: Interval | None) -> Epoch | None:
    """Return the epoch that the run would take over: its own, the one of its interval, or an abandoned one."""
    attempt = runtime.find_attempt(run)
    own = runtime.epoch_of(attempt) if attempt else None
    if (selected := first_answer(feature.selecting(runtime, run, own) for feature in runtime.features)) is not None:
        return selected
    if own is not None:
        return own
    if interval is None or runtime.defined.identity is KeyedBy.CURSOR:
        return runtime.ledger.abandoned_epoch(runtime.pipeline)
    epoch = runtime.ledger.epoch_of_interval(runtime.pipeline, interval)
    if epoch is not None and epoch.interval != interval:
        raise IntervalOverlap(f"interval {interval} overlaps {epoch} without being equal to it")
    return epoch


def last_number(runtime: Runtime) -> int:
    """Return the number of the pipeline's last epoch; 0 without one."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return last.id if last else 0


def _resume(runtime: Runtime, run: RunKey, epoch: Epoch) -> Epoch:
    """Open a new attempt of an undecided epoch; return a decided one as it is."""
    for feature in runtime.features:
        if (replanned := feature.resuming(runtime, run, epoch)) is not None:
            return replanned
    if epoch.state is EpochState.VOID:
        raise EpochVoid(f"{epoch} was given up: {epoch.reason}")
    if epoch.state in UNDECIDED:
        if changed := find_changed_sinks(runtime, epoch):
            raise PlanMismatch(
                f"{epoch} was planned with other sinks (changed: {', '.join(changed)}); take the new ones with "
                f"{suggestions.replan(epoch.pipeline, epoch.id)}, or put the old ones back"
            )
        preflight(runtime, epoch.plan, epoch.id, runtime.ledger.replaced(epoch))
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.take_over(runtime.pipeline, epoch.id, run)


def _plan_next(runtime: Runtime, run: RunKey, interval: Interval | None, *, idle: bool) -> Epoch | None:
    pipeline = runtime.defined
    last = None
    if pipeline.identity is KeyedBy.CURSOR:
        interval = None
        last = runtime.ledger.last_original(pipeline.name)
        in_flight = runtime.ledger.count_in_flight(runtime.pipeline)
        if in_flight >= pipeline.max_in_flight:
            raise TooManyInFlight(
                f"pipeline {runtime.pipeline} has {in_flight} epochs in flight, max_in_flight is "
                f"{pipeline.max_in_flight}: wait for them, see `lockstep status {runtime.pipeline}` for what holds "
                "them, or raise max_in_flight"
            )
    plan = make_plan(runtime, interval, last)
    if idle and last is not None and all(is_empty(runtime, name, planned) for name, planned in plan.sources.items()):
        raise _NothingToRead
    preflight(runtime, plan, last_number(runtime) + 1)
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.plan_epoch(
        pipeline.name,
        plan,
        find_claims(runtime, plan),
        run,
        interval=interval,
        after=(last.id if last else 0) if pipeline.identity is KeyedBy.CURSOR else None,
        recovery_grace=pipeline.recovery_grace,
        settings=pipeline.sink_settings(),
        retention=pipeline.wal_retention,
    )


def is_empty(runtime: Runtime, source: str, planned: SourceRange) -> bool:
    """Return True if the range has nothing to read. A snapshot has nothing new, whatever rows it has."""
    if planned.snapshot or planned.start == planned.end:
        return True
    with runtime.open_source(source, planned) as opened:
        return opened.is_empty(planned.start, planned.end)


def make_plan(runtime: Runtime, interval: Interval | None, last: Epoch | None, replaced: Epoch | None = None) -> Plan:
    """Ask every source where the epoch's range ends. The range starts where it ended in `last`, the epoch before, or in
    the last one before that which has the source.

    `replaced`: the epoch whose range is planned anew; its claims, and those of other generations, don't count. Raises
    what sources raise, and `SourceChanged` where the interval before lacks some of its records.
    """
    pipeline, ranges = runtime.defined, {}
    exclude = [generation.id for generation in runtime.ledger.generations(replaced)] if replaced else []
    for name, source in pipeline.sources.items():
        context = SourceContext(
            pipeline.name,
            name,
            _claimed_by(runtime, name, exclude),
            runtime.connections,
            partial(runtime.ledger.find_claims, pipeline.name, name, exclude=exclude),
            partial(runtime.ledger.find_paths_by_head, pipeline.name, name, exclude=exclude),
        )
        start = _start(runtime, name, last)
        with source.opened(context) as opened:
            for feature in runtime.features:
                feature.planning(runtime, interval, name, opened)
            ranges[name] = SourceRange(start, opened.latest(start, interval), source.spec(), source.is_snapshot)
    return Plan(ranges, pipeline.sink_specs(), pipeline.reads_from(), pipeline.audit_specs())


def join_ranges(runtime: Runtime, name: str, ranges: Sequence[SourceRange]) -> SourceRange:
    """Return the ranges of consecutive epochs as one. Raises `SourceRefused`, and what the source raises."""
    defined, last = runtime.defined.sources[name], ranges[-1]
    frozen = [planned_source(name, planned.spec, defined).frozen_arguments() for planned in ranges]
    if any(arguments != frozen[-1] for arguments in frozen):
        raise SourceRefused(f"source {name} was defined otherwise in one of the epochs than in the last")
    if last.snapshot and any((planned.snapshot, planned.end) != (True, last.end) for planned in ranges):
        raise SourceRefused(f"source {name} was read whole by each of the epochs, and wasn't the same in all of them")
    with runtime.open_source(name, last) as source:
        end = last.end if len(ranges) == 1 or last.snapshot else source.join([planned.end for planned in ranges])
        source.check(ranges[0].start, end)
    return SourceRange(ranges[0].start, end, last.spec, last.snapshot)


def _start(runtime: Runtime, source: str, last: Epoch | None) -> Position | None:
    if runtime.defined.identity is KeyedBy.INTERVAL or runtime.defined.sources[source].is_snapshot:
        return None
    if last is not None and source in last.plan.sources and not last.plan.sources[source].snapshot:
        return last.plan.sources[source].end
    return runtime.ledger.source_end(runtime.pipeline, source, before=last.id if last else 1)


def find_claims(runtime: Runtime, plan: Plan) -> dict[str, list[Claim]]:
    """Return the files that a plan claims, by source."""
    claims = {}
    for name, planned in plan.sources.items():
        with runtime.open_source(name, planned) as source:
            if files := list(source.claims(planned.start, planned.end)):
                claims[name] = [Claim(file) if isinstance(file, str) else file for file in files]
    return claims


def _claimed_by(runtime: Runtime, source: str, exclude: Sequence[int]) -> Callable[[Iterable[str]], set[str]]:
    def claimed(paths: Iterable[str]) -> set[str]:
        owned = runtime.ledger.find_claimed_paths(runtime.pipeline, source, paths)
        return owned - runtime.ledger.find_own_paths(runtime.pipeline, source, owned, exclude) if exclude else owned

    return claimed


def preflight(
    runtime: Runtime,
    plan: Plan,
    epoch: int,
    replaced: Sequence[Epoch] = (),
    schemas: Mapping[str, pa.Schema] | None = None,
) -> None:
    """Check every sink of a plan before it is stored. Creates what is missing, where a sink may do that.

    `epoch`: the epoch's number; `replaced`: epochs whose rows it replaces; `schemas`: of each output, where they are
    known before anything is staged. Raises `PreflightRefused`, `TargetChanged`, `LedgerConflict`, `RestateRefused`.
    """
    reach(CrashPoint.BEGIN_BEFORE_PREFLIGHT)
    require_known_leftovers(runtime, epoch)
    sinks = [runtime.sink_from(spec) for spec in plan.sinks.values()]
    last_shown = find_last_shown(runtime.ledger, runtime.pipeline, sinks)
    rooms = defaultdict[tuple[str, int], list[str]](list)
    for described in sinks:
        with runtime.opened(described) as sink:
            last = last_shown.get(sink.name, [])
            require_same_target(runtime, sink, last)
            sink.preflight(None if schemas is None else {name: schemas[name] for name in sink.outputs})
            newest = require_known_markers(runtime.ledger, runtime.pipeline, sink)
            require_known_pending(runtime, sink)
            if sink.room is not None:
                rooms[sink.room].append(sink.name)
            for feature in runtime.features:
                feature.preflight(runtime, sink, replaced)
            require_shown_still(runtime, sink, last, newest)
            reach(CrashPoint.BEGIN_AFTER_PREFLIGHT)
    for (_, limit), names in rooms.items():
        if len(names) > limit:
            raise PreflightRefused(
                f"sinks {', '.join(names)} are prepared together on one server, where max_prepared_transactions = "
                f"{limit}: the last of them would wait for ever. Raise it to at least {len(names)} and restart the "
                "server, or say protocol='write_ahead' in one of them"
            )

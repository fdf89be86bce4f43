"""begin: freeze the source ranges, open an attempt, void what older attempts left."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Claim, Epoch, Input, Interval, KeyedBy, Plan, Position, RunKey, SourceRange
from lockstep.errors import (
    EpochBusy,
    EpochVoid,
    IllegalTransition,
    IntervalMissing,
    IntervalOverlap,
    InvalidPipeline,
    LockstepError,
    PlanMismatch,
    PreflightRefused,
    RestateRefused,
    RunMismatch,
    SourceClaimed,
    Terminal,
    TooManyInFlight,
    WalCorrupt,
)
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_log_context, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.generations import (
    dependent_epochs,
    find_current,
    find_foreign,
    is_generation_of,
    join_ranges,
    plan_again,
    require_asked_for,
    require_asked_once,
    require_range_said,
    require_replaceable,
    require_restatable,
    require_unsealed,
    select_generation,
)
from lockstep.protocol.identity import require_known_markers, require_same_pipeline
from lockstep.protocol.interval_before import find_before, require_whole
from lockstep.protocol.planned_sinks import describe_redefined, find_changed_sinks, find_redefined
from lockstep.protocol.restoring import check_restored, find_restored, plan_restored, require_same_wish
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.state_versions import check_own_state, hands_on_state
from lockstep.protocol.sweep import require_known_leftovers, require_known_pending, roll_back
from lockstep.protocol.targets import find_last_shown, require_same_target, require_shown_still
from lockstep.sources.base import SourceContext
from lockstep.states import DECIDED, UNDECIDED, EpochState

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
_PLANNING_TRIES = 5
_MERGED = "merged with what the next epoch would read (on_stuck='merge')"


def begin(runtime: Runtime, run: RunKey, interval: Interval | None = None) -> Epoch:
    """Give `run` its epoch: its own of an earlier try, its interval's existing one, an abandoned one, or a new one.

    A decided epoch is returned as it is: the later roles finish or verify it; unless `run` is to `restate` its range,
    or to `restore` what an earlier life of it showed: then it gets the epoch that takes its place. Raises `EpochBusy`,
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
    """The same, but None where a new epoch of a cursor pipeline would read nothing, as no source has anything new.
    `idle` False: that is an epoch, too."""
    pipeline = runtime.defined
    bind_log_context(pipeline=pipeline.name)
    run = replace(run, interval=interval or run.interval)
    _require_range(runtime, run)
    require_same_pipeline(runtime)
    runtime.ledger.require_identity(
        pipeline.name, pipeline.identity, pipeline.recovery_grace, pipeline.sink_settings(), pipeline.wal_retention
    )
    try:
        epoch = _open(runtime, run, interval, idle=idle)
    except _NothingToRead:
        return None
    reach(CrashPoint.BEGIN_AFTER_OPEN)
    bind_log_context(pipeline=epoch.pipeline, epoch=epoch.id, token=epoch.attempt)
    if epoch.state in UNDECIDED:
        epoch = unless_superseded(partial(_void_older, runtime, epoch), partial(_decided_meanwhile, runtime, epoch))
    _log.info("%s is %s, %s", epoch, epoch.state, runtime.ledger.attempt_name(epoch))
    for feature in runtime.features:
        feature.begun(runtime, epoch)
    if names := find_redefined(epoch, pipeline.sink_specs(), pipeline.reads_from()):
        _log.warning("%s", describe_redefined(epoch, names))
    return epoch


def _require_range(runtime: Runtime, run: RunKey) -> None:
    """An interval for whom epochs are intervals, unless the run has its epoch, and for nobody else."""
    pipeline, known = runtime.defined, runtime.find_attempt(run)
    require_range_said(pipeline, run)
    if pipeline.identity is KeyedBy.CURSOR and run.interval is not None:
        raise InvalidPipeline(
            f"pipeline {pipeline.name} was given the interval {run.interval}, and its epochs are numbers: no source of "
            "it reads by interval (a FileSource does if its path has a placeholder such as {interval_start:%Y-%m-%d}, "
            "a KafkaSource with by_interval=True). Give the source one, or leave the interval away"
        )
    if pipeline.identity is KeyedBy.INTERVAL and run.interval is None and known is None:
        raise IntervalMissing(
            f"pipeline {pipeline.name} needs a data interval: give run_epoch interval=(start, end), or trigger "
            "the DAG with one"
        )


def _void_older(runtime: Runtime, epoch: Epoch) -> Epoch:
    roll_back(runtime, epoch)
    reach(CrashPoint.BEGIN_AFTER_ROLLBACK)
    return _trust_or_discard_seal(runtime, epoch)


def _decided_meanwhile(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    """The epoch, if this attempt's tasks were begun without waiting, and have decided it. Raises `Fenced`."""
    attempt = Attempt(epoch.pipeline, epoch.id, epoch.attempt)
    runtime.ledger.require_current(attempt)
    found = runtime.epoch_of(attempt)
    return found if found.state in DECIDED else None


class _NothingToRead(Exception):
    """A plan whose ranges are all empty, where nobody wants one."""


def _open(runtime: Runtime, run: RunKey, interval: Interval | None, *, idle: bool) -> Epoch:
    for _ in range(_PLANNING_TRIES):
        found = _find(runtime, run, interval)
        life, replace_it = select_generation(runtime, run, found) if found else (None, False)
        if life is not None and not replace_it:
            require_same_wish(run, life)
            require_asked_for(runtime, run, life)
            require_unsealed(runtime, run, life)
            return _merge(runtime, run, life) or _take_over(runtime, run, life)
        if life is None and run.restore is not None:
            raise RestateRefused(f"can't show the rows of epoch {run.restore} again: nothing shows {run.interval} yet")
        last = _last_number(runtime)
        try:
            if life is not None:
                planned = _plan_replacement(runtime, run, life)
            else:
                planned = _plan_next(runtime, run, interval, idle=idle)
        except Terminal:
            if _last_number(runtime) == last:
                raise
            continue  # another run has planned meanwhile: perhaps this very interval, or files that seem to be cut now
        if planned is not None:
            return planned
    raise EpochBusy(f"pipeline {runtime.pipeline}: other runs keep planning the next epoch first; try again")


def _find(runtime: Runtime, run: RunKey, interval: Interval | None) -> Epoch | None:
    known = runtime.find_attempt(run)
    if known is not None:
        return _require_own(runtime, run, runtime.epoch_of(known))
    if run.epoch is not None:
        return find_current(runtime, runtime.ledger.epoch(runtime.pipeline, run.epoch))
    if interval is None or runtime.defined.identity is KeyedBy.CURSOR:
        return runtime.ledger.abandoned_epoch(runtime.pipeline)
    found = runtime.ledger.epoch_of_interval(runtime.pipeline, interval)
    if found is not None and found.interval != interval:
        raise IntervalOverlap(f"interval {interval} overlaps {found} without being equal to it")
    return found


def _require_own(runtime: Runtime, run: RunKey, found: Epoch) -> Epoch:
    """Raise `RunMismatch` if a run that is to restate one epoch has stood for another one's range."""
    if run.epoch is not None and not is_generation_of(runtime, found, run.epoch):
        raise RunMismatch(
            f"run {run.run_id} stands for {found}, and is to restate epoch {run.epoch}: give it another id"
        )
    return found


def _last_number(runtime: Runtime) -> int:
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return last.id if last else 0


def _take_over(runtime: Runtime, run: RunKey, epoch: Epoch) -> Epoch:
    if epoch.state is EpochState.VOID:
        raise EpochVoid(f"{epoch} was given up: {epoch.reason}")
    if epoch.state in UNDECIDED:
        _require_same_sinks(runtime, epoch)
        _preflight(runtime, epoch.plan, epoch.id, runtime.ledger.replaced(epoch))
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.take_over(runtime.pipeline, epoch.id, run)


def _merge(runtime: Runtime, run: RunKey, stuck: Epoch) -> Epoch | None:
    """The epoch that another run has left, and what the next one would read, as one, where `on_stuck` wants that; None:
    it stays as it is (Flink: what an aborted checkpoint had is in the next one).

    Of the range that is frozen nothing is left out, or read otherwise: what of it changed is told as ever.
    """
    if not _may_be_merged(runtime, run, stuck):
        return None
    try:
        following = make_plan(runtime, None, stuck)
        if all(_is_empty(runtime, name, found) for name, found in following.sources.items()):
            return None
        plan, claims = _join_next(runtime, stuck, following), find_claims(runtime, following)
    except LockstepError as error:
        _log.info("%s goes on with the range that it has: %s", stuck, error)
        return None
    _preflight(runtime, plan, stuck.id)
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    try:
        return runtime.ledger.merge_epoch(stuck, plan, claims, run, _MERGED)
    except (IllegalTransition, SourceClaimed) as error:  # somebody has begun it, or the next one, meanwhile
        _log.info("%s is not merged: %s", stuck, error)
        return None


def _may_be_merged(runtime: Runtime, run: RunKey, stuck: Epoch) -> bool:
    """Only the last epoch of a cursor, of which nothing is sealed, and by another run than its own, which finds what it
    had."""
    pipeline = runtime.defined
    if pipeline.on_stuck != "merge" or stuck.state is not EpochState.PLANNED or stuck.generation is not None:
        return False
    if run.epoch is not None or runtime.find_attempt(run) is not None:
        return False
    last = runtime.ledger.last_original(pipeline.name)
    alone = last is not None and last.id == stuck.id
    return alone and stuck.plan.sources.keys() == pipeline.sources.keys() and not find_changed_sinks(runtime, stuck)


def _join_next(runtime: Runtime, stuck: Epoch, following: Plan) -> Plan:
    """What is read whole is so as it is now, as by any next epoch."""
    had, comes = stuck.plan.sources, following.sources
    sources = {
        name: comes[name]
        if had[name].snapshot and comes[name].snapshot
        else join_ranges(runtime, name, [had[name], comes[name]])
        for name in had
    }
    return replace(stuck.plan, sources=sources)


def _plan_next(runtime: Runtime, run: RunKey, interval: Interval | None, *, idle: bool) -> Epoch | None:
    pipeline = runtime.defined
    last = None
    if pipeline.identity is KeyedBy.CURSOR:
        interval = None
        last = runtime.ledger.last_original(pipeline.name)
        _require_room(runtime)
    plan = make_plan(runtime, interval, last)
    if idle and last is not None and all(_is_empty(runtime, name, found) for name, found in plan.sources.items()):
        raise _NothingToRead
    _preflight(runtime, plan, _last_number(runtime) + 1)
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


def _plan_restored(runtime: Runtime, run: RunKey, current: Epoch, epoch: int) -> Epoch | None:
    wanted = find_restored(runtime, current, epoch)
    wal = check_restored(runtime, wanted)
    plan = plan_restored(runtime, wanted)
    schemas = {name: output.schema for name, output in wal.manifest.outputs.items()}
    _preflight(runtime, plan, _last_number(runtime) + 1, [current], schemas)
    plan = replace(plan, foreign=find_foreign(runtime, current))
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.plan_generation(current, plan, {}, run, run.restate or "", restores=wanted.id)


def _plan_replacement(runtime: Runtime, run: RunKey, current: Epoch) -> Epoch | None:
    if run.restore is not None:
        return _plan_restored(runtime, run, current, run.restore)
    replaced = dependent_epochs(runtime, current)
    require_asked_once(run, replaced)
    require_restatable(runtime, replaced)
    _preflight(runtime, current.plan, _last_number(runtime) + 1, replaced)
    if run.input is Input.FROZEN or current.interval is None:
        plan = plan_again(runtime, replaced, afresh=run.input is not Input.FROZEN)
    else:
        plan = make_plan(runtime, current.interval, None, replaced=current)
    plan = replace(plan, foreign=find_foreign(runtime, current))
    claims = find_claims(runtime, plan) if current.interval else {}  # of a cursor's files each is claimed for good
    through = replaced[-1].id if current.interval is None and hands_on_state(runtime) else None
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.plan_generation(current, plan, claims, run, run.restate or "", through=through)


def _is_empty(runtime: Runtime, source: str, found: SourceRange) -> bool:
    if found.snapshot or found.start == found.end:  # a snapshot has nothing new, whatever it has
        return True
    with runtime.open_source(source, found) as live:
        return live.is_empty(found.start, found.end)


def make_plan(runtime: Runtime, interval: Interval | None, last: Epoch | None, replaced: Epoch | None = None) -> Plan:
    """Ask every source where this epoch ends. It starts where it ended in `last`, the epoch before, or in the last one
    before that which names it. `replaced`: the epoch whose own claims, and those of other lives of its range, don't
    count, as its plan is made anew. Raises what they raise, and `SourceChanged` where the interval before lacks some
    of its records."""
    pipeline = runtime.defined
    ranges = {}
    before = find_before(runtime, interval) if interval else None
    exclude = [life.id for life in runtime.ledger.generations(replaced)] if replaced else []
    for name, source in pipeline.sources.items():
        claimed = _claimed_by(runtime, name, exclude)
        claims = partial(runtime.ledger.find_claims, pipeline.name, name, exclude=exclude)
        by_head = partial(runtime.ledger.find_paths_by_head, pipeline.name, name, exclude=exclude)
        context = SourceContext(pipeline.name, name, claimed, runtime.connections, claims, by_head)
        start = _start(runtime, name, last)
        with source.opened(context) as live:
            if before is not None:
                require_whole(runtime, before, name, live)
            ranges[name] = SourceRange(start, live.latest(start, interval), source.spec(), source.is_snapshot)
    return Plan(ranges, pipeline.sink_specs(), pipeline.reads_from(), pipeline.audit_specs())


def _start(runtime: Runtime, source: str, last: Epoch | None) -> Position | None:
    if runtime.defined.identity is KeyedBy.INTERVAL or runtime.defined.sources[source].is_snapshot:
        return None
    if last is not None and source in last.plan.sources and not last.plan.sources[source].snapshot:
        return last.plan.sources[source].end
    return runtime.ledger.source_end(runtime.pipeline, source, before=last.id if last else 1)


def find_claims(runtime: Runtime, plan: Plan) -> dict[str, list[Claim]]:
    """The files of a plan, per source."""
    claims = {name: _claims(runtime, name, found) for name, found in plan.sources.items()}
    return {name: files for name, files in claims.items() if files}


def _claims(runtime: Runtime, source: str, found: SourceRange) -> list[Claim]:
    with runtime.open_source(source, found) as live:
        named = live.claims(found.start, found.end)
    return [Claim(one) if isinstance(one, str) else one for one in named]


def _claimed_by(runtime: Runtime, source: str, exclude: Sequence[int]) -> Callable[[Iterable[str]], set[str]]:
    def claimed(paths: Iterable[str]) -> set[str]:
        found = runtime.ledger.find_claimed_paths(runtime.pipeline, source, paths)
        return found - runtime.ledger.find_own_paths(runtime.pipeline, source, found, exclude) if exclude else found

    return claimed


def _require_room(runtime: Runtime) -> None:
    in_flight, limit = runtime.ledger.count_in_flight(runtime.pipeline), runtime.defined.max_in_flight
    if in_flight >= limit:
        raise TooManyInFlight(
            f"pipeline {runtime.pipeline} has {in_flight} epochs in flight, max_in_flight is {limit}: wait for them, "
            f"see `lockstep status {runtime.pipeline}` for what holds them, or raise max_in_flight"
        )


def _require_same_sinks(runtime: Runtime, epoch: Epoch) -> None:
    if changed := find_changed_sinks(runtime, epoch):
        raise PlanMismatch(
            f"{epoch} was planned with other sinks (changed: {', '.join(changed)}); take the new ones with "
            f"{suggestions.replan(epoch.pipeline, epoch.id)}, or put the old ones back"
        )


def _preflight(
    runtime: Runtime,
    plan: Plan,
    epoch: int,
    replaced: Sequence[Epoch] = (),
    schemas: Mapping[str, pa.Schema] | None = None,
) -> None:
    """`epoch`: the number of what is begun; `schemas`: of each output, where they are known before anything is
    staged."""
    reach(CrashPoint.BEGIN_BEFORE_PREFLIGHT)
    require_known_leftovers(runtime, epoch)
    sinks = [runtime.sink_from(spec) for spec in plan.sinks.values()]
    shown = find_last_shown(runtime.ledger, runtime.pipeline, sinks)
    rooms = defaultdict[tuple[str, int], list[str]](list)
    for described in sinks:
        with runtime.opened(described) as sink:
            last = shown.get(sink.name, [])
            require_same_target(runtime, sink, last)
            sink.preflight(None if schemas is None else {name: schemas[name] for name in sink.outputs})
            newest = require_known_markers(runtime.ledger, runtime.pipeline, sink)
            require_known_pending(runtime, sink)
            if sink.room is not None:
                rooms[sink.room].append(sink.name)
            for one in replaced:
                require_replaceable(runtime, sink, one)
            require_shown_still(runtime, sink, last, newest)
            reach(CrashPoint.BEGIN_AFTER_PREFLIGHT)
    for (_, limit), names in rooms.items():
        if len(names) > limit:
            raise PreflightRefused(
                f"sinks {', '.join(names)} are prepared together on one server, where max_prepared_transactions = "
                f"{limit}: the last of them would wait for ever. Raise it to at least {len(names)} and restart the "
                "server, or say protocol='write_ahead' in one of them"
            )


def _trust_or_discard_seal(runtime: Runtime, epoch: Epoch) -> Epoch:
    if epoch.state is not EpochState.STAGED:
        return epoch
    try:
        wal = open_wal(runtime.staging, epoch)
        wal.check()
        check_own_state(runtime, epoch, wal.manifest)
    except WalCorrupt as error:
        _log.warning("%s is staged again: %s", epoch, error)
        own = Attempt(epoch.pipeline, epoch.id, epoch.attempt)  # not the run's: a retry may have opened a younger one
        return runtime.ledger.discard_seal(own, str(error))
    return epoch

"""recover: finish decided epochs, void dead attempts, sweep rubbish. Needs no definition of the pipeline."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from lockstep.epoch import Epoch, Json
from lockstep.errors import LedgerConflict, LockstepError, OutOfOrder, PublishBusy
from lockstep.observability.log_context import bind_log_context, log_context, tell_nothing
from lockstep.observability.redaction import describe_raised
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.cleanup import clean
from lockstep.protocol.compactions import sweep_compactions
from lockstep.protocol.identity import require_known_markers
from lockstep.protocol.publish import publish_decided
from lockstep.protocol.retained_wals import expire_wals
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import kept_epochs, sweep_folders, sweep_sink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.states import SHOWN, EpochState, Role

LONGEST = timedelta(days=1)  #: an attempt without a sign of life is left alone, whatever may still be to come
_log = logging.getLogger(__name__)


@dataclass
class RecoveryReport:
    """What one round of recovery did to a pipeline; `problems` wait for a person or for the next round."""

    pipeline: str
    finished: list[int] = field(default_factory=list)  #: epochs brought to cleaned
    voided: list[int] = field(default_factory=list)  #: epochs whose attempt was raised
    swept: int = 0  #: transactions and folders
    problems: list[str] = field(default_factory=list)
    #: what somebody else is publishing at this moment, and what waits for that: no problem
    busy: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._epochs: dict[str, list[int]] = {}  # of each problem, in the order of `problems`

    def note(self, problem: str, epoch: int | None) -> bool:
        """One line a problem, which names every epoch that has it. Whether it is a new one."""
        new = problem not in self._epochs
        epochs = self._epochs.setdefault(problem, [])
        if epoch is not None and epoch not in epochs:
            epochs.append(epoch)
        self.problems[:] = [_describe(*found) for found in self._epochs.items()]
        return new

    @property
    def complete(self) -> bool:
        """Whether the round did everything that there was to do."""
        return not self.problems and not self.busy


@log_context
def recover(
    runtime: Runtime,
    recovery_grace: timedelta | None = None,
    coming: Callable[[Epoch], str | None] = lambda epoch: None,
) -> RecoveryReport:
    """One round. An undecided attempt is voided after `recovery_grace` (default: the pipeline's own) without a
    heartbeat; while `coming` names unfinished tasks of it, after the longer of LONGEST and the pipeline's."""
    report = finish_decided(runtime)
    for epoch in _abandoned(runtime, recovery_grace, coming):
        _guard(report, partial(_void, runtime, epoch, report), epoch.id)
    _sweep(runtime, report)
    return report


def _abandoned(
    runtime: Runtime, recovery_grace: timedelta | None, coming: Callable[[Epoch], str | None]
) -> list[Epoch]:
    ledger, usual = runtime.ledger, runtime.ledger.recovery_grace(runtime.pipeline)
    silent = ledger.abandoned_epochs(runtime.pipeline, recovery_grace if recovery_grace is not None else usual)
    forsaken = {one.id for one in ledger.abandoned_epochs(runtime.pipeline, max(usual, LONGEST))} if silent else ()
    found = []
    for epoch in silent:
        ahead = _ask(coming, epoch) if epoch.id not in forsaken else None
        if ahead is None:
            found.append(epoch)
        else:
            _log.info("%s is left alone: nobody is at it, and still to come is %s", epoch, ahead)
    return found


def _ask(coming: Callable[[Epoch], str | None], epoch: Epoch) -> str | None:
    """Who can't say it ends no round: then something may be."""
    try:
        return coming(epoch)
    except Exception as error:
        _log.debug("%s: how it came to this", epoch, exc_info=error)
        _log.warning("%s: what is still to come can't be asked for: %s", epoch, type(error).__name__)
        return "something that can't be asked for"


@log_context
def finish_decided(runtime: Runtime) -> RecoveryReport:
    """The first half of a round: publish and clean up what is decided, in order."""
    report = RecoveryReport(runtime.pipeline)
    for epoch in runtime.ledger.unfinished_epochs(runtime.pipeline):
        if epoch.state in (EpochState.COMMITTED, EpochState.PUBLISHED):
            _guard(report, partial(_finish, runtime, epoch, report), epoch.id)
    return report


def forget(runtime: Runtime, reason: str) -> RecoveryReport:
    """Forget a pipeline that never decided anything, take away what it left, let its targets go.

    First the ledger, then the rest, as with every abort. Repeat it while the report has problems. Raises
    `IllegalTransition` if an epoch was ever decided, `LedgerConflict` if a sink shows one that was decided by a ledger
    that this one is older than, `UnknownEpoch`.
    """
    for spec in known_sinks(runtime):
        try:
            with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
                require_known_markers(runtime.ledger, runtime.pipeline, sink)
        except LedgerConflict:
            raise
        except LockstepError:
            continue  # it can't be asked: a problem of the report
    runtime.ledger.forget_pipeline(runtime.pipeline, reason)
    report = RecoveryReport(runtime.pipeline)
    _sweep(runtime, report)
    for spec in known_sinks(runtime):
        _guard(report, partial(_disclaim, runtime, spec))
    return report


def _disclaim(runtime: Runtime, spec: Json) -> None:
    with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
        sink.disclaim()


def _finish(runtime: Runtime, epoch: Epoch, report: RecoveryReport) -> None:
    done = True
    if epoch.state is EpochState.COMMITTED:
        for sink in epoch.plan.sinks:
            publish = partial(publish_decided, runtime, epoch, sink, Role.RECOVER)
            done = _guard(report, publish, epoch.id) and done
    if done and runtime.ledger.epoch(epoch.pipeline, epoch.id).state in SHOWN:
        clean(runtime, runtime.ledger.epoch(epoch.pipeline, epoch.id), Role.RECOVER)
        report.finished.append(epoch.id)


def _void(runtime: Runtime, epoch: Epoch, report: RecoveryReport) -> None:
    abort_epoch(runtime, epoch.id, Role.RECOVER, only=epoch.attempt, reason="abandoned")
    report.voided.append(epoch.id)


def _sweep(runtime: Runtime, report: RecoveryReport) -> None:
    known = known_sinks(runtime)
    for spec in known:
        _guard(report, partial(_sweep_sink, runtime, spec, known, report))
    _guard(report, partial(_sweep_folders, runtime, report))


def _sweep_sink(runtime: Runtime, spec: Json, known: list[Json], report: RecoveryReport) -> None:
    described = runtime.sink_to_sweep(spec)
    with runtime.opened(described) as sink:
        handled = sweep_sink(runtime, sink)
        report.swept += len(handled)
        report.swept += sweep_compactions(runtime, described, sink, known)
        if isinstance(sink, TwoPhaseCommitSink) and report.complete:
            sink.finish_recovering(handled)


def _sweep_folders(runtime: Runtime, report: RecoveryReport) -> None:
    report.swept += len(expire_wals(runtime, Role.RECOVER))
    report.swept += sweep_folders(runtime)
    for stranger in runtime.staging.unknown_files(
        runtime.ledger.deployment(), runtime.pipeline, exclude=kept_epochs(runtime)
    ):
        _log.warning("not Lockstep's, left alone: %s", stranger)


def known_sinks(runtime: Runtime) -> list[Json]:
    """The sinks of the last plan, of every unfinished one and of those that were replaced: one of each spec."""
    specs = runtime.ledger.planned_sinks(runtime.pipeline)
    last = runtime.ledger.last_epoch(runtime.pipeline)
    for epoch in [*([last] if last else []), *runtime.ledger.unfinished_epochs(runtime.pipeline)]:
        specs.extend(spec for spec in epoch.plan.sinks.values() if spec not in specs)
    return specs


def _guard(report: RecoveryReport, work: Callable[[], object], epoch: int | None = None) -> bool:
    """One broken sink must not keep the others from being recovered. Whether it was done."""
    tell_nothing()
    bind_log_context(pipeline=report.pipeline, epoch=epoch)
    try:
        work()
    except LockstepError as error:
        waits = isinstance(error, OutOfOrder)  # for one that has a problem of its own, or that somebody is publishing
        if isinstance(error, PublishBusy) or (waits and not report.problems):
            _log.info("%s", error)
            report.busy.append(str(error))
            return False
        problem = "an earlier epoch has to be published first" if waits else str(error)
        if report.note(f"{type(error).__name__}: {problem}", epoch):
            _log.error("%s: %s", type(error).__name__, error)
    except Exception as error:  # of a sink, or of what it stands on: no other epoch or pipeline waits for it
        frame = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{describe_raised(error)} at {frame.filename}:{frame.lineno}, which no name of Lockstep's is for"
        if report.note(problem, epoch):
            _log.error("%s", problem)
    else:
        return True
    return False


def _describe(problem: str, epochs: list[int]) -> str:
    if not epochs or f" epoch {epochs[0]}" in problem:
        return problem
    return f"{problem} (epoch{'s' if len(epochs) > 1 else ''} {', '.join(map(str, epochs))})"

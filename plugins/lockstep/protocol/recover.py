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
from lockstep.observability.log_context import bind_log_context, clear_log_context, log_context
from lockstep.observability.redaction import describe_raised
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.cleanup import clean
from lockstep.protocol.identity import require_known_markers
from lockstep.protocol.publish import publish_decided
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import kept_epochs, sweep_folders, sweep_sink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.states import SHOWN, EpochState, Role

LONGEST = timedelta(days=1)  #: after which a silent attempt is voided even if tasks of it are unfinished
_log = logging.getLogger(__name__)


@dataclass
class RecoveryReport:
    """The result of one round of recovery; `problems` wait for a person or for the next round."""

    pipeline: str
    finished: list[int] = field(default_factory=list)  #: epochs brought to cleaned
    voided: list[int] = field(default_factory=list)  #: epochs whose attempt was raised
    swept: int = 0  #: transactions and folders
    problems: list[str] = field(default_factory=list)
    #: epochs that another process is publishing, and epochs that wait for these: no problem
    busy: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._epochs: dict[str, list[int]] = {}  # by problem, in the order of `problems`

    def note(self, problem: str, epoch: int | None) -> bool:
        """Add the problem, in one line with all epochs that have it. Return True if it is new."""
        new = problem not in self._epochs
        epochs = self._epochs.setdefault(problem, [])
        if epoch is not None and epoch not in epochs:
            epochs.append(epoch)
        self.problems[:] = [_describe(*problem_epochs) for problem_epochs in self._epochs.items()]
        return new

    @property
    def complete(self) -> bool:
        """True if the round did everything that there was to do."""
        return not self.problems and not self.busy


@log_context
def recover(
    runtime: Runtime,
    recovery_grace: timedelta | None = None,
    coming: Callable[[Epoch], str | None] = lambda epoch: None,
) -> RecoveryReport:
    """Run one round of recovery.

    Attempts are voided after `recovery_grace` (default: the pipeline's) without a heartbeat; while `coming` names
    unfinished tasks of an attempt, after the longer of LONGEST and the pipeline's grace.
    """
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
    oldest = ledger.abandoned_epochs(runtime.pipeline, max(usual, LONGEST)) if silent else []
    overdue, abandoned = {epoch.id for epoch in oldest}, []
    for epoch in silent:
        ahead = _unfinished_tasks(coming, epoch) if epoch.id not in overdue else None
        if ahead is None:
            abandoned.append(epoch)
        else:
            _log.info("%s is left alone: idle, with unfinished tasks: %s", epoch, ahead)
    return abandoned


def _unfinished_tasks(coming: Callable[[Epoch], str | None], epoch: Epoch) -> str | None:
    """Return the attempt's unfinished tasks. If `coming` fails, assume that there are some."""
    try:
        return coming(epoch)
    except Exception as error:
        _log.debug("%s: can't ask for unfinished tasks", epoch, exc_info=error)
        _log.warning("%s: can't ask for unfinished tasks: %s", epoch, type(error).__name__)
        return "unknown, as asking failed"


@log_context
def finish_decided(runtime: Runtime) -> RecoveryReport:
    """Publish and clean up what is decided, in order: the first half of a round."""
    report = RecoveryReport(runtime.pipeline)
    for epoch in runtime.ledger.unfinished_epochs(runtime.pipeline):
        if epoch.state in (EpochState.COMMITTED, EpochState.PUBLISHED):
            _guard(report, partial(_finish, runtime, epoch, report), epoch.id)
    return report


def forget(runtime: Runtime, reason: str) -> RecoveryReport:
    """Forget a pipeline that never decided anything, delete what it left, and release its targets.

    The ledger first, as with every abort. To be repeated while the report has problems. Raises `IllegalTransition` if
    an epoch was ever decided, `LedgerConflict` if a sink shows one that a later state of the ledger, since lost, has
    decided, `UnknownEpoch`.
    """
    for spec in known_sinks(runtime):
        try:
            with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
                require_known_markers(runtime.ledger, runtime.pipeline, sink)
        except LedgerConflict:
            raise
        except LockstepError:
            continue  # the sweep below reports it
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
    specs = known_sinks(runtime)
    for spec in specs:
        _guard(report, partial(_sweep_sink, runtime, spec, specs, report))
    _guard(report, partial(_sweep_folders, runtime, report))


def _sweep_sink(runtime: Runtime, spec: Json, specs: list[Json], report: RecoveryReport) -> None:
    described = runtime.sink_to_sweep(spec)
    with runtime.opened(described) as sink:
        handled = sweep_sink(runtime, sink)
        report.swept += len(handled)
        for feature in runtime.features:
            report.swept += feature.sink_swept(runtime, described, sink, specs)
        if isinstance(sink, TwoPhaseCommitSink) and report.complete:
            sink.finish_recovering(handled)


def _sweep_folders(runtime: Runtime, report: RecoveryReport) -> None:
    for feature in runtime.features:
        report.swept += feature.sweeping_folders(runtime)
    report.swept += sweep_folders(runtime)
    for file in runtime.staging.unknown_files(
        runtime.ledger.deployment(), runtime.pipeline, exclude=kept_epochs(runtime)
    ):
        _log.warning("not Lockstep's, left alone: %s", file)


def known_sinks(runtime: Runtime) -> list[Json]:
    """Return the distinct specs of sinks in the last plan, in unfinished ones and in those of the last week."""
    specs = runtime.ledger.planned_sinks(runtime.pipeline)
    last = runtime.ledger.last_epoch(runtime.pipeline)
    for epoch in [*([last] if last else []), *runtime.ledger.unfinished_epochs(runtime.pipeline)]:
        specs.extend(spec for spec in epoch.plan.sinks.values() if spec not in specs)
    return specs


def _guard(report: RecoveryReport, work: Callable[[], object], epoch: int | None = None) -> bool:
    """Do `work`; report its failure and return False, so that one broken sink doesn't stop recovery of the others."""
    clear_log_context()
    bind_log_context(pipeline=report.pipeline, epoch=epoch)
    try:
        work()
    except LockstepError as error:
        waits = isinstance(error, OutOfOrder)  # for one that has a problem, or is being published
        if isinstance(error, PublishBusy) or (waits and not report.problems):
            _log.info("%s", error)
            report.busy.append(str(error))
            return False
        problem = "an earlier epoch has to be published first" if waits else str(error)
        if report.note(f"{type(error).__name__}: {problem}", epoch):
            _log.error("%s: %s", type(error).__name__, error)
    except Exception as error:  # of a sink or a library: other epochs and pipelines must go on
        frame = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{describe_raised(error)} at {frame.filename}:{frame.lineno}, which isn't an error of Lockstep"
        if report.note(problem, epoch):
            _log.error("%s", problem)
    else:
        return True
    return False


def _describe(problem: str, epochs: list[int]) -> str:
    if not epochs or f" epoch {epochs[0]}" in problem:
        return problem
    return f"{problem} (epoch{'s' if len(epochs) > 1 else ''} {', '.join(map(str, epochs))})"

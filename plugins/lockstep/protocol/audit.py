"""audit: evaluate the plan's audits on the sealed WAL, before any sink takes part.

The verdict is stored in the ledger and belongs to this WAL: a retry gets the same one, whatever it would find now.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial

from lockstep.audits.audit import audit_from_spec
from lockstep.audits.evaluate import Answer, AskSpark, AuditContext, ask
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Outcome, RunKey, Verdict
from lockstep.errors import NotPrepared
from lockstep.observability.log_context import bind_attempt, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.lease import hold_lease
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.states import DECIDED, Role

_log = logging.getLogger(__name__)


@log_context
def audit(runtime: Runtime, run: RunKey, ask_spark: AskSpark | None = None) -> Verdict | None:
    """Evaluate the audits of this run's epoch, unless there is a verdict; None if its plan has none. `ask_spark`:
    evaluates them in Spark for outputs that are too large for this process.

    Raises `EpochHeld` if rows offend one that blocks and nobody has released the epoch, `AuditFailed`, `NotPrepared`
    without a sealed WAL, `Fenced`, `WalCorrupt`.
    """
    attempt = bind_attempt(runtime.attempt_of(run))
    epoch = runtime.epoch_of(attempt)
    if not epoch.plan.audits:
        _log.info("%s was planned without audits", epoch)
        return None
    verdict = _find_verdict(runtime, epoch)
    if epoch.state in DECIDED:
        return verdict
    runtime.ledger.require_current(attempt)
    if verdict is None:
        if epoch.wal is None:
            raise NotPrepared(f"{epoch} is {epoch.state} and has no sealed WAL to audit: clear from stage")
        with hold_lease(runtime.ledger, attempt, Role.AUDIT):
            verdict = unless_superseded(
                partial(_audit, runtime, attempt, epoch, ask_spark), partial(_find_verdict, runtime, epoch)
            )
    runtime.ledger.require_not_held(epoch)
    return verdict


def _find_verdict(runtime: Runtime, epoch: Epoch) -> Verdict | None:
    """Return the verdict, if there is one. Raises `EpochHeld`."""
    verdict = runtime.ledger.verdict(epoch.pipeline, epoch.id)
    if verdict is not None:
        runtime.ledger.require_not_held(epoch)
        _log.info("%s: %s", epoch, verdict)
    return verdict


def _audit(runtime: Runtime, attempt: Attempt, epoch: Epoch, ask_spark: AskSpark | None) -> Verdict:
    began = time.monotonic()
    audits = [audit_from_spec(spec) for spec in epoch.plan.audits]
    measured = partial(runtime.ledger.measured_before, epoch)
    planned_at, is_joined = _first_read(runtime, epoch)
    replaced = runtime.ledger.seals_replaced(epoch) if is_joined else ()
    context = AuditContext(epoch.id, epoch.interval, planned_at, measured, runtime.connections, replaced)
    answers = ask(audits, context, open_wal(runtime.staging, epoch), ask_spark)
    reach(CrashPoint.AUDIT_BEFORE_SAMPLES)
    samples = _keep_samples(runtime, epoch, answers)
    reach(CrashPoint.AUDIT_AFTER_SAMPLES)
    verdict = runtime.ledger.record_verdict(attempt, epoch.manifest_hash or "", [answer.result for answer in answers])
    reach(CrashPoint.AUDIT_AFTER_VERDICT)
    _log.info("%s: %s after %.1f s", epoch, verdict, time.monotonic() - began)
    if samples:
        level = logging.ERROR if verdict.outcome is Outcome.HELD else logging.WARNING
        offended = ", ".join(map(str, (*verdict.offended, *verdict.warnings)))
        _log.log(level, "%s: rows offend %s; some of them are in %s", epoch, offended, samples)
    return verdict


def _first_read(runtime: Runtime, epoch: Epoch) -> tuple[datetime, bool]:
    """Return when the range of a cursor's epoch was first planned, and True if it joins several ranges: then it is the
    time of the last one."""
    several = False
    while epoch.interval is None and (generation := epoch.generation) is not None:
        several |= generation.through not in (None, generation.replaces)
        replaced = generation.replaces if generation.through is None else generation.through
        epoch = runtime.ledger.epoch(epoch.pipeline, replaced)
    return epoch.planned_at, several


def _keep_samples(runtime: Runtime, epoch: Epoch, answers: Sequence[Answer]) -> str | None:
    """Store some of the offending rows for people; they outlive the WAL. Return where, or None if no row offends."""
    offended = [answer for answer in answers if answer.result.offending and not answer.away]
    if not offended:
        return None
    samples = {answer.result.name: {**asdict(answer.result), "sample": answer.sample} for answer in offended}
    return runtime.staging.keep_samples(epoch.wal or "", samples)

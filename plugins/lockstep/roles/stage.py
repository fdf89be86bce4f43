"""stage: a Spark micro-job writes the WAL; this task, not the driver, seals it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, RunKey
from lockstep.errors import AlreadyDecided, PlanMismatch, SourceChanged, StageFailed
from lockstep.roles.alarm import confirmed
from lockstep.roles.counting import outputs_in_words
from lockstep.roles.lease import kept
from lockstep.roles.state import StateBefore, sealed_state, state_before, state_blamed, state_request
from lockstep.runtime import Runtime
from lockstep.sources.base import Source
from lockstep.states import DECIDED, Role
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import REQUEST, RESULT, StageRequest, StageResult

#: Runs the Spark job for the request at this URI and returns when it has ended. Raises when it failed.
Launch = Callable[[str], None]
_log = logging.getLogger(__name__)


def stage(runtime: Runtime, run: RunKey, launch: Launch, reference: str = "") -> Epoch:
    """Stage and seal this run's epoch, unless it is staged already.

    `reference`: where another process imports the pipeline, `module:name`. Trusts the manifest that it makes and never
    the job's status. With state it waits for the epoch before to be decided. Raises `StageFailed`,
    `OutOfOrder`, `SourceChanged`, `BadRecords`, `PlanMismatch`, `Fenced`, `WalCorrupt` for the state before.
    """
    attempt = runtime.attempt_of(run)
    if (staged := _staged(runtime, attempt)) is not None:
        return staged
    try:
        return confirmed(
            partial(_stage_once, runtime, attempt, launch, reference), partial(_meanwhile, runtime, attempt)
        )
    except AlreadyDecided:
        return runtime.epoch_of(attempt)


def _staged(runtime: Runtime, attempt: Attempt) -> Epoch | None:
    epoch = runtime.epoch_of(attempt)
    if epoch.wal is None:
        return None
    if epoch.state not in DECIDED:
        runtime.ledger.require_current(attempt)
    _log.info("%s is %s already: its transform doesn't run again", epoch, epoch.state)
    return epoch


def _meanwhile(runtime: Runtime, attempt: Attempt) -> Epoch | None:
    """What another execution has sealed. Raises `Fenced`."""
    runtime.ledger.require_running(attempt)
    return _staged(runtime, attempt)


def _stage_once(runtime: Runtime, attempt: Attempt, launch: Launch, reference: str) -> Epoch:
    epoch = runtime.epoch_of(attempt)
    before = state_before(runtime, epoch)
    reach(CrashPoint.STAGE_BEFORE_TOKEN)
    token = runtime.ledger.take_token(attempt, Role.STAGE)
    reach(CrashPoint.STAGE_AFTER_TOKEN)
    with kept(runtime.ledger, attempt, Role.STAGE):
        return _stage(runtime, attempt, epoch, token, launch, reference, before)


def _stage(
    runtime: Runtime,
    attempt: Attempt,
    epoch: Epoch,
    token: int,
    launch: Launch,
    reference: str,
    before: StateBefore | None,
) -> Epoch:
    began = time.monotonic()
    _require_same_sources(runtime, epoch)
    staging, deployment = runtime.staging, runtime.ledger.deployment()
    folder = staging.folder(deployment, epoch.pipeline, epoch.id, token)
    request = _request(runtime, epoch, token, folder, reference, before)
    sources = _open_sources(runtime)
    _check_sources(sources, epoch)
    reach(CrashPoint.STAGE_BEFORE_FOLDER)
    staging.create(folder)
    reach(CrashPoint.STAGE_BEFORE_REQUEST)
    staging.write_json(folder, REQUEST, request.to_json())
    reach(CrashPoint.STAGE_BEFORE_SPARK)
    with state_blamed(runtime, before):
        launch(staging.address_of(f"{folder}/{REQUEST}"))
    reach(CrashPoint.STAGE_AFTER_SPARK)
    result = StageResult.from_json(staging.read_json(folder, RESULT))
    _check_sources(sources, epoch)
    _require_all_read(sources, epoch, result.sources)
    state = sealed_state(runtime, epoch, token, result.state, before)
    manifest = staging.seal(
        folder,
        deployment=deployment,
        pipeline=epoch.pipeline,
        epoch=epoch.id,
        token=token,
        outputs=request.outputs,
        observed=result.rows,
        sources=result.sources,
        state=state,
        balances=result.balances,
    )
    reach(CrashPoint.STAGE_BEFORE_SEAL)
    sealed = runtime.ledger.seal_epoch(
        attempt,
        folder,
        manifest.hash,
        manifest.summary(),
        result.code_version,
        state.based_on if state else None,
    )
    reach(CrashPoint.STAGE_AFTER_SEAL)
    _log.info("%s is staged after %.1f s: %s", epoch, time.monotonic() - began, outputs_in_words(manifest))
    if sealed.wal != folder:
        _log.info("%s: another execution sealed first; %s is rubbish", epoch, folder)
    return sealed


def _request(
    runtime: Runtime, epoch: Epoch, token: int, folder: str, reference: str, before: StateBefore | None
) -> StageRequest:
    return StageRequest(
        pipeline=reference,
        epoch=epoch.id,
        token=token,
        folder=runtime.staging.uri_of(folder),
        outputs=runtime.defined.outputs,
        sources=epoch.plan.sources,
        timestamp=epoch.planned_at,
        interval=epoch.interval,
        state=state_request(runtime, epoch, token, before) if before and runtime.defined.state else None,
    )


def _require_same_sources(runtime: Runtime, epoch: Epoch) -> None:
    defined, planned = sorted(runtime.defined.sources), sorted(epoch.plan.sources)
    if defined != planned:
        raise PlanMismatch(
            f"{epoch} was planned with the sources {', '.join(planned)}, the pipeline has {', '.join(defined)}; take "
            f"these with `lockstep replan {epoch.pipeline} {epoch.id} --reason …`, or put the old ones back"
        )


def _open_sources(runtime: Runtime) -> dict[str, Source]:
    return {name: runtime.source(name) for name in runtime.defined.sources}


def _check_sources(sources: Mapping[str, Source], epoch: Epoch) -> None:
    for name, found in epoch.plan.sources.items():
        sources[name].check(found.start, found.end)


def _require_all_read(sources: Mapping[str, Source], epoch: Epoch, counts: Mapping[str, SourceCount]) -> None:
    """The job's own count of what it read against that of the plan: what cuts a query cuts no count."""
    for name, found in epoch.plan.sources.items():
        planned = sources[name].rows_planned(found.start, found.end)
        read = counts[name].rows if name in counts else 0
        if planned is None or read == planned:
            continue
        told = f"{epoch}: {planned} rows of source {name} were planned, and Spark read {read}; nothing was sealed"
        if read < planned:
            raise SourceChanged(f"{told}. Does a setting or a policy of the server cut what a query gives?")
        raise StageFailed(f"{told}. Rows came meanwhile, or Spark counted a task's rows twice")

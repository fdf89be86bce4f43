"""One Spark job and what becomes of it: a folder of its own, with a manifest that nobody knows yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lockstep.audits.audit import outputs_conserved, quarantining, rules_by_output
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Input
from lockstep.errors import PlanMismatch, SourceChanged, StageFailed
from lockstep.observability import suggestions
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.state_versions import BaseState, blame_state, sealed_state, state_request
from lockstep.protocol.table_staging import home_requests
from lockstep.states import DECIDED
from lockstep.wal.file_digests import EarlyDigests
from lockstep.wal.manifest import Manifest, SourceCount
from lockstep.wal.request import REQUEST, StageRequest, StageResult, read_result
from lockstep.wal.sealing import NO_DIGESTS, task_seals

#: Runs the Spark job for the request at this URI and returns when it has ended. Raises when it failed.
Launch = Callable[[str], None]
#: What goes on while the job writes into a folder.
Beside = Callable[[str], AbstractContextManager[object]]
_TAKE_THEM = "take these with `lockstep replan {0.pipeline} {0.id} --reason 'planned anew'`, or "


@dataclass(frozen=True)
class WrittenWal:
    """What an execution wrote and made durable."""

    folder: str
    manifest: Manifest
    code_version: str


def write_wal(
    runtime: Runtime,
    epoch: Epoch,
    token: int,
    launch: Launch,
    reference: str,
    before: BaseState | None,
    *,
    keeps_state: bool = True,
    beside: Beside = nullcontext,
) -> WrittenWal:
    """Have the epoch's frozen ranges staged by execution `token`. `keeps_state` False: the state it makes is rubbish.

    Raises `StageFailed`, `SourceChanged`, `BadRecords`, `PlanMismatch`.
    """
    staging = runtime.staging
    folder, request = ask_for(runtime, epoch, token, reference, before)
    most = task_seals()
    staged_here = [output for output in request.outputs if output not in request.homes]
    with blame_state(runtime, before), beside(folder), staging.digesting_early(folder, staged_here, most) as early:
        launch(staging.address_of(f"{folder}/{REQUEST}"))
    return seal_written(runtime, epoch, token, folder, request, before, keeps_state=keeps_state, early=early)


def ask_for(
    runtime: Runtime, epoch: Epoch, token: int, reference: str, before: BaseState | None
) -> tuple[str, StageRequest]:
    """The folder of execution `token`, made for it, and the request that now stands there. Raises `SourceChanged`,
    `PlanMismatch`."""
    staging = runtime.staging
    folder = staging.folder(runtime.ledger.deployment(), epoch.pipeline, epoch.id, token)
    request = require_sources(runtime, epoch, token, folder, reference, before)
    reach(CrashPoint.STAGE_BEFORE_FOLDER)
    staging.create(folder)
    reach(CrashPoint.STAGE_BEFORE_REQUEST)
    staging.write_json(folder, REQUEST, request.to_json())
    reach(CrashPoint.STAGE_BEFORE_SPARK)
    return folder, request


def require_sources(
    runtime: Runtime, epoch: Epoch, token: int, folder: str, reference: str, before: BaseState | None
) -> StageRequest:
    """What execution `token` asks for, of sources that are as they were planned. Raises as `ask_for`; makes nothing."""
    _require_same_sources(runtime, epoch)
    request = _request(runtime, epoch, token, folder, reference, before)
    _check_sources(runtime, epoch)
    return request


def seal_written(
    runtime: Runtime,
    epoch: Epoch,
    token: int,
    folder: str,
    request: StageRequest,
    before: BaseState | None,
    *,
    keeps_state: bool = True,
    early: EarlyDigests | None = None,
) -> WrittenWal:
    """Make the WAL of what the job that has ended was asked for and left in `folder`, once. Raises as `write_wal`, and
    `StagingRefused` if somebody has made it."""
    staging = runtime.staging
    reach(CrashPoint.STAGE_AFTER_SPARK)
    result = read_result(staging, folder)
    _check_sources(runtime, epoch, result.sources)
    manifest = staging.seal(
        folder,
        deployment=runtime.ledger.deployment(),
        pipeline=epoch.pipeline,
        epoch=epoch.id,
        token=token,
        outputs=request.outputs,
        observed=result.rows,
        sources=result.sources,
        state=sealed_state(runtime, epoch, token, result.state, before) if keeps_state else None,
        balances=result.balances,
        early=early,
        homes={output: found.home for output, found in request.homes.items()},
        digests=result.files if result.files is not None else NO_DIGESTS,
        quarantined=_quarantined(epoch, result),
    )
    return WrittenWal(folder, manifest, result.code_version)


def _quarantined(epoch: Epoch, result: StageResult) -> dict[str, tuple[int, Mapping[str, int]]]:
    """What the job sent to quarantine. Raises `StageFailed` if it wasn't by all of the plan's audits, and only them."""
    planned = {output: set(rules) for output, rules in rules_by_output(epoch.plan.audits).items()}
    if {output: set(found.audits) for output, found in result.quarantined.items()} != planned:
        raise StageFailed(
            f"{epoch}: the job hasn't asked the audits by which rows go to quarantine; nothing was sealed. Is the same "
            "version of Lockstep installed where Spark's driver runs?"
        )
    return {output: (found.rows, found.audits) for output, found in result.quarantined.items()}


def _request(
    runtime: Runtime, epoch: Epoch, token: int, folder: str, reference: str, before: BaseState | None
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
        homes=home_requests(runtime, epoch, token),
        conserved=outputs_conserved(epoch.plan.audits),
        quarantine=quarantining(epoch.plan.audits),
        task_seals=task_seals(),
    )


def _require_same_sources(runtime: Runtime, epoch: Epoch) -> None:
    defined, planned = sorted(runtime.defined.sources), sorted(epoch.plan.sources)
    if defined != planned:
        raise PlanMismatch(
            f"{epoch} was planned with the sources {', '.join(planned)}, the pipeline has {', '.join(defined)}; "
            f"{'' if epoch.state in DECIDED else _TAKE_THEM.format(epoch)}put the old ones back"
        )


def _check_sources(runtime: Runtime, epoch: Epoch, counts: Mapping[str, SourceCount] | None = None) -> None:
    """Raise unless each range is what it was, and while it may be planned anew has all that belongs to it; with
    `counts`, those of the job, also unless all of it was read."""
    is_open = epoch.state not in DECIDED and epoch.plan.input is not Input.FROZEN
    for name, found in epoch.plan.sources.items():
        with runtime.open_source(name, found) as source:
            source.check(found.start, found.end)
            if is_open and (lacking := source.lacks(found.start, found.end)) is not None:
                raise SourceChanged(f"{epoch} lacks {lacking}. To take them: {suggestions.REPLAN}")
            if counts is not None:
                _require_all_read(epoch, name, source.rows_planned(found.start, found.end), counts.get(name))


def _require_all_read(epoch: Epoch, source: str, planned: int | None, count: SourceCount | None) -> None:
    """The job's own count of what it read against that of the plan: what cuts a query cuts no count."""
    read = count.rows if count else 0
    if planned is None or read == planned:
        return
    told = f"{epoch}: {planned} rows of source {source} were planned, and Spark read {read}; nothing was sealed"
    if read < planned:
        raise SourceChanged(f"{told}. Does a setting or a policy of the server cut what a query gives?")
    raise StageFailed(f"{told}. Rows came meanwhile, or Spark counted a task's rows twice")

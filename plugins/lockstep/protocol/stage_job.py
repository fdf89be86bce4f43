"""One execution of `stage`: its request, its Spark job, and the manifest of what the job wrote in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lockstep.audits.audit import outputs_conserved, quarantining, rules_by_output
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Input
from lockstep.errors import PlanMismatch, SourceChanged, StageFailed
from lockstep.observability import suggestions
from lockstep.protocol.hooks import StagePart, first_answer
from lockstep.protocol.runtime import Runtime
from lockstep.states import DECIDED
from lockstep.wal.file_digests import EarlyDigests
from lockstep.wal.manifest import Manifest, SourceCount
from lockstep.wal.request import REQUEST, StageRequest, StageResult, read_result
from lockstep.wal.sealing import NO_DIGESTS, task_seals

#: Runs the Spark job for the request at this URI and returns when it has ended. Raises when it failed.
Launch = Callable[[str], None]
_TAKE_THEM = "take these with `lockstep replan {0.pipeline} {0.id} --reason 'planned anew'`, or "


@dataclass(frozen=True)
class WrittenWal:
    """The durable result of an execution: its folder and manifest."""

    folder: str
    manifest: Manifest
    code_version: str


def write_wal(
    runtime: Runtime,
    epoch: Epoch,
    token: int,
    launch: Launch,
    reference: str,
    parts: Sequence[StagePart],
) -> WrittenWal:
    """Stage the epoch's frozen ranges as execution `token`, by a Spark job or by the part that replaces one.

    Raises `StageFailed`, `SourceChanged`, `BadRecords`, `PlanMismatch`.
    """
    for part in parts:
        if part.replaces_job:
            return part.write_wal(token)
    staging = runtime.staging
    folder, request = ask_for(runtime, epoch, token, reference, parts)
    staged_here = [output for output in request.outputs if output not in request.homes]
    with running(parts, folder), staging.digesting_early(folder, staged_here, task_seals()) as early:
        launch(staging.address_of(f"{folder}/{REQUEST}"))
    return seal_written(runtime, epoch, token, folder, request, parts, early=early)


def stage_parts(runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool = False) -> list[StagePart]:
    """Return the features' parts in an execution that is about to take its token."""
    parts = (feature.staging(runtime, attempt, epoch, decided=decided) for feature in runtime.features)
    return [part for part in parts if part is not None]


def running(parts: Sequence[StagePart], folder: str) -> ExitStack:
    """Return the context of the job which writes into `folder`. The first part's is the outermost."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part.running(folder))
        return stack.pop_all()


def ask_for(
    runtime: Runtime, epoch: Epoch, token: int, reference: str, parts: Sequence[StagePart]
) -> tuple[str, StageRequest]:
    """Create the folder of execution `token`, write the request into it, and return both. Raises `SourceChanged`,
    `PlanMismatch`."""
    staging = runtime.staging
    folder = staging.folder(runtime.ledger.deployment(), epoch.pipeline, epoch.id, token)
    request = make_request(runtime, epoch, token, folder, reference, parts)
    reach(CrashPoint.STAGE_BEFORE_FOLDER)
    staging.create(folder)
    reach(CrashPoint.STAGE_BEFORE_REQUEST)
    staging.write_json(folder, REQUEST, request.to_json())
    reach(CrashPoint.STAGE_BEFORE_SPARK)
    return folder, request


def make_request(
    runtime: Runtime, epoch: Epoch, token: int, folder: str, reference: str, parts: Sequence[StagePart]
) -> StageRequest:
    """Check that the sources are as they were planned, and return what execution `token` asks of the job. Writes
    nothing. Raises as `ask_for`."""
    defined, planned = sorted(runtime.defined.sources), sorted(epoch.plan.sources)
    if defined != planned:
        raise PlanMismatch(
            f"{epoch} was planned with the sources {', '.join(planned)}, the pipeline has {', '.join(defined)}; "
            f"{'' if epoch.state in DECIDED else _TAKE_THEM.format(epoch)}put the old ones back"
        )
    request = StageRequest(
        pipeline=reference,
        epoch=epoch.id,
        token=token,
        folder=runtime.staging.uri_of(folder),
        outputs=runtime.defined.outputs,
        sources=epoch.plan.sources,
        timestamp=epoch.planned_at,
        interval=epoch.interval,
        conserved=outputs_conserved(epoch.plan.audits),
        quarantine=quarantining(epoch.plan.audits),
        task_seals=task_seals(),
    )
    for part in parts:
        request = part.requested(token, request)
    _check_sources(runtime, epoch)
    return request


def seal_written(
    runtime: Runtime,
    epoch: Epoch,
    token: int,
    folder: str,
    request: StageRequest,
    parts: Sequence[StagePart],
    *,
    early: EarlyDigests | None = None,
) -> WrittenWal:
    """Make what the job wrote durable, and write the manifest. Raises as `write_wal`, and `StagingRefused` if `folder`
    has a manifest already."""
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
        state=first_answer(part.sealed_state(token, result) for part in parts),
        balances=result.balances,
        early=early,
        homes={output: table.home for output, table in request.homes.items()},
        digests=result.files if result.files is not None else NO_DIGESTS,
        quarantined=_quarantined(epoch, result),
    )
    return WrittenWal(folder, manifest, result.code_version)


def _quarantined(epoch: Epoch, result: StageResult) -> dict[str, tuple[int, Mapping[str, int]]]:
    """Return rows and audits of each quarantined output. Raises `StageFailed` unless the job has asked exactly the
    audits of the plan."""
    planned = {output: set(rules) for output, rules in rules_by_output(epoch.plan.audits).items()}
    if {output: set(counts.audits) for output, counts in result.quarantined.items()} != planned:
        raise StageFailed(
            f"{epoch}: the job hasn't asked the audits by which rows go to quarantine; nothing was sealed. Is the same "
            "version of Lockstep installed where Spark's driver runs?"
        )
    return {output: (counts.rows, counts.audits) for output, counts in result.quarantined.items()}


def _check_sources(runtime: Runtime, epoch: Epoch, counts: Mapping[str, SourceCount] | None = None) -> None:
    """Raise unless each range is as it was planned, and complete while it can still be planned anew. With the job's
    `counts`, raise also unless all of it was read."""
    is_open = epoch.state not in DECIDED and epoch.plan.input is not Input.FROZEN
    for name, planned in epoch.plan.sources.items():
        with runtime.open_source(name, planned) as source:
            source.check(planned.start, planned.end)
            if is_open and (missing := source.lacks(planned.start, planned.end)) is not None:
                raise SourceChanged(f"{epoch} lacks {missing}. To take them: {suggestions.REPLAN}")
            if counts is not None:
                _require_all_read(epoch, name, source.rows_planned(planned.start, planned.end), counts.get(name))


def _require_all_read(epoch: Epoch, source: str, planned: int | None, count: SourceCount | None) -> None:
    """Compare the job's count of the rows it read with the plan's: whatever truncates a query truncates no count."""
    read = count.rows if count else 0
    if planned is None or read == planned:
        return
    counted = f"{epoch}: {planned} rows of source {source} were planned, and Spark read {read}; nothing was sealed"
    if read < planned:
        raise SourceChanged(f"{counted}. Does a setting or a policy of the server cut what a query gives?")
    raise StageFailed(f"{counted}. Rows came meanwhile, or Spark counted a task's rows twice")

"""Restoring: a generation that shows the rows of an earlier generation again, from its retained WAL.

It has a number, tokens, manifest, votes and markers of its own; only its rows are the earlier ones. Files that a table
adopts carry the epoch's number, so these are written anew; the manifest refers to all others.
"""

from __future__ import annotations

from lockstep.audits.audit import quarantining
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Json, Plan, RunKey
from lockstep.errors import EpochBusy, RestateRefused, WalCorrupt, WalGone
from lockstep.features.generations import require_restatable, require_way_back
from lockstep.features.table_staging import home_requests, homes_of
from lockstep.observability import suggestions
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.stage_job import WrittenWal
from lockstep.sinks.base import Sink
from lockstep.states import UNDECIDED, EpochState
from lockstep.wal.reading import SealedWal, rewrite_for_table
from lockstep.wal.request import REQUEST


def require_same_wish(run: RunKey, epoch: Epoch) -> None:
    """Raise `EpochBusy` if `epoch` isn't what `run` asks for, and has to be finished or given up first;
    `RestateRefused` if there is nothing that could be replaced."""
    if run.restate is None or epoch.restores == run.restore:
        return
    wish = "read its range again" if run.restore is None else f"show the rows of epoch {run.restore} again"
    if epoch.state in UNDECIDED and epoch.generation is not None:
        raise EpochBusy(
            f"can't {wish}: {epoch} is {epoch.state}: wait for it, or give it up with "
            f"{suggestions.void(epoch.pipeline, epoch.id)}"
        )
    if run.restore is not None:
        raise RestateRefused(f"can't {wish}: {epoch} is {epoch.state}; only what every sink shows can be replaced")


def find_restored(runtime: Runtime, current: Epoch, epoch: int) -> Epoch:
    """Return epoch `epoch`, whose rows are to replace those of `current`. Raises `RestateRefused` if they can't, and
    `EpochBusy` as `require_restatable`."""
    restored = runtime.ledger.epoch(runtime.pipeline, epoch)
    refused = f"can't show the rows of epoch {epoch} again"
    require_way_back(runtime.defined, epoch)
    if restored.root != current.root:
        raise RestateRefused(f"{refused} in the place of {current}: {restored} is of another range")
    if restored.id == current.id:
        raise RestateRefused(f"{refused}: it is the current generation; if sinks show a later one, restate the range")
    if restored.state is not EpochState.REPLACED:
        why = f", it was given up: {restored.reason}" if restored.state is EpochState.VOID else ""
        raise RestateRefused(
            f"{refused}: it is {restored.state}{why}; only what was shown once, and replaced, can come back"
        )
    if shows_same_rows(restored, current):
        raise RestateRefused(f"{refused}: {current} shows these very rows, by number, digest and columns")
    require_restatable(runtime, [current])
    return restored


def shows_same_rows(epoch: Epoch, other_epoch: Epoch) -> bool:
    return _rows_of(epoch) == _rows_of(other_epoch)


def _rows_of(epoch: Epoch) -> list[tuple[str, int, str, str]]:
    """Return name, rows, digest and columns of each output, as they were sealed."""
    return sorted(
        (name, counts["rows"], counts["digest"], counts.get("columns", "")) for name, counts in epoch.counted.items()
    )


def check_restored(runtime: Runtime, restored: Epoch) -> SealedWal:
    """Open the WAL as `open_restored` does, and compare every file. Raises the same."""
    try:
        wal = open_restored(runtime, restored)
        wal.check()
    except WalCorrupt:
        _require_kept(runtime, restored)  # a WAL that is being deleted isn't damaged
        raise
    return wal


def _require_kept(runtime: Runtime, restored: Epoch) -> None:
    retained = runtime.ledger.retained_wal(restored.pipeline, restored.id)
    if retained is None or retained.expired_at is not None:
        raise WalGone(
            f"the WAL of {restored} isn't kept{' any more' if retained else ''}: its rows can't be shown again. "
            f"`lockstep wal list {restored.pipeline}` names those that are there, Pipeline(keep_wal=…) says how long "
            "they stay"
        )


def open_restored(runtime: Runtime, restored: Epoch) -> SealedWal:
    """Open the retained WAL if it has what the current sinks take. Raises `WalGone`, `WalCorrupt`, `RestateRefused`."""
    _require_kept(runtime, restored)
    wal = open_wal(runtime.staging, restored)
    if wal.manifest.rows_in is not None and restored.restores is None:  # the ledger was rebuilt
        raise WalGone(
            f"the WAL of {restored} has its rows in {wal.manifest.rows_in}, and the ledger, rebuilt since, doesn't "
            "know: those may go at any time. Show the rows of the epoch that has them again, or restate the range"
        )
    has = ", ".join(sorted(wal.manifest.outputs))
    adopted = {output for sink in runtime.defined.sinks if sink.adopts for output in sink.outputs}
    for sink in runtime.defined.sinks:
        for output in sink.outputs:
            if output not in wal.manifest.outputs:
                raise RestateRefused(
                    f"can't show the rows of epoch {restored.id} again: sink {sink.name} takes the output {output}, "
                    f"and that epoch has {has}"
                )
        if sink.adopts:
            _require_same_home(runtime, restored, wal, sink)
        elif any(wal.manifest.outputs[output].home is not None and output not in adopted for output in sink.outputs):
            raise RestateRefused(
                f"can't show the rows of epoch {restored.id} again: sink {sink.name} takes files from staging, and "
                "that epoch's were a table's: restate the range instead"
            )
    return wal


def _require_same_home(runtime: Runtime, restored: Epoch, wal: SealedWal, sink: Sink) -> None:
    """Raise `RestateRefused` if the table's partitioning has changed: each file has rows of one partition only."""
    [output] = sink.outputs
    was, now = wal.manifest.outputs[output].home, sink.home(runtime.sink_context())
    if now.partition_by != (was.partition_by if was else ()):
        raise RestateRefused(
            f"can't show the rows of epoch {restored.id} again: the table of sink {sink.name} is partitioned by "
            f"{', '.join(now.partition_by) or 'nothing'}, and the files of that epoch by "
            f"{', '.join(was.partition_by) if was and was.partition_by else 'nothing'}: restate the range instead"
        )


def plan_restored(runtime: Runtime, restored: Epoch) -> Plan:
    """Return the restored epoch's plan with the current sinks and audits. It claims no files: they belong to the range.
    Raises `RestateRefused` for an audit that can't be asked of sealed rows."""
    proven = quarantining(
        _sealer(runtime, restored).plan.audits
    )  # rows that offend these were quarantined before the seal
    audits = [_asked_of_sealed_rows(restored, audit) for audit in runtime.defined.audit_specs() if audit not in proven]
    return Plan(restored.plan.sources, runtime.defined.sink_specs(), restored.plan.reads, tuple(audits))


def _sealer(runtime: Runtime, epoch: Epoch) -> Epoch:
    """Return the generation whose job wrote these rows."""
    while epoch.restores is not None:
        epoch = runtime.ledger.epoch(epoch.pipeline, epoch.restores)
    return epoch


def _asked_of_sealed_rows(restored: Epoch, audit: Json) -> Json:
    """Return the audit as a blocking one: rows of a sealed output can't go to quarantine."""
    if not audit.get("quarantine"):
        return audit
    if audit["asked"]["offence"] == "where":  # for other audits DuckDB's query is made from the rule
        raise RestateRefused(
            f"can't show the rows of epoch {restored.id} again: audit {audit['name']} sends rows to quarantine by a "
            "condition in Spark's SQL, which can't be asked of sealed rows, and these weren't sealed by it. Ask it "
            "without quarantine, in DuckDB's SQL, take it out, or restate the range instead"
        )
    return {**{name: value for name, value in audit.items() if name != "quarantine"}, "blocking": True}


def write_restored(runtime: Runtime, epoch: Epoch, token: int) -> WrittenWal:
    """Stage the earlier generation's rows for `epoch` as execution `token`. Raises `WalGone`, `WalCorrupt`,
    `RestateRefused`, `StageFailed`."""
    assert epoch.restores is not None
    restored = runtime.ledger.epoch(epoch.pipeline, epoch.restores)
    wal = open_restored(runtime, restored)
    wal.check(wal.staged)  # the others are compared as they are read
    staging, deployment = runtime.staging, runtime.ledger.deployment()
    folder = staging.folder(deployment, epoch.pipeline, epoch.id, token)
    homes = homes_of(runtime, epoch)
    reach(CrashPoint.STAGE_BEFORE_FOLDER)
    staging.create(folder)
    if homes:
        requests = home_requests(runtime, epoch, token)
        reach(CrashPoint.STAGE_BEFORE_REQUEST)  # it says what may be left below which table
        staging.write_json(folder, REQUEST, {"homes": {name: request.to_json() for name, request in requests.items()}})
        for output, home in homes.items():
            [rows] = wal.outputs([output])
            rewrite_for_table(staging.home(home, deployment, epoch.pipeline), rows, home, epoch.id, token)
    manifest = staging.seal_restored(
        folder, wal, deployment=deployment, pipeline=epoch.pipeline, epoch=epoch.id, token=token, homes=homes
    )
    return WrittenWal(folder, manifest, restored.code_version or "unknown")

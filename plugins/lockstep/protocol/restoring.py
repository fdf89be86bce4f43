"""The way back: an epoch that shows the rows of an earlier life of its range again, from the WAL that was kept of it.

It is a life like any other, with its own number, tokens, manifest, votes and markers; only its rows are another one's.
Of outputs that tables adopt the files carry the epoch's number, so these are written anew; all others are referred to.
"""

from __future__ import annotations

from lockstep.audits.audit import quarantining
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Json, Plan, RunKey
from lockstep.errors import EpochBusy, RestateRefused, WalCorrupt, WalGone
from lockstep.observability import suggestions
from lockstep.protocol.generations import require_restatable, require_way_back
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.stage_job import WrittenWal
from lockstep.protocol.table_staging import home_requests, homes_of
from lockstep.sinks.base import Sink
from lockstep.states import UNDECIDED, EpochState
from lockstep.wal.reading import SealedWal, rewrite_for_table
from lockstep.wal.request import REQUEST


def require_same_wish(run: RunKey, life: Epoch) -> None:
    """Raise `EpochBusy` where `life` isn't the one that `run` asks for, and would have to be finished or given up
    first; `RestateRefused` where there is nothing that it could take the place of."""
    if run.restate is None or life.restores == run.restore:
        return
    asked = "read its range again" if run.restore is None else f"show the rows of epoch {run.restore} again"
    if life.state in UNDECIDED and life.generation is not None:
        raise EpochBusy(
            f"can't {asked}: {life} is {life.state}: wait for it, or give it up with "
            f"{suggestions.void(life.pipeline, life.id)}"
        )
    if run.restore is not None:
        raise RestateRefused(f"can't {asked}: {life} is {life.state}; only what every sink shows can be replaced")


def find_restored(runtime: Runtime, current: Epoch, epoch: int) -> Epoch:
    """Epoch `epoch`, whose rows are to take the place of `current`'s. Raises `RestateRefused` if that can't be, and
    `EpochBusy` as `require_restatable`."""
    wanted = runtime.ledger.epoch(runtime.pipeline, epoch)
    refused = f"can't show the rows of epoch {epoch} again"
    require_way_back(runtime.defined, epoch)
    if wanted.root != current.root:
        raise RestateRefused(f"{refused} in the place of {current}: {wanted} is of another range")
    if wanted.id == current.id:
        raise RestateRefused(f"{refused}: it is the current generation; if sinks show a later one, restate the range")
    if wanted.state is not EpochState.REPLACED:
        why = f", it was given up: {wanted.reason}" if wanted.state is EpochState.VOID else ""
        raise RestateRefused(
            f"{refused}: it is {wanted.state}{why}; only what was shown once, and replaced, can come back"
        )
    if shows_same_rows(wanted, current):
        raise RestateRefused(f"{refused}: {current} shows these very rows, by number, digest and columns")
    require_restatable(runtime, [current])
    return wanted


def shows_same_rows(one: Epoch, other: Epoch) -> bool:
    return _rows_of(one) == _rows_of(other)


def _rows_of(epoch: Epoch) -> list[tuple[str, int, str, str]]:
    """What the seal says of each output's rows, wherever their files are."""
    outputs = epoch.counted
    return sorted((name, found["rows"], found["digest"], found.get("columns", "")) for name, found in outputs.items())


def check_restored(runtime: Runtime, wanted: Epoch) -> SealedWal:
    """As `open_restored`, with every file compared. Raises the same."""
    try:
        wal = open_restored(runtime, wanted)
        wal.check()
    except WalCorrupt:
        _require_kept(runtime, wanted)  # what somebody lets go of meanwhile isn't damaged
        raise
    return wal


def _require_kept(runtime: Runtime, wanted: Epoch) -> None:
    kept = runtime.ledger.retained_wal(wanted.pipeline, wanted.id)
    if kept is None or kept.expired_at is not None:
        raise WalGone(
            f"the WAL of {wanted} isn't kept{' any more' if kept else ''}: nobody can show its rows again. `lockstep "
            f"wal list {wanted.pipeline}` names those that are there, Pipeline(keep_wal=…) says how long they stay"
        )


def open_restored(runtime: Runtime, wanted: Epoch) -> SealedWal:
    """The kept WAL of `wanted`, if it has what today's sinks take. Raises `WalGone`, `WalCorrupt`, `RestateRefused`."""
    _require_kept(runtime, wanted)
    wal = open_wal(runtime.staging, wanted)
    if wal.manifest.rows_in is not None and wanted.restores is None:  # of a ledger that was rebuilt
        raise WalGone(
            f"the WAL of {wanted} has its rows in {wal.manifest.rows_in}, and the ledger, rebuilt since, doesn't "
            "know: those may go at any time. Show the rows of the epoch that has them again, or restate the range"
        )
    has = ", ".join(sorted(wal.manifest.outputs))
    adopted = {output for sink in runtime.defined.sinks if sink.adopts for output in sink.outputs}
    for sink in runtime.defined.sinks:
        for output in sink.outputs:
            if output not in wal.manifest.outputs:
                raise RestateRefused(
                    f"can't show the rows of epoch {wanted.id} again: sink {sink.name} takes the output {output}, and "
                    f"that epoch has {has}"
                )
        if sink.adopts:
            _require_same_home(runtime, wanted, wal, sink)
        elif any(wal.manifest.outputs[output].home is not None and output not in adopted for output in sink.outputs):
            raise RestateRefused(
                f"can't show the rows of epoch {wanted.id} again: sink {sink.name} takes files from staging, and that "
                "epoch's were a table's: restate the range instead"
            )
    return wal


def _require_same_home(runtime: Runtime, wanted: Epoch, wal: SealedWal, sink: Sink) -> None:
    """Each file has rows of one partition only: of the table as it was when they were written."""
    [output] = sink.outputs
    was, now = wal.manifest.outputs[output].home, sink.home(runtime.sink_context())
    if now.partition_by != (was.partition_by if was else ()):
        raise RestateRefused(
            f"can't show the rows of epoch {wanted.id} again: the table of sink {sink.name} is partitioned by "
            f"{', '.join(now.partition_by) or 'nothing'}, and the files of that epoch by "
            f"{', '.join(was.partition_by) if was and was.partition_by else 'nothing'}: restate the range instead"
        )


def plan_restored(runtime: Runtime, wanted: Epoch) -> Plan:
    """What `wanted` has read, for today's sinks and audits. No file is claimed for it: those are the range's. Raises
    `RestateRefused` for an audit that can't be asked of rows that are sealed."""
    proven = quarantining(_sealer(runtime, wanted).plan.audits)  # what offends these has left before the seal
    audits = [_asked_of_sealed_rows(wanted, one) for one in runtime.defined.audit_specs() if one not in proven]
    return Plan(wanted.plan.sources, runtime.defined.sink_specs(), wanted.plan.reads, tuple(audits))


def _sealer(runtime: Runtime, epoch: Epoch) -> Epoch:
    """The life whose job wrote these rows."""
    while epoch.restores is not None:
        epoch = runtime.ledger.epoch(epoch.pipeline, epoch.restores)
    return epoch


def _asked_of_sealed_rows(wanted: Epoch, audit: Json) -> Json:
    """No row leaves an output that is sealed: what would send some to quarantine holds the epoch."""
    if not audit.get("quarantine"):
        return audit
    if audit["asked"]["offence"] == "where":  # what DuckDB is asked otherwise is made from the rule, and not its text
        raise RestateRefused(
            f"can't show the rows of epoch {wanted.id} again: audit {audit['name']} sends rows to quarantine by a "
            "condition in Spark's SQL, which can't be asked of sealed rows, and these weren't sealed by it. Ask it "
            "without quarantine, in DuckDB's SQL, take it out, or restate the range instead"
        )
    return {**{name: told for name, told in audit.items() if name != "quarantine"}, "blocking": True}


def write_restored(runtime: Runtime, epoch: Epoch, token: int) -> WrittenWal:
    """Have execution `token` stage `epoch`, which shows an earlier life's rows. Raises `WalGone`, `WalCorrupt`,
    `RestateRefused`, `StageFailed`."""
    assert epoch.restores is not None
    wanted = runtime.ledger.epoch(epoch.pipeline, epoch.restores)
    wal = open_restored(runtime, wanted)
    wal.check(wal.staged)  # the others are compared as they are read
    staging, deployment = runtime.staging, runtime.ledger.deployment()
    folder = staging.folder(deployment, epoch.pipeline, epoch.id, token)
    homes = homes_of(runtime, epoch)
    reach(CrashPoint.STAGE_BEFORE_FOLDER)
    staging.create(folder)
    if homes:
        asked = home_requests(runtime, epoch, token)
        reach(CrashPoint.STAGE_BEFORE_REQUEST)  # by it is known what may have been left below which table
        staging.write_json(folder, REQUEST, {"homes": {name: one.to_json() for name, one in asked.items()}})
        for output, home in homes.items():
            [rows] = wal.outputs([output])
            rewrite_for_table(staging.home(home, deployment, epoch.pipeline), rows, home, epoch.id, token)
    manifest = staging.seal_restored(
        folder, wal, deployment=deployment, pipeline=epoch.pipeline, epoch=epoch.id, token=token, homes=homes
    )
    return WrittenWal(folder, manifest, wanted.code_version or "unknown")

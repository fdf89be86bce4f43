"""restage: a decided epoch whose WAL is damaged is staged again, from its frozen ranges, into a folder of its own.

The decision stays: the epoch keeps the manifest hash that it was decided with, and markers carry that one. If number
and digest of the staged rows are the sealed ones, every sink that hasn't published yet takes them from the new folder.
Otherwise nothing is changed. The rows may come in another order. Sinks that number rows, and may have sent some
already, accept only a WAL that is the same byte for byte.
"""

from __future__ import annotations

import logging
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Restaged, Vote
from lockstep.errors import IllegalTransition, LockstepError, RestageRefused, WalCorrupt
from lockstep.observability.log_context import bind_log_context, bind_token, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.stage_job import Launch, stage_parts, write_wal
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.states import SHOWN, EpochState, ParticipantState, Role
from lockstep.wal.manifest import Manifest

_log = logging.getLogger(__name__)


@log_context
def restage(runtime: Runtime, epoch_id: int, launch: Launch, reason: str, reference: str = "") -> Epoch:
    """Stage a committed epoch again whose WAL fails its checks; publish and recover go on from there.

    Raises `IllegalTransition` for any other epoch, `RestageRefused` where other rows come out, and what `stage` raises.
    """
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    bind_log_context(pipeline=epoch.pipeline, epoch=epoch.id, token=epoch.attempt)
    _require_damaged(runtime, epoch)
    return unless_superseded(
        partial(_restage, runtime, epoch, launch, reason, reference), partial(_meanwhile, runtime, epoch)
    )


def restage_if_needed(runtime: Runtime, epoch: Epoch, launch: Launch, reference: str) -> Epoch:
    """`restage` for a stage that is run again after the decision, if a sink still needs the WAL and it is damaged."""
    if epoch.state is not EpochState.COMMITTED or not _is_needed(runtime, epoch):
        return epoch
    damage = _damage(runtime, epoch)
    return restage(runtime, epoch.id, launch, f"stage was run again: {damage}", reference) if damage else epoch


def _is_needed(runtime: Runtime, epoch: Epoch) -> bool:
    """Return True if a sink has yet to publish from the WAL, not from a transaction that it holds."""
    return any(
        participant.vote is not None and not _holds(runtime, epoch, name, participant.vote)
        for name, participant in runtime.ledger.participants(epoch.pipeline, epoch.id).items()
        if participant.state is not ParticipantState.PUBLISHED
    )


def _holds(runtime: Runtime, epoch: Epoch, name: str, vote: Vote) -> bool:
    if vote.handle is None:
        return False
    try:
        with runtime.opened(runtime.sink_of(epoch, name)) as sink:
            described = runtime.sink_epoch(epoch, vote.token)
            return isinstance(sink, TwoPhaseCommitSink) and sink.is_pending(sink.txn_of(described, vote))
    except LockstepError:  # a sink that can't be asked may need the WAL
        return False


def _damage(runtime: Runtime, epoch: Epoch) -> WalCorrupt | None:
    try:
        open_wal(runtime.staging, epoch).check()
    except WalCorrupt as damage:
        return damage
    return None


def _require_damaged(runtime: Runtime, epoch: Epoch) -> None:
    if epoch.state is not EpochState.COMMITTED:
        why = "every sink shows it" if epoch.state in SHOWN else "a new run stages it again where its WAL is damaged"
        raise IllegalTransition(f"can't restage {epoch}: it is {epoch.state}: {why}")
    if _damage(runtime, epoch) is None:
        raise IllegalTransition(
            f"can't restage {epoch}: its WAL is as it was sealed; `lockstep recover {epoch.pipeline}` publishes from it"
        )


def _meanwhile(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    current = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    return current if current.state in SHOWN or current.restaged != epoch.restaged else None


def _restage(runtime: Runtime, epoch: Epoch, launch: Launch, reason: str, reference: str) -> Epoch:
    attempt = Attempt(epoch.pipeline, epoch.id, epoch.attempt)
    parts = stage_parts(runtime, attempt, epoch, decided=True)
    reach(CrashPoint.RESTAGE_BEFORE_TOKEN)
    token = bind_token(runtime.ledger.take_token(attempt, Role.OPERATOR))
    reach(CrashPoint.RESTAGE_AFTER_TOKEN)
    written = write_wal(runtime, epoch, token, launch, reference, parts)
    _require_same_rows(epoch, written.manifest)
    reordered = not _is_same(runtime, epoch, written.manifest)
    restaged = Restaged(written.folder, written.manifest.hash, reordered)
    reach(CrashPoint.RESTAGE_BEFORE_RECORD)
    summary, numbering = written.manifest.summary(), _numbering(runtime, epoch)
    changed = runtime.ledger.restage_epoch(epoch, restaged, token, summary, numbering, reason)
    reach(CrashPoint.RESTAGE_AFTER_RECORD)
    _log.info("%s is published from %s from now on", epoch, changed.restaged.wal if changed.restaged else changed.wal)
    return changed


def _require_same_rows(epoch: Epoch, manifest: Manifest) -> None:
    sealed, staged = epoch.summary or {}, manifest.summary()
    if sealed.get("digest_version") != staged["digest_version"]:
        raise RestageRefused(
            f"{epoch} was sealed with digests of version {sealed.get('digest_version')}, this Lockstep makes "
            f"{staged['digest_version']}: restage it with the version that sealed it"
        )
    differences = [
        f"{name}{place}: {_describe(after.get(name))}, sealed were {_describe(before.get(name))}"
        for part, place in (("outputs", ""), ("quarantined", " in quarantine"))
        for before, after in [(sealed.get(part, {}), staged.get(part, {}))]
        for name in sorted(before.keys() | after.keys())
        if _differs(before.get(name), after.get(name))
    ]
    if differences:
        raise RestageRefused(
            f"{epoch}: other rows came out than were decided ({'; '.join(differences)}): the transform, its code or "
            "what it asks has changed. Nothing was changed; deploy the code that sealed it, or bring the WAL back from "
            "a copy"
        )


def _differs(sealed: dict[str, object] | None, staged: dict[str, object] | None) -> bool:
    if sealed is None or staged is None:
        return True
    return any(staged.get(name) != sealed[name] for name in ("rows", "digest", "columns") if name in sealed)


def _describe(output: dict[str, object] | None) -> str:
    if output is None:
        return "no output"
    columns = f" and columns {output['columns']}" if "columns" in output else ""  # older seals have no columns
    return f"{output['rows']} rows with digest {output.get('digest', 'none')}{columns}"


def _is_same(runtime: Runtime, epoch: Epoch, manifest: Manifest) -> bool:
    """Return True if the staged files are byte for byte the sealed ones, so rows come in the same order."""
    if epoch.restaged is not None and epoch.restaged.reordered:
        return False
    try:
        sealed = open_wal(runtime.staging, epoch).manifest
    except WalCorrupt:
        return False
    return all(
        output.schema.equals(sealed.outputs[name].schema)
        and [(file.bytes, file.rows, file.sha256) for file in output.files]
        == [(file.bytes, file.rows, file.sha256) for file in sealed.outputs[name].files]
        for name, output in manifest.outputs.items()
    )


def _numbering(runtime: Runtime, epoch: Epoch) -> list[str]:
    """Return the sinks that have yet to publish and that identify a row by its position."""
    return [
        name
        for name, participant in runtime.ledger.participants(epoch.pipeline, epoch.id).items()
        if participant.state is not ParticipantState.PUBLISHED and runtime.sink_of(epoch, name).numbers_rows
    ]

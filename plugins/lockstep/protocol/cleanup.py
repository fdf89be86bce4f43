"""cleanup: let go of the WAL once every sink has published. Delete first, then record.

Which WAL stays, if any, the ledger is told before anything is deleted, once: a cleanup that stood still since another
definition was deployed, or that found other files, deletes nothing that somebody else keeps."""

from __future__ import annotations

import logging
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import IllegalTransition, InvalidPipeline, LedgerConflict, LockstepError, TargetChanged, WalCorrupt
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_attempt, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.retained_wals import expire_wals, find_wal_to_keep
from lockstep.protocol.runtime import Runtime, SealedOutputs
from lockstep.protocol.state_versions import release_state
from lockstep.protocol.table_staging import sweep_homes
from lockstep.protocol.targets import find_known_losses, said_to_lack
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Publication
from lockstep.states import DECIDED, FINISHED, EpochState, Role

_log = logging.getLogger(__name__)


@log_context
def cleanup(runtime: Runtime, run: RunKey) -> Epoch:
    """Clean this run's epoch up. Raises `IllegalTransition` unless it is published."""
    return clean(runtime, runtime.epoch_of(bind_attempt(runtime.attempt_of(run))), Role.CLEANUP)


def _tell_sources(runtime: Runtime, epoch: Epoch) -> None:
    """Let the sources say outside what is published. Nothing rests on it, so nothing fails with it. What takes the
    place of a cursor's epochs says nothing: those behind them may have been told already."""
    if epoch.interval is None and epoch.generation is not None:
        return
    for name in runtime.definition.sources if runtime.definition else ():
        if (found := epoch.plan.sources.get(name)) is None:
            continue
        try:
            with runtime.open_source(name, found) as source:
                source.report_published(found.start, found.end)
        except LockstepError as error:
            _log.warning("%s: source %s could not be told: %s", epoch, name, error)


def clean(runtime: Runtime, epoch: Epoch, role: Role) -> Epoch:
    """Keep the manifest and the quarantine, delete every WAL folder of the epoch, but the sealed one where the pipeline
    keeps WALs, and record it. Files that a table has adopted stay: they are the table's."""
    if epoch.state in FINISHED & DECIDED:
        return epoch
    if epoch.state is not EpochState.PUBLISHED or epoch.wal is None:
        left = f": {suggestions.recover(epoch.pipeline)} publishes it" if epoch.state is EpochState.COMMITTED else ""
        raise IllegalTransition(f"can't clean up {epoch}: it is {epoch.state}; its WAL may still be needed{left}")
    return unless_superseded(partial(_clean, runtime, epoch, epoch.wal, role), partial(_find_cleaned, runtime, epoch))


def _find_cleaned(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    """The epoch, if somebody else has cleaned it up."""
    found = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    return found if found.state in FINISHED & DECIDED else None


def _kept_manifest(runtime: Runtime, epoch: Epoch, wal: str) -> str:
    """The WAL whose manifest is kept: the decided one, unless that is damaged."""
    if epoch.restaged is None:
        return wal
    try:
        runtime.staging.manifest(wal, epoch.manifest_hash or "")
    except WalCorrupt:
        return epoch.restaged.wal
    return wal


def _require_shown_still(runtime: Runtime, epoch: Epoch) -> None:
    """Publish the epoch again, while the WAL is there, where another writer has put its commit over the marker's."""
    for name, participant in runtime.ledger.participants(epoch.pipeline, epoch.id).items():
        try:
            described, vote = runtime.sink_of(epoch, name), participant.vote
            if not described.may_lose_commits or vote is None or participant.publication == Publication.RESOLVED:
                continue
            with runtime.opened(described) as sink:
                if sink.find_marker(epoch.id) is not None:
                    continue
                if find_known_losses(said_to_lack(runtime.ledger, epoch.pipeline), sink, [epoch.id]):
                    continue
                wal = runtime.sealed_outputs(epoch, sink)
                _require_no_rows(sink, epoch, wal)
                publication = sink.publish(runtime.sink_epoch(epoch, vote.token), vote, wal)
                _log.warning("%s: sink %s had lost the commit, and shows it again: %s", epoch, name, publication)
        except (InvalidPipeline, TargetChanged, WalCorrupt) as error:
            _log.warning("%s: sink %s doesn't show what was published there: %s", epoch, name, error)


def _require_no_rows(sink: OpenSink, epoch: Epoch, wal: SealedOutputs) -> None:
    """Raise `LedgerConflict` if the target shows rows of the epoch without its marker, as a compaction in between
    leaves them: publishing again would double them."""
    for output in wal:
        if rows := sum(batch.num_rows for batch in sink.read(epoch.id, output.output, output.schema)):
            raise LedgerConflict(
                f"{epoch}: sink {sink.name} has lost the epoch's commit, which another writer has replaced, and "
                f"still shows {rows} rows of it: publishing it again would double them. Its WAL is kept. Delete the "
                f"rows that have the number {epoch.id} in the epoch column from the table, then clear `cleanup`"
            )


def _clean(runtime: Runtime, epoch: Epoch, wal: str, role: Role) -> Epoch:
    _require_shown_still(runtime, epoch)
    _tell_sources(runtime, epoch)
    deployment = runtime.ledger.deployment()
    if epoch.interval is None:  # a marker has the interval, and nobody else where a number's range ends
        reach(CrashPoint.CLEANUP_BEFORE_ARCHIVE)
        runtime.staging.keep_plan(deployment, epoch.pipeline, epoch.id, epoch.plan.to_json())
    reach(CrashPoint.CLEANUP_BEFORE_ARCHIVE)
    rows = epoch.restaged.wal if epoch.restaged else wal
    runtime.staging.archive(_kept_manifest(runtime, epoch, wal), deployment, epoch.pipeline, epoch.id, rows)
    reach(CrashPoint.CLEANUP_AFTER_ARCHIVE)
    sweep_homes(runtime, epoch)
    found = find_wal_to_keep(runtime, epoch)
    reach(CrashPoint.CLEANUP_BEFORE_CHOICE)
    chosen = runtime.ledger.decide_retention(epoch, role, found)  # two may differ: whoever was first is right
    reach(CrashPoint.CLEANUP_AFTER_CHOICE)
    if chosen is None:
        return runtime.ledger.epoch(epoch.pipeline, epoch.id)
    stays = chosen.wal if chosen.expired_at is None else None
    runtime.staging.discard_epoch(deployment, epoch.pipeline, epoch.id, exclude=stays)
    release_state(runtime, epoch)
    reach(CrashPoint.CLEANUP_BEFORE_RECORD)
    epoch = runtime.ledger.record_cleanup(epoch, role)
    reach(CrashPoint.CLEANUP_AFTER_RECORD)
    _log.info("%s is %s", epoch, epoch.state)
    _expire_older(runtime, role)
    return epoch


def _expire_older(runtime: Runtime, role: Role) -> None:
    """The epoch is cleaned up, whatever becomes of those before it."""
    try:
        expire_wals(runtime, role)
    except LockstepError as error:
        _log.warning("pipeline %s: WALs that are due stay until recovery deletes them: %s", runtime.pipeline, error)

"""verify: read an epoch's rows back from its sinks and compare them with what was sealed.

The ledger keeps what was found, see `lockstep.ledger.report.PipelineStatus.verified_through`; nothing else is changed.
Where newer rows replace older ones, fewer rows than sealed are no loss by themselves: as long as the WAL is there, each
sealed row is looked up by its key. Afterwards the table's keys are counted against what its epochs have brought.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lockstep.epoch import Epoch, Participant
from lockstep.errors import LedgerRefused, LockstepError, TargetChanged, TargetUnreadable, WalCorrupt
from lockstep.observability.redaction import describe_raised
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.wording import may_be_incomplete
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, Presence, Publication
from lockstep.states import DECIDED, FINISHED, EpochState, ParticipantState
from lockstep.wal.digest import digest_batches
from lockstep.wal.manifest import Manifest, OutputManifest

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verification:
    """Comparison of one output of one epoch in one sink. `problem` None: rows and digest agree with the sealed WAL,
    except for what `note` says can't be compared. `overwritten`: sealed rows that newer ones replaced. `conclusive`
    False: not everything was compared, so the result proves nothing. `presence`: for a table that adopted the files;
    None if unknown."""

    epoch: int
    sink: str
    output: str
    rows_sealed: int
    rows_shown: int | None
    digest_sealed: str
    digest_shown: str | None
    problem: str | None
    note: str | None = None
    overwritten: int = 0
    conclusive: bool = True
    presence: Presence | None = None

    @property
    def agrees(self) -> bool:
        return self.problem is None

    @property
    def compared(self) -> bool:
        """True if the target's rows were read."""
        return self.rows_shown is not None


def verify(runtime: Runtime, epoch: Epoch) -> list[Verification]:
    """Compare every sink of a decided epoch with its manifest, and have the ledger keep what is proven and what isn't;
    an undecided epoch has nothing to verify.

    Raises `WalCorrupt` if the kept manifest isn't what the ledger knows, `EpochHeld` for one that its audits hold.
    """
    if epoch.state not in DECIDED:
        runtime.ledger.require_not_held(epoch)
        return []
    verifications = unless_superseded(partial(_verify, runtime, epoch), partial(_verify_anew, runtime, epoch))
    if all(verification.agrees for verification in verifications):
        return verifications
    return _verify_anew(runtime, epoch) or verifications


def _verify_anew(runtime: Runtime, epoch: Epoch) -> list[Verification] | None:
    """Verify again if the epoch was published, cleaned up or replaced meanwhile."""
    current = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    return verify(runtime, current) if current.state is not epoch.state else None


def _verify(runtime: Runtime, epoch: Epoch) -> list[Verification]:
    manifest = read_manifest(runtime, epoch)
    participants = runtime.ledger.participants(epoch.pipeline, epoch.id)
    successor = runtime.ledger.successor(epoch) if epoch.state is EpochState.REPLACED else None
    swapped = runtime.ledger.participants(epoch.pipeline, successor.id) if successor else {}
    verifications: list[Verification] = []
    for name, participant in participants.items():
        with runtime.opened(runtime.sink_of(epoch, name)) as sink:
            published = _is_published(swapped.get(name, participant))
            if successor is None:
                compared = list(_verify_sink(runtime, epoch, sink, manifest, participant))
            else:
                compared = list(_verify_replaced(epoch, sink, manifest, successor, published))
        if published:
            _record(runtime, epoch, name, compared)
        verifications.extend(compared)
    return verifications


def _record(runtime: Runtime, epoch: Epoch, sink: str, compared: list[Verification]) -> None:
    """Record the result for the sink: a problem with any output is the sink's; it is verified if every output is."""
    problems = [
        f"output {verification.output}: {verification.problem}"
        for verification in compared
        if verification.problem and verification.conclusive
    ]
    if not problems and not all(verification.conclusive for verification in compared):
        return
    try:
        runtime.ledger.record_comparison(epoch, sink, "; ".join(problems) or None)
    except LedgerRefused as refused:  # who may only read may look, too
        _log.warning("%s: what was found in %s isn't kept: %s", epoch, sink, refused)


def _is_published(participant: Participant) -> bool:
    return participant.state is ParticipantState.PUBLISHED


def _verify_replaced(
    epoch: Epoch, sink: OpenSink, manifest: Manifest, successor: Epoch, swapped: bool
) -> Iterator[Verification]:
    """Check that the sink has no rows of a replaced epoch once it shows the replacement, unless it can't remove
    rows."""
    for output in sink.outputs:
        sealed = manifest.outputs[output]
        rows, digest, problem, conclusive = None, None, None, True
        note = f"replaced by epoch {successor.id}"
        try:
            remaining = digest_batches(sealed.schema, sink.read_remaining(epoch.id, output, sealed.schema))
            rows, digest = remaining.rows, remaining.hexdigest()
        except TargetUnreadable:
            note, conclusive = f"{note}; the target can't be read back", False
        except Exception as error:
            problem, conclusive = f"can't be read back: {_describe(error)}", False
        if sink.keeps_replaced:
            stay = "rows of keys that one lacks stay" if sink.replaces else "its rows stay, those of that one name it"
            note = f"{note}; {stay}"
        elif rows and swapped:
            problem = f"shows {rows} rows still, and epoch {successor.id} beside them, which has taken their place"
        counts = (sealed.rows, rows, sealed.digest, digest)
        yield Verification(epoch.id, sink.name, output, *counts, problem, note, conclusive=conclusive)


def read_manifest(runtime: Runtime, epoch: Epoch) -> Manifest:
    """The manifest that the ledger decided: in the WAL, or kept beside it after cleanup."""
    if epoch.state not in FINISHED:
        return open_wal(runtime.staging, epoch).manifest
    archived = partial(runtime.staging.kept_manifest, runtime.ledger.deployment(), epoch.pipeline, epoch.id)
    try:
        return archived(epoch.manifest_hash or "")
    except WalCorrupt:
        if epoch.restaged is None:
            raise
        return archived(epoch.restaged.manifest_hash)


def _verify_sink(
    runtime: Runtime, epoch: Epoch, sink: OpenSink, manifest: Manifest, participant: Participant
) -> Iterator[Verification]:
    published = _is_published(participant)
    for output in sink.outputs:
        sealed = manifest.outputs[output]
        rows, digest, problem, note, overwritten, conclusive = None, None, None, None, 0, True
        incomplete = False
        try:
            rows, digest = _read(sink, epoch.id, output, sealed.schema)
        except TargetUnreadable:
            problem, conclusive = _unrecorded(epoch, sink, participant)
            note = "the target can't be read back"
        except Exception as error:  # whatever it is, the other outputs and sinks are compared
            problem, conclusive = f"can't be read back: {_describe(error)}", False
            incomplete = isinstance(error, TargetChanged)
        if rows is not None and (rows, digest) != (sealed.rows, sealed.digest):
            problem = f"shows {rows} rows with digest {digest}, the WAL had {sealed.rows} with {sealed.digest}"
            if sink.replaces and published and rows < sealed.rows:
                problem, note, overwritten, conclusive = _verify_by_key(runtime, epoch, sink, sealed, rows)
        if problem and not published:
            problem = f"not published yet: {problem}"
        counts = (sealed.rows, rows, sealed.digest, digest)
        incomplete = incomplete or (rows is not None and rows < sealed.rows)
        presence = (
            _presence(sink, epoch, sealed, whole=not incomplete) if published and (incomplete or not problem) else None
        )
        yield Verification(epoch.id, sink.name, output, *counts, problem, note, overwritten, conclusive, presence)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, LockstepError) else describe_raised(error)


def _presence(sink: OpenSink, epoch: Epoch, sealed: OutputManifest, *, whole: bool) -> Presence | None:
    try:
        return sink.presence(epoch.id, sum(file.rows > 0 for file in sealed.files), whole=whole)
    except LockstepError as error:
        _log.info("%s: how sink %s has its rows can't be told: %s", epoch, sink.name, error)
        return None


def _verify_by_key(
    runtime: Runtime, epoch: Epoch, sink: OpenSink, sealed: OutputManifest, rows: int
) -> tuple[str | None, str | None, int, bool]:
    """Problem, note, number of replaced rows and whether that is all, of an output that shows fewer rows than were
    sealed."""
    if epoch.state is EpochState.CLEANED:
        return _verify_by_count(sink, sealed.name, sealed.rows - rows)
    [batches] = open_wal(runtime.staging, epoch).outputs([sealed.name])
    try:
        status = sink.standing(runtime.sink_epoch(epoch, 0), batches)
    except LockstepError as error:
        return f"its keys can't be looked up: {error}", None, 0, False
    note = f"{status.overwritten} rows overwritten since"
    if status.missing or status.changed:
        problem = f"{status.missing} keys are gone or have an older row, {status.changed} rows have other content"
        return problem, note, status.overwritten, True
    return None, note, status.overwritten, True


def _verify_by_count(sink: OpenSink, output: str, overwritten: int) -> tuple[str | None, str, int, bool]:
    """Like `_verify_by_key`, without the WAL: `overwritten` rows don't belong to the epoch any more."""
    note = f"{overwritten} rows overwritten since"
    try:
        missing = sink.missing_keys(output)
    except LockstepError as error:
        return f"the table's keys can't be counted: {error}", note, overwritten, False
    if missing is None:
        return None, f"{note} (the WAL is gone: not looked up by key)", overwritten, False
    if missing:
        return f"the table lacks {missing} keys that this or other epochs brought", f"at most {note}", overwritten, True
    return None, f"{note}; the table has every key that its epochs brought", overwritten, True


def _unrecorded(epoch: Epoch, sink: OpenSink, participant: Participant) -> tuple[str | None, bool]:
    """Why an unreadable target lacks the epoch by the record of what was sent, and whether the record is conclusive."""
    if sink.guarantee is Guarantee.NONE:
        return None if _is_published(participant) else "guarantee none keeps no record of what was sent", False
    try:
        marker = sink.find_marker(epoch.id)
    except LockstepError as error:
        return f"the record of what was sent can't be read: {error}", False
    if marker is None:  # a person's word leaves no record
        word = participant.publication == Publication.RESOLVED
        return (None, False) if word else ("it is not recorded as sent", True)
    if marker.manifest_hash != epoch.manifest_hash:
        return f"manifest {marker.manifest_hash[:12]} is recorded as sent, which isn't the decided one", True
    if not marker.whole:
        return may_be_incomplete(epoch.id, sink.name), True
    return None, True


def _read(sink: OpenSink, epoch: int, output: str, schema: pa.Schema) -> tuple[int, str]:
    digest = digest_batches(schema, sink.read(epoch, output, schema))
    return digest.rows, digest.hexdigest()

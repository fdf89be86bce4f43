"""verify: read an epoch's rows back from its sinks and compare them with what was sealed. Changes nothing.

Where newer rows replace older ones, fewer rows than sealed are no loss by themselves: as long as the WAL is there, each
sealed row is looked up by its key. Afterwards the table's keys are counted against what its epochs have brought.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lockstep.epoch import Epoch
from lockstep.errors import LockstepError, TargetUnreadable, WalCorrupt
from lockstep.runtime import Runtime, open_wal
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee
from lockstep.states import DECIDED, EpochState, ParticipantState
from lockstep.steps.alarms import confirm_alarm
from lockstep.wal.digest import digest_batches
from lockstep.wal.manifest import Manifest, OutputManifest


@dataclass(frozen=True)
class Verification:
    """One output of one epoch in one sink. `problem` None: rows and digest agree with the sealed WAL, as far as `note`
    doesn't say that nobody can compare them. `overwritten`: sealed rows that newer ones have replaced."""

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

    @property
    def agrees(self) -> bool:
        return self.problem is None

    @property
    def compared(self) -> bool:
        """Whether the target's rows were read."""
        return self.rows_shown is not None


def verify(runtime: Runtime, epoch: Epoch) -> list[Verification]:
    """Compare every sink of a decided epoch with its manifest; an undecided epoch has nothing to verify.

    Raises `WalCorrupt` if the kept manifest isn't what the ledger knows.
    """
    if epoch.state not in DECIDED:
        return []
    return confirm_alarm(partial(_verify, runtime, epoch), partial(_verify_anew, runtime, epoch))


def _verify_anew(runtime: Runtime, epoch: Epoch) -> list[Verification] | None:
    """If the epoch was published or cleaned up meanwhile."""
    found = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    return verify(runtime, found) if found.state is not epoch.state else None


def _verify(runtime: Runtime, epoch: Epoch) -> list[Verification]:
    manifest = read_manifest(runtime, epoch)
    participants = runtime.ledger.participants(epoch.pipeline, epoch.id)
    found: list[Verification] = []
    for name, participant in participants.items():
        with runtime.opened(runtime.sink_of(epoch, name)) as sink:
            shown = participant.state is ParticipantState.PUBLISHED
            found.extend(_verify_sink(runtime, epoch, sink, manifest, shown))
    return found


def read_manifest(runtime: Runtime, epoch: Epoch) -> Manifest:
    """The manifest that the ledger decided: in the WAL, or kept beside it after cleanup."""
    if epoch.state is not EpochState.CLEANED:
        return open_wal(runtime.staging, epoch).manifest
    kept = partial(runtime.staging.kept_manifest, runtime.ledger.deployment(), epoch.pipeline, epoch.id)
    try:
        return kept(epoch.manifest_hash or "")
    except WalCorrupt:
        if epoch.restaged is None:
            raise
        return kept(epoch.restaged.manifest_hash)


def _verify_sink(
    runtime: Runtime, epoch: Epoch, sink: OpenSink, manifest: Manifest, published: bool
) -> Iterator[Verification]:
    for output in sink.outputs:
        sealed = manifest.outputs[output]
        rows, digest, problem, note, overwritten = None, None, None, None, 0
        try:
            rows, digest = _read(sink, epoch.id, output, sealed.schema)
        except TargetUnreadable:
            problem = _unrecorded(epoch, sink, published)
            note = "the target can't be read back"
        except LockstepError as error:
            problem = f"can't be read back: {error}"
        if rows is not None and (rows, digest) != (sealed.rows, sealed.digest):
            problem = f"shows {rows} rows with digest {digest}, the WAL had {sealed.rows} with {sealed.digest}"
            if sink.replaces and published and rows < sealed.rows:
                problem, note, overwritten = _verify_by_key(runtime, epoch, sink, sealed, rows)
        if problem and not published:
            problem = f"not published yet: {problem}"
        counts = (sealed.rows, rows, sealed.digest, digest)
        yield Verification(epoch.id, sink.name, output, *counts, problem, note, overwritten)


def _verify_by_key(
    runtime: Runtime, epoch: Epoch, sink: OpenSink, sealed: OutputManifest, rows: int
) -> tuple[str | None, str | None, int]:
    """Problem, note and number of replaced rows, of an output that shows fewer rows than were sealed."""
    if epoch.state is EpochState.CLEANED:
        return _verify_by_count(sink, sealed.name, sealed.rows - rows)
    [batches] = open_wal(runtime.staging, epoch).outputs([sealed.name])
    try:
        found = sink.standing(runtime.sink_epoch(epoch, 0), batches)
    except LockstepError as error:
        return f"its keys can't be looked up: {error}", None, 0
    note = f"{found.overwritten} rows overwritten since"
    if found.missing or found.changed:
        problem = f"{found.missing} keys are gone or have an older row, {found.changed} rows have other content"
        return problem, note, found.overwritten
    return None, note, found.overwritten


def _verify_by_count(sink: OpenSink, output: str, others: int) -> tuple[str | None, str, int]:
    """As `_replaced`, without the WAL: `others` rows aren't the epoch's own any more."""
    told = f"{others} rows overwritten since"
    try:
        missing = sink.missing_keys(output)
    except LockstepError as error:
        return f"the table's keys can't be counted: {error}", told, others
    if missing is None:
        return None, f"{told} (the WAL is gone: not looked up by key)", others
    if missing:
        return f"the table lacks {missing} keys that this or other epochs brought", f"at most {told}", others
    return None, f"{told}; the table has every key that its epochs brought", others


def _unrecorded(epoch: Epoch, sink: OpenSink, published: bool) -> str | None:
    """Why a target that can't be read doesn't have the epoch, as far as the record of what was sent can tell."""
    if sink.guarantee is Guarantee.NONE:
        return None if published else "guarantee none keeps no record of what was sent"
    try:
        marker = sink.find_marker(epoch.id)
    except LockstepError as error:
        return f"the record of what was sent can't be read: {error}"
    if marker is None:
        return "it is not recorded as sent"
    if marker.manifest_hash != epoch.manifest_hash:
        return f"manifest {marker.manifest_hash[:12]} is recorded as sent, which isn't the decided one"
    return None


def _read(sink: OpenSink, epoch: int, output: str, schema: pa.Schema) -> tuple[int, str]:
    digest = digest_batches(schema, sink.read(epoch, output, schema))
    return digest.rows, digest.hexdigest()

"""A sink that is connected to its target, and the marker that proves publication.

Three templates implement it: `TwoPhaseCommitSink` writes the data before the decision, `WriteAheadSink` sends it after
the decision, and with `AdoptingSink` the sealed files become files of the table. Lockstep drives all of them by
`prepare` and `publish`. Each proves publication by a marker whose key is (deployment, pipeline, sink, epoch), never the
attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Protocol

import pyarrow as pa

from lockstep.epoch import Vote
from lockstep.errors import LedgerConflict, PreflightRefused, TargetChanged, TargetUnreadable
from lockstep.sinks.values import (
    Batches,
    EpochCut,
    Guarantee,
    Marker,
    Presence,
    Publication,
    ReadCut,
    Replaced,
    RowStatus,
    SinkEpoch,
    Txn,
)


class Described(Protocol):
    """The part of its description, a `lockstep.sinks.base.Sink`, that an open sink uses."""

    @property
    def name(self) -> str: ...

    @property
    def output(self) -> str: ...

    @property
    def outputs(self) -> tuple[str, ...]: ...

    @property
    def guarantee(self) -> str: ...

    @property
    def replaces(self) -> bool: ...

    @property
    def numbers_rows(self) -> bool: ...

    @property
    def shards(self) -> int: ...


class OpenSink(ABC):
    """One process's connection to a target, as `Sink.open` returns it. Subclass one of the templates, not this class.

    Lockstep calls, for an epoch: `preflight(None)` when it begins; `preflight(schemas)`, `refuse_shown` and `prepare`
    once the WAL is sealed; `publish` after the decision. These run in different processes, and each may run several
    times or end halfway, so keep no state of an epoch on the object. `pending` and `abort` serve recovery, the rest
    serves verification. `close` comes last, also after errors.
    """

    name: str  #: the sink's
    serves_many: ClassVar[bool] = False  #: True if one connection may serve several epochs, one after the other
    #: set by `preflight` if the target limits pending transactions: (server, its limit for all of them); None: no limit
    room: tuple[str, int] | None = None

    def __init__(self, sink: Described) -> None:
        self.sink, self.name = sink, sink.name

    # --- as described ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.sink.outputs

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.sink.guarantee)

    @property
    def replaces(self) -> bool:
        return self.sink.replaces

    @property
    def numbers_rows(self) -> bool:
        return self.sink.numbers_rows

    @property
    def keeps_replaced(self) -> bool:
        """True if the rows of an epoch stay readable after another epoch has replaced it."""
        return False

    @property
    def needs_turn(self) -> bool:
        """True if the rows of another epoch, validated at the same time, could make the target refuse this one's after
        the decision. Epochs of the pipeline then go one at a time from `prepare` to publication. Known after a
        `preflight` with schemas."""
        return False

    # --- life cycle ---

    def close(self) -> None:  # noqa: B027 - some connect for each step
        """Close every connection; called also after errors."""

    @abstractmethod
    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        """Refuse what the target can't take, before any row is written; claim the target; create what is missing.

        Called when an epoch begins with None (check settings, ownership, capacity), and before `prepare` with the Arrow
        schema of each output (check tables, columns, types). Use short transactions of its own. It may run many times
        and next to other processes. Raises `PreflightRefused`, `TargetOwned`, and `TargetFull` if waiting may help.
        """

    def require_replaceable(self) -> None:
        """Raise `PreflightRefused` unless an epoch can replace a published one so that readers see the rows of either
        the old or the new one. Called after `preflight`, before anything of the new epoch is planned. Writes nothing.
        """
        raise PreflightRefused(f"sink {self.name}: a {type(self.sink).__name__} can't take back what it has shown")

    def disclaim(self) -> None:  # noqa: B027 - most targets have no owner
        """Give up ownership of the target. Called when a pipeline is forgotten that never published there. Do nothing
        if the target isn't owned."""

    # --- the two calls of the roles ---

    @abstractmethod
    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Do everything that can fail, without showing any row, and return the vote.

        Called once the WAL is sealed, before the decision; a retry has a larger token. `wal` has one `Batches` for each
        of the sink's outputs. After the vote `publish` must be able to succeed in any process. Raises `SinkRejected`
        for rows the target can't take, `SinkUnavailable`.
        """

    @abstractmethod
    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        """Make the decided epoch visible. Idempotent; any process may call it, several at once.

        Never called before the decision. The classic mistake is to return before the rows are durable. Raises
        `TargetChanged`, `LedgerConflict`, `OutcomeUnknown`, and `Retryable` errors if it has to be tried again.
        """

    def publish_shard(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches], shard: int) -> Publication | None:
        """Make one shard of the decided epoch visible. Idempotent; other processes may publish this shard, other ones
        or the entire epoch at the same time. None: the shard is left to `publish`, as by every sink that sends an epoch
        at once. Raises as `publish` does."""
        return None

    # --- recovery and verification ---

    @abstractmethod
    def pending(self) -> list[Txn]:
        """Return every unfinished transaction of this deployment, pipeline and sink, and no foreign one.

        The classic mistake is to match by prefix: pipeline `pipe` must not list transactions of `pipe2`.
        """

    @abstractmethod
    def abort(self, txn: Txn) -> None:
        """Roll `txn` back; return if it is gone. Called for transactions that the ledger has not decided, never for a
        decided one."""

    @abstractmethod
    def find_marker(self, epoch: int) -> Marker | None:
        """Return the epoch's marker, read in a new transaction on the primary: a replica may lag behind."""

    def find_any_marker(self, epoch: int) -> Marker | None:
        """Return a marker that proves that the epoch was decided: its marker, or one of its parts. Doesn't wait for
        open transactions."""
        return self.find_marker(epoch)

    def find_marker_of_span(self, span: str) -> Marker | None:
        """Return the marker of a range (`SinkEpoch.span`), under any epoch number; read as by `find_marker`."""
        return None

    def newest_markers(self) -> list[Marker]:
        """Return this sink's marker with the largest epoch and, if that is cheap, the one with the largest token."""
        return []

    def warnings(self) -> list[str]:
        """Return what endangers the target, one sentence each; shown by `lockstep doctor`."""
        return []

    def markers(self) -> Iterable[Marker]:
        """Return every marker of this sink; for listings and for rebuilding the ledger."""
        return self.newest_markers()

    def markers_of_other_sinks(self) -> list[tuple[str, Marker]]:
        """Return (sink name, marker) of the pipeline's other sinks in the same tables, such as a former name of this
        sink."""
        return []

    def can_complete(self, epoch: int) -> bool:
        """Return True if the target shows a part of the epoch and records enough for `publish` to complete it by any
        vote."""
        return False

    @abstractmethod
    def target_id(self) -> str:
        """Return the random id that is stored with the markers. It shows whether this target is the one that voted."""

    @abstractmethod
    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the visible rows of one epoch, cast to `schema`, the WAL's; for `lockstep verify`.

        Raises `PreflightRefused` if the target doesn't record which epoch a row belongs to (no epoch column).
        """

    def read_remaining(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield those rows of a replaced epoch that readers still see; otherwise like `read`."""
        return self.read(epoch, output, schema)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """Look up every sealed row of an epoch by its key; called only if `replaces` is true. Writes nothing."""
        raise NotImplementedError

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """Return how to read exactly these epochs from each output's target. Raises `TargetUnreadable` if that is
        impossible."""
        raise TargetUnreadable(f"sink {self.name}: what it writes to can't be read as of an epoch")

    def presence(self, epoch: int, files: int, *, whole: bool) -> Presence | None:
        """Return how the rows of a published epoch are present in the table. `files`: the number of its sealed files
        that have rows; `whole`: True if every row was found. None if the target doesn't consist of sealed files."""
        return None

    def missing_keys(self, output: str) -> int | None:
        """Return the number of keys that epochs have written and that are gone; None if it isn't counted."""
        return None

    def _require_target(self, vote: Vote) -> None:
        """Raise `TargetChanged` unless the connection leads to the target that voted."""
        target_id = self.target_id()
        if target_id != vote.target_id:
            raise TargetChanged(
                f"sink {self.name}: the connection leads to target {target_id}, but target {vote.target_id} voted; "
                "point the connection back, nothing was written"
            )

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        """Raise `LedgerConflict` if the target shows this epoch with another manifest, or its range under another
        number. Called before the vote."""
        marker = self._find_own(epoch)
        if marker is not None and marker.manifest_hash != epoch.manifest_hash:
            raise shown_before(self.name, epoch, marker)

    def has_shown(self, epoch: SinkEpoch) -> bool:
        """Return True if the epoch's marker is found. Doesn't wait for open transactions."""
        return self._proof(epoch) is not None

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        return self._require_ledger_manifest(epoch, self._find_own(epoch))

    def _require_ledger_manifest(self, epoch: SinkEpoch, marker: Marker | None) -> Marker | None:
        if marker and marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} carries the marker of manifest {marker.manifest_hash[:12]}, the "
                f"ledger has {epoch.manifest_hash[:12]}: the target holds other data under this epoch's number"
            )
        return marker

    def _require_shown(self, replaced: Replaced, marker: Marker | None, epoch: SinkEpoch) -> Marker | None:
        """Return the marker of an epoch that `epoch` replaces; None if the target is known to lack it. Raises
        `LedgerConflict` unless it has the decided manifest."""
        if marker is None and replaced.id in epoch.lacking:
            return None
        if marker is None or marker.manifest_hash != replaced.manifest_hash:
            held_marker = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker"
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} is to take the place of epoch {replaced.id}, of manifest "
                f"{replaced.manifest_hash[:12]}, of which the target holds {held_marker}: was it restored from a "
                "backup?"
            )
        return marker

    def _removed_epochs(
        self, epoch: SinkEpoch, find: Callable[[int], Marker | None]
    ) -> list[tuple[Replaced, Marker | None]]:
        """Return the epochs whose rows are removed when the decided `epoch` is shown, each with its marker. Raises
        `LedgerConflict` for one that the target shows with another manifest.

        A target that was restored to before a replaced epoch has neither its marker nor its rows, so publishing can go
        on. It may show earlier generations again, which are then removed, too.
        """
        removed = [(replaced, find(replaced.id)) for replaced in epoch.replaced]
        if any(marker is None for _, marker in removed):
            removed += [(earlier, find(earlier.id)) for earlier in epoch.earlier]
        for replaced, marker in removed:
            if marker is not None:
                self._require_shown(replaced, marker, epoch)
        return removed

    def _find_own(self, epoch: SinkEpoch) -> Marker | None:
        """Return the epoch's marker. Raises `LedgerConflict` if its range, or a later generation of the range, is shown
        under another number; the error names the latest of them."""
        marker = self.find_marker(epoch.id)
        if marker is None and epoch.span is not None:
            range_marker, later = self.find_marker_of_span(epoch.span), epoch
            while epoch.interval is not None:  # another ledger may have restated it; for cursors see `find_foreign`
                later = replace(later, generation=later.generation + 1)
                younger = self.find_marker_of_span(later.span or "")
                if younger is None:
                    break
                range_marker = younger
            if range_marker is not None and range_marker.epoch != epoch.id:
                raise shown_before(self.name, epoch, range_marker)
        return marker


def shown_before(sink: str, epoch: SinkEpoch, marker: Marker) -> LedgerConflict:
    """Return the error for a target that shows an epoch's number, or its range, as published by another ledger."""
    asked_for = f"epoch {epoch.id}{f' of {epoch.span}' if epoch.span else ''}"
    target_has = f"epoch {marker.epoch}{f' of {marker.span}' if marker.span else ''}"
    way = (
        "if they are to be written anew, delete the rows and their marker by hand, in a database with its row of "
        "lockstep_range, in a folder with its .lockstep/span=….json"
    )
    if marker.span is None or marker.span.startswith(epoch.span or " "):
        way = f"if all its rows are there, in every sink, give it up: lockstep void … {epoch.id} --reason …; {way}"
    if epoch.generation:
        way = (
            f"give it up (lockstep void … {epoch.id} --reason …), and restate the range anew, in the place of that, too"
        )
    return LedgerConflict(
        f"sink {sink}: {asked_for} can't be taken, the target shows {target_has} (token {marker.token}, manifest "
        f"{marker.manifest_hash[:12] or 'unknown'}), published by a ledger that this one has no record of: {way}"
    )

"""A sink that is connected, and the one marker that proves publication.

There are two templates, as in Flink: `TwoPhaseCommitSink` (Flink's TwoPhaseCommitSinkFunction) has the data in the sink
before the decision, `WriteAheadSink` (GenericWriteAheadSink) sends it after; and a third, `AdoptingSink`, for tables of
which the sealed files become a part. All are driven by the same two calls of the roles, `prepare` and `publish`, and
prove publication by a marker whose key is (deployment, pipeline, sink, epoch), never the attempt.
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
    """What an open sink knows of its description, a `lockstep.sinks.base.Sink`."""

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
    """What `Sink.open` returns: one process' connection to a target. Subclass one of the two templates, not this."""

    name: str  #: the sink's
    serves_many: ClassVar[bool] = False  #: whether one opening may serve several epochs, one after the other
    #: after `preflight`: the server that holds what is prepared, and how many transactions of all; None: of any number
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
        """Whether what an epoch has sent stays, and can be read, when another one takes its place."""
        return False

    @property
    def needs_turn(self) -> bool:
        """Whether another epoch's rows, validated at the same time, could make the target refuse this one's after the
        decision. Then one epoch of the pipeline at a time goes from `prepare` to its publication. Known after a
        `preflight` with schemas."""
        return False

    # --- life cycle ---

    def close(self) -> None:  # noqa: B027 - some connect for each step
        """Let go of every connection; called also after errors."""

    @abstractmethod
    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        """Refuse what the target can't keep, before any row is written; claim the target; create what is missing.

        Called at `begin` with None (settings, ownership, room) and at `prepare` with the Arrow schema of each output
        (tables, columns, types). Works in short transactions of its own. Raises `PreflightRefused`, `TargetOwned`, and
        `TargetFull` where waiting may help.
        """

    def require_replaceable(self) -> None:
        """Whether an epoch can take the place of one that the target shows, so that readers see the rows of one or of
        the other. Asked after `preflight`, before anything of such an epoch is planned or computed; changes nothing.
        Raises `PreflightRefused`, and says why."""
        raise PreflightRefused(f"sink {self.name}: a {type(self.sink).__name__} can't take back what it has shown")

    def disclaim(self) -> None:  # noqa: B027 - most targets belong to nobody
        """Own the target no longer: the pipeline is forgotten, and never showed a row there. Fine where nothing is
        owned."""

    # --- the two calls of the roles ---

    @abstractmethod
    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Take part without showing anything; return the vote. Raises `SinkRejected`, `SinkUnavailable`."""

    @abstractmethod
    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        """Make the decided epoch visible; idempotent, by anyone. Raises `TargetChanged`, `LedgerConflict`,
        `OutcomeUnknown`, and `Retryable` errors when it has to be tried again."""

    def publish_shard(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches], shard: int) -> Publication | None:
        """Make one shard of the decided epoch visible: idempotent, by anyone, beside others who do the same with other
        shards, with this one, or with all by `publish`. None: it is left to that, as everything is by a sink that sends
        an epoch at once. Raises as `publish` does."""
        return None

    # --- recovery and verification ---

    @abstractmethod
    def pending(self) -> list[Txn]:
        """Every unfinished transaction of this deployment, pipeline and sink: nothing foreign, whole names parsed."""

    @abstractmethod
    def abort(self, txn: Txn) -> None:
        """Roll `txn` back; fine when it is gone. The caller has asked the ledger first."""

    @abstractmethod
    def find_marker(self, epoch: int) -> Marker | None:
        """The epoch's marker, read in a new transaction on the primary."""

    def find_any_marker(self, epoch: int) -> Marker | None:
        """What proves that the epoch was decided: its marker, or one of several that it takes; as far as that can be
        told without waiting for anybody."""
        return self.find_marker(epoch)

    def find_marker_of_span(self, span: str) -> Marker | None:
        """The marker of a range, whatever number its epoch has; read as `find_marker` does."""
        return None

    def newest_markers(self) -> list[Marker]:
        """Of this sink's markers the one with the largest epoch and, where that is quick, with the largest token."""
        return []

    def warnings(self) -> list[str]:
        """What endangers the target, a sentence each; for `doctor`."""
        return []

    def markers(self) -> Iterable[Marker]:
        """Every marker of this sink; for a person who looks what a target knows."""
        return self.newest_markers()

    def markers_beside(self) -> list[tuple[str, Marker]]:
        """Every marker of the pipeline's other sinks in the same tables, with the sink's name, a former one of this
        sink, say."""
        return []

    def tells_rest(self, epoch: int) -> bool:
        """Of an epoch that the target shows in part: whether what stands there says how much is missing, so that
        `publish` goes on with that by whatever vote."""
        return False

    @abstractmethod
    def target_id(self) -> str:
        """The random id stored beside the markers: tells whether this is the target that voted."""

    @abstractmethod
    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The target's visible rows of one epoch, cast to the WAL's schema; for `verify`.

        Raises `PreflightRefused` when the target can't tell epochs apart (no epoch column).
        """

    def read_left(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """As `read`, of an epoch that was replaced: those of its rows that readers see all the same."""
        return self.read(epoch, output, schema)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """Look for every sealed row of an epoch by its key; only for sinks that say `replaces`. Changes nothing."""
        raise NotImplementedError

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """What readers of each output's target ask for to see these epochs alone. Raises `TargetUnreadable` where they
        can't."""
        raise TargetUnreadable(f"sink {self.name}: what it writes to can't be read as of an epoch")

    def presence(self, epoch: int, files: int, *, whole: bool) -> Presence | None:
        """How the rows of a published epoch stand in the target: it was sealed as so many files that have rows, and
        `whole` says whether every row was found. None where the target isn't made of the epochs' files."""
        return None

    def missing_keys(self, output: str) -> int | None:
        """How many of the keys that any epoch has brought into the table are gone; None if nobody has counted them."""
        return None

    def _require_target(self, vote: Vote) -> None:
        found = self.target_id()
        if found != vote.target_id:
            raise TargetChanged(
                f"sink {self.name}: the connection leads to target {found}, but target {vote.target_id} voted; "
                "point the connection back, nothing was written"
            )

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        """Before the vote: raise `LedgerConflict` if the target shows this epoch as another manifest, or its range
        under another number."""
        shown = self._find_own(epoch)
        if shown is not None and shown.manifest_hash != epoch.manifest_hash:
            raise shown_before(self.name, epoch, shown)

    def has_shown(self, epoch: SinkEpoch) -> bool:
        """Whether the epoch's marker stands, as far as that can be told without waiting for anybody."""
        return self._proof(epoch) is not None

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        return self._require_decided(epoch, self._find_own(epoch))

    def _require_decided(self, epoch: SinkEpoch, marker: Marker | None) -> Marker | None:
        if marker and marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} carries the marker of manifest {marker.manifest_hash[:12]}, the "
                f"ledger has {epoch.manifest_hash[:12]}: the target holds another life of this epoch"
            )
        return marker

    def _require_shown(self, replaced: Replaced, marker: Marker | None, epoch: SinkEpoch) -> Marker | None:
        """The marker of an epoch whose place `epoch` takes; None if the target is known to lack it. Raises
        `LedgerConflict` unless it stands as decided."""
        if marker is None and replaced.id in epoch.lacking:
            return None
        if marker is None or marker.manifest_hash != replaced.manifest_hash:
            found = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker"
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} is to take the place of epoch {replaced.id}, of manifest "
                f"{replaced.manifest_hash[:12]}, of which the target holds {found}: was it restored from a backup?"
            )
        return marker

    def _taken_away(
        self, epoch: SinkEpoch, find: Callable[[int], Marker | None]
    ) -> list[tuple[Replaced, Marker | None]]:
        """Whose rows go when `epoch`, which is decided, is shown, each with its marker. Raises `LedgerConflict` for one
        that the target shows by another word.

        A target that was restored to before a replaced epoch has neither its marker nor its rows: nothing but the epoch
        that takes its place is lacking there, so that goes on. It may show the lives before that one again.
        """
        found = [(one, find(one.id)) for one in epoch.replaced]
        if any(marker is None for _, marker in found):
            found += [(one, find(one.id)) for one in epoch.earlier]
        for one, marker in found:
            if marker is not None:
                self._require_shown(one, marker, epoch)
        return found

    def _find_own(self, epoch: SinkEpoch) -> Marker | None:
        """The epoch's marker. Raises `LedgerConflict` if its range, or a later generation of it, is shown under another
        number instead: with the youngest of them."""
        marker = self.find_marker(epoch.id)
        if marker is None and epoch.span is not None:
            shown, later = self.find_marker_of_span(epoch.span), epoch
            while epoch.interval is not None:  # another ledger may have restated it; of a cursor see `find_foreign`
                later = replace(later, generation=later.generation + 1)
                younger = self.find_marker_of_span(later.span or "")
                if younger is None:
                    break
                shown = younger
            if shown is not None and shown.epoch != epoch.id:
                raise shown_before(self.name, epoch, shown)
        return marker


def shown_before(sink: str, epoch: SinkEpoch, shown: Marker) -> LedgerConflict:
    """What to say where a target shows an epoch's number, or its range, by the word of another ledger."""
    asked = f"epoch {epoch.id}{f' of {epoch.span}' if epoch.span else ''}"
    there = f"epoch {shown.epoch}{f' of {shown.span}' if shown.span else ''}"
    way = (
        "if they are to be written anew, take away the rows and their marker by hand, in a database with its row of "
        "lockstep_range, in a folder with its .lockstep/span=….json"
    )
    if shown.span is None or shown.span.startswith(epoch.span or " "):
        way = f"if all its rows are there, in every sink, give it up: lockstep void … {epoch.id} --reason …; {way}"
    if epoch.generation:
        way = (
            f"give it up (lockstep void … {epoch.id} --reason …), and restate the range anew, in the place of that, too"
        )
    return LedgerConflict(
        f"sink {sink}: {asked} can't be taken, the target shows {there} (token {shown.token}, manifest "
        f"{shown.manifest_hash[:12] or 'unknown'}), by a ledger that this one has no memory of: {way}"
    )

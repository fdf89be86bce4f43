"""Template of sinks that adopt staged files: one conditional commit after the decision adds the sealed files to the
table.

A commit is based on the table version in which the marker was looked for, and carries files and marker together: it is
applied entirely, and only if nothing was committed since. So one commit is applied however many processes publish at
once. A commit without a response is resolved by the next one: either the marker exists, or the new commit changes the
version that the lost one requires.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBusy, SinkUnavailable, TargetChanged
from lockstep.sinks.open_sink import OpenSink, shown_before
from lockstep.sinks.values import Adoptable, Batches, Marker, Presence, Publication, Replaced, SinkEpoch, Txn

if TYPE_CHECKING:
    from lockstep.sinks.compacting import CompactingTable

_log = logging.getLogger(__name__)

#: the remedy when a table was changed after the decision
PUT_BACK = "put its old partitioning and columns back, let the epoch publish, then change it again"
TableVersion = TypeVar("TableVersion")  #: one immutable version of a table, as loaded


class CommitOutcome(StrEnum):
    """Outcome of a commit, as known to its sender."""

    APPLIED = "applied"
    CONFLICT = "conflict"  #: not applied, and never will be: the table had changed
    UNKNOWN = "unknown"  #: it may have been applied, or be applied later: there was no usable response


class AdoptingSink(OpenSink, Generic[TableVersion]):
    """Adds the sealed files of its one output to a table."""

    rounds: int = 50  #: commits per `publish`, before it raises `PublishBusy`
    unanswered: int = 5  #: commits with unknown outcome per `publish`, before it raises `SinkUnavailable`

    adds_columns: bool = False  #: whether the table lacked columns of the output at the last `preflight` with schemas

    @property
    def needs_turn(self) -> bool:
        """True if epochs must prepare one after another: two epochs may add the same column with different types or
        spellings."""
        return self.adds_columns

    # --- implemented by each table format ---

    @abstractmethod
    def load_head(self) -> TableVersion:
        """Load the newest version of the table, never from a cache: it includes every commit with a response.

        Raises `SinkUnavailable`, `TargetChanged` if the table doesn't exist.
        """

    @abstractmethod
    def target_of(self, head: TableVersion) -> str:
        """Unique id of the table, which a table recreated under the same name doesn't share."""

    @abstractmethod
    def marker_in(self, head: TableVersion, epoch: int) -> Marker | None:
        """The epoch's marker in this table version."""

    def marker_of_span_in(self, head: TableVersion, span: str) -> Marker | None:
        """The marker of an interval in this table version, whatever the number of its epoch."""
        return None

    def has_replaced(self, head: TableVersion, epoch: int) -> bool:
        """True if this table version shows an epoch that replaced this one, with or without a marker of it."""
        return False

    @abstractmethod
    def validate(self, head: TableVersion, epoch: SinkEpoch, output: Adoptable) -> None:
        """Check before commit that `adopt` will be able to add these files. Writes nothing.

        Files and schema have already been checked against the manifest. Raises `SinkRejected`, `PreflightRefused`.
        """

    def require_removable(self, head: TableVersion, epoch: SinkEpoch) -> None:
        """Check before commit that the rows of all epochs that `epoch` replaces can be removed from this table version,
        including older generations that reappeared through a rollback. Writes nothing.

        Raises `PreflightRefused`.
        """
        raise PreflightRefused(f"sink {self.name}: a {type(self.sink).__name__} can't remove published rows")

    @abstractmethod
    def adopt(self, head: TableVersion, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        """Send one commit with files and marker, conditional on `head`; the same commit removes the rows of
        `epoch.replaced` and `epoch.earlier`.

        Neither this method nor a library below it may send the commit twice, or delete a file, whatever the outcome. An
        exception is allowed only before anything was sent: then nothing is applied.
        """

    def last_failure(self) -> str | None:
        """Reason of the last `CommitOutcome.UNKNOWN`, as a sentence without secrets."""
        return None

    def compaction(self) -> CompactingTable[TableVersion] | None:
        """The compaction of the table's small files; None if the format doesn't support it."""
        return None

    def was_rolled_back(self, head: TableVersion, epoch: int) -> bool:
        """True if the table's history shows a rollback to a version before it got this published epoch."""
        return False

    def make_durable(self, head: TableVersion) -> None:
        """Return once the commits that led to `head` survive a power cut."""

    # --- prepare and publish ---

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        output = self._own(wal)
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        output.check()
        head = self.load_head()
        self.validate(head, epoch, output)
        for replaced in epoch.replaced:
            self._require_shown(replaced, self.marker_in(head, replaced.id), epoch)
        if epoch.replaced:
            self.require_removable(head, self._with_all_replaced(head, epoch))
        vote = Vote(epoch.token, None, self.target_of(head), {output.output: output.rows})
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        checked, may_be_own, unknown = False, False, 0  # may_be_own: a commit of this call may have written the marker
        for _ in range(self.rounds):
            head = self.load_head()
            if (target_id := self.target_of(head)) != vote.target_id:
                raise TargetChanged(
                    f"sink {self.name}: the table is {target_id} now, but {vote.target_id} voted: it was recreated, or "
                    "its path leads to another table; put the old one back, nothing was written"
                )
            marker = self._proof_in(head, epoch)
            if marker is not None:
                self.make_durable(head)
                return Publication.SENT if may_be_own and marker.token == epoch.token else Publication.FOUND
            if self.has_replaced(head, epoch.id):
                return Publication.FOUND  # a restored table shows its replacement, and never showed this epoch
            output = self._own(wal)
            if not checked:
                output.check_listed()
                checked = True
            request = self._with_all_replaced(head, epoch)
            reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
            outcome = self.adopt(head, request, output)
            reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
            if outcome is CommitOutcome.CONFLICT:
                _log.info("sink %s: epoch %s: the table changed since it was loaded", self.name, epoch.id)
            may_be_own = may_be_own or outcome is not CommitOutcome.CONFLICT
            unknown += outcome is CommitOutcome.UNKNOWN
            if unknown > self.unanswered:
                reason = f" (of the last: {failure})" if (failure := self.last_failure()) else ""
                raise SinkUnavailable(
                    f"sink {self.name}: epoch {epoch.id}: the outcome of {unknown} commits is unknown{reason}; publish "
                    "is retried, and nothing is adopted twice"
                )
            # an applied commit is looked for, too: the next round finds its marker and makes it durable
        raise PublishBusy(
            f"sink {self.name}: epoch {epoch.id} conflicted with other commits {self.rounds} times: another writer "
            "commits to the table without pause; publish is retried"
        )

    def _with_all_replaced(self, head: TableVersion, epoch: SinkEpoch) -> SinkEpoch:
        """`epoch` with every older epoch that may have rows in this table version.

        An epoch without a marker in this version has no rows in it. An epoch that was replaced may have rows again: a
        rollback keeps today's markers, but shows the files of the older version.
        """
        find = cache(partial(self.marker_in, head))
        markers = self._removed_epochs(epoch, find) if epoch.replaced else []
        replaced = tuple(old if marker else _without_rows(old) for old, marker in markers)
        replaced_ids = {old.id for old in replaced}
        earlier = [old for old in epoch.earlier if old.id not in replaced_ids]
        for old in earlier:
            if marker := find(old.id):
                self._require_shown(old, marker, epoch)
        earlier_shown = tuple(old if find(old.id) else _without_rows(old) for old in earlier)
        return replace(epoch, replaced=replaced, earlier=earlier_shown)

    def _own(self, wal: Iterable[Batches]) -> Adoptable:
        """The sink's output, staged below its table. Raises `InvalidPipeline`, `TargetChanged`."""
        for batches in wal:
            if batches.output != self.sink.output:
                continue
            if getattr(batches, "home", None) is None:
                raise TargetChanged(
                    f"sink {self.name}: output {batches.output} was not staged below its table: stage the epoch again "
                    "(an undecided one: clear its run from begin after `lockstep abort`)"
                )
            return cast(Adoptable, batches)
        raise InvalidPipeline(f"sink {self.name}: the WAL has no output {self.sink.output!r}")

    def _proof_in(self, head: TableVersion, epoch: SinkEpoch) -> Marker | None:
        """The epoch's marker in this table version, by number or interval. Raises `LedgerConflict`."""
        marker = self.marker_in(head, epoch.id)
        if marker is None and epoch.span is not None:
            marker_of_range = self.marker_of_span_in(head, epoch.span)
            if marker_of_range is not None and marker_of_range.epoch != epoch.id:
                raise shown_before(self.name, epoch, marker_of_range)
        return self._require_ledger_manifest(epoch, marker)

    # --- recovery and verification ---

    def pending(self) -> list[Txn]:
        """Always empty: the ledger removes what is staged below the table together with the WAL's folder."""
        return []

    def abort(self, txn: Txn) -> None:
        """Does nothing: there is nothing to roll back."""

    def find_marker(self, epoch: int) -> Marker | None:
        return self.marker_in(self.load_head(), epoch)

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self.marker_of_span_in(self.load_head(), span)

    def presence(self, epoch: int, files: int, *, whole: bool) -> Presence | None:
        table, head = self.compaction(), self.load_head()
        if table is None:
            return None
        if not whole:
            return Presence.ROLLED_BACK if self.was_rolled_back(head, epoch) else Presence.DELETED
        own = sum(file.epoch == epoch for file in table.files(head))
        return Presence.LIVE if own >= files else Presence.COMPACTED

    def target_id(self) -> str:
        return self.target_of(self.load_head())


def _without_rows(epoch: Replaced) -> Replaced:
    return replace(epoch, rows=dict.fromkeys(epoch.rows, 0))

"""The template of tables that adopt: the sealed files become the table's, by one conditional commit after the decision.

A commit is based on the very state of the table in which the marker was looked for, and carries files and marker
together: it is applied as a whole, and only if nothing else was committed since. So whoever publishes, and however many
do at once, one commit is applied. A commit whose answer was lost is resolved by the next one: either the marker is
there, or that one is based on a state which the lost one, if it still came, would find to be another than its own.
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

PUT_BACK = "put its old partitioning and columns back, let the epoch publish, then change it again"  #: as it is decided
Head = TypeVar("Head")  #: one state of a table, as it was read at one instant; what it says never changes


class Answer(StrEnum):
    """What became of a commit, as far as whoever sent it was told."""

    APPLIED = "applied"
    CONFLICT = "conflict"  #: not applied, and never will be: the table had changed
    UNKNOWN = "unknown"  #: it may be applied, or be applied later: no answer, or one that says nothing


class AdoptingSink(OpenSink, Generic[Head]):
    """The sealed files of its one output become files of the table."""

    rounds: int = 50  #: commits that meet other people's, before `publish` gives way
    unanswered: int = 5  #: commits of which nobody knows, before `publish` gives way

    adds_columns: bool = False  #: whether the table lacked columns of the output at the last `preflight` with schemas

    @property
    def needs_turn(self) -> bool:
        """Of two epochs that are to add one column, the second may have it with another type, or spell it otherwise."""
        return self.adds_columns

    # --- what each kind of table does in its own way ---

    @abstractmethod
    def load_head(self) -> Head:
        """The table's newest state, read afresh: it has every commit that was answered before. Raises
        `SinkUnavailable`, `TargetChanged` if the table is gone."""

    @abstractmethod
    def target_of(self, head: Head) -> str:
        """The id of the table that `head` is a state of: a random one, of this table and no other by its name."""

    @abstractmethod
    def marker_in(self, head: Head, epoch: int) -> Marker | None:
        """The epoch's marker in this very state."""

    def marker_of_span_in(self, head: Head, span: str) -> Marker | None:
        """The marker of a range in this very state, whatever number its epoch has."""
        return None

    def has_replaced(self, head: Head, epoch: int) -> bool:
        """Whether this very state shows an epoch in the place of this one, of which it need not have a marker."""
        return False

    @abstractmethod
    def validate(self, head: Head, epoch: SinkEpoch, output: Adoptable) -> None:
        """Refuse before the decision what `adopt` couldn't do afterwards; write nothing. Raises `SinkRejected`,
        `PreflightRefused`. Files and schema agree with the manifest."""

    def require_liftable(self, head: Head, epoch: SinkEpoch) -> None:
        """Refuse before the decision if `adopt` couldn't take the rows of those out of this state whose place `epoch`
        takes, and of the lives before those, which it shows only if somebody took it back; write nothing. Raises
        `PreflightRefused`."""
        raise PreflightRefused(f"sink {self.name}: a {type(self.sink).__name__} can't take back what it has shown")

    @abstractmethod
    def adopt(self, head: Head, epoch: SinkEpoch, output: Adoptable) -> Answer:
        """Send one commit that has the files and the marker, to be applied only to `head`. Sent once: neither this nor
        a library below may try again. Whatever happens to it, no file is deleted. The same commit takes the rows of
        `epoch.replaced` and `epoch.earlier` away.

        Raises only before anything was sent: then nothing is applied.
        """

    def last_failure(self) -> str | None:
        """Why nobody knows what became of the last commit of that kind: a sentence without secrets."""
        return None

    def compaction(self) -> CompactingTable[Head] | None:
        """How the table's small files are written anew; None where Lockstep doesn't do that."""
        return None

    def was_rolled_back(self, head: Head, epoch: int) -> bool:
        """Whether the table tells that somebody took it back to before it got a published epoch."""
        return False

    def make_durable(self, head: Head) -> None:
        """Return only when the commits that led to `head` survive a power cut."""

    # --- the two calls of the roles ---

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        output = self._own(wal)
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        output.check()
        head = self.load_head()
        self.validate(head, epoch, output)
        for replaced in epoch.replaced:
            self._require_shown(replaced, self.marker_in(head, replaced.id), epoch)
        if epoch.replaced:
            self.require_liftable(head, self._with_all_replaced(head, epoch))
        vote = Vote(epoch.token, None, self.target_of(head), {output.output: output.rows})
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        checked, own, unknown = False, False, 0  # own: whether the marker may be of a commit of this call
        for _ in range(self.rounds):
            head = self.load_head()
            self._require_same_target(head, vote)
            shown = self._proof_in(head, epoch)
            if shown is not None:
                self.make_durable(head)
                return Publication.SENT if own and shown.token == epoch.token else Publication.FOUND
            if self.has_replaced(head, epoch.id):
                return Publication.FOUND  # a restored table has shown the one that took its place, and never this one
            output = self._own(wal)
            if not checked:
                output.check_listed()
            checked = True
            whole = self._with_all_replaced(head, epoch)
            reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
            answer = self.adopt(head, whole, output)
            reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
            if answer is Answer.CONFLICT:
                _log.info("sink %s: epoch %s: the table changed meanwhile", self.name, epoch.id)
            own = own or answer is not Answer.CONFLICT
            unknown += answer is Answer.UNKNOWN
            if unknown > self.unanswered:
                reason = f" (of the last: {said})" if (said := self.last_failure()) else ""
                raise SinkUnavailable(
                    f"sink {self.name}: epoch {epoch.id}: nobody tells what became of {unknown} commits{reason}; it "
                    "is tried again, and nothing is adopted twice"
                )
            # also what was applied is looked for: the next round finds it, and makes it durable
        raise PublishBusy(
            f"sink {self.name}: epoch {epoch.id} met another commit {self.rounds} times: somebody writes to the table "
            "without pause; it is tried again"
        )

    def _with_all_replaced(self, head: Head, epoch: SinkEpoch) -> SinkEpoch:
        """With everything whose rows this very state may show and that has to go. What a state has no marker of has no
        row in it; what was replaced in it may: a table that somebody took back to an older version keeps the markers of
        today."""
        find = cache(partial(self.marker_in, head))
        found = self._removed_epochs(epoch, find) if epoch.replaced else []
        replaced = tuple(one if marker else _without_rows(one) for one, marker in found)
        before = {one.id for one in replaced}
        earlier = [one for one in epoch.earlier if one.id not in before]
        for one in earlier:
            if marker := find(one.id):
                self._require_shown(one, marker, epoch)
        told = tuple(one if find(one.id) else _without_rows(one) for one in earlier)
        return replace(epoch, replaced=replaced, earlier=told)

    def _own(self, wal: Iterable[Batches]) -> Adoptable:
        """The sink's output, which was staged below its table. Raises `InvalidPipeline`, `TargetChanged`."""
        for batches in wal:
            if batches.output != self.sink.output:
                continue
            if getattr(batches, "home", None) is None:
                raise TargetChanged(
                    f"sink {self.name}: output {batches.output} was staged before a table was to adopt it: stage the "
                    "epoch again (an undecided one: clear its run from begin after `lockstep abort`)"
                )
            return cast(Adoptable, batches)
        raise InvalidPipeline(f"sink {self.name}: the WAL has no output {self.sink.output!r}")

    def _require_same_target(self, head: Head, vote: Vote) -> None:
        if (found := self.target_of(head)) != vote.target_id:
            raise TargetChanged(
                f"sink {self.name}: the table is {found} now, but {vote.target_id} voted: it was made anew, or its "
                "place leads to another one; put it back, nothing was written"
            )

    def _proof_in(self, head: Head, epoch: SinkEpoch) -> Marker | None:
        """As `_proof`, of one state. Raises `LedgerConflict`."""
        marker = self.marker_in(head, epoch.id)
        if marker is None and epoch.span is not None:
            shown = self.marker_of_span_in(head, epoch.span)
            if shown is not None and shown.epoch != epoch.id:
                raise shown_before(self.name, epoch, shown)
        return self._require_decided(epoch, marker)

    # --- recovery and verification ---

    def pending(self) -> list[Txn]:
        """What is staged below the table goes with the WAL's folder, by the ledger's word."""
        return []

    def abort(self, txn: Txn) -> None:
        """Nothing to roll back."""

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


def _without_rows(one: Replaced) -> Replaced:
    return replace(one, rows=dict.fromkeys(one.rows, 0))

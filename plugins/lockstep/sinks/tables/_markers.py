"""The record that stands beside the rows: whoever has claimed an epoch's marker sends it, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from lockstep.errors import PublishBlocked
from lockstep.sinks.tables.target import TableClaim, TableTarget
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, Session

Cursor = TypeVar("Cursor")


class MarkerCommitter(CheckpointCommitter, Generic[Cursor]):
    """Remembers epochs by the marker, in the transaction that sends their rows: exactly once."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, target: TableTarget[Cursor]) -> None:
        self._target = target
        self._transaction = target.database.transaction

    def create_resource(self) -> None:
        with self._target.set_up() as cursor:
            self._target.own.create(cursor)

    def open(self) -> None:
        """The sink's connection is this one's too."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[TableClaim[Cursor]]:
        """Claim the marker; commit at the end."""
        claim = self._target.claim_to_publish(epoch)
        try:
            yield claim
            if claim.claimed:
                self._target.commit(claim)
        finally:
            claim.close()

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        with self._transaction("looking for the marker") as cursor:
            return self._target.own.find_marker(cursor, epoch)

    def find_span(self, span: str) -> Marker | None:
        with self._transaction("looking for the marker of a range") as cursor:
            return self._target.own.find_marker_of_span(cursor, span)

    def newest(self) -> list[Marker]:
        with self._transaction("looking for the newest markers") as cursor:
            return self._target.own.newest_markers(cursor)

    def all(self) -> Iterable[Marker]:
        with self._transaction("listing the markers") as cursor:
            return self._target.own.markers(cursor)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, TableClaim)
        self._target.record_rows(session, f"publishing epoch {epoch.id}", PublishBlocked)

"""The record before the rows: whoever finds it sends nothing, so that no row goes out twice, and some may never.

Flink has no such committer: its GenericWriteAheadSink records afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lockstep.errors import LedgerConflict
from lockstep.sinks.committers.outside import NoTransaction, OutsideCommitter
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, NothingSent, Session


class BegunCommitter(CheckpointCommitter):
    """`elsewhere` records an epoch as begun before the session is claimed, and as sent at its end.

    One that is begun and isn't sent is left to its sender as long as that lives. Then it is recorded as cut off: its
    marker isn't `whole`, and nobody sends what is missing. A sender that raises `NothingSent` takes its record back.
    """

    guarantee = Guarantee.AT_MOST_ONCE

    def __init__(self, elsewhere: OutsideCommitter) -> None:
        self._elsewhere = elsewhere

    def set_job_id(self, job_id: str) -> None:
        self._elsewhere.set_job_id(job_id)

    def set_operator_id(self, operator_id: str) -> None:
        self._elsewhere.set_operator_id(operator_id)

    def open(self) -> None:
        self._elsewhere.open()

    def create_resource(self) -> None:
        self._elsewhere.create_resource()
        self._elsewhere.create_begun()

    def resource_id(self) -> str:
        return self._elsewhere.resource_id()

    def close(self) -> None:
        self._elsewhere.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Raises `LedgerConflict`, `SinkUnavailable`."""
        with self._elsewhere.alone(epoch) as alone:
            claimed = alone and self._claim(epoch)
            try:
                yield NoTransaction(claimed)
            except NothingSent:
                if claimed:
                    self._elsewhere.take_back(epoch)
                raise

    def _claim(self, epoch: SinkEpoch) -> bool:
        if self._elsewhere.is_checkpoint_committed(epoch.id) is not None:
            return False
        if self._elsewhere.begin(epoch):
            return True
        found = self.find_begun(epoch.id)
        if found is not None and found.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"committer of {self._elsewhere.operator_id}: epoch {epoch.id} is recorded as begun with manifest "
                f"{found.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
            )
        if found is not None:
            self._elsewhere.end(epoch, whole=False)
        return False

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._elsewhere.is_checkpoint_committed(epoch)

    def find_begun(self, epoch: int) -> Marker | None:
        return self._elsewhere.find_begun(epoch)

    def find_span(self, span: str) -> Marker | None:
        return self._elsewhere.find_span(span) or self._elsewhere.find_begun_span(span)

    def newest(self) -> list[Marker]:
        found = [*self._elsewhere.newest(), *self._elsewhere.list_begun(newest=True)]
        return sorted(found, key=lambda marker: (marker.epoch, marker.token))[-1:]

    def all(self) -> Iterable[Marker]:
        recorded = {marker.epoch: marker for marker in self._elsewhere.all()}
        begun = {marker.epoch: marker for marker in self._elsewhere.list_begun()}
        return [marker for _, marker in sorted({**begun, **recorded}.items())]

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        self._elsewhere.end(epoch, whole=True)

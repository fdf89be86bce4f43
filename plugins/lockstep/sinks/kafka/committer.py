"""KafkaSink's marker committer: an epoch's markers and records in the same transactions, one for each shard."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockstep.crash import CrashPoint, reach
from lockstep.errors import LedgerConflict, OutcomeUnknown, PublishBlocked
from lockstep.sinks.base import Guarantee, Marker, SinkEpoch
from lockstep.sinks.kafka.markers import MarkerTopic, ShardMarker
from lockstep.sinks.kafka.records import Record, Records
from lockstep.sinks.kafka.transaction import ShardTransaction, transactional_id
from lockstep.sinks.write_ahead import CheckpointCommitter, Session

if TYPE_CHECKING:
    from lockstep.sinks.kafka.sink import KafkaSink


@dataclass
class KafkaSession:
    """The transactions of those shards that have not been committed by anyone yet."""

    shards: int
    open: dict[int, ShardTransaction] = field(default_factory=dict)
    rows: int = 0
    starts: dict[int, int] = field(default_factory=dict)

    @property
    def claimed(self) -> bool:
        return bool(self.open)

    def send(self, records: Records) -> None:
        """Each record into its shard, unless that was committed before."""
        self.rows += len(records)
        if self.shards == 1:
            for transaction in self.open.values():
                transaction.send(records)
            return
        first = self.rows - len(records)
        for number, mine in self._divided(records, first).items():
            if number in self.open:
                self.open[number].send(mine)

    def _divided(self, records: Records, first: int) -> dict[int, list[Record]]:
        """By shard; records of one key stay in one shard, and so in their order."""
        found: dict[int, list[Record]] = {}
        for ordinal, record in enumerate(records, first):
            number = ordinal if record[0] is None else zlib.crc32(record[0])
            found.setdefault(number % self.shards, []).append(record)
        return found


class KafkaMarkerCommitter(CheckpointCommitter):
    """Exactly once: a shard's marker is committed with its records or not at all."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, sink: KafkaSink, markers: MarkerTopic) -> None:
        self._sink, self._markers = sink, markers

    def create_resource(self) -> None:
        self._markers.create()

    def open(self) -> None:
        """Clients are made when they are needed: a transaction wants a new producer each time."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        session = KafkaSession(self._sink.shards)
        with ExitStack() as stack:
            transactions = [stack.enter_context(closing(self._transaction(epoch, n))) for n in range(session.shards)]
            for transaction in transactions:
                transaction.open()
            committed = self._found(epoch)  # only now: whatever an older process had open has ended
            for number, transaction in enumerate(transactions):
                if number not in committed:
                    session.open[number] = transaction
            if session.open:
                self._begin(session)
            yield session
            self._commit(session)

    def _transaction(self, epoch: SinkEpoch, shard: int) -> ShardTransaction:
        return self._sink.transaction(transactional_id(self._sink.owner, epoch, shard))

    def _begin(self, session: KafkaSession) -> None:
        self._markers.require_lasting()
        session.starts = self._sink.ends()
        for transaction in session.open.values():
            transaction.begin()

    def _commit(self, session: KafkaSession) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        for transaction in session.open.values():
            transaction.commit()
            reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """The markers, last: while one stands in an open transaction, nobody can tell what stands behind it."""
        assert isinstance(session, KafkaSession)
        if session.shards == len(session.open) and session.rows != sum(t.sent for t in session.open.values()):
            raise PublishBlocked(f"sink {self._sink.name}: not every record of epoch {epoch.id} was handed over")
        marker = ShardMarker(epoch.token, epoch.manifest_hash, session.starts).to_bytes()
        for number, transaction in session.open.items():
            key = self._markers.key(epoch.id, number)
            transaction.send_marker(self._markers.name, key, marker, self._markers.partition)

    def proof(self, epoch: SinkEpoch) -> Marker | None:
        """The epoch's marker, if that can be told without waiting for anybody's open transaction."""
        found = self._found(epoch, wait=False)
        return found[0].of_epoch(epoch.id) if len(found) == self._sink.shards else None

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """The epoch's marker once every shard has one."""
        found = self._markers.find(epoch, self._sink.shards)
        if len(found) < self._sink.shards:
            return None
        if len({marker.manifest_hash for marker in found.values()}) > 1:
            raise OutcomeUnknown(
                f"sink {self._sink.name}: the shards of epoch {epoch} carry markers of several manifests"
            )
        return found[0].of_epoch(epoch)

    def _found(self, epoch: SinkEpoch, *, wait: bool = True) -> dict[int, ShardMarker]:
        found = self._markers.find(epoch.id, self._sink.shards, wait=wait)
        for marker in found.values():
            if marker.manifest_hash != epoch.manifest_hash:
                raise LedgerConflict(
                    f"sink {self._sink.name}: epoch {epoch.id} carries the marker of manifest "
                    f"{marker.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
                )
        return found

"""KafkaSink's marker committer: an epoch's markers and records in the same transactions, one for each shard.

First `init_transactions`, then the marker is looked for, then the records, the marker last: it makes others wait who
look for theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.limits import limits_of
from lockstep.connections.kafka.producers import NO_TIME, Route, TransactionalProducer
from lockstep.crash import CrashPoint, reach
from lockstep.errors import LedgerConflict, OutcomeUnknown, PublishBlocked, PublishBusy
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka._markers import MarkerTopic, ShardMarker
from lockstep.sinks.kafka._records import Records
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, Session


def _transactional_id(owner: SinkName, epoch: SinkEpoch, shard: int) -> str:
    """Stable per (deployment, pipeline, sink, shard). By epoch, too, where others may be sent beside it: or they fence
    each other."""
    whose = hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:24]
    one = f"-{epoch.id}" if epoch.interval is not None or epoch.generation else ""
    return f"lockstep-{whose}{one}-{shard}"


@dataclass
class KafkaSession:
    """The transactions of those shards that this process sends, and that have not been committed by anyone yet."""

    shards: int
    open: dict[int, TransactionalProducer] = field(default_factory=dict)
    rows: int = 0  #: of those shards
    starts: dict[str, dict[int, int]] = field(default_factory=dict)  #: by topic

    @property
    def claimed(self) -> bool:
        return bool(self.open)

    def add_headers(self, headers: Mapping[str, bytes]) -> None:
        for transaction in self.open.values():
            transaction.add_headers(headers)

    def send(self, records: Records) -> None:
        self.rows += len(records)
        self.open[records.shard].send(records.topic, records)


class KafkaMarkerCommitter(CheckpointCommitter):
    """Exactly once: a shard's marker is committed with its records or not at all."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, cluster: Cluster, route: Route, markers: MarkerTopic, shards: int) -> None:
        self._cluster, self._route, self._markers = cluster, route, markers
        self._shards = shards

    def create_resource(self) -> None:
        self._markers.create()

    def open(self) -> None:
        """Clients are made when they are needed: a transaction wants a new producer each time."""

    def close(self) -> None:
        """See `open`."""

    def session(self, epoch: SinkEpoch) -> AbstractContextManager[Session]:
        return self.session_of_all(epoch, None)

    @contextmanager
    def session_of_all(self, epoch: SinkEpoch, voted: int | None) -> Iterator[Session]:
        """Every shard that isn't committed yet.

        `voted`: how many there are. The vote of a rebuilt ledger doesn't say: then any marker does. Without one shard 0
        is committed before the others: the publisher that has opened it, which fences every other publisher's, and
        finds no marker then, decides how many there are.
        """
        shards = voted or self._count_shards(self._markers_of(epoch, wait=False)) or self._shards
        with ExitStack() as stack:
            opened = dict(self._producers(stack, epoch, range(shards)))
            committed = self._markers_of(epoch)  # only now: the producers have ended what an older process had open
            if self._count_shards(committed) not in (None, shards):
                raise PublishBusy(f"{self._route.who}: it is published in another number of shards; try again")
            uncommitted = {number: producer for number, producer in opened.items() if number not in committed}
            yield from self._sending(KafkaSession(shards, uncommitted))

    @contextmanager
    def session_of_one(self, epoch: SinkEpoch, shards: int, number: int) -> Iterator[Session]:
        """One shard, whatever becomes of the others: its marker proves it, and its transactional id fences whoever else
        sends it, alone or with all the others."""
        with ExitStack() as stack:
            opened = dict(self._producers(stack, epoch, [number]))
            committed = self._markers_of(epoch)  # only now, as above
            yield from self._sending(KafkaSession(shards, opened if number not in committed else {}))

    def _sending(self, session: KafkaSession) -> Iterator[Session]:
        if session.open:
            self._begin(session)
        yield session
        self._commit(session)

    def _count_shards(self, markers: Mapping[int, ShardMarker]) -> int | None:
        """In how many shards the epoch is sent, as its markers say; None without a marker. Raises `OutcomeUnknown`."""
        shards = {marker.shards for marker in markers.values()}
        if len(shards) > 1:
            raise OutcomeUnknown(f"{self._route.who}: the markers of one epoch name {sorted(shards)} shards")
        return shards.pop() if shards else None

    def stands(self, epoch: SinkEpoch, shard: int) -> bool:
        """Whether a shard's marker does, as far as that can be told without waiting for anybody's open transaction."""
        return shard in self._markers_of(epoch, wait=False)

    def _producers(
        self, stack: ExitStack, epoch: SinkEpoch, numbers: Iterable[int]
    ) -> Iterator[tuple[int, TransactionalProducer]]:
        """One for each shard, open."""
        most_bytes = [limits_of(self._cluster, topic).batch_bytes for topic in self._route.topics]
        for number in numbers:
            id = _transactional_id(self._markers.owner, epoch, number)
            producer = stack.enter_context(closing(TransactionalProducer(self._route, most_bytes, id)))
            producer.open()
            yield number, producer

    def _begin(self, session: KafkaSession) -> None:
        self._markers.require_lasting()
        session.starts = {topic: self._cluster.all_ends(topic) for topic in self._route.topics}
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
        if session.rows != sum(transaction.sent for transaction in session.open.values()):
            raise PublishBlocked(f"{self._route.who}: not every record of epoch {epoch.id} was handed over")
        marker = ShardMarker.of(epoch, session.starts, session.shards).to_bytes()
        for number, transaction in session.open.items():
            key = self._markers.key(epoch.id, number)
            transaction.send_elsewhere(self._markers.name, (key, marker, self._markers.partition, NO_TIME, None, None))

    def proof(self, epoch: SinkEpoch) -> Marker | None:
        """The epoch's marker, if that can be told without waiting for anybody's open transaction."""
        found = self._markers_of(epoch, wait=False)
        return found[0].to_marker(epoch.id) if len(found) == self._count_shards(found) else None

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        """As the sink's, by any shard, and without waiting for anybody's open transaction."""
        for shown in self._markers.find(epoch.id, wait=False).values():
            if shown.manifest_hash != epoch.manifest_hash:
                raise shown_before(self._markers.owner.sink, epoch, shown.to_marker(epoch.id))
        self._refuse_span(epoch)

    def _refuse_span(self, epoch: SinkEpoch) -> None:
        """What has been read so far."""
        shown = self.find_span(epoch.span) if epoch.span is not None else None
        if shown is not None and shown.epoch != epoch.id:
            raise shown_before(self._markers.owner.sink, epoch, shown)

    def find_span(self, span: str) -> Marker | None:
        return next((marker for marker in self.all() if marker.span == span), None)

    def newest(self) -> list[Marker]:
        found = list(self.all())
        by = (lambda marker: marker.epoch), (lambda marker: marker.token)
        return list(dict.fromkeys(max(found, key=order) for order in by)) if found else []

    def all(self) -> Iterable[Marker]:
        """One for each epoch of which anything stands, without waiting for anybody's open transaction."""
        return [next(iter(of.values())).to_marker(epoch) for epoch, of in self._markers.find_all(wait=False).items()]

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """The epoch's marker once every shard has one."""
        found = self._markers.find(epoch)
        if len(found) != self._count_shards(found):
            return None
        if len({marker.manifest_hash for marker in found.values()}) > 1:
            raise OutcomeUnknown(f"{self._route.who}: the shards of epoch {epoch} carry markers of several manifests")
        return found[0].to_marker(epoch)

    def _markers_of(self, epoch: SinkEpoch, *, wait: bool = True) -> dict[int, ShardMarker]:
        found = self._markers.find(epoch.id, wait=wait)
        for marker in found.values():
            if marker.manifest_hash != epoch.manifest_hash:
                raise LedgerConflict(
                    f"{self._route.who}: epoch {epoch.id} carries the marker of manifest "
                    f"{marker.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
                )
        if not found:
            self._refuse_span(epoch)
        return found

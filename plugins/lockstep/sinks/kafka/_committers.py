"""The committers of KafkaSink, and the topic of the markers.

Markers are records of one compacted topic, each written in the transaction of its epoch's rows; an epoch has one
transaction per shard. A marker's key is (deployment, pipeline, sink, epoch, shard), never the attempt. Markers are
found by reading one partition up to its *current* end, open transactions included: a reader of committed records stops
at the oldest open transaction, behind which a committed marker may be. Below such an end nothing can change any more,
so the next read starts there.

The order within a session is fixed: `init_transactions`, look for the marker, send the records, send the marker. The
marker is last because an open one makes other publishers wait.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field

from lockstep.connections.kafka.cluster import Cluster, Topic, limits_of
from lockstep.connections.kafka.consumers import committed_records
from lockstep.connections.kafka.producers import NO_TIME, PlainProducer, Route, TransactionalProducer
from lockstep.crash import CrashPoint, reach
from lockstep.errors import (
    LedgerConflict,
    OutcomeUnknown,
    PreflightRefused,
    PublishBlocked,
    PublishBusy,
    SinkUnavailable,
)
from lockstep.sinks.committers import ExternalCommitter
from lockstep.sinks.handles import SinkName
from lockstep.sinks.kafka._records import TopicRecords
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, Session

#: A marker's partition is always one of the first eight, also after partitions were added.
PARTITIONS = 8
SETTINGS: Mapping[str, str] = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}


@dataclass(frozen=True)
class ShardMarker:
    """The marker of one shard. `starts`: the end of each partition before the shard was sent, where `read` begins.
    `topics`: the same by topic, if there are several. `shards`: their number. `span`: see `SinkEpoch.span`."""

    token: int
    manifest_hash: str
    starts: Mapping[int, int]
    shards: int
    span: str | None = None
    topics: Mapping[str, Mapping[int, int]] | None = None

    @classmethod
    def of(cls, epoch: SinkEpoch, starts: Mapping[str, Mapping[int, int]], shards: int) -> ShardMarker:
        """`starts`: by topic."""
        only = next(iter(starts.values())) if len(starts) == 1 else {}
        return cls(epoch.token, epoch.manifest_hash, only, shards, epoch.span, starts if len(starts) > 1 else None)

    def starts_in(self, topic: str, *, only: bool) -> Mapping[int, int]:
        """Return the start offsets in a topic, empty if unknown. `only`: True if the sink has a single topic; its
        marker doesn't name it."""
        if self.topics is not None:
            return self.topics.get(topic, {})
        return self.starts if only else {}

    def to_bytes(self) -> bytes:
        fields = {
            "token": self.token,
            "manifest": self.manifest_hash,
            "starts": dict(self.starts),
            "shards": self.shards,
        }
        optional = {"span": self.span, "topics": self.topics}
        return json.dumps(fields | {name: value for name, value in optional.items() if value is not None}).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> ShardMarker:
        fields = json.loads(body)
        topics = {topic: _by_number(ends) for topic, ends in fields["topics"].items()} if "topics" in fields else None
        starts = _by_number(fields["starts"])
        return cls(fields["token"], fields["manifest"], starts, fields["shards"], fields.get("span"), topics)

    def to_marker(self, epoch: int) -> Marker:
        return Marker(epoch, self.token, self.manifest_hash, self.span)


class MarkerTopic:
    """The topic of one cluster's markers."""

    def __init__(self, cluster: Cluster, name: str, owner: SinkName, max_wait: float) -> None:
        """`max_wait`: seconds to wait for other transactions to end."""
        self._cluster, self._who, self.name = cluster, cluster.who, name
        self.owner, self._patience = owner, max_wait
        key = f"{owner.deployment}/{owner.pipeline}/{owner.sink}"
        self._prefix, self.partition = key.encode(), zlib.crc32(key.encode()) % PARTITIONS
        self._end_read = 0
        self._read: dict[int, dict[int, ShardMarker]] = {}  # the markers before that offset, by epoch and shard

    def create(self) -> Topic:
        """Create the topic if it is missing. Raises `PreflightRefused` if it would lose markers or has too few
        partitions."""
        self._cluster.create_topic(self.name, PARTITIONS, SETTINGS)
        topic = self._cluster.require_topic(self.name)
        self.require_lasting()
        if topic.partitions < PARTITIONS:
            raise PreflightRefused(
                f"{self._who.name}: topic {self.name} has {topic.partitions} partitions, markers need {PARTITIONS}"
            )
        return topic

    def require_lasting(self) -> None:
        """Raise `PreflightRefused` if the topic would lose markers."""
        if (policy := self._cluster.topic_settings(self.name).get("cleanup.policy")) != "compact":
            raise PreflightRefused(
                f"{self._who.name}: topic {self.name} has cleanup.policy={policy}, so it forgets: set it to compact"
            )

    def id(self) -> str | None:
        """Return the topic's id, with the first offset if that isn't 0: then records were deleted, which compaction
        doesn't do. None if there is no topic."""
        topic = self._cluster.topic(self.name)
        if topic is None:
            return None
        begin = self._cluster.beginnings(self.name, [self.partition])[self.partition]
        return f"{topic.id}@{begin}" if begin else topic.id

    def key(self, epoch: int, shard: int) -> bytes:
        return b"%s/%d/%d" % (self._prefix, epoch, shard)

    def find(self, epoch: int, *, wait: bool = True) -> dict[int, ShardMarker]:
        """Return the epoch's committed markers by shard. A missing one proves nothing unless `wait` is true: then open
        transactions are waited for. Raises `PublishBusy` if they don't end, `PreflightRefused` if the topic is gone."""
        return dict(self.find_all(wait=wait).get(epoch, {}))

    def find_all(self, *, wait: bool = True) -> Mapping[int, Mapping[int, ShardMarker]]:
        """Return this sink's committed markers by epoch and shard; otherwise like `find`."""
        end, prefix = self._end(stable=not wait), b"%s/" % self._prefix
        for key, value in self._committed(self._end_read, end):
            if key.startswith(prefix):
                epoch, shard = map(int, key.removeprefix(prefix).split(b"/"))
                self._read.setdefault(epoch, {})[shard] = ShardMarker.from_bytes(value)
        self._end_read = max(self._end_read, end)
        return self._read

    def _end(self, *, stable: bool) -> int:
        try:
            return self._cluster.ends(self.name, [self.partition], stable=stable)[self.partition]
        except SinkUnavailable:
            self._cluster.require_topic(self.name)
            raise

    def _committed(self, start: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield every committed record from `start` to before `end`, once no transaction there is open."""
        starts, ends = {self.partition: start}, {self.partition: end}
        with self._who.naming(f"reading {self.name}"):
            try:
                for messages in committed_records(self._cluster.settings, self.name, starts, ends, self._patience):
                    yield from ((message.key(), message.value()) for message in messages)
            except TimeoutError:
                raise PublishBusy(
                    f"{self._who.name}: a transaction is open in {self.name}, and may hide this epoch's "
                    f"marker: waited {self._patience:.0f} s for it to end; it ends with its timeout at the latest"
                ) from None


def _by_number(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(number): offset for number, offset in offsets.items()}


def _transactional_id(owner: SinkName, epoch: SinkEpoch, shard: int) -> str:
    """Return an id that is stable per (deployment, pipeline, sink, shard), and per epoch if several epochs may be sent
    at the same time: otherwise they would fence each other."""
    digest = hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:24]
    suffix = f"-{epoch.id}" if epoch.interval is not None or epoch.generation else ""
    return f"lockstep-{digest}{suffix}-{shard}"


@dataclass
class KafkaSession:
    """The transactions of the shards that this process sends. Shards that are committed already are left out."""

    shards: int
    open: dict[int, TransactionalProducer] = field(default_factory=dict)
    rows: int = 0  #: number of rows of those shards
    starts: dict[str, dict[int, int]] = field(default_factory=dict)  #: by topic

    @property
    def claimed(self) -> bool:
        return bool(self.open)

    def add_headers(self, headers: Mapping[str, bytes]) -> None:
        for transaction in self.open.values():
            transaction.add_headers(headers)

    def send(self, records: TopicRecords) -> None:
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
        """Do nothing: each session creates its producers."""

    def close(self) -> None:
        """Do nothing."""

    def session(self, epoch: SinkEpoch) -> AbstractContextManager[Session]:
        return self.session_of_all(epoch, None)

    @contextmanager
    def session_of_all(self, epoch: SinkEpoch, voted: int | None) -> Iterator[Session]:
        """Open a session for every shard that isn't committed yet.

        `voted`: the number of shards; None for the vote of a rebuilt ledger, then any marker gives the number. Without
        a marker, the publisher that opens shard 0, which fences all others, and finds no marker then decides the
        number: shard 0 is committed first.
        """
        shards = voted or self._count_shards(self._markers_of(epoch, wait=False)) or self._shards
        with ExitStack() as stack:
            opened = dict(self._producers(stack, epoch, range(shards)))
            committed = self._markers_of(epoch)  # not earlier: opening the producers has ended older transactions
            if self._count_shards(committed) not in (None, shards):
                raise PublishBusy(f"{self._route.who}: it is published in another number of shards; try again")
            uncommitted = {number: producer for number, producer in opened.items() if number not in committed}
            yield from self._sending(KafkaSession(shards, uncommitted))

    @contextmanager
    def session_of_one(self, epoch: SinkEpoch, shards: int, number: int) -> Iterator[Session]:
        """Open a session for one shard, independent of the others. Its transactional id fences every other process that
        sends it, alone or with the others."""
        with ExitStack() as stack:
            opened = dict(self._producers(stack, epoch, [number]))
            committed = self._markers_of(epoch)  # not earlier, as above
            yield from self._sending(KafkaSession(shards, opened if number not in committed else {}))

    def _sending(self, session: KafkaSession) -> Iterator[Session]:
        if session.open:
            self._begin(session)
        yield session
        self._commit(session)

    def _count_shards(self, markers: Mapping[int, ShardMarker]) -> int | None:
        """Return the number of shards by the markers; None without a marker. Raises `OutcomeUnknown` if they differ."""
        shards = {marker.shards for marker in markers.values()}
        if len(shards) > 1:
            raise OutcomeUnknown(f"{self._route.who}: the markers of one epoch name {sorted(shards)} shards")
        return shards.pop() if shards else None

    def has_marker(self, epoch: SinkEpoch, shard: int) -> bool:
        """Return True if the shard's marker is found, without waiting for open transactions."""
        return shard in self._markers_of(epoch, wait=False)

    def _producers(
        self, stack: ExitStack, epoch: SinkEpoch, numbers: Iterable[int]
    ) -> Iterator[tuple[int, TransactionalProducer]]:
        """Yield each shard with its open producer."""
        max_bytes = [limits_of(self._cluster, topic).batch_bytes for topic in self._route.topics]
        for number in numbers:
            id = _transactional_id(self._markers.owner, epoch, number)
            producer = stack.enter_context(closing(TransactionalProducer(self._route, max_bytes, id)))
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
        """Send the markers, last: an open one hides everything behind it from readers."""
        assert isinstance(session, KafkaSession)
        if session.rows != sum(transaction.sent for transaction in session.open.values()):
            raise PublishBlocked(f"{self._route.who}: not every record of epoch {epoch.id} was handed over")
        marker = ShardMarker.of(epoch, session.starts, session.shards).to_bytes()
        for number, transaction in session.open.items():
            key = self._markers.key(epoch.id, number)
            transaction.send_elsewhere(self._markers.name, (key, marker, self._markers.partition, NO_TIME, None, None))

    def proof(self, epoch: SinkEpoch) -> Marker | None:
        """Return the epoch's marker if every shard has one, without waiting for open transactions."""
        markers = self._markers_of(epoch, wait=False)
        return markers[0].to_marker(epoch.id) if len(markers) == self._count_shards(markers) else None

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        """Do what the sink's method does, by any shard, without waiting for open transactions."""
        for marker in self._markers.find(epoch.id, wait=False).values():
            if marker.manifest_hash != epoch.manifest_hash:
                raise shown_before(self._markers.owner.sink, epoch, marker.to_marker(epoch.id))
        self._refuse_span(epoch)

    def _refuse_span(self, epoch: SinkEpoch) -> None:
        marker = self.find_span(epoch.span) if epoch.span is not None else None
        if marker is not None and marker.epoch != epoch.id:
            raise shown_before(self._markers.owner.sink, epoch, marker)

    def find_span(self, span: str) -> Marker | None:
        return next((marker for marker in self.all() if marker.span == span), None)

    def newest(self) -> list[Marker]:
        markers = list(self.all())
        by = (lambda marker: marker.epoch), (lambda marker: marker.token)
        return list(dict.fromkeys(max(markers, key=order) for order in by)) if markers else []

    def all(self) -> Iterable[Marker]:
        """Return a marker of each epoch that has any, without waiting for open transactions."""
        return [next(iter(of.values())).to_marker(epoch) for epoch, of in self._markers.find_all(wait=False).items()]

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """Return the epoch's marker once every shard has one."""
        markers = self._markers.find(epoch)
        if len(markers) != self._count_shards(markers):
            return None
        if len({marker.manifest_hash for marker in markers.values()}) > 1:
            raise OutcomeUnknown(f"{self._route.who}: the shards of epoch {epoch} carry markers of several manifests")
        return markers[0].to_marker(epoch)

    def _markers_of(self, epoch: SinkEpoch, *, wait: bool = True) -> dict[int, ShardMarker]:
        markers = self._markers.find(epoch.id, wait=wait)
        for marker in markers.values():
            if marker.manifest_hash != epoch.manifest_hash:
                raise LedgerConflict(
                    f"{self._route.who}: epoch {epoch.id} carries the marker of manifest "
                    f"{marker.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
                )
        if not markers:
            self._refuse_span(epoch)
        return markers


class ExternalRecordCommitter(CheckpointCommitter):
    """Sends without a transaction and records the epoch in `records` afterwards: at least once, or none."""

    def __init__(self, cluster: Cluster, route: Route, records: ExternalCommitter) -> None:
        self._cluster, self._route, self._records = cluster, route, records
        self.guarantee = records.guarantee  # type: ignore[misc]

    def create_resource(self) -> None:
        self._records.create_resource()

    def close(self) -> None:
        self._records.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Yield a `PlainProducer`. It is not claimed if another publisher has recorded the epoch since."""
        max_bytes = [limits_of(self._cluster, topic).batch_bytes for topic in self._route.topics]
        reported = self.guarantee is Guarantee.AT_LEAST_ONCE
        with closing(PlainProducer(self._route, max_bytes, reported=reported)) as producer:
            producer.open()
            if self.is_checkpoint_committed(epoch.id):
                producer.claimed = False
            yield producer

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._records.is_checkpoint_committed(epoch)

    def find_span(self, span: str) -> Marker | None:
        return self._records.find_span(span)

    def newest(self) -> list[Marker]:
        return self._records.newest()

    def all(self) -> Iterable[Marker]:
        return self._records.all()

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, PlainProducer)
        session.flush()
        self._records.commit_checkpoint(epoch, session)

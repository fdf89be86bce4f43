"""The markers of epochs in Kafka: records of one compacted topic, each written in the transaction of its epoch's rows.

A marker's key is (deployment, pipeline, sink, epoch, shard), never the attempt. It is looked for by reading one
partition to the end that it has *now*, open transactions included: a reader of committed records stops at the oldest
open transaction, behind which a marker may stand that was committed already. What was read to such an end can't change
any more, so that a second look begins there.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.reading import committed_records
from lockstep.errors import PreflightRefused, PublishBusy, SinkUnavailable
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker, SinkEpoch

#: A marker's partition is one of the first eight for good: partitions that are added later hide none.
PARTITIONS = 8
SETTINGS: Mapping[str, str] = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}


@dataclass(frozen=True)
class ShardMarker:
    """`starts`: the end of each of the topic's partitions before the shard was sent; `read` begins there. `topics`: the
    same by topic, where there are several. `shards`: how many the epoch has. `span`: see `SinkEpoch.span`."""

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
        """`only`: whether it is the sink's one topic, which no marker of one names. Nothing where nobody knows."""
        if self.topics is not None:
            return self.topics.get(topic, {})
        return self.starts if only else {}

    def to_bytes(self) -> bytes:
        told = {"token": self.token, "manifest": self.manifest_hash, "starts": dict(self.starts), "shards": self.shards}
        optional = {"span": self.span, "topics": self.topics}
        return json.dumps(told | {name: value for name, value in optional.items() if value is not None}).encode()

    @classmethod
    def from_bytes(cls, found: bytes) -> ShardMarker:
        told = json.loads(found)
        topics = {topic: _by_number(ends) for topic, ends in told["topics"].items()} if "topics" in told else None
        starts = _by_number(told["starts"])
        return cls(told["token"], told["manifest"], starts, told["shards"], told.get("span"), topics)

    def to_marker(self, epoch: int) -> Marker:
        return Marker(epoch, self.token, self.manifest_hash, self.span)


class MarkerTopic:
    """One cluster's markers."""

    def __init__(self, cluster: Cluster, name: str, owner: SinkName, max_wait: float) -> None:
        """`max_wait`: seconds to wait for other transactions to end."""
        self._cluster, self._who, self.name = cluster, cluster.who, name
        self.owner, self._patience = owner, max_wait
        whose = f"{owner.deployment}/{owner.pipeline}/{owner.sink}"
        self._prefix, self.partition = whose.encode(), zlib.crc32(whose.encode()) % PARTITIONS
        self._end_read = 0
        self._read: dict[int, dict[int, ShardMarker]] = {}  # what stands before that, by epoch and shard

    def create(self) -> Topic:
        """Make it if it is missing. Raises `PreflightRefused` if it would forget markers, or has no room for them."""
        self._cluster.create_topic(self.name, PARTITIONS, SETTINGS)
        found = self._cluster.require_topic(self.name)
        self.require_lasting()
        if found.partitions < PARTITIONS:
            raise PreflightRefused(
                f"{self._who.name}: topic {self.name} has {found.partitions} partitions, markers need {PARTITIONS}"
            )
        return found

    def require_lasting(self) -> None:
        """Raises `PreflightRefused` if the topic would forget markers."""
        if (policy := self._cluster.topic_settings(self.name).get("cleanup.policy")) != "compact":
            raise PreflightRefused(
                f"{self._who.name}: topic {self.name} has cleanup.policy={policy}, so it forgets: set it to compact"
            )

    def id(self) -> str | None:
        """Of the topic, and where it begins if it doesn't at 0: records were deleted then, which compaction never does.

        None if there is no topic.
        """
        found = self._cluster.topic(self.name)
        if found is None:
            return None
        begin = self._cluster.beginnings(self.name, [self.partition])[self.partition]
        return f"{found.id}@{begin}" if begin else found.id

    def key(self, epoch: int, shard: int) -> bytes:
        return b"%s/%d/%d" % (self._prefix, epoch, shard)

    def find(self, epoch: int, *, wait: bool = True) -> dict[int, ShardMarker]:
        """The epoch's committed markers by shard, as many as it has, a copy. One that isn't there proves nothing unless
        you `wait` for open transactions. Raises `PublishBusy` if they don't end, `PreflightRefused` if the topic is
        gone."""
        return dict(self.find_all(wait=wait).get(epoch, {}))

    def find_all(self, *, wait: bool = True) -> Mapping[int, Mapping[int, ShardMarker]]:
        """This sink's committed markers by epoch and shard; otherwise as `find`."""
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
        """Every committed record from `start` on and before `end`; ends once none of them can be decided otherwise."""
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


def _by_number(told: Mapping[str, int]) -> dict[int, int]:
    return {int(number): offset for number, offset in told.items()}

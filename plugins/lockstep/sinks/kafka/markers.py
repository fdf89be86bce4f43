"""The markers of epochs in Kafka: records of one compacted topic, each written in the transaction of its epoch's rows.

A marker's key is (deployment, pipeline, sink, epoch, shard), never the attempt. It is looked for by reading one
partition to the end that it has *now*, open transactions included: a reader of committed records stops at the oldest
open transaction, behind which a marker may stand that was committed already.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from lockstep.errors import PreflightRefused, PublishBusy
from lockstep.kafka.cluster import Cluster, Topic
from lockstep.kafka.connection import Asker, Settings
from lockstep.kafka.reading import at_hand, committed_reader
from lockstep.sinks.base import Marker
from lockstep.sinks.handles import SinkName

PARTITIONS = 8
SETTINGS: Mapping[str, str] = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}


@dataclass(frozen=True)
class ShardMarker:
    """`starts`: the end of each of the topic's partitions before the shard was sent; `read` begins there."""

    token: int
    manifest_hash: str
    starts: Mapping[int, int]

    def to_bytes(self) -> bytes:
        told = {"token": self.token, "manifest": self.manifest_hash, "starts": dict(self.starts)}
        return json.dumps(told).encode()

    @classmethod
    def from_bytes(cls, found: bytes) -> ShardMarker:
        told = json.loads(found)
        starts = {int(number): offset for number, offset in told["starts"].items()}
        return cls(told["token"], told["manifest"], starts)

    def of_epoch(self, epoch: int) -> Marker:
        return Marker(epoch, self.token, self.manifest_hash)


class MarkerTopic:
    """One cluster's markers."""

    def __init__(self, cluster: Cluster, settings: Settings, name: str, owner: SinkName, patience: float) -> None:
        """`patience`: seconds to wait for other transactions to end."""
        self._cluster, self._settings, self.name = cluster, settings, name
        self._owner, self._patience = owner, patience
        self._who = Asker(f"sink {owner.sink}")

    def create(self) -> Topic:
        """Raises `PreflightRefused` if the topic would forget markers."""
        self._cluster.create_topic(self.name, PARTITIONS, SETTINGS)
        found = self._cluster.require_topic(self.name)
        if (policy := self._cluster.topic_settings(self.name).get("cleanup.policy")) != "compact":
            raise PreflightRefused(
                f"{self._who.name}: topic {self.name} has cleanup.policy={policy}, so it forgets: set it to compact"
            )
        return found

    def partition(self, topic: Topic) -> int:
        """Every marker of a sink stands in the same partition."""
        return (
            zlib.crc32(f"{self._owner.deployment}/{self._owner.pipeline}/{self._owner.sink}".encode())
            % topic.partitions
        )

    def key(self, epoch: int, shard: int) -> bytes:
        owner = self._owner
        return f"{owner.deployment}/{owner.pipeline}/{owner.sink}/{epoch}/{shard}".encode()

    def find(self, epoch: int, shards: int) -> dict[int, ShardMarker]:
        """The epoch's committed markers by shard. Raises `PublishBusy` while another's transaction is in the way."""
        topic = self._cluster.require_topic(self.name)
        number = self.partition(topic)
        end = self._cluster.ends(self.name, [number])[number]
        wanted = {self.key(epoch, shard): shard for shard in range(shards)}
        found: dict[int, ShardMarker] = {}
        for key, value in self._committed(number, end):
            if key in wanted:
                found[wanted[key]] = ShardMarker.from_bytes(value)
        return found

    def _committed(self, number: int, end: int) -> list[tuple[bytes, bytes]]:
        """Every committed record before `end`, once none of them can still be decided otherwise."""
        records: list[tuple[bytes, bytes]] = []
        if end == 0:
            return records
        deadline = time.monotonic() + self._patience
        at_start = TopicPartition(self.name, number, OFFSET_BEGINNING)
        with self._who.naming(f"reading {self.name}"), committed_reader(self._settings, [at_start]) as reader:
            while time.monotonic() < deadline:
                for message in at_hand(reader, deadline):
                    error = message.error()
                    if error is None:
                        records.append((message.key(), message.value()))
                    elif error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    elif message.offset() >= end:
                        return records
        raise PublishBusy(
            f"{self._who.name}: a transaction is open in {self.name}, and may hide this epoch's marker: waited "
            f"{self._patience:.0f} s for it to end; it ends with its timeout at the latest"
        )

"""Queries to a Kafka cluster: topics, settings, offsets, groups; and what its topics accept and guarantee.

Each `require_…` raises the asker's `refused`. They are called before the decision: afterwards a refusal would block the
pipeline.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from lockstep.connections.kafka.connection import Asker, Settings, client, code_of

SECONDS = 30.0
T = TypeVar("T")
#: Errors of a partition while brokers learn of a new leader. The last is librdkafka's own: no answer about leaders.
_NO_LEADER = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,
    }
)
#: Errors of a group while brokers create, load or move the topic of the groups' offsets.
_NO_COORDINATOR = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)


@dataclass(frozen=True)
class Topic:
    """A topic now. `id` changes when it is deleted and created again. `replicas`, `in_sync`: the minimum of any
    partition."""

    name: str
    id: str
    partitions: int
    replicas: int
    in_sync: int


class Cluster:
    """Queries to one cluster. Each raises the errors of its `Asker`."""

    def __init__(self, settings: Settings, who: Asker) -> None:
        self._admin = AdminClient(client(settings))
        self.settings, self.who = settings, who  #: for other clients of the same cluster
        self._created: set[str] = set()
        self._topics_met: set[str] = set()  # topics whose leaders this client knows

    def close(self) -> None:
        """End the client's threads; librdkafka does that once nothing refers to the client."""
        del self._admin

    def topic(self, name: str) -> Topic | None:
        """Return the topic; None if there is none."""
        with self.who.naming(f"looking at topic {name}"):
            try:
                description = self._retry(name, lambda: self._described(name))
            except KafkaException as error:
                if _is_unknown(error):
                    return None
                raise
        return Topic(
            name,
            str(description.topic_id),
            len(description.partitions),
            min((len(partition.replicas) for partition in description.partitions), default=0),
            min((len(partition.isr) for partition in description.partitions), default=0),
        )

    def _described(self, name: str) -> Any:
        futures = self._admin.describe_topics(TopicCollection([name]), request_timeout=SECONDS)
        return futures[name].result(SECONDS)

    def _retry(self, name: str, ask: Callable[[], T]) -> T:
        """Call `ask`, and again while the broker that answers doesn't know a topic yet that this client has created,
        while a partition has no leader, and while a group has no coordinator."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return ask()
            except KafkaException as error:
                code = code_of(error).code()
                passes = code in _NO_LEADER | _NO_COORDINATOR or (_is_unknown(error) and name in self._created)
                if not passes or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Create a topic with the cluster's default number of replicas, unless it exists."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(settings))
        with self.who.naming(f"creating topic {name}"):
            try:
                self._admin.create_topics([topic], request_timeout=SECONDS)[name].result(SECONDS)
            except KafkaException as error:
                if code_of(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        self._created.add(name)
        if self.topic(name) is None:
            raise self.who.unavailable(f"{self.who.name}: topic {name} was created, and no broker knows it")

    def topic_settings(self, name: str) -> Mapping[str, str]:
        with self.who.naming(f"reading the settings of topic {name}"):
            return self._retry(name, lambda: self._settings(ResourceType.TOPIC, name))

    def broker_settings(self) -> Mapping[str, str]:
        """Return the settings of one broker; the ones used here are the same in all."""
        with self.who.naming("asking for the brokers"):
            broker = next(iter(self._admin.list_topics(timeout=SECONDS).brokers))
        with self.who.naming("reading a broker's settings"):
            return self._settings(ResourceType.BROKER, str(broker))

    def _settings(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        resource = ConfigResource(kind, name)
        entries = self._admin.describe_configs([resource], request_timeout=SECONDS)[resource].result(SECONDS)
        return {name: entry.value or "" for name, entry in entries.items()}

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool = False) -> dict[int, int]:
        """Return the offset after the last record of each partition; `stable`: before the oldest open transaction."""
        return self._offsets(topic, partitions, OffsetSpec.latest(), stable)

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int | None]]:
        """Return (stable end, leader epoch) of each partition; the leader epoch is None if brokers don't report it."""
        ends = self._listed(topic, partitions, OffsetSpec.latest(), True)
        return {number: (end.offset, end.leader_epoch) for number, end in ends.items()}

    def beginnings(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset of the oldest record of each partition; its end if it has none."""
        return self._offsets(topic, partitions, OffsetSpec.earliest(), False)

    def offsets_at(self, topic: str, partitions: Iterable[int], time: datetime | int) -> dict[int, int | None]:
        """Return the first offset of each partition with this timestamp or a later one; None if there is none. `time`:
        a number means milliseconds since 1970."""
        spec = OffsetSpec.for_timestamp(time if isinstance(time, int) else int(time.timestamp() * 1000))
        offsets = self._offsets(topic, partitions, spec, False)
        return {number: offset if offset >= 0 else None for number, offset in offsets.items()}

    def _offsets(self, topic: str, partitions: Iterable[int], spec: Any, stable: bool) -> dict[int, int]:
        return {number: result.offset for number, result in self._listed(topic, partitions, spec, stable).items()}

    def _listed(self, topic: str, partitions: Iterable[int], spec: Any, stable: bool) -> dict[int, Any]:
        level = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        specs = {TopicPartition(topic, number): spec for number in partitions}
        if not specs:
            return {}

        def ask() -> dict[int, Any]:
            # Alone, `list_offsets` asks for the leaders once, and again after 3 s: its first question is lost when it
            # went over the bootstrap connection, which librdkafka ends as soon as it knows the brokers.
            leaders_known = topic in self._topics_met
            self._topics_met.discard(topic)
            if not leaders_known:
                self._described(topic)
            answers = self._admin.list_offsets(specs, isolation_level=level, request_timeout=SECONDS)
            results = {partition.partition: future.result(SECONDS) for partition, future in answers.items()}
            self._topics_met.add(topic)
            return results

        with self.who.naming(f"asking for offsets of {topic}"):
            return self._retry(topic, ask)

    def all_ends(self, topic: str) -> dict[int, int]:
        """Return the ends of every partition, open transactions included. Raises the asker's `refused` if the topic is
        missing."""
        return self.ends(topic, range(self.require_topic(topic).partitions))

    def committed_offsets(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int | None]]:
        """Return (offset, leader epoch) of each partition as a consumer group has committed them; the leader epoch is
        None if it wasn't stored, and partitions without a committed offset are left out. Raises the asker's
        `unavailable` while an open transaction commits some of them."""
        places = [TopicPartition(topic, number) for number in partitions]
        if not places:
            return {}
        with self.who.naming(f"asking for the offsets of group {group}"):
            answers = self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, places)], require_stable=True, request_timeout=SECONDS
            )
            committed = answers[group].result(SECONDS).topic_partitions
            for partition in committed:
                if partition.error is not None:
                    raise KafkaException(partition.error)
        return {
            partition.partition: (partition.offset, partition.leader_epoch)
            for partition in committed
            if partition.offset >= 0
        }

    def members(self, group: str) -> int:
        """Return the number of consumers in a group now."""

        def ask() -> int:
            descriptions = self._admin.describe_consumer_groups([group], request_timeout=SECONDS)
            return len(descriptions[group].result(SECONDS).members)

        with self.who.naming(f"asking for the members of group {group}"):
            try:
                return self._retry(group, ask)
            except KafkaException as error:
                if code_of(error).code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return 0
                raise

    def commit_offsets(self, group: str, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Set a consumer group's offsets, by topic and partition; refused while the group has members of its own."""
        places = [TopicPartition(topic, n, end) for topic, offsets in ends.items() for n, end in offsets.items()]
        if not places:
            return

        def commit() -> None:
            answers = self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])
            for partition in answers[group].result(SECONDS).topic_partitions:
                if partition.error is not None:  # a group without a coordinator reports it per partition only
                    raise KafkaException(partition.error)

        with self.who.naming(f"committing offsets of group {group}"):
            self._retry(group, commit)

    def topics(self) -> list[str]:
        """Return the names of all topics that the login may see, without the brokers' internal ones."""
        with self.who.naming("listing the topics"):
            return sorted(name for name in self._admin.list_topics(timeout=SECONDS).topics if name[:2] != "__")

    def id(self) -> str:
        """Return the cluster's id, which differs from that of another cluster at the same address."""
        with self.who.naming("asking for the cluster"):
            return str(self._admin.describe_cluster(request_timeout=SECONDS).result(SECONDS).cluster_id)

    def require_topic(self, name: str) -> Topic:
        """Return the topic. Raises the asker's `refused` if it is missing."""
        topic = self.topic(name)
        if topic is None:
            raise self.who.refused(
                f"{self.who.name}: there is no topic {name}: create it, with as many partitions as its readers need"
            )
        return topic


def _is_unknown(error: KafkaException) -> bool:
    return bool(code_of(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART)


_log = logging.getLogger(__name__)

#: An upper bound for the overhead of a batch with one record, in bytes.
_RECORD_OVERHEAD = 200
BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
#: Limit for both directions in brokers before 4.0, if neither of the two is set.
EITHER = "message.timestamp.difference.max.ms"
_ANY = 2**63 - 1
#: The brokers' internal topic with the outcomes of transactions.
_TRANSACTION_LOG = "__transaction_state"

#: A setting and its value.
Limit = tuple[str, int]


@dataclass(frozen=True)
class TopicLimits:
    """The limits of one topic. `size`: bytes of a batch. `before`, `after`: milliseconds between a record's time and
    now; None: any. `keyed`: compacted, so each record needs a key."""

    topic: str
    partitions: int
    size: Limit
    before: Limit | None = None
    after: Limit | None = None
    keyed: bool = False

    @property
    def batch_bytes(self) -> int:
        return self.size[1]

    @property
    def record_bytes(self) -> int:
        """The largest sum of key, value and headers of a record, in bytes."""
        return self.batch_bytes - _RECORD_OVERHEAD

    @classmethod
    def of(
        cls, topic: str, partitions: int, settings: Mapping[str, str], client: Mapping[str, str] = {}
    ) -> TopicLimits:
        """`settings`: the topic's. `client`: the connection's."""
        sizes = [("max.message.bytes", int(settings.get("max.message.bytes", 1_048_588)))]
        for name, own_settings in (("segment.bytes", settings), ("message.max.bytes", client)):
            sizes += [(name, int(own_settings[name]))] if name in own_settings else []
        own_time = settings.get("message.timestamp.type", "CreateTime") == "CreateTime"
        return cls(
            topic,
            partitions,
            min(sizes, key=lambda limit: limit[1]),
            _time(settings, BEFORE) if own_time else None,
            _time(settings, AFTER) if own_time else None,
            is_compacted(settings),
        )


def limits_of(cluster: Cluster, topic: str) -> TopicLimits:
    """Return the limits of a topic for a client with the cluster's settings."""
    partitions = cluster.require_topic(topic).partitions
    return TopicLimits.of(topic, partitions, cluster.topic_settings(topic), cluster.settings)


def is_compacted(settings: Mapping[str, str]) -> bool:
    return "compact" in settings.get("cleanup.policy", "")


def _time(settings: Mapping[str, str], name: str) -> Limit | None:
    for setting in (name, EITHER):
        if (value := int(settings.get(setting) or _ANY)) < _ANY:
            return setting, value
    return None


def require_transactions(cluster: Cluster, timeout: float) -> None:
    """Refuse brokers that would end a transaction before `timeout` seconds."""
    max_timeout = int(cluster.broker_settings().get("transaction.max.timeout.ms", 900_000))
    if timeout * 1000 > max_timeout:
        raise cluster.who.refused(
            f"{cluster.who.name}: transaction_timeout is {timeout:.0f} s, the brokers' transaction.max.timeout.ms is "
            f"{max_timeout}: lower the one or raise the other"
        )


def require_durable(cluster: Cluster, topic: Topic) -> None:
    """Refuse a topic that could lose an acknowledged record with one broker."""
    faults = list(_not_durable(topic, cluster.topic_settings(topic.name)))
    if faults:
        raise cluster.who.refused(f"{cluster.who.name}: topic {topic.name}: {'; '.join(faults)}")


def require_lasting_outcomes(cluster: Cluster) -> None:
    """Refuse brokers that could lose an acknowledged commit with one broker.

    The brokers' transaction log is a topic that is created with the first transaction. If the login may not describe it
    a warning is logged instead.
    """
    who = cluster.who
    try:
        log = cluster.topic(_TRANSACTION_LOG)
        if log is not None:
            faults = list(_not_durable(log, cluster.topic_settings(log.name)))
        else:
            settings, prefix = cluster.broker_settings(), "transaction.state.log"
            replicas, needed = (int(settings.get(f"{prefix}.{name}", 0)) for name in ("replication.factor", "min.isr"))
            text = f"it will have {replicas} replicas, and {prefix}.min.isr={needed}: set that to 2"
            faults = [text] if replicas > 1 and needed < 2 else []
    except who.refused as refused:
        _log.warning("%s: can't check whether outcomes of transactions are durable: %s", who.name, refused)
        return
    if faults:
        raise who.refused(f"{who.name}: the brokers' topic {_TRANSACTION_LOG}: {'; '.join(faults)}")


def _not_durable(topic: Topic, settings: Mapping[str, str]) -> Iterator[str]:
    needed = int(settings.get("min.insync.replicas", 1))
    if topic.replicas > 1 and needed < 2:
        yield (
            f"it has {topic.replicas} replicas and min.insync.replicas={needed}: a record that only one broker has "
            "would count as safe; set it to 2"
        )
    if topic.in_sync < needed:
        yield f"{topic.in_sync} replicas are in sync, min.insync.replicas is {needed}: nothing could be written now"
    if settings.get("unclean.leader.election.enable") == "true":
        yield "unclean.leader.election.enable=true lets a broker lead that lacks records; set it to false"

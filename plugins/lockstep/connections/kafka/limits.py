"""What brokers allow and promise of a topic, asked before the decision: afterwards a refusal would block the pipeline.

Each `require_…` raises what the cluster's asker raises for a refusal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep.connections.kafka.cluster import Cluster, Topic

_log = logging.getLogger(__name__)

#: What a batch of one record has around it, generously.
_RECORD_OVERHEAD = 200
BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
#: Of brokers before 4.0, in both directions, where neither of the two is set.
EITHER = "message.timestamp.difference.max.ms"
_ANY = 2**63 - 1
#: The brokers' own: outcomes of transactions.
_TRANSACTION_LOG = "__transaction_state"

#: A setting and its value.
Limit = tuple[str, int]


@dataclass(frozen=True)
class TopicLimits:
    """What one topic takes. `size`: of a batch, in bytes. `before`, `after`: milliseconds between a record's time and
    now; None: any. `keyed`: compacted."""

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
        """Key, value and header of the largest record."""
        return self.batch_bytes - _RECORD_OVERHEAD

    @classmethod
    def of(
        cls, topic: str, partitions: int, settings: Mapping[str, str], client: Mapping[str, str] = {}
    ) -> TopicLimits:
        """`settings`: the topic's. `client`: the connection's."""
        sizes = [("max.message.bytes", int(settings.get("max.message.bytes", 1_048_588)))]
        for name, given in (("segment.bytes", settings), ("message.max.bytes", client)):
            sizes += [(name, int(given[name]))] if name in given else []
        own_time = settings.get("message.timestamp.type", "CreateTime") == "CreateTime"
        return cls(
            topic,
            partitions,
            min(sizes, key=lambda one: one[1]),
            _time(settings, BEFORE) if own_time else None,
            _time(settings, AFTER) if own_time else None,
            is_compacted(settings),
        )


def limits_of(cluster: Cluster, topic: str) -> TopicLimits:
    """What the topic's brokers take from a client with the cluster's settings."""
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
    """Refuse where brokers would end a transaction sooner than `timeout` seconds."""
    most = int(cluster.broker_settings().get("transaction.max.timeout.ms", 900_000))
    if timeout * 1000 > most:
        raise cluster.who.refused(
            f"{cluster.who.name}: transaction_timeout is {timeout:.0f} s, the brokers' transaction.max.timeout.ms is "
            f"{most}: lower the one or raise the other"
        )


def require_durable(cluster: Cluster, topic: Topic) -> None:
    """Refuse where a record that was acknowledged could be lost with one broker."""
    faults = list(_not_durable(topic, cluster.topic_settings(topic.name)))
    if faults:
        raise cluster.who.refused(f"{cluster.who.name}: topic {topic.name}: {'; '.join(faults)}")


def require_lasting_outcomes(cluster: Cluster) -> None:
    """Refuse where a commit that was answered could be lost with one broker.

    The brokers' log of transactions is a topic like others, made when the first transaction begins. A login that may
    not look at it is taken at its word.
    """
    who = cluster.who
    try:
        log = cluster.topic(_TRANSACTION_LOG)
        faults = list(
            _not_durable(log, cluster.topic_settings(log.name)) if log else _to_come(cluster.broker_settings())
        )
    except who.refused as refused:
        _log.warning("%s: nobody looks whether outcomes of transactions last: %s", who.name, refused)
        return
    if faults:
        raise who.refused(f"{who.name}: the brokers' topic {_TRANSACTION_LOG}: {'; '.join(faults)}")


def _to_come(settings: Mapping[str, str]) -> Iterator[str]:
    """Of a log of transactions that isn't there yet."""
    replicas, needed = (int(settings.get(f"transaction.state.log.{of}", 0)) for of in ("replication.factor", "min.isr"))
    if replicas > 1 and needed < 2:
        yield f"it will have {replicas} replicas, and transaction.state.log.min.isr={needed}: set that to 2"


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

"""What brokers allow and promise, asked before the decision: afterwards a refusal would block the pipeline."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep.errors import PreflightRefused
from lockstep.kafka.cluster import Cluster, Topic

_log = logging.getLogger(__name__)

#: The brokers' own: outcomes of transactions.
TRANSACTION_LOG = "__transaction_state"
#: What a batch of one record has around it, generously.
RECORD_OVERHEAD = 200


@dataclass(frozen=True)
class Limits:
    """`batch_bytes`: the topic's limit. `record_bytes`: key, value and header of the largest record that it takes."""

    batch_bytes: int

    @property
    def record_bytes(self) -> int:
        return self.batch_bytes - RECORD_OVERHEAD


def limits_of(cluster: Cluster, topic: str) -> Limits:
    return Limits(int(cluster.topic_settings(topic).get("max.message.bytes", 1_048_588)))


def require_transactions(cluster: Cluster, timeout: float, who: str) -> None:
    """Raises `PreflightRefused` if brokers would end a transaction sooner than `timeout` seconds."""
    most = int(cluster.broker_settings().get("transaction.max.timeout.ms", 900_000))
    if timeout * 1000 > most:
        raise PreflightRefused(
            f"{who}: transaction_timeout is {timeout:.0f} s, the brokers' transaction.max.timeout.ms is {most}: "
            "lower the one or raise the other"
        )


def require_durable(cluster: Cluster, topic: Topic, who: str) -> None:
    """Raises `PreflightRefused` if a record that was acknowledged could be lost with one broker."""
    faults = list(_not_durable(topic, cluster.topic_settings(topic.name)))
    if faults:
        raise PreflightRefused(f"{who}: topic {topic.name}: {'; '.join(faults)}")


def require_lasting_outcomes(cluster: Cluster, who: str) -> None:
    """Raises `PreflightRefused` if a commit that was answered could be lost with one broker.

    The brokers' log of transactions is a topic like others, made when the first transaction begins. A login that may
    not look at it is taken at its word.
    """
    try:
        log = cluster.topic(TRANSACTION_LOG)
        faults = list(
            _not_durable(log, cluster.topic_settings(log.name)) if log else _to_come(cluster.broker_settings())
        )
    except PreflightRefused as refused:
        _log.warning("%s: nobody looks whether outcomes of transactions last: %s", who, refused)
        return
    if faults:
        raise PreflightRefused(f"{who}: the brokers' topic {TRANSACTION_LOG}: {'; '.join(faults)}")


def _to_come(settings: Mapping[str, str]) -> Iterator[str]:
    """Of a log of transactions that isn't there yet."""
    replicas, needed = (int(settings.get(f"transaction.state.log.{of}", 0)) for of in ("replication.factor", "min.isr"))
    if replicas > 1 and needed < 2:
        yield f"it will have {replicas} replicas, and transaction.state.log.min.isr={needed}: set that to 2"


def require_keyed(cluster: Cluster, topic: Topic, key: str | None, who: str) -> None:
    """Raises `PreflightRefused` for a compacted topic without keys: brokers refuse such records."""
    if key is None and "compact" in cluster.topic_settings(topic.name).get("cleanup.policy", ""):
        raise PreflightRefused(f"{who}: topic {topic.name} is compacted, so each record needs a key: give key=…")


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

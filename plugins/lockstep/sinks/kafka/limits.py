"""What brokers allow and promise, asked before the decision: afterwards a refusal would block the pipeline."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from lockstep.errors import PreflightRefused
from lockstep.kafka.cluster import Cluster, Topic
from lockstep.sinks.kafka.fit import is_compacted
from lockstep.sinks.kafka.records import RecordColumns

_log = logging.getLogger(__name__)

#: The brokers' own: outcomes of transactions.
TRANSACTION_LOG = "__transaction_state"


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


def require_kept(settings: Mapping[str, str], topic: str, columns: RecordColumns, who: str) -> None:
    """Raises `PreflightRefused` for a topic that refuses every record, or drops a column of each without a word."""
    if columns.key is None and is_compacted(settings):
        raise PreflightRefused(f"{who}: topic {topic} is compacted, so each record needs a key: give key=…")
    if columns.timestamp is not None and settings.get("message.timestamp.type") == "LogAppendTime":
        raise PreflightRefused(
            f"{who}: topic {topic} has message.timestamp.type=LogAppendTime: brokers would put their own time in place "
            f"of column {columns.timestamp}. Leave timestamp={columns.timestamp!r} away and send the column in the "
            "value, or set the topic to CreateTime"
        )


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

"""Topics as JSON: their records where they stood, ends of transactions included: offsets mean the same again."""

from __future__ import annotations

import base64
from contextlib import closing
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from tests.waiting import until

SECONDS = 30


def dump(bootstrap: str) -> dict[str, Any]:
    """The cluster's id, and every topic that isn't the brokers' own."""
    with closing(_cluster(bootstrap)) as cluster:
        topics = {}
        for name in cluster.topics():
            topic = cluster.require_topic(name)
            ends = cluster.ends(name, range(topic.partitions))
            partitions = [{"end": end, "records": _records(bootstrap, name, n, end)} for n, end in ends.items()]
            policy = cluster.topic_settings(name)["cleanup.policy"]
            topics[name] = {"id": topic.id, "policy": policy, "partitions": partitions}
        return {"cluster": cluster.id(), "topics": topics}


def restore(bootstrap: str, dumped: dict[str, Any]) -> dict[str, str]:
    """Make the topics again. Returns what the old ids of the cluster and its topics are now."""
    with closing(_cluster(bootstrap)) as cluster:
        now = {dumped["cluster"]: cluster.id()}
        for name, topic in dumped["topics"].items():
            cluster.create_topic(name, len(topic["partitions"]), {"cleanup.policy": topic["policy"]})
            now[topic["id"]] = cluster.require_topic(name).id
            for number, partition in enumerate(topic["partitions"]):
                _fill(cluster, bootstrap, name, number, partition)
        return now


def values(bootstrap: str, topic: str) -> list[bytes]:
    """The value of each committed record."""
    with closing(_cluster(bootstrap)) as cluster:
        ends = cluster.ends(topic, range(cluster.require_topic(topic).partitions))
    records = [record for number, end in ends.items() for record in _records(bootstrap, topic, number, end)]
    return [base64.b64decode(value) for _, _, value, _ in records]


def _fill(cluster: Cluster, bootstrap: str, topic: str, number: int, partition: dict[str, Any]) -> None:
    """Offsets that are missing are those of ends of transactions: as many were open as ended there together.

    A broker answers when a transaction is decided, and writes its end a moment later.
    """
    ends = _ends(partition)
    most = max((ended for _, ended in ends), default=0)
    if not most:
        producer = Producer({"bootstrap.servers": bootstrap})
        for record in partition["records"]:
            _produce(producer, topic, number, record)
        producer.flush(SECONDS)
        return
    producers = [_transactional(bootstrap, f"{topic}-{number}-{one}") for one in range(most)]
    for some, ended in ends:
        taking = producers[:ended]
        for producer in taking:
            producer.begin_transaction()
        for place, record in enumerate(some):
            producer = taking[min(place, ended - 1)]
            _produce(producer, topic, number, record)
            producer.flush(SECONDS)
        for producer in taking:
            producer.commit_transaction(SECONDS)
        end = some[-1][0] + 1 + ended
        until(lambda end=end: cluster.ends(topic, [number])[number] == end, f"{topic}/{number} never ends at {end}")  # type: ignore[misc]


def _ends(partition: dict[str, Any]) -> list[tuple[list[Any], int]]:
    """Records that follow each other, and how many transactions end behind them."""
    found: list[tuple[list[Any], int]] = []
    records, some = partition["records"], []
    for record, following in pairwise([*records, [partition["end"]]]):
        some.append(record)
        if ended := following[0] - record[0] - 1:
            found.append((some, ended))
            some = []
    return [*found, (some, 0)] if some else found


def _transactional(bootstrap: str, id: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": id})
    producer.init_transactions(SECONDS)
    return producer


def _produce(producer: Producer, topic: str, partition: int, record: list[Any]) -> None:
    _, key, value, headers = record
    told = [(name, _bytes(one)) for name, one in headers]
    producer.produce(topic, _bytes(value), _bytes(key), partition, headers=told)


def _records(bootstrap: str, topic: str, partition: int, end: int) -> list[Any]:
    """Offset, key, value and headers of each committed record before `end`; bytes in base 64."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    found: list[Any] = []
    with closing(consumer):
        consumer.assign([TopicPartition(topic, partition, 0)])
        while end:
            message = consumer.poll(SECONDS)
            assert message is not None, "the broker doesn't answer"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            headers = [[name, _text(value)] for name, value in message.headers() or ()]
            found.append([message.offset(), _text(message.key()), _text(message.value()), headers])
    return found


def _cluster(bootstrap: str) -> Cluster:
    return Cluster({"bootstrap.servers": bootstrap}, Asker("kept"))


def _text(value: bytes | str | None) -> str | None:
    if value is None:
        return None
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)

"""Hand records to a producer as fast as Python can, and no more of them than it may hold."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, Producer

from lockstep.errors import PublishBlocked
from lockstep.kafka.connection import Settings, client
from lockstep.sinks.kafka.records import HEADER, Record

#: Large batches, as an epoch is there at once; lz4 takes no more time than it saves, as headers repeat. What one
#: process holds of records that brokers have not taken yet is bounded by bytes, and by number, as librdkafka needs some
#: hundred bytes more for each. A connection may say otherwise.
_BATCH_BYTES = 1_000_000
_TUNING: Mapping[str, Any] = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 65_536,
    "queue.buffering.max.messages": 100_000,
}
_PAUSE = 0.01
#: What brokers refuse for good when a topic's settings have changed since the vote, and which ones those are.
_TAKES_LESS = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the topic's max.message.bytes, and the connection's message.max.bytes",
    KafkaError.INVALID_MSG: "raise the topic's max.message.bytes",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise the topic's segment.bytes",
    KafkaError.INVALID_TIMESTAMP: (
        "raise the topic's message.timestamp.before.max.ms, or message.timestamp.after.max.ms for times to come, at "
        "least until the epoch is published"
    ),
    KafkaError.INVALID_RECORD: (
        "the topic takes no record without a key while its cleanup.policy has compact in it: set that to delete, at "
        "least until the epoch is published"
    ),
}


def producer(settings: Settings, most_bytes: int, own: Mapping[str, Any]) -> Producer:
    """A client that sends records, and batches, of no more than `most_bytes`, the topic's max.message.bytes.

    Without being told, librdkafka would refuse records above its own limit, and brokers its batches above theirs.
    """
    sizes = {"batch.size": min(_BATCH_BYTES, most_bytes), "message.max.bytes": max(1000, most_bytes)}
    return Producer({**_TUNING, **sizes, **client(settings), **own, "delivery.report.only.error": True})


def refused(text: str, code: KafkaError) -> PublishBlocked | None:
    """What to raise if the brokers won't take a record as long as the topic is set as it is."""
    advice = _TAKES_LESS.get(code.code())
    return PublishBlocked(f"{text}; it was decided, so it has to be sent: {advice}") if advice else None


def send(to: Producer, topic: str, records: Iterable[Record], patience: float) -> int:
    """How many were handed over: all. Raises `KafkaException`; `BufferError` if nothing is taken for `patience` s."""
    produce, count = to.produce, 0
    header: dict[str, bytes] = {}  # one for all: the client copies what stands in it
    for key, value, partition, milliseconds, name in records:
        if name is not None:
            header[HEADER] = name
        # by position (two are callbacks): names would cost a third more
        arguments = (topic, value, key, partition, None, None, milliseconds, header)
        try:
            produce(*arguments)
        except BufferError:
            _wait_to_produce(to, arguments, patience)
        count += 1
    return count


def _wait_to_produce(to: Producer, arguments: tuple[Any, ...], patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        to.poll(_PAUSE)
        try:
            to.produce(*arguments)
            return
        except BufferError:
            if time.monotonic() > deadline:
                raise

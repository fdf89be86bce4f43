"""Hand records to a producer as fast as Python can, and no more of them than it may hold."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Producer

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


def producer(settings: Settings, most_bytes: int, own: Mapping[str, Any]) -> Producer:
    """A client that sends records, and batches, of no more than `most_bytes`, the topic's max.message.bytes.

    Without being told, librdkafka would refuse records above its own limit, and brokers its batches above theirs.
    """
    sizes = {"batch.size": min(_BATCH_BYTES, most_bytes), "message.max.bytes": max(1000, most_bytes)}
    return Producer({**_TUNING, **sizes, **client(settings), **own, "delivery.report.only.error": True})


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

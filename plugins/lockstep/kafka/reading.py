"""Readers of committed records that belong to no group and don't wait longer than they must."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.kafka.connection import Settings, client, connect

AT_ONCE = 10_000
PATIENCE = 60.0  #: seconds for a broker's answer


@contextmanager
def committed_reader(settings: Settings, places: list[TopicPartition]) -> Iterator[Consumer]:
    """A reader of committed records from these places on, that tells when it has come to an end. It is in no group."""
    reader = Consumer(
        client(settings)
        | {"group.id": "lockstep", "isolation.level": "read_committed", "enable.auto.commit": "false"}
        | {"enable.partition.eof": "true", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20}
    )
    try:
        if places:
            connect(reader, places[0].topic, PATIENCE)
            reader.assign(places)
        yield reader
    finally:
        reader.close()


def at_hand(reader: Consumer, deadline: float) -> list[Any]:
    """What has come, as soon as something has; nothing if that isn't before `deadline` (of time.monotonic)."""
    first = reader.poll(max(0.0, deadline - time.monotonic()))  # `consume` would wait for a whole list
    return [] if first is None else [first, *reader.consume(AT_ONCE, timeout=0)]


def committed_records(
    settings: Settings, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], patience: float = PATIENCE
) -> Iterator[list[Any]]:
    """Lists of the committed messages between `starts` and `ends` (partition → offset), each partition in its order.

    It is over when none of them can be decided otherwise. Raises `KafkaException`; `TimeoutError` if nothing comes for
    `patience` seconds, as behind an open transaction.
    """
    waiting = {number for number, end in ends.items() if end > starts.get(number, 0)}
    if not waiting:
        return
    places = [TopicPartition(topic, number, starts.get(number) or OFFSET_BEGINNING) for number in sorted(waiting)]
    with committed_reader(settings, places) as reader:
        while waiting:
            messages = at_hand(reader, time.monotonic() + patience)
            if not messages:
                raise TimeoutError
            records = [one for one in messages if _is_record(one)]
            waiting -= {one.partition() for one in messages if _reached(one) >= ends[one.partition()]}
            yield records


def _is_record(message: Any) -> bool:
    """Whether it isn't the news that a partition has come to an end."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is None


def _reached(message: Any) -> int:
    """The offset behind it."""
    return int(message.offset() + (message.error() is None))

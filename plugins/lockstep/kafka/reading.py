"""Read an epoch's records back from a topic, for `verify`: those whose header says so, committed ones only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.kafka.connection import Asker, Settings, client
from lockstep.sinks.append_only.records import Origin
from lockstep.sinks.kafka.records import HEADER

AT_ONCE = 10_000
PATIENCE = 60.0


def records_of_epoch(
    settings: Settings, who: Asker, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], origin: Origin
) -> Iterator[list[Any]]:
    """Lists of the epoch's messages between `starts` and `ends` (partition → offset), each partition in its order.

    Raises the asker's `unavailable` if nothing comes for a minute.
    """
    prefix = origin.key(0)[:-1].encode()
    waiting = {number for number, end in ends.items() if end > starts.get(number, 0)}
    places = [TopicPartition(topic, number, starts.get(number, OFFSET_BEGINNING)) for number in sorted(waiting)]
    with who.naming(f"reading {topic}"), committed_reader(settings, places) as reader:
        while waiting:
            messages = at_hand(reader, time.monotonic() + PATIENCE)
            if not messages:
                raise who.unavailable(f"{who.name}: nothing came from {topic} for {PATIENCE:.0f} s")
            yield [one for one in messages if _good(one, waiting, ends) and _is_of(one, prefix)]


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
            reader.list_topics(places[0].topic, timeout=PATIENCE)  # without a broker at hand it looks again in 0.5 s
            reader.assign(places)
        yield reader
    finally:
        reader.close()


def at_hand(reader: Consumer, deadline: float) -> list[Any]:
    """What has come, as soon as something has; nothing if that isn't before `deadline` (of time.monotonic)."""
    first = reader.poll(max(0.0, deadline - time.monotonic()))  # `consume` would wait for a whole list
    return [] if first is None else [first, *reader.consume(AT_ONCE, timeout=0)]


def _good(message: Any, waiting: set[int], ends: Mapping[int, int]) -> bool:
    """Whether it is a record; notes the partitions that are read to their end."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    reached = message.offset() if error is not None else message.offset() + 1
    if reached >= ends[message.partition()]:
        waiting.discard(message.partition())
    return error is None


def _is_of(message: Any, prefix: bytes) -> bool:
    return any(name == HEADER and value.startswith(prefix) for name, value in message.headers() or ())

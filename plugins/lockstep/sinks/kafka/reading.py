"""Read an epoch's records back from a topic, for `verify`: those whose header says so, committed ones only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from lockstep.kafka.connection import Asker, Settings
from lockstep.kafka.reading import PATIENCE, at_hand, committed_reader
from lockstep.sinks.append_only.records import Origin
from lockstep.sinks.kafka.records import HEADER


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

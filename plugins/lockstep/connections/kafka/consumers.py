"""Consumers without a group: reading committed records between two offsets, and detecting truncated partitions.

Each new leader of a partition increments its leader epoch, and brokers know where each epoch ended. If that is before
an offset that was seen in that epoch or an older one, records were lost and the offset may hold another record now
(KIP-320: log truncation detection).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.connections.kafka.connection import Asker, Settings, client, connect

_AT_ONCE = 10_000
PATIENCE = 60.0  #: seconds for a broker's answer


def committed_records(
    settings: Settings, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], max_wait: float = PATIENCE
) -> Iterator[list[Any]]:
    """Yield lists of the committed messages between `starts` and `ends` (partition → offset), in each partition's
    order.

    Ends once no transaction before `ends` is open. Raises `KafkaException`; `TimeoutError` if nothing arrives for
    `max_wait` seconds, for instance behind an open transaction.
    """
    waiting = {number for number, end in ends.items() if end > starts.get(number, 0)}
    if not waiting:
        return
    places = [TopicPartition(topic, number, starts.get(number) or OFFSET_BEGINNING) for number in sorted(waiting)]
    reader = Consumer(
        client(settings)
        | {"group.id": "lockstep", "isolation.level": "read_committed", "enable.auto.commit": "false"}
        | {"enable.partition.eof": "true", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20}
    )
    try:
        connect(reader, topic, PATIENCE)
        reader.assign(places)
        while waiting:
            first = reader.poll(max_wait)  # `consume` would wait until its list is full
            if first is None:
                raise TimeoutError
            records = []
            for message in [first, *reader.consume(_AT_ONCE, timeout=0)]:
                is_record, end = _is_record(message), ends[message.partition()]
                if is_record and message.offset() < end:
                    records.append(message)
                if message.offset() + is_record >= end:
                    waiting.discard(message.partition())
            yield records
    finally:
        reader.close()


def _is_record(message: Any) -> bool:
    """Return True for a record, False for the end of a partition."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is None


_OFFSET = re.compile(r"broker end offset is (\d+)")  # librdkafka reports it only in this text


@dataclass(frozen=True)
class Cut:
    """A truncation. `offset`: where, if known; records from there on were written later. `answer`: the broker's
    error."""

    offset: int | None
    answer: str


def truncations(settings: Settings, who: Asker, topic: str, places: Mapping[int, tuple[int, int]]) -> dict[int, Cut]:
    """Return the truncated partitions. `places`: partition → (offset, its leader epoch at that time). Raises the
    asker's errors."""
    reader = Consumer(
        client(settings)
        | {"group.id": "lockstep", "enable.auto.commit": "false", "enable.partition.eof": "true"}
        | {"auto.offset.reset": "error", "fetch.wait.max.ms": 20, "max.partition.fetch.bytes": 1024}
    )
    try:
        with who.naming(f"comparing leader epochs of {topic}"):
            reader.list_topics(topic, timeout=PATIENCE)
            reader.assign([TopicPartition(topic, number, OFFSET_END) for number in places])
            _first_answers(reader, who, places)  # only a partition that is being read can be seeked
            for number, (offset, leader) in places.items():
                reader.seek(TopicPartition(topic, number, offset, leader_epoch=leader))  # `assign` doesn't ask a broker
            answers = _first_answers(reader, who, places)
    finally:
        reader.close()
    return {number: _cut(error.str()) for number, error in answers.items() if error is not None}


def _cut(answer: str) -> Cut:
    match = _OFFSET.search(answer)
    return Cut(int(match[1]) if match else None, answer)


def _first_answers(reader: Consumer, who: Asker, partitions: Iterable[int]) -> dict[int, KafkaError | None]:
    """Return the error of each partition whose offset was refused, None for the others."""
    answers: dict[int, KafkaError | None] = {}
    expected, deadline = set(partitions), time.monotonic() + PATIENCE
    while expected - answers.keys():
        message = reader.poll(max(0.0, deadline - time.monotonic()))
        if message is None:
            raise who.unavailable(f"{who.name}: no answer about leader epochs for {PATIENCE:.0f} s")
        error, number = message.error(), message.partition()
        if error is not None and error.code() not in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
            raise KafkaException(error)
        if number is not None:
            answers.setdefault(number, error if error and error.code() == KafkaError._AUTO_OFFSET_RESET else None)
    return answers

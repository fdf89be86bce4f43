"""Whether a partition was cut and has grown again: the offset is there, and stands for another record.

Each time a partition gets a leader its epoch grows, and brokers know where each epoch ended. That is before an offset
which was seen in that epoch or an older one only if records were lost (KIP-320: log truncation detection).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.connections.kafka.connection import Asker, Settings, client

PATIENCE = 60.0
_OFFSET = re.compile(r"broker end offset is (\d+)")  # librdkafka tells it nowhere else


@dataclass(frozen=True)
class Cut:
    """Where a partition was cut, as far as it is known: what stands there and behind it was written since."""

    offset: int | None
    answer: str


def truncations(settings: Settings, who: Asker, topic: str, places: Mapping[int, tuple[int, int]]) -> dict[int, Cut]:
    """The partitions that were cut. `places`: partition → (offset, leader epoch it had then).

    Raises the asker's errors.
    """
    reader = Consumer(
        client(settings)
        | {"group.id": "lockstep", "enable.auto.commit": "false", "enable.partition.eof": "true"}
        | {"auto.offset.reset": "error", "fetch.wait.max.ms": 20, "max.partition.fetch.bytes": 1024}
    )
    try:
        with who.naming(f"comparing leader epochs of {topic}"):
            reader.list_topics(topic, timeout=PATIENCE)
            reader.assign([TopicPartition(topic, number, OFFSET_END) for number in places])
            _first_answers(reader, who, places)  # only a partition that is being read can be sought in
            for number, (offset, leader) in places.items():
                reader.seek(TopicPartition(topic, number, offset, leader_epoch=leader))  # `assign` asks no broker
            answers = _first_answers(reader, who, places)
    finally:
        reader.close()
    return {number: _cut(error.str()) for number, error in answers.items() if error is not None}


def _cut(answer: str) -> Cut:
    found = _OFFSET.search(answer)
    return Cut(int(found[1]) if found else None, answer)


def _first_answers(reader: Consumer, who: Asker, partitions: Iterable[int]) -> dict[int, KafkaError | None]:
    """For each partition whether its offset was refused; None where there is a record, or nothing more."""
    found: dict[int, KafkaError | None] = {}
    wanted, deadline = set(partitions), time.monotonic() + PATIENCE
    while wanted - found.keys():
        message = reader.poll(max(0.0, deadline - time.monotonic()))
        if message is None:
            raise who.unavailable(f"{who.name}: no answer about leader epochs for {PATIENCE:.0f} s")
        error, number = message.error(), message.partition()
        if error is not None and error.code() not in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
            raise KafkaException(error)
        if number is not None:
            found.setdefault(number, error if error and error.code() == KafkaError._AUTO_OFFSET_RESET else None)
    return found

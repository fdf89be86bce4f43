"""Reading committed records between two offsets, in no group, and without waiting longer than one must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.connections.kafka.connection import Settings, client, connect

_AT_ONCE = 10_000
PATIENCE = 60.0  #: seconds for a broker's answer


@contextmanager
def _committed_reader(settings: Settings, places: list[TopicPartition]) -> Iterator[Consumer]:
    """A reader of committed records from these places on, that tells when it has come to an end. It is in no group."""
    reader = Consumer(
        client(settings)
        | {"group.id": "lockstep", "isolation.level": "read_committed", "enable.auto.commit": "false"}
        | {"enable.partition.eof": "true", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20}
    )
    try:
        connect(reader, places[0].topic, PATIENCE)
        reader.assign(places)
        yield reader
    finally:
        reader.close()


def committed_records(
    settings: Settings, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], max_wait: float = PATIENCE
) -> Iterator[list[Any]]:
    """Lists of the committed messages between `starts` and `ends` (partition → offset), each partition in its order.

    It is over when none of them can be decided otherwise. Raises `KafkaException`; `TimeoutError` if nothing comes for
    `max_wait` seconds, as behind an open transaction.
    """
    waiting = {number for number, end in ends.items() if end > starts.get(number, 0)}
    if not waiting:
        return
    places = [TopicPartition(topic, number, starts.get(number) or OFFSET_BEGINNING) for number in sorted(waiting)]
    with _committed_reader(settings, places) as reader:
        while waiting:
            first = reader.poll(max_wait)  # `consume` would wait for a whole list
            if first is None:
                raise TimeoutError
            messages = [first, *reader.consume(_AT_ONCE, timeout=0)]
            records = [one for one in messages if _is_record(one) and one.offset() < ends[one.partition()]]
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

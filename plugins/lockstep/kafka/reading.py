"""Readers of committed records that belong to no group and don't wait longer than they must."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, TopicPartition

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

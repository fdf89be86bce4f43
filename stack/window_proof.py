"""Compare the windows that a pipeline gave with a plain batch over the same records, and with what readers saw."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import psycopg2
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lockstep.epoch import Epoch
from stack.reconciliation import Check

HOUR = timedelta(hours=1)
Key = tuple[str, datetime]  #: airport, start of the hour
Sums = tuple[int, int, int, Decimal]  #: flights, minutes of delay, the worst, the mean

WINDOWS = "SELECT origin, window_start, flights, delay, worst, mean FROM public.hourly_departures"
LATE = "SELECT carrier, flight, origin, dest, departed, delay FROM public.late_departures"


@dataclass(frozen=True)
class Event:
    """One flight, as the topic has it."""

    carrier: str
    flight: int
    origin: str
    dest: str
    departed: datetime | None
    delay: int | None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Event:
        departed = value["departed"]
        return cls(**{**value, "departed": datetime.fromisoformat(departed) if departed else None})


def batch(events: Sequence[Event], late: Counter[Event], until: datetime) -> dict[Key, Sums]:
    """Each hour before `until`, from all events that were neither late nor cancelled; no stream, no state, no Spark."""
    left, found = Counter(events) - late, defaultdict[Key, list[int]](list)
    for event, times in left.items():
        if event.departed is not None and event.departed < until:
            start = event.departed.replace(minute=0, second=0, microsecond=0)
            found[event.origin, start] += [event.delay or 0] * times
    return {key: _sums(delays) for key, delays in found.items()}


def _sums(delays: list[int]) -> Sums:
    mean = (Decimal(sum(delays)) / len(delays)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return len(delays), sum(delays), max(delays), mean


def checks(
    epochs: Sequence[Epoch], warehouse: str, bootstrap: str, topics: tuple[str, str], sent: int, until: datetime
) -> list[Check]:
    """`topics`: read and written. `sent`: records that the producer sent. `until`: hours that start before are over."""
    source, target = topics
    events = [Event.of(json.loads(value)) for value in committed(bootstrap, source)]
    records = [json.loads(value) for value in committed(bootstrap, target)]
    with closing(psycopg2.connect(warehouse)) as connection, connection.cursor() as cursor:
        cursor.execute(WINDOWS)
        table = {(row[0], row[1]): row[2:] for row in cursor.fetchall()}
        cursor.execute(LATE)
        late = Counter(Event(*row) for row in cursor.fetchall())
    expected = batch(events, late, until)
    counts = Counter[str]()
    for epoch in epochs:
        counts.update(epoch.summary["balances"]["windows"])
    accounted = counts["folded"] + counts["late"] + counts["filtered"]
    return [
        Check("departures", "sent by the producer", sent, "read by the epochs", counts["in"]),
        Check("departures", "read by the epochs", counts["in"], "folded, late or filtered", accounted),
        Check("late", "counted by the epochs", counts["late"], "rows of the table", sum(late.values())),
        _compared("windows", "rows of the table", _before(table, until), expected),
        _compared("windows", "last records of the topic", _before(_last(records), until), expected),
        _each_once(records, counts["corrected"]),
    ]


def _before(windows: Mapping[Key, Sums], until: datetime) -> dict[Key, Sums]:
    return {key: sums for key, sums in windows.items() if key[1] < until}


def _compared(what: str, name: str, found: Mapping[Key, Sums], expected: Mapping[Key, Sums]) -> Check:
    differing = [
        f"{origin} {start:%Y-%m-%d %H:%M}: {found.get((origin, start))}, a batch says {expected.get((origin, start))}"
        for origin, start in sorted(found.keys() | expected.keys())
        if found.get((origin, start)) != expected.get((origin, start))
    ]
    return Check(what, name, len(found), "of a batch", len(expected), tuple(differing))


def _last(records: Sequence[Mapping[str, Any]]) -> dict[Key, Sums]:
    return {
        _key(one): (one["flights"], one["delay"], one["worst"], Decimal(str(one["mean"])).quantize(Decimal("0.01")))
        for one in records
    }


def _each_once(records: Sequence[Mapping[str, Any]], corrected: int) -> Check:
    """A window's revisions are 0, 1, 2, … in this order, each once."""
    revisions = defaultdict[Key, list[int]](list)
    for one in records:
        revisions[_key(one)].append(one["revision"])
    wrong = [f"{key}: revisions {found}" for key, found in revisions.items() if found != list(range(len(found)))]
    once = sum(max(found) + 1 for found in revisions.values())
    return Check("records", "in the topic", len(records), "windows and their revisions", once, tuple(wrong))


def _key(record: Mapping[str, Any]) -> Key:
    return record["origin"], datetime.fromisoformat(record["window_start"])


def committed(bootstrap: str, topic: str) -> Iterator[bytes]:
    """The values of all committed records of a topic, each partition in its order."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "proof",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    try:
        waiting = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        while waiting:
            for message in consumer.consume(1000, timeout=1.0):
                error = message.error()
                if error is None:
                    yield message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()

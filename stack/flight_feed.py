"""A producer of real events: the flights of New York in 2013, one record a flight, told about when it has departed.

python -m stack.flight_feed --bootstrap host:port --topic departures --days 14 --seconds 60

Most are told within 40 minutes of their departure, out of order; one in a hundred after two hours, one in five hundred
after nine. Which ones hangs on the flight alone, so every run sends the same. A cancelled flight has no departure.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any
from zlib import crc32

import typer

from stack.landing import FIRST_DAY, open_data

ORIGINS = ("EWR", "JFK", "LGA")  #: an airport a partition
AFTERWARDS = timedelta(hours=12)  #: flights that are told about after the last day, so that its windows close
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, order=True)
class Told:
    """A flight in the order in which it is told about. `value`: what the record says."""

    at: datetime
    origin: str
    value: str


def events(days: int) -> list[Told]:
    """The flights of the first `days` days, and of some hours afterwards, in the order in which they are told about."""
    end = datetime.combine(FIRST_DAY + timedelta(days=days), datetime.min.time(), UTC) + AFTERWARDS
    return sorted(told for told in map(_told, _flights(end.date())) if told.at < end)


def _flights(last: date) -> Iterator[dict[str, str]]:
    with open_data("flights") as lines:
        for row in csv.DictReader(io.TextIOWrapper(lines, "utf-8")):
            if date(int(row["year"]), int(row["month"]), int(row["day"])) <= last:
                yield row


def _told(row: dict[str, str]) -> Told:
    scheduled = datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00")) + int(row["minute"]) * _MINUTE
    departed = None if row["dep_delay"] in ("NA", "") else scheduled + int(row["dep_delay"]) * _MINUTE
    value: dict[str, Any] = {
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "origin": row["origin"],
        "dest": row["dest"],
        "departed": departed.isoformat() if departed else None,
        "delay": int(row["dep_delay"]) if departed else None,
    }
    return Told((departed or scheduled) + _delay(row), row["origin"], json.dumps(value))


def _delay(row: dict[str, str]) -> timedelta:
    chance = crc32("|".join((row["time_hour"], row["carrier"], row["flight"], row["tailnum"])).encode())
    if chance % 500 == 0:
        return timedelta(hours=9)
    if chance % 100 == 1:
        return timedelta(hours=2)
    return chance % 40 * _MINUTE


def _untold(bootstrap: str, topic: str, told: list[Told]) -> list[Told]:
    """Those that an earlier feed, which may have been killed, didn't get to send: each partition has the first ones."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "feed"})
    try:
        sent = [consumer.get_watermark_offsets(TopicPartition(topic, one))[1] for one in range(len(ORIGINS))]
    finally:
        consumer.close()
    left = []
    for one in told:
        number = ORIGINS.index(one.origin)
        if sent[number] == 0:
            left.append(one)
        else:
            sent[number] -= 1
    return left


def main(
    bootstrap: Annotated[str, typer.Option(help="The broker, host:port.")],
    topic: Annotated[str, typer.Option(help="Where to.")] = "departures",
    days: Annotated[int, typer.Option(min=1, max=364, help="Days of 2013, from January 1.")] = 14,
    seconds: Annotated[float, typer.Option(min=0, help="How long it takes to send them all.")] = 60.0,
) -> None:
    """Send every flight once, evenly over the given time; those that are in the topic already are left out."""
    from confluent_kafka import Producer

    told, failed = _untold(bootstrap, topic, events(days)), list[str]()

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    began = time.monotonic()
    for number, one in enumerate(told):
        producer.produce(topic, one.value, one.origin, ORIGINS.index(one.origin), on_delivery=delivered)
        while (ahead := began + seconds * number / len(told) - time.monotonic()) > 0:
            producer.poll(min(ahead, 0.1))
    producer.flush()
    if failed:
        raise SystemExit(f"{len(failed)} records weren't taken: {failed[0]}")


if __name__ == "__main__":
    typer.run(main)

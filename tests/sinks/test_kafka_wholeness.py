"""What readers of committed records see while epochs are sent: by partition, each of them whole or not at all.

An epoch is whole in a partition when a reader sees all that it will ever have there. Readers who come in mid-epoch look
at what stands then; planted sinks that show parts of an epoch must be noticed by the same looks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.sinks.kafka._committer import KafkaSession
from lockstep.sinks.kafka._records import Records
from lockstep.testing import SealedRows, sealed
from lockstep.testing._under_test import epoch, opened, prepare
from stack.kafka import KafkaBroker
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import records_in
from tests.waiting import until

EPOCHS, ROWS, BATCHES = 3, 400, 4  #: rows and batches of each


@dataclass
class Looks:
    """What readers saw, each of them once: records by (partition, epoch)."""

    target: KafkaUnderTest
    seen: list[Counter[tuple[int, int]]] = field(default_factory=list)

    def look(self) -> None:
        self.seen.append(Counter(_place(one) for one in committed(self.target.broker, self.target.topic, now=True)))

    def parts(self) -> list[tuple[int, int]]:
        """Where somebody saw a part of an epoch: (partition, epoch)."""
        left = committed(self.target.broker, self.target.topic)
        whole = Counter(_place(one) for one in left)
        assert whole.total() == EPOCHS * ROWS, "not every row is there in the end"
        return [place for seen in self.seen for place, rows in seen.items() if rows != whole[place]]


def _place(message: Any) -> tuple[int, int]:
    *_, number, _ = dict(message.headers())["lockstep"].decode().split("/")
    return message.partition(), int(number)


@dataclass(frozen=True)
class LookedAt(SealedRows):
    """Rows that readers look for whenever a batch of them has come to the broker and the next one hasn't been sent."""

    looks: Looks | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        assert self.looks is not None
        for batch in super().__iter__():
            before = records_in(self.looks.target)
            yield batch
            _wait_for_more_than(before, self.looks.target)
            self.looks.look()


def _wait_for_more_than(before: int, target: KafkaUnderTest) -> None:
    until(lambda: records_in(target) > before, "nothing of a batch came to the broker")


@contextmanager
def looking_all_the_time(looks: Looks) -> Iterator[None]:
    """Another reader, who doesn't know when it is worth while."""
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            looks.look()

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(look)
        try:
            yield
        finally:
            done.set()
        reader.result()


def seen_while_sent(target: KafkaUnderTest) -> Looks:
    """Publish some epochs; readers look all the while, and for certain after each batch of each epoch."""
    looks = Looks(target)
    with looking_all_the_time(looks):
        for number in range(1, EPOCHS + 1):
            rows = sealed(ROWS, start=ROWS * number)
            vote = prepare(target, epoch(number), rows)
            with opened(target) as sink:
                sink.publish(epoch(number), vote, [LookedAt(rows[0].table, ROWS // BATCHES, looks=looks)])
    assert len(looks.seen) >= EPOCHS * BATCHES
    return looks


@pytest.mark.fault("E12")
def test_a_reader_of_committed_records_never_sees_half_an_epoch(kafka_broker: KafkaBroker) -> None:
    assert not seen_while_sent(KafkaUnderTest(kafka_broker)).parts()


def test_a_sink_with_several_transactions_an_epoch_is_seen_to_show_parts(
    kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a sink does that fears long transactions."""
    send = KafkaSession.send

    def send_in_a_transaction_of_its_own(session: KafkaSession, records: Records) -> None:
        send(session, records)
        for transaction in session.open.values():
            transaction.commit()
            transaction.begin()

    monkeypatch.setattr(KafkaSession, "send", send_in_a_transaction_of_its_own)
    assert seen_while_sent(KafkaUnderTest(kafka_broker)).parts()


def test_a_sink_without_transactions_is_seen_to_show_parts(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    weaker = KafkaUnderTest(kafka_broker, guarantee="at_least_once", committer=str(tmp_path))
    assert seen_while_sent(weaker).parts()

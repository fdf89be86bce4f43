"""KafkaSink against a real broker: the suite of all sinks; epochs in the place of others; what readers see meanwhile.

An epoch is whole in a partition when a reader sees all that it will ever have there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import LedgerConflict, PreflightRefused
from lockstep.sinks.kafka._committers import KafkaSession
from lockstep.sinks.kafka._records import TopicRecords
from lockstep.sinks.values import Guarantee, Publication
from lockstep.testing import behaviours, sealed
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._judge import ROWS
from lockstep.testing._under_test import epoch, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.guarantees import expect_row
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import Interrupted, observed, records_in
from tests.waiting import until

WATCHED = 400  #: rows of an epoch that readers look at


class WeakerKafkaUnderTest(KafkaUnderTest):
    guarantee = Guarantee.AT_LEAST_ONCE


class NoPromiseKafkaUnderTest(KafkaUnderTest):
    guarantee = Guarantee.NONE


def _weaker(broker: KafkaBroker, folder: Path) -> WeakerKafkaUnderTest:
    return WeakerKafkaUnderTest(broker, guarantee="at_least_once", committer=str(folder))


@pytest.mark.parametrize("behaviour", behaviours(KafkaUnderTest), ids=lambda one: one.__name__)
def test_an_exactly_once_sink(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(KafkaUnderTest(kafka_broker))


@pytest.mark.parametrize(
    "behaviour", [one for one in behaviours(KafkaUnderTest) if one not in CRASHES], ids=lambda one: one.__name__
)
@pytest.mark.sample(4)  # of one they are run whole
def test_a_sink_of_three_shards(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(KafkaUnderTest(kafka_broker, shards=3))


@pytest.mark.parametrize("behaviour", behaviours(WeakerKafkaUnderTest), ids=lambda one: one.__name__)
@pytest.mark.sample(5)  # of one with transactions they are run whole
def test_an_at_least_once_sink(behaviour: Behaviour, kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    behaviour(_weaker(kafka_broker, tmp_path))


@pytest.mark.parametrize("behaviour", behaviours(NoPromiseKafkaUnderTest), ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_a_sink_that_promises_nothing(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(NoPromiseKafkaUnderTest(kafka_broker, guarantee="none"))


@pytest.mark.fault("E16")
@pytest.mark.tier("all")
@pytest.mark.parametrize(("name", "shards"), [("KafkaSink", 1), ("KafkaSink, three shards", 3)])
@pytest.mark.sample(1)
def test_the_page_of_guarantees_tells_the_truth(name: str, shards: int, kafka_broker: KafkaBroker) -> None:
    """A reader reads throughout, while publishers are killed and stopped at every point."""
    target = KafkaUnderTest(kafka_broker, shards=shards)
    with observed(kafka_broker, target.topic) as reader:
        expect_row(name, target)
        epochs = {one.epoch for one in reader.finish()}
        reader.expect(dict.fromkeys(range(1, len(epochs) + 1), ROWS), ordered=shards == 1)


@pytest.mark.fault("E26")
@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_of_weaker_ones(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    expect_row("KafkaSink, at least once", _weaker(kafka_broker, tmp_path))
    expect_row("KafkaSink, none", NoPromiseKafkaUnderTest(kafka_broker, guarantee="none"))


# --- in the place of another epoch ----------------------------------------------------------------------------------

FIRST = epoch()
SECOND = epoch(2, token=20, manifest="b", replaced=[FIRST])
THIRD = epoch(3, token=30, manifest="c")
BOTH = epoch(4, token=40, manifest="d", replaced=[SECOND, THIRD])


@pytest.mark.fault("N4")
@pytest.mark.parametrize(
    "more", [{}, {"shards": 3}, {"guarantee": "at_least_once"}], ids=["exactly once", "shards", "at least once"]
)
def test_each_record_names_the_epochs_whose_place_it_takes(
    kafka_broker: KafkaBroker, more: dict[str, Any], tmp_path: Path
) -> None:
    committer = {"committer": str(tmp_path)} if "guarantee" in more else {}
    target = KafkaUnderTest(kafka_broker, on_restate="send", **more, **committer)
    for at in (FIRST, SECOND, THIRD, BOTH):
        wal = sealed(40, start=1000 * at.id)
        vote = prepare(target, at, wal)
        assert publish(target, at, vote, wal) is Publication.SENT
    told = [dict(message.headers()) for message in committed(target.broker, target.topic)]
    found = sorted((int(one["lockstep"].split(b"/")[3]), one.get("lockstep-replaces")) for one in told)
    sent = [(1, None), (2, b"1"), (3, None), (4, b"2,3")]
    assert found == [one for one in sent for _ in range(40)]


def test_what_can_not_take_anothers_place_is_refused(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    with opened(target) as sink, pytest.raises(PreflightRefused, match="on_restate='send'"):
        sink.require_replaceable()
    target.more["on_restate"] = "send"
    with opened(target) as sink:
        sink.require_replaceable()
    with pytest.raises(LedgerConflict, match="no marker"):
        prepare(target, SECOND, sealed(1))
    other = epoch(manifest="another life")
    publish(target, other, prepare(target, other, sealed(1)), sealed(1))
    with pytest.raises(LedgerConflict, match="the marker of manifest"):
        prepare(target, SECOND, sealed(1))


# --- what readers of committed records see while epochs are sent -----------------------------------------------------

EPOCHS, BATCHES = 3, 4


def place_of(message: Any) -> tuple[int, int]:
    """(partition, epoch)"""
    *_, number, _ = dict(message.headers())["lockstep"].decode().split("/")
    return message.partition(), int(number)


def parts_seen(target: KafkaUnderTest) -> list[tuple[int, int]]:
    """Publish some epochs, and come in whenever a batch has come to the broker and the next one hasn't been sent; where
    a part of one was seen then: (partition, epoch)."""
    seen, sent = list[Counter[tuple[int, int]]](), [0]

    def look() -> None:
        until(lambda: records_in(target) > sent[-1], "nothing of a batch came to the broker")
        sent.append(records_in(target))
        seen.append(Counter(map(place_of, committed(target.broker, target.topic, now=True))))

    for number in range(1, EPOCHS + 1):
        rows = sealed(WATCHED, start=WATCHED * number)
        vote = prepare(target, epoch(number), rows)
        sent.append(records_in(target))
        with opened(target) as sink:
            sink.publish(epoch(number), vote, [Interrupted(rows[0].table, WATCHED // BATCHES, action=look)])
    assert len(seen) == EPOCHS * (BATCHES - 1)
    whole = Counter(map(place_of, committed(target.broker, target.topic)))
    assert whole.total() == EPOCHS * WATCHED, "not every row is there in the end"
    return [place for one in seen for place, rows in one.items() if rows != whole[place]]


@pytest.mark.fault("E12")
@pytest.mark.tier("all")
def test_a_reader_of_committed_records_never_sees_half_an_epoch(
    kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sinks that show parts, without transactions or with several an epoch, are noticed by the same looks."""
    assert not parts_seen(KafkaUnderTest(kafka_broker))
    assert parts_seen(_weaker(kafka_broker, tmp_path))
    send = KafkaSession.send

    def send_in_a_transaction_of_its_own(session: KafkaSession, records: TopicRecords) -> None:
        send(session, records)
        for transaction in session.open.values():
            transaction.commit()
            transaction.begin()

    monkeypatch.setattr(KafkaSession, "send", send_in_a_transaction_of_its_own)
    assert parts_seen(KafkaUnderTest(kafka_broker))

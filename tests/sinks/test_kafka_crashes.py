"""KafkaSink while things die. A reader of committed records reads throughout; what it saw is checked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lockstep.crash import CrashPoint
from lockstep.epoch import Interval, Vote
from lockstep.errors import PreflightRefused, Retryable, TargetChanged
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing import SealedRows
from lockstep.testing._crash_sweep import Child, ended
from lockstep.testing._under_test import epoch, opened, publish
from stack.kafka import KafkaBroker, Setting
from tests.sinks.kafka_admin import (
    configure,
    delete,
    delete_records,
    held,
    is_compacted,
    restart,
    transactional_ids,
)
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest
from tests.sinks.kafka_watching import ROWS, Interrupted, Watched, at, holds, once, struck_at, until_sent, watching
from tests.waiting import until

SLOW = 60.0  #: a timeout that no test waits for


@pytest.fixture
def watched(kafka_broker: KafkaBroker) -> Iterator[Watched]:
    target = KafkaUnderTest(kafka_broker, transaction_timeout=SLOW)
    with watching(target) as found:
        yield found


def publish_and_die(watched: Watched, voted: tuple[SinkEpoch, Vote, list[SealedRows]], how: signal.Signals) -> Child:
    """A publisher that strikes itself once every record, and the marker, is at the broker, uncommitted."""

    def until_all_is_sent() -> None:
        until_sent(watched.target)
        until(lambda: bool(held(watched.target.broker, watched.target.markers, 8)), "no marker arrived")

    point = CrashPoint.PUBLISH_BEFORE_SINK_COMMIT
    return struck_at(point, how, lambda: publish(watched.target, *voted), before=until_all_is_sent)


# --- brokers ---------------------------------------------------------------------------------------------------------


@pytest.mark.fault("E16")
def test_a_broker_killed_between_two_sends_or_before_the_commit(
    watched: Watched, kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_, vote, wal = watched.voted()
    dies = once(lambda: until_sent(watched.target), lambda: restart(kafka_broker))
    publish(watched.target, at_, vote, [Interrupted(wal[0].table, batch_rows=500, action=dies)])

    def strike() -> None:
        until_sent(watched.target)
        assert not watched.saw(3)
        restart(kafka_broker)

    with at(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT, strike, monkeypatch):
        publish(watched.target, *watched.voted(3))
    watched.expect(2, 3)


@pytest.mark.fault("E17")
def test_a_commit_that_arrives_after_its_publisher_gave_up(
    kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = KafkaUnderTest(kafka_broker, transaction_timeout=5.0)  # longer than sending takes on a busy machine

    def strike() -> None:
        until_sent(target)
        assert kafka_broker.pid is not None
        os.kill(kafka_broker.pid, signal.SIGSTOP)

    with watching(target) as watched:
        at_, vote, wal = watched.voted()
        with at(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT, strike, monkeypatch), opened(target) as sink:
            try:
                with pytest.raises(Retryable):
                    sink.publish(at_, vote, wal)
            finally:
                assert kafka_broker.pid is not None
                os.kill(kafka_broker.pid, signal.SIGCONT)
        publish(target, at_, vote, wal)
        watched.expect(2)


# --- publishers ------------------------------------------------------------------------------------------------------


@pytest.mark.fault("E16")
def test_a_dead_publisher_makes_the_next_one_wait_for_nothing(watched: Watched) -> None:
    voted = watched.voted()
    with ended(publish_and_die(watched, voted, signal.SIGKILL)) as child:
        assert child.wait() == -signal.SIGKILL
        assert holds(watched.target) and not watched.saw(2)
        started = time.monotonic()
        assert publish(watched.target, *voted) is Publication.SENT
        assert time.monotonic() - started < SLOW / 2
    watched.expect(2)


@pytest.mark.fault("E18")
def test_a_stopped_publisher_that_goes_on_after_another_one(watched: Watched) -> None:
    voted = watched.voted()
    with ended(publish_and_die(watched, voted, signal.SIGSTOP)) as child:
        assert child.wait_until_stopped()
        publish(watched.target, *voted)
        until(lambda: watched.saw(2), "the reader doesn't see what was published")
        child.release()
        assert child.wait() == 0  # it was fenced, tried again, and found the marker
    watched.expect(2)


@pytest.mark.fault("E19")
def test_a_stuck_transaction_holds_readers_no_longer_than_its_timeout(kafka_broker: KafkaBroker) -> None:
    with watching(KafkaUnderTest(kafka_broker, transaction_timeout=8.0)) as watched:
        voted, other = watched.voted(2), watched.voted(3)
        with ended(publish_and_die(watched, voted, signal.SIGSTOP)) as child:
            assert child.wait_until_stopped()
            say(watched.target, epoch=9)  # by somebody else, without a transaction
            assert not watched.saw(9), "the reader passed an open transaction"
            until(lambda: watched.saw(9), "the broker did not end the transaction", seconds=20)
            assert not watched.saw(2)
            child.release()
            child.wait()
        publish(watched.target, *voted)
        publish(watched.target, *other)
        watched.observer.expect({1: ROWS, 2: ROWS, 3: ROWS, 9: 1})


def test_epochs_of_two_intervals_are_published_side_by_side(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    day = epoch().timestamp
    first, second = (watched.voted(n, interval=Interval(day.replace(day=n), day.replace(day=n + 1))) for n in (2, 3))

    def beside() -> None:
        until_sent(watched.target)
        assert publish(watched.target, *second) is Publication.SENT

    started = time.monotonic()
    with at(CrashPoint.PUBLISH_AFTER_WRITE, beside, monkeypatch):
        assert publish(watched.target, *first) is Publication.SENT
    assert time.monotonic() - started < SLOW / 2
    watched.expect(2, 3, in_turn=False)


def say(target: KafkaUnderTest, *, epoch: int) -> None:
    """A record of another program into a partition that is held back, durable when this returns."""
    producer = Producer({"bootstrap.servers": target.broker.bootstrap})
    partition = held(target.broker, target.topic, PARTITIONS)[0]
    producer.produce(target.topic, b"{}", partition=partition, headers={"lockstep": f"d/p/o/{epoch}/0".encode()})
    assert producer.flush(30) == 0


# --- transactions and markers that end, or go ------------------------------------------------------------------------


@pytest.mark.fault("E20")
def test_without_the_topic_of_markers_nothing_is_sent_until_a_person_says_so(watched: Watched) -> None:
    target, (at_, vote, wal) = watched.target, watched.voted()
    delete(target.broker, target.markers)
    for _ in ("gone", "made anew"):
        with pytest.raises(TargetChanged, match="lockstep resolve"):
            publish(target, at_, vote, wal)
        with opened(target) as sink:
            sink.preflight(None)  # as the begin of another epoch does
    assert not watched.saw(2) and not target.unsettled()
    with opened(target) as sink:
        retargeted = replace(vote, target_id=sink.target_id())  # what `lockstep resolve … not-applied` does
    publish(target, at_, retargeted, wal)
    watched.expect(2)


@pytest.mark.fault("E20")
def test_markers_that_were_deleted_from_their_topic_are_missed(watched: Watched) -> None:
    target, (at_, vote, wal) = watched.target, watched.voted()
    publish(target, at_, vote, wal)
    configure(target.broker, target.markers, "cleanup.policy", "delete")
    delete_records(target.broker, target.markers, 8)
    configure(target.broker, target.markers, "cleanup.policy", "compact")
    with pytest.raises(TargetChanged, match=target.markers):
        publish(target, at_, vote, wal)
    watched.expect(2)


@pytest.mark.fault("E20")
def test_markers_outlive_compaction_and_transactional_ids(memory_folder: Path, kafka_jars: None) -> None:
    forgetful: dict[str, Setting] = {
        "transactional.id.expiration.ms": 1000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 200,
        "producer.id.expiration.ms": 1000,
        "producer.id.expiration.check.interval.ms": 200,
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.min.cleanable.ratio": "0.001",
        "log.roll.ms": 100,
    }
    with (
        KafkaBroker(memory_folder / "forgetful", settings=forgetful).for_a_while() as broker,
        watching(KafkaUnderTest(broker, transaction_timeout=5.0)) as watched,
    ):
        voted = [watched.voted(number) for number in (2, 3, 4)]
        for one in voted[:2]:
            publish(watched.target, *one)
        until(lambda: not transactional_ids(broker), "the transactional ids did not expire")
        until(lambda: is_compacted(broker, watched.target.markers), "the markers were not compacted")
        found = [publish(watched.target, *one) for one in voted]
        assert found == [Publication.FOUND, Publication.FOUND, Publication.SENT]
        watched.expect(2, 3, 4)


@pytest.mark.fault("E20")
def test_markers_that_would_expire_stop_a_publication(watched: Watched) -> None:
    target, voted = watched.target, watched.voted()
    configure(target.broker, target.markers, "cleanup.policy", "compact,delete")
    with pytest.raises(PreflightRefused, match=r"cleanup\.policy"):
        watched.voted(3)
    with opened(target) as sink, pytest.raises(PreflightRefused, match=r"cleanup\.policy"):
        sink.publish(*voted)
    configure(target.broker, target.markers, "cleanup.policy", "compact")
    publish(target, *voted)
    watched.expect(2)


# --- limits ----------------------------------------------------------------------------------------------------------

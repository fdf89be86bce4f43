"""Shards of an epoch that processes of their own send side by side, and whoever else sends them meanwhile."""

from __future__ import annotations

import os
import signal
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey, Vote
from lockstep.errors import IllegalTransition, NotPrepared, OutOfOrder, Retryable
from lockstep.roles.cleanup import cleanup
from lockstep.roles.publish import publish_shard
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._open_sink import TransactionalKafkaSink
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.states import Role
from lockstep.testing import SealedRows, sealed
from lockstep.testing._children import Child, ended, fork
from lockstep.testing._under_test import PATIENCE, epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from stack.postgres import PostgresServer
from tests.crash.world import ROWS as FED
from tests.sinks.append.feed import Feed
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import ROWS as WATCHED
from tests.sinks.kafka_watching import holds, watching
from tests.waiting import until

SHARDS, ROWS = 3, 60
POINTS = [
    CrashPoint.PUBLISH_AFTER_MARKER,
    CrashPoint.PUBLISH_AFTER_WRITE,
    CrashPoint.PUBLISH_BEFORE_SINK_COMMIT,
    CrashPoint.PUBLISH_AFTER_SINK_COMMIT,
]
Voted = tuple[SinkEpoch, Vote, list[SealedRows]]


@pytest.fixture
def target(kafka_broker: KafkaBroker) -> KafkaUnderTest:
    return KafkaUnderTest(kafka_broker, shards=SHARDS, transaction_timeout=5.0)


def voted_for(target: KafkaUnderTest, number: int = 1) -> Voted:
    wal = sealed(ROWS, start=ROWS * number)
    return epoch(number), prepare(target, epoch(number), wal), wal


def send(target: KafkaUnderTest, voted: Voted, shard: int) -> Publication | None:
    """As a task does: again, until what passes by itself has passed."""
    at, vote, wal = voted
    found: list[Publication | None] = []

    def sent() -> bool:
        try:
            with opened(target) as sink:
                found.append(sink.publish_shard(at, vote, wal, shard))
        except Retryable:
            return False
        return True

    until(sent, f"shard {shard} isn't sent", PATIENCE)
    return found[0]


def markers(target: KafkaUnderTest, number: int = 1) -> list[int]:
    with opened(target) as sink:
        assert isinstance(sink, TransactionalKafkaSink)
        return sorted(sink.shard_markers(number))


def struck_at(point: CrashPoint, how: signal.Signals, work: Callable[[], object]) -> Child:
    """Does `work` in a process that strikes itself at `point`; who goes on afterwards may be told to try again."""

    def strike(reached: CrashPoint) -> None:
        if reached is point:
            os.kill(os.getpid(), how)

    def attempt() -> None:
        os.environ["LOCKSTEP_TESTING"] = "1"
        crash.observe(strike)
        try:
            work()
        except Retryable as again:
            print(again)

    return fork(attempt)


def once(target: KafkaUnderTest, voted: Voted, shard: int) -> None:
    with opened(target) as sink:
        sink.publish_shard(*voted, shard)


def test_a_shard_is_one_transaction_with_its_rows_and_its_marker(target: KafkaUnderTest) -> None:
    voted = voted_for(target)
    seen = 0
    for shard in (2, 0, 1):
        assert send(target, voted, shard) is Publication.SENT
        shown = len(committed(target.broker, target.topic))
        assert seen < shown, "the shard's rows are there"
        assert send(target, voted, shard) is Publication.FOUND
        assert len(committed(target.broker, target.topic)) == shown
        seen = shown
    assert markers(target) == [0, 1, 2]
    assert publish(target, *voted) is Publication.FOUND
    expect_rows(target, voted[2])


def test_a_row_is_in_the_shard_that_any_version_puts_it_into(target: KafkaUnderTest) -> None:
    """By the CRC-32 of its key, or else by its place: what an older one has sent in part is finished by this one."""
    send(target, voted_for(target), 2)
    found = committed(target.broker, target.topic)
    places = [int(one.headers()[0][1].rpartition(b"/")[2]) for one in found]
    by = [place if one.key() is None else zlib.crc32(one.key()) for one, place in zip(found, places, strict=True)]
    assert {number % SHARDS for number in by} == {2}
    assert None in {one.key() for one in found}


def test_without_keys_each_shard_has_every_third_row(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, shards=SHARDS, key=None)
    voted = voted_for(target)
    send(target, voted, 1)
    found = [int(one.headers()[0][1].rpartition(b"/")[2]) for one in committed(kafka_broker, target.topic)]
    assert sorted(found) == list(range(1, ROWS, SHARDS))


def test_shards_of_an_empty_epoch_are_markers_alone(target: KafkaUnderTest) -> None:
    wal = sealed(0)
    voted = (epoch(), prepare(target, epoch(), wal), wal)
    assert [send(target, voted, shard) for shard in range(SHARDS)] == [Publication.SENT] * SHARDS
    assert publish(target, *voted) is Publication.FOUND
    assert markers(target) == [0, 1, 2]


def test_whoever_sends_the_rest_puts_each_row_into_the_same_shard(target: KafkaUnderTest) -> None:
    voted = voted_for(target)
    send(target, voted, 1)
    assert publish(target, *voted) is Publication.SENT
    expect_rows(target, voted[2])


def test_a_shard_that_was_not_voted_for_is_left_to_publish(target: KafkaUnderTest) -> None:
    voted = voted_for(target)
    assert [send(target, voted, number) for number in (-1, SHARDS, SHARDS + 4)] == [None] * 3
    assert not committed(target.broker, target.topic)


def test_shards_of_a_vote_that_tells_of_none_are_left_to_publish(target: KafkaUnderTest) -> None:
    at, vote, wal = voted_for(target)
    older = (at, Vote(vote.token, None, vote.target_id, vote.rows), wal)
    assert [send(target, older, shard) for shard in range(SHARDS)] == [None] * SHARDS
    assert publish(target, *older) is Publication.SENT
    expect_rows(target, wal)


def test_a_shard_is_left_to_publish_once_an_older_version_has_begun_with_another_number(target: KafkaUnderTest) -> None:
    at, vote, wal = voted_for(target)
    target.more["shards"] = 2
    with ended(
        struck_at(
            CrashPoint.PUBLISH_AFTER_SINK_COMMIT,
            signal.SIGKILL,
            lambda: publish(target, at, Vote(vote.token, None, vote.target_id, vote.rows), wal),
        )
    ) as older:
        older.wait()
    assert [send(target, (at, vote, wal), shard) for shard in range(SHARDS)] == [Publication.FOUND, None, None]
    assert publish(target, at, vote, wal) is Publication.SENT
    expect_rows(target, wal)
    assert markers(target) == [0, 1]


# --- struck ----------------------------------------------------------------------------------------------------------


def same_shard_first(target: KafkaUnderTest, voted: Voted) -> None:
    for shard in (1, 0, 2):
        send(target, voted, shard)
    assert publish(target, *voted) is Publication.FOUND


def other_shards_first(target: KafkaUnderTest, voted: Voted) -> None:
    for shard in (2, 0, 1):
        send(target, voted, shard)
    assert publish(target, *voted) is Publication.FOUND


def all_by_one(target: KafkaUnderTest, voted: Voted) -> None:
    publish(target, *voted)
    assert [send(target, voted, shard) for shard in range(SHARDS)] == [Publication.FOUND] * SHARDS


@pytest.mark.parametrize("finish", [same_shard_first, other_shards_first, all_by_one], ids=lambda one: one.__name__)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and released"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.sample(5)
def test_the_publisher_of_one_shard_may_be_struck_anywhere(
    point: CrashPoint,
    how: signal.Signals,
    finish: Callable[[KafkaUnderTest, Voted], None],
    target: KafkaUnderTest,
) -> None:
    voted = voted_for(target)
    with ended(struck_at(point, how, lambda: once(target, voted, 1))) as child:
        if how is signal.SIGSTOP:
            assert child.wait_until_stopped()
        else:
            assert child.wait() == -how
        finish(target, voted)
        child.release()
        assert child.wait() == (0 if how is signal.SIGSTOP else -how), "an alarm, and no reason for one"
    until(lambda: not holds(target), "a transaction stays open")
    expect_rows(target, voted[2])
    assert markers(target) == [0, 1, 2]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and released"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.sample(3)
def test_who_sends_all_may_be_struck_while_shards_are_sent_by_others(
    point: CrashPoint, how: signal.Signals, target: KafkaUnderTest
) -> None:
    voted = voted_for(target)
    send(target, voted, 2)
    with ended(struck_at(point, how, lambda: publish(target, *voted))) as child:
        if how is signal.SIGSTOP:
            assert child.wait_until_stopped()
        else:
            child.wait()
        same_shard_first(target, voted)
        child.release()
        child.wait()
    until(lambda: not holds(target), "a transaction stays open")
    expect_rows(target, voted[2])


def test_publishers_of_shards_and_of_all_at_once(kafka_broker: KafkaBroker) -> None:
    """Two of each shard and one of all, for epochs one after the other; a reader reads throughout."""
    target = KafkaUnderTest(kafka_broker, shards=SHARDS)
    with watching(target) as watched:
        for number in (2, 3):
            voted = watched.voted(number)
            works: list[Callable[[], object]] = [lambda voted=voted: publish(target, *voted)]  # type: ignore[misc]
            works += [lambda voted=voted, n=n: send(target, voted, n) for n in [*range(SHARDS)] * 2]  # type: ignore[misc]
            children = [fork(work) for work in works]
            assert [child.wait() for child in children] == [0] * len(children)
            assert publish(target, *voted) is Publication.FOUND
        watched.observer.expect(dict.fromkeys((1, 2, 3), WATCHED), ordered=False)


# --- with the ledger -------------------------------------------------------------------------------------------------


@pytest.fixture
def feed_of(memory_server: PostgresServer, memory: Path, kafka_broker: KafkaBroker) -> Callable[..., Feed]:
    """A pipeline as it is deployed with these arguments of its sink; every call deploys it anew."""
    target = KafkaUnderTest(kafka_broker)
    ledger = memory_server.create_database(f"shards_{uuid.uuid4().hex[:12]}")

    def deploy(*, cursor: bool = False, **arguments: Any) -> Feed:
        sink = KafkaSink(
            "rows", output="numbers", topic=target.topic, connection="kafka", marker_topic=target.markers, **arguments
        )
        return Feed.of(ledger, memory, [sink], target.connections(), cursor=cursor)

    return deploy


def shard_of(feed: Feed, shard: int, run: int = 0) -> None:
    with feed.runtime() as runtime:
        publish_shard(runtime, RunKey("feed", str(run)), "rows", shard)


def shown_by(feed: Feed) -> list[bytes]:
    [sink] = feed.pipeline.sinks
    assert isinstance(sink, KafkaSink)

    class Broker:
        bootstrap = feed.connections["kafka"]

    return [one.headers()[0][1] for one in committed(Broker(), sink.topic_names[0])]


def require_all_shown_once(feed: Feed, epochs: int = 1) -> None:
    shown = shown_by(feed)
    assert len(shown) == len(set(shown)) == epochs * FED


def publication(feed: Feed) -> str | None:
    with feed.runtime() as runtime:
        return runtime.ledger.participants("numbers", 1)["rows"].publication


def test_the_ledger_takes_an_epoch_for_published_only_when_every_shard_is_proven(feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    for shard in range(SHARDS):
        shard_of(feed, shard)
        assert (feed.state(1), publication(feed)) == ("committed", None)
        with feed.runtime() as runtime, pytest.raises(IllegalTransition):
            cleanup(runtime, RunKey("feed", "0"))
    feed.publish(0, "rows")
    assert (feed.state(1), publication(feed)) == ("published", "found")
    feed.finish(0)
    require_all_shown_once(feed)
    shard_of(feed, 1)  # cleared alone, long afterwards
    require_all_shown_once(feed)
    assert feed.state(1) == "cleaned"


def test_publish_sends_the_shards_that_nobody_has_sent(feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    shard_of(feed, 2)
    feed.finish(0)
    assert publication(feed) == "sent"
    require_all_shown_once(feed)


def test_recovery_sends_the_shards_that_nobody_has_sent(feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    shard_of(feed, 0)
    assert feed.recover().finished == [1]
    require_all_shown_once(feed)
    shard_of(feed, 1)
    require_all_shown_once(feed)


def test_no_shard_is_sent_of_an_epoch_that_a_person_calls_published(feed_of: Callable[..., Feed]) -> None:
    """Nothing in the target says so."""
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    with feed.runtime() as runtime:
        decided = runtime.ledger.epoch("numbers", 1)
        vote = runtime.ledger.participants("numbers", 1)["rows"].vote
        assert vote is not None
        runtime.ledger.record_publication(decided, "rows", vote.token, "resolved", Role.OPERATOR, "a test")
    shard_of(feed, 0)
    assert not shown_by(feed)


@pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2), (1, 3), (3, 1)])
@pytest.mark.sample(2)
def test_shards_that_are_deployed_after_the_vote_count_from_the_next_epoch_on(
    before: int, after: int, feed_of: Callable[..., Feed]
) -> None:
    feed_of(shards=before).decide(0)
    feed = feed_of(shards=after)
    for shard in reversed(range(after)):
        shard_of(feed, shard)
    feed.finish(0)
    require_all_shown_once(feed)
    feed.decide(1)
    feed.finish(1)
    require_all_shown_once(feed, 2)
    with feed.runtime() as runtime:
        votes = [runtime.ledger.participants("numbers", number)["rows"].vote for number in (1, 2)]
    assert [vote.handle for vote in votes if vote] == [f"shards={before}", f"shards={after}"]


def test_no_shard_is_sent_before_the_decision(feed_of: Callable[..., Feed], monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feed_of(shards=SHARDS)
    monkeypatch.setattr("tests.sinks.append.feed.commit", lambda *_: None)
    feed.decide(0)
    with pytest.raises(NotPrepared):
        shard_of(feed, 0)
    assert not shown_by(feed)


def test_no_shard_is_sent_before_the_epoch_before_is_published(feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(shards=SHARDS, cursor=True)
    feed.decide(0)
    feed.decide(1)
    shard_of(feed, 1, run=0)
    with pytest.raises(OutOfOrder):
        shard_of(feed, 1, run=1)
    feed.finish(0)
    shard_of(feed, 1, run=1)
    feed.finish(1)
    require_all_shown_once(feed, 2)


@pytest.mark.parametrize("point", [CrashPoint.PUBLISH_BEFORE_SINK, *POINTS])
@pytest.mark.sample(2)
def test_a_stopped_publisher_of_a_shard_finds_without_alarm_that_all_is_done(
    point: CrashPoint, feed_of: Callable[..., Feed]
) -> None:
    """The WAL is gone when it goes on."""
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    with ended(struck_at(point, signal.SIGSTOP, lambda: shard_of(feed, 1))) as child:
        assert child.wait_until_stopped()
        for shard in range(SHARDS):
            shard_of(feed, shard)
        assert feed.recover().finished == [1]
        child.release()
        assert child.wait() == 0
    require_all_shown_once(feed)

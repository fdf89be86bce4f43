"""Shards of an epoch: sent side by side by processes of their own, by one for all, or with another number deployed.

An epoch has as many as its vote says.
"""

from __future__ import annotations

import signal
import uuid
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey, Vote
from lockstep.errors import IllegalTransition, NotPrepared, OutOfOrder, Retryable
from lockstep.operations.rebuild import rebuild
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.publish import publish_shard
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._open_sink import TransactionalKafkaSink
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.states import Role
from lockstep.testing import SealedRows, sealed
from lockstep.testing._crash_sweep import ended, fork
from lockstep.testing._under_test import PATIENCE, epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from stack.postgres import PostgresServer
from tests.crash.world import ROWS as FED
from tests.sinks.append.feed import Feed
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import ROWS as WATCHED
from tests.sinks.kafka_watching import holds, struck_at, wait_until_struck, watching
from tests.waiting import until

SHARDS, ROWS = 3, 60
POINTS = [
    CrashPoint.PUBLISH_AFTER_MARKER,
    CrashPoint.PUBLISH_AFTER_WRITE,
    CrashPoint.PUBLISH_BEFORE_SINK_COMMIT,
    CrashPoint.PUBLISH_AFTER_SINK_COMMIT,
]
#: where a publisher of all is struck: the point, and how often it has come there by then
STRIKES = [*((point, 1) for point in POINTS), (CrashPoint.PUBLISH_AFTER_SINK_COMMIT, 2)]
WAYS = pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and released"])
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


def try_once(target: KafkaUnderTest, voted: Voted, shard: int | None) -> None:
    """Whoever goes on after others may be told to try again."""
    with opened(target) as sink, suppress(Retryable):
        if shard is None:
            sink.publish(*voted)
        else:
            sink.publish_shard(*voted, shard)


def test_a_shard_is_one_transaction_with_its_rows_and_its_marker(target: KafkaUnderTest) -> None:
    empty = (epoch(2), prepare(target, epoch(2), sealed(0)), sealed(0))
    voted = voted_for(target)
    seen = 0
    for shard in (2, 0, 1):
        assert send(target, voted, shard) is Publication.SENT
        shown = len(committed(target.broker, target.topic))
        assert seen < shown, "the shard's rows are there"
        assert send(target, voted, shard) is Publication.FOUND
        assert len(committed(target.broker, target.topic)) == shown
        seen = shown
        assert send(target, empty, shard) is Publication.SENT
    for one in (voted, empty):
        assert markers(target, one[0].id) == [0, 1, 2]
        assert publish(target, *one) is Publication.FOUND
    expect_rows(target, voted[2])


def test_a_row_is_in_the_shard_that_any_version_puts_it_into(target: KafkaUnderTest) -> None:
    """By the CRC-32 of its key, or else by its place: what an older one has sent in part is finished by this one."""
    send(target, voted_for(target), 2)
    found = committed(target.broker, target.topic)
    places = [int(one.headers()[0][1].rpartition(b"/")[2]) for one in found]
    by = [place if one.key() is None else zlib.crc32(one.key()) for one, place in zip(found, places, strict=True)]
    assert {number % SHARDS for number in by} == {2}
    assert None in {one.key() for one in found}


def test_shards_that_nobody_voted_for_are_left_to_publish(target: KafkaUnderTest) -> None:
    voted = voted_for(target)
    assert [send(target, voted, number) for number in (-1, SHARDS, SHARDS + 4)] == [None] * 3
    assert not committed(target.broker, target.topic)


# --- struck ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", [(1, 0, 2), (2, 0, 1), ()], ids=["same shard first", "others first", "all by one"])
@WAYS
@pytest.mark.parametrize("struck", [1, None], ids=["of one shard", "of all"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.sample(7)
def test_a_publisher_may_be_struck_anywhere_while_others_send_shards_or_all(
    point: CrashPoint, struck: int | None, how: signal.Signals, finish: tuple[int, ...], target: KafkaUnderTest
) -> None:
    voted = voted_for(target)
    with ended(struck_at(point, how, lambda: try_once(target, voted, struck))) as child:
        wait_until_struck(child, how)
        for shard in finish:
            send(target, voted, shard)
        assert publish(target, *voted) is Publication.FOUND or not finish
        assert [send(target, voted, shard) for shard in range(SHARDS)] == [Publication.FOUND] * SHARDS
        child.release()
        assert child.wait() == (0 if how is signal.SIGSTOP else -how), "an alarm, and no reason for one"
    until(lambda: not holds(target), "a transaction stays open")
    expect_rows(target, voted[2])
    assert markers(target) == [0, 1, 2]


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


# --- another number is deployed --------------------------------------------------------------------------------------


@pytest.mark.fault("L9")
@WAYS
@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3), (3, 2)])
@pytest.mark.parametrize(("point", "times"), STRIKES)
@pytest.mark.sample(7)
def test_shards_may_change_wherever_a_publisher_is_struck(
    point: CrashPoint, times: int, before: int, after: int, how: signal.Signals, target: KafkaUnderTest
) -> None:
    if times > before:
        before, after = after, before
    target.more["shards"] = before
    voted = voted_for(target)
    with ended(struck_at(point, how, lambda: try_once(target, voted, None), times=times)) as child:
        wait_until_struck(child, how)
        target.more["shards"] = after
        publish(target, *voted)
        child.release()
        child.wait()
    until(lambda: not holds(target), "a transaction stays open")
    assert publish(target, *voted) is Publication.FOUND
    expect_rows(target, voted[2])
    assert markers(target) == list(range(before))


# --- with the ledger -------------------------------------------------------------------------------------------------


@pytest.fixture
def feed_of(ledger_server: PostgresServer, memory: Path, kafka_broker: KafkaBroker) -> Callable[..., Feed]:
    """A pipeline as it is deployed with these arguments of its sink; every call deploys it anew."""
    target = KafkaUnderTest(kafka_broker)
    ledger = ledger_server.create_database(f"shards_{uuid.uuid4().hex[:12]}")

    def deploy(*, cursor: bool = False, rebuilt: bool = False, **arguments: Any) -> Feed:
        sink = KafkaSink(
            "rows", output="numbers", topic=target.topic, connection="kafka", marker_topic=target.markers, **arguments
        )
        there = ledger_server.create_database(f"rebuilt_{uuid.uuid4().hex[:12]}") if rebuilt else ledger
        return Feed.of(there, memory, [sink], target.connections(), cursor=cursor)

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


@pytest.mark.fault("L9")
@pytest.mark.parametrize("deployed", [1, SHARDS - 1, SHARDS + 2])
def test_a_rebuilt_ledger_publishes_in_as_many_shards_as_markers_say(
    feed_of: Callable[..., Feed], deployed: int
) -> None:
    """Its votes don't say how many there are."""
    before = feed_of(shards=SHARDS)
    before.decide(0)
    shard_of(before, 0)
    after = feed_of(rebuilt=True, shards=deployed)
    with after.runtime() as runtime:
        assert rebuild(runtime, "its disk is gone").refused == ()
    assert after.recover().finished == [1]
    require_all_shown_once(after)


@pytest.mark.parametrize("who", ["publish", "recovery"])
def test_whoever_publishes_sends_the_shards_that_nobody_has_sent(who: str, feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(shards=SHARDS)
    feed.decide(0)
    shard_of(feed, 2)
    if who == "publish":
        feed.finish(0)
    else:
        assert feed.recover().finished == [1]
    assert publication(feed) == "sent"
    require_all_shown_once(feed)
    shard_of(feed, 1)
    require_all_shown_once(feed)


def test_no_shard_is_sent_before_the_decision_or_where_a_person_calls_the_epoch_published(
    feed_of: Callable[..., Feed], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = feed_of(shards=SHARDS)
    with monkeypatch.context() as undecided:
        undecided.setattr("tests.sinks.append.feed.commit", lambda *_: None)
        feed.decide(0)
    with pytest.raises(NotPrepared):
        shard_of(feed, 0)
    feed.decide(0)
    with feed.runtime() as runtime:
        decided = runtime.ledger.epoch("numbers", 1)
        vote = runtime.ledger.participants("numbers", 1)["rows"].vote
        assert vote is not None
        runtime.ledger.record_publication(decided, "rows", vote.token, "resolved", Role.OPERATOR, "a test")
    shard_of(feed, 0)  # nothing in the target says so
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

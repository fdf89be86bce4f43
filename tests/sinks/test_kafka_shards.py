"""An epoch that one process began to send, and another one that is deployed with more shards, or fewer, finishes.

It has as many as its vote says. Votes of older versions say nothing of it: then publishers agree by their markers.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Vote
from lockstep.errors import PublishBusy
from lockstep.sinks.base import Sink
from lockstep.sinks.kafka._markers import ShardMarker
from lockstep.sinks.kafka._open_sink import TransactionalKafkaSink
from lockstep.sinks.values import Publication
from lockstep.testing import sealed
from lockstep.testing._children import Child, ended, fork
from lockstep.testing._under_test import PATIENCE, epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.kafka_target import KafkaUnderTest
from tests.sinks.kafka_watching import holds
from tests.waiting import until

ROWS = 60
#: where a publisher is struck: the point, and how often it has come there by then
STRIKES = {
    "nothing sent": (CrashPoint.PUBLISH_AFTER_MARKER, 1),
    "sent without markers": (CrashPoint.PUBLISH_AFTER_WRITE, 1),
    "sent": (CrashPoint.PUBLISH_BEFORE_SINK_COMMIT, 1),
    "one shard committed": (CrashPoint.PUBLISH_AFTER_SINK_COMMIT, 1),
    "two shards committed": (CrashPoint.PUBLISH_AFTER_SINK_COMMIT, 2),
}
CHANGES = [(3, 1), (1, 3), (3, 2)]


@pytest.fixture
def target(kafka_broker: KafkaBroker) -> KafkaUnderTest:
    return KafkaUnderTest(kafka_broker, transaction_timeout=5.0)


def struck(target: KafkaUnderTest, voted: Any, point: CrashPoint, times: int, how: signal.Signals) -> Child:
    """A publisher that strikes itself when it comes to `point` for the so manyth time."""
    left = [how] * times

    def strike(reached: CrashPoint) -> None:
        if reached is point and left and (signalled := left.pop()) and not left:
            os.kill(os.getpid(), signalled)

    def work() -> None:
        os.environ["LOCKSTEP_TESTING"] = "1"
        crash.observe(strike)
        with opened(target) as sink:
            sink.publish(*voted)

    return fork(work, quiet=True)


def of_older_version(vote: Vote) -> Vote:
    return replace(vote, handle=None)


@pytest.mark.fault("L9")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and released"])
@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize(("point", "times"), STRIKES.values(), ids=STRIKES)
@pytest.mark.sample(5)
def test_shards_may_change_wherever_a_publisher_is_struck(
    point: CrashPoint, times: int, before: int, after: int, how: signal.Signals, target: KafkaUnderTest
) -> None:
    if times > before:
        before, after = after, before
    wal = sealed(ROWS)
    voted = (epoch(), of_older_version(prepare(target, epoch(), wal)), wal)
    target.more["shards"] = before
    with ended(struck(target, voted, point, times, how)) as child:
        if how is signal.SIGSTOP:
            assert child.wait_until_stopped()
        else:
            child.wait()
        target.more["shards"] = after
        publish(target, *voted)
        child.release()
        child.wait()
    until(lambda: not holds(target), "a transaction stays open")
    expect_rows(target, wal)
    with opened(target) as sink:
        marker = sink.find_marker(epoch().id)
        assert marker is not None
        assert sink.publish(*voted) is Publication.FOUND
    expect_rows(target, wal)


@pytest.mark.parametrize(("point", "times"), STRIKES.values(), ids=STRIKES)
@pytest.mark.sample(2)
def test_an_epoch_keeps_the_shards_of_its_vote_wherever_a_publisher_is_killed(
    point: CrashPoint, times: int, target: KafkaUnderTest
) -> None:
    target.more["shards"] = 3
    wal = sealed(ROWS)
    voted = (epoch(), prepare(target, epoch(), wal), wal)
    target.more["shards"] = 5
    with ended(struck(target, voted, point, times, signal.SIGKILL)) as child:
        child.wait()
    target.more["shards"] = 1
    publish(target, *voted)
    expect_rows(target, wal)
    with opened(target) as sink:
        assert isinstance(sink, TransactionalKafkaSink)
        assert {number: marker.shards for number, marker in sink.shard_markers(1).items()} == dict.fromkeys(range(3), 3)


def test_a_published_epoch_is_found_with_any_number_of_shards(target: KafkaUnderTest) -> None:
    for number, (before, after) in enumerate(CHANGES, 1):
        at_, wal = epoch(number), sealed(ROWS, start=ROWS * number)
        target.more["shards"] = before
        vote = prepare(target, at_, wal)
        assert publish(target, at_, vote, wal) is Publication.SENT
        target.more["shards"] = after
        assert publish(target, at_, vote, wal) is Publication.FOUND
        with opened(target) as sink:
            assert sum(batch.num_rows for batch in sink.read(number, "rows", wal[0].schema)) == ROWS


def published(described: Sink, target: KafkaUnderTest, voted: Any) -> Publication:
    """As a task does, which tries again while the transactions of whoever was killed are open, and hide a marker."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with described.opened(target.context()) as sink:
                return sink.publish(*voted)
        except PublishBusy:
            assert time.monotonic() < deadline


def test_an_epoch_that_an_older_version_has_half_sent_is_finished_by_its_plan(
    target: KafkaUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plan froze the shards, and its markers tell nothing of them."""
    target.more["shards"] = 3
    given = target.sink()
    plan = {**given.spec(), "arguments": given.arguments()}
    wal = sealed(ROWS)
    voted = (epoch(), of_older_version(prepare(target, epoch(), wal)), wal)
    whole = ShardMarker.to_bytes
    monkeypatch.setattr(ShardMarker, "to_bytes", lambda marker: whole(replace(marker, shards=None)))
    with ended(struck(target, voted, CrashPoint.PUBLISH_AFTER_SINK_COMMIT, 1, signal.SIGKILL)) as child:
        child.wait()
    monkeypatch.undo()
    for shards in (1, 2, 4):
        sink = Sink.from_spec(plan, {"shards": shards, "transaction_timeout": 5.0})
        found = published(sink, target, voted)
        assert found is (Publication.SENT if shards == 1 else Publication.FOUND)
    expect_rows(target, wal)

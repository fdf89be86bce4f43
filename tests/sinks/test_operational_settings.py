"""Timeouts, shards and tries of epochs that are decided: from the definition as it is now, or by a person's word."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from lockstep.crash import CrashPoint
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, PreflightRefused, UnknownEpoch
from lockstep.features.assembly import runtime_for
from lockstep.operations.override import override
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.append_only.lines import TcpSink
from lockstep.sinks.base import Sink
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.testing import sealed
from lockstep.testing._under_test import epoch, prepare
from stack.kafka import KafkaBroker
from stack.postgres import PostgresServer
from tests.crash.world import ROWS
from tests.sinks.append.feed import Feed
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import Interrupted, at, holds, records_in
from tests.waiting import until

TOO_SHORT, SLOW, LONG = 4, 5, 60  #: seconds: a timeout, what sending takes where it is slow, a timeout
OTHERS = {"on_restate": "refuse", "register": False}  #: settings in force that nobody speaks of here


@pytest.fixture
def target(kafka_broker: KafkaBroker) -> KafkaUnderTest:
    return KafkaUnderTest(kafka_broker)


@pytest.fixture
def feed_of(ledger_server: PostgresServer, memory: Path, target: KafkaUnderTest) -> Callable[..., Feed]:
    """A pipeline as it is deployed with these arguments of its sink; every call deploys it anew."""
    ledger = ledger_server.create_database(f"settings_{target.topic.partition('-')[2]}")

    def deploy(**arguments: Any) -> Feed:
        sink = KafkaSink(
            "rows",
            output="numbers",
            topic=target.topic,
            connection="kafka",
            marker_topic=target.markers,
            **arguments,
        )
        return Feed.of(ledger, memory, [sink], target.connections())

    return deploy


@contextmanager
def slow_sending(
    target: KafkaUnderTest, monkeypatch: pytest.MonkeyPatch, *, until_aborted: bool = False
) -> Iterator[None]:
    """The next publication takes `SLOW` seconds, or as long as brokers take to abort it."""
    before = records_in(target)

    def crawl() -> None:
        started = time.monotonic()
        until(lambda: records_in(target) > before, "nothing was sent")
        if until_aborted:
            until(lambda: not holds(target), "the brokers did not abort it")
        else:
            until(lambda: time.monotonic() > started + SLOW, "time stands still")
            assert holds(target)

    with at(CrashPoint.PUBLISH_AFTER_WRITE, crawl, monkeypatch):
        yield


def recover_by_name(feed: Feed) -> RecoveryReport:
    """As the recovery DAG does, which has no definition."""
    with feed.runtime() as runtime:
        return recover(runtime_for(runtime.pipeline, runtime.ledger, runtime.staging, runtime.connections))


def rows_in(target: KafkaUnderTest) -> int:
    return len(committed(target.broker, target.topic))


def in_force(feed: Feed, epoch: int = 1) -> Json:
    """With what a role works that has no definition."""
    with feed.runtime() as runtime:
        bare = runtime_for(runtime.pipeline, runtime.ledger, runtime.staging, runtime.connections)
        return bare.sink_of(runtime.ledger.epoch("numbers", epoch), "rows").settings()


@pytest.mark.fault("L9")
@pytest.mark.tier("all")
def test_an_epoch_that_outlived_its_transaction_is_published_with_the_timeout_that_is_deployed_next(
    feed_of: Callable[..., Feed], target: KafkaUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = feed_of(transaction_timeout=TOO_SHORT)
    feed.decide(0)
    for _ in range(2):
        with slow_sending(target, monkeypatch, until_aborted=True):
            [problem] = recover_by_name(feed).problems
        assert "transaction_timeout=4" in problem
        assert "lockstep override numbers rows transaction_timeout=" in problem
    assert rows_in(target) == 0
    feed_of(transaction_timeout=LONG).decide(1)  # whatever begins makes the definition known
    with slow_sending(target, monkeypatch):
        assert recover_by_name(feed).finished == [1, 2]
    assert rows_in(target) == 2 * ROWS


@pytest.mark.fault("L9")
def test_an_epoch_that_can_surely_not_be_sent_in_time_gets_no_vote(kafka_broker: KafkaBroker) -> None:
    def work() -> None:
        """Takes so much of the thread's CPU time."""
        started = time.thread_time()
        while time.thread_time() < started + 1.2:
            pass

    slow = [Interrupted(sealed(20)[0].table, batch_rows=10, action=work)]
    target = KafkaUnderTest(kafka_broker, transaction_timeout=1)
    with pytest.raises(PreflightRefused, match="lockstep override pipe rows transaction_timeout="):
        prepare(target, epoch(), slow)
    target.more["transaction_timeout"] = LONG
    assert prepare(target, epoch(), slow).rows == {"rows": 20}


@pytest.mark.fault("L9")
def test_a_timeout_that_brokers_do_not_allow_is_named_when_the_epoch_is_sent(
    feed_of: Callable[..., Feed], target: KafkaUnderTest
) -> None:
    feed = feed_of()
    feed.decide(0)
    with feed.runtime() as runtime:
        override(runtime, "rows", ["transaction_timeout=7200"], "it was a large one")
    [problem] = recover_by_name(feed).problems
    assert "transaction_timeout=7200 is more than the brokers' transaction.max.timeout.ms" in problem
    with feed.runtime() as runtime:
        override(runtime, "rows", [f"transaction_timeout={LONG}"], "they allow 15 minutes")
    assert recover_by_name(feed).finished == [1]
    assert rows_in(target) == ROWS


WRONG_WORDS: list[tuple[str, str]] = [
    ("topic=other", "only on_restate, register, shards, transaction_timeout"),
    ("shards", "that is no int"),
    ("shards=true", "that is no int"),
    ("shards=0", "has to be 1 or more"),
    ("transaction_timeout=soon", "that is no float"),
    ("transaction_timeout=NaN", "has to be 1 second or more"),
    ("transaction_timeout=Infinity", "that is no float"),
]


def test_a_word_that_the_sink_could_not_work_with_is_refused(
    feed_of: Callable[..., Feed], subtests: pytest.Subtests
) -> None:
    feed = feed_of()
    feed.decide(0)
    with feed.runtime() as runtime:
        for said, why in WRONG_WORDS:
            with subtests.test(said), pytest.raises(InvalidPipeline, match=why):
                override(runtime, "rows", [said], "a test")
        with pytest.raises(UnknownEpoch, match="has a sink other"):
            override(runtime, "other", ["shards=2"], "a test")
        assert runtime.ledger.overrides("numbers") == []


@pytest.mark.fault("L9")
def test_a_word_that_does_not_go_with_a_replaced_sink_keeps_nobody_from_sweeping_there(
    feed_of: Callable[..., Feed],
) -> None:
    promised_less = feed_of(guarantee="none")
    promised_less.decide(0)
    promised_less.finish(0)
    feed = feed_of()
    feed.decide(1)
    feed.finish(1)
    with feed.runtime() as runtime:
        override(runtime, "rows", ["shards=2"], "a test")
    assert recover_by_name(feed).problems == []


def test_no_sink_freezes_its_timeouts() -> None:
    table: dict[str, Any] = {"tables": {"numbers": "public.numbers"}, "connection": "c", "lock_timeout": 33.0}
    sent: dict[str, Any] = {"output": "numbers", "connection": "c", "guarantee": "none", "timeout": 33.0}
    sinks: list[Sink] = [
        PostgresSink("rows", **table),
        PostgresSink("rows", protocol="write_ahead", **table),
        HttpSink("rows", tries=9, records_per_request=7, **sent),
        TcpSink("rows", **sent),
        KafkaSink("rows", output="numbers", topic="t", marker_topic="m", connection="c", shards=2),
    ]
    for sink in sinks:
        spec = sink.spec()
        assert sink.settings()
        assert not sink.settings().keys() & spec["arguments"].keys()
        assert Sink.from_spec(spec, sink.settings()).arguments() == sink.arguments()
        assert Sink.from_spec(spec).spec() == spec


def test_the_command_keeps_lists_and_takes_back_a_word(
    feed_of: Callable[..., Feed], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = feed_of(transaction_timeout=7)
    feed.decide(0)
    monkeypatch.setenv("LOCKSTEP_LEDGER", feed.ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", str(feed.folder / "staging"))
    monkeypatch.setenv("COLUMNS", "200")

    def lockstep(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["override", "numbers", *arguments])

    assert "as it is deployed" in lockstep().output
    for wrong in (["rows"], ["rows", "shards=2"], ["rows", "shards=2", "--clear", "--reason", "x"]):
        assert lockstep(*wrong).exit_code == 2
    assert lockstep("rows", "shards=0", "--reason", "x").exit_code == 1
    assert lockstep("rows", "transaction_timeout=900", "--reason", "first").exit_code == 0
    done = lockstep("rows", "shards=2", "--reason", "a large one")  # and the first stays
    assert done.exit_code == 0
    assert "rows: shards=2, transaction_timeout=900.0 (in force; " in done.output and "a large one" in done.output
    assert in_force(feed) == {**OTHERS, "transaction_timeout": 900.0, "shards": 2}
    assert "as deployed (in force" in lockstep("rows", "--clear", "--reason", "it is out").output
    assert in_force(feed)["shards"] == 1

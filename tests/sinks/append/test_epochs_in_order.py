"""Epochs of a cursor pipeline are sent in order, all that are decided: a failed send stops the later ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.crash import CrashPoint
from lockstep.errors import OutOfOrder, SinkUnavailable
from lockstep.roles.recover import RecoveryReport
from lockstep.sinks.append_only.tcp import TcpSink
from stack.postgres import PostgresServer
from tests.crash.world import ROWS
from tests.sinks.append.feed import Feed
from tests.sinks.append.scripted import Script, hang_up, line, scripted
from tests.sinks.kafka_watching import at


def feed_to(script: Script, folder: Path, server: PostgresServer, committer: str = "postgres:ledger") -> Feed:
    """Two receivers: `feed`, which fails, and `other`."""
    name = f"order_{script.port}"
    ledger = server.create_database(name)
    sinks = [TcpSink(name, output="numbers", connection=name, committer=committer) for name in ("feed", "other")]
    url = f"tcp://127.0.0.1:{script.port}"
    return Feed.of(ledger, folder, sinks, {"feed": url, "other": url, "ledger": ledger}, cursor=True)


def epochs_of(script: Script) -> list[int]:
    """Of each request in turn."""
    return [json.loads(request.body.splitlines()[0])["lockstep"]["epoch"] for request in script.requests]


@pytest.mark.parametrize("committer", ["{memory}/sent", "postgres:ledger"], ids=["folder", "table"])
def test_a_later_epoch_waits_until_the_failed_one_was_sent(
    memory: Path, memory_server: PostgresServer, committer: str
) -> None:
    with scripted("tcp", hang_up) as script:
        feed = feed_to(script, memory, memory_server, committer.format(memory=memory))
        feed.decide(1)
        with pytest.raises(SinkUnavailable):
            feed.publish(1, "feed")
        feed.decide(2)
        with pytest.raises(OutOfOrder, match="epoch 1 is prepared in feed"):
            feed.publish(2, "feed")
        problems = [problem.split(":")[0] for problem in feed.recover().problems]
        assert problems == ["SinkUnavailable", "SinkUnavailable", "OutOfOrder"]
        assert set(epochs_of(script)) == {1}, "epoch 2 was sent before epoch 1"
        script.answers, script.requests = [line("ok\n")], []
        feed.publish(1, "other")
        feed.publish(2, "other")  # its own order only
        with pytest.raises(OutOfOrder):
            feed.publish(2, "feed")
        feed.publish(1, "feed")
        feed.publish(2, "feed")
        assert epochs_of(script) == [1, 2, 1, 2]
        feed.finish(1)
        feed.finish(2)
        assert epochs_of(script) == [1, 2, 1, 2], "something was sent again"


@pytest.mark.fault("G6")
def test_an_epoch_behind_one_that_is_being_published_is_no_problem_for_recovery(
    memory: Path, memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted("tcp", line("ok\n")) as script:
        feed = feed_to(script, memory, memory_server)
        for run in (1, 2):
            feed.decide(run)
        feed.publish(1, "other")
        reports: list[RecoveryReport] = []
        with at(CrashPoint.PUBLISH_AFTER_WRITE, lambda: reports.append(feed.recover()), monkeypatch):
            feed.publish(1, "feed")
        [report] = reports
        assert report.problems == [] and len(report.busy) == 2 and not report.complete
        assert feed.recover().complete


def test_one_round_of_recovery_sends_all_that_are_decided_in_order(memory: Path, memory_server: PostgresServer) -> None:
    with scripted("tcp", line("ok\n")) as script:
        feed = feed_to(script, memory, memory_server)
        for run in (1, 2, 3):
            feed.decide(run)
        assert feed.recover().finished == [1, 2, 3]
        assert epochs_of(script) == [1, 1, 2, 2, 3, 3]
        assert all(len(request.ordinals) == ROWS for request in script.requests)


def test_an_epoch_that_was_sent_and_not_recorded_is_sent_again_before_the_next(
    memory: Path, memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted("tcp", line("ok\n")) as script:
        feed = feed_to(script, memory, memory_server)
        feed.decide(1)
        feed.decide(2)
        with monkeypatch.context() as broken:
            broken.setenv("LOCKSTEP_TESTING", "1")
            broken.setenv("LOCKSTEP_CRASH", "publish.after_write:raise")
            with pytest.raises(RuntimeError):
                feed.publish(1, "feed")
        with pytest.raises(OutOfOrder):
            feed.publish(2, "feed")
        feed.publish(1, "feed")
        feed.publish(2, "feed")
        assert epochs_of(script) == [1, 1, 2]
        first, again = script.requests[:2]
        assert again.body == first.body

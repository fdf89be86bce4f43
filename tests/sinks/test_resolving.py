"""A person's word on a decided epoch: it counts where nobody can prove the outcome, and nowhere else."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Epoch
from lockstep.errors import IllegalTransition, LedgerConflict
from lockstep.operations.resolve import NothingAsked, Resolution, ask, resolve, resolve_as_asked
from lockstep.testing._crash_sweep import fork
from tests.sinks.append.feed import Feed
from tests.sinks.kinds import EXACT, feed_of
from tests.sinks.postgres_target import execute


@pytest.fixture
def feed(request: pytest.FixtureRequest, memory: Path) -> Feed:
    """Of one sink, by the name in the parameter."""
    return feed_of(request, request.param, memory)


def decided(feed: Feed) -> Epoch:
    """An epoch of which the target holds nothing: what was prepared is gone, as after a hand that tidied up."""
    feed.decide(0)
    with feed.runtime() as runtime:
        epoch = runtime.ledger.epoch("numbers", 1)
        with runtime.sink_of(epoch, "rows").opened(runtime.sink_context()) as sink:
            for txn in sink.pending():
                sink.abort(txn)
    return epoch


def say(feed: Feed, word: Any) -> None:
    with feed.runtime() as runtime:
        resolve(runtime, 1, "rows", word, "a person's word")


@pytest.mark.fault("L13")
@pytest.mark.parametrize("feed", EXACT, indirect=True)
def test_nobody_can_say_applied_where_the_target_proves_that_it_was_not(feed: Feed) -> None:
    decided(feed)
    with pytest.raises(LedgerConflict, match="resolve numbers 1 rows not-applied"):
        say(feed, "applied")
    assert feed.state(1) == "committed"
    say(feed, "not-applied")
    feed.finish(0)
    assert feed.verify(1)["rows"].agrees


def shown_and_not_recorded(feed: Feed) -> None:
    """An epoch whose publisher died when the sink had it and the ledger didn't know."""
    feed.decide(0)

    def publisher() -> None:
        os.environ.update(LOCKSTEP_TESTING="1", LOCKSTEP_CRASH="publish.before_record")
        feed.publish(0, "rows")

    assert fork(publisher).wait() == -9


@pytest.mark.fault("L13")
@pytest.mark.parametrize("feed", ["PostgresSink"], indirect=True)
def test_a_persons_word_counts_where_the_target_shows_the_range_under_another_number(feed: Feed) -> None:
    """As a ledger numbered it that has been lost: publication will never take it for this epoch's."""
    shown_and_not_recorded(feed)
    for table in ("lockstep_marker", "lockstep_range"):
        execute(feed.connections["c"], f"UPDATE {table} SET epoch = 99")
    with pytest.raises(LedgerConflict, match="epoch 99"):
        feed.publish(0, "rows")
    say(feed, "applied")
    assert feed.state(1) == "published"


@pytest.mark.fault("L13")
@pytest.mark.parametrize("feed", EXACT, indirect=True)
def test_nobody_can_say_not_applied_where_the_marker_stands(feed: Feed) -> None:
    shown_and_not_recorded(feed)
    with pytest.raises(LedgerConflict, match="it was applied"):
        say(feed, "not-applied")
    say(feed, "applied")
    assert feed.state(1) == "published"
    assert feed.verify(1)["rows"].agrees


def left(feed: Feed, word: Resolution, reason: str) -> int:
    with feed.runtime() as runtime:
        return ask(runtime.ledger, runtime.ledger.epoch("numbers", 1), "rows", word, reason)


def carry_out(feed: Feed, word: int) -> None:
    with feed.runtime() as runtime:
        resolve_as_asked(runtime, 1, "rows", word)


@pytest.mark.parametrize("feed", ["StdoutSink"], indirect=True)
def test_a_word_that_was_left_is_carried_out_once_and_of_two_the_last(feed: Feed) -> None:
    feed.decide(0)
    with feed.runtime() as runtime:
        vote = runtime.ledger.last_note(runtime.ledger.epoch("numbers", 1), "rows")
    assert vote is not None
    with pytest.raises(IllegalTransition, match="nobody has asked"):
        carry_out(feed, vote.id)
    first = left(feed, "applied", "asked to resolve it as applied: I think so")
    last = left(feed, "not-applied", "asked to resolve it as applied: no, I looked")
    with pytest.raises(IllegalTransition, match="nobody has asked"):
        carry_out(feed, first)
    carry_out(feed, last)
    assert feed.state(1) == "committed", "the last word counts, and not what its reason looks like"
    with pytest.raises(IllegalTransition, match="nobody has asked"):
        carry_out(feed, last)
    again = left(feed, "applied", "it came")
    with pytest.raises(IllegalTransition, match="nobody has asked"):
        carry_out(feed, last)  # by an old run that is cleared: another word stands there by now
    assert feed.state(1) == "committed"
    carry_out(feed, again)
    assert feed.state(1) == "published"
    with feed.runtime() as runtime:
        word = runtime.ledger.last_note(runtime.ledger.epoch("numbers", 1), "rows")
        assert word is not None and word.reason is not None and word.reason.endswith("asked: it came")
        with pytest.raises(IllegalTransition):
            ask(runtime.ledger, runtime.ledger.epoch("numbers", 1), "rows", "applied", "again")


@pytest.mark.parametrize("feed", ["PostgresSink"], indirect=True)
def test_a_word_that_was_left_is_refused_where_the_target_proves_the_contrary(feed: Feed) -> None:
    decided(feed)
    word = left(feed, "applied", "surely")
    with pytest.raises(LedgerConflict, match="was not applied"):
        carry_out(feed, word)
    assert feed.state(1) == "committed"
    with pytest.raises(IllegalTransition, match="nobody has asked"):
        carry_out(feed, word)  # by anybody, once the target can't be asked


@pytest.mark.parametrize("feed", ["StdoutSink"], indirect=True)
def test_a_word_that_was_left_too_long_ago_changes_nothing(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.decide(0)
    word = left(feed, "applied", "it came")
    with monkeypatch.context() as later:
        later.setattr("lockstep.operations.resolve.VALID", timedelta(0))
        with pytest.raises(NothingAsked, match="a word is good for"):
            carry_out(feed, word)
    assert feed.state(1) == "committed"
    carry_out(feed, word)
    assert feed.state(1) == "published"


@pytest.mark.parametrize("feed", ["StdoutSink"], indirect=True)
def test_a_word_is_left_only_on_what_the_person_has_seen(feed: Feed) -> None:
    feed.decide(0)
    seen = left(feed, "applied", "it came")
    with feed.runtime() as runtime:
        epoch = runtime.ledger.epoch("numbers", 1)
        younger = ask(runtime.ledger, epoch, "rows", "not-applied", "I have seen it, and it didn't", after=seen)
        with pytest.raises(IllegalTransition, match="check it again"):
            ask(runtime.ledger, epoch, "rows", "applied", "I have seen the first one alone", after=seen)
        last = runtime.ledger.last_note(epoch, "rows")
        assert last is not None and last.id == younger > seen


@pytest.mark.fault("L13", "P15")
@pytest.mark.parametrize(
    ("feed", "lost"),
    [("StdoutSink", "nothing"), ("PostgresSink", "the target"), ("PostgresSink", "the WAL")],
    indirect=["feed"],
)
def test_a_persons_word_counts_where_nobody_can_prove_the_contrary(feed: Feed, lost: str) -> None:
    """At least once, the rows may have gone out before the record; without its WAL an epoch would wait for ever."""
    epoch, there = decided(feed), dict(feed.connections)
    if lost == "the target":
        feed.connections["c"] = "host=127.0.0.1 port=1"
    elif lost == "the WAL":
        for part in (feed.folder / "staging" / str(epoch.wal) / "numbers").iterdir():
            part.unlink()
    say(feed, "applied")
    assert feed.state(1) == "published"
    feed.connections.update(there)
    if lost == "nothing":  # no rows can be read back that would tell otherwise
        assert feed.verify(1)["rows"].agrees
    feed.finish(0)
    assert feed.recover().problems == []
    feed.decide(1)
    feed.finish(1)
    assert feed.state(2) == "cleaned"

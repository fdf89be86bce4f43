"""The behaviour suite, run against the append-only sinks."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lockstep.sinks.values import Guarantee
from lockstep.testing import Behaviour, behaviours
from lockstep.testing._behaviour import CRASHES, processes_that_publish_at_once_show_the_rows_once
from stack.postgres import PostgresServer
from tests.sinks.append.receiving import AppendUnderTest, Receiver, ReceiverUnderTest, StdoutUnderTest
from tests.sinks.guarantees import expect_row

BEHAVIOURS = behaviours(AppendUnderTest)
#: what each sink is held to in every run; of functions (test_function_sink.py) all of it is
STRUCK = [one for one in BEHAVIOURS if one in CRASHES or one is processes_that_publish_at_once_show_the_rows_once]
REST = [one for one in BEHAVIOURS if one not in STRUCK]


class Unremembered(ReceiverUnderTest):
    guarantee = Guarantee.NONE


class AtMostOnce(ReceiverUnderTest):
    guarantee = Guarantee.AT_MOST_ONCE


class StdoutAtMostOnce(StdoutUnderTest):
    guarantee = Guarantee.AT_MOST_ONCE


@pytest.mark.parametrize("behaviour", STRUCK, ids=lambda one: one.__name__)
def test_sinks_with_a_receiver_that_are_struck(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory))


@pytest.mark.parametrize("behaviour", REST, ids=lambda one: one.__name__)
@pytest.mark.sample(4)
def test_sinks_with_a_receiver(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory))


@pytest.mark.parametrize("behaviour", behaviours(Unremembered), ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_sinks_without_a_guarantee(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(Unremembered(receiver, memory, guarantee="none"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("counter", ["tcp", "http"], indirect=True)
@pytest.mark.sample(5)
def test_sinks_that_send_at_most_once(counter: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(AtMostOnce(counter, memory, guarantee="at_most_once"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_a_table_remembers_what_has_begun(
    memory: Path, memory_server: PostgresServer, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = StdoutAtMostOnce(memory, "postgres:records", guarantee="at_most_once")
    dsn = memory_server.create_database(f"begun_{uuid.uuid4().hex[:12]}")
    monkeypatch.setattr(target, "connections", lambda: {"records": dsn})
    with target.redirected():
        behaviour(target)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.sample(2)
def test_stdout_at_most_once(memory: Path, behaviour: Behaviour) -> None:
    target = StdoutAtMostOnce(memory, guarantee="at_most_once")
    with target.redirected():
        behaviour(target)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.sample(3)
def test_stdout(memory: Path, behaviour: Behaviour) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        behaviour(target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(receiver: Receiver, memory: Path) -> None:
    name = f"{receiver.kind.capitalize()}Sink"
    expect_row(name, ReceiverUnderTest(receiver, memory))
    expect_row(f"{name}, none", Unremembered(receiver, memory, guarantee="none"))


@pytest.mark.tier("all")
@pytest.mark.parametrize("counter", ["tcp", "http"], indirect=True)
def test_the_page_of_guarantees_tells_the_truth_of_those_at_most_once(counter: Receiver, memory: Path) -> None:
    target = AtMostOnce(counter, memory, guarantee="at_most_once")
    expect_row(f"{counter.kind.capitalize()}Sink, at most once", target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_of_stdout(memory: Path) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        expect_row("StdoutSink", target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_of_stdout_at_most_once(memory: Path) -> None:
    target = StdoutAtMostOnce(memory, guarantee="at_most_once")
    with target.redirected():
        expect_row("StdoutSink, at most once", target)

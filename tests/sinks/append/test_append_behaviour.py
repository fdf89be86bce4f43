"""The behaviour suite, run against the append-only sinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.values import Guarantee
from lockstep.testing import Behaviour, behaviours
from tests.sinks.append.receiving import AppendUnderTest, Receiver, ReceiverUnderTest, StdoutUnderTest
from tests.sinks.guarantees import expect_row

BEHAVIOURS = behaviours(AppendUnderTest)


class Unremembered(ReceiverUnderTest):
    guarantee = Guarantee.NONE


def test_the_receiver_has_its_table_before_it_serves(receiver: Receiver) -> None:
    assert receiver.records() == []


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_sinks_with_a_receiver(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(ReceiverUnderTest(receiver, memory))


@pytest.mark.parametrize("behaviour", behaviours(Unremembered), ids=lambda one: one.__name__)
def test_sinks_without_a_guarantee(receiver: Receiver, memory: Path, behaviour: Behaviour) -> None:
    behaviour(Unremembered(receiver, memory, guarantee="none"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_stdout(memory: Path, behaviour: Behaviour) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        behaviour(target)


def test_the_page_of_guarantees_tells_the_truth(receiver: Receiver, memory: Path) -> None:
    name = f"{receiver.kind.capitalize()}Sink"
    expect_row(name, ReceiverUnderTest(receiver, memory))
    expect_row(f"{name}, none", Unremembered(receiver, memory, guarantee="none"))


def test_the_page_of_guarantees_tells_the_truth_of_stdout(memory: Path) -> None:
    target = StdoutUnderTest(memory)
    with target.redirected():
        expect_row("StdoutSink", target)

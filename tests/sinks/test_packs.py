"""A sink of each kind takes the epochs of a pack, each of them once, whatever becomes of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.errors import BadRecords, EpochBusy
from lockstep.pack import Member
from lockstep.wal.request import read_request
from stack.postgres import PostgresServer
from tests.crash.world import write_parquet
from tests.sinks.append.feed import Feed
from tests.sinks.kinds import EXACT, sink_of
from tests.waiting import until

DAYS = range(4)


@pytest.fixture(params=EXACT)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["interval", "cursor"])
def feed(request: pytest.FixtureRequest, kind: str, memory_server: PostgresServer, memory: Path) -> Feed:
    """Of one sink, that kind's."""
    memory_server.start()
    ledger = memory_server.create_database(f"packs_{memory.name}")
    sink, connections = sink_of(request, kind, memory)
    return Feed.of(ledger, memory, [sink], connections, cursor=request.param == "cursor")


def expect_shown_once(feed: Feed, epoch: int) -> None:
    assert feed.state(epoch) == "cleaned"
    [found] = feed.verify(epoch).values()
    assert found.compared and found.agrees, found


def test_each_epoch_is_shown_once_and_a_second_pack_of_them_changes_nothing(feed: Feed) -> None:
    first = feed.move(DAYS)
    assert [member.error for member in first] == [None] * len(DAYS)
    again = feed.move(DAYS)
    assert [member.already for member in again] == [True] * len(DAYS)
    for epoch in range(1, len(DAYS) + 1):
        expect_shown_once(feed, epoch)


def refuse_second_day(request_uri: str) -> None:
    if read_request(request_uri).sources["numbers"].end["day"] == 1:
        raise BadRecords("day 1 is not what it should be")
    write_parquet(request_uri)


def move_when_free(feed: Feed) -> list[Member]:
    """The pack again, once nobody holds an epoch that the one before had begun."""
    members: list[Member] = []

    def moved() -> bool:
        members[:] = feed.move(DAYS)
        return not any(isinstance(member.error, EpochBusy) for member in members)

    until(moved, "an epoch stays busy", seconds=90)
    return members


@pytest.mark.parametrize("feed", ["interval"], indirect=True)
def test_what_fails_is_one_epoch_and_the_same_pack_brings_it_later(feed: Feed) -> None:
    members = feed.move(DAYS, refuse_second_day)
    assert [type(member.error) for member in members] == [type(None), BadRecords, type(None), type(None)]
    epochs = [member.epoch.id for member in members if member.epoch]
    for place, epoch in enumerate(epochs):
        if place == 1:
            assert feed.state(epoch) == "planned"
        else:
            expect_shown_once(feed, epoch)
    assert [member.error for member in feed.move(DAYS)] == [None] * len(DAYS)
    for epoch in epochs:
        expect_shown_once(feed, epoch)


@pytest.mark.parametrize("feed", ["cursor"], indirect=True)
def test_behind_an_epoch_of_a_cursor_that_failed_none_is_begun(feed: Feed) -> None:
    members = feed.move(DAYS, refuse_second_day)
    assert members[0].error is None
    assert isinstance(members[1].error, BadRecords)
    assert all(member.error is not None for member in members[2:]), "begun before it failed, and not decided"
    members = move_when_free(feed)
    assert [member.error for member in members] == [None] * len(DAYS)
    epochs = {member.epoch.id for member in members if member.epoch}  # a begin that was refused may have used a number
    assert len(epochs) == len(DAYS)
    for epoch in epochs:
        expect_shown_once(feed, epoch)

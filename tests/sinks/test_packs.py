"""A sink of each kind takes the epochs of a pack of a cursor, each of them once, also when one of them fails."""

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


def refuse_second_day(request_uri: str) -> None:
    if read_request(request_uri).sources["numbers"].end["day"] == 1:
        raise BadRecords("day 1 is not what it should be")
    write_parquet(request_uri)


@pytest.mark.parametrize("kind", EXACT)
def test_behind_an_epoch_of_a_cursor_that_failed_none_is_begun_and_each_is_shown_once(
    request: pytest.FixtureRequest, kind: str, memory_server: PostgresServer, memory: Path
) -> None:
    memory_server.start()
    sink, connections = sink_of(request, kind, memory)
    ledger = memory_server.create_database(f"packs_{memory.name}")
    feed = Feed.of(ledger, memory, [sink], connections, cursor=True)
    members = feed.move(DAYS, refuse_second_day)
    assert members[0].error is None
    assert isinstance(members[1].error, BadRecords)
    assert all(member.error is not None for member in members[2:]), "begun before it failed, and not decided"

    def moved(members: list[Member]) -> bool:
        """Nobody holds an epoch any more that the pack before had begun."""
        members[:] = feed.move(DAYS)
        return not any(isinstance(member.error, EpochBusy) for member in members)

    until(lambda: moved(members), "an epoch stays busy", seconds=90)
    assert [member.error for member in members] == [None] * len(DAYS)
    epochs = {member.epoch.id for member in members if member.epoch}  # a begin that was refused may have used a number
    assert len(epochs) == len(DAYS)
    assert [member.already for member in feed.move(DAYS)] == [True] * len(DAYS)
    for epoch in epochs:
        assert feed.state(epoch) == "cleaned"
        [found] = feed.verify(epoch).values()
        assert found.compared and found.agrees, found

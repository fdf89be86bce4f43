"""MariaDB beside PostgreSQL in one epoch, moved by the real roles: decided together, recovered together, verified."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import SinkUnavailable
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.crash.world import rows_of_day
from tests.sinks import postgres_target
from tests.sinks.append.feed import Feed
from tests.sinks.mariadb_target import execute
from tests.sinks.postgres_target import LOCK_TIMEOUT

SINKS = ("warehouse", "mart", "redo")


@pytest.fixture
def feed(memory_server: PostgresServer, warehouse_dsn: str, mariadb_dsn: str, memory: Path) -> Feed:
    memory_server.start()
    ledger = memory_server.create_database(f"mysql_{mariadb_dsn.rsplit('_', 1)[1]}")
    to_mariadb: dict[str, Any] = {"connection": "mart", "create": True, "lock_timeout": LOCK_TIMEOUT}
    sinks = [
        PostgresSink("warehouse", tables={"numbers": "public.numbers"}, connection="warehouse", create=True),
        MariaDbSink("mart", tables={"numbers": "numbers"}, **to_mariadb),
        MariaDbSink("redo", tables={"numbers": "redone"}, protocol="write_ahead", **to_mariadb),
    ]
    return Feed.of(ledger, memory, sinks, {"warehouse": warehouse_dsn, "mart": mariadb_dsn})


def shown(feed: Feed, day: int) -> list[Counter[Any]]:
    """The day's rows in the three tables."""
    rows = "SELECT day, number, label FROM {} WHERE day = %s"
    mart, warehouse = feed.connections["mart"], feed.connections["warehouse"]
    return [
        Counter(postgres_target.execute(warehouse, rows.format("public.numbers"), day)),
        *(Counter(execute(mart, rows.format(table), day)) for table in ("numbers", "redone")),
    ]


def expect_agreement(feed: Feed, epoch: int) -> None:
    found = feed.verify(epoch)
    assert set(found) == set(SINKS)
    assert all(one.agrees for one in found.values()), found


def test_all_show_an_epoch_only_after_the_decision_and_agree_with_what_was_sealed(feed: Feed) -> None:
    feed.decide(0)
    assert shown(feed, 0) == [Counter()] * 3
    feed.finish(0)
    assert shown(feed, 0) == [Counter(rows_of_day(0))] * 3
    expect_agreement(feed, 1)
    execute(feed.connections["mart"], "DELETE FROM numbers LIMIT 1")
    execute(feed.connections["mart"], "UPDATE redone SET label = 'another' LIMIT 1")
    assert {name for name, one in feed.verify(1).items() if not one.agrees} == {"mart", "redo"}


@pytest.mark.fault("E9")
def test_a_decided_epoch_waits_for_a_server_that_was_killed(feed: Feed, mariadb_server: MariaDbServer) -> None:
    feed.decide(0)
    mariadb_server.kill()
    with pytest.raises(SinkUnavailable):
        feed.publish(0, "mart")
    assert feed.recover().problems and feed.state(1) == "committed"
    mariadb_server.start()
    assert feed.recover().finished == [1]
    assert shown(feed, 0) == [Counter(rows_of_day(0))] * 3
    expect_agreement(feed, 1)

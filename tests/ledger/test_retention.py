"""The history in partitions: nobody changes it, it goes by the oldest part, and what is finished is counted once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg2
import psycopg2.errors
import pytest

from lockstep.epoch import KeyedBy
from lockstep.errors import LedgerRefused, LedgerUnavailable
from lockstep.ledger import Ledger, migrate
from lockstep.ledger.administration import prune
from lockstep.ledger.report import Report
from lockstep.states import EpochState, Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, Sql, attempt_of, cleaned, planned, published

DAY = timedelta(days=1)


@pytest.fixture
def dsn(ledger_server: PostgresServer) -> Iterator[str]:
    yield ledger_server.create_database("pruned")
    ledger_server.drop_database("pruned")


@pytest.fixture
def by_hand(dsn: str) -> Iterator[Sql]:
    connection = psycopg2.connect(dsn)
    yield Sql(connection)
    connection.close()


@pytest.fixture
def kept(dsn: str) -> Iterator[Ledger]:
    migrate(dsn)
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    yield ledger
    ledger.close()


def shift(sql: Sql, days: int) -> None:
    """So much time passes: what is written was written so long ago, in the parts of that time."""
    bounds = sql(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'lockstep.transition'::regclass"
    )
    with sql.unwatched():
        for name, _ in bounds:
            sql(f"ALTER TABLE lockstep.transition DETACH PARTITION lockstep.{name}")
            sql(f"UPDATE lockstep.{name} SET at = at - interval '{days} days'")
        for name, bound in bounds:
            for text in {one for one in bound.split("'") if one[:2] == "20"}:
                bound = bound.replace(text, str(datetime.fromisoformat(text) - days * DAY))
            new = name
            if name != "transition_from_the_start":
                new = f"transition_of_{days}_ago_{name[-8:]}"  # as it would be called
                sql(f"ALTER TABLE lockstep.{name} RENAME TO {new}")
            sql(f"ALTER TABLE lockstep.transition ATTACH PARTITION lockstep.{new} {bound}")
    sql.commit()


def names(parts: tuple[Any, ...]) -> list[str]:
    return [part.name for part in parts]


def finish(ledger: Ledger, *numbers: int) -> None:
    for number in numbers:
        cleaned(ledger, planned(ledger, number))


# --- what nobody may do to it ---


def test_no_part_of_the_history_can_be_changed(kept: Ledger, dsn: str, by_hand: Sql, subtests: pytest.Subtests) -> None:
    planned(kept, 1)
    shift(by_hand, 40)
    prune(dsn)
    parts = by_hand(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'lockstep.transition'::regclass"
    )
    assert len(parts) == 3
    by_hand.commit()
    for (table,) in [("lockstep.transition",), *parts]:
        for change in ("UPDATE {} SET reason = 'x'", "DELETE FROM {}", "TRUNCATE {}"):
            said = "recorded rows of the ledger are immutable"
            with subtests.test(change.format(table)), pytest.raises(psycopg2.Error, match=said):
                by_hand(change.format(table))
            by_hand.rollback()


# --- what goes ---


def test_what_is_old_goes_by_whole_parts_and_the_rest_stays(kept: Ledger, dsn: str, by_hand: Sql) -> None:
    finish(kept, 1)
    shift(by_hand, 40)
    assert prune(dsn).begun is not None
    finish(kept, 2)
    before = by_hand("SELECT * FROM lockstep.transition ORDER BY id")
    by_hand.commit()
    said = prune(dsn, 30 * DAY, dry_run=True)
    assert by_hand("SELECT * FROM lockstep.transition ORDER BY id") == before
    by_hand.commit()
    done = prune(dsn, 30 * DAY)
    assert names(said.dropped) == names(done.dropped) == ["transition_from_the_start"]
    history = Report(dsn)
    assert (history.history(FLIGHTS, 1), len(history.history(FLIGHTS, 2))) == ([], 11)
    assert kept.epoch(FLIGHTS, 1).state is EpochState.CLEANED
    assert kept.participants(FLIGHTS, 1).keys() == {"warehouse", "delays"}
    assert prune(dsn, 30 * DAY).dropped == ()
    finish(kept, 3)


def test_the_history_of_an_epoch_that_is_not_finished_stays(kept: Ledger, dsn: str, by_hand: Sql) -> None:
    finish(kept, 1)
    planned(kept, 2)
    shift(by_hand, 500)
    for state in ("planned", "staged", "committed", "published"):
        with by_hand.unwatched():
            change = "UPDATE lockstep.epoch SET state = %s, wal = 'w', manifest_hash = repeat('a', 64) WHERE id = 2"
            by_hand(change, state)
        done = prune(dsn)
        assert (done.dropped, done.held_by) == ((), f"{FLIGHTS} epoch 2"), state
    assert Report(dsn).history(FLIGHTS, 1)


def test_what_a_task_writes_finds_a_part_whatever_the_clock_says(kept: Ledger, dsn: str, by_hand: Sql) -> None:
    finish(kept, 1)
    shift(by_hand, 500)
    assert prune(dsn).dropped
    insert = "INSERT INTO lockstep.transition (pipeline, epoch, target_state, role, actor, at)"
    for time in ("1970-01-01", "2013-05-05", "now", "2100-01-01"):
        by_hand(insert + " VALUES ('flights', 1, 'planned', 'begin', 'tester', %s)", time)


def test_only_the_owner_prunes(kept: Ledger, dsn: str, by_hand: Sql) -> None:
    finish(kept, 1)
    shift(by_hand, 500)
    by_hand("DO $$ BEGIN CREATE ROLE somebody LOGIN PASSWORD 'x'; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    by_hand("GRANT USAGE ON SCHEMA lockstep TO somebody")
    by_hand("GRANT ALL ON ALL TABLES IN SCHEMA lockstep TO somebody")
    by_hand.commit()
    with pytest.raises(LedgerRefused, match="as the owner of the ledger's schema"):
        prune(psycopg2.extensions.make_dsn(dsn, user="somebody", password="x"))
    by_hand("DROP OWNED BY somebody")
    by_hand("DROP ROLE somebody")
    by_hand.commit()
    assert Report(dsn).history(FLIGHTS, 1)


def test_whoever_holds_the_history_is_not_waited_for_long(
    kept: Ledger, dsn: str, by_hand: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.ledger.administration._LOCK_SECONDS", 0.1)
    finish(kept, 1)
    shift(by_hand, 500)
    by_hand("LOCK TABLE lockstep.transition IN ROW EXCLUSIVE MODE")
    with pytest.raises(LedgerUnavailable, match="nothing was pruned"):
        prune(dsn)
    by_hand.rollback()
    assert Report(dsn).history(FLIGHTS, 1)
    finish(kept, 2)


# --- what is counted once ---


def counted(dsn: str, sql: Sql) -> tuple[Any, Any]:
    """What status tells, with what was counted once, and without."""
    told, lags = [], []
    for forget in (False, True):
        if forget:
            sql("DELETE FROM lockstep.finished_rollup")
            sql.commit()
        found = Report(dsn).pipeline(FLIGHTS)
        assert found is not None and found.shown is not None
        told.append((found.counts, found.holes, found.shown.epoch))
        lags.append(found.shown.lag)
    assert abs(lags[1] - lags[0]) < timedelta(minutes=1)
    return told[0], told[1]


def test_what_is_finished_is_counted_once_and_status_tells_the_same(
    kept: Ledger, dsn: str, by_hand: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.ledger.ledger._COUNT_EVERY", 2)
    finish(kept, 1, 2, 4)
    planned(kept, 7)
    kept.void_epoch(FLIGHTS, 4, "given up")
    finish(kept, 9, 12)
    stuck = published(kept, planned(kept, 20))
    finish(kept, 21, 23)
    assert by_hand.one("SELECT below_epoch FROM lockstep.finished_rollup") == stuck.id
    by_hand.commit()
    first, again = counted(dsn, by_hand)
    assert first == again
    kept.record_cleanup(stuck, Role.CLEANUP)
    finish(kept, 30, 29, 28)
    first, again = counted(dsn, by_hand)
    assert first == again
    assert len(first[1]) == 7


def test_an_epoch_that_is_not_finished_is_never_counted_as_one(
    kept: Ledger, dsn: str, by_hand: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.ledger.ledger._COUNT_EVERY", 1)
    old = planned(kept, 1)
    finish(kept, 2, 3)
    assert by_hand("SELECT below_epoch FROM lockstep.finished_rollup") == []
    by_hand.commit()
    kept.raise_attempt(FLIGHTS, old.id, Role.OPERATOR)
    kept.void_epoch(FLIGHTS, old.id, "given up")
    assert attempt_of(kept.epoch(FLIGHTS, old.id)).token > old.attempt
    finish(kept, 4)
    assert by_hand("SELECT below_epoch, cleaned, void FROM lockstep.finished_rollup") == [(5, 3, 1)]

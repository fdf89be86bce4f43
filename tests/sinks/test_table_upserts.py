"""Upserts: whatever order epochs are published in, and into whichever database, the newest row of a key stays."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    PreflightRefused,
    Retryable,
    SinkRejected,
    SinkUnavailable,
    TargetOwned,
)
from lockstep.observability.redaction import SHOW_ROWS
from lockstep.sinks.mariadb.dialect import MariaDbDialect
from lockstep.sinks.postgres.dialect import PostgresDialect
from lockstep.sinks.tables.load import TableUpsert
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from tests.sinks.upserting import (
    EACH_WITH_ITS_CHECK,
    OURS,
    SCHEMA,
    Sealed,
    UpsertedDatabase,
    place,
    placed,
    protocol,
    row,
    sealed,
)

__all__ = ["place", "placed", "protocol"]
KEYS = 40


# --- the newest stays -------------------------------------------------------------------------------------------------


def random_epochs(seed: int, days: int = 8) -> list[Sealed]:
    """Epochs of many common keys, numbered in another order than their days: a backfill runs when it runs."""
    luck = random.Random(seed)
    numbers = luck.sample(range(1, days + 1), days)
    epochs = []
    for day, number in enumerate(numbers):
        keys = luck.sample(range(KEYS), luck.randrange(1, KEYS))
        rows = [row(key, f"day {day}", day, luck.random() < 0.3) for key in keys]
        epochs.append(sealed(number, *rows, day=day))
    return epochs


def applied(epochs: Sequence[Sealed]) -> dict[int, tuple[Any, ...]]:
    """One after the other, in the order of their days."""
    found = {}
    for one in epochs:
        for key, *rest in one.rows:
            found[key] = tuple(rest)
    return found


@pytest.mark.fault("E24")
@pytest.mark.parametrize(
    ("placed", "seed", "guess"),
    [
        ("postgres two_phase", 0, None),
        ("postgres two_phase", 7, True),
        ("postgres write_ahead", 1, False),
        ("mariadb two_phase", 2, False),
        ("mariadb write_ahead", 0, None),
        ("mariadb write_ahead", 7, True),
    ],
    indirect=["placed"],
)
def test_in_whatever_order_epochs_are_published_the_table_is_that_of_their_days(
    place: UpsertedDatabase, protocol: ProtocolName, seed: int, guess: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the guess that keys are new is wrong, as when somebody else is faster than who has looked."""
    if guess is not None:
        monkeypatch.setattr(TableUpsert, "_is_free", lambda *_: guess)
    epochs = random_epochs(seed)
    for one in random.Random(seed).sample(epochs, len(epochs)):
        place.send(place.sink(protocol), one)
    assert place.shown() == applied(epochs)
    assert place.left_over() == []


def test_keys_beyond_those_of_the_table_need_no_table_in_between(
    place: UpsertedDatabase, protocol: ProtocolName, monkeypatch: pytest.MonkeyPatch
) -> None:
    def created(*_: object) -> None:
        raise AssertionError("a table in between")

    given = place.sink(protocol)
    place.send(given, sealed(1, row(5), row(3)))
    place.send(given, sealed(2, row(4), row(5, "newer")))
    for kind in (PostgresDialect, MariaDbDialect):
        monkeypatch.setattr(kind, "create_staging", created)
    place.send(given, sealed(3, row(9), row(6), row(7)))
    place.send(given, sealed(4, row(1), row(2)))
    with pytest.raises(AssertionError, match="a table in between"):
        place.send(given, sealed(5, row(8)))  # between 6 and 9, for all that was asked
        place.send(given, sealed(6, row(2), row(8)))
    assert place.shown()[5][0] == "newer"
    assert set(place.shown()) == {1, 2, 3, 4, 5, 6, 7, 8, 9}


@pytest.mark.parametrize(("placed", "arguments"), EACH_WITH_ITS_CHECK, indirect=["placed"])
def test_an_epoch_too_large_to_be_held_is_upserted_alike(
    place: UpsertedDatabase, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.sinks.tables.load.MAX_BYTES", 0)
    given = place.sink(**arguments)
    place.send(given, sealed(1, row(2), row(1)))
    place.send(given, sealed(2, row(2, "newer"), row(3)))
    assert {key: found[0] for key, found in place.shown().items()} == {1: "a", 2: "newer", 3: "a"}
    place.expect_refusal(SinkRejected, "occurs more than once", given, sealed(3, row(7), row(7, "b")))
    assert place.left_over() == []


def test_text_that_the_server_would_refuse_is_refused_before_the_decision(place: UpsertedDatabase) -> None:
    text, long = 'text COLLATE "C"' if place.text == "text" else "varchar(3) CHARACTER SET utf8mb4", "a\0" * 9
    columns = f"id bigint PRIMARY KEY, name {text}, version bigint, {OURS}, lockstep_order bigint NOT NULL"
    place.execute(f"CREATE TABLE target ({columns})")
    given = place.sink(create=False)
    place.expect_refusal(SinkRejected, "name|0x00", given, sealed(1, row(1), row(2, long)))
    place.send(given, sealed(2, row(1, "abc")))


def until_published(place: UpsertedDatabase, one: Sealed, vote: Vote) -> None:
    """Where two of them are called a deadlock, the one that was rolled back is published again."""
    for _ in range(100 if place.deadlocks else 0):
        with suppress(Retryable):
            place.publish(place.sink(lock_timeout=10), one, vote)
            return
    place.publish(place.sink(lock_timeout=10), one, vote)


@pytest.mark.fault("E24")
def test_publishers_at_once_never_show_a_row_older_than_one_that_was_seen(place: UpsertedDatabase) -> None:
    epochs = random_epochs(7, days=6)
    votes = [place.prepare(place.sink(lock_timeout=10), one) for one in epochs]
    failures: list[BaseException] = []
    done = threading.Event()

    def run(number: int) -> None:
        try:
            until_published(place, epochs[number], votes[number])
        except BaseException as error:
            failures.append(error)

    def watch() -> None:
        newest: dict[int, tuple[int, int]] = {}
        with place.connected() as cursor:
            while not done.is_set():
                cursor.execute("SELECT id, lockstep_order, lockstep_epoch FROM target")
                for key, *age in cursor.fetchall():
                    if newest.setdefault(key, (age[0], age[1])) > (age[0], age[1]):
                        failures.append(AssertionError(f"key {key} went back to {age}"))
                    newest[key] = (age[0], age[1])

    watcher = threading.Thread(target=watch)
    publishers = [threading.Thread(target=run, args=(number,)) for number in range(len(epochs))]
    for thread in (watcher, *publishers):
        thread.start()
    for thread in publishers:
        thread.join()
    done.set()
    watcher.join()
    assert failures == []
    assert place.shown() == applied(epochs)


@pytest.mark.fault("E24")
def test_a_deleted_key_stays_deleted_until_something_newer_brings_it_back(
    place: UpsertedDatabase, protocol: ProtocolName
) -> None:
    place.send(place.sink(protocol), sealed(1, row(1), row(2), day=1))
    place.send(place.sink(protocol), sealed(2, row(1, "bye", gone=True), row(3, "never seen", gone=True), day=3))
    place.send(place.sink(protocol), sealed(3, row(1, "old news"), row(3, "old news"), day=2))
    living = "SELECT id FROM target WHERE NOT lockstep_deleted ORDER BY id"
    assert place.execute(living) == [(2,)]
    place.send(place.sink(protocol), sealed(4, row(1, "back"), day=4))
    assert place.execute(living) == [(1,), (2,)]


def test_by_a_column_the_greatest_wins_within_an_epoch_and_among_them(
    place: UpsertedDatabase, protocol: ProtocolName
) -> None:
    given = place.sink(protocol, order="column:version")
    place.send(given, sealed(1, row(1, "b", 5), row(1, "a", 3), row(1, "c", 9), row(2, "x", 4)))
    assert place.shown() == {1: ("c", 9, False), 2: ("x", 4, False)}
    place.send(given, sealed(2, row(1, "late", 8), row(2, "y", 4)))  # equal order: the later epoch's
    assert place.shown() == {1: ("c", 9, False), 2: ("y", 4, False)}


def test_keys_of_several_columns_and_tables(place: UpsertedDatabase) -> None:
    given = place.kind(
        "warehouse",
        tables={"days": "days", "names": "names"},
        connection="w",
        create=True,
        mode="upsert",
        key={"days": ["day", "name"], "names": ["name"]},
    )
    table = pa.table({"day": [1, 1, 2], "name": ["a", "b", "a"], "n": [1, 2, 3]})
    names = pa.table({"name": ["a", "b"], "n": [3, 2]})
    with given.opened(place.context()) as live:
        for id in (1, 2):
            wal = [SealedRows(table, output="days"), SealedRows(names, output="names")]
            live.preflight({"days": table.schema, "names": names.schema})
            live.publish(epoch(id, token=20), live.prepare(epoch(id), wal), wal)
            [found] = live.read(id, "days", table.schema)
            assert sorted(found.to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    assert place.execute("SELECT count(*), min(lockstep_epoch) FROM days") == [(3, 2)]


# --- refused before the decision --------------------------------------------------------------------------------------


@pytest.mark.fault("C27")
@pytest.mark.parametrize(("placed", "arguments"), EACH_WITH_ITS_CHECK, indirect=["placed"])
def test_a_key_that_is_null_or_stands_twice_is_refused_by_name(
    place: UpsertedDatabase, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHOW_ROWS, "1")
    nobody: Any = (None, "x", 1, False)
    place.expect_refusal(SinkRejected, "column id has 1 nulls", place.sink(**arguments), sealed(1, row(1), nobody))
    assert place.left_over() == []
    twice = sealed(1, row(1), row(77), row(77, "b"))
    place.expect_refusal(
        SinkRejected, r"77\)? \(key id\) occurs more than once.*order=column", place.sink(**arguments), twice
    )
    equal = place.sink(order="column:version", **arguments)
    place.expect_refusal(SinkRejected, r"\(77, 1\).*with the same order", equal, twice)
    assert place.shown() == {}
    assert place.left_over() == []


UNORDERED = [
    ("id bigint, lockstep_order bigint NOT NULL", "unique index on just"),
    ("id bigint, UNIQUE (id, name), lockstep_order bigint NOT NULL", "unique index on just"),
    (
        "id bigint PRIMARY KEY, other bigint UNIQUE, lockstep_order bigint NOT NULL",
        r"other\w* is unique too",
    ),
    ("id bigint PRIMARY KEY, lockstep_order bigint", "lockstep_order, NOT NULL"),
    ("id bigint PRIMARY KEY", "lockstep_order: the table lacks it"),
]


def test_a_table_that_cant_tell_which_row_is_newer_is_refused(
    place: UpsertedDatabase, subtests: pytest.Subtests
) -> None:
    for ddl, told in UNORDERED:
        with subtests.test(ddl):
            place.execute("DROP TABLE IF EXISTS target")
            place.execute(f"CREATE TABLE target (name {place.text}, version bigint, {OURS}, {ddl})")
            place.expect_refusal(PreflightRefused, told, place.sink(create=False), sealed(1, row(1)))


def test_whoever_verifies_sees_what_became_of_each_key(place: UpsertedDatabase) -> None:
    given, first = place.sink(), sealed(1, row(1, "a"), row(2, "b"), row(3, "c"), row(4, "d"))
    place.send(given, first)
    place.send(given, sealed(2, row(2, "newer")))
    place.execute("UPDATE target SET name = 'C' WHERE id = 3")
    place.execute("DELETE FROM target WHERE id = 4")
    with given.opened(place.context()) as live:
        found = live.standing(first.at, first.wal[0])
        assert live.missing_keys("rows") == 1
    assert (found.own, found.overwritten, found.missing, found.changed) == (1, 1, 1, 1)


# --- whose the table is -----------------------------------------------------------------------------------------------


def test_nobody_else_may_write_to_a_table_that_is_upserted(place: UpsertedDatabase) -> None:
    with pytest.raises(InvalidPipeline, match="can't share"):
        place.sink(shared=True)
    place.send(place.sink(), sealed(1, row(1)))
    place.expect_refusal(TargetOwned, "belongs to sink warehouse", place.sink(name="second"), sealed(1, row(2)))
    another = place.context("another")
    with place.sink(name="third").opened(another) as third, pytest.raises(TargetOwned, match="pipeline pipe"):
        third.preflight(None)
    appending = place.sink(name="fourth", mode="append", key=None, deleted=None)
    place.expect_refusal(PreflightRefused, "lockstep_order", appending, sealed(1, row(2)))


def test_a_new_owner_who_does_as_told_replaces_rows_of_larger_epochs(place: UpsertedDatabase) -> None:
    by_epoch, one = place.sink(order="epoch"), sealed(1, row(1, "of the new ledger"))
    place.send(by_epoch, sealed(400, row(1, "of the old ledger")))
    with by_epoch.opened(place.context("another")) as given:
        with pytest.raises(TargetOwned, match=r"set the table's epoch column to 0 .*lockstep_order too"):
            given.preflight({"rows": SCHEMA})
        place.execute("DELETE FROM lockstep_target")
        place.execute("UPDATE target SET lockstep_epoch = 0, lockstep_order = 0")
        given.preflight({"rows": SCHEMA})
        given.publish(one.told(11), given.prepare(one.at, one.wal), one.wal)
    assert place.execute("SELECT name FROM target") == [("of the new ledger",)]


# --- two phases -------------------------------------------------------------------------------------------------------


@pytest.mark.fault("C28")
def test_a_prepared_epoch_makes_the_next_one_with_its_keys_wait_and_says_so(place: UpsertedDatabase) -> None:
    first, second, third = (sealed(id, row(id), row(7, f"epoch {id}")) for id in (1, 2, 3))
    vote = place.prepare(place.sink("two_phase"), first)
    place.expect_refusal(
        KeysHeld, r"held by .*epoch 1 \(lockstep:.*published or aborted", place.sink("two_phase"), second
    )
    assert place.left_over() == [vote.handle], "the epoch that waits holds something itself"
    apart = sealed(4, row(100))
    place.send(place.sink("two_phase"), apart)
    place.publish(place.sink("two_phase"), first, vote)
    place.send(place.sink("two_phase"), second)
    place.send(place.sink("two_phase"), third)
    assert place.shown()[7][0] == "epoch 3"


@pytest.mark.fault("E25")
@pytest.mark.parametrize("by_day", [False, True], ids=["cursor", "interval"])
def test_an_epoch_whose_branch_is_gone_is_written_again_past_a_later_one_that_holds_its_keys(
    place: UpsertedDatabase, by_day: bool
) -> None:
    """A cursor's later epoch gives way, as it waits for this one's publication; another day's is left alone."""
    first, second = (sealed(id, row(7, f"epoch {id}"), day=id if by_day else None) for id in (1, 2))
    given = place.sink("two_phase")
    lost = place.prepare(given, first)
    place.lose(str(lost.handle))
    later = place.prepare(given, second)
    with pytest.raises(KeysHeld, match=None if by_day else "epoch 2"):
        place.publish(given, first, lost)
    if by_day:
        assert place.publish(given, second, later) is Publication.COMMITTED
    assert place.publish(given, first, lost) is Publication.REPAIRED
    assert place.publish(given, second, later) is (Publication.FOUND if by_day else Publication.REPAIRED)
    assert place.shown() == {7: ("epoch 2", 1, False)}


def test_a_stranger_who_holds_a_key_makes_an_upsert_wait(place: UpsertedDatabase) -> None:
    place.send(place.sink(), sealed(1, row(1)))
    with place.connected() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE target SET name = 'mine' WHERE id = 1")
        place.expect_refusal(SinkUnavailable, "(?i)lock (wait )?timeout", place.sink(), sealed(2, row(1, "b")))
        cursor.execute("ROLLBACK")
    place.send(place.sink(), sealed(2, row(1, "b")))
    assert place.shown()[1][0] == "b"

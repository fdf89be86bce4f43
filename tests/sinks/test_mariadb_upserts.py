"""Upserts into MariaDB: whatever order epochs are published in, the newest row of a key stays."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.disclosure import SHOW_ROWS
from lockstep.epoch import Interval, Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LockstepError,
    PreflightRefused,
    Retryable,
    SinkRejected,
    SinkUnavailable,
    TargetOwned,
)
from lockstep.sinks.base import Publication, SinkContext, SinkEpoch
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb.branches import xid
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.testing.sealed_rows import SealedRows
from lockstep.testing.under_test import DEPLOYMENT, epoch
from stack.mariadb import MariaDbServer
from tests.sinks.mariadb_target import LOCK_TIMEOUT, connected, execute

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "version": pa.int64(), "gone": pa.bool_()})
PROTOCOLS = ("two_phase", "write_ahead")
KEYS = 40
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)

Row = tuple[int, str | None, int, bool]

_numbers = count(1)


@pytest.fixture
def dsn(mariadb_server: MariaDbServer) -> Iterator[str]:
    """DSN of a fresh database on a server in memory."""
    mariadb_server.start()
    name = f"upserts_{next(_numbers)}"
    yield mariadb_server.create_database(name)
    mariadb_server.start()
    mariadb_server.drop_database(name)


def sink(protocol: ProtocolName | None = "write_ahead", name: str = "warehouse", **arguments: Any) -> MariaDbSink:
    given: dict[str, Any] = {
        "tables": {"rows": "target"},
        "connection": "w",
        "create": True,
        "mode": "upsert",
        "key": ["id"],
        "deleted": "gone",
        "lock_timeout": LOCK_TIMEOUT,
        **arguments,
    }
    return MariaDbSink(name, protocol=protocol, **given)


@dataclass(frozen=True)
class Sealed:
    """An epoch with its rows."""

    at: SinkEpoch
    rows: Sequence[Row]

    @property
    def wal(self) -> list[SealedRows]:
        columns = [list(column) for column in zip(*self.rows, strict=True)] or [[]] * len(SCHEMA)
        return [SealedRows(pa.table(columns, SCHEMA))]

    def told(self, token: int) -> SinkEpoch:
        return replace(self.at, token=token)


def sealed(id: int, *rows: Row, day: int | None = None) -> Sealed:
    """Epoch `id`, of a cursor or of a day."""
    interval = None
    if day is not None:
        start = FIRST_DAY + timedelta(days=day)
        interval = Interval(start, start + timedelta(days=1))
    return Sealed(replace(epoch(id, token=10 * id, manifest=f"epoch {id}"), interval=interval), rows)


def row(key: int, text: str = "a", version: int = 1, gone: bool = False) -> Row:
    return key, text, version, gone


def prepare(dsn: str, given: MariaDbSink, one: Sealed) -> Vote:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        live.preflight({"rows": SCHEMA})
        return live.prepare(one.at, one.wal)


def publish(dsn: str, given: MariaDbSink, one: Sealed, vote: Vote) -> Publication:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        return live.publish(one.told(one.at.token + 1), vote, one.wal)


def send(dsn: str, given: MariaDbSink, one: Sealed) -> None:
    publish(dsn, given, one, prepare(dsn, given, one))


def shown(dsn: str) -> dict[int, tuple[Any, ...]]:
    """By key: name, version, whether it is a tombstone."""
    rows = execute(dsn, "SELECT id, name, version, lockstep_deleted FROM target")
    found = {key: tuple(rest) for key, *rest in rows}
    assert len(found) == len(rows), "a key stands twice"
    assert execute(dsn, "SELECT coalesce(sum(new), 0) FROM lockstep_keys") == [(len(found),)], "keys are miscounted"
    return found


def left_over(dsn: str) -> list[str]:
    """What is prepared; the table in between dies with its session."""
    return [f"{row[3][: row[1]].decode()}:{row[3][row[1] :].decode()}" for row in execute(dsn, "XA RECOVER")]


def expect_refusal(error: type[LockstepError], told: str, dsn: str, given: MariaDbSink, one: Sealed) -> None:
    with pytest.raises(error, match=told):
        prepare(dsn, given, one)


# --- the newest stays ------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(2))
def test_in_whatever_order_epochs_are_published_the_table_is_that_of_their_days(
    dsn: str, protocol: ProtocolName, seed: int
) -> None:
    epochs = random_epochs(seed)
    for one in random.Random(seed).sample(epochs, len(epochs)):
        send(dsn, sink(protocol), one)
    assert shown(dsn) == applied(epochs)
    assert left_over(dsn) == []


def test_epochs_of_a_cursor_go_by_their_number(dsn: str) -> None:
    for id in (2, 1, 3):
        send(dsn, sink(), sealed(id, row(id), row(7, f"epoch {id}")))
    assert shown(dsn)[7][0] == "epoch 3"
    send(dsn, sink(order="epoch"), sealed(9, row(7, "epoch 9"), day=1))
    send(dsn, sink(order="epoch"), sealed(8, row(7, "epoch 8"), day=2))
    assert shown(dsn)[7][0] == "epoch 9"


def until_published(dsn: str, one: Sealed, vote: Vote) -> None:
    """InnoDB may call two of them a deadlock: the one that was rolled back is published again."""
    for _ in range(100):
        with suppress(Retryable):
            publish(dsn, sink(lock_timeout=10), one, vote)
            return
    raise AssertionError(f"epoch {one.at.id} was never published")


def test_publishers_at_once_never_show_a_row_older_than_one_that_was_seen(dsn: str) -> None:
    epochs = random_epochs(7, days=6)
    votes = [prepare(dsn, sink(lock_timeout=10), one) for one in epochs]
    failures: list[BaseException] = []
    done = threading.Event()

    def run(number: int) -> None:
        try:
            until_published(dsn, epochs[number], votes[number])
        except BaseException as error:
            failures.append(error)

    def watch() -> None:
        newest: dict[int, tuple[int, int]] = {}
        with connected(dsn) as cursor:
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
    assert shown(dsn) == applied(epochs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_deleted_key_stays_deleted_until_something_newer_brings_it_back(dsn: str, protocol: ProtocolName) -> None:
    send(dsn, sink(protocol), sealed(1, row(1), row(2), day=1))
    send(dsn, sink(protocol), sealed(2, row(1, "bye", gone=True), row(3, "never seen", gone=True), day=3))
    send(dsn, sink(protocol), sealed(3, row(1, "old news"), row(3, "old news"), day=2))
    living = "SELECT id FROM target WHERE NOT lockstep_deleted ORDER BY id"
    assert execute(dsn, living) == [(2,)]
    send(dsn, sink(protocol), sealed(4, row(1, "back"), day=4))
    assert execute(dsn, living) == [(1,), (2,)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_by_a_column_the_greatest_wins_within_an_epoch_and_among_them(dsn: str, protocol: ProtocolName) -> None:
    given = sink(protocol, order="column:version")
    send(dsn, given, sealed(1, row(1, "b", 5), row(1, "a", 3), row(1, "c", 9), row(2, "x", 4)))
    assert shown(dsn) == {1: ("c", 9, False), 2: ("x", 4, False)}
    send(dsn, given, sealed(2, row(1, "late", 8), row(2, "y", 4)))  # equal order: the later epoch's
    assert shown(dsn) == {1: ("c", 9, False), 2: ("y", 4, False)}


def test_keys_of_several_columns_and_tables(dsn: str) -> None:
    given = MariaDbSink(
        "warehouse",
        tables={"days": "days", "names": "names"},
        connection="w",
        create=True,
        mode="upsert",
        key={"days": ["day", "name"], "names": ["name"]},
    )
    table = pa.table({"day": [1, 1, 2], "name": ["a", "b", "a"], "n": [1, 2, 3]})
    names = pa.table({"name": ["a", "b"], "n": [3, 2]})
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        for id in (1, 2):
            wal = [SealedRows(table, output="days"), SealedRows(names, output="names")]
            live.preflight({"days": table.schema, "names": names.schema})
            live.publish(epoch(id, token=20), live.prepare(epoch(id), wal), wal)
            [found] = live.read(id, "days", table.schema)
            assert sorted(found.to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    assert execute(dsn, "SELECT count(*), min(lockstep_epoch) FROM days") == [(3, 2)]


# --- refused before the decision -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"protocol": "two_phase"}, {}, {"validate": "schema"}])
def test_a_key_that_stands_twice_is_refused_by_name(
    dsn: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHOW_ROWS, "1")
    twice = sealed(1, row(1), row(77), row(77, "b"))
    expect_refusal(SinkRejected, r"77 \(key id\) stands more than once.*order=column", dsn, sink(**arguments), twice)
    equal = sink(order="column:version", **arguments)
    expect_refusal(SinkRejected, r"\(77, 1\).*with the same order", dsn, equal, twice)
    assert shown(dsn) == {}
    assert left_over(dsn) == []


@pytest.mark.parametrize("arguments", [{"protocol": "two_phase"}, {}, {"validate": "schema"}])
def test_a_row_without_a_key_is_refused(dsn: str, arguments: dict[str, Any]) -> None:
    nobody: Any = (None, "x", 1, False)
    expect_refusal(SinkRejected, "column id has 1 nulls", dsn, sink(**arguments), sealed(1, row(1), nobody))
    assert left_over(dsn) == []


OURS = "lockstep_epoch bigint NOT NULL, lockstep_deleted boolean NOT NULL"


@pytest.mark.parametrize(
    ("ddl", "told"),
    [
        ("id bigint, lockstep_order bigint NOT NULL", "unique index on just"),
        ("id bigint, UNIQUE (id, name), lockstep_order bigint NOT NULL", "unique index on just"),
        ("id bigint PRIMARY KEY, other bigint UNIQUE, lockstep_order bigint NOT NULL", "other is unique too"),
        ("id bigint PRIMARY KEY, lockstep_order bigint", "lockstep_order, NOT NULL"),
        ("id bigint PRIMARY KEY", "lockstep_order: the table lacks it"),
    ],
)
def test_a_table_that_cant_tell_which_row_is_newer_is_refused(dsn: str, ddl: str, told: str) -> None:
    execute(dsn, f"CREATE TABLE target (name varchar(99) CHARACTER SET utf8mb4, version bigint, {OURS}, {ddl})")
    expect_refusal(PreflightRefused, told, dsn, sink(create=False), sealed(1, row(1)))


def test_a_unique_index_on_the_start_of_the_key_is_refused(dsn: str) -> None:
    execute(
        dsn,
        "CREATE TABLE target (id varchar(99) COLLATE utf8mb4_nopad_bin PRIMARY KEY, UNIQUE start (id(3)), "
        f"lockstep_order bigint NOT NULL, {OURS})",
    )
    with (
        sink(create=False).opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as given,
        pytest.raises(PreflightRefused, match="start is unique too"),
    ):
        given.preflight({"rows": pa.schema({"id": pa.string(), "gone": pa.bool_()})})


def test_a_text_that_is_a_key_is_told_apart_byte_by_byte(dsn: str) -> None:
    given = sink(key=["name"])
    send(dsn, given, sealed(1, row(1, "a"), row(2, "A"), row(3, "a "), row(4, "á"), row(5, "")))
    assert execute(dsn, "SELECT count(*) FROM target") == [(5,)]
    expect_refusal(SinkRejected, "with 1 warnings: Data truncated", dsn, given, sealed(2, row(6, "x" * 256)))
    execute(dsn, "DELETE FROM target")
    execute(dsn, "ALTER TABLE target MODIFY name varchar(99) COLLATE utf8mb4_bin NOT NULL")
    expect_refusal(PreflightRefused, "use utf8mb4_nopad_bin", dsn, given, sealed(2, row(6, "b")))


def test_a_user_needs_what_an_upsert_does(dsn: str, mariadb_server: MariaDbServer) -> None:
    send(dsn, sink(), sealed(1, row(1)))
    database, user = dsn.rsplit("/", 1)[1], "'loader'@'127.0.0.1'"
    login = f"mysql://loader:x@127.0.0.1:{mariadb_server.port}/{database}"
    execute(dsn, f"CREATE OR REPLACE USER {user} IDENTIFIED BY 'x'")
    try:
        for table in ("lockstep_marker", "lockstep_range", "lockstep_target", "lockstep_target_id", "lockstep_keys"):
            execute(dsn, f"GRANT SELECT, INSERT, UPDATE ON {table} TO {user}")
        for grant, told in (
            ("INSERT, SELECT ON target", "UPDATE command denied"),
            ("UPDATE ON target", "Access denied"),
        ):
            execute(dsn, f"GRANT {grant} TO {user}")
            expect_refusal(PreflightRefused, told, login, sink(create=False), sealed(2, row(1)))
        execute(dsn, f"GRANT CREATE TEMPORARY TABLES ON {database}.* TO {user}")
        send(login, sink(create=False), sealed(2, row(1, "b")))
        assert shown(dsn)[1][0] == "b"
    finally:
        execute(dsn, f"DROP USER {user}")


def test_whoever_verifies_sees_what_became_of_each_key(dsn: str) -> None:
    given, first = sink(), sealed(1, row(1, "a"), row(2, "b"), row(3, "c"), row(4, "d"))
    send(dsn, given, first)
    send(dsn, given, sealed(2, row(2, "newer")))
    execute(dsn, "UPDATE target SET name = 'C' WHERE id = 3")
    execute(dsn, "DELETE FROM target WHERE id = 4")
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        found = live.standing(first.at, first.wal[0])
        assert live.missing_keys("rows") == 1
    assert (found.own, found.overwritten, found.missing, found.changed) == (1, 1, 1, 1)


def test_tombstones_go_as_the_page_says_and_no_key_counts_as_missing(dsn: str) -> None:
    given = sink(tables={"rows": "customers"})
    first, second = sealed(1, row(1), row(2, gone=True), row(3, gone=True), day=0), sealed(2, row(4), day=1)
    send(dsn, given, first)
    send(dsn, given, second)
    page = (Path(__file__).parents[2] / "docs/sinks/mariadb.md").read_text()
    with connected(dsn) as cursor:
        for statement in page.partition("```sql")[2].partition("```")[0].strip().rstrip(";").split(";"):
            cursor.execute(statement)
    assert execute(dsn, "SELECT id FROM customers ORDER BY id") == [(1,), (4,)]
    assert execute(dsn, "SELECT sum(new) FROM lockstep_keys") == [(2,)]
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        assert live.missing_keys("rows") == 0


# --- whose the table is ----------------------------------------------------------------------------------------------


def test_nobody_else_may_write_to_a_table_that_is_upserted(dsn: str) -> None:
    with pytest.raises(InvalidPipeline, match="can't share"):
        sink(shared=True)
    send(dsn, sink(), sealed(1, row(1)))
    expect_refusal(TargetOwned, "belongs to sink warehouse", dsn, sink(name="second"), sealed(1, row(2)))
    another = SinkContext(DEPLOYMENT, "another", {"w": dsn})
    with sink(name="third").opened(another) as third, pytest.raises(TargetOwned, match="pipeline pipe"):
        third.preflight(None)
    appending = sink(name="fourth", mode="append", key=None, deleted=None)
    expect_refusal(PreflightRefused, "lockstep_order", dsn, appending, sealed(1, row(2)))


def test_a_new_owner_who_does_as_told_replaces_rows_of_larger_epochs(dsn: str) -> None:
    by_epoch, one = sink(order="epoch"), sealed(1, row(1, "of the new ledger"))
    send(dsn, by_epoch, sealed(400, row(1, "of the old ledger")))
    with by_epoch.opened(SinkContext(DEPLOYMENT, "another", {"w": dsn})) as given:
        with pytest.raises(TargetOwned, match=r"set the table's epoch column to 0 .*lockstep_order too"):
            given.preflight({"rows": SCHEMA})
        execute(dsn, "DELETE FROM lockstep_target")
        execute(dsn, "UPDATE target SET lockstep_epoch = 0, lockstep_order = 0")
        given.preflight({"rows": SCHEMA})
        given.publish(one.told(11), given.prepare(one.at, one.wal), one.wal)
    assert execute(dsn, "SELECT name FROM target") == [("of the new ledger",)]


def test_upserts_need_the_epoch_column() -> None:
    with pytest.raises(InvalidPipeline, match="epoch_column"):
        sink(epoch_column=None)


# --- two phases ------------------------------------------------------------------------------------------------------


def test_upserts_are_sent_after_the_decision_unless_told_otherwise() -> None:
    assert sink(None).protocol == "write_ahead"
    assert sink("two_phase").protocol == "two_phase"
    assert MariaDbSink.from_spec(sink(None).spec()).spec() == sink(None).spec()
    assert "mode" not in MariaDbSink("plain", tables={"rows": "t"}, connection="w").arguments()


def test_a_prepared_epoch_makes_the_next_one_with_its_keys_wait_and_says_so(dsn: str) -> None:
    first, second, third = (sealed(id, row(id), row(7, f"epoch {id}")) for id in (1, 2, 3))
    vote = prepare(dsn, sink("two_phase"), first)
    expect_refusal(KeysHeld, r"held by .*epoch 1 \(lockstep:.*published or aborted", dsn, sink("two_phase"), second)
    assert left_over(dsn) == [vote.handle], "the epoch that waits holds something itself"
    apart = sealed(4, row(100))
    send(dsn, sink("two_phase"), apart)
    publish(dsn, sink("two_phase"), first, vote)
    send(dsn, sink("two_phase"), second)
    send(dsn, sink("two_phase"), third)
    assert shown(dsn)[7][0] == "epoch 3"


def test_a_cursors_epoch_is_written_again_past_later_ones_that_hold_its_keys(dsn: str) -> None:
    first, second = sealed(1, row(7, "first")), sealed(2, row(7, "second"))
    given = sink("two_phase")
    lost = prepare(dsn, given, first)
    execute(dsn, "XA ROLLBACK %s, %s", *xid(str(lost.handle)))
    later = prepare(dsn, given, second)
    with pytest.raises(KeysHeld, match="epoch 2"):  # it waits for the first one's publication
        publish(dsn, given, first, lost)
    assert publish(dsn, given, first, lost) is Publication.REPAIRED
    assert publish(dsn, given, second, later) is Publication.REPAIRED
    assert shown(dsn) == {7: ("second", 1, False)}


def test_an_epoch_of_a_day_takes_nothing_from_another_day_that_holds_its_keys(dsn: str) -> None:
    first, second = sealed(1, row(7, "first"), day=1), sealed(2, row(7, "second"), day=2)
    given = sink("two_phase")
    lost = prepare(dsn, given, first)
    execute(dsn, "XA ROLLBACK %s, %s", *xid(str(lost.handle)))
    later = prepare(dsn, given, second)
    with pytest.raises(KeysHeld):
        publish(dsn, given, first, lost)
    assert publish(dsn, given, second, later) is Publication.COMMITTED
    assert publish(dsn, given, first, lost) is Publication.REPAIRED
    assert shown(dsn) == {7: ("second", 1, False)}


def test_a_prepared_upsert_survives_a_killed_server(dsn: str, mariadb_server: MariaDbServer) -> None:
    one = sealed(1, row(1), row(2))
    send(dsn, sink("two_phase"), sealed(2, row(2, "newer")))
    vote = prepare(dsn, sink("two_phase"), one)
    mariadb_server.kill()
    mariadb_server.start()
    assert publish(dsn, sink("two_phase"), one, vote) is Publication.COMMITTED
    assert shown(dsn) == {1: ("a", 1, False), 2: ("newer", 1, False)}
    assert left_over(dsn) == []


def test_a_stranger_who_holds_a_key_makes_an_upsert_wait(dsn: str) -> None:
    send(dsn, sink(), sealed(1, row(1)))
    with connected(dsn) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE target SET name = 'mine' WHERE id = 1")
        expect_refusal(SinkUnavailable, "Lock wait timeout", dsn, sink(), sealed(2, row(1, "b")))
        cursor.execute("ROLLBACK")
    send(dsn, sink(), sealed(2, row(1, "b")))
    assert shown(dsn)[1][0] == "b"


# --- the page --------------------------------------------------------------------------------------------------------

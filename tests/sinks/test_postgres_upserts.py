"""Upserts into Postgres: whatever order epochs are published in, the newest row of a key stays."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.disclosure import SHOW_ROWS
from lockstep.epoch import Identity, Interval, Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LockstepError,
    PreflightRefused,
    SinkRejected,
    SinkUnavailable,
    TargetOwned,
)
from lockstep.pipeline import Pipeline
from lockstep.sinks.base import Publication, SinkContext, SinkEpoch
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.testing.sealed_rows import SealedRows
from lockstep.testing.under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sinks.postgres_target import LOCK_TIMEOUT, connected, execute

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "version": pa.int64(), "gone": pa.bool_()})
PROTOCOLS: tuple[ProtocolName, ...] = ("two_phase", "write_ahead")
KEYS = 40
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)

Row = tuple[int, str | None, int, bool]

_numbers = count(1)


@pytest.fixture
def dsn(memory_server: PostgresServer) -> Iterator[str]:
    """DSN of a fresh database on a server in memory."""
    memory_server.start()
    name = f"upserts_{next(_numbers)}"
    yield memory_server.create_database(name)
    memory_server.start()
    memory_server.drop_database(name)


def sink(protocol: ProtocolName | None = "write_ahead", name: str = "warehouse", **arguments: Any) -> PostgresSink:
    given: dict[str, Any] = {
        "tables": {"rows": "public.target"},
        "connection": "w",
        "create": True,
        "mode": "upsert",
        "key": ["id"],
        "deleted": "gone",
        "lock_timeout": LOCK_TIMEOUT,
        **arguments,
    }
    return PostgresSink(name, protocol=protocol, **given)


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


def prepare(dsn: str, given: PostgresSink, one: Sealed) -> Vote:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        live.preflight({"rows": SCHEMA})
        return live.prepare(one.at, one.wal)


def publish(dsn: str, given: PostgresSink, one: Sealed, vote: Vote) -> Publication:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        return live.publish(one.told(one.at.token + 1), vote, one.wal)


def send(dsn: str, given: PostgresSink, one: Sealed) -> None:
    publish(dsn, given, one, prepare(dsn, given, one))


def shown(dsn: str) -> dict[int, tuple[Any, ...]]:
    """By key: name, version, whether it is a tombstone."""
    rows = execute(dsn, "SELECT id, name, version, lockstep_deleted FROM target")
    found = {key: tuple(rest) for key, *rest in rows}
    assert len(found) == len(rows), "a key stands twice"
    assert execute(dsn, "SELECT coalesce(sum(new), 0) FROM lockstep_keys") == [(len(found),)], "keys are miscounted"
    return found


def left_over(dsn: str) -> list[str]:
    tables = execute(dsn, "SELECT relname FROM pg_class WHERE relname LIKE 'lockstep_upsert%'")
    prepared = execute(dsn, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
    return [name for (name,) in [*tables, *prepared]]


def expect_refusal(error: type[LockstepError], told: str, dsn: str, given: PostgresSink, one: Sealed) -> None:
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
@pytest.mark.parametrize("seed", range(3))
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


def test_publishers_at_once_never_show_a_row_older_than_one_that_was_seen(dsn: str) -> None:
    epochs = random_epochs(7, days=6)
    votes = [prepare(dsn, sink(lock_timeout=10), one) for one in epochs]
    failures: list[BaseException] = []
    done = threading.Event()

    def run(number: int) -> None:
        try:
            publish(dsn, sink(lock_timeout=10), epochs[number], votes[number])
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


OTHERS = [
    "CREATE UNIQUE INDEX other ON target (name)",
    "CREATE UNIQUE INDEX other ON target (id, name)",
    "CREATE UNIQUE INDEX other ON target (name) INCLUDE (id, version)",
    "CREATE UNIQUE INDEX other ON target (name) WHERE id > 9",
    "CREATE UNIQUE INDEX other ON target (lower(name || id || version))",
    "ALTER TABLE target ADD CONSTRAINT other EXCLUDE USING btree (name WITH =) WHERE (id > 9)",
    "ALTER TABLE target ADD CONSTRAINT other EXCLUDE USING btree (id WITH =, version WITH =)",
]


@pytest.mark.parametrize("other", OTHERS)
def test_only_a_unique_index_that_holds_the_key_may_stand_beside_its_own(dsn: str, other: str) -> None:
    given = sink(key=["id", "version"])
    send(dsn, given, sealed(1, row(1)))
    execute(dsn, "CREATE UNIQUE INDEX ON target (name, version, id) WHERE version > 0")
    send(dsn, given, sealed(2, row(2, "b")))
    execute(dsn, other)
    expect_refusal(PreflightRefused, "other is unique too", dsn, given, sealed(3, row(3)))


def test_keys_are_counted_through_the_partitions_of_a_table(dsn: str) -> None:
    execute(
        dsn,
        "CREATE TABLE target (id bigint PRIMARY KEY, name text, version bigint, lockstep_epoch bigint NOT NULL, "
        "lockstep_order bigint NOT NULL, lockstep_deleted boolean NOT NULL) PARTITION BY RANGE (id)",
    )
    execute(dsn, "CREATE TABLE low PARTITION OF target FOR VALUES FROM (0) TO (10)")
    execute(dsn, "CREATE TABLE high PARTITION OF target DEFAULT")
    for protocol, id in zip(PROTOCOLS * 2, range(1, 5), strict=True):
        send(dsn, sink(protocol), sealed(id, row(id), row(7), row(100 + id), row(200)))
    assert len(shown(dsn)) == 10


def test_keys_of_several_columns_and_tables(dsn: str) -> None:
    given = PostgresSink(
        "warehouse",
        tables={"days": "public.days", "names": "public.names"},
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
    expect_refusal(SinkRejected, r"\(id\)=\(77\) .*more than once.*order=column", dsn, sink(**arguments), twice)
    equal = sink(order="column:version", **arguments)
    expect_refusal(SinkRejected, r"\(77, 1\).*with the same order", dsn, equal, twice)
    assert shown(dsn) == {}
    assert left_over(dsn) == []


@pytest.mark.parametrize("arguments", [{"protocol": "two_phase"}, {}, {"validate": "schema"}])
def test_a_row_without_a_key_is_refused(dsn: str, arguments: dict[str, Any]) -> None:
    nobody: Any = (None, "x", 1, False)
    expect_refusal(SinkRejected, "column id has 1 nulls", dsn, sink(**arguments), sealed(1, row(1), nobody))
    assert left_over(dsn) == []


def test_a_trigger_that_drops_rows_is_found(dsn: str) -> None:
    send(dsn, sink(), sealed(1, row(1)))
    execute(dsn, "CREATE FUNCTION dropped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    execute(dsn, "CREATE TRIGGER t BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION dropped()")
    expect_refusal(SinkRejected, "a trigger may drop them", dsn, sink(), sealed(2, row(1), row(2)))


@pytest.mark.parametrize(
    ("ddl", "told"),
    [
        ("id bigint, lockstep_order bigint NOT NULL", "unique index on just"),
        ("id bigint UNIQUE DEFERRABLE, lockstep_order bigint NOT NULL", "unique index on just"),
        ("id bigint, UNIQUE (id, name), lockstep_order bigint NOT NULL", "unique index on just"),
        (
            "id bigint PRIMARY KEY, other bigint UNIQUE, lockstep_order bigint NOT NULL",
            "target_other_key is unique too",
        ),
        ("id bigint PRIMARY KEY, lockstep_order bigint", "lockstep_order, NOT NULL"),
        ("id bigint PRIMARY KEY", "lockstep_order: the table lacks it"),
    ],
)
def test_a_table_that_cant_tell_which_row_is_newer_is_refused(dsn: str, ddl: str, told: str) -> None:
    ours = "lockstep_epoch bigint NOT NULL, lockstep_deleted boolean NOT NULL"
    execute(dsn, f"CREATE TABLE target (name text, version bigint, {ours}, {ddl})")
    expect_refusal(PreflightRefused, told, dsn, sink(create=False), sealed(1, row(1)))


def test_a_role_needs_what_an_upsert_does(dsn: str) -> None:
    send(dsn, sink(), sealed(1, row(1)))
    execute(dsn, "DROP ROLE IF EXISTS loader")
    execute(dsn, "CREATE ROLE loader LOGIN PASSWORD 'x'")
    login = dsn.replace("postgres@", "loader:x@", 1)
    try:
        ours = "lockstep_marker, lockstep_range, lockstep_target, lockstep_target_id, lockstep_keys"
        execute(dsn, f"GRANT SELECT, INSERT, UPDATE ON {ours} TO loader")
        execute(dsn, "GRANT INSERT ON target TO loader")
        as_loader = sink(create=False)
        expect_refusal(PreflightRefused, "GRANT SELECT, UPDATE", login, as_loader, sealed(2, row(1)))
        execute(dsn, "GRANT SELECT, UPDATE ON target TO loader")
        expect_refusal(PreflightRefused, "GRANT CREATE", login, as_loader, sealed(2, row(1)))
        execute(dsn, "GRANT CREATE ON SCHEMA public TO loader")
        send(login, as_loader, sealed(2, row(1, "b")))
        assert shown(dsn)[1][0] == "b"
    finally:
        execute(dsn, "DROP OWNED BY loader")
        execute(dsn, "DROP ROLE loader")


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
    assert PostgresSink.from_spec(sink(None).spec()).spec() == sink(None).spec()
    assert "mode" not in PostgresSink("plain", tables={"rows": "t"}, connection="w").arguments()


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
    execute(dsn, f"ROLLBACK PREPARED '{lost.handle}'")
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
    execute(dsn, f"ROLLBACK PREPARED '{lost.handle}'")
    later = prepare(dsn, given, second)
    with pytest.raises(KeysHeld):
        publish(dsn, given, first, lost)
    assert publish(dsn, given, second, later) is Publication.COMMITTED
    assert publish(dsn, given, first, lost) is Publication.REPAIRED
    assert shown(dsn) == {7: ("second", 1, False)}


class Days(Source):
    identity = Identity.INTERVAL

    def open(self, context: SourceContext) -> OpenSource:
        raise NotImplementedError


class Steps(Days):
    identity = Identity.CURSOR


def untouched(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return inputs


def test_two_sinks_of_an_interval_pipeline_cant_both_hold_keys() -> None:
    def pipeline(source: Source, *protocols: ProtocolName) -> Pipeline:
        sinks = [sink(protocol, name=f"s{n}") for n, protocol in enumerate(protocols)]
        return Pipeline("pipe", {"rows": source}, untouched, sinks)

    with pytest.raises(InvalidPipeline, match="write_ahead"):
        pipeline(Days(), "two_phase", "two_phase")
    assert pipeline(Days(), "two_phase", "write_ahead", "write_ahead")
    assert pipeline(Steps(), "two_phase", "two_phase")  # an epoch is decided before the next one prepares


def test_a_prepared_upsert_survives_a_killed_server(dsn: str, memory_server: PostgresServer) -> None:
    one = sealed(1, row(1), row(2))
    send(dsn, sink("two_phase"), sealed(2, row(2, "newer")))
    vote = prepare(dsn, sink("two_phase"), one)
    memory_server.kill()
    memory_server.start()
    assert publish(dsn, sink("two_phase"), one, vote) is Publication.COMMITTED
    assert shown(dsn) == {1: ("a", 1, False), 2: ("newer", 1, False)}
    assert left_over(dsn) == []


def test_a_stranger_who_holds_a_key_makes_an_upsert_wait(dsn: str) -> None:
    send(dsn, sink(), sealed(1, row(1)))
    with connected(dsn) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE target SET name = 'mine' WHERE id = 1")
        expect_refusal(SinkUnavailable, "lock timeout", dsn, sink(), sealed(2, row(1, "b")))
        cursor.execute("ROLLBACK")
    send(dsn, sink(), sealed(2, row(1, "b")))
    assert shown(dsn)[1][0] == "b"


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_example_of_the_page_keeps_the_newest_row_of_each_customer(dsn: str) -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "sinks" / "postgres.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.S)
    [query, _] = re.findall(r"```sql\n(.*?)```", page, re.S)
    module: dict[str, Any] = {"__name__": "customers"}
    exec(compile(example, "postgres.md", "exec"), module)
    [given] = module["pipeline"].sinks
    days = {
        2: {"id": [1, 2], "name": ["Ann", "Bob"], "closed": [False, True]},
        1: {"id": [1, 2, 3], "name": ["Anne", "Robert", "Cleo"], "closed": [False] * 3},
    }
    with given.opened(SinkContext(DEPLOYMENT, "customers", {"warehouse": dsn})) as live:
        for id, (day, columns) in enumerate(days.items(), 1):
            at, wal = sealed(id, day=day).at, [SealedRows(pa.table(columns), output="customers")]
            live.preflight({"customers": wal[0].schema})
            live.publish(at, live.prepare(at, wal), wal)
    assert execute(dsn, query) == [(1, "Ann"), (3, "Cleo")]

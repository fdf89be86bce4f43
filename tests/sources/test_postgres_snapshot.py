"""A Postgres table that is read whole, while its rows change: the same rows again, or `SourceChanged`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lockstep.errors import SourceChanged, SourceRefused
from lockstep.sources import PostgresTableSource, Snapshot, SourceContext
from lockstep.sources.tables.source import OpenTableSource
from stack.postgres import PostgresServer
from tests.sources.reading import rows_of
from tests.sources.test_postgres_table import EVENTS, Writer, run

numbers = iter(range(1000))


@pytest.fixture
def shop(ledger_server: PostgresServer) -> Iterator[str]:
    """A database with a table `events` of three rows, of two transactions."""
    name = f"snapshot_shop_{next(numbers)}"
    dsn = ledger_server.create_database(name)
    run(dsn, EVENTS)
    fill(dsn)
    yield dsn
    ledger_server.drop_database(name)


def fill(dsn: str) -> None:
    run(dsn, "TRUNCATE events")
    run(dsn, "INSERT INTO events (name) VALUES ('a'), ('b')")
    run(dsn, "INSERT INTO events (name) VALUES ('c')")


@pytest.fixture
def both(shop: str) -> list[OpenTableSource]:
    """By either order."""
    return [open_snapshot(shop, order_by=order) for order in ("id", "xid")]


def open_snapshot(dsn: str, table: str = "public.events", **arguments: Any) -> OpenTableSource:
    source = Snapshot(PostgresTableSource(table, connection="shop", **{"order_by": "id", **arguments}))
    found = source.open(SourceContext("pipeline", "names", lambda paths: set(), {"shop": dsn}))
    assert isinstance(found, OpenTableSource)
    return found


def names(source: OpenTableSource, position: Any) -> list[str]:
    source.check(None, position)
    return sorted(row["name"] for row in rows_of(source, position))


def test_all_rows_are_in_each_epoch_s_snapshot(shop: str, both: list[OpenTableSource]) -> None:
    firsts = [opened.latest(None, None) for opened in both]
    run(shop, "UPDATE events SET name = 'A' WHERE name = 'a'")
    run(shop, "DELETE FROM events WHERE name = 'b'")
    run(shop, "INSERT INTO events (name) VALUES ('d')")
    for opened, first in zip(both, firsts, strict=True):
        assert names(opened, opened.latest(first, None)) == ["A", "c", "d"]


def test_rows_that_come_above_a_snapshot_do_not_change_it(shop: str, both: list[OpenTableSource]) -> None:
    firsts = [opened.latest(None, None) for opened in both]
    run(shop, "INSERT INTO events (name) VALUES ('d')")
    for opened, first in zip(both, firsts, strict=True):
        assert names(opened, first) == ["a", "b", "c"]
        assert first["rows"] == opened.rows_planned(None, first) == 3


CHANGES = (
    "UPDATE events SET name = 'B' WHERE name = 'b'",
    "UPDATE events SET name = name WHERE name = 'b'",
    "UPDATE events SET name = CASE name WHEN 'a' THEN 'b' ELSE 'a' END WHERE name <> 'c'",
    "DELETE FROM events WHERE name = 'b'",
    "WITH gone AS (DELETE FROM events WHERE name = 'b' RETURNING *) INSERT INTO events SELECT * FROM gone",
    "INSERT INTO events (id, name, xid) VALUES (0, 'late', '3')",
    "TRUNCATE events",
)


@pytest.mark.fault("A26")
def test_no_change_of_its_rows_goes_unnoticed(
    shop: str, both: list[OpenTableSource], subtests: pytest.Subtests
) -> None:
    for change in CHANGES:
        fill(shop)
        firsts = [opened.latest(None, None) for opened in both]
        run(shop, change)
        for opened, first in zip(both, firsts, strict=True):
            told = r"added, updated or deleted since its snapshot.*replan"
            with subtests.test(change=change, order=first["order_by"]), pytest.raises(SourceChanged, match=told):
                opened.check(None, first)


@pytest.fixture
def moods(shop: str) -> str:
    """A table `moods` whose rows hang on an enum, beside `events`."""
    run(shop, "CREATE TYPE mood AS ENUM ('glad', 'sad')")
    run(shop, "CREATE TABLE moods (id bigint NOT NULL, mood mood, first text, second text, other int)")
    run(shop, "INSERT INTO moods VALUES (1, 'glad', 'a', 'b', 1), (2, 'sad', 'c', 'd', 2)")
    return shop


COLUMN_CHANGES = {
    "a label": (["ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'"], "mood"),
    "a label and back": (
        ["ALTER TYPE mood RENAME VALUE 'sad' TO 'x'", "ALTER TYPE mood RENAME VALUE 'x' TO 'sad'"],
        "mood",
    ),
    "names exchanged": (
        [
            f"ALTER TABLE moods RENAME {old} TO {new}"
            for old, new in (("first", "x"), ("second", "first"), ("x", "second"))
        ],
        "first, second",
    ),
    "added": (["ALTER TABLE moods ADD COLUMN more int NOT NULL DEFAULT 7"], "more"),
    "dropped and added": (
        ["ALTER TABLE moods DROP COLUMN second", "ALTER TABLE moods ADD COLUMN second text DEFAULT 'b'"],
        "second",
    ),
    "dropped": (["ALTER TABLE moods DROP COLUMN second"], "second"),
}


@pytest.mark.fault("A26")
def test_no_change_of_its_columns_goes_unnoticed_though_no_row_has_another_version(
    moods: str, subtests: pytest.Subtests
) -> None:
    opened = open_snapshot(moods, "public.moods")
    for about, (changes, named) in COLUMN_CHANGES.items():
        with subtests.test(about):
            first = opened.latest(None, None)
            opened.check(None, first)
            for change in changes:
                run(moods, change)
            with pytest.raises(
                SourceChanged, match=f"columns {named} of table public.moods were renamed.*lockstep replan"
            ):
                opened.check(None, first)
            opened.check(None, opened.latest(None, None))


def test_what_leaves_rows_as_they_are_is_no_change(shop: str, both: list[OpenTableSource]) -> None:
    firsts = [opened.latest(None, None) for opened in both]
    writer = Writer(shop)
    with writer.connection.cursor() as cursor:
        cursor.execute("UPDATE events SET name = 'never'")
        writer.connection.rollback()
        cursor.execute("SELECT * FROM events FOR UPDATE")
    run(shop, "ANALYZE events")
    run(shop, "CREATE INDEX ON events (name)")
    for opened, first in zip(both, firsts, strict=True):
        assert names(opened, first) == ["a", "b", "c"]
    writer.commit()


def test_a_view_is_refused(shop: str) -> None:
    run(shop, "CREATE VIEW seen AS SELECT * FROM events")
    with pytest.raises(SourceRefused, match=r"it is a view.*materialized"):
        open_snapshot(shop, "public.seen").latest(None, None)

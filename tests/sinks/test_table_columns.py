"""A table's names and columns: two spellings have one owner and one output, a new column comes with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from lockstep.epoch import Interval
from lockstep.errors import LedgerConflict, PreflightRefused, SinkRejected, SinkUnavailable, TargetOwned
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.postgres import PostgresSink, dialect
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from stack.mariadb import MISSING, MariaDbServer, mariadbd
from tests.sinks import mariadb_target, postgres_target
from tests.sinks.one_sink import context, published

SCHEMA = pa.schema({"id": pa.int64()})
ROWS = pa.table({"id": [1, 2, 3]}, SCHEMA)
LONG = "t" * 63  #: as much as Postgres keeps of a name
WIDE = "ü" * 31  #: 62 bytes, and no room for half a letter


def preflight(dsn: str, given: TableSink, pipeline: str = "pipe") -> None:
    with given.opened(context(dsn, pipeline)) as live:
        live.preflight(dict.fromkeys(live.outputs, SCHEMA))


# --- Postgres --------------------------------------------------------------------------------------------------------


def on_postgres(*tables: str, **arguments: Any) -> PostgresSink:
    outputs = dict(zip(("rows", "more"), tables, strict=False))
    return PostgresSink("warehouse", tables=outputs, connection="w", **{"create": True, **arguments})


@pytest.mark.fault("L7")
@pytest.mark.parametrize(("name", "cut"), [(LONG, f"{LONG}_and_more"), (WIDE, f"{WIDE}ü"), ("S" * 70, "S" * 80)])
def test_names_that_postgres_cuts_to_the_same_are_one_table(warehouse_dsn: str, name: str, cut: str) -> None:
    preflight(warehouse_dsn, on_postgres(name), "first")
    with pytest.raises(TargetOwned, match="of pipeline first"):
        preflight(warehouse_dsn, on_postgres(cut), "second")
    preflight(warehouse_dsn, on_postgres(cut), "first")
    with pytest.raises(PreflightRefused, match="rows and more go into one table"):
        preflight(warehouse_dsn, on_postgres(name, cut), "first")


@pytest.mark.fault("L7")
def test_an_owner_who_was_written_down_in_another_spelling_is_one_still(warehouse_dsn: str) -> None:
    preflight(warehouse_dsn, on_postgres(LONG), "first")
    long = f"public.{LONG}_as_it_was_given"
    postgres_target.execute(warehouse_dsn, "UPDATE lockstep_target SET relation = %s", long)
    with pytest.raises(TargetOwned):
        preflight(warehouse_dsn, on_postgres(LONG), "second")
    preflight(warehouse_dsn, on_postgres(f"{LONG}_as_it_was_given"), "first")


@pytest.mark.fault("L7", "J11")
def test_a_part_of_a_table_belongs_to_the_owner_of_the_whole(warehouse_dsn: str) -> None:
    """Whoever reads a parent reads what inherits from it, and its partitions, too."""
    preflight(warehouse_dsn, on_postgres("parent"), "first")
    postgres_target.execute(warehouse_dsn, "CREATE TABLE child () INHERITS (parent)")
    columns = "id bigint, lockstep_epoch bigint"
    postgres_target.execute(warehouse_dsn, f"CREATE TABLE target ({columns}) PARTITION BY RANGE (id)")
    for name, start in (("low", 0), ("high", 5)):
        part = f"CREATE TABLE {name} PARTITION OF target FOR VALUES FROM ({start}) TO ({start + 5})"
        postgres_target.execute(warehouse_dsn, part)
    preflight(warehouse_dsn, on_postgres("target"), "first")
    for whole, part in (("parent", "child"), ("target", "low")):
        with pytest.raises(TargetOwned):
            preflight(warehouse_dsn, on_postgres(part), "second")
        with pytest.raises(PreflightRefused, match="rows and more go into one table"):
            preflight(warehouse_dsn, on_postgres(whole, part), "first")
    postgres_target.execute(warehouse_dsn, "DELETE FROM lockstep_target")
    preflight(warehouse_dsn, on_postgres("low", "high"))


def test_an_epoch_column_whose_name_postgres_cuts_is_filled(warehouse_dsn: str) -> None:
    postgres_target.execute(warehouse_dsn, f"CREATE TABLE target (id bigint, {LONG} bigint)")
    assert published(warehouse_dsn, on_postgres("target", epoch_column=f"{LONG}_of_the_epoch"), ROWS) == ROWS


# --- MariaDB ---------------------------------------------------------------------------------------------------------


def on_mariadb(*tables: str, **arguments: Any) -> MariaDbSink:
    outputs = dict(zip(("rows", "more"), tables, strict=False))
    return MariaDbSink("warehouse", tables=outputs, connection="w", **{"create": True, **arguments})


@pytest.fixture
def lowering_dsn(memory_folder: Path) -> Iterator[str]:
    """A database on a server that takes table names in any case for the same."""
    if mariadbd() is None:
        pytest.skip(MISSING)
    with MariaDbServer(memory_folder / "lowering", settings={"lower_case_table_names": 1}).for_a_while() as server:
        yield server.create_database("shop")


@pytest.mark.fault("L7")
def test_names_that_mariadb_takes_for_the_same_are_one_table(lowering_dsn: str) -> None:
    preflight(lowering_dsn, on_mariadb("Target"), "first")
    for spelling in ("target", "TARGET", "Shop.Target"):
        with pytest.raises(TargetOwned, match="of pipeline first"):
            preflight(lowering_dsn, on_mariadb(spelling), "second")
        preflight(lowering_dsn, on_mariadb(spelling), "first")
        with pytest.raises(PreflightRefused, match="rows and more go into one table"):
            preflight(lowering_dsn, on_mariadb("Target", f"SHOP.{spelling.rpartition('.')[2]}"), "first")
    mariadb_target.execute(lowering_dsn, "UPDATE lockstep_target SET relation = 'shop.TaRgEt'")  # as it was given once
    with pytest.raises(TargetOwned):
        preflight(lowering_dsn, on_mariadb("target"), "second")
    assert published(lowering_dsn, on_mariadb("Mine"), ROWS) == ROWS


@pytest.mark.fault("L7")
@pytest.mark.parametrize(
    ("columns", "arguments"),
    [
        ("id bigint, Lockstep_Epoch bigint NOT NULL", {}),
        ("id bigint, Lockstep_Epoch bigint NOT NULL", {"protocol": "write_ahead"}),
        (
            "id bigint PRIMARY KEY, LOCKSTEP_EPOCH bigint NOT NULL, lockstep_order bigint NOT NULL",
            {"mode": "upsert", "key": ["id"]},
        ),
    ],
)
def test_an_epoch_column_in_another_case_is_filled(mariadb_dsn: str, columns: str, arguments: dict[str, Any]) -> None:
    mariadb_target.execute(mariadb_dsn, f"CREATE TABLE target ({columns}) ENGINE = InnoDB")
    assert published(mariadb_dsn, on_mariadb("target", **arguments), ROWS) == ROWS
    assert mariadb_target.execute(mariadb_dsn, "SELECT DISTINCT lockstep_epoch FROM target") == [(1,)]


PLAIN = pa.table({"id": pa.array([1, 2], pa.int64())})
WIDER = pa.table({"id": pa.array([3, 4], pa.int64()), "label": ["three", None], "ok": [True, False]})


@dataclass(frozen=True)
class Database:
    """`early`: its table gets a column before the vote."""

    dsn: str
    execute: Callable[..., list[tuple[Any, ...]]]
    kind: type[TableSink]
    early: bool

    def sink(self, **arguments: Any) -> TableSink:
        given = {"create": True, "protocol": "write_ahead", "on_new_columns": "add", "lock_timeout": 0.3, **arguments}
        return self.kind("warehouse", tables={"rows": "target"}, connection="w", **given)

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[OpenSink]:
        """A sink that has shown the first epoch."""
        with self.sink(**arguments).opened(context(self.dsn)) as live:
            prepared(live, 1, PLAIN)()
            yield live

    def columns(self) -> list[str]:
        found = self.execute(
            self.dsn,
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'target' ORDER BY ordinal_position",
        )
        return [str(name) for (name,) in found]


@pytest.fixture(params=["PostgreSQL", "MariaDB"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "PostgreSQL":
        return Database(request.getfixturevalue("warehouse_dsn"), postgres_target.execute, PostgresSink, early=False)
    return Database(request.getfixturevalue("mariadb_dsn"), mariadb_target.execute, MariaDbSink, early=True)


@pytest.fixture
def postgres(warehouse_dsn: str) -> Database:
    return Database(warehouse_dsn, postgres_target.execute, PostgresSink, early=False)


def prepared(live: OpenSink, number: int, rows: pa.Table) -> Callable[[], object]:
    """Brings the epoch's vote; gives what shows it."""
    told: SinkEpoch = epoch(number)
    wal = [SealedRows(rows)]
    live.preflight({"rows": rows.schema})
    vote = live.prepare(told, wal)
    return lambda: live.publish(told, vote, wal)


def read(live: OpenSink, number: int, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(live.read(number, "rows", schema), schema).sort_by("id")


@pytest.mark.fault("J19")
def test_a_column_comes_with_the_rows_and_older_rows_have_none(database: Database) -> None:
    with database.opened() as live:
        assert database.columns() == ["id", "lockstep_epoch"]
        assert not live.needs_turn
        show = prepared(live, 2, WIDER)
        known = ["id", "lockstep_epoch", "label", "ok"]
        assert database.columns() == (known if database.early else known[:2]), "before the decision"
        assert live.needs_turn is not database.early
        show()
        assert database.columns() == known
        assert read(live, 2, WIDER.schema) == WIDER and read(live, 1, PLAIN.schema) == PLAIN
        shown = database.execute(database.dsn, "SELECT id, label FROM target ORDER BY id")
        assert shown == [(1, None), (2, None), (3, "three"), (4, None)]
        prepared(live, 3, PLAIN.set_column(0, "id", pa.array([5, 6], pa.int64())))()
        assert not live.needs_turn, "nothing is new any more, and what is left out is null"


@pytest.mark.fault("Q1")
def test_epochs_of_two_names_of_a_sink_are_told_apart_and_those_of_two_sinks_are_not(database: Database) -> None:
    other = database.kind("renamed", tables={"rows": "target"}, connection="w", protocol="write_ahead")
    with database.opened() as live, other.opened(context(database.dsn)) as renamed:
        prepared(renamed, 2, PLAIN)()
        assert read(live, 1, PLAIN.schema) == read(renamed, 2, PLAIN.schema) == PLAIN
        for sink in (live, renamed):
            prepared(sink, 3, PLAIN)()
        for sink in (live, renamed):
            with pytest.raises(PreflightRefused, match=r"is shared with .* delete its row of .*lockstep_target"):
                read(sink, 1, PLAIN.schema)


@pytest.mark.fault("Q9")
def test_a_range_is_found_under_a_sinks_former_name_and_no_other_pipelines_or_tables(database: Database) -> None:
    def show(sink: str, table: str, number: int, pipeline: str = "pipe") -> tuple[list[int], list[tuple[str, int]]]:
        """What is known of the ledger before."""
        day = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))
        told = replace(epoch(number, token=number), interval=day), [SealedRows(PLAIN)]
        described = database.kind(sink, tables={"rows": table}, connection="w", create=True, shared=True)
        with described.opened(context(database.dsn, pipeline)) as live:
            live.preflight({"rows": PLAIN.schema})
            known = (
                [one.epoch for one in live.newest_markers()],
                [(name, m.epoch) for name, m in live.markers_of_other_sinks()],
            )
            live.publish(told[0], live.prepare(*told), told[1])
        return known

    assert show("old", "target", 9, "pipe2") == show("aside", "apart", 4) == show("old", "target", 3) == ([], [])
    with pytest.raises(LedgerConflict, match=r"sink new: epoch 5 of .* the target shows epoch 3 of"):
        show("new", "target", 5)
    assert show("new", "target", 3) == ([3], [("old", 3)]), "as another sink of the same plan"


@pytest.mark.fault("J19")
def test_what_no_column_can_keep_is_refused_before_the_vote_by_name(database: Database) -> None:
    nested = PLAIN.append_column("tree", pa.array([{"a": {"b": 1}}, None]))
    with database.opened() as live:
        with pytest.raises(PreflightRefused, match=r"sink warehouse: .*column tree.*: Arrow type struct<.* has no"):
            prepared(live, 2, nested)
        if not database.early:  # rows are tried with their new columns
            with pytest.raises(SinkRejected, match="label"):
                prepared(live, 2, WIDER.set_column(1, "label", pa.array(["no\0text", "x"])))
        assert database.columns() == ["id", "lockstep_epoch"]


# --- upserts ---------------------------------------------------------------------------------------------------------

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"]}


@pytest.mark.fault("J19")
@pytest.mark.parametrize(
    ("database", "protocol", "order"),
    [
        ("PostgreSQL", "write_ahead", (3, 1, 2)),
        ("PostgreSQL", "two_phase", (2, 3, 1)),
        ("MariaDB", "write_ahead", (2, 3, 1)),
        ("MariaDB", "two_phase", (3, 1, 2)),
    ],
    indirect=["database"],
    ids=str,
)
def test_in_whatever_order_columns_come_a_row_has_those_of_its_epoch(
    database: Database, protocol: str, order: tuple[int, ...]
) -> None:
    epochs = {
        1: pa.table({"id": pa.array([1, 2, 3, 4], pa.int64())}),
        2: pa.table({"id": pa.array([2, 3], pa.int64()), "label": ["two", "two"]}),
        3: pa.table({"id": pa.array([3, 4], pa.int64()), "ok": [True, None]}),
    }
    with database.sink(protocol=protocol, **UPSERT).opened(context(database.dsn)) as live:
        for number in order:
            prepared(live, number, epochs[number])()
        shown = database.execute(database.dsn, "SELECT id, label, ok FROM target ORDER BY id")
        assert shown == [(1, None, None), (2, "two", None), (3, None, True), (4, None, None)]
        assert [live.standing(epoch(number), SealedRows(epochs[number])).own for number in (1, 2, 3)] == [1, 1, 2]


# --- Postgres: with the rows, in one transaction ---------------------------------------------------------------------


@pytest.mark.fault("J19")
@pytest.mark.parametrize("mode", [{}, UPSERT], ids=["append", "upsert"])
def test_of_two_phases_an_epoch_that_brings_columns_keeps_no_reader_out(
    postgres: Database, mode: dict[str, Any]
) -> None:
    """It is written after the decision; those before and after it are prepared."""
    with postgres.opened(protocol="two_phase", **mode) as live:
        known = postgres.columns()
        told, wal = epoch(2), [SealedRows(WIDER)]
        live.preflight({"rows": WIDER.schema})
        assert live.needs_turn
        vote = live.prepare(told, wal)
        assert (vote.handle, vote.rows, live.pending()) == (None, {"rows": 2}, [])
        assert postgres.execute(postgres.dsn, "SELECT count(*) FROM target") == [(2,)]
        assert postgres.columns() == known
        assert live.publish(told, vote, wal) is Publication.SENT
        assert live.publish(told, vote, wal) is Publication.FOUND
        assert read(live, 2, WIDER.schema) == WIDER
        later = WIDER.set_column(0, "id", pa.array([5, 6], pa.int64()))
        live.preflight({"rows": later.schema})
        held = live.prepare(epoch(3), [SealedRows(later)])
        assert held.handle is not None and not live.needs_turn
        assert live.publish(epoch(3), held, [SealedRows(later)]) is Publication.COMMITTED


def test_two_phases_add_no_column_where_only_prepared_rows_would_keep_their_keys(postgres: Database) -> None:
    with postgres.opened(protocol="two_phase") as live:
        postgres.execute(postgres.dsn, "ALTER TABLE target ADD CONSTRAINT once UNIQUE (id)")
        with pytest.raises(PreflightRefused, match=r"unique key once: .* say protocol='write_ahead'"):
            prepared(live, 2, WIDER)


def test_an_epoch_adds_its_column_past_others_that_are_prepared(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "_ADD_COLUMN_TRIES", 1)
    with postgres.opened(protocol="two_phase") as live:
        show = prepared(live, 2, WIDER)
        later = prepared(live, 3, PLAIN.set_column(0, "id", pa.array([5, 6], pa.int64())))
        with pytest.raises(SinkUnavailable):  # the other one has the table
            show()
        assert [show(), later()] == [Publication.SENT, Publication.REPAIRED]
        assert postgres.execute(postgres.dsn, "SELECT id FROM target ORDER BY id") == [(n,) for n in range(1, 7)]


@pytest.mark.fault("J19")
@pytest.mark.parametrize("arguments", [{}, {"protocol": "two_phase"}])
def test_nothing_is_left_of_a_column_whose_epoch_is_not_shown(postgres: Database, arguments: dict[str, Any]) -> None:
    with postgres.opened(**arguments) as live:
        show = prepared(live, 2, WIDER)
        postgres.execute(postgres.dsn, "ALTER TABLE target ADD CONSTRAINT odd CHECK (id % 2 = 1) NOT VALID")
        with pytest.raises(Exception, match="odd"):
            show()
        assert postgres.columns() == ["id", "lockstep_epoch"]
        postgres.execute(postgres.dsn, "ALTER TABLE target DROP CONSTRAINT odd")
        show()
        show()
        assert read(live, 2, WIDER.schema) == WIDER


def test_who_does_not_own_the_table_is_told_what_its_owner_has_to_run(postgres: Database) -> None:
    postgres.execute(postgres.dsn, "CREATE TABLE target (id bigint, lockstep_epoch bigint)")
    postgres.execute(
        postgres.dsn, "CREATE ROLE column_adder LOGIN PASSWORD 'adds'; GRANT ALL ON SCHEMA public TO column_adder"
    )
    postgres.execute(postgres.dsn, "GRANT ALL ON target TO column_adder")
    dsn = make_dsn(**{**parse_dsn(postgres.dsn), "user": "column_adder", "password": "adds"})
    try:
        with postgres.sink().opened(context(dsn)) as live:
            prepared(live, 1, PLAIN)()
            told = r'owner run: ALTER TABLE "public"."target" ADD COLUMN IF NOT EXISTS "label" text, .* "ok" boolean;'
            with pytest.raises(PreflightRefused, match=f"lacks the columns label, ok, and role column_adder .*{told}"):
                prepared(live, 2, WIDER)
    finally:
        postgres.execute(postgres.dsn, "DROP OWNED BY column_adder CASCADE; DROP ROLE column_adder")


def test_readers_at_work_are_waited_for_and_others_pass_meanwhile(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "_ADD_COLUMN_TRIES", 2)
    with postgres.opened() as live:
        with postgres_target.connected(postgres.dsn) as reader:
            reader.execute("BEGIN; SELECT * FROM target")
            with pytest.raises(SinkUnavailable):
                prepared(live, 2, WIDER)
            assert postgres.execute(postgres.dsn, "SELECT count(*) FROM target") == [(2,)]
            reader.execute("COMMIT")
        prepared(live, 2, WIDER)()
        assert read(live, 2, WIDER.schema) == WIDER

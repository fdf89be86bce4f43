"""A table is what the server takes a name for: two spellings of one table have one owner, and one output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import PreflightRefused, TargetOwned
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import TableSink
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

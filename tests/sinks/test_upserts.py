"""What upserts need of an output, and what those into PostgreSQL and into MariaDB have of their own.

What both databases have to do is in test_table_upserts.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline, PreflightRefused, SinkRejected
from lockstep.pipeline import Pipeline
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.tables.upserts import Upserts
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.sources import Source
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.crash.world import Numbers, untouched
from tests.sinks.append.feed import Days
from tests.sinks.upserting import PROTOCOLS, UpsertedDatabase, UpsertedMariaDb, UpsertedPostgres, fresh, row, sealed

DOCS = Path(__file__).resolve().parents[2] / "docs" / "sinks"
OUTPUT_SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "version": pa.int32(), "gone": pa.bool_()})
DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))


def upserts(**arguments: Any) -> Upserts:
    given = {"mode": "upsert", "key": ["id"], "order": None, "deleted": None, **arguments}
    found = Upserts.of("sink", ["rows"], **given)
    assert found is not None
    return found


def orders(given: Upserts, table: pa.Table, at: SinkEpoch) -> list[int]:
    stored = given.stored(SealedRows(table), at)
    return [order for batch in stored for order in batch.column("lockstep_order").to_pylist()]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"mode": "merge"}, "neither 'append' nor 'upsert'"),
    ({"mode": "append"}, "need mode='upsert'"),
    ({"key": None}, "needs key"),
    ({"key": "id"}, "needs key"),
    ({"key": []}, "needs key"),
    ({"key": ["id", "id"]}, "each column once"),
    ({"key": {"other": ["id"]}}, "the outputs are"),
    ({"order": "newest"}, "column:<name>"),
    ({"order": "column:"}, "column:<name>"),
    ({"order": "column:id"}, "part of the key"),
    ({"deleted": "id"}, "part of the key"),
    ({"key": ["lockstep_order"]}, "part of the key"),
    ({"order": "column:gone", "deleted": "gone"}, "at once"),
]


def test_a_wrong_definition_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for arguments, told in WRONG:
        with subtests.test(str(arguments)), pytest.raises(InvalidPipeline, match=told):
            upserts(**arguments)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"key": ["none"]}, "none: the output lacks it"),
    ({"order": "column:none"}, "none: the output lacks it"),
    ({"key": ["ratio"]}, "ratio: double can't be a key"),
    ({"order": "column:name"}, "name: string can't be the order"),
    ({"order": "column:big"}, "big: uint64 can't be the order"),
    ({"deleted": "version"}, "version: int32 can't say what is deleted"),
    ({"key": ["name"]}, "lockstep_order: the sink fills it"),
]


def test_an_output_that_cant_be_upserted_is_named_by_column(subtests: pytest.Subtests) -> None:
    odd = [("ratio", pa.float64()), ("big", pa.uint64()), ("lockstep_order", pa.int64())]
    schema = pa.schema([*OUTPUT_SCHEMA, *(pa.field(*field) for field in odd)])
    for arguments, fault in FAULTS:
        with subtests.test(str(arguments)):
            assert fault in "; ".join(upserts(**arguments).faults("rows", schema))


def test_the_order_is_the_intervals_end_else_the_epochs_number_or_what_the_user_names() -> None:
    table = pa.table({"id": [1, 2], "version": [7, 9], "day": [date(1970, 1, 3)] * 2, "at": [DAY.start] * 2})
    of_interval, of_cursor = replace(epoch(5), interval=DAY), epoch(6)
    end = int(DAY.end.timestamp()) * 1_000_000
    assert orders(upserts(), table, of_interval) == [end, end]
    assert orders(upserts(), table, of_cursor) == [6, 6]
    assert orders(upserts(order="epoch"), table, of_interval) == [5, 5]
    assert orders(upserts(order="column:version"), table, of_interval) == [7, 9]
    assert orders(upserts(order="column:day"), table, of_cursor) == [2, 2]
    assert orders(upserts(order="column:at"), table, of_cursor) == [int(DAY.start.timestamp()) * 1_000_000] * 2
    with pytest.raises(InvalidPipeline, match="has no interval"):
        upserts(order="interval_end").order_of(of_cursor)


def test_a_row_without_key_order_or_deleted_is_refused() -> None:
    row: dict[str, Any] = {"id": [1, 2], "name": [None, None], "version": [1, 2], "gone": [True, False]}
    given = upserts(order="column:version", deleted="gone")
    assert orders(given, pa.table(row, OUTPUT_SCHEMA), epoch()) == [1, 2]
    for column in ("id", "version", "gone"):
        with pytest.raises(SinkRejected, match=f"column {column} has 1 nulls"):
            orders(given, pa.table(row | {column: [row[column][0], None]}, OUTPUT_SCHEMA), epoch())


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.fixture
def postgres(ledger_server: PostgresServer) -> Iterator[UpsertedDatabase]:
    with fresh(UpsertedPostgres, ledger_server) as found:
        yield found


OTHERS = [
    "CREATE UNIQUE INDEX other ON target (name)",
    "CREATE UNIQUE INDEX other ON target (id, name)",
    "CREATE UNIQUE INDEX other ON target (name) INCLUDE (id, version)",
    "CREATE UNIQUE INDEX other ON target (name) WHERE id > 9",
    "CREATE UNIQUE INDEX other ON target (lower(name || id || version))",
    "ALTER TABLE target ADD CONSTRAINT other EXCLUDE USING btree (name WITH =) WHERE (id > 9)",
    "ALTER TABLE target ADD CONSTRAINT other EXCLUDE USING btree (id WITH =, version WITH =)",
]


def test_only_a_unique_index_that_holds_the_key_may_stand_beside_its_own(
    postgres: UpsertedDatabase, subtests: pytest.Subtests
) -> None:
    given = postgres.sink(key=["id", "version"])
    postgres.send(given, sealed(1, row(1)))
    postgres.execute("CREATE UNIQUE INDEX ON target (name, version, id) WHERE version > 0")
    postgres.send(given, sealed(2, row(2, "b")))
    for other in OTHERS:
        with subtests.test(other):
            postgres.execute(other)
            postgres.expect_refusal(PreflightRefused, "other is unique too", given, sealed(3, row(3)))
            postgres.execute("ALTER TABLE target DROP CONSTRAINT IF EXISTS other; DROP INDEX IF EXISTS other")


def test_keys_are_counted_through_the_partitions_of_a_table(postgres: UpsertedDatabase) -> None:
    postgres.execute(
        "CREATE TABLE target (id bigint PRIMARY KEY, name text, version bigint, lockstep_epoch bigint NOT NULL, "
        "lockstep_order bigint NOT NULL, lockstep_deleted boolean NOT NULL) PARTITION BY RANGE (id)",
    )
    postgres.execute("CREATE TABLE low PARTITION OF target FOR VALUES FROM (0) TO (10)")
    postgres.execute("CREATE TABLE high PARTITION OF target DEFAULT")
    for protocol, id in zip(PROTOCOLS * 2, range(1, 5), strict=True):
        postgres.send(postgres.sink(protocol), sealed(id, row(id), row(7), row(100 + id), row(200)))
    assert len(postgres.shown()) == 10


@pytest.mark.fault("C28")
def test_two_sinks_of_an_interval_pipeline_cant_both_hold_keys(postgres: UpsertedDatabase) -> None:
    def pipeline(source: Source, *protocols: ProtocolName) -> Pipeline:
        sinks = [postgres.sink(protocol, name=f"s{n}") for n, protocol in enumerate(protocols)]
        return Pipeline("pipe", {"numbers": source}, untouched, sinks)

    with pytest.raises(InvalidPipeline, match="write_ahead"):
        pipeline(Numbers(), "two_phase", "two_phase")
    assert pipeline(Numbers(), "two_phase", "write_ahead", "write_ahead")
    assert pipeline(Days(), "two_phase", "two_phase")  # an epoch is decided before the next one prepares


def test_the_example_of_the_page_keeps_the_newest_row_of_each_customer(postgres: UpsertedDatabase) -> None:
    page = (DOCS / "postgres.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.S)
    [query, _] = re.findall(r"```sql\n(.*?)```", page, re.S)
    module: dict[str, Any] = {"__name__": "customers"}
    exec(compile(example, "postgres.md", "exec"), module)
    [given] = module["pipeline"].sinks
    days = {
        2: {"id": [1, 2], "name": ["Ann", "Bob"], "closed": [False, True]},
        1: {"id": [1, 2, 3], "name": ["Anne", "Robert", "Cleo"], "closed": [False] * 3},
    }
    with given.opened(SinkContext(DEPLOYMENT, "customers", {"warehouse": postgres.dsn})) as live:
        for id, (day, columns) in enumerate(days.items(), 1):
            at, wal = sealed(id, day=day).at, [SealedRows(pa.table(columns), output="customers")]
            live.preflight({"customers": wal[0].schema})
            live.publish(at, live.prepare(at, wal), wal)
    assert postgres.execute(query) == [(1, "Ann"), (3, "Cleo")]


# --- MariaDB ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def mariadb(mariadb_server: MariaDbServer) -> Iterator[UpsertedDatabase]:
    with fresh(UpsertedMariaDb, mariadb_server) as found:
        yield found


def test_a_text_that_is_a_key_is_told_apart_byte_by_byte(mariadb: UpsertedDatabase) -> None:
    given = mariadb.sink(key=["name"])
    mariadb.send(given, sealed(1, row(1, "a"), row(2, "A"), row(3, "a "), row(4, "á"), row(5, "")))
    assert mariadb.execute("SELECT count(*) FROM target") == [(5,)]
    mariadb.expect_refusal(SinkRejected, "with 1 warnings: Data truncated", given, sealed(2, row(6, "x" * 256)))
    mariadb.execute("DELETE FROM target")
    mariadb.execute("ALTER TABLE target MODIFY name varchar(99) COLLATE utf8mb4_bin NOT NULL")
    mariadb.expect_refusal(PreflightRefused, "use utf8mb4_nopad_bin", given, sealed(2, row(6, "b")))


def test_tombstones_go_as_the_page_says_and_no_key_counts_as_missing(mariadb: UpsertedDatabase) -> None:
    given = mariadb.sink(tables={"rows": "customers"})
    first, second = sealed(1, row(1), row(2, gone=True), row(3, gone=True), day=0), sealed(2, row(4), day=1)
    mariadb.send(given, first)
    mariadb.send(given, second)
    page = (DOCS / "mariadb.md").read_text()
    with mariadb.connected() as cursor:
        for statement in page.partition("```sql")[2].partition("```")[0].strip().rstrip(";").split(";"):
            cursor.execute(statement)
    assert mariadb.execute("SELECT id FROM customers ORDER BY id") == [(1,), (4,)]
    assert mariadb.execute("SELECT sum(new) FROM lockstep_keys") == [(2,)]
    with given.opened(mariadb.context()) as live:
        assert live.missing_keys("rows") == 0

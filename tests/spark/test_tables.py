"""Tables read by Spark's workers: partitions, types, refusals, and what of Lockstep a worker needs: nothing."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest
from pyspark.sql.connect.functions import spark_partition_id

from lockstep import run_epoch
from lockstep.compute._local_rows import VARIABLE
from lockstep.epoch import SourceRange
from lockstep.errors import BadRecords, SourceChanged
from lockstep.pipeline import Pipeline
from lockstep.sinks import PostgresSink
from lockstep.sources import MariaDbTableSource, OpenSource, PostgresTableSource, Source, SourceContext
from lockstep.wal.manifest import SourceCount
from stack.mariadb import MariaDbServer
from tests.spark.pipelines import Nowhere
from tests.spark.staged import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1000
SHOP = f"""
    CREATE TABLE events (id bigserial PRIMARY KEY, name text, price numeric(12,2), at timestamptz, raw bytea,
                         xid xid8 NOT NULL DEFAULT pg_current_xact_id());
    CREATE INDEX ON events (xid);
    INSERT INTO events (name, price, at, raw)
    SELECT 'name ' || i, i / 100.0, '2013-01-01 12:00:00+00'::timestamptz + i * interval '1 s', '\\x00ff'
    FROM generate_series(1, {ROWS}) AS i
"""


def execute(dsn: str, statement: str) -> None:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def shop(warehouse_dsn: str) -> Iterator[str]:
    execute(warehouse_dsn, SHOP)
    yield warehouse_dsn


def events(dsn: str, **arguments: Any) -> PostgresTableSource:
    given = {"order_by": "id", "settle": timedelta(0), **arguments}
    return PostgresTableSource("public.events", connection="shop", **given)


def opened(source: Source, dsn: str) -> OpenSource:
    return source.open(SourceContext("pipeline", "events", lambda paths: set(), {"shop": dsn}))


def pipeline_of(source: Any) -> Pipeline:
    return Pipeline("shop", {"events": source}, lambda inputs: {"rows": inputs["events"]}, [Nowhere("nowhere")])


def test_a_postgres_table_is_staged_exactly_by_several_tasks(
    session: SparkSession, shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = events(shop, rows_per_partition=300)
    live = opened(source, shop)
    found = live.latest(None, None)
    frame = live.read(session, None, found)
    assert frame.select(spark_partition_id()).distinct().count() == 4
    frame.explain("extended")
    assert "127.0.0.1" not in capsys.readouterr().out
    staged = stage(session, tmp_path, pipeline_of(source), {"events": SourceRange(None, found)}, {"shop": shop})
    assert staged.result.sources == {"events": SourceCount(ROWS)}
    rows = sorted(staged.rows(), key=lambda row: row["id"])
    with closing(psycopg2.connect(shop)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name, price, at, raw, xid::text::bigint FROM events ORDER BY id")
        expected = [(*row[:4], bytes(row[4]), row[5]) for row in cursor.fetchall()]
    assert [tuple(row.values()) for row in rows] == expected


def test_a_range_is_read_from_the_table_that_it_was_planned_of(
    session: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")  # Spark writes: a file of each partition
    planned, moved = events(shop), replace(events(shop), table="public.others", rows_per_partition=400)
    found = SourceRange(None, opened(planned, shop).latest(None, None), planned.spec())
    staged = stage(session, tmp_path, pipeline_of(moved), {"events": found}, {"shop": shop})
    assert staged.result.sources == {"events": SourceCount(ROWS)}
    assert len(list(staged.folder.glob("rows/*.parquet"))) == 3


@pytest.mark.fault("A14")
def test_a_range_that_changed_and_a_value_that_nothing_holds_fail_the_execution(
    session: SparkSession, shop: str, tmp_path: Path
) -> None:
    source = events(shop)
    found = opened(source, shop).latest(None, None)
    execute(shop, "UPDATE events SET at = 'infinity' WHERE id = 7")
    with pytest.raises(BadRecords, match="UNREADABLE_VALUE"):
        stage(session, tmp_path, pipeline_of(source), {"events": SourceRange(None, found)}, {"shop": shop})
    execute(shop, "DELETE FROM events WHERE id = 7")
    with pytest.raises(SourceChanged, match="had 1000 rows"):
        stage(session, tmp_path, pipeline_of(source), {"events": SourceRange(None, found)}, {"shop": shop})


@pytest.mark.fault("J15")
def test_a_value_that_cant_be_read_is_not_in_the_failures_message(
    session: SparkSession, shop: str, tmp_path: Path
) -> None:
    execute(
        shop,
        "CREATE TABLE people (id int PRIMARY KEY, name text); INSERT INTO people VALUES (1, 'Jane Roe'); "
        "CREATE VIEW numbered AS SELECT id, name::int AS n FROM people",
    )
    source = PostgresTableSource("numbered", connection="shop", order_by="id", settle=timedelta(0))
    found = opened(source, shop).latest(None, None)
    with pytest.raises(BadRecords, match=r"UNREADABLE_VALUE: reading from Postgres: .* SQLSTATE 22P02") as failure:
        stage(session, tmp_path, pipeline_of(source), {"events": SourceRange(None, found)}, {"shop": shop})
    assert "Jane" not in "".join(traceback.format_exception(failure.value))


def test_a_mariadb_table_is_staged_exactly(
    session: SparkSession,
    mariadb_server: MariaDbServer,
    mariadb_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "0")  # Spark writes: a file of each partition
    with closing(mariadb_server.connect(mariadb_dsn.rpartition("/")[2])) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE events (id int AUTO_INCREMENT PRIMARY KEY, n decimal(9,3), t tinyint, s text)")
        cursor.execute(
            "INSERT INTO events (n, t, s) SELECT seq / 1000, seq MOD 100, CONCAT('é ', seq) FROM seq_1_to_1000"
        )
        cursor.execute("SELECT * FROM events ORDER BY id")
        expected = list(cursor.fetchall())
    source = MariaDbTableSource("events", connection="shop", order_by="id", settle=timedelta(0), rows_per_partition=300)
    found = opened(source, mariadb_dsn).latest(None, None)
    staged = stage(session, tmp_path, pipeline_of(source), {"events": SourceRange(None, found)}, {"shop": mariadb_dsn})
    assert len(list(staged.folder.glob("rows/*.parquet"))) == 4
    assert sorted(tuple(row.values()) for row in staged.rows()) == expected


def test_a_table_moves_into_another_of_its_own_server_epoch_by_epoch(
    spark_connect: str, session: SparkSession, shop: str, ledger_dsn: str, tmp_path: Path
) -> None:
    source = PostgresTableSource("public.events", connection="shop", order_by="xid", columns=("id", "name"))
    sink = PostgresSink("copy", tables={"rows": "public.copies"}, connection="shop", create=True)
    pipeline = Pipeline("copies", {"events": source}, lambda inputs: {"rows": inputs["events"]}, [sink])
    moved = []
    for _ in range(3):
        report = run_epoch(
            pipeline, ledger=ledger_dsn, staging=str(tmp_path), spark=spark_connect, connections={"shop": shop}
        )
        moved.append(report.rows["rows"])
        execute(shop, f"INSERT INTO events (name) VALUES ('after epoch {report.epoch}')")
    assert moved == [ROWS, 1, 1]
    with closing(psycopg2.connect(shop)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM events EXCEPT ALL SELECT id, name FROM copies")
        assert cursor.fetchall() == [(ROWS + 3, "after epoch 3")]

"""What upserts into MariaDB have of their own; the rest is in test_table_upserts.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.errors import (
    PreflightRefused,
    SinkRejected,
)
from stack.mariadb import MariaDbServer
from tests.sinks.upserting import OURS, UpsertedDatabase, UpsertedMariaDb, fresh, row, sealed


@pytest.fixture
def place(mariadb_server: MariaDbServer) -> Iterator[UpsertedDatabase]:
    with fresh(UpsertedMariaDb, mariadb_server) as found:
        yield found


def test_a_unique_index_on_the_start_of_the_key_is_refused(place: UpsertedDatabase) -> None:
    place.execute(
        "CREATE TABLE target (id varchar(99) COLLATE utf8mb4_nopad_bin PRIMARY KEY, UNIQUE start (id(3)), "
        f"lockstep_order bigint NOT NULL, {OURS})",
    )
    with (
        place.sink(create=False).opened(place.context()) as given,
        pytest.raises(PreflightRefused, match="start is unique too"),
    ):
        given.preflight({"rows": pa.schema({"id": pa.string(), "gone": pa.bool_()})})


def test_a_text_that_is_a_key_is_told_apart_byte_by_byte(place: UpsertedDatabase) -> None:
    given = place.sink(key=["name"])
    place.send(given, sealed(1, row(1, "a"), row(2, "A"), row(3, "a "), row(4, "á"), row(5, "")))
    assert place.execute("SELECT count(*) FROM target") == [(5,)]
    place.expect_refusal(SinkRejected, "with 1 warnings: Data truncated", given, sealed(2, row(6, "x" * 256)))
    place.execute("DELETE FROM target")
    place.execute("ALTER TABLE target MODIFY name varchar(99) COLLATE utf8mb4_bin NOT NULL")
    place.expect_refusal(PreflightRefused, "use utf8mb4_nopad_bin", given, sealed(2, row(6, "b")))


def test_a_user_needs_what_an_upsert_does(place: UpsertedDatabase, mariadb_server: MariaDbServer) -> None:
    place.send(place.sink(), sealed(1, row(1)))
    database, user = place.dsn.rsplit("/", 1)[1], "'loader'@'127.0.0.1'"
    loader = replace(place, dsn=f"mysql://loader:x@127.0.0.1:{mariadb_server.port}/{database}")
    place.execute(f"CREATE OR REPLACE USER {user} IDENTIFIED BY 'x'")
    try:
        for table in ("lockstep_marker", "lockstep_range", "lockstep_target", "lockstep_target_id", "lockstep_keys"):
            place.execute(f"GRANT SELECT, INSERT, UPDATE ON {table} TO {user}")
        for grant, told in (
            ("INSERT, SELECT ON target", "UPDATE command denied"),
            ("UPDATE ON target", "Access denied"),
        ):
            place.execute(f"GRANT {grant} TO {user}")
            loader.expect_refusal(PreflightRefused, told, place.sink(create=False), sealed(2, row(1)))
        place.execute(f"GRANT CREATE TEMPORARY TABLES ON {database}.* TO {user}")
        loader.send(place.sink(create=False), sealed(2, row(1, "b")))
        assert place.shown()[1][0] == "b"
    finally:
        place.execute(f"DROP USER {user}")


def test_tombstones_go_as_the_page_says_and_no_key_counts_as_missing(place: UpsertedDatabase) -> None:
    given = place.sink(tables={"rows": "customers"})
    first, second = sealed(1, row(1), row(2, gone=True), row(3, gone=True), day=0), sealed(2, row(4), day=1)
    place.send(given, first)
    place.send(given, second)
    page = (Path(__file__).parents[2] / "docs/sinks/mariadb.md").read_text()
    with place.connected() as cursor:
        for statement in page.partition("```sql")[2].partition("```")[0].strip().rstrip(";").split(";"):
            cursor.execute(statement)
    assert place.execute("SELECT id FROM customers ORDER BY id") == [(1,), (4,)]
    assert place.execute("SELECT sum(new) FROM lockstep_keys") == [(2,)]
    with given.opened(place.context()) as live:
        assert live.missing_keys("rows") == 0

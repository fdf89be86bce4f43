"""What upserts into Postgres have of their own; the rest is in test_table_upserts.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import Identity
from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    SinkRejected,
)
from lockstep.pipeline import Pipeline
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import SinkContext
from lockstep.sources import OpenSource, Source, SourceContext
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT
from stack.postgres import PostgresServer
from tests.sinks.upserting import PROTOCOLS, UpsertedDatabase, UpsertedPostgres, fresh, row, sealed


@pytest.fixture
def place(memory_server: PostgresServer) -> Iterator[UpsertedDatabase]:
    with fresh(UpsertedPostgres, memory_server) as found:
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
    place: UpsertedDatabase, subtests: pytest.Subtests
) -> None:
    given = place.sink(key=["id", "version"])
    place.send(given, sealed(1, row(1)))
    place.execute("CREATE UNIQUE INDEX ON target (name, version, id) WHERE version > 0")
    place.send(given, sealed(2, row(2, "b")))
    for other in OTHERS:
        with subtests.test(other):
            place.execute(other)
            place.expect_refusal(PreflightRefused, "other is unique too", given, sealed(3, row(3)))
            place.execute("ALTER TABLE target DROP CONSTRAINT IF EXISTS other; DROP INDEX IF EXISTS other")


def test_where_a_collation_takes_texts_for_the_same_the_server_says_which_keys_are_alike(
    place: UpsertedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: object) -> None:
        raise AssertionError("told without the server")

    given = place.sink(key=["name"], validate="schema")
    place.send(given, sealed(1, row(1, "a")))
    monkeypatch.setattr("lockstep.sinks.tables.load.hold", held)
    with pytest.raises(AssertionError, match="told without the server"):
        place.prepare(given, sealed(2, row(2, "b")))
    place.execute("CREATE COLLATION odd (provider = libc, locale = 'C')")
    place.execute("ALTER TABLE target ALTER COLUMN name TYPE text COLLATE odd")
    place.execute("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'odd'")  # as ICU's may be
    place.send(given, sealed(2, row(2, "b"), row(3, "a")))
    assert place.shown() == {2: ("b", 1, False), 3: ("a", 1, False)}
    place.expect_refusal(SinkRejected, "stands more than once", given, sealed(3, row(1, "c"), row(2, "c")))


def test_keys_that_start_with_a_text_go_in_by_the_servers_order(place: UpsertedDatabase) -> None:
    given = place.sink(key=["name", "id"], order="column:version")
    place.send(given, sealed(1, row(2, "é"), row(1, "z"), row(1, "Z", 5), row(1, "Z", 7)))
    place.send(given, sealed(2, row(2, "é", 3), row(1, "a")))
    assert place.execute('SELECT name, version FROM target ORDER BY name COLLATE "C"') == [
        ("Z", 7),
        ("a", 1),
        ("z", 1),
        ("é", 3),
    ]


def test_keys_are_counted_through_the_partitions_of_a_table(place: UpsertedDatabase) -> None:
    place.execute(
        "CREATE TABLE target (id bigint PRIMARY KEY, name text, version bigint, lockstep_epoch bigint NOT NULL, "
        "lockstep_order bigint NOT NULL, lockstep_deleted boolean NOT NULL) PARTITION BY RANGE (id)",
    )
    place.execute("CREATE TABLE low PARTITION OF target FOR VALUES FROM (0) TO (10)")
    place.execute("CREATE TABLE high PARTITION OF target DEFAULT")
    for protocol, id in zip(PROTOCOLS * 2, range(1, 5), strict=True):
        place.send(place.sink(protocol), sealed(id, row(id), row(7), row(100 + id), row(200)))
    assert len(place.shown()) == 10


def test_a_trigger_that_drops_rows_is_found(place: UpsertedDatabase) -> None:
    place.send(place.sink(), sealed(1, row(1)))
    place.execute("CREATE FUNCTION dropped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    place.execute("CREATE TRIGGER t BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION dropped()")
    place.expect_refusal(SinkRejected, "a trigger may drop them", place.sink(), sealed(2, row(1), row(2)))


class Days(Source):
    identity = Identity.INTERVAL

    def open(self, context: SourceContext) -> OpenSource:
        raise NotImplementedError


class Steps(Days):
    identity = Identity.CURSOR


def untouched(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return inputs


@pytest.mark.fault("C28")
def test_two_sinks_of_an_interval_pipeline_cant_both_hold_keys(place: UpsertedDatabase) -> None:
    def pipeline(source: Source, *protocols: ProtocolName) -> Pipeline:
        sinks = [place.sink(protocol, name=f"s{n}") for n, protocol in enumerate(protocols)]
        return Pipeline("pipe", {"rows": source}, untouched, sinks)

    with pytest.raises(InvalidPipeline, match="write_ahead"):
        pipeline(Days(), "two_phase", "two_phase")
    assert pipeline(Days(), "two_phase", "write_ahead", "write_ahead")
    assert pipeline(Steps(), "two_phase", "two_phase")  # an epoch is decided before the next one prepares


def test_the_example_of_the_page_keeps_the_newest_row_of_each_customer(place: UpsertedDatabase) -> None:
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
    with given.opened(SinkContext(DEPLOYMENT, "customers", {"warehouse": place.dsn})) as live:
        for id, (day, columns) in enumerate(days.items(), 1):
            at, wal = sealed(id, day=day).at, [SealedRows(pa.table(columns), output="customers")]
            live.preflight({"customers": wal[0].schema})
            live.publish(at, live.prepare(at, wal), wal)
    assert place.execute(query) == [(1, "Ann"), (3, "Cleo")]

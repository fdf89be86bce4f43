"""A write-ahead sink refuses before the decision what the table would refuse after it, and sends rows only to know."""

from __future__ import annotations

import random
import string

import pyarrow as pa
import pytest

from lockstep.epoch import Vote
from lockstep.errors import SinkRejected
from lockstep.sinks.postgres import PostgresSink
from lockstep.testing import OUTPUT, SealedRows
from lockstep.testing._under_test import epoch
from tests.sinks.one_sink import SCHEMA, context
from tests.sinks.postgres_target import empty, execute

LONG = "".join(random.Random(1).choices(string.printable, k=20_000))  # no compression makes it fit into an index
NO_UTF_8 = pa.array([b"\xff"], pa.binary()).view(pa.string())

ROW = pa.table([pa.array([7]), pa.array(["a"])], SCHEMA)
LATE_TRIGGER = (
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON target DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION no()"
)
PARTS = "(id bigint, name text) PARTITION BY RANGE (id)"
PART = "CREATE TABLE target PARTITION OF whole FOR VALUES FROM (0) TO (5)"
REFUSED = [
    ("", pa.table([pa.array([1]), pa.array(["a\0b"])], SCHEMA), "byte sequence"),
    ("", pa.table([pa.array([1]), NO_UTF_8], SCHEMA), "byte sequence"),
    ("ALTER TABLE target ALTER name SET NOT NULL", pa.table([[1], pa.nulls(1, pa.string())], SCHEMA), "null value"),
    ("CREATE INDEX ON target (name)", pa.table([[1], [LONG]], SCHEMA), "index row"),
    ("CREATE INDEX ON target USING brin (name)", pa.table([[1], [LONG]], SCHEMA), "index row"),
    ("CREATE INDEX ON target ((1 / id))", pa.table([[0], ["a"]], SCHEMA), "division by zero"),
    ("CREATE INDEX ON target (id) WHERE 1 / id > 0", pa.table([[0], ["a"]], SCHEMA), "division by zero"),
    ("ALTER TABLE target ALTER name SET STORAGE PLAIN", pa.table([[1], [LONG]], SCHEMA), "row is too big"),
    ("ALTER TABLE target ADD broken int GENERATED ALWAYS AS (name::int) STORED", ROW, "invalid input syntax"),
    ("ALTER TABLE target ADD broken int; ALTER TABLE target ALTER broken SET DEFAULT 1 / 0", ROW, "division by zero"),
    ("ALTER TABLE target ADD CHECK (id < 7)", ROW, "check constraint"),
    ("ALTER TABLE target ADD CHECK (id < 7) NOT VALID", ROW, "check constraint"),
    ("ALTER TABLE target ADD FOREIGN KEY (id) REFERENCES parent DEFERRABLE INITIALLY DEFERRED", ROW, "foreign key"),
    ("INSERT INTO target VALUES (7, 'b'); ALTER TABLE target ADD PRIMARY KEY (id)", ROW, "duplicate key"),
    ("INSERT INTO target VALUES (7, 'b'); CREATE UNIQUE INDEX ON target (id)", ROW, "duplicate key"),
    ("INSERT INTO target VALUES (7, 'b'); ALTER TABLE target ADD EXCLUDE (id WITH =)", ROW, "exclusion constraint"),
    ("CREATE TRIGGER t BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION drop_row()", ROW, "a trigger may"),
    (LATE_TRIGGER, ROW, r"no\(\)"),
    (f"DROP TABLE target; CREATE TABLE target {PARTS}", ROW, "no partition"),
    (f"DROP TABLE target; CREATE TABLE whole {PARTS}; {PART}", ROW, "partition constraint"),
]


def target(dsn: str, ddl: str) -> str:
    """A database whose table `target` is as `ddl` makes it of one without conditions."""
    returns = "RETURNS trigger LANGUAGE plpgsql AS"
    execute(empty(dsn), "CREATE TABLE target (id bigint, name text); CREATE TABLE parent (id bigint PRIMARY KEY)")
    execute(dsn, f"CREATE FUNCTION drop_row() {returns} 'BEGIN RETURN NULL; END'")
    execute(dsn, f"CREATE FUNCTION no() {returns} 'BEGIN RAISE ''no''; END'; {ddl}")
    return dsn


def prepare(dsn: str, rows: pa.Table) -> Vote:
    described = PostgresSink("warehouse", tables={OUTPUT: "target"}, connection="w", protocol="write_ahead")
    with described.opened(context(dsn)) as sink:
        sink.preflight({OUTPUT: rows.schema})
        return sink.prepare(epoch(), [SealedRows(rows)])


def size(dsn: str) -> int:
    """Bytes; what was rolled back leaves some."""
    [(found,)] = execute(dsn, "SELECT pg_relation_size('target')")
    return int(found)


def test_what_a_table_would_refuse_is_refused_before_the_decision(
    warehouse_dsn: str, subtests: pytest.Subtests
) -> None:
    for ddl, rows, told in REFUSED:
        with subtests.test(f"{ddl}: {told}"), pytest.raises(SinkRejected, match=told):
            prepare(target(warehouse_dsn, ddl), rows)


TRIED = [
    ("", False),
    ("ALTER TABLE target ALTER id SET NOT NULL", False),
    ("ALTER TABLE target ADD more int, ADD lockstep_epoch bigint NOT NULL", False),
    ("CREATE INDEX ON target (id); CREATE INDEX ON target USING brin (id)", False),
    ("ALTER TABLE target ADD CHECK (id > 0)", True),
    ("ALTER TABLE target ADD PRIMARY KEY (id)", True),
    ("CREATE INDEX ON target (name)", True),
]


def test_rows_are_sent_before_the_decision_only_where_the_table_could_refuse_one(
    warehouse_dsn: str, subtests: pytest.Subtests
) -> None:
    for ddl, tried in TRIED:
        with subtests.test(ddl):
            dsn = target(warehouse_dsn, ddl)
            assert prepare(dsn, ROW).rows == {OUTPUT: 1}
            assert (size(dsn) > 0) is tried
            assert execute(dsn, "SELECT count(*) FROM target") == [(0,)]

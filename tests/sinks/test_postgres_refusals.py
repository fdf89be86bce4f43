"""What PostgresSink refuses: before a row is written, with the name of the setting, the table or the column."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg2
import psycopg2.errors
import pyarrow as pa
import pytest

from lockstep.connections.names import Relation
from lockstep.connections.postgres.connection import PostgresDatabase
from lockstep.epoch import Vote
from lockstep.errors import (
    SINK_ERRORS,
    InvalidPipeline,
    LedgerConflict,
    PreflightRefused,
    PublishBlocked,
    Retryable,
    SinkRejected,
    TargetFull,
    TargetOwned,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.postgres.copying import read_rows
from lockstep.sinks.tables.open_sink import TwoPhaseTableSink
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import SinkEpoch
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sinks.one_sink import ROWS, SCHEMA, context, preflight, publish, refusal
from tests.sinks.postgres_target import LOCK_TIMEOUT, empty, execute, system_setting

PROTOCOLS: tuple[ProtocolName, ...] = ("two_phase", "write_ahead")


def sink(protocol: ProtocolName = "two_phase", **arguments: Any) -> PostgresSink:
    given = {"tables": {"rows": "public.target"}, "connection": "w", "lock_timeout": LOCK_TIMEOUT, **arguments}
    return PostgresSink("warehouse", protocol=protocol, **given)


def handle_of(pipeline: str, sink: str = "warehouse") -> str:
    return SinkName(DEPLOYMENT, pipeline, sink).handle(epoch())


# --- the definition --------------------------------------------------------------------------------------------------


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"protocol": "hope"}, "hope"),
    ({"lock_timeout": 0}, "lock_timeout"),
    ({"tables": {}}, "at least one"),
    ({"tables": {"a": "public.t", "b": "t"}}, "a table of its own"),
]


def test_a_wrong_definition_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for arguments, told in WRONG:
        with subtests.test(told), pytest.raises(InvalidPipeline, match=told):
            sink(**arguments)


# --- settings of the server ------------------------------------------------------------------------------------------


@pytest.mark.fault("C12")
@pytest.mark.parametrize("unsafe", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_acknowledged_is_refused_by_every_step(
    warehouse_server: PostgresServer, warehouse_dsn: str, unsafe: str
) -> None:
    refused = pytest.raises(PreflightRefused, match=unsafe)
    with system_setting(warehouse_server, unsafe, "off"):
        for protocol in PROTOCOLS:
            given = sink(protocol, create=True)
            assert f"{unsafe} = off" in refusal(warehouse_dsn, given, None)
            with given.opened(context(warehouse_dsn)) as live:
                with refused:
                    live.target_id()
                with refused:
                    live.find_marker(1)
                with refused:
                    live.prepare(epoch(), [])
        database = PostgresDatabase("sink warehouse", "w", warehouse_dsn, LOCK_TIMEOUT, SINK_ERRORS)
        with refused:
            list(read_rows(database, Relation("public", "target"), "lockstep_epoch", 1, SCHEMA))


@pytest.mark.fault("C8")
def test_prepared_transactions_have_to_be_on_and_free_and_a_replica_is_no_target(
    servers_folder: Path, passfile: Path, server_template: PostgresServer
) -> None:
    server = PostgresServer(
        servers_folder / "odd", passfile=passfile, template=server_template, settings={"max_prepared_transactions": 1}
    )
    try:
        server.start()
        dsn = server.create_database("odd")
        preflight(dsn, sink(create=True))
        with sink(create=True).opened(context(dsn)) as opened:
            vote = opened.prepare(epoch(), [SealedRows(ROWS)])
            opened.preflight({"rows": SCHEMA})  # its own branch is no reason to refuse
            with pytest.raises(TargetFull, match="max_prepared_transactions are in use"):
                opened.prepare(epoch(2), [SealedRows(ROWS)])  # nor does it go before the next one comes
            opened.publish(epoch(), vote, [])
        execute(dsn, "BEGIN; CREATE TABLE foreign_one (); PREPARE TRANSACTION 'somebody else'")
        told = refusal(dsn, sink(create=True), None, TargetFull)
        assert "max_prepared_transactions = 1, 1 in use" in told and "at least 2" in told
        assert issubclass(TargetFull, Retryable)  # others may finish theirs; a setting of 0 stays what it is
        preflight(dsn, sink("write_ahead", create=True))
        execute(dsn, "ROLLBACK PREPARED 'somebody else'")
        preflight(dsn, sink(create=True))
        server.restart(settings={"max_prepared_transactions": 0})
        assert "max_prepared_transactions = 0" in refusal(dsn, sink(create=True), None)
        preflight(dsn, sink("write_ahead", create=True))
        server.stop()
        signal = server.data / "standby.signal"
        signal.touch()
        server.start()
        for protocol in PROTOCOLS:
            assert "replica" in refusal(dsn, sink(protocol, create=True), None)
    finally:
        server.remove()


@pytest.mark.fault("D15")
def test_a_branch_is_only_committed_for_the_vote_and_the_manifest_that_its_name_carries(warehouse_dsn: str) -> None:
    wal = [SealedRows(ROWS)]
    with sink(create=True).opened(context(warehouse_dsn)) as opened:
        opened.preflight({"rows": SCHEMA})
        vote = opened.prepare(epoch(manifest="a"), wal)
        with pytest.raises(LedgerConflict, match="isn't of epoch 1"):
            opened.publish(epoch(manifest="b"), vote, wal)
        for foreign in ("somebody else", handle_of("other"), handle_of("pipe", sink="lake")):
            execute(warehouse_dsn, f"BEGIN; CREATE TABLE foreign_one (); PREPARE TRANSACTION '{foreign}'")
            with pytest.raises(LedgerConflict, match=f"{foreign} isn't what this sink calls epoch 1"):
                opened.publish(epoch(manifest="a"), replace(vote, handle=foreign), wal)
            assert execute(warehouse_dsn, f"ROLLBACK PREPARED '{foreign}'") == []  # it is still there
        [txn] = opened.pending()
        assert (txn.handle, opened.find_marker(1)) == (vote.handle, None)
        opened.publish(epoch(manifest="a"), vote, wal)


def test_an_interrupt_at_the_marker_leaves_no_connection_open(
    warehouse_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def interrupt(_: OwnTables, cursor: Any, __: SinkEpoch) -> bool:
        seen.append(cursor.connection)
        raise KeyboardInterrupt

    with sink(create=True).opened(context(warehouse_dsn)) as opened:
        opened.preflight({"rows": SCHEMA})
        monkeypatch.setattr(OwnTables, "insert_marker", interrupt)
        with pytest.raises(KeyboardInterrupt):
            opened.prepare(epoch(), [])
    assert [connection.closed for connection in seen] == [1]


# --- tables ----------------------------------------------------------------------------------------------------------

TABLES = [
    ("", "public.target is missing; create it, or say create=True"),
    ("CREATE UNLOGGED TABLE target (id bigint, name text)", "UNLOGGED"),
    ("CREATE VIEW target AS SELECT 1::bigint AS id, 'x'::text AS name", "a view"),
    ("CREATE MATERIALIZED VIEW target AS SELECT 1::bigint AS id, 'x'::text AS name", "a materialized view"),
    ("CREATE SEQUENCE target", "a sequence"),
    (
        "CREATE TABLE target (id bigint, name text) PARTITION BY RANGE (id); "
        "CREATE UNLOGGED TABLE leaf PARTITION OF target FOR VALUES FROM (0) TO (9)",
        "leaf is UNLOGGED",
    ),
]


@pytest.mark.fault("C12")
def test_a_table_that_cannot_keep_rows_is_refused_at_begin(warehouse_dsn: str, subtests: pytest.Subtests) -> None:
    for ddl, told in TABLES:
        with subtests.test(told):
            empty(warehouse_dsn)
            if ddl:
                execute(warehouse_dsn, ddl)
            for protocol in PROTOCOLS:
                assert told in refusal(warehouse_dsn, sink(protocol), None)


COLUMNS = [
    ("id bigint", "column name: the table lacks it"),
    ("id bigint, name text, must integer NOT NULL", "column must: it is NOT NULL without a default"),
    ("id integer, name text", "column id: the table has integer"),
    ("id double precision, name text", "column id: the table has double precision"),
    ("id bigint, name int4range", "column name: the table has int4range"),
    ("id bigint[], name text", "column id: the table has bigint[]"),
    ("name text, id bigint GENERATED ALWAYS AS (length(name)) STORED", "column id: it is a generated column"),
    ("id bigint, name text, lockstep_epoch integer", "column lockstep_epoch: it has to be a plain bigint"),
    ("id small, name text", "column id: the table has small"),
]


NUMBERS = [
    ("numeric(10,2)", pa.decimal128(10, 2), True),
    ("numeric", pa.decimal128(38, 10), True),
    ("numeric(12,4)", pa.decimal128(10, 2), True),
    ("numeric(10,1)[]", pa.list_(pa.decimal128(10, 2)), False),
    ("timestamptz", pa.timestamp("us", "UTC"), True),
    ("timestamptz", pa.timestamp("us"), False),
    ("timestamp", pa.timestamp("us", "UTC"), False),
    ("timestamp(3)", pa.timestamp("us"), False),
    ("real", pa.float64(), False),
    ("date", pa.int32(), False),
    ("varchar", pa.string(), True),
    ("bigint", pa.uint32(), True),
    ("bigint", pa.uint64(), False),
]


@pytest.mark.fault("C17")
def test_a_column_that_would_not_give_values_back_is_refused_by_name(
    warehouse_dsn: str, subtests: pytest.Subtests
) -> None:
    execute(warehouse_dsn, "CREATE DOMAIN small AS int CHECK (value < 9)")
    for columns, told in COLUMNS:
        with subtests.test(columns):
            execute(warehouse_dsn, f"DROP TABLE IF EXISTS target; CREATE TABLE target ({columns})")
            assert told in refusal(warehouse_dsn, sink())
    for column, dtype, fits in NUMBERS:
        with subtests.test(f"{column} {dtype}"):
            try:
                execute(warehouse_dsn, f"DROP TABLE IF EXISTS target; CREATE TABLE target (value {column})")
            except psycopg2.errors.InvalidParameterValue as unknown:
                pytest.skip(f"not before PostgreSQL 15: {unknown}")
            schema = pa.schema({"value": dtype})
            if fits:
                preflight(warehouse_dsn, sink(), schema)
            else:
                assert "column value" in refusal(warehouse_dsn, sink(), schema)
    execute(warehouse_dsn, "DROP TABLE target; CREATE TABLE target (id text, must int NOT NULL)")
    told = refusal(warehouse_dsn, sink())
    assert all(f"column {name}:" in told for name in ("id", "name", "must")), "not all at once"


def test_columns_that_fill_themselves_are_fine_and_without_that_of_the_epoch_none_is_read(warehouse_dsn: str) -> None:
    execute(
        warehouse_dsn,
        "CREATE TABLE target (id bigint PRIMARY KEY, name varchar, at timestamptz NOT NULL DEFAULT now(), "
        "n bigint GENERATED ALWAYS AS IDENTITY, twice bigint GENERATED ALWAYS AS (id * 2) STORED, note text)",
    )
    publish(warehouse_dsn, sink())
    assert execute(warehouse_dsn, "SELECT id, twice, n FROM target ORDER BY id") == [(1, 2, 1), (2, 4, 2), (3, 6, 3)]
    with sink().opened(context(warehouse_dsn)) as opened, pytest.raises(PreflightRefused, match="lockstep_epoch"):
        opened.read(1, "rows", SCHEMA)


@pytest.mark.fault("C17")
def test_a_column_that_changed_after_preflight_is_refused_by_the_write(warehouse_dsn: str) -> None:
    given, wal = sink(create=True), [SealedRows(ROWS)]
    with given.opened(context(warehouse_dsn)) as live:
        live.preflight({"rows": SCHEMA})
        execute(warehouse_dsn, "ALTER TABLE target ALTER id TYPE double precision")
        with pytest.raises(PreflightRefused, match="column id"):
            live.prepare(epoch(), wal)
    assert execute(warehouse_dsn, "SELECT count(*) FROM target") == [(0,)]


def granted(dsn: str, refused: str) -> list[str]:
    """Run the grants of a refusal, as a person would."""
    grants: list[str] = re.findall(r"GRANT [^;]*;", refused)
    for grant in grants:
        execute(dsn, grant)
    return grants


@pytest.fixture
def reader(warehouse_server: PostgresServer, warehouse_dsn: str) -> Iterator[str]:
    """The DSN of a role that may only read, and has a name that has to be quoted."""
    role = f"reader {warehouse_server.port}"
    execute(warehouse_dsn, f"CREATE ROLE \"{role}\" LOGIN PASSWORD 'x'")
    execute(warehouse_dsn, f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{role}"')
    yield f"postgresql://{quote(role)}:x@{warehouse_dsn.split('@', 1)[1]}"
    execute(warehouse_dsn, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


@pytest.mark.fault("J18")
@pytest.mark.parametrize(("protocol", "mode"), [("two_phase", {}), ("write_ahead", {"mode": "upsert", "key": ["id"]})])
def test_a_role_is_told_every_grant_that_it_lacks_at_once(
    warehouse_dsn: str, reader: str, protocol: ProtocolName, mode: dict[str, Any]
) -> None:
    table = {"tables": {"rows": 'public.Target "of" rows'}, **mode}
    preflight(warehouse_dsn, sink(protocol, create=True, **table))
    execute(warehouse_dsn, "DELETE FROM lockstep_target")
    refused = refusal(reader, sink(protocol, **table))
    assert "INSERT" in refused and 'ON TABLE "public"."Target ""of"" rows" TO "reader' in refused
    assert 'INSERT, UPDATE ON TABLE "public"."lockstep_marker"' in refused
    assert 'INSERT ON TABLE "public"."lockstep_range"' in refused  # or it is missed after the decision
    granted(warehouse_dsn, refused)
    assert len(granted(warehouse_dsn, refusal(reader, sink(protocol, **table)))) == 1  # to own the table, once
    publish(reader, sink(protocol, **table))


# --- ownership -------------------------------------------------------------------------------------------------------


@pytest.mark.fault("J11")
def test_a_table_belongs_to_one_pipeline_unless_both_share(warehouse_dsn: str) -> None:
    preflight(warehouse_dsn, sink(create=True), pipeline="first")
    for shared in (False, True):
        with pytest.raises(TargetOwned, match=r"table public\.target belongs to sink warehouse of pipeline first"):
            preflight(warehouse_dsn, sink(shared=shared), pipeline="second")
    preflight(warehouse_dsn, sink(shared=True), pipeline="first")
    with pytest.raises(TargetOwned):
        preflight(warehouse_dsn, sink(), pipeline="second")
    preflight(warehouse_dsn, sink(shared=True), pipeline="second")
    with pytest.raises(TargetOwned):
        preflight(warehouse_dsn, sink(), pipeline="first")


def test_a_table_that_was_let_go_belongs_to_whoever_comes_next(warehouse_dsn: str) -> None:
    given = sink(create=True)
    with given.opened(context(warehouse_dsn, "first")) as live:
        live.disclaim()  # nothing is there yet
        live.preflight(None)
        live.disclaim()
    preflight(warehouse_dsn, sink(create=True), pipeline="second")
    with given.opened(context(warehouse_dsn, "first")) as live:
        live.disclaim()
    with pytest.raises(TargetOwned, match="of pipeline second"):
        preflight(warehouse_dsn, sink(), pipeline="third")


def test_a_table_is_owned_whichever_schema_says_so(warehouse_dsn: str) -> None:
    execute(warehouse_dsn, "CREATE SCHEMA one; CREATE SCHEMA two; CREATE SCHEMA three")
    execute(warehouse_dsn, "CREATE TABLE three.lockstep_target (relation text)")  # somebody else's
    preflight(warehouse_dsn, sink(create=True, schema="one"), pipeline="first")
    with pytest.raises(TargetOwned, match=r"pipeline first.* row of one\.lockstep_target"):
        preflight(warehouse_dsn, sink(schema="two"), pipeline="second")
    preflight(warehouse_dsn, sink(shared=True, schema="one"), pipeline="first")
    preflight(warehouse_dsn, sink(shared=True, schema="two"), pipeline="second")


# --- rows ------------------------------------------------------------------------------------------------------------

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
    (
        "ALTER TABLE target ALTER name TYPE varchar(3)",
        pa.table([[1], ["abc  "]], SCHEMA),
        "column name, the row with id 1: a text has more than 3 characters",
    ),
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


def prepare(dsn: str, rows: pa.Table, protocol: ProtocolName = "write_ahead") -> Vote:
    with sink(protocol).opened(context(dsn)) as live:
        live.preflight({"rows": rows.schema})
        return live.prepare(epoch(), [SealedRows(rows)])


def nothing_is_left(dsn: str) -> bool:
    prepared = execute(dsn, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()")
    return [*prepared, *execute(dsn, "SELECT count(*) FROM target WHERE name <> 'b'")] == [(0,), (0,)]


@pytest.mark.fault("C6", "C18")
def test_rows_that_the_table_refuses_are_rejected_before_the_decision(
    warehouse_dsn: str, subtests: pytest.Subtests
) -> None:
    for ddl, rows, told in REFUSED:
        with subtests.test(f"{ddl}: {told}"):
            for protocol in PROTOCOLS:
                with pytest.raises(SinkRejected, match=told):
                    prepare(target(warehouse_dsn, ddl), rows, protocol)
                assert nothing_is_left(warehouse_dsn)


@pytest.mark.fault("C19")
def test_a_trigger_that_notifies_makes_prepare_fail_by_name(warehouse_dsn: str) -> None:
    tell = "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NOTIFY told; RETURN NEW; END'"
    trigger = "CREATE TRIGGER t AFTER INSERT ON target FOR EACH ROW EXECUTE FUNCTION tell()"
    target(warehouse_dsn, f"{tell}; {trigger}")
    with pytest.raises(SinkRejected, match=r"PREPARE TRANSACTION of epoch 1: .*NOTIFY"):
        publish(warehouse_dsn, sink())
    assert nothing_is_left(warehouse_dsn)


@pytest.mark.fault("E21")
def test_rows_refused_after_the_decision_block_the_epoch_and_pass_once_the_cause_is_gone(warehouse_dsn: str) -> None:
    given, wal = sink("write_ahead"), [SealedRows(ROWS)]
    target(warehouse_dsn, "")
    with given.opened(context(warehouse_dsn)) as live:
        live.preflight({"rows": SCHEMA})
        vote = live.prepare(epoch(), wal)
        assert vote.rows == {"rows": 3}
        execute(warehouse_dsn, "ALTER TABLE target ADD CONSTRAINT small CHECK (id < 3)")
        with pytest.raises(PublishBlocked, match=r"output rows into table public\.target: .*small"):
            live.publish(replace(epoch(), token=11), vote, wal)
        assert live.find_marker(1) is None and nothing_is_left(warehouse_dsn)
        execute(warehouse_dsn, "ALTER TABLE target DROP CONSTRAINT small")
        live.publish(replace(epoch(), token=12), vote, wal)
    assert execute(warehouse_dsn, "SELECT count(*) FROM target") == [(3,)]


@pytest.mark.fault("C5")
def test_prepare_answered_with_rollback_is_no_vote(warehouse_dsn: str) -> None:
    target(warehouse_dsn, "")
    with sink().opened(context(warehouse_dsn)) as live:
        live.preflight({"rows": SCHEMA})
        assert isinstance(live, TwoPhaseTableSink)
        txn = live.begin_transaction(epoch())
        live.write(txn, SealedRows(ROWS))
        claim = live._open[txn.handle]
        with pytest.raises(Exception, match="division by zero"):
            claim.cursor.execute("SELECT 1 / 0")  # as if somebody had swallowed the error
        with pytest.raises(SinkRejected, match="answered with ROLLBACK"):
            live._dialect.prepare(claim.cursor, txn)
    assert nothing_is_left(warehouse_dsn)


@pytest.mark.fault("E12")
def test_tables_of_one_sink_appear_together_or_not_at_all(warehouse_dsn: str) -> None:
    given = sink(tables={"rows": "target", "more": "other"}, create=True)
    good, bad = SealedRows(ROWS), SealedRows(ROWS, output="more", claims=4)
    with given.opened(context(warehouse_dsn)) as live:
        live.preflight({"rows": SCHEMA, "more": SCHEMA})
        with pytest.raises(SinkRejected, match="output more"):
            live.prepare(epoch(), [good, bad])
        wal = [good, replace(bad, claims=None)]
        vote = live.prepare(replace(epoch(), token=20), wal)
        assert nothing_is_left(warehouse_dsn) is False
        live.publish(replace(epoch(), token=21), vote, wal)
    rows = "SELECT rows, token FROM lockstep_marker"
    assert execute(warehouse_dsn, rows) == [({"rows": 3, "more": 3}, 20)]
    assert execute(warehouse_dsn, "SELECT (SELECT count(*) FROM target), (SELECT count(*) FROM other)") == [(3, 3)]

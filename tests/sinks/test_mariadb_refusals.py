"""What MariaDbSink refuses: before a row is written, with the name of the setting, the table or the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.connections.mariadb import connection as mariadb_connection
from lockstep.connections.mariadb.connection import weaknesses
from lockstep.errors import PreflightRefused, SinkRejected, TargetFull, TargetOwned
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from stack.mariadb import MISSING, MariaDbServer, mariadbd
from tests.sinks.mariadb_target import execute
from tests.sinks.one_sink import ROWS, SCHEMA, context, preflight, publish, refusal
from tests.sinks.postgres_target import LOCK_TIMEOUT

PROTOCOLS: tuple[ProtocolName, ...] = ("two_phase", "write_ahead")


def sink(protocol: ProtocolName = "two_phase", **arguments: Any) -> MariaDbSink:
    given = {"tables": {"rows": "target"}, "connection": "w", "lock_timeout": LOCK_TIMEOUT, **arguments}
    return MariaDbSink("warehouse", protocol=protocol, **given)


def count(dsn: str) -> object:
    return execute(dsn, "SELECT count(*) FROM target")[0][0]


# --- settings of the server ------------------------------------------------------------------------------------------


@contextmanager
def setting(server: MariaDbServer, name: str, value: int) -> Iterator[None]:
    [(before,)] = server.execute(f"SELECT @@GLOBAL.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL {name} = {before}")


@pytest.mark.fault("C12")
def test_a_setting_that_could_lose_rows_is_refused_in_every_transaction(
    mariadb_server: MariaDbServer, mariadb_dsn: str, subtests: pytest.Subtests
) -> None:
    preflight(mariadb_dsn, sink(create=True))
    for name, value in (("innodb_flush_log_at_trx_commit", 0), ("innodb_flush_log_at_trx_commit", 2), ("read_only", 1)):
        told = f"{name} = {value}"
        with subtests.test(told), setting(mariadb_server, name, value):
            assert told in refusal(mariadb_dsn, sink(create=True), None)
            with sink().opened(context(mariadb_dsn)) as live, pytest.raises(PreflightRefused, match=told):
                live.prepare(epoch(), [SealedRows(ROWS)])
    assert count(mariadb_dsn) == 0
    with setting(mariadb_server, "local_infile", 0):
        assert "local_infile = 0" in refusal(mariadb_dsn, sink(create=True), None)


def test_every_other_setting_that_could_lose_rows_has_its_name() -> None:
    fine: dict[str, Any] = {"read_only": 0, "flush": 1, "doublewrite": 1, "flush_method": "O_DIRECT", "log_bin": 1}
    fine |= {"sync_binlog": 1, "binlog_format": "MIXED", "wsrep_on": 0}
    odd: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"log_bin": 0, "sync_binlog": 0}, []),
        ({"doublewrite": "OFF"}, ["innodb_doublewrite = OFF"]),
        ({"flush_method": "nosync"}, ["innodb_flush_method = nosync"]),
        ({"sync_binlog": 0}, ["log_bin = 1 and sync_binlog = 0"]),
        ({"binlog_format": "STATEMENT"}, ["log_bin = 1 and binlog_format = STATEMENT"]),
        ({"wsrep_on": 1}, ["wsrep_on = 1"]),
    ]
    for change, told in odd:
        assert [found for bad, found, _ in weaknesses(**{**fine, **change}) if bad] == told


def test_an_older_server_is_refused(mariadb_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_connection, "OLDEST", (99, 0))
    assert "MariaDB 99.0 or newer" in refusal(mariadb_dsn, sink(create=True), None)


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("C12")
def test_an_engine_that_rolls_nothing_back_is_refused_also_when_it_was_changed_after_preflight(
    mariadb_dsn: str,
) -> None:
    columns = "(id bigint, name varchar(9), lockstep_epoch bigint)"
    for engine in ("Aria", "MyISAM", "MEMORY"):
        execute(mariadb_dsn, f"CREATE OR REPLACE TABLE target {columns} ENGINE = {engine}")
        assert f"its engine is {engine}" in refusal(mariadb_dsn, sink())
    execute(mariadb_dsn, "ALTER TABLE target ENGINE = InnoDB")
    for protocol in PROTOCOLS:
        preflight(mariadb_dsn, sink(protocol))
        execute(mariadb_dsn, "ALTER TABLE target ENGINE = Aria")
        changed = pytest.raises(PreflightRefused, match="its engine is Aria")
        with sink(protocol).opened(context(mariadb_dsn)) as live, changed:
            live.prepare(epoch(), [SealedRows(ROWS)])
        assert count(mariadb_dsn) == 0
        execute(mariadb_dsn, "ALTER TABLE target ENGINE = InnoDB")
    execute(mariadb_dsn, "ALTER TABLE lockstep_marker ENGINE = MyISAM")
    assert "lockstep_marker is MyISAM" in refusal(mariadb_dsn, sink())
    execute(mariadb_dsn, "DROP TABLE lockstep_marker, target")
    assert "target is missing" in refusal(mariadb_dsn, sink())
    execute(mariadb_dsn, "CREATE VIEW target AS SELECT 1 AS id, 'a' AS name")
    assert "is a VIEW" in refusal(mariadb_dsn, sink())


def test_every_column_at_fault_is_named(mariadb_dsn: str) -> None:
    execute(mariadb_dsn, "CREATE TABLE target (id int, needed int NOT NULL, lockstep_epoch int)")
    told = refusal(mariadb_dsn, sink())
    for part in (
        "column id: the table has int(11)",
        "column name: the table lacks it",
        "column needed: it is NOT NULL",
    ):
        assert part in told
    assert "column lockstep_epoch: it has to be a plain bigint" in told


def test_a_table_is_owned_whichever_database_says_so(mariadb_server: MariaDbServer, mariadb_dsn: str) -> None:
    home = mariadb_dsn.rsplit("/", 1)[1]
    elsewhere, strange = (mariadb_server.create_database(f"{home}_{name}") for name in ("elsewhere", "strange"))
    try:
        execute(strange, "CREATE TABLE lockstep_target (relation text)")  # somebody else's
        preflight(mariadb_dsn, sink(create=True))
        given: dict[str, Any] = {"tables": {"rows": f"{home}.target"}}
        with pytest.raises(TargetOwned, match=rf"pipeline pipe,.* row of {home}\.lockstep_target"):
            preflight(elsewhere, sink(**given), pipeline="other")
        preflight(mariadb_dsn, sink(shared=True))
        preflight(elsewhere, sink(shared=True, **given), pipeline="other")
    finally:
        for name in ("elsewhere", "strange"):
            mariadb_server.drop_database(f"{home}_{name}")


@pytest.fixture
def loader(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Iterator[str]:
    """The DSN of a user who may do nothing."""
    mariadb_server.execute("CREATE USER 'loader'@'127.0.0.1' IDENTIFIED BY 'x'")
    yield f"mysql://loader:x@127.0.0.1:{mariadb_server.port}/{mariadb_dsn.rsplit('/', 1)[1]}"
    mariadb_server.execute("DROP USER 'loader'@'127.0.0.1'")


def grant(server: MariaDbServer, dsn: str, rights: str) -> None:
    server.execute(f"GRANT {rights} ON {dsn.rsplit('/', 1)[1]}.* TO 'loader'@'127.0.0.1'")


@pytest.mark.fault("J18")
def test_a_user_without_a_grant_is_told_so(mariadb_server: MariaDbServer, mariadb_dsn: str, loader: str) -> None:
    preflight(mariadb_dsn, sink(create=True))
    grant(mariadb_server, mariadb_dsn, "SELECT")
    assert "INSERT command denied" in refusal(loader, sink())
    for _ in range(9):  # a server tells of one thing at a time
        try:
            preflight(loader, sink())
            return
        except PreflightRefused as refused:
            [told] = re.findall(r"GRANT [^;]*;", str(refused))
            mariadb_server.execute(told)
    raise AssertionError("the grants that were told don't suffice")


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("C6")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_duplicate_key_is_rejected_whole_before_the_decision(mariadb_dsn: str, protocol: ProtocolName) -> None:
    execute(mariadb_dsn, "CREATE TABLE target (id bigint PRIMARY KEY, name text, lockstep_epoch bigint)")
    rows = pa.table({"id": [1, 2, 2, 3], "name": ["a", "b", "c", "d"]}, SCHEMA)
    with pytest.raises(SinkRejected, match=r"took 3 of 4 rows with 1 warnings: Duplicate entry for key 'PRIMARY'"):
        publish(mariadb_dsn, sink(protocol), rows)
    assert count(mariadb_dsn) == 0
    assert execute(mariadb_dsn, "XA RECOVER") == []


# --- room ------------------------------------------------------------------------------------------------------------


def test_a_target_without_room_is_told_and_shows_nothing(memory_folder: Path) -> None:
    if mariadbd() is None:
        pytest.skip(MISSING)
    settings: dict[str, str | int] = {"innodb_file_per_table": 0, "innodb_data_file_path": "ibdata1:12M"}
    many = pa.table({"id": range(50_000), "name": ["x" * 400] * 50_000}, SCHEMA)
    with MariaDbServer(memory_folder / "small", settings=settings).for_a_while() as server:
        dsn, given = server.create_database("full"), sink(create=True)
        with pytest.raises(TargetFull, match=r"is full.*make room"):
            publish(dsn, given, many)
        assert count(dsn) == 0
        server.restart({"innodb_data_file_path": "ibdata1:12M:autoextend"})
        assert publish(dsn, given, many) is Publication.COMMITTED
        assert count(dsn) == many.num_rows

"""MariaDbSink when servers are killed or strange, others have names like its own, and connections are encrypted."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lockstep.connections.mariadb.connection import MariaDbDatabase
from lockstep.connections.mariadb.dsn import parse_dsn
from lockstep.errors import SINK_ERRORS, InvalidPipeline, SinkUnavailable
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb.dialect import BranchName, xid
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch, expect_rows, opened, pending, prepare, publish, sweep
from stack.mariadb import MISSING, MariaDbServer, mariadbd
from stack.postgres import HOST
from tests.sinks.mariadb_target import MariaDbUnderTest, execute
from tests.sinks.one_sink import once

ROWS = 3000


@pytest.fixture
def target(mariadb_dsn: str) -> MariaDbUnderTest:
    target = MariaDbUnderTest(mariadb_dsn, "", "two_phase")
    with opened(target) as sink:
        sink.preflight({OUTPUT: SCHEMA})
    return target


@pytest.mark.fault("C11")
@pytest.mark.parametrize("protocol", ["two_phase", "write_ahead"])
def test_a_vote_outlives_a_killed_server_and_so_do_the_rows(
    mariadb_server: MariaDbServer, mariadb_dsn: str, protocol: ProtocolName
) -> None:
    target, wal = MariaDbUnderTest(mariadb_dsn, "", protocol), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    mariadb_server.kill()
    with pytest.raises(SinkUnavailable):
        once(target, vote, wal)
    mariadb_server.start()
    expect_rows(target)
    assert once(target, vote, wal) in (Publication.COMMITTED, Publication.SENT)
    mariadb_server.kill()
    mariadb_server.start()
    expect_rows(target, wal)
    assert once(target, vote, wal) is Publication.FOUND


@pytest.mark.fault("E7")
def test_a_branch_whose_preparing_session_still_lives_is_finished_by_ending_that_session(
    target: MariaDbUnderTest, mariadb_server: MariaDbServer
) -> None:
    names = BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), parse_dsn("by hand", target.dsn)["database"])
    handle = names.handle(1, 10, "a" * 12)
    with closing(mariadb_server.connect(names.database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 1)", (names.session(1, 10),))
        cursor.execute("XA START %s, %s", xid(handle))
        cursor.execute("INSERT INTO `rows` (id, lockstep_epoch) VALUES (1, 1)")
        cursor.execute("XA END %s, %s", xid(handle))
        cursor.execute("XA PREPARE %s, %s", xid(handle))
        assert [txn.handle for txn in sweep(target)] == [handle]
    assert pending(target) == []
    expect_rows(target)


def test_names_that_only_look_alike_are_never_touched(target: MariaDbUnderTest, mariadb_server: MariaDbServer) -> None:
    database = parse_dsn("by hand", target.dsn)["database"]
    ours = BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), database)
    other = [
        BranchName(SinkName(DEPLOYMENT, "pipe2", "warehouse"), database),
        BranchName(SinkName(DEPLOYMENT, "pipe", "warehouse"), f"{database}2"),
    ]
    mine = ours.handle(1, 3, "c" * 12)
    alike = [name.handle(1, 3, "c" * 12) for name in other]
    alike += [f"{mine}0", mine[:-1], mine.replace(":3:", ":03:"), mine.replace("lockstep", "Lockstep")]
    alike += [mine.replace(".warehouse", ".ware")]
    named = [xid(handle) for handle in alike] + [(mine.rpartition(":")[0], mine.rpartition(":")[2])]
    for number, name in enumerate(named):
        with closing(mariadb_server.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE alike_{number} (id int) ENGINE = InnoDB")
            cursor.execute("XA START %s, %s", name)
            cursor.execute(f"INSERT INTO alike_{number} VALUES (1)")
            cursor.execute("XA END %s, %s", name)
            cursor.execute("XA PREPARE %s, %s", name)
    assert pending(target) == [] and sweep(target) == []
    publish(target, epoch(token=11), prepare(target, epoch(token=11), sealed(5)), sealed(5))
    left = mariadb_server.execute("XA RECOVER")
    assert sorted((row[3][: row[1]].decode(), row[3][row[1] :].decode()) for row in left) == sorted(named)


def test_the_longest_names_fit_and_are_read_back() -> None:
    names = BranchName(SinkName(DEPLOYMENT, "p" * 40, "s" * 40), "d" * 64)
    last = (1 << 63) - 1
    handle = names.handle(last, last, "f" * 64)
    assert all(len(part) <= 64 for part in xid(handle)) and len(names.session(last, last)) <= 64
    txn = names.parse(handle)
    assert txn is not None and (txn.epoch, txn.token, txn.manifest) == (last, last, "f" * 12)


def test_airflows_own_uris_are_read() -> None:
    packed = "mysql://u:p%40ss@db.example:3307/d?ssl=%7B%22ca%22%3A+%22%2Fca.pem%22%7D&charset=utf8mb4&local_infile=1"
    found = parse_dsn("warehouse", packed)
    assert (found["user"], found["password"], found["host"], found["port"]) == ("u", "p@ss", "db.example", 3307)
    assert found["ssl_ca"] == "/ca.pem" and found["ssl_verify_cert"] and found["ssl_verify_identity"]
    extra = parse_dsn("warehouse", "mysql://u@h/d?__extra__=%7B%22unix_socket%22%3A+%22%2Fs.sock%22%7D")
    assert extra["unix_socket"] == "/s.sock"
    with pytest.raises(InvalidPipeline, match="ssl_mode"):
        parse_dsn("warehouse", "mysql://u@h/d?ssl_mode=VERIFY_IDENTITY")


@pytest.mark.timeout(30)
def test_a_server_that_takes_a_connection_and_says_nothing_is_given_up(mariadb_dsn: str) -> None:
    with socket.create_server((HOST, 0)) as silent:
        dsn = f"mysql://u:p@{HOST}:{silent.getsockname()[1]}/d?connect_timeout=1"
        with pytest.raises(SinkUnavailable, match="timed out"):
            MariaDbDatabase("sink s", "warehouse", dsn, 1.0, SINK_ERRORS).connect()
    later = f"{mariadb_dsn}?connect_timeout=1"
    database = MariaDbDatabase("sink s", "warehouse", later, 1.0, SINK_ERRORS)
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT SLEEP(1.2)") == 1, "an answer may take longer than the greeting"


def test_the_server_gets_no_file_that_it_asks_for(mariadb_dsn: str) -> None:
    execute(mariadb_dsn, "CREATE TABLE stolen (line text)")
    sink = MariaDbSink("s", tables={OUTPUT: "rows"}, connection="warehouse")
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {"warehouse": mariadb_dsn})) as live:
        database = live._target.dialect.database  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="local_infile"), database.outside_transaction() as cursor:
            cursor.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE stolen")
    assert execute(mariadb_dsn, "SELECT count(*) FROM stolen") == [(0,)]


# --- TLS -------------------------------------------------------------------------------------------------------------


def certificate(folder: Path, name: str, address: str) -> tuple[Path, Path]:
    """A certificate for `address` that is its own authority, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    subprocess.run(
        [*made, "-addext", f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    key.chmod(0o644)  # the server's system user reads it, and nothing depends on it
    return cert, key


def presenting(certificate: tuple[Path, Path]) -> dict[str, str | int]:
    return {"ssl_cert": str(certificate[0]), "ssl_key": str(certificate[1])}


def cipher(dsn: str) -> str:
    database = MariaDbDatabase("sink tls", "warehouse", dsn, 1.0, SINK_ERRORS)
    try:
        with database.transaction("asking for the cipher") as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            [(_, name)] = cursor.fetchall()
            return str(name)
    finally:
        database.close()


def test_a_connection_is_encrypted_where_the_server_can_and_checked_where_it_is_asked_to(memory: Path) -> None:
    if mariadbd() is None:
        pytest.skip(MISSING)
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    right, stranger = (certificate(memory, name, "127.0.0.1") for name in ("right", "stranger"))
    elsewhere, options = certificate(memory, "elsewhere", "127.0.0.2"), memory / "login.cnf"
    memory.chmod(0o711)  # the server's system user comes by
    with MariaDbServer(memory / "tls", settings=presenting(right)).for_a_while() as server:
        dsn = server.dsn()
        assert cipher(dsn) != ""
        assert cipher(f"{dsn}?ssl_disabled=true") == ""
        assert cipher(f"{dsn}?ssl_ca={right[0]}") != ""
        with pytest.raises(SinkUnavailable, match="certificate verify failed"):
            cipher(f"{dsn}?ssl_ca={stranger[0]}")
        login = urlsplit(dsn)
        options.write_text(f"[client]\npassword={login.password}\n")
        without = f"mysql://{login.username}@127.0.0.1:{server.port}/mysql"
        with pytest.raises(SinkUnavailable, match="Access denied"):
            cipher(without)
        assert cipher(f"{without}?read_default_file={options}") != ""
        server.restart(presenting(elsewhere))
        with pytest.raises(SinkUnavailable, match="IP address mismatch"):
            cipher(f"{dsn}?ssl_ca={elsewhere[0]}")

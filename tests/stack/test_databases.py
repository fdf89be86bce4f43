"""The embedded databases: they survive kills, keep their passwords to themselves, and live where their user can be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

from stack.errors import PortInUse, StackError
from stack.mariadb import MariaDbServer
from stack.postgres import DEFAULTS, PostgresServer


@pytest.fixture(scope="module")
def own(memory_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    server = PostgresServer(memory_folder / "own", passfile=passfile, template=server_template)
    yield server
    server.remove()


@pytest.fixture
def server(own: PostgresServer) -> PostgresServer:
    """Running, with the default settings: a test that ends it, or changes them, needs to do no more."""
    own.settings = dict(DEFAULTS)
    own.start()
    return own


def value_of(dsn: str, query: str) -> object:
    with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        (value,) = cursor.fetchone() or (None,)
        return value


@pytest.mark.fault("C11")
def test_a_prepared_transaction_outlives_a_killed_server(server: PostgresServer) -> None:
    connection = psycopg2.connect(server.dsn())
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("BEGIN; CREATE TABLE kept (id int); PREPARE TRANSACTION 'kept'")
        assert cursor.statusmessage == "PREPARE TRANSACTION"
    server.kill()
    assert server.pid is None
    server.start()
    running = server.pid
    PostgresServer(server.home, passfile=server.passfile).start()
    assert server.pid == running, "a second start leaves it alone"
    assert value_of(server.dsn(), "SELECT gid FROM pg_prepared_xacts") == "kept"
    with closing(psycopg2.connect(server.dsn())) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("ROLLBACK PREPARED 'kept'")


def test_a_pid_file_that_names_another_process_is_not_believed(server: PostgresServer) -> None:
    server.stop("immediate")
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data}\n0\n")
    assert server.pid is None
    (server.data / "postmaster.pid").unlink()


def test_nobody_gets_in_without_the_password(server: PostgresServer) -> None:
    assert stat.S_IMODE(server.passfile.stat().st_mode) == 0o600
    with pytest.raises(psycopg2.OperationalError, match="no password supplied"):
        psycopg2.connect(server.dsn(), passfile="/nowhere")


def test_a_taken_port_and_a_wrong_setting_are_told_in_one_line(
    server: PostgresServer, memory_folder: Path, server_template: PostgresServer
) -> None:
    with pytest.raises(PortInUse, match=str(server.port)):
        PostgresServer(memory_folder / "second", port=server.port, template=server_template).start()
    with pytest.raises(StackError, match="did not start") as refused:
        server.restart(settings={"no_such_setting": 1})
    assert "\n" not in str(refused.value)


def test_a_home_closed_to_the_system_user_links_to_a_place_that_is_not(
    tmp_path: Path, passfile: Path, server_template: PostgresServer
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    tmp_path.chmod(0o700)
    assert PostgresServer(tmp_path / "closed").pid is None  # asked before there is a home
    server = PostgresServer(tmp_path / "closed", passfile=passfile, template=server_template)
    try:
        server.start()
        assert value_of(server.dsn(), "SELECT 1") == 1
        assert (server.home / "data").resolve() == server.data != server.home / "data"
    finally:
        server.remove()
    assert not server.place.exists()


# --- MariaDB ---


def test_a_prepared_branch_outlives_a_killed_server(mariadb_server: MariaDbServer, mariadb_dsn: str) -> None:
    database = mariadb_dsn.rpartition("/")[2]
    connection = mariadb_server.connect(database)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (id int) ENGINE = InnoDB")
        for statement in ("XA START 'kept'", "INSERT INTO kept VALUES (1)", "XA END 'kept'", "XA PREPARE 'kept'"):
            cursor.execute(statement)
    mariadb_server.kill()
    assert mariadb_server.pid is None
    mariadb_server.start()
    assert [row[3] for row in mariadb_server.execute("XA RECOVER")] == [b"kept"]
    mariadb_server.execute("XA COMMIT 'kept'")
    assert mariadb_server.execute(f"SELECT id FROM {database}.kept") == [(1,)]
    assert mariadb_server.execute("SELECT @@bind_address") == [("127.0.0.1",)]
    password = urlsplit(mariadb_server.dsn()).password or ""
    assert len(password) > 20 and password not in mariadb_server.log.read_text()

"""The embedded server: it survives crashes, keeps its password to itself, and lives where its user can reach it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from stack.errors import PortInUse, StackError
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
    assert value_of(server.dsn(), "SELECT gid FROM pg_prepared_xacts") == "kept"
    with closing(psycopg2.connect(server.dsn())) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("ROLLBACK PREPARED 'kept'")


def test_it_is_durable_and_a_restart_changes_settings_and_keeps_the_port(server: PostgresServer) -> None:
    dsn = server.dsn()
    assert (value_of(dsn, "SHOW fsync"), value_of(dsn, "SHOW max_prepared_transactions")) == ("on", "64")
    server.restart("immediate", settings={"max_prepared_transactions": 0})
    assert value_of(dsn, "SHOW max_prepared_transactions") == "0"
    server.stop("immediate")


def test_a_second_start_leaves_the_running_server_alone(server: PostgresServer) -> None:
    before = server.pid
    PostgresServer(server.home, passfile=server.passfile).start()
    assert server.pid == before


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


def test_a_half_made_data_folder_is_made_again(memory_folder: Path, server_template: PostgresServer) -> None:
    home = memory_folder / "half"
    (home / "data.unfinished" / "base").mkdir(parents=True)
    server = PostgresServer(home, template=server_template)
    try:
        server.start()
        assert server.pid is not None
    finally:
        server.remove()


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

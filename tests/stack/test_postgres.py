"""The embedded server: it survives crashes, keeps its password to itself, and lives where its user can reach it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from stack.errors import PortInUse, StackError
from stack.postgres import PostgresServer


@pytest.fixture
def server(servers_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    server = PostgresServer(servers_folder / "own", passfile=passfile, template=server_template)
    server.start()
    yield server
    server.remove()


def value_of(dsn: str, query: str) -> object:
    connection = psycopg2.connect(dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(query)
            (value,) = cursor.fetchone() or (None,)
            return value
    finally:
        connection.close()


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


def test_durability_is_on_and_two_phase_commit_possible(server: PostgresServer) -> None:
    assert value_of(server.dsn(), "SHOW fsync") == "on"
    assert value_of(server.dsn(), "SHOW max_prepared_transactions") == "64"


def test_a_restart_changes_settings_and_keeps_the_port(server: PostgresServer) -> None:
    dsn = server.dsn()
    server.restart("immediate", settings={"max_prepared_transactions": 0})
    assert value_of(dsn, "SHOW max_prepared_transactions") == "0"


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
    server: PostgresServer, servers_folder: Path, server_template: PostgresServer
) -> None:
    with pytest.raises(PortInUse, match=str(server.port)):
        PostgresServer(servers_folder / "second", port=server.port, template=server_template).start()
    with pytest.raises(StackError, match="did not start") as refused:
        server.restart(settings={"no_such_setting": 1})
    assert "\n" not in str(refused.value)


def test_a_half_made_data_folder_is_made_again(servers_folder: Path, server_template: PostgresServer) -> None:
    home = servers_folder / "half"
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

"""The private MariaDB server: it survives kills, listens on the loopback, and its log holds no password."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stack.errors import StackError
from stack.mariadb import MariaDbServer


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


def test_a_second_start_leaves_the_running_server_alone(mariadb_server: MariaDbServer) -> None:
    before = mariadb_server.pid
    mariadb_server.start()
    assert mariadb_server.pid == before is not None


def test_it_listens_on_the_loopback_and_keeps_its_password_out_of_the_log(mariadb_server: MariaDbServer) -> None:
    assert mariadb_server.execute("SELECT @@bind_address") == [("127.0.0.1",)]
    password = urlsplit(mariadb_server.dsn()).password or ""
    assert len(password) > 20 and password not in mariadb_server.log.read_text()


def test_a_setting_that_the_server_does_not_know_is_told(memory: Path) -> None:
    memory.chmod(0o711)
    server = MariaDbServer(memory / "odd", settings={"no_such_setting": 1})
    try:
        with pytest.raises(StackError, match="no_such_setting"):
            server.start()
    finally:
        server.remove()

"""A private MariaDB server from the machine's own mariadbd, for tests, benchmarks and a first try.

It listens on the loopback and on a socket in its folder, and knows one login with a random password. MariaDB refuses
to run as root, so root hands the data folder and the server to a system user of its own.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pymysql

from stack.errors import StackError
from stack.postgres import HOST, free_port
from stack.secret_file import write_secret
from stack.system_user import SystemUser
from stack.throwaway import ThrowawayServer

LOGIN = "lockstep"
START_SECONDS = 60
STOP_SECONDS = 60
MISSING = "mariadbd is not installed: apt-get install --no-install-recommends mariadb-server"

Setting = str | int

DEFAULTS: Mapping[str, Setting] = {
    "bind_address": HOST,
    "skip_name_resolve": 1,
    "character_set_server": "utf8mb4",
    "default_time_zone": "+00:00",
    "max_connections": 200,
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "48M",
    "innodb_buffer_pool_dump_at_shutdown": 0,
    "innodb_buffer_pool_load_at_startup": 0,
}

_USER = SystemUser("lockstep_mariadb", "MariaDB")


def mariadbd() -> str | None:
    """The server's program, None where it isn't installed."""
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class MariaDbServer(ThrowawayServer):
    """One server with data, log and settings under `home`, which the system user has to be able to enter."""

    def __init__(self, home: Path, *, port: int = 0, settings: Mapping[str, Setting] | None = None) -> None:
        """`port` 0 takes a free one and keeps it."""
        self.home = home.absolute()
        self.settings: dict[str, Setting] = {**DEFAULTS, **(settings or {})}
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    # --- where things are ---------------------------------------------------------------------------------------------

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "mariadb.log"

    @property
    def port(self) -> int:
        return self._port

    def dsn(self, database: str = "mysql") -> str:
        """URI with the login, which exists on this server alone."""
        return f"mysql://{LOGIN}:{self._password}@{HOST}:{self.port}/{database}"

    def connect(self, database: str | None = None) -> pymysql.connections.Connection[Any]:
        """An autocommit connection of the administrator."""
        return pymysql.connect(
            host=HOST,
            port=self.port,
            user=LOGIN,
            password=self._password,
            database=database,
            autocommit=True,
            ssl_disabled=True,
            charset="utf8mb4",
        )

    # --- life ---------------------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Make the data folder, once. A half-made one of an earlier try is thrown away."""
        if self._password_file.exists() and self.data.exists():
            return
        self.home.mkdir(parents=True, exist_ok=True)
        unfinished = self.home / "data.unfinished"
        for leftover in (unfinished, self.data):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        _USER.give(unfinished)
        options = ["--no-defaults", f"--datadir={unfinished}", "--auth-root-authentication-method=socket"]
        made = subprocess.run(
            ["mariadb-install-db", *options, "--skip-test-db"],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            **_USER.for_process(),
        )
        if made.returncode:
            raise StackError(f"mariadb-install-db failed: {(made.stderr or made.stdout).strip()[-300:]}")
        unfinished.rename(self.data)
        write_secret(self._password_file, secrets.token_urlsafe(24))

    def start(self) -> None:
        """Start the server, if it isn't running, and wait until it takes connections."""
        program = mariadbd()
        if program is None:
            raise StackError(MISSING)
        self.init()
        if self.pid is not None:
            return
        self._port = free_port(self._port)
        self._write_settings()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, f"--defaults-file={self._settings_file}"],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                **_USER.for_process(),
            )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop the server in order, if it runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL the server, and wait until it is gone: what it had acknowledged has to be there after a start."""
        self._end(signal.SIGKILL)

    def restart(self, settings: Mapping[str, Setting] | None = None) -> None:
        """Stop and start on the same port, with changed settings where given."""
        self.stop()
        self.settings.update(settings or {})
        self.start()

    def remove(self) -> None:
        """Stop the server and delete everything it has."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs; a dead server's pid file, or a reused pid, counts as none."""
        try:
            pid = int((self.data / "mariadb.pid").read_text())
            return pid if f"--defaults-file={self._settings_file}" in psutil.Process(pid).cmdline() else None
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None

    # --- databases ----------------------------------------------------------------------------------------------------

    def create_database(self, name: str) -> str:
        """Create `name`, unless it exists; returns its DSN."""
        self.execute(f"CREATE DATABASE IF NOT EXISTS {_quoted(name)}")
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop it, after its sessions are ended and everything is rolled back that is prepared on this server: the
        server doesn't tell which database a branch belongs to."""
        for (session,) in self.execute("SELECT id FROM information_schema.processlist WHERE db = %s", name):
            with suppress(pymysql.MySQLError):
                self.execute(f"KILL {int(session)}")
        for _, first, _, branch in self.execute("XA RECOVER"):
            with suppress(pymysql.MySQLError):
                self.execute("XA ROLLBACK %s, %s", branch[:first].decode(), branch[first:].decode())
        self.execute(f"DROP DATABASE IF EXISTS {_quoted(name)}")

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement as the administrator."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, parameters or None)
                return list(cursor.fetchall())
        finally:
            connection.close()

    # --- files and processes of a start -------------------------------------------------------------------------------

    @property
    def _password(self) -> str:
        return self._password_file.read_text()

    @property
    def _password_file(self) -> Path:
        return self.home / "password"

    @property
    def _settings_file(self) -> Path:
        return self.home / "lockstep.cnf"

    def _write_settings(self) -> None:
        first = self.home / "login.sql"
        write_secret(first, _login_of(self._password))
        self.log.touch(mode=0o600)
        for path in (first, self.log):
            _USER.give(path)
        temporary = self.home / "tmp"  # its own: a server that starts deletes other servers' tables in a shared one
        temporary.mkdir(exist_ok=True)
        _USER.give(temporary)
        places = {
            "datadir": self.data,
            "tmpdir": temporary,
            "socket": self.home / "mariadb.sock",
            "pid_file": self.data / "mariadb.pid",
            "init_file": first,
            "port": self._port,
        }
        lines = [f"{name} = {value}" for name, value in {**self.settings, **places}.items()]
        self._settings_file.write_text("\n".join(["[mariadbd]", *lines, ""]))
        _USER.give(self._settings_file)
        _USER.give(self.home)  # it makes its socket there

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except pymysql.MySQLError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise StackError(f"MariaDB did not start on port {self.port}: {self._last_error()}") from error
                time.sleep(0.02)

    def _end(self, by: signal.Signals) -> None:
        if (pid := self.pid) is None:
            return
        server = psutil.Process(pid)
        server.send_signal(by)
        if self._process is not None and self._process.pid == pid:
            self._process.wait(STOP_SECONDS)  # our own child: reap it
        else:
            psutil.wait_procs([server], STOP_SECONDS)
        (self.data / "mariadb.pid").unlink(missing_ok=True)

    def _last_error(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line for line in lines if "[ERROR]" in line and not line.endswith("Aborting")]
        return (telling or lines or ["it wrote no log"])[-1]


def _login_of(password: str) -> str:
    """What the server runs at each start: one statement a line. The password stands there as a hash only."""
    digest = hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()  # noqa: S324 - its protocol's
    user = f"'{LOGIN}'@'{HOST}'"
    return (
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY PASSWORD '*{digest}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION;\n"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

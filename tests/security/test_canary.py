"""Passwords are planted in every connection; then everything that anybody is shown is searched for them."""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg2
import pytest
import typer.main
from psycopg2 import sql
from psycopg2.extensions import make_dsn, parse_dsn
from typer.core import TyperGroup
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.epoch import RunKey
from stack.home import import_path
from stack.java import java_home
from stack.postgres import PostgresServer
from tests.crash.world import World, make_world
from tests.sampling import Sampling


@dataclass(frozen=True)
class Canary:
    """A password, and the word between its special characters: any part that leaks has it, however it is quoted."""

    word: str = field(default_factory=lambda: f"canary{secrets.token_hex(6)}")

    @property
    def password(self) -> str:
        return self.word.join(["", "@", ":", "/", "%", "'", "\\", " ", "#", "?", "&", '"', ""])

    def dsn(self, admin: str, user: str) -> str:
        return str(make_dsn(**{**parse_dsn(admin), "user": user, "password": self.password}))

    def uri(self, admin: str, user: str) -> str:
        parts = parse_dsn(admin)
        where = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
        return f"postgresql://{user}:{quote(self.password, safe='')}@{where}"

    def told(self, text: str) -> list[str]:
        """The lines that tell it."""
        return [line for line in text.splitlines() if self.word in line]

    def told_in_files(self, folders: Iterable[Path]) -> list[str]:
        word = self.word.encode()
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return [str(path) for path in files if word in path.read_bytes()]

    def told_in_tables(self, admin: str) -> list[str]:
        """Rows of any table of any schema but the server's own."""
        found = []
        with closing(psycopg2.connect(admin)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> ALL (%s)",
                (["pg_catalog", "information_schema"],),
            )
            for schema, table in cursor.fetchall():
                name = sql.Identifier(schema, table)
                cursor.execute(sql.SQL("SELECT row::text FROM {} AS row").format(name))
                found += [f"{table}: {row}" for (row,) in cursor.fetchall() if self.word in row]
        return found


@contextmanager
def login(server: PostgresServer, admin: str, user: str, canary: Canary) -> Iterator[None]:
    """A superuser of this name with the canary for a password, as long as this lasts."""
    with closing(psycopg2.connect(admin)) as connection, connection, connection.cursor() as cursor:
        role = sql.Identifier(user)
        cursor.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(role, sql.Literal(canary.password)))
    yield
    server.start()
    with closing(psycopg2.connect(admin)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        for (gid,) in cursor.fetchall():
            cursor.execute("ROLLBACK PREPARED %s", (gid,))
        cursor.execute(sql.SQL("REASSIGN OWNED BY {0} TO CURRENT_USER; DROP ROLE {0}").format(role))


@contextmanager
def watched_arguments() -> Iterator[set[str]]:
    """Every command line that any process of this machine had meanwhile."""
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    try:
                        seen.add(Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                    except OSError:  # it ended
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


REASON = ("--reason", "a test")
#: every command, as it succeeds or fails in a world with one published, one decided and one undecided epoch
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("status",): ("numbers",),
    ("verify",): ("numbers",),
    ("recover",): ("--recovery-grace", "7200"),
    ("abort",): ("numbers", "3", *REASON),
    ("replan",): ("numbers", "3", *REASON),
    ("redefine",): ("numbers", *REASON),
    ("void",): ("numbers", "3", *REASON),
    ("release",): ("numbers", "3", "--manifest", "0" * 12, *REASON),
    ("forget",): ("numbers", *REASON),
    ("resolve",): ("numbers", "2", "warehouse", "not-applied", *REASON),
    ("restage",): ("numbers", "2", "--spark", "sc://127.0.0.1:1", *REASON),
    ("renumber",): ("numbers", *REASON),
    ("override",): ("numbers", "warehouse", "lock_timeout=3", *REASON),
    ("prune",): ("--keep", "90", "--dry-run"),
    ("savepoint", "export"): ("numbers", "--to", "/nowhere/at/all"),
    ("savepoint", "start"): ("numbers", "--from", "/nowhere/at/all"),
    ("compact",): ("numbers", "warehouse"),
    ("wal", "list"): ("numbers",),
    ("wal", "show"): ("numbers", "2", "numbers", "--where", "number < 3"),
    ("quarantine",): ("numbers", "2"),
    ("diff",): ("numbers", "2", "3", "numbers"),
    ("rebuild",): ("numbers", "--plan"),
    ("restate",): ("numbers", "--epoch", "1", "--plan", *REASON),
    ("restore",): ("numbers", "--epoch", "1", "--plan", *REASON),
    ("doctor",): (),
    ("exporter",): ("--once",),
    ("migrate",): (),
    ("env",): (),
}


@pytest.fixture
def canary() -> Canary:
    return Canary()


@pytest.fixture
def logins(
    canary: Canary, ledger_server: PostgresServer, empty_dsn: str, warehouse_server: PostgresServer, warehouse_dsn: str
) -> Iterator[None]:
    with (
        login(ledger_server, empty_dsn, "canary", canary),
        login(warehouse_server, warehouse_dsn, "canary", canary),
    ):
        yield


@pytest.fixture
def world(logins: None, canary: Canary, empty_dsn: str, warehouse_dsn: str, tmp_path: Path) -> World:
    made = make_world(canary.dsn(empty_dsn, "canary"), canary.uri(warehouse_dsn, "canary"), tmp_path, "two_phase")
    for number, last in enumerate(("cleanup", "commit", "prepare.warehouse")):
        made.run_until(RunKey("canary", str(number)), number, last)
    made.expire_leases()
    return made


Ways = dict[str, dict[str, str]]


@pytest.fixture
def ways(world: World, canary: Canary, empty_dsn: str, warehouse_dsn: str) -> Ways:
    """Right and wrong connections, each with the password somewhere in it."""
    right = {
        "LOCKSTEP_LEDGER": world.ledger_dsn,
        "LOCKSTEP_WAREHOUSE": world.warehouse_dsn,
        "LOCKSTEP_STAGING": str(world.staging_folder),
    }
    unescaped = f"postgresql://canary:{canary.password}@127.0.0.1:1/nowhere"
    return {
        "right": right,
        "no ledger": {**right, "LOCKSTEP_LEDGER": canary.dsn("host=127.0.0.1 port=1 dbname=nowhere", "canary")},
        "no warehouse": {**right, "LOCKSTEP_WAREHOUSE": canary.dsn("host=127.0.0.1 port=1 dbname=nowhere", "canary")},
        "a stranger in the ledger": {**right, "LOCKSTEP_LEDGER": canary.dsn(empty_dsn, "stranger")},
        "a stranger in the warehouse": {**right, "LOCKSTEP_WAREHOUSE": canary.uri(warehouse_dsn, "stranger")},
        "an unescaped ledger": {**right, "LOCKSTEP_LEDGER": unescaped},
        "an unescaped warehouse": {**right, "LOCKSTEP_WAREHOUSE": unescaped},
        "a login in the staging": {**right, "LOCKSTEP_STAGING": f"s3://key:{canary.password}@bucket/prefix"},
    }


def commands() -> set[tuple[str, ...]]:
    """The names of all that the command line can do."""
    found: set[tuple[str, ...]] = set()
    lockstep = typer.main.get_command(app)
    assert isinstance(lockstep, TyperGroup)
    for name, command in lockstep.commands.items():
        below = getattr(command, "commands", None)
        found |= {(name, inner) for inner in below} if below else {(name,)}
    return found


def test_every_command_is_searched() -> None:
    assert commands() == set(COMMANDS)


def test_no_command_tells_a_password(
    ways: Ways,
    canary: Canary,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    sampling: Sampling,
) -> None:
    told, codes = [], set()
    always = ["right", "no ledger"]
    for way in [*always, *sampling.sample([way for way in ways if way not in always], 2)]:
        environment = ways[way]
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for command, arguments in COMMANDS.items():
            for form in ([], ["--json"]):
                with caplog.at_level(logging.DEBUG):
                    done = CliRunner().invoke(app, [*command, *arguments, *form])
                said = f"{done.output}\n{done.stderr}\n{done.exception!r}"
                told += [f"{way}: {' '.join(command)}: {line}" for line in canary.told(said)]
                codes.add(done.exit_code)
    assert told == []
    assert canary.told(caplog.text) == []
    assert {0, 1, 75} <= codes, "it met no success, or no failure"


PIPELINE = """
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg2

from lockstep import Pipeline
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import PostgresTableSource


# while the task runs, the ledger's password is rotated, and whoever is connected is sent away
def copied(inputs):
    secrets = Path(os.environ["LOCKSTEP_HOME"], "secrets.json")
    known = json.loads(secrets.read_text())
    found = known["lockstep_ledger"]
    if "rotated" not in found["password"]:
        where = {"host": found["host"], "port": found["port"], "dbname": found["schema"], "user": found["login"]}
        with psycopg2.connect(**where, password=found["password"]) as connection, connection.cursor() as cursor:
            found["password"] += "rotated"
            cursor.execute("ALTER ROLE canary PASSWORD %s", (found["password"],))
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE usename = 'canary' AND pid <> pg_backend_pid()"
            )
        secrets.write_text(json.dumps(known))

    def look(batches):
        Path(os.environ["LOCKSTEP_HOME"], f"names-{os.getpid()}.json").write_text(json.dumps(sorted(os.environ)))
        yield from batches

    list(look([]))
    events = inputs["events"]
    return {"events": events.mapInArrow(look, events.schema)}


pipeline = Pipeline(
    name="canary",
    sources={"events": PostgresTableSource("events", connection="shop", order_by="id", settle=timedelta(0))},
    transform=copied,
    sinks=[
        PostgresSink("warehouse", tables={"events": "public.copied"}, connection="warehouse", create=True),
        FileSink("files", output="events", path="out"),
    ],
)
"""
DAG = """
# an Airflow DAG
import os
import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace

import psycopg2

from lockstep import epoch_dag
from canary_pipeline import pipeline

dag = epoch_dag(pipeline, start_date=datetime(2026, 1, 1, tzinfo=UTC), default_args={"retries": 0})



# stands for what signs the tokens of RDS: the warehouse's is the role's password
class AwsBaseHook:
    def __init__(self, aws_conn_id, client_type):
        signed = psycopg2.extensions.parse_dsn(os.environ["AIRFLOW_CONN_SHOP"])["password"]
        self.conn = SimpleNamespace(generate_db_auth_token=lambda *asked: signed)


cloud = ModuleType("airflow.providers.amazon.aws.hooks.base_aws")
cloud.AwsBaseHook = AwsBaseHook
sys.modules[cloud.__name__] = cloud

if __name__ == "__main__":
    print("first ended", dag.test().state)
    with psycopg2.connect(os.environ["AIRFLOW_CONN_SHOP"]) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO events VALUES (51, 'one more')")
        cursor.execute("ALTER TABLE copied ADD CHECK (id < 51)")  # prepare fails
    print("second ended", dag.test().state)
"""


class Airflow:
    """A user's folder, and an Airflow without a scheduler that runs one DAG in a process of its own."""

    def __init__(self, folder: Path, connections: dict[str, str]) -> None:
        self.folder, self.said = folder, ""
        (folder / "canary_pipeline.py").write_text(PIPELINE)
        (folder / "dags").mkdir()
        (folder / "dags" / "canary.py").write_text(DAG)
        inherited = {name: value for name, value in os.environ.items() if name != "PGPASSFILE"}
        self._environment = {
            **inherited,
            **{f"AIRFLOW_CONN_{name.upper()}": value for name, value in connections.items()},
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "lockstep=DEBUG",  # Airflow's own DEBUG tells what it masks
            "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
            "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(folder / "secrets.json")}),
            "AIRFLOW__CORE__FERNET_KEY": "",  # named, as it is for any worker
            "LOCKSTEP_LEDGER": "postgresql://canary@127.0.0.1/nowhere",
            "LOCKSTEP_HOME": str(folder),
            "LOCKSTEP_STAGING": str(folder / "staging"),
            "PYTHONPATH": os.pathsep.join([str(folder), import_path()]),
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.said += done.stdout
        return done.stdout


@pytest.fixture
def shop(logins: None, warehouse_dsn: str) -> str:
    with closing(psycopg2.connect(warehouse_dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE events (id bigint PRIMARY KEY, note text)")
        cursor.execute("INSERT INTO events SELECT n, 'note ' || n FROM generate_series(1, 50) n")
    return warehouse_dsn


def connection_of(dsn: str) -> dict[str, object]:
    """An Airflow Connection without a password."""
    parts = psycopg2.extensions.parse_dsn(dsn)
    where = {"host": parts["host"], "port": int(parts["port"]), "schema": parts["dbname"]}
    return {"conn_type": "postgres", "login": "canary", **where}


@pytest.mark.slow
@pytest.mark.fault("R8")
def test_no_password_is_told_anywhere(canary: Canary, shop: str, empty_dsn: str, tmp_path: Path) -> None:
    """A password that a secrets backend gives and that is rotated meanwhile, one that is a token, and one in a URI."""
    ledger = {**connection_of(empty_dsn), "password": canary.password}
    (tmp_path / "secrets.json").write_text(json.dumps({"lockstep_ledger": ledger}))
    airflow = Airflow(
        tmp_path,
        {
            "warehouse": json.dumps({**connection_of(shop), "extra": {"iam": True}}),
            "shop": canary.uri(shop, "canary"),
            "spark": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        },
    )
    airflow.run("-m", "airflow", "db", "migrate")
    with watched_arguments() as arguments:
        airflow.run("dags/canary.py")
    assert "first ended success" in airflow.said, airflow.said[-5000:]
    assert "second ended failed" in airflow.said, airflow.said[-5000:]
    assert any("stage_epoch.py" in line for line in arguments), "no driver was seen"
    assert canary.told_in_files([tmp_path]), "the search doesn't find the secrets"
    assert "rotated" in (tmp_path / "secrets.json").read_text(), "nothing was rotated"
    (tmp_path / "secrets.json").unlink()
    looks = [set(json.loads(path.read_text())) for path in tmp_path.glob("names-*.json")]
    assert len(looks) >= 2, "the driver, and a worker of its functions"
    for names in looks:
        assert not [name for name in names if name.startswith(("AIRFLOW_CONN_", "AIRFLOW__"))]
        assert "LOCKSTEP_LEDGER" not in names and {"LOCKSTEP_SHOP", "AIRFLOW_CTX_DAG_ID"} <= names
    assert list((tmp_path / "staging").rglob("_manifest.json")), "no manifest was left to look at"
    told = {
        "logs": canary.told(airflow.said),
        "files, XCom": canary.told_in_files([tmp_path]),
        "arguments": canary.told("\n".join(arguments)),
        "ledger": canary.told_in_tables(empty_dsn),
        "warehouse": canary.told_in_tables(shop),
    }
    assert not any(told.values()), told

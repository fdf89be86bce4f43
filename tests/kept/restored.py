"""A kept deployment that stands again: on other servers, in another folder, under today's code."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import psycopg2.extras
import pyarrow.parquet as pq
import pymysql
import pymysql.cursors

from lockstep import files, recover
from lockstep.epoch import Epoch
from lockstep.errors import SourceChanged
from lockstep.ledger import migrate
from lockstep.protocol.recover import RecoveryReport
from stack.kafka import KafkaBroker
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.kept.deployment import Deployment, Row, execute, told
from tests.kept.topics import restore, values
from tests.sinks.append.receiving import Receiver, receiving
from tests.sinks.kafka_admin import cluster_of, delete

HERE = Path(__file__).parent
HOME = "@HOME@"
KEPT = sorted(path.parent.name for path in HERE.glob("*/facts.json"))
DECIDED = ("committed", "published", "cleaned")
_NONE = timedelta(0)
_ACCEPT = re.compile(r"set accept='(.+)'")


@dataclass
class Restored:
    """The deployment, what was known of it when it was kept, and what has been done to it since."""

    name: str
    deployment: Deployment
    facts: Mapping[str, Mapping[str, Any]]
    receivers: Mapping[str, Receiver]
    stdout: Path
    accept: tuple[str, ...] = ()
    reports: dict[str, list[RecoveryReport]] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.deployment.home

    def kept(self, pipeline: str) -> dict[int, Any]:
        """What was known of each epoch, by number."""
        return {int(id): epoch for id, epoch in self.facts[pipeline].items()}

    def recovered(self, pipeline: str) -> list[RecoveryReport]:
        """The reports of two rounds of recovery, which are done once."""
        if pipeline not in self.reports:
            self.reports[pipeline] = [self._recover(pipeline) for _ in range(2)]
        return self.reports[pipeline]

    def _recover(self, pipeline: str) -> RecoveryReport:
        with self.to_stdout():
            return recover(
                pipeline,
                ledger=self.deployment.ledger_dsn,
                staging=self.deployment.staging,
                connections=self.deployment.connections,
                recovery_grace=_NONE,
            )

    @contextmanager
    def to_stdout(self) -> Iterator[None]:
        with self.stdout.open("a") as file, contextlib.redirect_stdout(file):
            yield

    def begin(self, pipeline: str, number: int) -> Epoch:
        """As a person does it: what a source of a restored database asks to be told is looked at and told."""
        while True:
            try:
                return self.deployment.move(pipeline, number, "begin")
            except SourceChanged as error:
                found = _ACCEPT.search(str(error))
                assert found, error
                self.redefine((*self.accept, found[1]))

    def redefine(self, accept: tuple[str, ...]) -> None:
        self.accept = accept
        self.deployment.pipelines = definitions(self.name).pipelines(self.home, accept)

    # --- what readers see ---

    def shown(self, pipeline: str, sink: str, output: str) -> list[Row]:
        """The rows of an output in its target, without Lockstep's own columns."""
        return [
            told({name: value for name, value in row.items() if not name.startswith("lockstep")})
            for row in self._reader(pipeline, sink, output)()
        ]

    def arguments(self, pipeline: str, sink: str) -> dict[str, Any]:
        """As they were planned then."""
        return dict(self.deployment.epochs(pipeline)[1].plan.sinks[sink]["arguments"])

    def _reader(self, pipeline: str, sink: str, output: str) -> Callable[[], list[dict[str, Any]]]:
        arguments = self.arguments(pipeline, sink)
        connection = arguments.get("connection")
        if "tables" in arguments:
            dsn, table = self.deployment.connections[arguments["connection"]], arguments["tables"][output]
            return partial(_maria_rows if connection == "maria" else _postgres_rows, dsn, table)
        if "path" in arguments:
            return partial(_file_rows, arguments["path"], arguments["format"])
        if connection == "kafka":
            return lambda: [json.loads(one) for one in values(self.deployment.connections["kafka"], arguments["topic"])]
        if connection is not None:
            return lambda: _received(self.receivers[connection].database)
        return lambda: [json.loads(line) for line in self.stdout.read_text().splitlines() if line]


def definitions(name: str) -> Any:
    """The module with the pipelines of a kept deployment."""
    return importlib.import_module(f"tests.kept.{name}.pipelines")


@contextmanager
def restored(name: str, folder: Path, ledger: PostgresServer, warehouse: PostgresServer) -> Iterator[Restored]:
    """Without MariaDB and Kafka: see `with_mariadb` and `with_kafka`."""
    kept, home = HERE / name, folder / "home"
    home.mkdir()
    with tarfile.open(kept / "files.tar.gz") as archive:
        archive.extractall(home, filter="data")
    dsns = [server.create_database(f"kept_{name}_{place}") for place, server in enumerate((ledger, warehouse))]
    for dsn, dump in zip(dsns, ("ledger.sql", "warehouse.sql"), strict=True):
        execute(dsn, _text(kept / dump, home))
    _go_beyond(dsns[1], "SELECT max(xid) FROM accounts")
    migrate(dsns[0])
    execute(dsns[0], "UPDATE lockstep.epoch SET lease_until = NULL, attempted_at = now() - interval '1 hour'")
    with ExitStack() as stack:
        receivers = {kind: stack.enter_context(receiving(kind, folder)) for kind in ("http", "tcp")}
        connections = {"warehouse": dsns[1], **{kind: one.url for kind, one in receivers.items()}}
        deployment = Deployment(home, dsns[0], connections, definitions(name).pipelines(home))
        yield Restored(name, deployment, json.loads(_text(kept / "facts.json", home)), receivers, folder / "stdout")
    for dsn, server in zip(dsns, (ledger, warehouse), strict=True):
        server.drop_database(dsn.rpartition("/")[2])


def with_mariadb(kept: Restored, server: MariaDbServer) -> None:
    """Handles tell the name of the database: it is the one of then."""
    if "maria" in kept.deployment.connections:
        return
    server.drop_database("kept")
    dsn = server.create_database("kept")
    with contextlib.closing(server.connect("kept")) as connection, connection.cursor() as cursor:
        for statement in (HERE / kept.name / "mariadb.sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    kept.deployment.connections["maria"] = dsn


def with_kafka(kept: Restored, broker: KafkaBroker) -> None:
    """Topics get new ids when they are made: what was kept is told those."""
    if "kafka" in kept.deployment.connections:
        return
    dumped = json.loads((HERE / kept.name / "kafka.json").read_text())
    with cluster_of(broker) as cluster:
        for topic in set(dumped["topics"]) & set(cluster.topics()):  # of another kept deployment
            delete(broker, topic)
    now = restore(broker.bootstrap, dumped)
    kept.facts = json.loads(_renamed(json.dumps(kept.facts), now))
    statements = ["SET session_replication_role = replica"]
    for old, new in now.items():
        statements.append(f"UPDATE lockstep.epoch SET plan = replace(plan::text, '{old}', '{new}')::jsonb")
        statements.append(f"UPDATE lockstep.participant SET target_id = replace(target_id, '{old}', '{new}')")
    execute(kept.deployment.ledger_dsn, "; ".join(statements))
    kept.deployment.connections["kafka"] = broker.bootstrap


def _text(path: Path, home: Path) -> str:
    return path.read_text().replace(HOME, str(home))


def _renamed(text: str, now: Mapping[str, str]) -> str:
    for old, new in now.items():
        text = text.replace(old, new)
    return text


def _go_beyond(dsn: str, transaction: str) -> None:
    """Have the server come to larger numbers of transactions than the restored rows have."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor:
        beyond = False
        while not beyond:
            cursor.execute(f"SELECT pg_current_xact_id() > ({transaction})")
            [(beyond,)] = cursor.fetchall()


def _postgres_rows(dsn: str, table: str) -> list[dict[str, Any]]:
    factory = psycopg2.extras.RealDictCursor
    with contextlib.closing(psycopg2.connect(dsn, cursor_factory=factory)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        rows = [dict(row) for row in cursor.fetchall()]
        return [row for row in rows if not row.get("lockstep_deleted")]


def _maria_rows(dsn: str, table: str) -> list[dict[str, Any]]:
    parts = urlsplit(dsn)
    connection = pymysql.connect(
        host=parts.hostname,
        port=parts.port or 0,
        user=parts.username,
        password=parts.password or "",
        database=parts.path[1:],
        ssl_disabled=True,
        cursorclass=pymysql.cursors.DictCursor,
    )
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return list(cursor.fetchall())


def _file_rows(folder: str, format: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in files(folder):
        match format:
            case "parquet":
                found += pq.ParquetFile(file).read().to_pylist()
            case "csv":
                found += csv.DictReader(io.StringIO(Path(file).read_text()))
            case "json":
                found += [json.loads(line) for line in Path(file).read_text().splitlines()]
            case _:
                found += [{"word": line} for line in Path(file).read_text().splitlines()]
    return found


def _received(database: Path) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection:
        return [json.loads(line) for (line,) in connection.execute("SELECT record FROM received ORDER BY rowid")]

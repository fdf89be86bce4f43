"""Pipelines whose rows go into a table that a test has made, in a database that each finds empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from lockstep.epoch import KeyedBy, RunKey
from lockstep.protocol.abort import abort
from lockstep.protocol.begin import begin
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.stage import stage
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from stack.postgres import PostgresServer
from tests.crash.world import interval_of, write_parquet
from tests.sinks import mariadb_target, postgres_target
from tests.sinks.append.feed import Feed
from tests.sinks.postgres_target import LOCK_TIMEOUT


@dataclass
class TableFeed(Feed):
    """Moved task by task."""

    run_sql: Callable[[str], Any]

    def staged(self, run: int) -> None:
        key = RunKey("feed", str(run))
        with self.runtime() as runtime:
            begin(runtime, key, interval_of(run) if self.pipeline.identity is KeyedBy.INTERVAL else None)
            stage(runtime, key, write_parquet)

    def prepare(self, run: int, sink: str = "redo") -> None:
        with self.runtime() as runtime:
            prepare(runtime, RunKey("feed", str(run)), sink)

    def commit(self, run: int) -> None:
        with self.runtime() as runtime:
            commit(runtime, RunKey("feed", str(run)))

    def abort(self, run: int, reason: str = "") -> None:
        with self.runtime() as runtime:
            abort(runtime, RunKey("feed", str(run)), reason)

    def shown(self) -> list[tuple[Any, ...]]:
        """How many rows of each day."""
        return list(self.run_sql("SELECT day, count(*) FROM target GROUP BY day ORDER BY day"))


#: takes the database, what is done to its table `target`, further sinks, and arguments of the sink `redo`
TableFeeds: TypeAlias = Callable[..., TableFeed]


@pytest.fixture
def table_feeds(request: pytest.FixtureRequest, ledger_server: PostgresServer, memory: Path) -> TableFeeds:
    ledger_server.start()
    ledger = ledger_server.create_database(f"tables_{memory.name}")

    def made(database: str, ddl: str, *others: dict[str, Any], **arguments: Any) -> TableFeed:
        mariadb = database == "mariadb"
        dsn: str = request.getfixturevalue("mariadb_dsn" if mariadb else "warehouse_dsn")
        if mariadb:
            mariadb_target.empty(request.getfixturevalue("mariadb_server"), dsn)
        else:
            postgres_target.empty(dsn)

        def run_sql(statement: str) -> Any:
            return (mariadb_target.execute if mariadb else postgres_target.execute)(dsn, statement)

        if "create" not in arguments:
            text = "longtext" if mariadb else "text"
            run_sql(f"CREATE TABLE target (day bigint, number int, label {text}, lockstep_epoch bigint NOT NULL)")
        for statement in filter(None, ddl.split(";\n")):
            run_sql(statement)
        sinks = []
        for one in (arguments, *others):
            given = {"name": "redo", "table": "target", "protocol": "write_ahead", "lock_timeout": LOCK_TIMEOUT, **one}
            name, table = given.pop("name"), given.pop("table")
            kind = MariaDbSink if mariadb else PostgresSink
            sinks.append(kind(name, tables={"numbers": table}, connection="w", **given))
        return TableFeed(**vars(Feed.of(ledger, memory, sinks, {"w": dsn})), run_sql=run_sql)

    return made

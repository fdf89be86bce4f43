"""A fresh database whose table `target` a sink upserts into, whichever database it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pytest

from lockstep.epoch import Interval, Vote
from lockstep.errors import LockstepError
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb.dialect import xid
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName, TableSink
from lockstep.sinks.values import Publication, SinkContext, SinkEpoch
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.sinks import mariadb_target, postgres_target

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "version": pa.int64(), "gone": pa.bool_()})
PROTOCOLS: tuple[ProtocolName, ...] = ("two_phase", "write_ahead")
LOCK_TIMEOUT = postgres_target.LOCK_TIMEOUT
OURS = "lockstep_epoch bigint NOT NULL, lockstep_deleted boolean NOT NULL"  #: columns of an upserted table
_FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)

Row: TypeAlias = tuple[int, str | None, int, bool]
Server: TypeAlias = PostgresServer | MariaDbServer

_numbers = count(1)


@dataclass(frozen=True)
class Sealed:
    """An epoch with its rows."""

    at: SinkEpoch
    rows: Sequence[Row]

    @property
    def wal(self) -> list[SealedRows]:
        columns = [list(column) for column in zip(*self.rows, strict=True)] or [[]] * len(SCHEMA)
        return [SealedRows(pa.table(columns, SCHEMA))]

    def told(self, token: int) -> SinkEpoch:
        return replace(self.at, token=token)


def sealed(id: int, *rows: Row, day: int | None = None) -> Sealed:
    """Epoch `id`, of a cursor or of a day."""
    interval = None
    if day is not None:
        start = _FIRST_DAY + timedelta(days=day)
        interval = Interval(start, start + timedelta(days=1))
    return Sealed(replace(epoch(id, token=10 * id, manifest=f"epoch {id}"), interval=interval), rows)


def row(key: int, text: str = "a", version: int = 1, gone: bool = False) -> Row:
    return key, text, version, gone


@dataclass(frozen=True)
class UpsertedDatabase(ABC):
    """What a test does to it, and to the sink. `dsn`: of whoever the sink works as."""

    kind: ClassVar[type[TableSink]]
    text: ClassVar[str]  #: the type of the column `name`
    deadlocks: ClassVar[bool] = False  #: the server may call it so where transactions only wait for one another

    dsn: str
    server: Server

    @abstractmethod
    def connected(self) -> AbstractContextManager[Any]:
        """A cursor of an autocommit connection."""

    @abstractmethod
    def left_over(self) -> list[str]:
        """Handles of what is prepared, and tables in between."""

    @abstractmethod
    def lose(self, handle: str) -> None:
        """Roll a prepared transaction back, as an administrator might."""

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement by hand."""
        with self.connected() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def context(self, pipeline: str = "pipe") -> SinkContext:
        return SinkContext(DEPLOYMENT, pipeline, {"w": self.dsn})

    def sink(
        self, protocol: ProtocolName | None = "write_ahead", name: str = "warehouse", **arguments: Any
    ) -> TableSink:
        given: dict[str, Any] = {
            "tables": {"rows": "target"},
            "connection": "w",
            "create": True,
            "mode": "upsert",
            "key": ["id"],
            "deleted": "gone",
            "lock_timeout": LOCK_TIMEOUT,
            **arguments,
        }
        return self.kind(name, protocol=protocol, **given)

    def prepare(self, given: TableSink, one: Sealed) -> Vote:
        with given.opened(self.context()) as live:
            live.preflight({"rows": SCHEMA})
            return live.prepare(one.at, one.wal)

    def publish(self, given: TableSink, one: Sealed, vote: Vote) -> Publication:
        with given.opened(self.context()) as live:
            return live.publish(one.told(one.at.token + 1), vote, one.wal)

    def send(self, given: TableSink, one: Sealed) -> None:
        self.publish(given, one, self.prepare(given, one))

    def expect_refusal(self, error: type[LockstepError], told: str, given: TableSink, one: Sealed) -> None:
        with pytest.raises(error, match=told):
            self.prepare(given, one)

    def shown(self) -> dict[int, tuple[Any, ...]]:
        """By key: name, version, whether it is a tombstone."""
        rows = self.execute("SELECT id, name, version, lockstep_deleted FROM target")
        found = {key: tuple(rest) for key, *rest in rows}
        assert len(found) == len(rows), "a key stands twice"
        assert self.execute("SELECT coalesce(sum(new), 0) FROM lockstep_keys") == [(len(found),)], "keys are miscounted"
        return found


class UpsertedPostgres(UpsertedDatabase):
    kind, text = PostgresSink, "text"

    def connected(self) -> AbstractContextManager[Any]:
        return postgres_target.connected(self.dsn)

    def left_over(self) -> list[str]:
        tables = self.execute("SELECT relname FROM pg_class WHERE relname LIKE 'lockstep_upsert%'")
        prepared = self.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        return [name for (name,) in [*tables, *prepared]]

    def lose(self, handle: str) -> None:
        self.execute(f"ROLLBACK PREPARED '{handle}'")


class UpsertedMariaDb(UpsertedDatabase):
    kind, text, deadlocks = MariaDbSink, "varchar(99) CHARACTER SET utf8mb4", True

    def connected(self) -> AbstractContextManager[Any]:
        return mariadb_target.connected(self.dsn)

    def left_over(self) -> list[str]:
        """What is prepared; the table in between dies with its session."""
        return [f"{row[3][: row[1]].decode()}:{row[3][row[1] :].decode()}" for row in self.execute("XA RECOVER")]

    def lose(self, handle: str) -> None:
        mariadb_target.execute(self.dsn, "XA ROLLBACK %s, %s", *xid(handle))


#: `UpsertedPostgres` or `UpsertedMariaDb`
Database: TypeAlias = Callable[[str, Server], UpsertedDatabase]


@contextmanager
def fresh(kind: Database, server: Server) -> Iterator[UpsertedDatabase]:
    """A new database on `server`, which a test may kill."""
    server.start()
    name = f"upserts_{next(_numbers)}"
    yield kind(server.create_database(name), server)
    server.start()
    server.drop_database(name)


PLACES: dict[str, tuple[Database, str, ProtocolName]] = {
    "postgres two_phase": (UpsertedPostgres, "ledger_server", "two_phase"),
    "postgres write_ahead": (UpsertedPostgres, "ledger_server", "write_ahead"),
    "mariadb two_phase": (UpsertedMariaDb, "mariadb_server", "two_phase"),
    "mariadb write_ahead": (UpsertedMariaDb, "mariadb_server", "write_ahead"),
}
#: each database and each protocol once: what they do together is in the suite of behaviours
EACH = ["postgres two_phase", "mariadb write_ahead"]
EACH_WITH_ITS_CHECK: list[tuple[str, dict[str, Any]]] = [
    ("postgres two_phase", {"protocol": "two_phase"}),
    ("postgres write_ahead", {}),
    ("mariadb write_ahead", {}),
]


@pytest.fixture(params=EACH)
def placed(request: pytest.FixtureRequest) -> Iterator[tuple[UpsertedDatabase, ProtocolName]]:
    kind, server, protocol = PLACES[request.param]
    with fresh(kind, request.getfixturevalue(server)) as found:
        yield found, protocol


@pytest.fixture
def place(placed: tuple[UpsertedDatabase, ProtocolName]) -> UpsertedDatabase:
    return placed[0]


@pytest.fixture
def protocol(placed: tuple[UpsertedDatabase, ProtocolName]) -> ProtocolName:
    return placed[1]

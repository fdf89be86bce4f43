"""Worlds that are made once: each test gets a copy of one in no time, with databases of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, TypeVar

import psycopg2
from psycopg2.extensions import parse_dsn

from stack.postgres import PostgresServer
from tests.crash.state_world import StateWorld
from tests.crash.world import World

W = TypeVar("W", bound=World | StateWorld)
_numbers = count(1)


def copied(server: PostgresServer, dsn: str) -> str:
    """A database as another one is now, whose sessions end."""
    name = parse_dsn(dsn)["dbname"]
    World.execute(server.dsn(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
    return server.create_database(f"copy_{next(_numbers)}_{name}"[:60], name)


def roll_back_copies(server: PostgresServer) -> None:
    """What is prepared in copies: its names are of the deployment, and so every copy's."""
    prepared = "SELECT database, gid FROM pg_prepared_xacts WHERE starts_with(database, 'copy')"
    for database, gid in World.execute(server.dsn(), prepared):
        connection = psycopg2.connect(server.dsn(database))
        connection.autocommit = True
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("ROLLBACK PREPARED %s", (gid,))


@dataclass(frozen=True)
class Original(Generic[W]):
    """A world as it was when this was made; nothing is prepared in it."""

    server: PostgresServer
    world: W
    first_day: int  #: that no epoch has

    @classmethod
    def of(cls, server: PostgresServer, world: W) -> Original[W]:
        original = cls(server, world, next(world.days) if isinstance(world, World) else 0)
        shutil.copytree(world.folder, original._folder)
        return replace(original, world=original._with_databases())

    @property
    def _folder(self) -> str:
        return f"{self.world.folder}.original"

    def _with_databases(self) -> W:
        world, databases = self.world, {"ledger_dsn": copied(self.server, self.world.ledger_dsn)}
        if isinstance(world, World):
            databases["warehouse_dsn"] = copied(self.server, world.warehouse_dsn)
        return _changed(world, databases)

    def copy(self) -> W:
        """In the same folder: whoever has had a copy before is done with it."""
        roll_back_copies(self.server)
        shutil.rmtree(self.world.folder)
        shutil.copytree(self._folder, self.world.folder)
        days = {"days": count(self.first_day)} if isinstance(self.world, World) else {}
        return _changed(self._with_databases(), days)


def _changed(world: W, changes: Any) -> W:
    return replace(world, **changes)


class Originals(Generic[W]):
    """One a name, made when it is first asked for."""

    def __init__(self, server: PostgresServer, make: Callable[[str], W]) -> None:
        self._server, self._make = server, make
        self._made: dict[str, Original[W]] = {}

    def copy(self, name: str = "") -> W:
        if name not in self._made:
            self._made[name] = Original.of(self._server, self._make(name))
        return self._made[name].copy()


@dataclass(frozen=True)
class Copies:
    """What a backup, or a standby, has of a ledger is a copy as it is at that moment."""

    server: PostgresServer

    def of(self, world: W) -> W:
        """The same world with a ledger that stays as it is now."""
        return _changed(world, {"ledger_dsn": copied(self.server, world.ledger_dsn)})

"""Worlds that are made once: each test gets a copy of one in no time, with databases of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic, TypeVar

from psycopg2.extensions import parse_dsn

from stack.postgres import PostgresServer
from tests.crash.world import World

W = TypeVar("W", bound=World)
_numbers = count(1)


def copied(server: PostgresServer, dsn: str) -> str:
    """A database as another one is now, whose sessions end."""
    name = parse_dsn(dsn)["dbname"]
    World.execute(server.dsn(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
    return server.create_database(f"copy_{next(_numbers)}_{name}"[:60], name)


@dataclass(frozen=True)
class Original(Generic[W]):
    """A world as it was when this was made; nothing is prepared in it."""

    server: PostgresServer
    world: W
    first_day: int  #: that no epoch has

    @classmethod
    def of(cls, server: PostgresServer, world: W) -> Original[W]:
        kept = cls(server, world, next(world.days))
        shutil.copytree(world.folder, kept._folder)
        databases = {
            "ledger_dsn": copied(server, world.ledger_dsn),
            "warehouse_dsn": copied(server, world.warehouse_dsn),
        }
        return replace(kept, world=replace(world, **databases))

    @property
    def _folder(self) -> str:
        return f"{self.world.folder}.original"

    def copy(self) -> W:
        """In the same folder: whoever has had a copy before is done with it."""
        shutil.rmtree(self.world.folder)
        shutil.copytree(self._folder, self.world.folder)
        return replace(
            self.world,
            ledger_dsn=copied(self.server, self.world.ledger_dsn),
            warehouse_dsn=copied(self.server, self.world.warehouse_dsn),
            days=count(self.first_day),
        )


class Originals(Generic[W]):
    """One a name, made when it is first asked for."""

    def __init__(self, server: PostgresServer, make: Callable[[str], W]) -> None:
        self._server, self._make = server, make
        self._made: dict[str, Original[W]] = {}

    def copy(self, name: str) -> W:
        if name not in self._made:
            self._made[name] = Original.of(self._server, self._make(name))
        return self._made[name].copy()


@dataclass(frozen=True)
class Copies:
    """What a backup, or a standby, has of a ledger is a copy as it is at that moment."""

    server: PostgresServer

    def of(self, world: W) -> W:
        """The same world with a ledger that stays as it is now."""
        return replace(world, ledger_dsn=copied(self.server, world.ledger_dsn))

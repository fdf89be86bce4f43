"""Databases for worlds that are many: copies of one that is migrated, which are made sooner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from stack.postgres import PostgresServer
from tests.crash.world import World

_numbers = count(1)


@contextmanager
def two_databases(server: PostgresServer, migrated: str) -> Iterator[dict[str, str]]:
    """A ledger's and a warehouse's, on the server that makes them soonest: nothing here is about power or disks."""
    number = next(_numbers)
    names = {kind: f"{kind}_{number}" for kind in ("ledger", "warehouse")}
    templates = {"ledger": migrated, "warehouse": "template1"}
    made = {kind: server.create_database(name, templates[kind]) for kind, name in names.items()}
    as_another_deployment(made["ledger"])
    yield made
    for name in names.values():
        server.drop_database(name)


def as_another_deployment(dsn: str) -> str:
    """`dsn`, of a ledger that was copied, with an identity of its own."""
    World.execute(dsn, "SET session_replication_role = replica; UPDATE lockstep.deployment SET id = gen_random_uuid()")
    return dsn

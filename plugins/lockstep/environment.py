"""Connections from environment variables named after the connections' ids: of the command line and Spark drivers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from lockstep.errors import NotConfigured

#: LOCKSTEP_<…> that mean something else; so does every LOCKSTEP_PORT_… of the stack.
RESERVED = frozenset(
    {"AIRFLOW", "CRASH", "HOME", "KEEP", "LEDGER", "OUT", "SEED", "SEEDS", "SHOW_ROWS", "SPARK", "STACK", "STAGING"}
    | {"AUDIT_BYTES", "LOG_FORMAT", "SEAL_BYTES", "STATE_ROWS", "TESTING"}
)
_CONNECTION = "CONNECTION_"


def variable_of(connection: str) -> str:
    """LOCKSTEP_WAREHOUSE for `warehouse`; LOCKSTEP_CONNECTION_STAGING for `staging`, whose short name is taken."""
    name = re.sub(r"[^A-Z0-9_]", "_", connection.upper())
    taken = name in RESERVED or name.startswith(("PORT_", _CONNECTION))
    return f"LOCKSTEP_{_CONNECTION if taken else ''}{name}"


class EnvironmentConnections(Mapping[str, str]):
    """{connection id: DSN}. Raises `NotConfigured` naming the variable that is missing."""

    def __getitem__(self, connection: str) -> str:
        variable = variable_of(connection)
        value = os.environ.get(variable)
        if not value:
            raise NotConfigured(f"connection {connection!r}: set {variable} to its DSN (password through PGPASSFILE)")
        return value

    def __iter__(self) -> Iterator[str]:
        raise TypeError("environment connections can be looked up by id, not listed")

    def __len__(self) -> int:
        raise TypeError("environment connections can be looked up by id, not counted")

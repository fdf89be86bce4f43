"""Rows into MariaDB tables, exactly once: all tables of a sink appear together and whole."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.dsn import dataset_of
from lockstep.connections.names import Dataset
from lockstep.errors import SINK_ERRORS
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb.dialect import MariaDbDialect
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import SinkContext


class MariaDbSink(TableSink):
    """Tables of a MariaDB server (10.5 or newer).

    `tables`: output → "database.table", or "table" of the connection's database. `connection`: the id of a DSN,
    `mysql://user:password@host:port/database`. `create`: make missing tables from the output's schema. `epoch_column`:
    filled with the epoch where a table has it, None to leave it; without it nobody can verify. `shared`: let other
    pipelines that say so too write to the same tables. `schema`: the database in which Lockstep's own tables live; the
    connection's unless given. `lock_timeout`: seconds.

    `mode`: "upsert" has one row a `key` (columns, or a mapping of output to columns): the newest by `order` ("epoch",
    "interval_end", "column:<name>"; default: the interval's end, else the epoch), and `deleted` names the boolean
    column of rows that only say that a key is gone (see `lockstep.sinks.tables.upserts`). `on_missing`: what becomes of
    rows whose epoch is restated by one that lacks their keys, "refuse", "delete" or "keep". `on_new_columns`: "add" has
    a table get the columns that it lacks, nullable, before the vote: MariaDB commits such a change by itself.
    """

    dialect = MariaDbDialect

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        dsn = connections[self.connection]
        return {output: dataset_of(self.connection, dsn, table) for output, table in self.tables.items()}

    def _connect(self, context: SinkContext) -> MariaDbDialect:
        dsn = context.dsn(self.connection, self.name)
        database = Database(f"sink {self.name}", self.connection, dsn, self.lock_timeout, SINK_ERRORS)
        owner = SinkName.of(context, self.name)
        return MariaDbDialect(database, owner, self.schema or database.name, self.replaces)

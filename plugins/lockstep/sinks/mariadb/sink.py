"""Rows into MariaDB tables, exactly once: all tables of a sink show an epoch in one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.connections.mariadb.connection import MariaDbDatabase
from lockstep.connections.mariadb.dsn import dataset_of
from lockstep.connections.names import Dataset
from lockstep.errors import SINK_ERRORS
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb.dialect import MariaDbDialect
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import SinkContext


class MariaDbSink(TableSink):
    """Tables of a MariaDB server (10.5 or newer).

    Args:
        tables: output → "database.table", or "table" of the connection's database.
        connection: id of a connection whose value is a URI, `mysql://user:password@host:port/database`.
        protocol: "two_phase" (default for appends) or "write_ahead" (default for upserts).
        create: create missing tables from the output's schema.
        epoch_column: column that is filled with the epoch's number, in tables that have it; None to fill none. Without
            it epochs can't be verified.
        shared: let other pipelines with `shared=True` write to the same tables.
        schema: database of Lockstep's own tables; default: the connection's.
        lock_timeout: seconds.
        mode: "append", or "upsert": one row a key, the newest; see `lockstep.sinks.tables.upserts`.
        key: key columns, or a mapping of output to columns, for `mode="upsert"`.
        order: origin of the order of upserted rows: "epoch", "interval_end" or "column:<name>". The default is the end
            of the interval, or the epoch's number where it has none.
        deleted: the output's boolean column of rows that delete their key.
        on_missing: treatment of rows whose epoch is restated by one that lacks their keys: "refuse", "delete", "keep".
        on_new_columns: "refuse", or "add": a table gets the output's columns that it lacks, nullable, before the vote:
            MariaDB commits such a change by itself.
    """

    dialect = MariaDbDialect

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        dsn = connections[self.connection]
        return {output: dataset_of(self.connection, dsn, table) for output, table in self.tables.items()}

    def _connect(self, context: SinkContext) -> MariaDbDialect:
        dsn = context.dsn(self.connection, self.name)
        database = MariaDbDatabase(f"sink {self.name}", self.connection, dsn, self.lock_timeout, SINK_ERRORS)
        owner = SinkName.of(context, self.name)
        return MariaDbDialect(database, owner, self.schema or database.name, self.replaces)

"""Rows into PostgreSQL tables, exactly once: all tables of a sink show an epoch in one transaction.

Triggers on a target run with the rows. One that uses LISTEN, NOTIFY or a temporary table makes PREPARE TRANSACTION fail
(`SinkRejected`, nothing is shown); one that drops rows is detected by the count.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.connections.names import Dataset
from lockstep.connections.postgres.connection import PostgresDatabase
from lockstep.connections.postgres.dsn import dataset_of
from lockstep.errors import SINK_ERRORS
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres.dialect import PostgresDialect
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import SinkContext


class PostgresSink(TableSink):
    """Tables of one PostgreSQL database (14 or newer).

    Args:
        tables: output → "schema.table", spelled as in the catalogue.
        connection: id of a connection whose value is a DSN.
        protocol: "two_phase" (default for appends) or "write_ahead" (default for upserts).
        create: create missing tables from the output's schema.
        epoch_column: column that is filled with the epoch's number, in tables that have it; None to fill none. Without
            it epochs can't be verified.
        shared: let other pipelines with `shared=True` write to the same tables.
        schema: schema of Lockstep's own tables.
        lock_timeout: seconds.
        mode: "append", or "upsert": one row a key, the newest; see `lockstep.sinks.tables.upserts`.
        key: key columns, or a mapping of output to columns, for `mode="upsert"`.
        order: origin of the order of upserted rows: "epoch", "interval_end" or "column:<name>". The default is the end
            of the interval, or the epoch's number where it has none.
        deleted: the output's boolean column of rows that delete their key.
        on_missing: treatment of rows whose epoch is restated by one that lacks their keys: "refuse", "delete", "keep".
        on_new_columns: "refuse", or "add": a table gets the output's columns that it lacks, nullable, in the
            transaction that shows the rows.
    """

    default_schema = default_table_schema = "public"
    dialect = PostgresDialect

    def _spelled(self, table: str) -> str:
        return str(self._relation(table))

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        dsn = connections[self.connection]
        return {output: dataset_of(dsn, self._relation(table)) for output, table in self.tables.items()}

    def _connect(self, context: SinkContext) -> PostgresDialect:
        assert self.schema is not None
        dsn = context.dsn(self.connection, self.name)
        database = PostgresDatabase(f"sink {self.name}", self.connection, dsn, self.lock_timeout, SINK_ERRORS)
        return PostgresDialect(database, SinkName.of(context, self.name), self.schema, self.replaces)

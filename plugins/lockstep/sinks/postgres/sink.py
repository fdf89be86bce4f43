"""Rows into PostgreSQL tables, exactly once: all tables of a sink appear together and whole.

Triggers on a target run with the rows. One that uses LISTEN, NOTIFY or a temporary table makes PREPARE TRANSACTION fail
(`SinkRejected`, nothing is shown), one that drops rows is found by the count.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.connections.names import Dataset
from lockstep.connections.postgres.connection import Database
from lockstep.connections.postgres.dsn import dataset_of
from lockstep.errors import SINK_ERRORS
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres.dialect import PostgresDialect
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import SinkContext


class PostgresSink(TableSink):
    """Tables of one PostgreSQL database (14 or newer).

    `tables`: output → "schema.table", spelled as in the catalog. `connection`: the id of a DSN. `create`: make missing
    tables from the output's schema. `epoch_column`: filled with the epoch where a table has it, None to leave it;
    without it nobody can verify. `shared`: let other pipelines that say so too write to the same tables.
    `schema`: where Lockstep's own tables live. `lock_timeout`: seconds.

    `mode`: "upsert" has one row a `key` (columns, or a mapping of output to columns): the newest by `order` ("epoch",
    "interval_end", "column:<name>"; default: the interval's end, else the epoch), and `deleted` names the boolean
    column of rows that only say that a key is gone (see `lockstep.sinks.tables.upserts`). `on_missing`: what becomes of
    rows whose epoch is restated by one that lacks their keys, "refuse", "delete" or "keep". `on_new_columns`:
    "add" has a table get the columns that it lacks, nullable, in the transaction that shows the rows.
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
        database = Database(f"sink {self.name}", self.connection, dsn, self.lock_timeout, SINK_ERRORS)
        return PostgresDialect(database, SinkName.of(context, self.name), self.schema, self.replaces)

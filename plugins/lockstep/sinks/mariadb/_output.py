"""One output of a MariaDbSink and the table it goes into: made, checked, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.sql import Name, compose, identifier
from lockstep.connections.mariadb.wire import Cursor, close_quietly
from lockstep.errors import LockstepError, SinkRejected
from lockstep.sinks.mariadb._load import Load
from lockstep.sinks.mariadb._own_tables import MariaDbOwnTables
from lockstep.sinks.mariadb._read import read_rows
from lockstep.sinks.mariadb._tables import (
    Table,
    add_columns,
    create_table,
    find_table,
    find_unique_keys,
    require_insert,
)
from lockstep.sinks.mariadb._upsert import Upsert, require_upsertable
from lockstep.sinks.tables.output import TableOutput, Tally, UniqueKey, refuse_referred
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN
from lockstep.sinks.values import Batches, RowStatus, SinkEpoch

_REFERRING = """
    SELECT DISTINCT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE
    WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s ORDER BY 1
"""


@dataclass(frozen=True)
class MariaDbOutput(TableOutput[Cursor]):
    """See `TableOutput`."""

    database: Database
    own: MariaDbOwnTables

    def _find(self, cursor: Cursor) -> Table | None:
        return find_table(cursor, self.relation, self.where)

    def _make(self, cursor: Cursor, schema: pa.Schema, key: Sequence[str]) -> None:
        create_table(cursor, self.relation, schema, self.epoch_column, self.where, key)

    def _meet_new_columns(self, cursor: Cursor, new: Sequence[pa.Field]) -> bool:
        add_columns(cursor, self.relation, new, self.where)
        return True

    def _require_rights(self, cursor: Cursor, stored: pa.Schema) -> None:
        table = self._find(cursor)
        if table is None:
            return
        if self.upserts is not None and self.epoch_column is not None:
            epoch_column = table.epoch_column(self.epoch_column) or self.epoch_column
            require_upsertable(cursor, table, self.output, self.upserts, epoch_column)
        given = [*stored.names, table.epoch_column(self.epoch_column)]
        require_insert(cursor, self.relation, [name for name in given if name is not None])

    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        return find_unique_keys(cursor, self.relation, schema.names, self.epoch_column)

    def writer(self, epoch: SinkEpoch, rejected: type[LockstepError]) -> Load | Upsert:
        told = (self.database, self.output, self.relation, epoch.id, self.epoch_column, rejected)
        load = Load(*told, columns_come=self.adds_columns)
        return load if self.upserts is None else Upsert(load, self.upserts, epoch, self.own)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """Copies the sealed rows into a temporary table and compares them there."""
        writer = self.writer(epoch, SinkRejected)
        assert isinstance(writer, Upsert)
        connection = self.database.connect()
        try:
            with self.database.naming(f"comparing output {sealed.output}"), connection.cursor() as cursor:
                self.database.guard(cursor)
                return writer.standing(cursor, sealed)
        finally:
            close_quietly(connection)

    def _require_may_delete(self, cursor: Cursor, epoch_column: str) -> None:
        """There is nobody to ask for a right: it is tried on no row."""
        statement = compose("DELETE FROM {table} WHERE {column} IS NULL AND FALSE", **self._names(epoch_column))
        cursor.execute(statement)
        cursor.execute(_REFERRING, self.relation.names)
        refuse_referred(self.where, self.relation, [row[0] for row in cursor.fetchall()])

    def _delete(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        return cursor.execute(compose("DELETE FROM {table} WHERE {column} = %s", **self._names(epoch_column)), (epoch,))

    def _shows(self, cursor: Cursor, epoch_column: str, epoch: int) -> bool:
        statement = compose("SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} = %s)", **self._names(epoch_column))
        cursor.execute(statement, (epoch,))
        (found,) = cursor.fetchone() or (0,)
        return bool(found)

    def _bury(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        statement = "UPDATE {table} SET {deleted} = TRUE WHERE {column} = %s AND NOT {deleted}"
        return cursor.execute(compose(statement, **self._names(epoch_column), deleted=DELETED_COLUMN), (epoch,))

    def _tally(self, cursor: Cursor, epoch_column: str) -> list[Tally]:
        statement = "SELECT {column}, {order}, COUNT(*) FROM {table} GROUP BY {column}, {order}"
        cursor.execute(compose(statement, **self._names(epoch_column), order=ORDER_COLUMN))
        return [Tally(*map(int, row)) for row in cursor.fetchall()]

    def _names(self, epoch_column: str) -> dict[str, Name]:
        return {"table": self.relation.names, "column": epoch_column}

    def _read(self, epoch_column: str, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return read_rows(self.database, self.relation, epoch_column, epoch, schema)

    def _quoted(self, cursor: Cursor, *names: str) -> str:
        return identifier(names)

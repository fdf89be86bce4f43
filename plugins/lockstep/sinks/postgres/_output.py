"""One output of a PostgresSink and the table it goes into: made, checked, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.postgres.connection import Database, close_quietly
from lockstep.errors import LockstepError, SinkRejected, TargetUnreadable
from lockstep.sinks.postgres._copy import Copy
from lockstep.sinks.postgres._new_columns import require_addable
from lockstep.sinks.postgres._own_tables import PostgresOwnTables
from lockstep.sinks.postgres._read import read_rows
from lockstep.sinks.postgres._rights import require_rights
from lockstep.sinks.postgres._tables import Table, create_table, find_table, find_unique_keys, has_triggers
from lockstep.sinks.postgres._types import REWRITTEN
from lockstep.sinks.postgres._upsert import Upsert, require_staging, require_upsertable
from lockstep.sinks.tables.output import TableOutput, Tally, UniqueKey, refuse_referred
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN
from lockstep.sinks.values import Batches, RowStatus, SinkEpoch

_REFERRING = """
    SELECT DISTINCT conrelid::regclass::text FROM pg_constraint
    WHERE contype = 'f' AND confrelid = %s::regclass ORDER BY 1
"""


@dataclass(frozen=True)
class PostgresOutput(TableOutput[Cursor]):
    """See `TableOutput`."""

    database: Database
    own: PostgresOwnTables

    def _find(self, cursor: Cursor) -> Table | None:
        return find_table(cursor, self.relation, self.where)

    def _make(self, cursor: Cursor, schema: pa.Schema, key: Sequence[str]) -> None:
        create_table(cursor, self.relation, schema, self.epoch_column, self.where, key)

    def _meet_new_columns(self, cursor: Cursor, new: Sequence[pa.Field]) -> bool:
        require_addable(cursor, self.relation, new, self.where)
        return False

    def _require_rights(self, cursor: Cursor, stored: pa.Schema) -> None:
        table = self._find(cursor)
        if table is not None and self.upserts is not None and self.epoch_column is not None:
            epoch_column = table.epoch_column(self.epoch_column) or self.epoch_column
            require_upsertable(cursor, table, self.output, self.upserts, epoch_column)
            require_staging(cursor, self.own.home, self.where)

    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        return find_unique_keys(cursor, self.relation, schema.names, self.epoch_column)

    def holds_others_up(self, cursor: Cursor, schema: pa.Schema) -> bool:
        """By unique keys, or by what triggers lock, those of foreign keys among them."""
        return super().holds_others_up(cursor, schema) or has_triggers(cursor, self.relation)

    def writer(self, epoch: SinkEpoch, rejected: type[LockstepError]) -> Copy | Upsert:
        told = (self.database, self.output, self.relation, epoch.id, self.epoch_column, rejected)
        copy = Copy(*told, self.adds_columns and not self.held, self.adds_columns)
        return copy if self.upserts is None else Upsert(copy, self.upserts, epoch, self.own)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """Copies the sealed rows to the server, compares them there, and rolls back."""
        writer = replace(self, adds_columns=False).writer(epoch, SinkRejected)
        assert isinstance(writer, Upsert)
        connection = self.database.connect(f"lockstep {self.where} verify"[:63])
        try:
            with self.database.naming(f"comparing output {sealed.output}"):
                cursor = connection.cursor()
                self.database.guard(cursor)
                return writer.standing(cursor, sealed)
        finally:
            close_quietly(connection)

    def _require_may_delete(self, cursor: Cursor, epoch_column: str) -> None:
        require_rights(cursor, self.where, {self.relation.names: ("SELECT", "DELETE")})
        cursor.execute(_REFERRING, (sql.Identifier(*self.relation.names).as_string(cursor),))
        refuse_referred(self.where, self.relation, [row[0] for row in cursor.fetchall()])

    def _delete(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        statement = sql.SQL("DELETE FROM {} WHERE {} = {}")
        table = sql.Identifier(*self.relation.names)
        cursor.execute(statement.format(table, sql.Identifier(epoch_column), sql.Literal(epoch)))
        return cursor.rowcount

    def _shows(self, cursor: Cursor, epoch_column: str, epoch: int) -> bool:
        statement = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {} = {})")
        table = sql.Identifier(*self.relation.names)
        cursor.execute(statement.format(table, sql.Identifier(epoch_column), sql.Literal(epoch)))
        (found,) = cursor.fetchone() or (False,)
        return bool(found)

    def _bury(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        statement = sql.SQL("UPDATE {table} SET {deleted} = true WHERE {column} = {epoch} AND NOT {deleted}")
        table, deleted = sql.Identifier(*self.relation.names), sql.Identifier(DELETED_COLUMN)
        cursor.execute(
            statement.format(
                table=table, deleted=deleted, column=sql.Identifier(epoch_column), epoch=sql.Literal(epoch)
            )
        )
        return cursor.rowcount

    def _tally(self, cursor: Cursor, epoch_column: str) -> list[Tally]:
        statement = sql.SQL("SELECT {column}, {order}, count(*) FROM {table} GROUP BY {column}, {order}")
        names = {"column": sql.Identifier(epoch_column), "order": sql.Identifier(ORDER_COLUMN)}
        cursor.execute(statement.format(**names, table=sql.Identifier(*self.relation.names)))
        return [Tally(*row) for row in cursor.fetchall()]

    def _read(self, epoch_column: str, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self.database.transaction(f"looking at table {self.relation}") as cursor:
            table = self._find(cursor)
        types = {name: table.columns[name].type_name for name in schema.names if table and name in table.columns}
        if rewritten := [f"{name} ({kind})" for name, kind in types.items() if kind in REWRITTEN]:
            raise TargetUnreadable(
                f"{self.where}: {self.relation} has texts in a form of its own: {', '.join(rewritten)}"
            )
        return read_rows(self.database, self.relation, epoch_column, epoch, schema)

    def _quoted(self, cursor: Cursor, *names: str) -> str:
        return sql.Identifier(*names).as_string(cursor)

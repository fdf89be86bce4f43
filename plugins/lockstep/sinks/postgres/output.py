"""One output of a PostgresSink and the table it goes into: made, checked, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from psycopg2.extensions import cursor as Cursor

from lockstep.errors import LockstepError
from lockstep.postgres.connection import Database
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.postgres.copy import Copy
from lockstep.sinks.postgres.read import read_rows
from lockstep.sinks.postgres.tables import Table, create_table, find_table, find_unique_keys, require_fit
from lockstep.sinks.postgres.target import Relation, TargetTables
from lockstep.sinks.postgres.upsert import Upsert, require_staging, require_upsertable
from lockstep.sinks.tables.output import TableOutput, UniqueKey, under_names_of


@dataclass(frozen=True)
class OutputTable(TableOutput[Relation, Cursor, Table]):
    """`schema`: where Lockstep's own tables are."""

    schema: str

    def _find(self, cursor: Cursor) -> Table | None:
        return find_table(cursor, self.relation, self.sink)

    def _make(self, cursor: Cursor, schema: pa.Schema, key: Sequence[str]) -> None:
        create_table(cursor, self.relation, schema, self.epoch_column, self.sink, key)

    def _compare(self, table: Table, schema: pa.Schema) -> None:
        require_fit(table, self.output, schema, self.epoch_column, self.sink)

    def _require_rights(self, cursor: Cursor, table: Table, stored: pa.Schema) -> None:
        if self.upserts is not None and self.epoch_column is not None:
            epoch_column = table.epoch_column(self.epoch_column) or self.epoch_column
            require_upsertable(cursor, table, self.output, self.upserts, epoch_column)
            require_staging(cursor, self.schema, self.sink)

    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        return find_unique_keys(cursor, self.relation, schema.names, self.epoch_column)

    def way(
        self, database: Database, own: TargetTables, epoch: SinkEpoch, rejected: type[LockstepError]
    ) -> Copy | Upsert:
        """How an epoch's rows get into the table; `rejected` is raised when the server refuses them."""
        copy = Copy(database, self.output, self.relation, epoch.id, self.epoch_column, rejected)
        return copy if self.upserts is None else Upsert(copy, self.upserts, epoch, own)

    def read(self, database: Database, own: TargetTables, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` where nobody can tell whose they are."""
        with database.transaction(f"reading table {self.relation}") as cursor:
            found = self._find(cursor), own.other_owners(cursor, self.relation)
        table, column = self._readable(*found, schema)
        return under_names_of(schema, read_rows(database, table, column, epoch, self._as_stored(schema)))

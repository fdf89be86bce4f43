"""One output of a MariaDbSink and the table it goes into: made, checked, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockstep.errors import LockstepError
from lockstep.mariadb.connection import Database
from lockstep.mariadb.wire import Cursor
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.mariadb.load import Load
from lockstep.sinks.mariadb.read import read_rows
from lockstep.sinks.mariadb.tables import (
    Relation,
    Table,
    create_table,
    find_table,
    find_unique_keys,
    require_fit,
    require_insert,
)
from lockstep.sinks.mariadb.target import TargetTables
from lockstep.sinks.mariadb.upsert import Upsert, require_upsertable
from lockstep.sinks.tables.output import TableOutput, UniqueKey, under_names_of


@dataclass(frozen=True)
class OutputTable(TableOutput[Relation, Cursor, Table]):
    """See `TableOutput`."""

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
        given = [*stored.names, table.epoch_column(self.epoch_column)]
        require_insert(cursor, self.relation, [name for name in given if name is not None])

    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        return find_unique_keys(cursor, self.relation, schema.names, self.epoch_column)

    def way(
        self, database: Database, own: TargetTables, epoch: SinkEpoch, rejected: type[LockstepError]
    ) -> Load | Upsert:
        """How an epoch's rows get into the table; `rejected` is raised when the server refuses them."""
        load = Load(database, self.output, self.relation, epoch.id, self.epoch_column, rejected)
        return load if self.upserts is None else Upsert(load, self.upserts, epoch, own)

    def read(self, database: Database, own: TargetTables, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` where nobody can tell whose they are."""
        with database.transaction(f"reading table {self.relation}") as cursor:
            found = self._find(cursor), own.other_owners(cursor, self.relation)
        _, column = self._readable(*found, schema)
        return under_names_of(schema, read_rows(database, self.relation, column, epoch, self._as_stored(schema)))

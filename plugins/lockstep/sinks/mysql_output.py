"""One output of a sink and the table it goes into: made, checked, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lockstep.errors import LockstepError, PreflightRefused
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.mysql_connection import Database
from lockstep.sinks.mysql_load import Load
from lockstep.sinks.mysql_read import read_rows
from lockstep.sinks.mysql_tables import Relation, Table, create_table, find_table, require_fit, require_insert
from lockstep.sinks.mysql_target import TargetTables
from lockstep.sinks.mysql_upsert import Upsert, require_upsertable
from lockstep.sinks.mysql_wire import Cursor
from lockstep.sinks.upserts import Upserts


@dataclass(frozen=True)
class OutputTable:
    """`upserts` None: rows are appended."""

    sink: str
    output: str
    relation: Relation
    epoch_column: str | None
    upserts: Upserts | None

    def preflight(self, cursor: Cursor, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> None:
        """Raises `PreflightRefused`; see `Sink.preflight`."""
        if schemas is not None and self.output not in schemas:
            raise PreflightRefused(
                f"sink {self.sink}: the transform gave no output {self.output}, but {sorted(schemas)}"
            )
        if find_table(cursor, self.relation, self.sink) is None:
            if not create:
                raise PreflightRefused(
                    f"sink {self.sink}: table {self.relation} is missing; create it, or say create=True"
                )
            if schemas is None:
                return
            self._create(cursor, schemas[self.output])
        if schemas is not None:
            table = find_table(cursor, self.relation, self.sink)
            assert table is not None
            self._require_fit(cursor, table, schemas[self.output])

    def _create(self, cursor: Cursor, schema: pa.Schema) -> None:
        key: tuple[str, ...] = ()
        if self.upserts is not None:
            self._require_no_faults(self.upserts, schema)
            key, schema = self.upserts.keys[self.output], self.upserts.stored_schema(schema)
        create_table(cursor, self.relation, schema, self.epoch_column, self.sink, key)

    def _require_fit(self, cursor: Cursor, table: Table, schema: pa.Schema) -> None:
        stored = schema if self.upserts is None else self.upserts.stored_schema(schema)
        if self.upserts is not None:
            self._require_no_faults(self.upserts, schema)
        require_fit(table, self.output, stored, self.epoch_column, self.sink)
        if self.upserts is not None and self.epoch_column is not None:
            require_upsertable(cursor, table, self.output, self.upserts, self.epoch_column)
        given = [*stored.names, table.epoch_column(self.epoch_column)]
        require_insert(cursor, self.relation, [name for name in given if name is not None])

    def _require_no_faults(self, upserts: Upserts, schema: pa.Schema) -> None:
        if faults := upserts.faults(self.output, schema):
            raise PreflightRefused(f"sink {self.sink}: output {self.output} can't be upserted: {'; '.join(faults)}")

    def way(
        self, database: Database, own: TargetTables, epoch: SinkEpoch, rejected: type[LockstepError]
    ) -> Load | Upsert:
        """How an epoch's rows get into the table; `rejected` is raised when the server refuses them."""
        load = Load(database, self.output, self.relation, epoch.id, self.epoch_column, rejected)
        return load if self.upserts is None else Upsert(load, self.upserts, epoch, own)

    def read(self, database: Database, own: TargetTables, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` where nobody can tell whose they are."""
        with database.transaction(f"reading table {self.relation}") as cursor:
            table = find_table(cursor, self.relation, self.sink)
            others = own.other_owners(cursor, self.relation)
        if table is None:
            raise PreflightRefused(f"sink {self.sink}: table {self.relation} does not exist any more")
        if (column := table.epoch_column(self.epoch_column)) is None:
            raise PreflightRefused(
                f"sink {self.sink}: table {self.relation} has no column {self.epoch_column}, so nobody can tell whose "
                "rows are which; add it (bigint) to verify epochs from then on"
            )
        if others:
            raise PreflightRefused(
                f"sink {self.sink}: table {self.relation} is shared with {others[0][1]}.{others[0][2]}: epoch numbers "
                "of two sinks can't be told apart"
            )
        if self.upserts is None:
            require_fit(table, self.output, schema, self.epoch_column, self.sink)
            return read_rows(database, self.relation, column, epoch, schema)
        require_fit(table, self.output, self.upserts.stored_schema(schema), self.epoch_column, self.sink)
        rows = read_rows(database, self.relation, column, epoch, self.upserts.renamed(schema))
        return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)

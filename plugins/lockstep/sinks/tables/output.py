"""One output of a sink and its table: created, checked, written to, read back, and rows of replaced epochs removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.errors import LockstepError, PreflightRefused, SinkRejected, TargetUnreadable
from lockstep.sinks.tables.dialect import Cursor
from lockstep.sinks.tables.load import CatalogTable, OutputMapping, TableLoad, TableUpsert
from lockstep.sinks.tables.own_tables import Owner, OwnTables
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN, OnMissing, Order
from lockstep.sinks.values import Batches, EpochCut, ReadCut, Replaced, RowStatus, SinkEpoch

_DELETE_ROWS = "DELETE FROM {table} WHERE {column} = %s"
_HAS_ROWS = "SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} = %s)"
_DELETE_BY_TOMBSTONE = "UPDATE {table} SET {deleted} = TRUE WHERE {column} = %s AND NOT {deleted}"
_COUNT_ROWS = "SELECT {column}, {order}, COUNT(*) FROM {table} GROUP BY {column}, {order}"


class OutputRowCount(NamedTuple):
    """Number of rows of an upserted table with this epoch and this order."""

    epoch: int
    order: int
    rows: int


@dataclass(frozen=True)
class OpenOutput(OutputMapping):
    """One output of a sink, in a target that is open."""

    @property
    def own(self) -> OwnTables:
        return OwnTables(self.dialect)

    # --- preflight ---

    def preflight(self, cursor: Cursor, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> bool:
        """True if the table is to get columns with the rows. Raises `PreflightRefused`; see `OpenSink.preflight`."""
        dialect, key = self.dialect, () if self.upserts is None else self.upserts.keys[self.output]
        if schemas is not None and self.output not in schemas:
            raise PreflightRefused(f"{self.where}: the transform gave no output {self.output}, but {sorted(schemas)}")
        if self.find(cursor) is None:
            if not create:
                raise PreflightRefused(f"{self.where}: table {self.relation} is missing; create it, or say create=True")
            if schemas is None:
                return False
            stored = self._stored(schemas[self.output])
            dialect.create_table(cursor, self.relation, stored, self.epoch_column, key)
        if schemas is None:
            return False
        table, stored = self.require(cursor), self._stored(schemas[self.output])
        missing = table.missing_columns(stored) if self.adds_columns else []
        reserved = () if self.upserts is None else {ORDER_COLUMN, DELETED_COLUMN, *key}
        new = [column for column in missing if column.name not in reserved]
        present = pa.schema([column for column in stored if column not in new])
        self.compare(table, present)
        if new:
            dialect.require_addable(cursor, self.relation, new)
            if not dialect.adds_columns_with_rows:
                dialect.add_columns(cursor, self.relation, new)
                table, present, new = self.require(cursor), stored, []
                self.compare(table, present)
        if self.upserts is not None:
            table.require_order(f"{self.where}: table {self.relation}", self.upserts)
            dialect.require_upsertable(cursor, self.relation, table.columns, key)
        names = [*present.names, *([table.epoch_column] if table.epoch_column else [])]
        dialect.require_insert(cursor, self.relation, names)
        return bool(new)

    def _stored(self, schema: pa.Schema) -> pa.Schema:
        """The table's columns, all but the epoch's. Raises `PreflightRefused` for a schema that can't be upserted."""
        if self.upserts is None:
            return schema
        if faults := self.upserts.faults(self.output, schema):
            raise PreflightRefused(f"{self.where}: output {self.output} can't be upserted: {'; '.join(faults)}")
        return self.upserts.stored_schema(schema)

    # --- rows ---

    def writer(self, epoch: SinkEpoch, rejected: type[LockstepError]) -> TableLoad | TableUpsert:
        """Writes an epoch's rows into the table; raises `rejected` when the server refuses them."""
        load = TableLoad(self, epoch.id, rejected)
        return load if self.upserts is None else TableUpsert(load, self.upserts, epoch)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """Copy the sealed rows to the server, compare them there, and roll back. Only for upserts; see
        `OpenSink.standing`."""
        writer = replace(self, adds_columns=False).writer(epoch, SinkRejected)
        assert isinstance(writer, TableUpsert)
        connection = self.dialect.connect("verify")
        try:
            with self.dialect.database.naming(f"comparing output {sealed.output}"):
                cursor = connection.cursor()
                self.dialect.database.guard(cursor)
                return writer.compare(cursor, sealed)
        finally:
            self.dialect.close(connection)

    def read(self, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` for a table without an epoch
        column, or that has changed."""
        with self.dialect.database.transaction(f"reading table {self.relation}") as cursor:
            table, owners = self.find(cursor), self.own.other_owners(cursor, self.relation)
        column = self._find_epoch_column(table, owners)
        assert table is not None
        self.compare(table, schema if self.upserts is None else self.upserts.stored_schema(schema))
        stored = schema if self.upserts is None else self.upserts.rename(schema)
        rows = self.dialect.read_rows(self.relation, table.columns, column, epoch, stored)
        return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)

    def read_remaining(self, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """`read` without tombstones."""
        deleted = self.upserts.deleted if self.upserts is not None else None
        for batch in self.read(epoch, schema):
            yield batch if deleted is None else batch.filter(pc.invert(batch.column(deleted)))

    # --- rows of replaced epochs ---

    def require_replaceable(self, cursor: Cursor) -> None:
        """Raises `PreflightRefused` where an epoch's rows can't be identified, or can't be deleted. A table that
        doesn't exist passes."""
        upserts = self.upserts
        if upserts is not None and upserts.order is Order.COLUMN:
            raise PreflightRefused(
                f"{self.where}: rows of table {self.relation} can't be replaced: newer rows are chosen by "
                f"column {upserts.order_column}, and among rows with the same order by the epoch's number; a replacing "
                "epoch has a larger number than epochs of later ranges, and would replace their rows"
            )
        if (table := self.find(cursor)) is not None:
            column = self._find_epoch_column(table, self.own.other_owners(cursor, self.relation))
            if upserts is None or (upserts.on_missing is OnMissing.DELETE and upserts.deleted is None):
                self.dialect.require_may_delete(cursor, self.relation, column)
                if referring := self.dialect.referring_tables(cursor, self.relation):
                    raise PreflightRefused(
                        f"{self.where}: rows of table {self.relation} can't be replaced: foreign keys of "
                        f"{', '.join(referring)} refer to it, so rows there would be deleted with them, or keep them "
                        "from being deleted"
                    )

    @property
    def keeps_replaced(self) -> bool:
        """True if rows of a replaced epoch may remain."""
        return self.upserts is not None and self.upserts.on_missing is OnMissing.KEEP

    def remove(self, cursor: Cursor, replaced: Replaced) -> str:
        """Delete a replaced epoch's rows within the cursor's transaction, before the new rows are sent.

        Returns why they can't be deleted, or "". Raises `PreflightRefused` where they can't be identified.
        """
        column = self._own_epoch_column(cursor)
        rows, sealed = self._delete(cursor, column, replaced.id), replaced.rows.get(self.output)
        if fault := _fault_of_number(rows, replaced, sealed):
            return fault
        return _fault_of_removal(replaced) if rows != sealed and self._has_rows(cursor, column, replaced.id) else ""

    def check_replaced(self, cursor: Cursor, epoch: SinkEpoch, replaced: Replaced) -> str:
        """Check an upserted table before the new rows are sent; returns why a replaced epoch's rows can't be
        identified, or ""."""
        assert self.upserts is not None
        keep = self.upserts.on_missing is OnMissing.KEEP
        if not keep and not self.own.has_brought(cursor, replaced.id, self.relation):
            return (
                f"epoch {replaced.id} has recorded no keys for this table, so its rows can't be identified: they went "
                "into another table"
            )
        counts, order = self._count_rows(cursor, self._own_epoch_column(cursor)), self.upserts.order_of(epoch)
        own = [count for count in counts if count.epoch == replaced.id]
        if fault := _fault_of_number(sum(count.rows for count in own), replaced, replaced.rows.get(self.output)):
            return fault
        if any(order is None or count.order > order for count in own):
            return f"rows of epoch {replaced.id} have a larger order than epoch {epoch.id}, and would remain"
        same_order = {count.epoch: count.rows for count in counts if count.order == order}
        foreign = [] if keep else self.own.without_marker(cursor, same_order.keys())
        if not foreign:
            return ""
        return (
            f"{sum(same_order[number] for number in foreign)} rows have the order of epoch {replaced.id} and a number "
            f"that no epoch of this sink has ({', '.join(map(str, foreign[:3]))}), so they may or may not be its rows: "
            "was the epoch column added after they were written? Give them its number, or say on_missing='keep'"
        )

    def settle(self, cursor: Cursor, epoch: SinkEpoch, replaced: Replaced) -> str:
        """Treat the remaining rows of a replaced epoch as `OnMissing` says, after the new rows were upserted.

        Returns why that can't be done, or "".
        """
        assert self.upserts is not None
        column = self._own_epoch_column(cursor)
        match self.upserts.on_missing:
            case OnMissing.KEEP:
                return ""
            case OnMissing.REFUSE:
                counts = self._count_rows(cursor, column)
                rows = sum(count.rows for count in counts if count.epoch == replaced.id)
                return _fault_of_missing(rows, epoch, replaced) if rows else ""
        if self.upserts.deleted is None:
            if deleted := self._delete(cursor, column, replaced.id):
                self.own.count_keys(cursor, epoch, self.relation, -deleted)
            return _fault_of_removal(replaced) if self._has_rows(cursor, column, replaced.id) else ""
        self._make_tombstones(cursor, column, replaced.id)
        return _fault_of_removal(replaced) if self._make_tombstones(cursor, column, replaced.id) else ""

    def _delete(self, cursor: Cursor, column: str, epoch: int) -> int:
        return self.dialect.change(cursor, _DELETE_ROWS, (epoch,), table=self.relation, column=column)

    def _has_rows(self, cursor: Cursor, column: str, epoch: int) -> bool:
        [(exists,)] = self.dialect.query(cursor, _HAS_ROWS, (epoch,), table=self.relation, column=column)
        return bool(exists)

    def _make_tombstones(self, cursor: Cursor, column: str, epoch: int) -> int:
        """Returns the number of the epoch's rows that were none before."""
        names = {"column": column, "deleted": DELETED_COLUMN}
        return self.dialect.change(cursor, _DELETE_BY_TOMBSTONE, (epoch,), table=self.relation, **names)

    def _count_rows(self, cursor: Cursor, column: str) -> list[OutputRowCount]:
        rows = self.dialect.query(cursor, _COUNT_ROWS, table=self.relation, column=column, order=ORDER_COLUMN)
        # a table whose NOT NULL was dropped since preflight may have nulls
        return [OutputRowCount(*map(_int_or_none, row)) for row in rows]

    # --- readers ---

    def cut(self, epochs: EpochCut) -> ReadCut:
        """The rows of these epochs. Raises `TargetUnreadable` where the table has no epoch column, or newer rows
        have replaced them."""
        if self.upserts is not None:
            raise TargetUnreadable(
                f"{self.where}: in table {self.relation} newer rows replace older ones: what it showed as of an epoch "
                "is gone"
            )
        with self.dialect.database.transaction(f"looking at table {self.relation}") as cursor:
            try:
                column = self._own_epoch_column(cursor)
            except PreflightRefused as error:
                raise TargetUnreadable(str(error)) from error
            table = self.dialect.quoted(cursor, *self.relation.names)
            column = self.dialect.quoted(cursor, column)
        return ReadCut(self.output, table, epochs.predicate(column))

    def _own_epoch_column(self, cursor: Cursor) -> str:
        return self._find_epoch_column(self.find(cursor), self.own.other_owners(cursor, self.relation))

    def _find_epoch_column(self, table: CatalogTable | None, owners: Sequence[Owner]) -> str:
        """The column with the epoch of each row. Raises `PreflightRefused` if there is none."""
        if table is None:
            raise PreflightRefused(f"{self.where}: table {self.relation} does not exist any more")
        if table.epoch_column is None:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} has no column {self.epoch_column}, so its rows "
                "can't be assigned to epochs; add it (bigint) to verify epochs from then on"
            )
        if owners:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} is shared with {owners[0].pipeline}.{owners[0].sink}: epoch "
                f"numbers of two sinks can't be told apart; if that sink is gone, delete its row of {owners[0].schema}."
                "lockstep_target"
            )
        return table.epoch_column


def _fault_of_number(rows: int, replaced: Replaced, sealed: int | None) -> str:
    """Fewer rows than were sealed are no fault: some were deleted by a person, or newer rows have their keys."""
    if sealed is None or rows <= sealed:
        return ""
    return (
        f"{rows} rows have the number of epoch {replaced.id}, which brought {sealed}: the others belong to another "
        "writer, a former owner for example, and would be deleted with them; give those another number, or null"
    )


def _fault_of_removal(replaced: Replaced) -> str:
    return (
        f"rows of epoch {replaced.id} are still there after they were deleted: a trigger or a rule of the table "
        "keeps them, and readers would see them besides the rows that replace them"
    )


def _fault_of_missing(rows: int, epoch: SinkEpoch, replaced: Replaced) -> str:
    return (
        f"{rows} rows of epoch {replaced.id} have keys that epoch {epoch.id}, which replaces it, lacks, and the "
        "earlier rows of those keys are lost: say on_missing='delete' in the sink to delete them, or on_missing='keep' "
        "to keep them"
    )


def _int_or_none(value: Any) -> Any:
    return None if value is None else int(value)

"""One output of a sink and the table it goes into: made, checked and read back, whatever database it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.connections.relation import Relation
from lockstep.errors import LockstepError, PreflightRefused, TargetUnreadable
from lockstep.sinks.tables._database import Database
from lockstep.sinks.tables.own_tables import Owner, OwnTables
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN, OnMissing, Order, Upserts
from lockstep.sinks.values import Batches, EpochCut, ReadCut, Replaced, RowStatus, SinkEpoch


class FoundTable(Protocol):
    """A target table as the catalogue has it."""

    def epoch_column(self, name: str | None) -> str | None: ...

    def lacking(self, schema: pa.Schema, epoch_column: str | None) -> list[pa.Field]: ...

    def require_fit(self, where: str, schema: pa.Schema, epoch_column: str | None) -> None: ...


@dataclass(frozen=True)
class UniqueKey:
    """What of a target refuses a second row: a primary key, a unique index, an exclusion constraint."""

    name: str
    by_epoch: bool  #: the epoch column is part of it: rows of two epochs are never alike


Cursor = TypeVar("Cursor")
Cursor_contra = TypeVar("Cursor_contra", contravariant=True)


class Tally(NamedTuple):
    """How many rows of an upserted table have this number and this order."""

    epoch: int
    order: int
    rows: int


class RowWriter(Protocol[Cursor_contra]):
    """How one epoch's rows of an output get into the table, within the transaction of a cursor."""

    def write(self, cursor: Cursor_contra, batches: Batches) -> int:
        """Put all rows in; returns how many there are, which the server has confirmed."""

    def try_rows(self, cursor: Cursor_contra, batches: Batches) -> int:
        """Have the server try all rows, in a transaction that is rolled back, unless it surely takes them; returns how
        many there are."""


@dataclass(frozen=True)
class TableOutput(ABC, Generic[Cursor]):
    """`upserts` None: rows are appended. `adds_columns`: the table gets those that the output has and it lacks; but not
    with rows that are `held` back until the decision."""

    database: Database[Cursor]
    own: OwnTables[Cursor]
    output: str
    relation: Relation
    epoch_column: str | None
    upserts: Upserts | None
    adds_columns: bool = False
    held: bool = False

    # --- what each database does in its own way ---

    @abstractmethod
    def _find(self, cursor: Cursor) -> FoundTable | None:
        """The table, None if there is none. Raises `PreflightRefused` for what can't keep rows safely."""

    @abstractmethod
    def _make(self, cursor: Cursor, schema: pa.Schema, key: Sequence[str]) -> None:
        """Create it for rows of `schema`, one a `key` where there is one."""

    @abstractmethod
    def _meet_new_columns(self, cursor: Cursor, new: Sequence[pa.Field]) -> bool:
        """Refuse those that the table can't get. False: they are to be added with the rows. True: it has them now, as
        the database has no other way. Raises `PreflightRefused`."""

    @abstractmethod
    def _require_rights(self, cursor: Cursor, stored: pa.Schema) -> None:
        """Refuse a table that can't be written to, or not by key, by whoever is connected."""

    @abstractmethod
    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        """Those of the table that rows of `schema` may meet twice; not those that the server numbers itself."""

    def holds_others_up(self, cursor: Cursor, schema: pa.Schema) -> bool:
        """Whether others may have to wait for a transaction that has written rows into the table."""
        return any(not key.by_epoch for key in self.unique_keys(cursor, schema))

    @abstractmethod
    def writer(self, epoch: SinkEpoch, rejected: type[LockstepError]) -> RowWriter[Cursor]:
        """How an epoch's rows get into the table; `rejected` is raised when the server refuses them."""

    @abstractmethod
    def standing(self, epoch: SinkEpoch, sealed: Batches) -> RowStatus:
        """See `OpenSink.standing`; only for upserts."""

    @abstractmethod
    def _require_may_delete(self, cursor: Cursor, epoch_column: str) -> None:
        """Refuse, with the grant that is missing, who may not delete rows by that column, and a table whose rows other
        tables refer to."""

    @abstractmethod
    def _delete(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        """Delete an epoch's rows; returns how many there were."""

    @abstractmethod
    def _shows(self, cursor: Cursor, epoch_column: str, epoch: int) -> bool:
        """Whether there is a row of the epoch."""

    @abstractmethod
    def _bury(self, cursor: Cursor, epoch_column: str, epoch: int) -> int:
        """Make tombstones of an epoch's rows, of a table that has such; returns how many are none yet that it meets
        now."""

    @abstractmethod
    def _tally(self, cursor: Cursor, epoch_column: str) -> list[Tally]:
        """Whose rows the table has; only for upserts."""

    @abstractmethod
    def _read(self, epoch_column: str, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of an epoch, under the table's names."""

    @abstractmethod
    def _quoted(self, cursor: Cursor, *names: str) -> str:
        """Names as they stand in a statement, with dots between them."""

    # --- what is the same ---

    @property
    def where(self) -> str:
        return self.database.where

    def preflight(self, cursor: Cursor, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> bool:
        """Whether the table is to get columns with the rows. Raises `PreflightRefused`; see `Sink.preflight`."""
        if schemas is not None and self.output not in schemas:
            raise PreflightRefused(f"{self.where}: the transform gave no output {self.output}, but {sorted(schemas)}")
        if self._find(cursor) is None:
            if not create:
                raise PreflightRefused(f"{self.where}: table {self.relation} is missing; create it, or say create=True")
            if schemas is None:
                return False
            key = self.upserts.keys[self.output] if self.upserts is not None else ()
            self._make(cursor, self._stored(schemas[self.output]), key)
        if schemas is None:
            return False
        table, stored = self._find(cursor), self._stored(schemas[self.output])
        assert table is not None
        ours = {ORDER_COLUMN, DELETED_COLUMN, *(self.upserts.keys[self.output] if self.upserts is not None else ())}
        lacking = table.lacking(stored, self.epoch_column) if self.adds_columns else []
        new = [column for column in lacking if self.upserts is None or column.name not in ours]
        known = pa.schema([column for column in stored if column not in new])
        self._compare(table, known)
        if new and self._meet_new_columns(cursor, new):
            table, known, new = self._find(cursor), stored, []
            assert table is not None
            self._compare(table, known)
        self._require_rights(cursor, known)
        return bool(new)

    def _compare(self, table: FoundTable, schema: pa.Schema) -> None:
        table.require_fit(f"{self.where}: output {self.output}", schema, self.epoch_column)

    def _stored(self, schema: pa.Schema) -> pa.Schema:
        """The table's columns, all but the epoch's. Raises `PreflightRefused` for what can't be upserted."""
        if self.upserts is None:
            return schema
        if faults := self.upserts.faults(self.output, schema):
            raise PreflightRefused(f"{self.where}: output {self.output} can't be upserted: {'; '.join(faults)}")
        return self.upserts.stored_schema(schema)

    def read(self, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` where nobody can tell whose they are."""
        with self.database.transaction(f"reading table {self.relation}") as cursor:
            found = self._find(cursor), self.own.other_owners(cursor, self.relation)
        column = self._require_epoch_column(*found, schema)
        stored = schema if self.upserts is None else self.upserts.rename(schema)
        rows = self._read(column, epoch, stored)
        return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)

    def read_remaining(self, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """As `read`, without tombstones."""
        deleted = self.upserts.deleted if self.upserts is not None else None
        for batch in self.read(epoch, schema):
            yield batch if deleted is None else batch.filter(pc.invert(batch.column(deleted)))

    # --- rows that are replaced ---

    def require_replaceable(self, cursor: Cursor) -> None:
        """Raises `PreflightRefused` where nobody can tell an epoch's rows, or may take them away. A table that isn't
        there shows none."""
        upserts = self.upserts
        if upserts is not None and upserts.order is Order.COLUMN:
            raise PreflightRefused(
                f"{self.where}: rows of table {self.relation} can't be replaced: which is newer column "
                f"{upserts.order_column} says, and of two with the same order the epoch's number; an epoch that takes "
                "another's place has a larger number than those of later ranges, and would replace their rows"
            )
        if (table := self._find(cursor)) is not None:
            column = self._find_epoch_column(table, self.own.other_owners(cursor, self.relation))
            if self._deletes:
                self._require_may_delete(cursor, column)

    @property
    def keeps_replaced(self) -> bool:
        """Whether rows of a replaced epoch may stay."""
        return self.upserts is not None and self.upserts.on_missing is OnMissing.KEEP

    @property
    def _deletes(self) -> bool:
        """Whether rows that are replaced are deleted from the table."""
        upserts = self.upserts
        return upserts is None or (upserts.on_missing is OnMissing.DELETE and upserts.deleted is None)

    def remove(self, cursor: Cursor, replaced: Replaced) -> str:
        """Delete a replaced epoch's rows within the cursor's transaction, before those come that take their place;
        returns why they can't be taken away, or "". Raises `PreflightRefused` where nobody can tell them."""
        column = self._own_epoch_column(cursor)
        rows, sealed = self._delete(cursor, column, replaced.id), replaced.rows.get(self.output)
        if fault := _fault_of_number(rows, replaced, sealed):
            return fault
        return _fault_of_removal(replaced) if rows != sealed and self._shows(cursor, column, replaced.id) else ""

    def look_at_replaced(self, cursor: Cursor, epoch: SinkEpoch, replaced: Replaced) -> str:
        """Of upserts, before the rows come that take a replaced epoch's place: why nobody can tell its rows, or ""."""
        assert self.upserts is not None
        keep = self.upserts.on_missing is OnMissing.KEEP
        if not keep and not self.own.has_brought(cursor, replaced.id, self.relation):
            return (
                f"nothing says that epoch {replaced.id} has brought its rows there by key, so nobody can tell which "
                "they are: they went into another table"
            )
        tallies, order = self._tally(cursor, self._own_epoch_column(cursor)), self.upserts.order_of(epoch)
        found = [tally for tally in tallies if tally.epoch == replaced.id]
        if fault := _fault_of_number(sum(tally.rows for tally in found), replaced, replaced.rows.get(self.output)):
            return fault
        if any(order is None or tally.order > order for tally in found):
            return f"rows of epoch {replaced.id} have a larger order than epoch {epoch.id}, and would stay in its place"
        alike = {tally.epoch: tally.rows for tally in tallies if tally.order == order}
        strange = [] if keep else self.own.unmarked(cursor, alike.keys())
        if not strange:
            return ""
        return (
            f"{sum(alike[number] for number in strange)} rows have the order of epoch {replaced.id} and a number that "
            f"no epoch of this sink has ({', '.join(map(str, strange[:3]))}), so nobody can tell whether it wrote "
            "them: was the epoch column added after they were there? Give them its number, or say on_missing='keep'"
        )

    def settle(self, cursor: Cursor, epoch: SinkEpoch, replaced: Replaced) -> str:
        """Of upserts, once the rows are there that take a replaced epoch's place: do with those of its rows that are
        left what `OnMissing` says; returns why that can't be, or ""."""
        assert self.upserts is not None
        column = self._own_epoch_column(cursor)
        match self.upserts.on_missing:
            case OnMissing.KEEP:
                return ""
            case OnMissing.REFUSE:
                left = sum(tally.rows for tally in self._tally(cursor, column) if tally.epoch == replaced.id)
                return _fault_of_missing(left, epoch, replaced) if left else ""
        if self.upserts.deleted is None:
            if gone := self._delete(cursor, column, replaced.id):
                self.own.count_keys(cursor, epoch, self.relation, -gone)
            return _fault_of_removal(replaced) if self._shows(cursor, column, replaced.id) else ""
        self._bury(cursor, column, replaced.id)
        return _fault_of_removal(replaced) if self._bury(cursor, column, replaced.id) else ""

    def _own_epoch_column(self, cursor: Cursor) -> str:
        return self._find_epoch_column(self._find(cursor), self.own.other_owners(cursor, self.relation))

    # --- readers ---

    def cut(self, epochs: EpochCut) -> ReadCut:
        """The rows of these epochs. Raises `TargetUnreadable` where nobody can tell them apart, or newer rows have
        taken their places."""
        if self.upserts is not None:
            raise TargetUnreadable(
                f"{self.where}: in table {self.relation} newer rows replace older ones: what it showed as of an epoch "
                "is gone"
            )
        with self.database.transaction(f"looking at table {self.relation}") as cursor:
            try:
                column = self._find_epoch_column(self._find(cursor), self.own.other_owners(cursor, self.relation))
            except PreflightRefused as error:
                raise TargetUnreadable(str(error)) from error
            table, column = self._quoted(cursor, *self.relation.names), self._quoted(cursor, column)
        return ReadCut(self.output, table, epochs.predicate(column))

    def _require_epoch_column(self, table: FoundTable | None, others: Sequence[Owner], schema: pa.Schema) -> str:
        """The table's epoch column. Raises `PreflightRefused` where nobody can tell whose rows are which, or the table
        has changed."""
        column = self._find_epoch_column(table, others)
        assert table is not None
        self._compare(table, schema if self.upserts is None else self.upserts.stored_schema(schema))
        return column

    def _find_epoch_column(self, table: FoundTable | None, others: Sequence[Owner]) -> str:
        if table is None:
            raise PreflightRefused(f"{self.where}: table {self.relation} does not exist any more")
        if (column := table.epoch_column(self.epoch_column)) is None:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} has no column {self.epoch_column}, so nobody can tell whose "
                "rows are which; add it (bigint) to verify epochs from then on"
            )
        if others:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} is shared with {others[0].pipeline}.{others[0].sink}: epoch "
                f"numbers of two sinks can't be told apart; if that sink is gone, delete its row of {others[0].home}."
                "lockstep_target"
            )
        return column


def _fault_of_number(rows: int, replaced: Replaced, sealed: int | None) -> str:
    """Fewer rows than were sealed are nobody's loss: a person has deleted some, or newer ones have their keys."""
    if sealed is None or rows <= sealed:
        return ""
    return (
        f"{rows} rows have the number of epoch {replaced.id}, which brought {sealed}: the others are somebody else's, "
        "a former owner's for instance, and would be taken away with them; give those another number, or null"
    )


def _fault_of_removal(replaced: Replaced) -> str:
    return (
        f"rows of epoch {replaced.id} are there still when they were taken away: a trigger or a rule of the table "
        "keeps them, and readers would see them beside those that take their place"
    )


def _fault_of_missing(rows: int, epoch: SinkEpoch, replaced: Replaced) -> str:
    return (
        f"{rows} rows of epoch {replaced.id} have keys that epoch {epoch.id}, which takes its place, has no row of, "
        "and what those keys had before is gone: say on_missing='delete' in the sink, and they are deleted, or "
        "on_missing='keep', and they stay"
    )


def refuse_referred(where: str, relation: Relation, referring: Sequence[str]) -> None:
    """Raise `PreflightRefused` where rows of `referring` tables refer to this one's: they'd go too, or hold them."""
    if referring:
        raise PreflightRefused(
            f"{where}: rows of table {relation} can't be replaced: foreign keys of {', '.join(referring)} refer to it, "
            "so rows there would be deleted with them, or keep them from being deleted"
        )

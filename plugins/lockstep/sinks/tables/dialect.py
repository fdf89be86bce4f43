"""What differs between databases of table sinks. Everything else is the engine's, in the modules beside this one.

A database takes a subclass of `Dialect`, one of `RowEncoding`, columns that satisfy `TargetColumn`, a connection that
satisfies `Database`, and a subclass of `TableSink`, the public description: see `sinks/postgres` and `sinks/mariadb`.
Its conformance tests are a `TableUnderTest` and a module that applies `tests/sinks/conformance.py` to it, as in
`tests/sinks/mariadb_target.py` and `tests/sinks/test_mariadb_behaviour.py`.

The engine calls a dialect's methods in this order: `set_up`, `create_own_tables` and the checks of tables in
`preflight`; then, for each epoch, a session (`open_session`, `name_session`, `start`), statements in its transaction,
and either `prepare` or the session's commit. A method that takes a cursor works in that cursor's transaction and never
ends it. Driver errors may leave each method as they are, unless it says otherwise: the engine names them.
"""

# ruff: noqa: B027 - a dialect overrides the empty methods that it needs

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.errors import LockstepError, SinkUnavailable
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Batches, SinkEpoch, Txn

Cursor: TypeAlias = Any  #: the driver's; each dialect names its own type
Connection: TypeAlias = Any  #: the driver's, with `cursor()` and `commit()`
Row: TypeAlias = tuple[Any, ...]
Name: TypeAlias = "Relation | str"  #: of a table, or of a column


class TryAgain(Exception):
    """The server is busy with this branch, or the connection broke and the branch is still there."""


class Database(Protocol):
    """Connections to one server, and driver errors that get Lockstep's names."""

    @property
    def where(self) -> str:
        """Beginning of each message: "sink warehouse"."""

    @property
    def lock_timeout(self) -> float:
        """Seconds."""

    def guard(self, cursor: Cursor) -> None:
        """First statement of a transaction: refuse a replica, and settings that can lose committed rows."""

    def transaction(self, doing: str, *, rejected: type[LockstepError] | None = None) -> AbstractContextManager[Cursor]:
        """A short guarded transaction on the kept connection: commits at the end, rolls back on errors."""

    def naming(self, doing: str, rejected: type[LockstepError] | None = None) -> AbstractContextManager[None]:
        """Convert driver errors; a value that the server refuses becomes `rejected`."""

    def is_locked_out(self, error: LockstepError) -> bool:
        """True if `error` was caused by a lock timeout or a deadlock."""

    def close(self) -> None: ...


class TargetColumn(Protocol):
    """A column of a target table, as the catalogue describes it."""

    @property
    def name(self) -> str: ...

    @property
    def type_text(self) -> str:
        """The type as a person writes it."""

    @property
    def needed(self) -> bool:
        """True if an insert has to give a value."""

    @property
    def has_default(self) -> bool: ...

    @property
    def generated(self) -> bool: ...

    @property
    def not_null(self) -> bool: ...

    @property
    def is_bigint(self) -> bool:
        """True for a signed integer of 64 bits."""

    def refusal(self, field: pa.Field) -> str | None:
        """Why values of `field` would not come back as they are; None if they would."""


@dataclass(frozen=True)
class UniqueKey:
    """A constraint of a target that refuses a second row: a primary key, a unique index, an exclusion constraint."""

    name: str
    by_epoch: bool  #: the epoch column is part of it: rows of two epochs never collide


@dataclass(frozen=True)
class RowEncoding(ABC):
    """Encodes an output's batches for one table and sends them, column by column, the epoch's number last."""

    database: Database
    doing: str  #: "output rows into table public.rows", for messages
    rejected: type[LockstepError]  #: raised for rows that the server refuses
    epoch_column: str | None
    epoch: int

    @property
    def by_text(self) -> bool:
        """True if types of the server parse texts, so that only the server knows which texts they refuse."""
        return False

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns that are filled, in their order."""

    @abstractmethod
    def send(self, cursor: Cursor, table: Relation, batches: Batches) -> int:
        """Send all rows into `table`, which has these columns; returns their number, which the server has confirmed.

        Raises `SinkRejected` for values that the server would change, `rejected` for other numbers of rows.
        """

    @abstractmethod
    def check(self, batches: Batches) -> int:
        """Encode the rows without sending them; returns their number. Raises `SinkRejected` as `send`."""

    def is_harmless(self, cursor: Cursor, batch: pa.RecordBatch) -> bool:
        """True if a table that accepts every row whose types fit (`Dialect.accepts_fitting_rows`) accepts these."""
        return False

    @property
    def where(self) -> str:
        return f"{self.database.where}: {self.doing}"

    def rejection(self, reason: str) -> LockstepError:
        return self.rejected(f"{self.where}: {reason}")

    def require_complete(self, rows: int, batches: Batches) -> None:
        if rows != batches.rows:
            raise self.rejection(f"the WAL gave {rows} rows, the manifest has {batches.rows}")


@dataclass(frozen=True)
class Merge:
    """Rows of one epoch in a staging table, on their way into a table where newer rows replace those of the same key.

    A row is newer by (`lockstep_order`, epoch column).
    """

    table: Relation
    staging: Relation
    encoding: RowEncoding
    columns: list[str]  #: that the epoch gives
    key: list[str]
    epoch_column: str
    by_column: bool  #: each row has its own order, so that an epoch may have several rows of a key
    cleared: Sequence[str] = ()  #: columns that become null in a row that is replaced


@dataclass(frozen=True)
class Dialect(ABC):
    """One database of one open sink. Class constants are capabilities and pieces of SQL; {names} are filled in."""

    #: ALTER TABLE takes part in a transaction, so that new columns come with the rows; else they come in `preflight`
    adds_columns_with_rows: ClassVar[bool] = False
    #: a transaction that is only tried inserts the marker too: other sessions find a stopped one by it
    marks_trials: ClassVar[bool] = False
    #: a row may consist of the epoch column alone
    accepts_no_columns: ClassVar[bool] = True
    #: a transaction may be opened before the WAL is sealed
    loads_early: ClassVar[bool] = False
    commit_verb: ClassVar[str]
    roll_back_verb: ClassVar[str]
    prepared_list: ClassVar[str]  #: where the server lists prepared branches, for a message
    #: INSERT into {keys}, or add to `new` of the existing row
    add_keys: ClassVar[str]
    rows_column: ClassVar[str] = "rows"
    #: the column `relation` of `lockstep_target`, spelled as the catalogue has the name
    relation_as_stored: ClassVar[str] = "relation"

    database: Database
    owner: SinkName
    own_schema: str  #: of Lockstep's own tables
    upserts: bool  #: the sink replaces rows by key

    @property
    def where(self) -> str:
        return self.database.where

    @property
    @abstractmethod
    def default_schema(self) -> str:
        """The schema of tables whose name has none."""

    @property
    def owner_key(self) -> tuple[str, str, str]:
        """The first columns of the keys of Lockstep's own tables."""
        return self.owner.deployment, self.owner.pipeline, self.owner.sink

    # --- statements ---

    @abstractmethod
    def compose(self, statement: str, names: Mapping[str, Name], *, has_values: bool) -> Any:
        """`statement` with each {name} replaced by the quoted one. `has_values`: a percent sign in a name is doubled,
        as the driver reads it so."""

    def query(self, cursor: Cursor, statement: str, values: Sequence[object] = (), **names: Name) -> list[Row]:
        """The rows of `statement`, with `values` for %s and quoted `names` for {name}."""
        cursor.execute(self.compose(statement, names, has_values=bool(values)), tuple(values) or None)
        return list(cursor.fetchall())

    def change(self, cursor: Cursor, statement: str, values: Sequence[object] = (), **names: Name) -> int:
        """Run a statement that changes rows; returns how many."""
        cursor.execute(self.compose(statement, names, has_values=bool(values)), tuple(values) or None)
        return int(cursor.rowcount)

    @abstractmethod
    def insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Name) -> bool:
        """Insert a row; False if its key exists. Waits for other transactions that hold the key."""

    @abstractmethod
    def quoted(self, cursor: Cursor, *names: str) -> str:
        """Names as a statement has them, with dots between them."""

    # --- preflight, and Lockstep's own tables in `own_schema` ---

    @abstractmethod
    def set_up(self) -> AbstractContextManager[Cursor]:
        """A cursor to create tables with, under a lock that admits one set-up at a time.

        Raises `PreflightRefused` for what the server refuses, and for settings that the sink can't work with.
        """

    def require_rights(self, cursor: Cursor, targets: Sequence[Relation], *, create: bool) -> None:
        """Raise `PreflightRefused` with the missing grants, where the server can be asked for all of them at once."""

    def require_may_own(self, cursor: Cursor) -> None:
        """Raise `PreflightRefused` with the missing grant if the role can't write to `lockstep_target`."""

    @abstractmethod
    def create_own_tables(self, cursor: Cursor) -> None:
        """Create the missing ones; without the right to create, succeeds if all exist."""

    @abstractmethod
    def existing_tables(self, cursor: Cursor, *tables: str) -> set[str]:
        """The subset of `tables` that exists in `own_schema`, read in one round trip."""

    @abstractmethod
    def other_schemas(self, cursor: Cursor) -> list[str]:
        """Schemas with a `lockstep_target`, besides `own_schema`."""

    def is_unreadable(self, error: Exception) -> bool:
        """True for the driver's error of a `lockstep_target` that isn't Lockstep's, or that the role can't read."""
        return False

    @abstractmethod
    def stored_name(self, cursor: Cursor, relation: Relation) -> Relation:
        """The name as the catalogue has it, or would have it."""

    def related_tables(self, cursor: Cursor, relation: Relation) -> set[str]:
        """`relation` and every table that shares rows with it: partitions, children, parents."""
        return {str(relation)}

    # --- sessions and transactions ---

    @abstractmethod
    def connect(self, purpose: str) -> Connection:
        """A new connection, with safe settings. Raises `SinkUnavailable`, `PreflightRefused`."""

    @abstractmethod
    def open_session(self, epoch: SinkEpoch) -> Connection:
        """A new connection for one execution of an epoch. Raises as `connect`."""

    @abstractmethod
    def close(self, connection: Connection) -> None:
        """Close it, without an error."""

    def name_session(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        """Make the session findable by sink, epoch and token, where its connection doesn't carry them. Raises
        `SinkUnavailable` if another session has the same token."""

    def start(self, connection: Connection, cursor: Cursor, handle: str | None) -> None:
        """Begin the transaction, to be prepared under `handle`, where the driver doesn't begin it by itself."""

    def check_constraints(self, cursor: Cursor) -> None:
        """Check what the database would only check at the commit."""

    # --- publishers of the same epoch ---

    def lock_out_publishers(self, cursor: Cursor, epoch: SinkEpoch) -> bool:
        """Become the only publisher, where the database has a lock for it.

        False if another one works, or has an equal or higher token. One of a lower token that makes no progress is
        ended.
        """
        return True

    def publisher(self, epoch: SinkEpoch) -> object:
        """The session that has inserted the epoch's marker, and its progress, where publishers are found by it."""
        return None

    def is_publishing(self, before: object, epoch: SinkEpoch) -> bool:
        """True if the publisher that holds the marker has an equal or higher token, or has made progress since
        `before`, an earlier result of `publisher`."""
        return False

    @abstractmethod
    def end_sessions(self, epoch: SinkEpoch) -> None:
        """End sessions of this epoch with lower tokens: stopped clients that hold locks."""

    @abstractmethod
    def lock_holders(self, epoch: SinkEpoch) -> str:
        """Sessions and branches of other executions of this epoch, for a message."""

    # --- prepared branches: prepared transactions, XA ---

    def require_room(self, cursor: Cursor) -> tuple[str, int] | None:
        """The server's room for prepared branches, see `OpenSink.room`. Raises `PreflightRefused` where it prepares
        nothing, and `TargetFull` where it has no room for one more."""
        return None

    @abstractmethod
    def handle(self, epoch: SinkEpoch) -> str:
        """The name of this execution's branch."""

    @abstractmethod
    def parse(self, handle: str) -> Txn | None:
        """The transaction that `handle` names; None if it isn't of this owner."""

    @abstractmethod
    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        """Prepare the cursor's transaction; returns also when the connection breaks meanwhile."""

    def await_release(self, txn: Txn) -> None:
        """Wait until the server has noticed that the session which prepared `txn` is gone."""

    @abstractmethod
    def pending(self) -> list[Txn]:
        """Every prepared branch of this owner, read on the primary; branches with similar names are foreign."""

    def is_pending(self, handle: str) -> bool:
        """True if `handle` is prepared, read on the primary."""
        return handle in {txn.handle for txn in self.pending()}

    @abstractmethod
    def finish(self, verb: str, handle: str) -> bool:
        """Commit or roll back a prepared branch by `commit_verb` or `roll_back_verb`: True if this call did it, False
        if the branch is gone. Raises `TryAgain`, `PublishBlocked`, `SinkUnavailable`."""

    def require_gone(self, handle: str, error: Exception) -> None:
        """Raise `TryAgain` unless the branch is gone, after the connection broke in mid-statement."""
        self.database.close()
        try:
            pending = self.is_pending(handle)
        except SinkUnavailable as unavailable:
            raise TryAgain(str(unavailable)) from error
        if pending:
            raise TryAgain("the connection broke, and it is still prepared") from error

    # --- target tables ---

    @abstractmethod
    def find_columns(self, cursor: Cursor, relation: Relation) -> Mapping[str, TargetColumn] | None:
        """The table's columns, by name; None if there is no such table. Raises `PreflightRefused` for a table that
        can't keep rows safely."""

    @abstractmethod
    def find_column(self, columns: Mapping[str, TargetColumn], name: str) -> str | None:
        """The column that the server means by `name`."""

    @abstractmethod
    def create_table(
        self, cursor: Cursor, relation: Relation, schema: pa.Schema, epoch_column: str | None, key: Sequence[str]
    ) -> None:
        """Create a table for rows of `schema`, with the epoch column, and an index on it or a primary `key`.

        Raises `PreflightRefused` for Arrow types that the database can't give back.
        """

    def require_addable(self, cursor: Cursor, relation: Relation, new: Sequence[pa.Field]) -> None:
        """Raise `PreflightRefused` for columns that the table can't get, or that the role may not add."""

    @abstractmethod
    def add_columns(self, cursor: Cursor, relation: Relation, new: Sequence[pa.Field]) -> None:
        """Add nullable columns. Raises `PreflightRefused` as `require_addable`."""

    @abstractmethod
    def unique_keys(
        self, cursor: Cursor, relation: Relation, columns: Sequence[str], epoch_column: str | None
    ) -> list[UniqueKey]:
        """Constraints that may refuse a second row of `columns`, without those that the server numbers."""

    def has_triggers(self, cursor: Cursor, relation: Relation) -> bool:
        """True if the table has any, foreign keys included. Only asked where `loads_early`."""
        return True

    def require_insert(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> None:
        """Refuse a role that can't insert these columns, where `require_rights` doesn't."""

    @abstractmethod
    def require_upsertable(
        self, cursor: Cursor, relation: Relation, columns: Mapping[str, TargetColumn], key: Sequence[str]
    ) -> None:
        """Raise `PreflightRefused` for a table without a unique key on just `key`, or with another one, or whose key
        takes different values for equal; and for missing rights to upsert."""

    @abstractmethod
    def require_may_delete(self, cursor: Cursor, relation: Relation, epoch_column: str) -> None:
        """Refuse, with the missing grant, a role that can't delete rows by that column."""

    @abstractmethod
    def referring_tables(self, cursor: Cursor, relation: Relation) -> list[str]:
        """Tables with a foreign key to this one."""

    # --- rows ---

    def lock_columns(self, cursor: Cursor, relation: Relation) -> None:
        """Keep other sessions from changing the table's columns until the transaction ends."""

    @abstractmethod
    def encoding(
        self,
        columns: Mapping[str, TargetColumn],
        schema: pa.Schema,
        *,
        doing: str,
        rejected: type[LockstepError],
        epoch_column: str | None,
        epoch: int,
    ) -> RowEncoding:
        """The encoding of `schema` for a table with these columns, which were compared with it."""

    def accepts_fitting_rows(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> bool:
        """True if nothing of the table could refuse or change a row of these columns whose types fit: no constraint,
        no trigger."""
        return False

    @abstractmethod
    def read_rows(
        self,
        relation: Relation,
        columns: Mapping[str, TargetColumn],
        epoch_column: str,
        epoch: int,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        """The committed rows of an epoch, cast to `schema`, in any order. Raises `SinkUnavailable`, `SinkRejected`, and
        `TargetUnreadable` for columns that don't give texts back as they were."""

    # --- upserts ---

    def compares_keys_by_bytes(self, cursor: Cursor, relation: Relation, key: Sequence[str]) -> bool:
        """True if two keys are equal for the server only where they are for Arrow."""
        return True

    @abstractmethod
    def leading_column(self, cursor: Cursor, relation: Relation, key: Sequence[str]) -> str | None:
        """The first column of the table's unique index on `key`."""

    @abstractmethod
    def create_staging(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> Relation:
        """Create an empty table with these columns of `relation`, without its keys, that no other session sees."""

    @abstractmethod
    def drop_staging(self, cursor: Cursor, staging: Relation) -> None:
        """Drop it and free its space."""

    @abstractmethod
    def find_duplicates(self, cursor: Cursor, staging: Relation, columns: Sequence[str]) -> list[object]:
        """Some values of `columns` that occur in more than one row. Raises nothing for those."""

    @abstractmethod
    def merge(self, cursor: Cursor, merge: Merge, rows: int) -> int:
        """Write all `rows` that are newer than the table's into it; returns the number of new keys.

        Raises `merge.encoding.rejected` if the server did not take them all.
        """

    @abstractmethod
    def compare(self, cursor: Cursor, merge: Merge) -> Row:
        """The four numbers of `RowStatus`, for the staged rows; None for 0."""

"""Rows into MariaDB tables, exactly once: all tables of a sink appear together and whole.

`MySqlSink(...)` is one of two classes, chosen by `protocol` as pathlib.Path chooses its own: "two_phase" has the rows
in a prepared XA branch before the decision, which any process can finish, "write_ahead" sends them after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
)
from lockstep.sinks.base import Batches, Guarantee, Marker, Publication, Sink, SinkContext, SinkEpoch, Standing, Txn
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mysql.branches import Branches, BranchName
from lockstep.sinks.mysql.claim import Claim, Claims
from lockstep.sinks.mysql.connection import Database
from lockstep.sinks.mysql.output import OutputTable
from lockstep.sinks.mysql.tables import Relation
from lockstep.sinks.mysql.target import TargetTables
from lockstep.sinks.mysql.upsert import Upsert
from lockstep.sinks.mysql.wire import Cursor, close_quietly, is_locked_out
from lockstep.sinks.tables.upserts import Keys, Mode, Upserts

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
Validate: TypeAlias = Literal["load", "schema"]


class MySqlSink(Sink):
    """Tables of a MariaDB server (10.5 or newer).

    `tables`: output → "database.table", or "table" of the connection's database. `connection`: the id of a DSN,
    `mysql://user:password@host:port/database`. `create`: make missing tables from the output's schema. `epoch_column`:
    filled with the epoch where a table has it, None to leave it; without it nobody can verify. `shared`: let other
    pipelines that say so too write to the same tables. `validate` (write_ahead): "load" tries the rows in the real
    tables and rolls back, "schema" compares types, values and counts. `schema`: the database in which Lockstep's own
    tables live; the connection's unless given. `lock_timeout`: seconds.

    `mode`: "upsert" has one row a `key` (columns, or a mapping of output to columns): the newest by `order` ("epoch",
    "interval_end", "column:<name>"; default: the interval's end, else the epoch), and `deleted` names the boolean
    column of rows that only say that a key is gone (see `lockstep.sinks.tables.upserts`). `guarantee` (write_ahead):
    "at_least_once" with a `committer` ("postgres:<connection id>" or a folder), or "none".
    """

    protocol: ClassVar[ProtocolName]

    def __new__(cls, name: str, *, protocol: ProtocolName | None = None, mode: str = Mode.APPEND, **_: Any) -> Self:
        protocol = protocol or ("write_ahead" if mode == Mode.UPSERT else None)  # it holds no keys
        sink: Self = super().__new__(_class_of(name, protocol) if cls is MySqlSink else cls)
        return sink

    def __init__(
        self,
        name: str,
        *,
        tables: Mapping[str, str],
        connection: str,
        protocol: ProtocolName | None = None,
        create: bool = False,
        epoch_column: str | None = "lockstep_epoch",
        shared: bool = False,
        validate: Validate = "load",
        schema: str | None = None,
        lock_timeout: float = 10.0,
        mode: str = Mode.APPEND,
        key: Keys | None = None,
        order: str | None = None,
        deleted: str | None = None,
        guarantee: str = Guarantee.EXACTLY_ONCE,
        committer: str | None = None,
    ) -> None:
        super().__init__(name)
        self._names = dict(tables)
        self._connection = connection
        self._create, self._epoch_column, self._shared = create, epoch_column, shared
        self._validate, self._schema, self._lock_timeout = validate, schema, lock_timeout
        self._upserts = Upserts.of(name, tables, mode, key, order, deleted)
        self.replaces = self._upserts is not None
        self._check_arguments(protocol)
        self._promise(guarantee, committer)

    def _check_arguments(self, protocol: str | None) -> None:
        if protocol not in (None, self.protocol):
            raise InvalidPipeline(f"sink {self.name}: {type(self).__name__} speaks {self.protocol}, not {protocol!r}")
        if self._validate not in ("load", "schema"):
            raise InvalidPipeline(f"sink {self.name}: validate={self._validate!r} is neither 'load' nor 'schema'")
        if not self._lock_timeout > 0:
            raise InvalidPipeline(f"sink {self.name}: lock_timeout is {self._lock_timeout}, has to be above 0 seconds")
        if self._upserts is not None and self._shared:
            raise InvalidPipeline(
                f"sink {self.name}: mode='upsert' can't share a table: the epochs of two pipelines have no order"
            )
        if self._upserts is not None and self._epoch_column is None:
            raise InvalidPipeline(f"sink {self.name}: mode='upsert' needs an epoch_column: it is part of the order")
        self._tables_in("the connection's")

    def _tables_in(self, database: str) -> dict[str, OutputTable]:
        relations = {output: Relation.parse(table, database) for output, table in self._names.items()}
        if not relations or len(set(relations.values())) != len(relations):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")
        return {
            output: OutputTable(self.name, output, relation, self._epoch_column, self._upserts)
            for output, relation in relations.items()
        }

    def _promise(self, guarantee: str, committer: str | None) -> None:
        """Take on what is asked for. Raises `InvalidPipeline` where this protocol can't."""
        if guarantee != Guarantee.EXACTLY_ONCE or committer is not None:
            raise InvalidPipeline(
                f"sink {self.name}: protocol='two_phase' is exactly_once and has its marker among the rows; for "
                f"guarantee={guarantee!r} or a committer say protocol='write_ahead'"
            )

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self._names)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "tables": dict(self._names),
            "connection": self._connection,
            "protocol": self.protocol,
            "create": self._create,
            "epoch_column": self._epoch_column,
            "shared": self._shared,
            "validate": self._validate,
            "schema": self._schema,
            "lock_timeout": self._lock_timeout,
            **(self._upserts.arguments() if self._upserts is not None else {}),
        }

    def spec(self) -> Json:
        """Names this class, which chooses by protocol: plans outlive the two classes behind it."""
        spec = super().spec()
        if type(self) is _class_of(self.name, self.protocol):
            spec["type"] = f"{MySqlSink.__module__}:{MySqlSink.__qualname__}"
        return spec

    # --- life cycle ---

    def open(self, context: SinkContext) -> None:
        dsn = context.dsn(self._connection, self.name)
        self._database = Database(self.name, self._connection, dsn, self._lock_timeout)
        self._tables = self._tables_in(self._database.name)
        owner, home = SinkName.of(context, self.name), self._schema or self._database.name
        self._own = TargetTables(home, owner)
        self._branches = Branches(self._database, self._own, BranchName(owner, home))
        self._claims = Claims(self._database, self._own, self._branches)

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        naming = self._database.naming("preflight", PreflightRefused)
        with naming, self._database.outside_transaction() as cursor:
            self._preflight_settings(cursor)
            self._own.lock_set_up(cursor, self._lock_timeout)
            try:
                self._own.create(cursor, upserts=self.replaces)
                for table in self._tables.values():
                    table.preflight(cursor, schemas, create=self._create)
                relations = [table.relation for table in self._tables.values()]
                self._own.claim(cursor, relations, shared=self._shared, alone=self.replaces)
            finally:
                self._own.unlock_set_up(cursor)

    def _preflight_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this sink can't work with, beyond what every transaction checks."""
        cursor.execute("SELECT @@GLOBAL.local_infile")
        if cursor.fetchone() != (1,):
            raise PreflightRefused(
                f"sink {self.name}: local_infile = 0: rows are sent by LOAD DATA LOCAL; set it to 1 on the server"
            )

    # --- proof and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        with self._database.transaction("looking for the marker") as cursor:
            return self._own.find_marker(cursor, epoch)

    def target_id(self) -> str:
        with self._database.transaction("reading the target's id") as cursor:
            return self._own.target_id(cursor)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._tables[output].read(self._database, self._own, epoch, schema)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        """Copies the sealed rows into a temporary table and compares them there."""
        way = self._tables[sealed.output].way(self._database, self._own, epoch, SinkRejected)
        assert isinstance(way, Upsert)
        connection = self._database.connect()
        try:
            with self._database.naming(f"comparing output {sealed.output}"), connection.cursor() as cursor:
                self._database.guard(cursor)
                return way.standing(connection, cursor, sealed)
        finally:
            close_quietly(connection)

    def missing_keys(self, output: str) -> int | None:
        relation = self._tables[output].relation
        with self._database.transaction(f"counting the keys of {relation}") as cursor:
            return self._own.missing_keys(cursor, relation) if self.replaces else None

    if TYPE_CHECKING:  # a checker can't see that __new__ gives a class which has them

        def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
            raise NotImplementedError

        def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
            raise NotImplementedError

        def pending(self) -> list[Txn]:
            raise NotImplementedError

        def abort(self, txn: Txn) -> None:
            raise NotImplementedError

    # --- shared by both protocols ---

    def _load(self, claim: Claim, batches: Batches, rejected: type[LockstepError]) -> None:
        try:
            way = self._tables[batches.output].way(self._database, self._own, claim.epoch, rejected)
            claim.rows[batches.output] = way.run(claim.connection, claim.cursor, batches)
        except SinkUnavailable as error:
            claim.close()
            if is_locked_out(error):
                self._branches.end_sessions(claim.epoch)  # a stopped one may hold the same keys
                self._tell_holders(claim.epoch, error)
            raise

    def _tell_holders(self, epoch: SinkEpoch, error: SinkUnavailable) -> None:
        holders = [txn for txn in self._branches.pending() if txn.epoch != epoch.id] if self.replaces else []
        if holders:
            named = ", ".join(f"epoch {txn.epoch} ({txn.handle})" for txn in holders)
            raise KeysHeld(
                f"{error}; keys of epoch {epoch.id} are held by what was prepared and not yet published: {named}; try "
                "again when that is published or aborted"
            ) from error

    def _refuse_marker(self, epoch: SinkEpoch) -> LedgerConflict:
        marker = self.find_marker(epoch.id)
        found = f"manifest {marker.manifest_hash[:12]}, token {marker.token}" if marker else "another execution"
        return LedgerConflict(
            f"sink {self.name}: epoch {epoch.id} is published already, by {found}, although this execution (manifest "
            f"{epoch.manifest_hash[:12]}, token {epoch.token}) precedes the decision: either it was superseded, or the "
            "ledger is older than the target"
        )

    @contextmanager
    def _publishing(self, epoch: SinkEpoch) -> Iterator[Claim]:
        """Claim the marker; commit at the end. A refusal of the server blocks the decided epoch, it can't reject it."""
        claim = self._claims.after_decision(epoch)
        try:
            yield claim
            if claim.claimed:
                self._commit_claim(claim)
        finally:
            claim.close()

    def _commit_claim(self, claim: Claim, *, with_marker: bool = True) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        if not with_marker:
            with self._database.naming(f"publishing epoch {claim.epoch.id}", PublishBlocked):
                self._own.delete_marker(claim.cursor, claim.epoch)
        # if the answer is lost, the next try finds the marker, or nothing
        with self._database.naming(f"committing epoch {claim.epoch.id}", PublishBlocked):
            claim.connection.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)


def _class_of(name: str, protocol: str | None) -> Any:
    from lockstep.sinks.mysql.write_ahead import MySqlWriteAheadSink  # they build on this module
    from lockstep.sinks.mysql.xa import MySqlTwoPhaseSink

    match protocol:
        case "two_phase" | None:
            return MySqlTwoPhaseSink
        case "write_ahead":
            return MySqlWriteAheadSink
        case _:
            raise InvalidPipeline(f"sink {name}: protocol={protocol!r} is neither 'two_phase' nor 'write_ahead'")

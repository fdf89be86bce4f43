"""Rows into PostgreSQL tables, exactly once: all tables of a sink appear together and whole.

`PostgresSink(...)` is one of two classes, chosen by `protocol` as pathlib.Path chooses its own: "two_phase" has the
rows in a prepared transaction before the decision, "write_ahead" sends them after it and needs no prepared
transactions.

Triggers on a target run with the rows. One that uses LISTEN, NOTIFY or a temporary table makes PREPARE TRANSACTION fail
(`SinkRejected`, nothing is shown), one that drops rows is found by the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import pyarrow as pa
from psycopg2.extensions import cursor as Cursor

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
)
from lockstep.sinks.base import Batches, Guarantee, Marker, Publication, Sink, SinkContext, SinkEpoch, Standing, Txn
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres.branches import Branches
from lockstep.sinks.postgres.claim import Claim, Claims
from lockstep.sinks.postgres.connection import Database, close_quietly, is_locked_out
from lockstep.sinks.postgres.output import OutputTable
from lockstep.sinks.postgres.target import Relation, TargetTables
from lockstep.sinks.postgres.upsert import Upsert
from lockstep.sinks.tables.upserts import Keys, Mode, Upserts

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
Validate: TypeAlias = Literal["load", "schema"]

DDL_LOCK_SECONDS = 0.2  #: behind a prepared transaction DDL would wait for ever, and everybody behind it


class PostgresSink(Sink):
    """Tables of one PostgreSQL database (14 or newer).

    `tables`: output → "schema.table", spelled as in the catalog. `connection`: the id of a DSN. `create`: make missing
    tables from the output's schema. `epoch_column`: filled with the epoch where a table has it, None to leave it;
    without it nobody can verify. `shared`: let other pipelines that say so too write to the same tables. `validate`
    (write_ahead): "load" tries the rows in the real tables and rolls back, "schema" compares types and counts.
    `schema`: where Lockstep's own tables live. `lock_timeout`: seconds.

    `mode`: "upsert" has one row a `key` (columns, or a mapping of output to columns): the newest by `order` ("epoch",
    "interval_end", "column:<name>"; default: the interval's end, else the epoch), and `deleted` names the boolean
    column of rows that only say that a key is gone (see `lockstep.sinks.tables.upserts`). `guarantee` (write_ahead):
    "at_least_once" with a `committer` ("postgres:<connection id>" or a folder), or "none".
    """

    protocol: ClassVar[ProtocolName]

    def __new__(cls, name: str, *, protocol: ProtocolName | None = None, mode: str = Mode.APPEND, **_: Any) -> Self:
        protocol = protocol or ("write_ahead" if mode == Mode.UPSERT else None)  # it holds no keys
        sink: Self = super().__new__(_class_of(name, protocol) if cls is PostgresSink else cls)
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
        schema: str = "public",
        lock_timeout: float = 10.0,
        mode: str = Mode.APPEND,
        key: Keys | None = None,
        order: str | None = None,
        deleted: str | None = None,
        guarantee: str = Guarantee.EXACTLY_ONCE,
        committer: str | None = None,
    ) -> None:
        super().__init__(name)
        self._connection = connection
        self._create, self._epoch_column, self._shared = create, epoch_column, shared
        self._validate, self._schema, self._lock_timeout = validate, schema, lock_timeout
        self._upserts = Upserts.of(name, tables, mode, key, order, deleted)
        self.replaces = self._upserts is not None
        self._tables = {
            output: OutputTable(name, output, Relation.parse(table), epoch_column, self._upserts, schema)
            for output, table in tables.items()
        }
        self._check_arguments(protocol)
        self._promise(guarantee, committer)

    def _check_arguments(self, protocol: str | None) -> None:
        if protocol not in (None, self.protocol):
            raise InvalidPipeline(f"sink {self.name}: {type(self).__name__} speaks {self.protocol}, not {protocol!r}")
        if self._validate not in ("load", "schema"):
            raise InvalidPipeline(f"sink {self.name}: validate={self._validate!r} is neither 'load' nor 'schema'")
        if not self._lock_timeout > 0:
            raise InvalidPipeline(f"sink {self.name}: lock_timeout is {self._lock_timeout}, has to be above 0 seconds")
        if not self._tables or len({table.relation for table in self._tables.values()}) != len(self._tables):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")
        if self._upserts is not None and self._shared:
            raise InvalidPipeline(
                f"sink {self.name}: mode='upsert' can't share a table: the epochs of two pipelines have no order"
            )
        if self._upserts is not None and self._epoch_column is None:
            raise InvalidPipeline(f"sink {self.name}: mode='upsert' needs an epoch_column: it is part of the order")

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
        return tuple(self._tables)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "tables": {output: str(table.relation) for output, table in self._tables.items()},
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
            spec["type"] = f"{PostgresSink.__module__}:{PostgresSink.__qualname__}"
        return spec

    # --- life cycle ---

    def open(self, context: SinkContext) -> None:
        dsn = context.dsn(self._connection, self.name)
        self._database = Database(self.name, self._connection, dsn, self._lock_timeout)
        owner = SinkName.of(context, self.name)
        self._own = TargetTables(self._schema, owner)
        self._branches = Branches(self._database, owner)
        self._claims = Claims(self._database, self._own, self._branches)

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        with self._database.transaction("preflight", rejected=PreflightRefused) as cursor:
            self._preflight_settings(cursor)
            self._own.lock_set_up(cursor)
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", (str(round(1000 * DDL_LOCK_SECONDS)),))
            self._own.create(cursor, upserts=self.replaces)
            for output in self.outputs:
                self._tables[output].preflight(cursor, schemas, create=self._create)
            relations = [table.relation for table in self._tables.values()]
            self._own.claim(cursor, relations, shared=self._shared, alone=self.replaces)

    def _preflight_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this protocol can't work with, beyond what every transaction checks."""

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
        """Copies the sealed rows to the server, compares them there, and rolls back."""
        way = self._tables[sealed.output].way(self._database, self._own, epoch, SinkRejected)
        assert isinstance(way, Upsert)
        connection = self._database.connect(f"lockstep {self.name} verify"[:63])
        try:
            with self._database.naming(f"comparing output {sealed.output}"):
                cursor = connection.cursor()
                self._database.guard(cursor)
                return way.standing(cursor, sealed)
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

    def _copy(self, claim: Claim, batches: Batches, rejected: type[LockstepError]) -> None:
        try:
            way = self._tables[batches.output].way(self._database, self._own, claim.epoch, rejected)
            claim.rows[batches.output] = way.run(claim.cursor, batches)
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

    def _commit_claim(self, claim: Claim) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        # if the answer is lost, the next try finds the marker, or nothing
        with self._database.naming(f"committing epoch {claim.epoch.id}", PublishBlocked):
            claim.connection.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)


def _class_of(name: str, protocol: str | None) -> Any:
    from lockstep.sinks.postgres.two_phase import PostgresTwoPhaseSink  # they build on this module
    from lockstep.sinks.postgres.write_ahead import PostgresWriteAheadSink

    match protocol:
        case "two_phase" | None:
            return PostgresTwoPhaseSink
        case "write_ahead":
            return PostgresWriteAheadSink
        case _:
            raise InvalidPipeline(f"sink {name}: protocol={protocol!r} is neither 'two_phase' nor 'write_ahead'")

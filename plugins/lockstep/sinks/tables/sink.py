"""Rows into the tables of one database, exactly once: what is the same whatever database it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LedgerConflict,
    LockstepError,
    PublishBlocked,
    SinkUnavailable,
)
from lockstep.sinks.base import Batches, Guarantee, Marker, Publication, Sink, SinkContext, SinkEpoch, Txn, type_name
from lockstep.sinks.handles import SinkName
from lockstep.sinks.tables.branches import TableBranches
from lockstep.sinks.tables.claim import AnyClaim, TableClaims
from lockstep.sinks.tables.server import Database, Output, TargetTables
from lockstep.sinks.tables.upserts import Keys, Mode, Upserts

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
Validate: TypeAlias = Literal["load", "schema"]


class TableSink(Sink):
    """Tables of one database, all of which show an epoch together.

    A database has a subclass that says how it is spoken to and names its `_speakers`, one for each protocol; calling
    it gives one of those. What the arguments mean is told there.
    """

    operational = frozenset({"lock_timeout"})
    protocol: ClassVar[ProtocolName]
    default_schema: ClassVar[str | None] = None  #: of Lockstep's own tables; None: the connection's

    _database: Database
    _tables: Mapping[str, Output]  #: by output
    _own: TargetTables
    _branches: TableBranches
    _claims: TableClaims

    def __new__(cls, name: str, *, protocol: ProtocolName | None = None, mode: str = Mode.APPEND, **_: Any) -> Self:
        protocol = protocol or ("write_ahead" if mode == Mode.UPSERT else None)  # it holds no keys
        sink: Self = super().__new__(cls._speaker(name, protocol) if cls is cls._chooser() else cls)
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
        self._names = {output: self._spelled(table) for output, table in tables.items()}
        self._connection = connection
        self._create, self._epoch_column, self._shared = create, epoch_column, shared
        self._validate, self._lock_timeout = validate, lock_timeout
        self._schema = self.default_schema if schema is None else schema
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
        self._require_distinct([self._relation(table) for table in self._names.values()])
        if self._upserts is not None and self._shared:
            raise InvalidPipeline(
                f"sink {self.name}: mode='upsert' can't share a table: the epochs of two pipelines have no order"
            )
        if self._upserts is not None and self._epoch_column is None:
            raise InvalidPipeline(f"sink {self.name}: mode='upsert' needs an epoch_column: it is part of the order")

    def _require_distinct(self, relations: Collection[Hashable]) -> None:
        if not relations or len(set(relations)) != len(relations):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")

    def _promise(self, guarantee: str, committer: str | None) -> None:
        """Take on what is asked for. Raises `InvalidPipeline` where this protocol can't."""
        if guarantee != Guarantee.EXACTLY_ONCE or committer is not None:
            raise InvalidPipeline(
                f"sink {self.name}: protocol='two_phase' is exactly_once and has its marker among the rows; for "
                f"guarantee={guarantee!r} or a committer say protocol='write_ahead'"
            )

    # --- what each database does in its own way ---

    @classmethod
    @abstractmethod
    def _speakers(cls) -> Mapping[str, Any]:
        """The class for each protocol; they build on the one that says this."""

    def _spelled(self, table: str) -> str:
        """How the plan names a table that was given as `table`."""
        return table

    @abstractmethod
    def _relation(self, table: str) -> Hashable:
        """The table that `table` names; equal for two spellings of one table."""

    @abstractmethod
    def _connect(self, dsn: str, owner: SinkName) -> None:
        """Make `_database`, `_tables`, `_own`, `_branches` and `_claims`."""

    @abstractmethod
    def _setting_up(self) -> AbstractContextManager[Any]:
        """A cursor to create tables with, alone; what the server refuses is `PreflightRefused`."""

    @abstractmethod
    def _write(self, claim: AnyClaim, batches: Batches, rejected: type[LockstepError]) -> int:
        """Send an output's rows; returns how many. What the server refuses for its content is `rejected`."""

    def _require_rights(self, cursor: Any) -> None:
        """Refuse, with the grants that are missing, who may not write to the tables; where all can be asked at once."""

    # --- identity ---

    @classmethod
    def _chooser(cls) -> type[TableSink]:
        """The class of the database, which chooses by protocol."""
        return next(found for found in cls.__mro__ if "_speakers" in vars(found))

    @classmethod
    def _speaker(cls, name: str, protocol: str | None) -> Any:
        speakers = cls._speakers()
        if (protocol or "two_phase") not in speakers:
            raise InvalidPipeline(f"sink {name}: protocol={protocol!r} is neither 'two_phase' nor 'write_ahead'")
        return speakers[protocol or "two_phase"]

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

    def writes_to(self) -> frozenset[str]:
        return frozenset(f"table {table} of connection {self._connection}" for table in self._names.values())

    def spec(self) -> Json:
        """Names the class that chooses by protocol: plans outlive the two classes behind it."""
        spec = super().spec()
        if type(self) is self._speaker(self.name, self.protocol):
            chooser = self._chooser()
            spec["type"] = type_name(chooser)
        return spec

    # --- life cycle ---

    def open(self, context: SinkContext) -> Any:
        self._connect(context.dsn(self._connection, self.name), SinkName.of(context, self.name))
        return self

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        with self._setting_up() as cursor:
            self._require_rights(cursor)
            self._own.create(cursor, upserts=self.replaces)
            for table in self._tables.values():
                table.preflight(cursor, schemas, create=self._create)
            relations = {output: table.relation for output, table in self._tables.items()}
            self._own.claim(cursor, relations, shared=self._shared, alone=self.replaces)

    # --- proof and verification ---

    def disclaim(self) -> None:
        with self._database.transaction("letting the tables go") as cursor:
            self._own.disclaim(cursor)

    def find_marker(self, epoch: int) -> Marker | None:
        with self._database.transaction("looking for the marker") as cursor:
            return self._own.find_marker(cursor, epoch)

    def find_marker_of_span(self, span: str) -> Marker | None:
        with self._database.transaction("looking for the marker of a range") as cursor:
            return self._own.find_marker_of_span(cursor, span)

    def newest_markers(self) -> list[Marker]:
        with self._database.transaction("looking for the newest markers") as cursor:
            return self._own.newest_markers(cursor)

    def markers(self) -> Iterable[Marker]:
        with self._database.transaction("listing the markers") as cursor:
            return self._own.markers(cursor)

    def target_id(self) -> str:
        with self._database.transaction("reading the target's id") as cursor:
            return self._own.target_id(cursor)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._tables[output].read(self._database, self._own, epoch, schema)

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

    def _load(self, claim: AnyClaim, batches: Batches, rejected: type[LockstepError]) -> None:
        try:
            claim.rows[batches.output] = self._write(claim, batches, rejected)
        except SinkUnavailable as error:
            claim.close()
            if self._database.is_locked_out(error):
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
    def _publishing(self, epoch: SinkEpoch) -> Iterator[AnyClaim]:
        """Claim the marker; commit at the end. A refusal of the server blocks the decided epoch, it can't reject it."""
        claim = self._claims.after_decision(epoch)
        try:
            yield claim
            if claim.claimed:
                self._commit_claim(claim)
        finally:
            claim.close()

    def _commit_claim(self, claim: AnyClaim) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        self._end_claim(claim)

    def _end_claim(self, claim: AnyClaim) -> None:
        # if the answer is lost, the next try finds the marker, or nothing
        with self._database.naming(f"committing epoch {claim.epoch.id}", PublishBlocked):
            claim.connection.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)

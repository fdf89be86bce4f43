"""Rows into PostgreSQL tables, exactly once: all tables of a sink appear together and whole.

`PostgresSink(...)` is one of two classes, chosen by `protocol` as pathlib.Path chooses its own: "two_phase" has the
rows in a prepared transaction before the decision, "write_ahead" sends them after it and needs no prepared
transactions.

Triggers on a target run with the rows. One that uses LISTEN, NOTIFY or a temporary table makes PREPARE TRANSACTION fail
(`SinkRejected`, nothing is shown), one that drops rows is found by the count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json, Vote
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
)
from lockstep.sinks.base import (
    Batches,
    CheckpointCommitter,
    Guarantee,
    Marker,
    Session,
    Sink,
    SinkContext,
    SinkEpoch,
    TwoPhaseCommitSink,
    Txn,
    WriteAheadSink,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres_branches import Branches
from lockstep.sinks.postgres_claim import Claim, Claims
from lockstep.sinks.postgres_connection import Database, is_lost
from lockstep.sinks.postgres_copy import Copy
from lockstep.sinks.postgres_read import read_rows
from lockstep.sinks.postgres_tables import create_table, find_table, require_fit
from lockstep.sinks.postgres_target import Relation, TargetTables

Protocol = Literal["two_phase", "write_ahead"]
Validate = Literal["load", "schema"]

DDL_LOCK_SECONDS = 0.2  #: behind a prepared transaction DDL would wait for ever, and everybody behind it


class PostgresSink(Sink):
    """Tables of one PostgreSQL database (14 or newer).

    `tables`: output → "schema.table", spelled as in the catalog. `connection`: the id of a DSN. `create`: make missing
    tables from the output's schema. `epoch_column`: filled with the epoch where a table has it, None to leave it;
    without it nobody can verify. `shared`: let other pipelines that say so too write to the same tables. `validate`
    (write_ahead): "load" tries the rows in the real tables and rolls back, "schema" compares types and counts.
    `schema`: where Lockstep's own three tables live. `lock_timeout`: seconds.
    """

    protocol: ClassVar[Protocol]

    def __new__(cls, name: str, *, protocol: Protocol | None = None, **_: Any) -> Self:
        if cls is not PostgresSink:
            return super().__new__(cls)
        found: Any = _PROTOCOLS.get(protocol or "two_phase")
        if found is None:
            raise InvalidPipeline(f"sink {name}: protocol {protocol!r} is none of {', '.join(_PROTOCOLS)}")
        sink: Self = super().__new__(found)
        return sink

    def __init__(
        self,
        name: str,
        *,
        tables: Mapping[str, str],
        connection: str,
        protocol: Protocol | None = None,
        create: bool = False,
        epoch_column: str | None = "lockstep_epoch",
        shared: bool = False,
        validate: Validate = "load",
        schema: str = "public",
        lock_timeout: float = 10.0,
    ) -> None:
        super().__init__(name)
        self._relations = {output: Relation.parse(table) for output, table in tables.items()}
        self._connection = connection
        self._create, self._epoch_column, self._shared = create, epoch_column, shared
        self._validate, self._schema, self._lock_timeout = validate, schema, lock_timeout
        self._check_arguments(protocol)

    def _check_arguments(self, protocol: str | None) -> None:
        if protocol not in (None, self.protocol):
            raise InvalidPipeline(f"sink {self.name}: {type(self).__name__} speaks {self.protocol}, not {protocol!r}")
        if self._validate not in ("load", "schema"):
            raise InvalidPipeline(f"sink {self.name}: validate={self._validate!r} is neither 'load' nor 'schema'")
        if not self._lock_timeout > 0:
            raise InvalidPipeline(f"sink {self.name}: lock_timeout is {self._lock_timeout}, has to be above 0 seconds")
        if not self._relations or len(set(self._relations.values())) != len(self._relations):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self._relations)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "tables": {output: str(relation) for output, relation in self._relations.items()},
            "connection": self._connection,
            "protocol": self.protocol,
            "create": self._create,
            "epoch_column": self._epoch_column,
            "shared": self._shared,
            "validate": self._validate,
            "schema": self._schema,
            "lock_timeout": self._lock_timeout,
        }

    # --- life cycle ---

    def open(self, context: SinkContext) -> None:
        dsn = context.connections.get(self._connection)
        if dsn is None:
            raise InvalidPipeline(f"sink {self.name}: no connection with the id {self._connection!r} was given")
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
            self._own.create(cursor)
            for output in self.outputs:
                self._preflight_table(cursor, output, schemas)
            self._own.claim(cursor, self._relations.values(), shared=self._shared)

    def _preflight_table(self, cursor: Cursor, output: str, schemas: Mapping[str, pa.Schema] | None) -> None:
        relation = self._relations[output]
        if schemas is not None and output not in schemas:
            raise PreflightRefused(f"sink {self.name}: the transform gave no output {output}, but {sorted(schemas)}")
        if find_table(cursor, relation, self.name) is None:
            if not self._create:
                raise PreflightRefused(f"sink {self.name}: table {relation} is missing; create it, or say create=True")
            if schemas is None:
                return
            create_table(cursor, relation, schemas[output], self._epoch_column, self.name)
        if schemas is not None:
            table = find_table(cursor, relation, self.name)
            assert table is not None
            require_fit(table, output, schemas[output], self._epoch_column, self.name)

    @abstractmethod
    def _preflight_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this protocol can't work with."""

    # --- proof and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        with self._database.transaction("looking for the marker") as cursor:
            return self._own.find_marker(cursor, epoch)

    def target_id(self) -> str:
        with self._database.transaction("reading the target's id") as cursor:
            return self._own.target_id(cursor)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        relation = self._relations[output]
        with self._database.transaction(f"reading table {relation}") as cursor:
            table = find_table(cursor, relation, self.name)
            others = self._own.other_owners(cursor, relation)
        if table is None:
            raise PreflightRefused(f"sink {self.name}: table {relation} does not exist any more")
        if (column := table.epoch_column(self._epoch_column)) is None:
            raise PreflightRefused(
                f"sink {self.name}: table {relation} has no column {self._epoch_column}, so nobody can tell whose "
                "rows are which; add it (bigint) to verify epochs from then on"
            )
        if others:
            raise PreflightRefused(
                f"sink {self.name}: table {relation} is shared with {others[0][1]}.{others[0][2]}: epoch numbers of "
                "two sinks can't be told apart"
            )
        require_fit(table, output, schema, self._epoch_column, self.name)
        return read_rows(self._database, table, column, epoch, schema)

    # --- shared by both protocols ---

    def _copy(self, claim: Claim, batches: Batches, rejected: type[LockstepError]) -> None:
        relation = self._relations[batches.output]
        copy = Copy(self._database, batches.output, relation, claim.epoch.id, self._epoch_column, rejected)
        claim.rows[batches.output] = copy.run(claim.cursor, batches)

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

    def _commit_claim(self, claim: Claim) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        # if the answer is lost, the next try finds the marker, or nothing
        with self._database.naming(f"committing epoch {claim.epoch.id}", PublishBlocked):
            claim.connection.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)


class PostgresTwoPhaseSink(PostgresSink, TwoPhaseCommitSink):
    """The rows wait in one prepared transaction for the decision."""

    protocol = "two_phase"

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self._open: dict[str, Claim] = {}

    def close(self) -> None:
        for handle in list(getattr(self, "_open", ())):
            self._open.pop(handle).close()
        super().close()

    def _preflight_settings(self, cursor: Cursor) -> None:
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, (SELECT count(*) FROM pg_prepared_xacts)"
        )
        limit, used = cursor.fetchone() or (0, 0)
        if used >= limit:
            raise PreflightRefused(
                f"sink {self.name}: max_prepared_transactions = {limit}, {used} in use: a two_phase sink needs one "
                f"for each epoch under way, so at least {used + 1}; raise it and restart the server, or say "
                "protocol='write_ahead'"
            )

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        handle = self._branches.owner.handle(epoch)
        claim = self._claims.before_decision(epoch)
        if not claim.claimed:
            raise self._refuse_marker(epoch)
        self._open[handle] = claim
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], handle)

    def write(self, txn: Txn, batches: Batches) -> None:
        claim = self._open[txn.handle]
        try:
            self._copy(claim, batches, SinkRejected)
        except BaseException:
            self._open.pop(txn.handle).close()
            raise
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def pre_commit(self, txn: Txn) -> Vote:
        claim = self._open.pop(txn.handle)
        try:
            with self._database.naming(f"preparing epoch {txn.epoch}"):
                self._own.record_rows(claim.cursor, claim.epoch, claim.rows)
            reach(CrashPoint.PREPARE_AFTER_COUNTS)
            self._prepare(claim, txn)
        finally:
            claim.close()  # nobody can finish the branch while its own session lives
        if not self._branches.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not in pg_prepared_xacts; prepare again")
        return Vote(txn.token, txn.handle, claim.target_id, dict(claim.rows))

    def _prepare(self, claim: Claim, txn: Txn) -> None:
        try:
            claim.cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(txn.handle)))
        except psycopg2.Error as error:
            if is_lost(error):
                return  # the look into pg_prepared_xacts tells
            raise self._database.named(error, f"PREPARE TRANSACTION of epoch {txn.epoch}") from error
        tag = claim.cursor.statusmessage
        if tag != "PREPARE TRANSACTION":
            raise SinkRejected(
                f"sink {self.name}: PREPARE TRANSACTION of epoch {txn.epoch} was answered with {tag}: a statement had "
                "failed before, and the server rolled everything back"
            )

    def recover_and_commit(self, txn: Txn) -> bool:
        """Also False when somebody else finished it at the same moment: only the marker knows how."""
        return self.is_pending(txn) and self._commit(txn)

    def commit(self, txn: Txn) -> None:
        self._commit(txn)

    def _commit(self, txn: Txn) -> bool:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        done = self._branches.commit(txn.handle)
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
        return done

    def abort(self, txn: Txn) -> None:
        if claim := self._open.pop(txn.handle, None):
            claim.close()
        self._branches.roll_back(txn.handle)

    def is_pending(self, txn: Txn) -> bool:
        return self._branches.is_pending(txn.handle)

    def pending(self) -> list[Txn]:
        return self._branches.pending()

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        with self._publishing(epoch) as claim:
            if not claim.claimed:
                return False
            reach(CrashPoint.PUBLISH_AFTER_MARKER)
            for batches in wal:
                self._copy(claim, batches, PublishBlocked)
                reach(CrashPoint.PUBLISH_AFTER_WRITE)
            with self._database.naming(f"publishing epoch {epoch.id}", PublishBlocked):
                self._own.record_rows(claim.cursor, epoch, claim.rows)
        return True


class PostgresMarkerCommitter(CheckpointCommitter):
    """Remembers epochs by the marker, in the transaction that sends their rows: exactly once."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, sink: PostgresWriteAheadSink) -> None:
        self._sink = sink

    def create_resource(self) -> None:
        with self._sink._database.transaction("creating Lockstep's tables", rejected=PreflightRefused) as cursor:
            self._sink._own.lock_set_up(cursor)
            self._sink._own.create(cursor)

    def open(self) -> None:
        """The sink's connection is this one's too."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        with self._sink._publishing(epoch) as claim:
            yield claim

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._sink.find_marker(epoch)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, Claim)
        with self._sink._database.naming(f"publishing epoch {epoch.id}", PublishBlocked):
            self._sink._own.record_rows(session.cursor, epoch, session.rows)


class PostgresWriteAheadSink(PostgresSink, WriteAheadSink):
    """The rows go in after the decision, in one transaction with the marker."""

    protocol = "write_ahead"

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self.committer = PostgresMarkerCommitter(self)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.open()

    def _preflight_settings(self, cursor: Cursor) -> None:
        """Nothing beyond what every transaction checks."""

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """ "load" leaves dead rows behind for vacuum, as many as the epoch has."""
        claim = self._claims.open(epoch)
        try:
            for batches in wal:
                self._validate_output(claim, batches)
            with self._database.naming(f"checking the constraints of epoch {epoch.id}"):
                claim.cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        finally:
            claim.close()
        return Vote(epoch.token, None, claim.target_id, dict(claim.rows))

    def _validate_output(self, claim: Claim, batches: Batches) -> None:
        if self._validate == "load":
            self._copy(claim, batches, SinkRejected)
            return
        relation = self._relations[batches.output]
        copy = Copy(self._database, batches.output, relation, claim.epoch.id, self._epoch_column)
        claim.rows[batches.output] = copy.try_encoding(claim.cursor, batches)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, Claim)
        self._copy(session, batches, PublishBlocked)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True


_PROTOCOLS: dict[str, type[PostgresSink]] = {
    "two_phase": PostgresTwoPhaseSink,
    "write_ahead": PostgresWriteAheadSink,
}

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
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkUnavailable,
)
from lockstep.sinks.base import Batches, Marker, Publication, Sink, SinkContext, SinkEpoch, Txn
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mysql_branches import Branches, BranchName
from lockstep.sinks.mysql_claim import Claim, Claims
from lockstep.sinks.mysql_connection import Database
from lockstep.sinks.mysql_load import Load
from lockstep.sinks.mysql_read import read_rows
from lockstep.sinks.mysql_tables import Relation, create_table, find_table, require_fit, require_insert
from lockstep.sinks.mysql_target import TargetTables
from lockstep.sinks.mysql_wire import Cursor

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
Validate: TypeAlias = Literal["load", "schema"]


class MySqlSink(Sink):
    """Tables of a MariaDB server (10.5 or newer).

    `tables`: output → "database.table", or "table" of the connection's database. `connection`: the id of a DSN,
    `mysql://user:password@host:port/database`. `create`: make missing tables from the output's schema. `epoch_column`:
    filled with the epoch where a table has it, None to leave it; without it nobody can verify. `shared`: let other
    pipelines that say so too write to the same tables. `validate` (write_ahead): "load" tries the rows in the real
    tables and rolls back, "schema" compares types, values and counts. `schema`: the database in which Lockstep's own
    three tables live; the connection's unless given. `lock_timeout`: seconds.
    """

    protocol: ClassVar[ProtocolName]

    def __new__(cls, name: str, *, protocol: ProtocolName | None = None, **_: Any) -> Self:
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
    ) -> None:
        super().__init__(name)
        self._tables = dict(tables)
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
        self._relations_in("the connection's")

    def _relations_in(self, database: str) -> dict[str, Relation]:
        relations = {output: Relation.parse(table, database) for output, table in self._tables.items()}
        if not relations or len(set(relations.values())) != len(relations):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")
        return relations

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self._tables)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "tables": dict(self._tables),
            "connection": self._connection,
            "protocol": self.protocol,
            "create": self._create,
            "epoch_column": self._epoch_column,
            "shared": self._shared,
            "validate": self._validate,
            "schema": self._schema,
            "lock_timeout": self._lock_timeout,
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
        self._relations = self._relations_in(self._database.name)
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
                self._own.create(cursor)
                for output in self.outputs:
                    self._preflight_table(cursor, output, schemas)
                self._own.claim(cursor, self._relations.values(), shared=self._shared)
            finally:
                self._own.unlock_set_up(cursor)

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
            given = [*schemas[output].names, table.epoch_column(self._epoch_column)]
            require_insert(cursor, relation, [name for name in given if name is not None])

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
        return read_rows(self._database, relation, column, epoch, schema)

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
        relation = self._relations[batches.output]
        load = Load(self._database, batches.output, relation, claim.epoch.id, self._epoch_column, rejected)
        try:
            claim.rows[batches.output] = load.run(claim.connection, claim.cursor, batches)
        except SinkUnavailable:
            claim.close()
            self._branches.end_sessions(claim.epoch)  # a stopped one may hold the same keys
            raise

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


def _class_of(name: str, protocol: str | None) -> Any:
    from lockstep.sinks.mysql_write_ahead import MySqlWriteAheadSink  # they build on this module
    from lockstep.sinks.mysql_xa import MySqlTwoPhaseSink

    match protocol:
        case "two_phase" | None:
            return MySqlTwoPhaseSink
        case "write_ahead":
            return MySqlWriteAheadSink
        case _:
            raise InvalidPipeline(f"sink {name}: protocol={protocol!r} is neither 'two_phase' nor 'write_ahead'")

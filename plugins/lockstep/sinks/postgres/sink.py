"""Rows into PostgreSQL tables, exactly once: all tables of a sink appear together and whole.

`PostgresSink(...)` is one of two classes, chosen by `protocol` as pathlib.Path chooses its own: "two_phase" has the
rows in a prepared transaction before the decision, "write_ahead" sends them after it and needs no prepared
transactions.

Triggers on a target run with the rows. One that uses LISTEN, NOTIFY or a temporary table makes PREPARE TRANSACTION fail
(`SinkRejected`, nothing is shown), one that drops rows is found by the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from psycopg2.extensions import cursor as Cursor

from lockstep.errors import LockstepError, PreflightRefused, SinkRejected
from lockstep.postgres.connection import Database, close_quietly
from lockstep.sinks.base import Batches, SinkEpoch, Standing
from lockstep.sinks.handles import SinkName
from lockstep.sinks.postgres.branches import Branches
from lockstep.sinks.postgres.claim import Claim, Claims
from lockstep.sinks.postgres.copy import Copy
from lockstep.sinks.postgres.output import OutputTable
from lockstep.sinks.postgres.rights import Name, require_rights
from lockstep.sinks.postgres.target import Relation, TargetTables
from lockstep.sinks.postgres.upsert import Upsert
from lockstep.sinks.tables.sink import TableSink

DDL_LOCK_SECONDS = 0.2  #: behind a prepared transaction DDL would wait for ever, and everybody behind it


class PostgresSink(TableSink):
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

    default_schema = "public"

    _database: Database
    _tables: dict[str, OutputTable]
    _own: TargetTables
    _branches: Branches
    _claims: Claims

    @classmethod
    def _speakers(cls) -> Mapping[str, type[PostgresSink]]:
        from lockstep.sinks.postgres.two_phase import PostgresTwoPhaseSink  # they build on this module
        from lockstep.sinks.postgres.write_ahead import PostgresWriteAheadSink

        return {"two_phase": PostgresTwoPhaseSink, "write_ahead": PostgresWriteAheadSink}

    def _spelled(self, table: str) -> str:
        return str(Relation.parse(table))

    def _relation(self, table: str) -> Relation:
        return Relation.parse(table)

    def _connect(self, dsn: str, owner: SinkName) -> None:
        assert self._schema is not None
        self._database = Database(self.name, self._connection, dsn, self._lock_timeout)
        self._tables = {
            output: OutputTable(
                self.name, output, self._relation(table), self._epoch_column, self._upserts, self._schema
            )
            for output, table in self._names.items()
        }
        self._own = TargetTables(self._schema, owner)
        self._branches = Branches(self._database, owner)
        self._claims = Claims(self._database, self._own, self._branches)

    @contextmanager
    def _setting_up(self) -> Iterator[Cursor]:
        with self._database.transaction("preflight", rejected=PreflightRefused) as cursor:
            self._preflight_settings(cursor)
            self._own.lock_set_up(cursor)
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", (str(round(1000 * DDL_LOCK_SECONDS)),))
            yield cursor

    def _preflight_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this protocol can't work with, beyond what every transaction checks."""

    def _require_rights(self, cursor: Cursor) -> None:
        own = self._own.rights(upserts=self.replaces)
        writing = ("SELECT", "INSERT", "UPDATE") if self.replaces else ("INSERT",)
        targets = {(table.relation.schema, table.relation.table): writing for table in self._tables.values()}
        rights: dict[Name, tuple[str, ...]] = {(schema, ""): ("USAGE",) for schema, _ in (*own, *targets)}
        if self.replaces:
            rights[self._own.schema, ""] = ("USAGE", "CREATE")  # for the table in between
        made = {*own, *(targets if self._create else ())}
        require_rights(cursor, self.name, {**rights, **own, **targets}, made)

    def _way(self, epoch: SinkEpoch, output: str, rejected: type[LockstepError]) -> Copy | Upsert:
        return self._tables[output].way(self._database, self._own, epoch, rejected)

    def _write(self, claim: Claim, batches: Batches, rejected: type[LockstepError]) -> int:
        return self._way(claim.epoch, batches.output, rejected).run(claim.cursor, batches)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        """Copies the sealed rows to the server, compares them there, and rolls back."""
        way = self._way(epoch, sealed.output, SinkRejected)
        assert isinstance(way, Upsert)
        connection = self._database.connect(f"lockstep {self.name} verify"[:63])
        try:
            with self._database.naming(f"comparing output {sealed.output}"):
                cursor = connection.cursor()
                self._database.guard(cursor)
                return way.standing(cursor, sealed)
        finally:
            close_quietly(connection)

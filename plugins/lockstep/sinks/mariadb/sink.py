"""Rows into MariaDB tables, exactly once: all tables of a sink appear together and whole.

`MariaDbSink(...)` is one of two classes, chosen by `protocol` as pathlib.Path chooses its own: "two_phase" has the rows
in a prepared XA branch before the decision, which any process can finish, "write_ahead" sends them after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lockstep.errors import LockstepError, PreflightRefused, SinkRejected
from lockstep.mariadb.connection import Database
from lockstep.mariadb.wire import PACKET, Cursor, close_quietly
from lockstep.sinks.base import Batches, SinkEpoch, Standing
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb.branches import Branches, BranchName
from lockstep.sinks.mariadb.claim import Claim, Claims
from lockstep.sinks.mariadb.load import Load
from lockstep.sinks.mariadb.output import OutputTable
from lockstep.sinks.mariadb.tables import Relation
from lockstep.sinks.mariadb.target import TargetTables
from lockstep.sinks.mariadb.upsert import Upsert
from lockstep.sinks.tables.sink import TableSink


class MariaDbSink(TableSink):
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

    _database: Database
    _tables: dict[str, OutputTable]
    _own: TargetTables
    _branches: Branches
    _claims: Claims

    @classmethod
    def _speakers(cls) -> Mapping[str, type[MariaDbSink]]:
        from lockstep.sinks.mariadb.write_ahead import MariaDbWriteAheadSink  # they build on this module
        from lockstep.sinks.mariadb.xa import MariaDbTwoPhaseSink

        return {"two_phase": MariaDbTwoPhaseSink, "write_ahead": MariaDbWriteAheadSink}

    def _relation(self, table: str, database: str = "the connection's") -> Relation:
        return Relation.parse(table, database)

    def _connect(self, dsn: str, owner: SinkName) -> None:
        self._database = Database(self.name, self._connection, dsn, self._lock_timeout)
        self._tables = self._tables_in(self._database.name)
        home = self._schema or self._database.name
        self._own = TargetTables(home, owner)
        self._branches = Branches(self._database, self._own, BranchName(owner, home))
        self._claims = Claims(self._database, self._own, self._branches)

    def _tables_in(self, database: str) -> dict[str, OutputTable]:
        relations = {output: self._relation(table, database) for output, table in self._names.items()}
        self._require_distinct(relations.values())  # "t" and "database.t" may be one
        return {
            output: OutputTable(self.name, output, relation, self._epoch_column, self._upserts)
            for output, relation in relations.items()
        }

    @contextmanager
    def _setting_up(self) -> Iterator[Cursor]:
        naming = self._database.naming("preflight", PreflightRefused)
        with naming, self._database.outside_transaction() as cursor:
            self._preflight_settings(cursor)
            self._own.lock_set_up(cursor, self._lock_timeout)
            try:
                yield cursor
            finally:
                self._own.unlock_set_up(cursor)

    def _preflight_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this sink can't work with, beyond what every transaction checks."""
        cursor.execute("SELECT @@GLOBAL.local_infile, @@max_allowed_packet")
        local_infile, packet = cursor.fetchone() or (0, 0)
        if packet <= PACKET:
            raise PreflightRefused(
                f"sink {self.name}: max_allowed_packet = {packet}: rows are sent in packets of {PACKET} bytes; set it "
                "to 1048576 or more on the server"
            )
        if local_infile != 1:
            raise PreflightRefused(
                f"sink {self.name}: local_infile = 0: rows are sent by LOAD DATA LOCAL; set it to 1 on the server"
            )

    def _require_rights(self, cursor: Cursor) -> None:
        """There is nobody to ask for all rights at once: what is missing says so when it is met, and by which grant."""
        cursor.execute(
            "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
            "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
        )
        self._database.account = str((cursor.fetchone() or [None])[0])

    def _way(self, epoch: SinkEpoch, output: str, rejected: type[LockstepError]) -> Load | Upsert:
        return self._tables[output].way(self._database, self._own, epoch, rejected)

    def _write(self, claim: Claim, batches: Batches, rejected: type[LockstepError]) -> int:
        return self._way(claim.epoch, batches.output, rejected).run(claim.connection, claim.cursor, batches)

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        """Copies the sealed rows into a temporary table and compares them there."""
        way = self._way(epoch, sealed.output, SinkRejected)
        assert isinstance(way, Upsert)
        connection = self._database.connect()
        try:
            with self._database.naming(f"comparing output {sealed.output}"), connection.cursor() as cursor:
                self._database.guard(cursor)
                return way.standing(connection, cursor, sealed)
        finally:
            close_quietly(connection)

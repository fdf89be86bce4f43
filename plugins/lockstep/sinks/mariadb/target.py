"""What Lockstep keeps in a target database, beside the data: markers, owners, and the database's own id.

    lockstep_marker     one row for each published (deployment, pipeline, sink, epoch), written with the epoch's rows
    lockstep_range      the interval of each marker, written with it: by that it is found whatever number its epoch has
    lockstep_target     who owns which table
    lockstep_target_id  one random id: tells this database from any other one
    lockstep_keys       for upserts: how many new keys each epoch brought, written with its rows

Every method takes a cursor of the caller's connection; what changes data expects the caller's transaction.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pymysql.constants import ER
from pymysql.err import IntegrityError, MySQLError

from lockstep.errors import PreflightRefused, SinkUnavailable, TargetChanged
from lockstep.mariadb.sql import compose
from lockstep.mariadb.wire import Cursor, code_of
from lockstep.sinks.base import Marker, SinkEpoch
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb.tables import Relation
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.tables.markers import MarkerLooks
from lockstep.sinks.tables.ownership import owned, require_apart

_WORD = "varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_UUID = "char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_OWNER = f"deployment {_UUID}, pipeline {_WORD}, sink {_WORD}"
#: UPDATE and DELETE use no index for (a, b) = (%s, %s), in whose place this is: they read, and lock, the whole table.
_IS_OWN = "deployment = %s AND pipeline = %s AND sink = %s"

_TABLES = {
    "lockstep_marker": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            {_OWNER}, epoch bigint NOT NULL, token bigint NOT NULL,
            manifest_hash char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, `rows` longtext,
            published_at datetime(6) NOT NULL DEFAULT current_timestamp(6), -- when it was inserted, in UTC
            PRIMARY KEY (deployment, pipeline, sink, epoch)) ENGINE = InnoDB CHARSET = utf8mb4""",
    "lockstep_range": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            {_OWNER}, span varchar(80) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            epoch bigint NOT NULL, token bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, span), UNIQUE (deployment, pipeline, sink, token, epoch)
        ) ENGINE = InnoDB CHARSET = utf8mb4""",
    "lockstep_target": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            relation varchar(130) COLLATE utf8mb4_bin NOT NULL, {_OWNER}, shared boolean NOT NULL,
            PRIMARY KEY (relation, deployment, pipeline, sink)) ENGINE = InnoDB CHARSET = utf8mb4""",
    "lockstep_target_id": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            only_one tinyint NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_one = 1), id {_UUID}) ENGINE = InnoDB""",
}
_KEYS = {
    "lockstep_keys": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            {_OWNER}, relation varchar(130) COLLATE utf8mb4_bin NOT NULL, epoch bigint NOT NULL, new bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, relation, epoch)) ENGINE = InnoDB CHARSET = utf8mb4""",
}
_NO_RANGES = (
    "(SELECT NULL AS deployment, NULL AS pipeline, NULL AS sink, NULL AS span, NULL AS epoch, NULL AS token "
    "FROM DUAL WHERE false)"
)
_ENGINES = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s"
_SET_UP = "lockstep set-up"
_HOMES = (
    "SELECT table_schema FROM information_schema.tables WHERE table_name = 'lockstep_target' AND table_schema <> %s"
)
_CLOSED = {  # to this user, gone meanwhile, or no table of Lockstep's
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.NO_SUCH_TABLE,
    ER.BAD_DB_ERROR,
    ER.BAD_FIELD_ERROR,
}


@dataclass(frozen=True)
class TargetTables(MarkerLooks):
    """Lockstep's own tables in `database`, as seen by the sink `owner`."""

    database: str
    owner: SinkName

    # --- set-up ---

    def lock_set_up(self, cursor: Cursor, seconds: float) -> None:
        """Whoever changes tables goes one by one, on the whole server; until `unlock_set_up`. Raises
        `SinkUnavailable`."""
        cursor.execute("SELECT GET_LOCK(%s, %s)", (_SET_UP, seconds))
        if cursor.fetchone() != (1,):
            raise SinkUnavailable(f"sink {self.owner.sink}: another set-up on this server is at work; try again")

    def unlock_set_up(self, cursor: Cursor) -> None:
        cursor.execute("DO RELEASE_LOCK(%s)", (_SET_UP,))

    def create(self, cursor: Cursor, *, upserts: bool = False) -> None:
        """Create what is missing; a user without CREATE passes if all is there. Raises `PreflightRefused`."""
        engines = self._engines(cursor)
        for table, statement in (_TABLES | _KEYS if upserts else _TABLES).items():
            if table not in engines:
                cursor.execute(compose(statement, table=self._table(table)))
            elif engines[table] != "InnoDB":
                raise PreflightRefused(
                    f"sink {self.owner.sink}: the engine of {self.database}.{table} is {engines[table]}, whose rows "
                    "survive a rollback: use ALTER TABLE … ENGINE = InnoDB"
                )
        cursor.execute(compose("SELECT id FROM {table}", table=self._table("lockstep_target_id")))
        if cursor.fetchone() is None:
            statement = compose("INSERT INTO {table} (id) VALUES (%s)", table=self._table("lockstep_target_id"))
            cursor.execute(statement, (str(uuid.uuid4()),))

    def claim(self, cursor: Cursor, outputs: Mapping[str, Relation], *, shared: bool, alone: bool = False) -> None:
        """Own the table of each output. Raises `TargetOwned` if another pipeline does and not both say shared=True;
        `alone`: if anybody else does, another sink of the same pipeline included; `PreflightRefused` where two outputs
        have one table."""
        stored = {output: self._stored(cursor, relation) for output, relation in outputs.items()}
        kin = {output: (str(found), {str(found)}) for output, found in stored.items()}
        require_apart(self.owner.sink, kin)
        for relation in stored.values():
            for *owner, theirs, home in self._claims(cursor, relation):
                deployment, pipeline, sink = owner
                another = (deployment, pipeline) != (self.owner.deployment, self.owner.pipeline)
                if alone or (another and not (shared and theirs)):
                    raise owned(self.owner.sink, relation, (deployment, pipeline, sink), home, alone=alone)
            self._record_claim(cursor, relation, shared)

    def _record_claim(self, cursor: Cursor, relation: Relation, shared: bool) -> None:
        table = self._table("lockstep_target")
        cursor.execute(
            compose(
                "SELECT shared FROM {table} WHERE (relation, deployment, pipeline, sink) = (%s, %s, %s, %s)",
                table=table,
            ),
            (str(relation), *self.owner_key),
        )
        if cursor.fetchone() != (int(shared),):  # most preflights find it, and write nothing
            cursor.execute(
                compose(
                    "INSERT INTO {table} (relation, deployment, pipeline, sink, shared) VALUES (%s, %s, %s, %s, %s) "
                    "ON DUPLICATE KEY UPDATE shared = VALUES(shared)",
                    table=table,
                ),
                (str(relation), *self.owner_key, shared),
            )

    def disclaim(self, cursor: Cursor) -> None:
        """Own nothing any more."""
        if "lockstep_target" in self._engines(cursor):
            statement = f"DELETE FROM {{table}} WHERE {_IS_OWN}"  # noqa: S608 - names of columns
            cursor.execute(compose(statement, table=self._table("lockstep_target")), self.owner_key)

    def _stored(self, cursor: Cursor, relation: Relation) -> Relation:
        """In lower case where the server takes names in any case for the same, as it stores them, or compares them."""
        cursor.execute(
            "SELECT IF(@@lower_case_table_names, LOWER(%(database)s), %(database)s), "
            "IF(@@lower_case_table_names, LOWER(%(table)s), %(table)s)",
            {"database": relation.database, "table": relation.table},
        )
        return Relation(*(cursor.fetchone() or relation.name))

    def other_owners(self, cursor: Cursor, relation: Relation) -> list[tuple[str, str, str, bool]]:
        """(deployment, pipeline, sink, shared) of every other sink on `relation`, in whatever database it says so."""
        return [found[:4] for found in self._claims(cursor, self._stored(cursor, relation))]

    def _claims(self, cursor: Cursor, relation: Relation) -> list[tuple[str, str, str, bool, str]]:
        """`other_owners`, each with the database that says so."""
        found = self._claims_in(cursor, self.database, relation)
        cursor.execute(_HOMES, (self.database,))
        for (home,) in cursor.fetchall():
            with _unless_closed_to_us():
                found += self._claims_in(cursor, str(home), relation)
        return found

    def _claims_in(self, cursor: Cursor, home: str, relation: Relation) -> list[tuple[str, str, str, bool, str]]:
        cursor.execute(
            compose(
                "SELECT deployment, pipeline, sink, shared FROM {table} "
                "WHERE IF(@@lower_case_table_names, LOWER(relation), relation) = %s "
                "AND (deployment, pipeline, sink) <> (%s, %s, %s)",
                table=(home, "lockstep_target"),
            ),
            (str(relation), *self.owner_key),
        )
        return [(str(one), str(two), str(three), bool(four), home) for one, two, three, four in cursor.fetchall()]

    def target_id(self, cursor: Cursor) -> str:
        """Raises `TargetChanged` where Lockstep's tables are missing: no preflight has been here."""
        if "lockstep_target_id" in self._engines(cursor):
            cursor.execute(compose("SELECT id FROM {table}", table=self._table("lockstep_target_id")))
            if row := cursor.fetchone():
                return str(row[0])
        raise TargetChanged(
            f"sink {self.owner.sink}: the server has no {self.database}.lockstep_target_id, which every target has "
            "after its preflight: the connection leads to another database, or the schema argument changed"
        )

    # --- markers ---

    def insert_marker(self, cursor: Cursor, epoch: SinkEpoch, seconds: float) -> bool:
        """False: the marker is there already. Waits up to `seconds` for whoever holds it in an open or prepared
        transaction, then raises the driver's error. Raises `LedgerConflict` if the epoch's range stands there under
        another number."""
        markers = compose(
            "SET STATEMENT max_statement_time = %s FOR "
            "INSERT INTO {table} (deployment, pipeline, sink, epoch, token, manifest_hash) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            table=self._table("lockstep_marker"),
        )
        values = (epoch.id, epoch.token, epoch.manifest_hash)
        inserted = _inserted(cursor, markers, (seconds, *self.owner_key, *values))
        if inserted and epoch.span is not None and "lockstep_range" in self._engines(cursor):
            self._insert_range(cursor, epoch, epoch.span, seconds)
        return inserted

    def _insert_range(self, cursor: Cursor, epoch: SinkEpoch, span: str, seconds: float) -> None:
        ranges = compose(
            "SET STATEMENT max_statement_time = %s FOR "
            "INSERT INTO {table} (deployment, pipeline, sink, span, epoch, token) VALUES (%s, %s, %s, %s, %s, %s)",
            table=self._table("lockstep_range"),
        )
        if not _inserted(cursor, ranges, (seconds, *self.owner_key, span, epoch.id, epoch.token)):
            shown = self.find_marker_of_span(cursor, span)
            raise shown_before(self.owner.sink, epoch, shown or Marker(0, 0, "", span))

    def record_rows(self, cursor: Cursor, epoch: SinkEpoch, rows: Mapping[str, int]) -> None:
        """Note the rows per output in the marker that this transaction has inserted."""
        statement = compose(
            f"UPDATE {{table}} SET `rows` = %s WHERE {_IS_OWN} AND epoch = %s AND token = %s",  # noqa: S608
            table=self._table("lockstep_marker"),
        )
        cursor.execute(statement, (json.dumps(dict(rows)), *self.owner_key, epoch.id, epoch.token))
        self._require_one(cursor, epoch)

    def delete_marker(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        """Take back the marker that this transaction has inserted, and that kept others out."""
        statement = compose(
            f"DELETE FROM {{table}} WHERE {_IS_OWN} AND epoch = %s AND token = %s",  # noqa: S608
            table=self._table("lockstep_marker"),
        )
        cursor.execute(statement, (*self.owner_key, epoch.id, epoch.token))
        self._require_one(cursor, epoch)
        if "lockstep_range" not in self._engines(cursor):
            return
        ranges = compose(
            f"DELETE FROM {{table}} WHERE {_IS_OWN} AND token = %s AND epoch = %s",  # noqa: S608
            table=self._table("lockstep_range"),
        )
        cursor.execute(ranges, (*self.owner_key, epoch.token, epoch.id))

    def _selected(self, cursor: Cursor, statement: str, *values: object) -> list[Marker]:
        engines = self._engines(cursor)
        if "lockstep_marker" not in engines:
            return []
        if "lockstep_range" not in engines:  # no preflight since this is an older version's target
            statement = statement.replace("{ranges}", _NO_RANGES)
        tables = {"markers": self._table("lockstep_marker"), "ranges": self._table("lockstep_range")}
        cursor.execute(compose(statement, **tables), (*self.owner_key, *values))
        return [Marker(*row) for row in cursor.fetchall()]

    def marker_holder(self, cursor: Cursor, epoch: int) -> int | None:
        """The token of whoever has inserted the epoch's marker, committed or not; the caller reads uncommitted rows."""
        cursor.execute(self._select_marker, (*self.owner_key, epoch))
        row = cursor.fetchone()
        return int(row[1]) if row else None

    def _require_one(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        if cursor.rowcount != 1:
            raise SinkUnavailable(
                f"sink {self.owner.sink}: the session has lost its transaction, which had inserted the marker of epoch "
                f"{epoch.id}: is there a proxy in between that switches servers? Connect directly"
            )

    @property
    def _select_marker(self) -> str:
        return compose(
            "SELECT epoch, token, manifest_hash FROM {table} "
            "WHERE (deployment, pipeline, sink, epoch) = (%s, %s, %s, %s)",
            table=self._table("lockstep_marker"),
        )

    # --- keys of upserts ---

    def count_keys(self, cursor: Cursor, epoch: SinkEpoch, relation: Relation, new: int) -> None:
        """Note that this transaction brings `new` keys into `relation`; what an epoch brings again adds to it."""
        statement = compose(
            "INSERT INTO {table} (deployment, pipeline, sink, relation, epoch, new) VALUES (%s, %s, %s, %s, %s, %s) "
            "ON DUPLICATE KEY UPDATE new = new + VALUES(new)",
            table=self._table("lockstep_keys"),
        )
        cursor.execute(statement, (*self.owner_key, str(relation), epoch.id, new))

    def missing_keys(self, cursor: Cursor, relation: Relation) -> int:
        """How many keys `relation` has less than its epochs have brought; in one snapshot."""
        statement = compose(
            "SELECT GREATEST(0, (SELECT COALESCE(SUM(new), 0) FROM {keys} WHERE (deployment, pipeline, sink, relation) "
            "= (%s, %s, %s, %s)) - (SELECT COUNT(*) FROM {table}))",
            keys=self._table("lockstep_keys"),
            table=relation.name,
        )
        cursor.execute(statement, (*self.owner_key, str(relation)))
        (missing,) = cursor.fetchone() or (0,)
        return int(missing)

    @property
    def owner_key(self) -> tuple[str, str, str]:
        return self.owner.deployment, self.owner.pipeline, self.owner.sink

    def _table(self, name: str) -> tuple[str, str]:
        return self.database, name

    def _engines(self, cursor: Cursor) -> dict[str, str]:
        cursor.execute(_ENGINES, (self.database, "lockstep\\_%"))
        return {str(table): str(engine) for table, engine in cursor.fetchall()}


def _inserted(cursor: Cursor, statement: str, values: tuple[object, ...]) -> bool:
    """False if a row with the key is there already."""
    try:
        cursor.execute(statement, values)
    except IntegrityError as error:
        if code_of(error) != ER.DUP_ENTRY:
            raise
        return False
    return bool(cursor.rowcount == 1)


@contextmanager
def _unless_closed_to_us() -> Iterator[None]:
    try:
        yield
    except MySQLError as error:
        if code_of(error) not in _CLOSED:
            raise

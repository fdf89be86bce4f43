"""Lockstep's own tables in a MariaDB database; see `lockstep.sinks.tables.own_tables`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from pymysql.constants import ER
from pymysql.err import IntegrityError, MySQLError

from lockstep.connections.mariadb.errors import code_of
from lockstep.connections.mariadb.sql import compose
from lockstep.connections.mariadb.wire import Cursor
from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused, SinkUnavailable
from lockstep.sinks.tables.own_tables import IDENTITY, MARKERS, Owner, OwnTables, Row

_WORD = "varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_UUID = "char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_OWNER = f"deployment {_UUID}, pipeline {_WORD}, sink {_WORD}"

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
_ENGINES = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s"
_SET_UP = "lockstep set-up"
_HOMES = (
    "SELECT table_schema FROM information_schema.tables WHERE table_name = 'lockstep_target' AND table_schema <> %s"
)
_SELECT_HOLDER = "SELECT token FROM {markers} WHERE deployment = %s AND pipeline = %s AND sink = %s AND epoch = %s"
_CLOSED = {  # to this user, gone meanwhile, or no table of Lockstep's
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.NO_SUCH_TABLE,
    ER.BAD_DB_ERROR,
    ER.BAD_FIELD_ERROR,
}


@dataclass(frozen=True)
class MariaDbOwnTables(OwnTables[Cursor]):
    """Lockstep's own tables in the database `home`. `lock_timeout`: seconds."""

    rows_column = "`rows`"
    relation_as_stored = "IF(@@lower_case_table_names, LOWER(relation), relation)"
    add_keys = (
        "INSERT INTO {keys} (deployment, pipeline, sink, relation, epoch, new) VALUES (%s, %s, %s, %s, %s, %s) "
        "ON DUPLICATE KEY UPDATE new = new + VALUES(new)"
    )

    lock_timeout: float

    # --- set-up ---

    def lock_set_up(self, cursor: Cursor) -> None:
        """Whoever changes tables goes one by one, on the whole server; until `unlock_set_up`. Raises
        `SinkUnavailable`."""
        cursor.execute("SELECT GET_LOCK(%s, %s)", (_SET_UP, self.lock_timeout))
        if cursor.fetchone() != (1,):
            raise SinkUnavailable(f"sink {self.owner.sink}: another set-up on this server is at work; try again")

    def unlock_set_up(self, cursor: Cursor) -> None:
        cursor.execute("DO RELEASE_LOCK(%s)", (_SET_UP,))

    def create(self, cursor: Cursor) -> None:
        """Raises `PreflightRefused` where one's engine knows no transactions."""
        engines = self._engines(cursor)
        for table, statement in (_TABLES | _KEYS if self.upserts else _TABLES).items():
            if table not in engines:
                cursor.execute(compose(statement, table=self.table(table).names))
            elif engines[table] != "InnoDB":
                raise PreflightRefused(
                    f"sink {self.owner.sink}: the engine of {self.table(table)} is {engines[table]}, whose rows "
                    "survive a rollback: use ALTER TABLE … ENGINE = InnoDB"
                )
        if not self._query(cursor, "SELECT id FROM {ids}", ids=self.table(IDENTITY)):
            self._change(cursor, "INSERT INTO {ids} (id) VALUES (%s)", (str(uuid.uuid4()),), ids=self.table(IDENTITY))

    # --- statements ---

    def _query(self, cursor: Cursor, statement: str, values: Sequence[object] = (), **names: Relation) -> list[Row]:
        _execute(cursor, statement, values, names)
        return list(cursor.fetchall())

    def _change(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> int:
        _execute(cursor, statement, values, names)
        return int(cursor.rowcount)

    def _insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> bool:
        """Waits up to the lock timeout, then raises the driver's error."""
        timed = f"SET STATEMENT max_statement_time = %s FOR {statement}"
        try:
            return self._change(cursor, timed, (self.lock_timeout, *values), **names) == 1
        except IntegrityError as error:
            if code_of(error) != ER.DUP_ENTRY:
                raise
            return False

    # --- the catalogue ---

    def _existing(self, cursor: Cursor, *tables: str) -> set[str]:
        return self._engines(cursor).keys() & set(tables)

    def _engines(self, cursor: Cursor) -> dict[str, str]:
        cursor.execute(_ENGINES, (self.home, "lockstep\\_%"))
        return {str(table): str(engine) for table, engine in cursor.fetchall()}

    def _as_stored(self, cursor: Cursor, relation: Relation) -> Relation:
        """In lower case where the server takes names in any case for the same, as it stores them, or compares them."""
        cursor.execute(
            "SELECT IF(@@lower_case_table_names, LOWER(%(schema)s), %(schema)s), "
            "IF(@@lower_case_table_names, LOWER(%(table)s), %(table)s)",
            {"schema": relation.schema, "table": relation.table},
        )
        return Relation(*(cursor.fetchone() or relation.names))

    def _relatives(self, cursor: Cursor, relation: Relation) -> set[str]:
        """A partition has no name of its own."""
        return {str(relation)}

    def _homes(self, cursor: Cursor) -> list[str]:
        cursor.execute(_HOMES, (self.home,))
        return [str(name) for (name,) in cursor.fetchall()]

    def _owners_in(self, cursor: Cursor, home: str, names: Set[str]) -> list[Owner]:
        if home == self.home:
            return super()._owners_in(cursor, home, names)
        with _unless_closed_to_us():
            return super()._owners_in(cursor, home, names)
        return []

    # --- markers that others hold, or that nobody may see ---

    def marker_holder(self, cursor: Cursor, epoch: int) -> int | None:
        """The token of whoever has inserted the epoch's marker, committed or not; the caller reads uncommitted rows."""
        for (token,) in self._query(cursor, _SELECT_HOLDER, (*self.owner_key, epoch), markers=self.table(MARKERS)):
            return int(token)
        return None


def _execute(cursor: Cursor, statement: str, values: Sequence[object], names: Mapping[str, Relation]) -> None:
    quoted = {key: relation.names for key, relation in names.items()}
    cursor.execute(compose(statement, **quoted), tuple(values) or None)


@contextmanager
def _unless_closed_to_us() -> Iterator[None]:
    try:
        yield
    except MySQLError as error:
        if code_of(error) not in _CLOSED:
            raise

"""MariaDB as a database of table sinks: XA branches, LOAD DATA LOCAL, DDL that commits by itself.

A branch that is gone proves nothing by itself: committed, rolled back and never prepared all give XAER_NOTA. So does
one whose preparing connection is still open. Only the marker, read in a new transaction, decides (see
`TwoPhaseCommitSink.publish`).

XA names have two parts of 64 bytes, too short for a whole handle. The first part has the owner (deployment, pipeline,
sink, database) as 32 hex digits of its sha256 and the epoch; the second one token, manifest, and for people the start
of the pipeline's and the sink's names. A name belongs to a sink only if it is exactly the name that the sink makes of
these parts.

A session holds a lock (GET_LOCK) named after owner, epoch and token: it tells which connection works for which token,
as `application_name` does in Postgres, and it ends with the connection. A publisher holds the marker's row until it
commits: other sessions read the token in it, uncommitted.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import ER
from pymysql.err import IntegrityError

from lockstep.connections.mariadb.connection import MariaDbDatabase
from lockstep.connections.mariadb.errors import LOCKED, code_of, is_lost, quotes_row
from lockstep.connections.mariadb.wire import PACKET, Cursor, Loader, close_quietly, compose, identifier
from lockstep.connections.mariadb.wire import columns as column_list
from lockstep.connections.names import Relation
from lockstep.errors import LockstepError, PreflightRefused, PublishBlocked, SinkUnavailable
from lockstep.observability.redaction import cause
from lockstep.sinks.handles import SinkName
from lockstep.sinks.mariadb.column_types import KEY_COLLATION, MariaDbTargetColumn, mariadb_type
from lockstep.sinks.mariadb.loading import LoadEncoding, loader_of, read_rows
from lockstep.sinks.tables.dialect import Dialect, Merge, Name, TargetColumn, TryAgain, UniqueKey
from lockstep.sinks.tables.own_tables import IDENTITY, KEYS, MARKERS
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN
from lockstep.sinks.values import SinkEpoch, Txn

_WORD = "varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_UUID = "char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
_OWNER = f"deployment {_UUID}, pipeline {_WORD}, sink {_WORD}"

_OWN_TABLES = {
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
    "lockstep_keys": f"""
        CREATE TABLE IF NOT EXISTS {{table}} (
            {_OWNER}, relation varchar(130) COLLATE utf8mb4_bin NOT NULL, epoch bigint NOT NULL, new bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, relation, epoch)) ENGINE = InnoDB CHARSET = utf8mb4""",
}
_ENGINES = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s"
_SET_UP = "lockstep set-up"
_OTHER_SCHEMAS = (
    "SELECT table_schema FROM information_schema.tables WHERE table_name = 'lockstep_target' AND table_schema <> %s"
)
_SELECT_HOLDER = "SELECT token FROM {markers} WHERE deployment = %s AND pipeline = %s AND sink = %s AND epoch = %s"
_UNREADABLE = {  # for this user, dropped meanwhile, or no table of Lockstep's
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.NO_SUCH_TABLE,
    ER.BAD_DB_ERROR,
    ER.BAD_FIELD_ERROR,
}
_FIND_TABLE = "SELECT table_type, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

_COLUMNS = """
    SELECT column_name, data_type, column_type, is_nullable = 'NO',
           COALESCE(column_default, 'NULL') <> 'NULL', extra,
           character_set_name, numeric_precision, numeric_scale, datetime_precision, collation_name
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""

_UNIQUE_KEYS = """
    SELECT s.index_name, MAX(s.column_name = %(epoch_column)s AND s.sub_part IS NULL),
           MAX(c.column_name NOT IN %(columns)s AND (c.extra LIKE '%%auto_increment%%'
               OR c.column_default REGEXP '^(nextval|uuid|sys_guid|uuid_v[47])[(]'))
    FROM information_schema.statistics s JOIN information_schema.columns c
      ON (c.table_schema, c.table_name, c.column_name) = (s.table_schema, s.table_name, s.column_name)
    WHERE s.table_schema = %(database)s AND s.table_name = %(table)s AND s.non_unique = 0
    GROUP BY s.index_name ORDER BY s.index_name
"""
# the columns of every unique index, and whether it has only a prefix of one
_UNIQUE_INDEXES = """
    SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR '\\0'), MAX(sub_part IS NOT NULL)
    FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND non_unique = 0
    GROUP BY index_name
"""
_LEADING_COLUMN = """
    SELECT column_name FROM information_schema.statistics
    WHERE table_schema = %s AND table_name = %s AND non_unique = 0 AND seq_in_index = 1
"""
_REFERRING_TABLES = """
    SELECT DISTINCT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE
    WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s ORDER BY 1
"""

_STAGING = "lockstep_upsert"
_HANDLE = re.compile(r"lockstep:[0-9a-f]{32}:(?P<epoch>[0-9]+):(?P<token>[0-9]+):(?P<manifest>[0-9a-f]{12}):[!-~]+")
_GONE = frozenset({ER.XAER_NOTA, ER.XA_RBROLLBACK})
_BUSY = LOCKED | {ER.XAER_RMFAIL}
_PROGRESS = (
    "SELECT query_id, command <> 'Sleep' AND state <> 'Reading from net' FROM information_schema.processlist "
    "WHERE id = %s"
)
_FORMAT = 1  #: of XA names, by default


@dataclass(frozen=True)
class BranchName:
    """Names of branches and sessions of the sink `owner` in `database`."""

    owner: SinkName
    database: str

    @property
    def _digest(self) -> str:
        key = f"{self.owner.deployment}:{self.owner.pipeline}:{self.owner.sink}@{self.database}"
        return hashlib.sha256(key.encode()).hexdigest()[:32]

    def handle(self, epoch: int, token: int, manifest: str) -> str:
        """Both parts, joined by a colon: at most 61 and 64 bytes."""
        readable = f"{self.owner.pipeline}.{self.owner.sink}"[:31]
        return f"lockstep:{self._digest}:{epoch}:{token}:{manifest[:12]}:{readable}"

    def parse(self, handle: str) -> Txn | None:
        """The transaction that `handle` names, or None if it isn't of this owner."""
        match = _HANDLE.fullmatch(handle)
        if match is None:
            return None
        epoch, token, manifest = int(match["epoch"]), int(match["token"]), match["manifest"]
        if handle != self.handle(epoch, token, manifest):
            return None
        return Txn(self.owner.sink, epoch, token, manifest, handle)

    def session(self, epoch: int, token: int) -> str:
        """The name of a session's lock: at most 64 characters."""
        return f"lockstep:{self._digest[:16]}:{epoch:x}:{token:x}"


def xid(handle: str) -> tuple[str, str]:
    """The two parts of a branch's name, for XA statements."""
    parts = handle.split(":")
    return ":".join(parts[:3]), ":".join(parts[3:])


@dataclass(frozen=True)
class MarkerHolder:
    """The session that has inserted a marker: its token, its connection (None: closed), and its progress."""

    token: int
    connection: int | None
    query: int | None = None
    works: bool = False  #: the server executes its statement, rather than wait for it


@dataclass(frozen=True)
class MariaDbDialect(Dialect):
    """MariaDB 10.5 or newer; see `Dialect`. `own_schema` is a database: MariaDB's word for a schema."""

    marks_trials = True
    accepts_no_columns = False
    commit_verb = "XA COMMIT"
    roll_back_verb = "XA ROLLBACK"
    prepared_list = "among XA RECOVER"
    rows_column = "`rows`"
    relation_as_stored = "IF(@@lower_case_table_names, LOWER(relation), relation)"
    add_keys = (
        "INSERT INTO {keys} (deployment, pipeline, sink, relation, epoch, new) VALUES (%s, %s, %s, %s, %s, %s) "
        "ON DUPLICATE KEY UPDATE new = new + VALUES(new)"
    )

    database: MariaDbDatabase

    @property
    def default_schema(self) -> str:
        return self.database.name

    @property
    def _names(self) -> BranchName:
        return BranchName(self.owner, self.own_schema)

    # --- statements ---

    def compose(self, statement: str, names: Mapping[str, Name], *, has_values: bool) -> str:
        quoted = {key: name if isinstance(name, str) else name.names for key, name in names.items()}
        return compose(statement, **quoted)

    def insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Name) -> bool:
        """Waits up to the lock timeout, then raises the driver's error."""
        timed = f"SET STATEMENT max_statement_time = %s FOR {statement}"
        try:
            return self.change(cursor, timed, (self.database.lock_timeout, *values), **names) == 1
        except IntegrityError as error:
            if code_of(error) != ER.DUP_ENTRY:
                raise
            return False

    def quoted(self, cursor: Cursor, *names: str) -> str:
        return identifier(names)

    # --- preflight, and Lockstep's own tables ---

    @contextmanager
    def set_up(self) -> Iterator[Cursor]:
        """The lock admits one set-up at a time on the whole server."""
        naming = self.database.naming("preflight", PreflightRefused)
        with naming, self.database.outside_transaction() as cursor:
            cursor.execute("SELECT @@GLOBAL.local_infile, @@max_allowed_packet")
            local_infile, packet = cursor.fetchone() or (0, 0)
            if packet <= PACKET:
                raise PreflightRefused(
                    f"{self.where}: max_allowed_packet = {packet}: rows are sent in packets of {PACKET} "
                    "bytes; set it to 1048576 or more on the server"
                )
            if local_infile != 1:
                raise PreflightRefused(
                    f"{self.where}: local_infile = 0: rows are sent by LOAD DATA LOCAL; set it to 1 on the server"
                )
            cursor.execute("SELECT GET_LOCK(%s, %s)", (_SET_UP, self.database.lock_timeout))
            if cursor.fetchone() != (1,):
                raise SinkUnavailable(f"sink {self.owner.sink}: another set-up on this server is at work; try again")
            try:
                yield cursor
            finally:
                cursor.execute("DO RELEASE_LOCK(%s)", (_SET_UP,))

    def require_rights(self, cursor: Cursor, targets: Sequence[Relation], *, create: bool) -> None:
        """The server can't be asked for all rights at once: each is refused where it is missing. Reads the account,
        which the error texts then name in a GRANT."""
        cursor.execute(
            "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
            "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
        )
        self.database.account = str((cursor.fetchone() or [None])[0])

    def create_own_tables(self, cursor: Cursor) -> None:
        """Raises `PreflightRefused` where the engine of one has no transactions."""
        engines = self._engines(cursor)
        for table, statement in _OWN_TABLES.items():
            relation = Relation(self.own_schema, table)
            if table == KEYS and not self.upserts:
                continue
            if table not in engines:
                self.change(cursor, statement, table=relation)
            elif engines[table] != "InnoDB":
                raise PreflightRefused(
                    f"sink {self.owner.sink}: the engine of {relation} is {engines[table]}, whose rows "
                    "survive a rollback: use ALTER TABLE … ENGINE = InnoDB"
                )
        ids = Relation(self.own_schema, IDENTITY)
        if not self.query(cursor, "SELECT id FROM {ids}", ids=ids):
            self.change(cursor, "INSERT INTO {ids} (id) VALUES (%s)", (str(uuid.uuid4()),), ids=ids)

    def existing_tables(self, cursor: Cursor, *tables: str) -> set[str]:
        return self._engines(cursor).keys() & set(tables)

    def _engines(self, cursor: Cursor) -> dict[str, str]:
        cursor.execute(_ENGINES, (self.own_schema, "lockstep\\_%"))
        return {str(table): str(engine) for table, engine in cursor.fetchall()}

    def other_schemas(self, cursor: Cursor) -> list[str]:
        cursor.execute(_OTHER_SCHEMAS, (self.own_schema,))
        return [str(name) for (name,) in cursor.fetchall()]

    def is_unreadable(self, error: Exception) -> bool:
        return isinstance(error, pymysql.MySQLError) and code_of(error) in _UNREADABLE

    def stored_name(self, cursor: Cursor, relation: Relation) -> Relation:
        """The name in lower case where the server ignores case, whether it stores names so or compares them so."""
        cursor.execute(
            "SELECT IF(@@lower_case_table_names, LOWER(%(schema)s), %(schema)s), "
            "IF(@@lower_case_table_names, LOWER(%(table)s), %(table)s)",
            {"schema": relation.schema, "table": relation.table},
        )
        return Relation(*(cursor.fetchone() or relation.names))

    # --- sessions ---

    def connect(self, purpose: str) -> Loader:
        return self.database.connect()

    def open_session(self, epoch: SinkEpoch) -> Loader:
        return self.database.connect()

    def close(self, connection: Loader) -> None:
        close_quietly(connection)

    def name_session(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        name = self._names.session(epoch.id, epoch.token)
        cursor.execute("SELECT GET_LOCK(%s, %s)", (name, self.database.lock_timeout))
        if cursor.fetchone() != (1,):
            raise SinkUnavailable(
                f"{self.where}: another session works on epoch {epoch.id} with the same token {epoch.token}; try again"
            )

    def start(self, connection: Loader, cursor: Cursor, handle: str | None) -> None:
        if handle:
            cursor.execute("XA START %s, %s", xid(handle))
        else:
            connection.begin()

    # --- publishers of the same epoch ---

    def publisher(self, epoch: SinkEpoch) -> MarkerHolder | None:
        """The session that has inserted the epoch's marker, committed or not; None if there is none."""
        with self.database.naming("looking for lock holders"), self.database.outside_transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")  # for the next transaction alone
            markers = Relation(self.own_schema, MARKERS)
            rows = self.query(cursor, _SELECT_HOLDER, (*self.owner_key, epoch.id), markers=markers)
            if not rows:
                return None
            token = int(rows[0][0])
            connection = _connection_of(cursor, self._names.session(epoch.id, token))
            cursor.execute(_PROGRESS, (connection,))
            row = cursor.fetchone()
            return MarkerHolder(token, connection, *((int(row[0]), bool(row[1])) if row else (None, False)))

    def is_publishing(self, before: object, epoch: SinkEpoch) -> bool:
        after = self.publisher(epoch)
        if after is None:
            return False
        has_progressed = after.connection is not None and (before != after or after.works)
        return after.token >= epoch.token or has_progressed

    def end_sessions(self, epoch: SinkEpoch) -> None:
        """End the session that holds this epoch's marker, if its token is lower: most likely a stopped client."""
        holder = self.publisher(epoch)
        if holder is not None and holder.token < epoch.token:
            self._end_session(epoch.id, holder.token)

    def _end_session(self, epoch: int, token: int) -> None:
        """End the session of a token, if it is open, and wait until it has released its locks."""
        name = self._names.session(epoch, token)
        with self.database.naming("ending a session"), self.database.outside_transaction() as cursor:
            connection = _connection_of(cursor, name)
            if connection is None:
                return
            try:
                cursor.execute(f"KILL CONNECTION {connection:d}")  # numbers aren't reused while the server runs
            except pymysql.MySQLError as error:
                if code_of(error) == ER.KILL_DENIED_ERROR:
                    raise PreflightRefused(
                        f"sink {self.owner.sink}: connection {connection} of token {token} holds a lock, and "
                        f"the user of connection {self.database.connection_id} may not end it: use one user for a "
                        "sink, or grant CONNECTION ADMIN"
                    ) from error
                if code_of(error) != ER.NO_SUCH_THREAD:
                    raise
            _wait(lambda: _connection_of(cursor, name) is None, self.database.lock_timeout)

    def lock_holders(self, epoch: SinkEpoch) -> str:
        holder = self.publisher(epoch)
        names = [f"token {holder.token} in connection {holder.connection}"] if holder else []
        names += [f"prepared {txn.handle}" for txn in self.pending() if txn.epoch == epoch.id]
        return ", ".join(names) or "no session with this sink's name: see SHOW ENGINE INNODB STATUS"

    # --- XA branches ---

    def handle(self, epoch: SinkEpoch) -> str:
        return self._names.handle(epoch.id, epoch.token, epoch.manifest_hash)

    def parse(self, handle: str) -> Txn | None:
        return self._names.parse(handle)

    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        try:
            cursor.execute("XA END %s, %s", xid(txn.handle))
            cursor.execute("XA PREPARE %s, %s", xid(txn.handle))
        except pymysql.MySQLError as error:
            if is_lost(error):
                return  # the caller looks into XA RECOVER
            failure = self.database.named(error, f"XA PREPARE of epoch {txn.epoch}")
            raise failure from cause(error, quotes_row(error))

    def await_release(self, txn: Txn) -> None:
        def is_closed() -> bool:
            with self.database.naming("looking for a session"), self.database.outside_transaction() as cursor:
                return _connection_of(cursor, self._names.session(txn.epoch, txn.token)) is None

        if not _wait(is_closed, self.database.lock_timeout):
            self._end_session(txn.epoch, txn.token)

    def pending(self) -> list[Txn]:
        """Names on the whole server, cut in two where this sink's are; others are foreign."""
        with self.database.naming("listing prepared branches"), self.database.outside_transaction() as cursor:
            cursor.execute("XA RECOVER")
            branches = []
            for form, length, _, data in cursor.fetchall():
                name = data if isinstance(data, str) else bytes(data).decode("latin-1")
                parts = name[:length], name[length:]
                if form == _FORMAT and xid(":".join(parts)) == parts:
                    branches.append(":".join(parts))
        return [txn for handle in branches if (txn := self.parse(handle)) is not None]

    def finish(self, verb: str, handle: str) -> bool:
        try:
            with self.database.outside_transaction() as cursor:
                cursor.execute(f"{verb} %s, %s", xid(handle))
                return True
        except SinkUnavailable as error:
            raise TryAgain(str(error)) from error
        except pymysql.MySQLError as error:
            if code_of(error) in _GONE:
                self._end_preparing_session(handle)
                return False
            if code_of(error) in _BUSY:
                raise TryAgain(str(error)) from error
            if is_lost(error):
                self.require_gone(handle, error)
                return False
            kind = PublishBlocked if verb == self.commit_verb else SinkUnavailable
            raise self.database.named(error, f"{verb} {handle}", kind) from error

    def _end_preparing_session(self, handle: str) -> None:
        """A branch can't be finished while the session that prepared it is open: end it, and raise `TryAgain`."""
        txn = self.parse(handle)
        if txn is not None and self.is_pending(handle):
            self._end_session(txn.epoch, txn.token)
            raise TryAgain("another session holds it")

    # --- target tables ---

    def find_columns(self, cursor: Cursor, relation: Relation) -> Mapping[str, MariaDbTargetColumn] | None:
        cursor.execute(_FIND_TABLE, relation.names)
        row = cursor.fetchone()
        if row is None:
            return None
        kind, engine = row
        where = f"{self.where}: {relation}"
        if kind != "BASE TABLE":
            raise PreflightRefused(f"{where} is a {kind}: rows are loaded only into tables")
        if engine != "InnoDB":
            raise PreflightRefused(
                f"{where}: its engine is {engine}, whose rows survive a rollback: use ALTER TABLE … ENGINE = InnoDB"
            )
        cursor.execute(_COLUMNS, relation.names)
        columns = {}
        for name, data_type, type_text, not_null, has_default, extra, *details in cursor.fetchall():
            charset, precision, scale, fraction, collation = details
            columns[name] = MariaDbTargetColumn(
                name,
                data_type,
                type_text,
                not_null=bool(not_null),
                has_default=bool(has_default) or "auto_increment" in extra,
                extra=extra,
                charset=charset,
                precision=precision,
                scale=scale,
                fraction=fraction,
                collation=collation,
            )
        return columns

    def find_column(self, columns: Mapping[str, TargetColumn], name: str) -> str | None:
        """MariaDB ignores the case of column names."""
        return next((column for column in columns if column.lower() == name.lower()), None)

    def create_table(
        self, cursor: Cursor, relation: Relation, schema: pa.Schema, epoch_column: str | None, key: Sequence[str]
    ) -> None:
        lines = [self._definition(field, relation, key) for field in schema]
        if epoch_column is not None:
            lines.append(f"{identifier(epoch_column)} bigint NOT NULL")
        if key:
            lines.append(f"PRIMARY KEY ({column_list(list(key))})")
        elif epoch_column is not None:
            lines.append(f"KEY ({column_list([epoch_column])})")
        start = compose("CREATE TABLE {table} ", table=relation.names)
        cursor.execute(f"{start}({', '.join(lines)}) ENGINE = InnoDB CHARSET = utf8mb4")

    def add_columns(self, cursor: Cursor, relation: Relation, new: Sequence[pa.Field]) -> None:
        """Add them at once, for every reader. It waits for a second: every later statement would wait behind it."""
        lines = [
            f"ADD COLUMN IF NOT EXISTS {self._definition(field.with_nullable(True), relation, ())}" for field in new
        ]
        cursor.execute(compose("ALTER TABLE {table} WAIT 1 ", table=relation.names) + ", ".join(lines))

    def _definition(self, field: pa.Field, relation: Relation, key: Sequence[str]) -> str:
        """A column's line of CREATE TABLE. With a `key` the columns of order and tombstones are NOT NULL."""
        kind = mariadb_type(field.type)
        if kind is None:
            raise PreflightRefused(
                f"{self.where}: column {field.name} of {relation}: Arrow type {field.type} has no MariaDB type that "
                "gives it back: cast it in the transform"
            )
        # ddl comes from our own table of types, never from a name
        ddl = kind.key_ddl if field.name in key else kind.ddl
        not_null = not field.nullable or (key and field.name in (ORDER_COLUMN, DELETED_COLUMN))
        return f"{identifier(field.name)} {ddl}{' NOT NULL' if not_null else ''}"

    def unique_keys(
        self, cursor: Cursor, relation: Relation, columns: Sequence[str], epoch_column: str | None
    ) -> list[UniqueKey]:
        values = {
            "database": relation.schema,
            "table": relation.table,
            "columns": list(columns),
            "epoch_column": epoch_column,
        }
        cursor.execute(_UNIQUE_KEYS, values)
        return [UniqueKey(str(name), bool(by_epoch)) for name, by_epoch, numbered in cursor.fetchall() if not numbered]

    def require_insert(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> None:
        """Inserts no row; raises the driver's error, which names the missing right."""
        nulls = ", ".join(["NULL"] * len(names))
        statement = compose("INSERT INTO {table} ", table=relation.names)
        cursor.execute(f"{statement}({column_list(list(names))}) SELECT {nulls} WHERE FALSE")

    def require_upsertable(
        self, cursor: Cursor, relation: Relation, columns: Mapping[str, Any], key: Sequence[str]
    ) -> None:
        """Raises also the driver's error, for a missing right."""
        where = f"{self.where}: table {relation}"
        for name in key:
            collation = columns[name].collation
            if collation not in (None, KEY_COLLATION):
                raise PreflightRefused(
                    f"{where}: key column {name} has the collation {collation}, which takes different texts for the "
                    f"same key: use {KEY_COLLATION}"
                )
        # ON DUPLICATE KEY goes by the unique index that a row violates first, so there may be only one
        cursor.execute(_UNIQUE_INDEXES, relation.names)
        indexes = {str(name): (set(str(names).split("\0")), bool(prefix)) for name, names, prefix in cursor.fetchall()}
        if (set(key), False) not in indexes.values():
            raise PreflightRefused(
                f"{where}: mode='upsert' needs a primary key or unique index on just ({', '.join(key)}); create it"
            )
        other_indexes = sorted(name for name, index in indexes.items() if index != (set(key), False))
        if other_indexes:
            raise PreflightRefused(
                f"{where}: mode='upsert' replaces by the key alone, but {', '.join(other_indexes)} is unique too: drop "
                "it"
            )
        self.change(cursor, "UPDATE {table} SET {key} = {key} WHERE FALSE", table=relation, key=key[0])
        staging = Relation(relation.schema, _STAGING)
        self.change(cursor, "CREATE OR REPLACE TEMPORARY TABLE {table} (id int) ENGINE = Aria", table=staging)
        self.drop_staging(cursor, staging)

    def require_may_delete(self, cursor: Cursor, relation: Relation, epoch_column: str) -> None:
        """Deletes no row; raises the driver's error, which names the missing right."""
        statement = "DELETE FROM {table} WHERE {column} IS NULL AND FALSE"
        self.change(cursor, statement, table=relation, column=epoch_column)

    def referring_tables(self, cursor: Cursor, relation: Relation) -> list[str]:
        cursor.execute(_REFERRING_TABLES, relation.names)
        return [row[0] for row in cursor.fetchall()]

    # --- rows ---

    def encoding(
        self,
        columns: Mapping[str, TargetColumn],
        schema: pa.Schema,
        *,
        doing: str,
        rejected: type[LockstepError],
        epoch_column: str | None,
        epoch: int,
    ) -> LoadEncoding:
        kinds = [(field.name, mariadb_type(field.type)) for field in schema]
        fields = tuple((name, kind) for name, kind in kinds if kind is not None)
        return LoadEncoding(self.database, doing, rejected, epoch_column, epoch, fields)

    def read_rows(
        self,
        relation: Relation,
        columns: Mapping[str, TargetColumn],
        epoch_column: str,
        epoch: int,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        return read_rows(self.database, relation, epoch_column, epoch, schema)

    # --- upserts ---

    def leading_column(self, cursor: Cursor, relation: Relation, key: Sequence[str]) -> str | None:
        """Preflight admits no other unique index."""
        cursor.execute(_LEADING_COLUMN, relation.names)
        return next((str(name) for (name,) in cursor.fetchall()), None)

    def create_staging(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> Relation:
        """A temporary table of Aria: it is no part of the XA branch or transaction, and ends with the session."""
        staging = Relation(relation.schema, _STAGING)
        start = compose("CREATE OR REPLACE TEMPORARY TABLE {table} ENGINE = Aria AS ", table=staging.names)
        end = compose(" FROM {table} WHERE FALSE", table=relation.names)
        cursor.execute(f"{start}SELECT {column_list(list(names))}{end}")
        return staging

    def drop_staging(self, cursor: Cursor, staging: Relation) -> None:
        self.change(cursor, "DROP TEMPORARY TABLE {table}", table=staging)

    def find_duplicates(self, cursor: Cursor, staging: Relation, columns: Sequence[str]) -> list[object]:
        names = column_list(list(columns))
        source = compose("FROM {table} GROUP BY ", table=staging.names)
        cursor.execute(f"SELECT {names} {source}{names} HAVING count(*) > 1 LIMIT 3")
        return [row if len(row) > 1 else row[0] for row in cursor.fetchall()]

    def merge(self, cursor: Cursor, merge: Merge, rows: int) -> int:
        """The order is assigned last and the epoch before it: an assignment sees the results of those before it.

        Where InnoDB calls it a deadlock that several transactions have the same keys, one of them is tried again.
        """
        start = compose("INSERT INTO {table} ", table=merge.table.names)
        source = compose(" FROM {table} ORDER BY ", table=merge.staging.names)
        names = column_list(merge.columns)

        def here(name: str) -> str:
            return identifier((*merge.table.names, name))  # qualified: the staging table has columns of the same names

        def given(name: str) -> str:
            return f"VALUES({identifier(name)})"

        newer = _newer(given, here, merge.epoch_column)
        assignments = [f"{here(name)} = IF({newer}, NULL, {here(name)})" for name in merge.cleared]
        values = [name for name in merge.columns if name not in (*merge.key, ORDER_COLUMN, merge.epoch_column)]
        assignments += [
            f"{here(name)} = IF({newer}, {given(name)}, {here(name)})" for name in (*values, merge.epoch_column)
        ]
        assignments.append(f"{here(ORDER_COLUMN)} = GREATEST({here(ORDER_COLUMN)}, {given(ORDER_COLUMN)})")
        cursor.execute(
            f"{start}({names}) SELECT {names}{source}{column_list(merge.key)} "
            f"ON DUPLICATE KEY UPDATE {', '.join(assignments)}"
        )
        return loader_of(cursor).last_insert().new

    def compare(self, cursor: Cursor, merge: Merge) -> tuple[Any, ...]:
        same = " AND ".join(map(_same, merge.columns))
        keys = " AND ".join(f"{_sealed(name)} = {_existing(name)}" for name in merge.key)
        newer = _newer(_existing, _sealed, merge.epoch_column)
        equal = " AND ".join(f"{_existing(name)} = {_sealed(name)}" for name in (ORDER_COLUMN, merge.epoch_column))
        source = compose(
            "FROM {staging} s LEFT JOIN {table} t ON ", staging=merge.staging.names, table=merge.table.names
        )
        cursor.execute(
            f"SELECT SUM({equal} AND {same}), SUM({newer}), SUM(IF(({equal}) OR {newer}, 0, 1)), "
            f"SUM({equal} AND NOT ({same})) {source}{keys}"
        )
        return cursor.fetchone() or (0, 0, 0, 0)


def _sealed(name: str) -> str:
    return f"s.{identifier(name)}"


def _existing(name: str) -> str:
    return f"t.{identifier(name)}"


def _same(name: str) -> str:
    """SQL: both rows have the same value. BINARY gives NULL for a value that is longer than a packet."""
    sealed, existing = _sealed(name), _existing(name)
    digests = f"(LENGTH({sealed}) < @@max_allowed_packet OR SHA2({sealed}, 256) <=> SHA2({existing}, 256))"
    return f"BINARY {sealed} <=> BINARY {existing} AND {digests}"


def _newer(first: Callable[[str], str], second: Callable[[str], str], epoch_column: str) -> str:
    """SQL: the first row is newer than the second one; `first` and `second` refer to their columns by name."""
    order, epoch = ORDER_COLUMN, epoch_column
    same_order = f"{first(order)} = {second(order)} AND {first(epoch)} > {second(epoch)}"
    return f"({first(order)} > {second(order)} OR ({same_order}))"


def _connection_of(cursor: Cursor, session: str) -> int | None:
    """The connection that holds a session's lock."""
    cursor.execute("SELECT IS_USED_LOCK(%s)", (session,))
    row = cursor.fetchone()
    return int(row[0]) if row and row[0] is not None else None


def _wait(until: Callable[[], bool], seconds: float) -> bool:
    """True as soon as `until` is, asked at growing intervals; False after `seconds`."""
    deadline, pause = time.monotonic() + seconds, 0.001
    while not until():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return True

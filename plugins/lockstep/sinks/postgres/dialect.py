"""PostgreSQL as a database of table sinks: prepared transactions, COPY, DDL within transactions.

A session carries its token in `application_name`. Publishers of one epoch exclude each other by an advisory lock, and
the server shows the progress of the one that holds it.

A handle that is gone proves nothing by itself: committed, rolled back and never prepared all give error 42704. Only the
marker, read in a new transaction, decides (see `TwoPhaseCommitSink.publish`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg2
import pyarrow as pa
from psycopg2 import errorcodes, sql
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

import lockstep.sinks.postgres.statements as statements
from lockstep.connections.names import Relation
from lockstep.connections.postgres.connection import PostgresDatabase, close_quietly, too_old
from lockstep.connections.postgres.errors import is_lost, quotes_row
from lockstep.errors import (
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetFull,
    TargetUnreadable,
)
from lockstep.observability.redaction import cause
from lockstep.sinks.postgres.column_types import REWRITTEN, PostgresTargetColumn, postgres_type
from lockstep.sinks.postgres.copying import CopyEncoding, read_rows
from lockstep.sinks.tables.dialect import Dialect, Merge, Name, TargetColumn, TryAgain, UniqueKey
from lockstep.sinks.tables.own_tables import IDENTITY, KEYS, MARKERS, RANGES, TARGETS
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN
from lockstep.sinks.values import SinkEpoch, Txn

TableName: TypeAlias = tuple[str, str]  #: schema and table; the schema itself without a table

_ADVISORY = "hashtextextended(%s, 0)"
_NEEDS = "progress of COPY, which distinguishes a working publisher from a stopped one"
_DDL_LOCK_MS = 200  #: behind a prepared transaction DDL would wait, and every later statement behind it
_ADD_COLUMN_TRIES = 25  #: of `_DDL_LOCK_MS` each: between two tries waiting readers and writers go on
_MAX_NAME = 63  #: bytes


@dataclass(frozen=True)
class PostgresDialect(Dialect):
    """PostgreSQL 14 or newer; see `Dialect`."""

    adds_columns_with_rows = True
    loads_early = True
    commit_verb = "COMMIT PREPARED"
    roll_back_verb = "ROLLBACK PREPARED"
    prepared_list = "in pg_prepared_xacts"
    relation_as_stored = statements.RELATION_AS_STORED
    add_keys = (
        "INSERT INTO {keys} AS k (deployment, pipeline, sink, relation, epoch, new) VALUES (%s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (deployment, pipeline, sink, relation, epoch) DO UPDATE SET new = k.new + excluded.new"
    )

    database: PostgresDatabase

    @property
    def default_schema(self) -> str:
        return "public"

    # --- statements ---

    def compose(self, statement: str, names: Mapping[str, Name], *, has_values: bool) -> sql.Composed:
        quoted = {key: _identifier(name, "%%" if has_values else "%") for key, name in names.items()}
        return sql.SQL(statement).format(**quoted)

    def insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Name) -> bool:
        return self.change(cursor, f"{statement} ON CONFLICT DO NOTHING", values, **names) == 1

    def quoted(self, cursor: Cursor, *names: str) -> str:
        return sql.Identifier(*names).as_string(cursor)

    # --- preflight, and Lockstep's own tables ---

    @contextmanager
    def set_up(self) -> Iterator[Cursor]:
        with self.database.transaction("preflight", rejected=PreflightRefused) as cursor:
            if version := too_old(cursor.connection, _NEEDS):
                raise PreflightRefused(f"{self.where}: the server is {version}")
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", (str(_DDL_LOCK_MS),))
            yield cursor

    def require_rights(self, cursor: Cursor, targets: Sequence[Relation], *, create: bool) -> None:
        changing = ("SELECT", "INSERT", "UPDATE")
        own: dict[str, tuple[str, ...]] = {MARKERS: changing, **({KEYS: changing} if self.upserts else {})}
        own |= {RANGES: ("SELECT", "INSERT"), TARGETS: ("SELECT",), IDENTITY: ("SELECT",)}
        own_rights = {(self.own_schema, name): privileges for name, privileges in own.items()}
        writing = changing if self.upserts else ("INSERT",)
        target_rights = {relation.names: writing for relation in targets}
        rights: dict[TableName, tuple[str, ...]] = {
            (schema, ""): ("USAGE",) for schema, _ in (*own_rights, *target_rights)
        }
        if self.upserts:
            rights[self.own_schema, ""] = ("USAGE", "CREATE")  # for staging tables
        created = {*own_rights, *(target_rights if create else ())}
        self._require_rights(cursor, {**rights, **own_rights, **target_rights}, created)

    def require_may_own(self, cursor: Cursor) -> None:
        self._require_rights(cursor, {(self.own_schema, TARGETS): ("INSERT", "UPDATE")}, who=self.owner.sink)

    def _require_rights(
        self,
        cursor: Cursor,
        rights: Mapping[TableName, tuple[str, ...]],
        created: Collection[TableName] = (),
        who: str | None = None,
    ) -> None:
        """Raise `PreflightRefused` with a GRANT for all `rights` that the role lacks, and for the right to create those
        of `created` that don't exist."""
        required = [
            (*name, privilege, name in created) for name, privileges in rights.items() for privilege in privileges
        ]
        columns = zip(("schemas", "names", "rights", "made"), map(list, zip(*required, strict=True)), strict=True)
        cursor.execute(statements.MISSING_RIGHTS, dict(columns))
        rows = cursor.fetchall()
        if not rows:
            return
        missing: dict[TableName, dict[str, None]] = {}
        for schema, table, privilege, _ in rows:
            missing.setdefault((schema, table), {})[privilege] = None
        role = str(rows[0][3])
        grants = [
            sql.SQL("GRANT {} ON {} {} TO {};")
            .format(
                sql.SQL(", ").join(map(sql.SQL, privileges)),
                sql.SQL("TABLE" if table else "SCHEMA"),
                sql.Identifier(schema, table) if table else sql.Identifier(schema),
                sql.Identifier(role),
            )
            .as_string(cursor)
            for (schema, table), privileges in missing.items()
        ]
        raise PreflightRefused(
            f"{who or self.where}: role {role} lacks rights that the sink needs; let the owner of the tables, or a "
            f"superuser, run: {' '.join(grants)}"
        )

    def create_own_tables(self, cursor: Cursor) -> None:
        tables = [table for table in statements.OWN_TABLES if self.upserts or table != KEYS]
        existing = self.existing_tables(cursor, *tables)
        for table in tables:
            if table not in existing:
                relation = Relation(self.own_schema, table)
                self.change(cursor, statements.OWN_TABLES[table], table=relation)
                if table == IDENTITY:
                    self.change(cursor, "INSERT INTO {table} DEFAULT VALUES", table=relation)

    def existing_tables(self, cursor: Cursor, *tables: str) -> set[str]:
        cursor.execute(statements.EXISTING_TABLES, (list(tables), self.own_schema))
        return {str(table) for (table,) in cursor.fetchall()}

    def other_schemas(self, cursor: Cursor) -> list[str]:
        cursor.execute(statements.OTHER_SCHEMAS, (self.own_schema,))
        return [str(name) for (name,) in cursor.fetchall()]

    def stored_name(self, cursor: Cursor, relation: Relation) -> Relation:
        """Postgres cuts a name after 63 bytes, without an error."""
        cursor.execute("SELECT %s::name::text, %s::name::text", relation.names)
        return Relation(*(cursor.fetchone() or relation.names))

    def related_tables(self, cursor: Cursor, relation: Relation) -> set[str]:
        cursor.execute(statements.RELATED_TABLES, relation.names)
        return {str(relation), *(name for (name,) in cursor.fetchall())}

    # --- sessions ---

    def connect(self, purpose: str) -> Connection:
        return self.database.connect(f"lockstep {self.where} {purpose}"[:_MAX_NAME])

    def open_session(self, epoch: SinkEpoch) -> Connection:
        return self.database.connect(self.owner.session(epoch.id, epoch.token))

    def close(self, connection: Connection) -> None:
        close_quietly(connection)

    def check_constraints(self, cursor: Cursor) -> None:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    # --- publishers of the same epoch ---

    def lock_out_publishers(self, cursor: Cursor, epoch: SinkEpoch) -> bool:
        """Takes the publishers' lock; False if a lower token holds it and makes progress, or another one holds it."""
        key = ":".join((*self.owner_key, str(epoch.id)))
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({_ADVISORY})", (key,))
        if cursor.fetchone() == (True,):
            return True
        before = self._lower_publishers(cursor, epoch)
        if self._await_lock(cursor, key):
            return True
        with self.database.transaction("looking at another publisher") as short:
            after = self._lower_publishers(short, epoch)
        if not after or before != after:
            return False
        self.end_sessions(epoch)
        return self._await_lock(cursor, key)

    def _await_lock(self, cursor: Cursor, key: str) -> bool:
        cursor.execute("SAVEPOINT waiting")
        try:
            cursor.execute(f"SELECT pg_advisory_xact_lock({_ADVISORY})", (key,))
        except psycopg2.errors.LockNotAvailable:
            cursor.execute("ROLLBACK TO SAVEPOINT waiting")
            return False
        return True

    def _lower_publishers(self, cursor: Cursor, epoch: SinkEpoch) -> list[tuple[object, ...]]:
        """Publishing sessions of lower tokens with their progress: equal answers mean that there was none."""
        cursor.execute(statements.PUBLISHERS, self._lower(epoch))
        return cursor.fetchall()

    def end_sessions(self, epoch: SinkEpoch) -> None:
        with self.database.transaction("ending sessions of lower tokens") as cursor:
            cursor.execute(statements.END_SESSIONS, self._lower(epoch))

    def lock_holders(self, epoch: SinkEpoch) -> str:
        """Other executions of this epoch, or else holders of the markers, for a message. The attempt's own session
        isn't named: it holds nothing any more, and is listed until its process has ended."""
        sessions = (
            "SELECT a.application_name FROM pg_stat_activity a WHERE starts_with(a.application_name, %s) AND EXISTS "
            "(SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'transactionid' AND l.granted)"
        )
        with self.database.transaction("looking for lock holders") as cursor:
            cursor.execute(sessions, (self.owner.session_prefix(epoch.id),))
            names = [f"session {name}" for (name,) in cursor.fetchall()]
            cursor.execute(statements.MARKER_WRITERS)
            writers = [str(name) for (name,) in cursor.fetchall()]
        names += [f"prepared {txn.handle}" for txn in self.pending() if txn.epoch == epoch.id]
        return ", ".join(names or writers) or "no session any more"

    def _lower(self, epoch: SinkEpoch) -> dict[str, object]:
        return {"prefix": self.owner.session_prefix(epoch.id), "token": epoch.token}

    # --- prepared transactions ---

    def require_room(self, cursor: Cursor) -> tuple[str, int]:
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, "
            "ARRAY(SELECT gid FROM pg_prepared_xacts WHERE database = current_database()), "
            "(SELECT count(*) FROM pg_prepared_xacts), "
            "concat(current_setting('port'), ' ', extract(epoch FROM pg_postmaster_start_time()))"
        )
        limit, handles, used, server = cursor.fetchone() or (0, [], 0, "")
        # this sink's own don't count: they are finished before this epoch's, or `prepare` reports them
        own = [handle for handle in handles if self.parse(handle)]
        if limit == 0:
            raise PreflightRefused(
                f"sink {self.owner.sink}: max_prepared_transactions = 0: a two_phase sink needs one for each epoch "
                "under way; raise it and restart the server, or say protocol='write_ahead'"
            )
        if used - len(own) >= limit:
            raise TargetFull(
                f"sink {self.owner.sink}: max_prepared_transactions = {limit}, {used} in use, all by others (see "
                f"pg_prepared_xacts): try again when one is finished; if they are no leftovers, raise it to at least "
                f"{used + 1} and restart the server, or say protocol='write_ahead'"
            )
        return server, limit

    def handle(self, epoch: SinkEpoch) -> str:
        return self.owner.handle(epoch)

    def parse(self, handle: str) -> Txn | None:
        return self.owner.parse(handle)

    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        doing = f"PREPARE TRANSACTION of epoch {txn.epoch}"
        try:
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(txn.handle)))
        except psycopg2.Error as error:
            if is_lost(error):
                return  # the caller looks into pg_prepared_xacts
            # only the setting in the hint distinguishes this from other shortages
            hint = error.diag.message_hint or ""
            if error.pgcode == errorcodes.OUT_OF_MEMORY and "max_prepared_transactions" in hint:
                raise TargetFull(
                    f"sink {self.owner.sink}: {doing}: all of max_prepared_transactions are in use (see "
                    "pg_prepared_xacts), maybe by this sink's other epochs: try again when one is published; or raise "
                    "it and restart the server"
                ) from error
            raise self.database.named(error, doing) from cause(error, quotes_row(error))
        tag = cursor.statusmessage
        if tag != "PREPARE TRANSACTION":
            raise SinkRejected(
                f"sink {self.owner.sink}: {doing} was answered with {tag}: a statement had failed before, and the "
                "server rolled everything back"
            )

    def pending(self) -> list[Txn]:
        with self.database.transaction("listing prepared transactions") as cursor:
            cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared")
            return [txn for (handle,) in cursor.fetchall() if (txn := self.parse(handle)) is not None]

    def is_pending(self, handle: str) -> bool:
        with self.database.transaction("looking for a prepared transaction") as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_prepared_xacts WHERE gid = %s AND database = current_database()", (handle,)
            )
            return cursor.fetchone() is not None

    def finish(self, verb: str, handle: str) -> bool:
        try:
            with self.database.outside_transaction() as cursor:
                cursor.execute(sql.SQL("{} {}").format(sql.SQL(verb), sql.Literal(handle)))
                return True
        except SinkUnavailable as error:
            raise TryAgain(str(error)) from error
        except psycopg2.Error as error:
            if error.pgcode == errorcodes.UNDEFINED_OBJECT:
                return False
            if error.pgcode == errorcodes.OBJECT_NOT_IN_PREREQUISITE_STATE:
                raise TryAgain("another session is finishing it") from error
            if is_lost(error):
                self.require_gone(handle, error)
                return False
            kind = PublishBlocked if verb == self.commit_verb else SinkUnavailable
            if error.pgcode != errorcodes.INSUFFICIENT_PRIVILEGE:
                raise self.database.named(error, f"{verb} {handle}", kind) from error
            raise kind(
                f"sink {self.owner.sink}: {verb} {handle}: only the role that prepared it, or a superuser, may finish "
                f"it, not the role of connection {self.database.connection_id}: log in as that role, or let a "
                "superuser run it"
            ) from error

    # --- target tables ---

    def find_columns(self, cursor: Cursor, relation: Relation) -> Mapping[str, PostgresTargetColumn] | None:
        cursor.execute(statements.FIND_TABLE, relation.names)
        row = cursor.fetchone()
        if row is None:
            return None
        oid, kind, may_insert, row_security, weak = row
        where = f"{self.where}: {relation}"
        if kind not in ("r", "p"):
            described = statements.KINDS.get(kind, "no table")
            raise PreflightRefused(f"{where} is {described}: rows are copied only into tables")
        if weak:
            raise PreflightRefused(
                f"{where}: {weak} is UNLOGGED, temporary or foreign and would lose committed rows at a crash: "
                "use ALTER TABLE … SET LOGGED"
            )
        if not may_insert:
            raise PreflightRefused(f"{where}: the role may not INSERT into it: GRANT INSERT")
        if row_security:
            raise PreflightRefused(
                f"{where} has row-level security, which COPY FROM can't pass: use a role that bypasses it"
            )
        cursor.execute(statements.COLUMNS, (oid,))
        return {row[0]: PostgresTargetColumn(*row) for row in cursor.fetchall()}

    def find_column(self, columns: Mapping[str, TargetColumn], name: str) -> str | None:
        """`name`, or the part that Postgres keeps of a longer one."""
        stored = name.encode()[:_MAX_NAME].decode(errors="ignore")
        return next((column for column in (name, stored) if column in columns), None)

    def create_table(
        self, cursor: Cursor, relation: Relation, schema: pa.Schema, epoch_column: str | None, key: Sequence[str]
    ) -> None:
        columns = []
        for field in schema:
            kind = postgres_type(field.type)
            if kind is None:
                raise PreflightRefused(
                    f"{self.where}: column {field.name} of {relation}: Arrow type {field.type} has no Postgres type "
                    "that gives it back: cast it in the transform"
                )
            # ddl comes from our own table of types, never from a name
            ddl = f"{kind.ddl} NOT NULL" if key and field.name in (ORDER_COLUMN, DELETED_COLUMN) else kind.ddl
            columns.append(sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(ddl)))
        if epoch_column is not None:
            columns.append(sql.SQL("{} bigint NOT NULL").format(sql.Identifier(epoch_column)))
        if key:
            columns.append(sql.SQL("PRIMARY KEY ({})").format(_columns(key)))
        cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(_identifier(relation), sql.SQL(", ").join(columns)))
        if epoch_column is not None and not key:  # an upsert changes the epoch, and would have to change the index, too
            index = "CREATE INDEX ON {table} USING brin ({column}) WITH (pages_per_range = 32)"
            self.change(cursor, index, table=relation, column=epoch_column)

    def require_addable(self, cursor: Cursor, relation: Relation, new: Sequence[pa.Field]) -> None:
        faults = []
        for field in new:
            if postgres_type(field.type) is None:
                faults.append(
                    f"column {field.name}: Arrow type {field.type} has no Postgres type that gives it back: cast it in "
                    "the transform"
                )
            elif len(field.name.encode()) > _MAX_NAME:
                faults.append(
                    f"column {field.name}: Postgres cuts a name of more than {_MAX_NAME} bytes: give it a shorter one "
                    "in the transform"
                )
        if faults:
            raise PreflightRefused(f"{self.where}: table {relation} can't get what it lacks: {'; '.join(faults)}")
        cursor.execute(statements.MAY_ADD_COLUMNS, relation.names)
        may_add, role = cursor.fetchone() or (False, "")
        if not may_add:
            raise PreflightRefused(
                f"{self.where}: table {relation} lacks the columns {', '.join(field.name for field in new)}, and role "
                f"{role} may not add them: let its owner run: {_add_columns(relation, new).as_string(cursor)};"
            )

    def add_columns(self, cursor: Cursor, relation: Relation, new: Sequence[pa.Field]) -> None:
        """Raises also the driver's error where other transactions hold the table for too long.

        The statement locks every reader out until the transaction ends and, while it waits for a lock, everything
        behind it: so it waits for a moment, lets other transactions pass, and is tried again.
        """
        self.require_addable(cursor, relation, new)
        cursor.execute("SELECT current_setting('lock_timeout')")
        [lock_timeout] = cursor.fetchone() or ("0",)
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", (f"{_DDL_LOCK_MS}ms",))
        for attempt in range(1, _ADD_COLUMN_TRIES + 1):
            cursor.execute("SAVEPOINT lockstep_columns")
            try:
                cursor.execute(_add_columns(relation, new))
                break
            except psycopg2.errors.LockNotAvailable:
                if attempt == _ADD_COLUMN_TRIES:
                    raise
                cursor.execute("ROLLBACK TO SAVEPOINT lockstep_columns")
        cursor.execute("RELEASE SAVEPOINT lockstep_columns")
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", (lock_timeout,))

    def unique_keys(
        self, cursor: Cursor, relation: Relation, columns: Sequence[str], epoch_column: str | None
    ) -> list[UniqueKey]:
        """Unique keys of the table and its partitions."""
        values = {"columns": list(columns), "epoch_column": epoch_column, "numbering": statements.NUMBERING}
        cursor.execute(statements.UNIQUE_KEYS, {**_named(relation), **values})
        return [UniqueKey(name, bool(by_epoch)) for name, by_epoch in cursor.fetchall()]

    def has_triggers(self, cursor: Cursor, relation: Relation) -> bool:
        return _is_true(cursor, statements.HAS_TRIGGERS, _named(relation))

    def require_upsertable(
        self, cursor: Cursor, relation: Relation, columns: Mapping[str, TargetColumn], key: Sequence[str]
    ) -> None:
        where, values = f"{self.where}: table {relation}", {**_named(relation), "key": list(key)}
        cursor.execute(statements.UNIQUE_INDEXES, values)
        if set(key) not in [set(names) for (names,) in cursor.fetchall()]:
            raise PreflightRefused(
                f"{where}: mode='upsert' needs a primary key or unique index on just ({', '.join(key)}), neither "
                "partial nor deferrable; create it"
            )
        cursor.execute(statements.OTHER_UNIQUE_INDEXES, values)
        if indexes := [str(name) for (name,) in cursor.fetchall()]:
            raise PreflightRefused(
                f"{where}: mode='upsert' replaces by the key alone, but {', '.join(indexes)} is unique too, and could "
                "refuse a row after the decision: drop it"
            )
        if not _is_true(cursor, statements.MAY_UPSERT, values):
            raise PreflightRefused(f"{where}: mode='upsert' reads and updates rows: GRANT SELECT, UPDATE")
        if not _is_true(cursor, statements.MAY_CREATE, (self.own_schema,)):
            raise PreflightRefused(
                f"{self.where}: mode='upsert' creates and drops a table in schema {self.own_schema} for each epoch: "
                "GRANT CREATE ON SCHEMA, or give another schema"
            )

    def require_may_delete(self, cursor: Cursor, relation: Relation, epoch_column: str) -> None:
        self._require_rights(cursor, {relation.names: ("SELECT", "DELETE")})

    def referring_tables(self, cursor: Cursor, relation: Relation) -> list[str]:
        cursor.execute(statements.REFERRING_TABLES, (self.quoted(cursor, *relation.names),))
        return [row[0] for row in cursor.fetchall()]

    # --- rows ---

    def lock_columns(self, cursor: Cursor, relation: Relation) -> None:
        """Takes the lock of COPY before the catalogue is read, so that no column changes its type in between."""
        self.change(cursor, "LOCK TABLE {table} IN ROW EXCLUSIVE MODE", table=relation)

    def encoding(
        self,
        columns: Mapping[str, Any],
        schema: pa.Schema,
        *,
        doing: str,
        rejected: type[LockstepError],
        epoch_column: str | None,
        epoch: int,
    ) -> CopyEncoding:
        kinds = [(field.name, postgres_type(field.type)) for field in schema]
        fields = tuple((name, kind, columns[name]) for name, kind in kinds if kind is not None)
        return CopyEncoding(self.database, doing, rejected, epoch_column, epoch, fields)

    def accepts_fitting_rows(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> bool:
        return _is_true(cursor, statements.ACCEPTS_FITTING_ROWS, {**_named(relation), "columns": list(names)})

    def read_rows(
        self, relation: Relation, columns: Mapping[str, Any], epoch_column: str, epoch: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        kinds = {name: columns[name].type_name for name in schema.names if name in columns}
        if rewritten := [f"{name} ({kind})" for name, kind in kinds.items() if kind in REWRITTEN]:
            raise TargetUnreadable(f"{self.where}: {relation} has texts in a form of its own: {', '.join(rewritten)}")
        return read_rows(self.database, relation, epoch_column, epoch, schema)

    # --- upserts ---

    def compares_keys_by_bytes(self, cursor: Cursor, relation: Relation, key: Sequence[str]) -> bool:
        """False for a collation that takes different texts for equal."""
        return _is_true(cursor, statements.COMPARES_BY_BYTES, {**_named(relation), "key": list(key)})

    def leading_column(self, cursor: Cursor, relation: Relation, key: Sequence[str]) -> str | None:
        cursor.execute(statements.LEADING_COLUMN, {**_named(relation), "key": list(key)})
        return next((str(name) for (name,) in cursor.fetchall()), None)

    def create_staging(self, cursor: Cursor, relation: Relation, names: Sequence[str]) -> Relation:
        """An unlogged table that this transaction creates, empties and drops: no other session sees it, and nothing of
        it remains. PREPARE TRANSACTION refuses a transaction that has used a temporary table."""
        staging = Relation(self.own_schema, f"lockstep_upsert_{uuid.uuid4().hex}")
        cursor.execute(
            sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT {} FROM {} WITH NO DATA").format(
                _identifier(staging), _columns(names), _identifier(relation)
            )
        )
        return staging

    def drop_staging(self, cursor: Cursor, staging: Relation) -> None:
        self.change(cursor, "TRUNCATE {table}", table=staging)  # frees the space now, not at the end
        self.change(cursor, "DROP TABLE {table}", table=staging)

    def find_duplicates(self, cursor: Cursor, staging: Relation, columns: Sequence[str]) -> list[object]:
        """Creates a unique index on them, which `merge` uses. After a duplicate the transaction is broken."""
        ordered = [
            sql.SQL("{} DESC" if name == ORDER_COLUMN else "{}").format(sql.Identifier(name)) for name in columns
        ]
        try:
            cursor.execute(
                sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(_identifier(staging), sql.SQL(", ").join(ordered))
            )
        except psycopg2.errors.UniqueViolation as error:
            return [(error.diag.message_detail or "").removesuffix(" is duplicated.")]
        return []

    def merge(self, cursor: Cursor, merge: Merge, rows: int) -> int:
        before = self._growth(cursor, merge.table)
        cursor.execute(self._insert_or_update(cursor, merge))
        if cursor.rowcount != rows:  # each row that was not written has to be older than the table's
            missing = sql.SQL("SELECT count(*) FROM {} s WHERE NOT EXISTS (SELECT FROM {} t WHERE {} AND {} >= {})")
            cursor.execute(
                missing.format(
                    _identifier(merge.staging),
                    _identifier(merge.table),
                    _same_key(merge),
                    _age("t", merge),
                    _age("s", merge),
                )
            )
            (refused,) = cursor.fetchone() or (0,)
            if refused:
                raise merge.encoding.rejection(f"the server has not taken {refused} rows: a trigger may drop them")
        return self._growth(cursor, merge.table) - before

    def _growth(self, cursor: Cursor, relation: Relation) -> int:
        """Number of rows by which this transaction has made the table grow; 0 where the server doesn't count."""
        cursor.execute(statements.GROWTH, _named(relation))
        (rows,) = cursor.fetchone() or (0,)
        return int(rows)

    def _insert_or_update(self, cursor: Cursor, merge: Merge) -> sql.Composable:
        """Sorts texts as rows in memory are sorted, if keys are compared by bytes, so that inserts and updates of
        several transactions don't deadlock."""
        assert isinstance(merge.encoding, CopyEncoding)
        by_bytes = self.compares_keys_by_bytes(cursor, merge.table, merge.key)
        texts = {
            name for name, _, column in merge.encoding.fields if column.type_name in ("text", "varchar") and by_bytes
        }
        sorted_by = sql.SQL(", ").join(
            sql.SQL('{} COLLATE "C"' if name in texts else "{}").format(sql.Identifier(name)) for name in merge.key
        )
        newest: sql.Composable = sql.SQL("")
        descending: sql.Composable = sql.SQL("")
        if merge.by_column:
            newest = sql.SQL("DISTINCT ON ({})").format(sorted_by)
            descending = sql.SQL(", {} DESC").format(sql.Identifier(ORDER_COLUMN))
        replaced = [
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name))
            for name in merge.columns
            if name not in merge.key
        ]
        cleared = [sql.SQL("{} = NULL").format(sql.Identifier(name)) for name in merge.cleared]
        return sql.SQL(
            "INSERT INTO {table} AS t ({columns}) SELECT {newest} {columns} FROM {staging} "
            "ORDER BY {sorted_by}{descending} ON CONFLICT ({key}) "
            "DO UPDATE SET {replaced} WHERE {age_here} < {age_given}"
        ).format(
            table=_identifier(merge.table),
            columns=_columns(merge.columns),
            newest=newest,
            staging=_identifier(merge.staging),
            key=_columns(merge.key),
            sorted_by=sorted_by,
            descending=descending,
            replaced=sql.SQL(", ").join(replaced + cleared),
            age_here=_age("t", merge),
            age_given=_age("excluded", merge),
        )

    def compare(self, cursor: Cursor, merge: Merge) -> tuple[Any, ...]:
        same = sql.SQL("{} IS NOT DISTINCT FROM {}").format(_row("s", merge.columns), _row("t", merge.columns))
        look = sql.SQL(
            "SELECT count(*) FILTER (WHERE {here} = {given} AND {same}), count(*) FILTER (WHERE {here} > {given}), "
            "count(*) FILTER (WHERE ({here} >= {given}) IS NOT TRUE), "
            "count(*) FILTER (WHERE {here} = {given} AND NOT ({same})) "
            "FROM {staging} s LEFT JOIN {table} t ON {keys}"
        ).format(
            here=_age("t", merge),
            given=_age("s", merge),
            same=same,
            staging=_identifier(merge.staging),
            table=_identifier(merge.table),
            keys=_same_key(merge),
        )
        cursor.execute(look)
        return cursor.fetchone() or (0, 0, 0, 0)


def _identifier(name: Name, percent: str = "%") -> sql.Identifier:
    parts = (name,) if isinstance(name, str) else name.names
    return sql.Identifier(*(part.replace("%", percent) for part in parts))


def _columns(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _row(alias: str, names: Sequence[str]) -> sql.Composed:
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(sql.Identifier(alias, name) for name in names))


def _age(alias: str, merge: Merge) -> sql.Composed:
    return _row(alias, [ORDER_COLUMN, merge.epoch_column])


def _same_key(merge: Merge) -> sql.Composed:
    return sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in merge.key)


def _add_columns(relation: Relation, new: Sequence[pa.Field]) -> sql.Composed:
    kinds = [(field.name, postgres_type(field.type)) for field in new]
    # ddl comes from our own table of types, never from a name
    columns = [
        sql.SQL("ADD COLUMN IF NOT EXISTS {} {}").format(sql.Identifier(name), sql.SQL(kind.ddl))
        for name, kind in kinds
        if kind is not None
    ]
    return sql.SQL("ALTER TABLE {} {}").format(_identifier(relation), sql.SQL(", ").join(columns))


def _named(relation: Relation) -> dict[str, object]:
    return {"schema": relation.schema, "table": relation.table}


def _is_true(cursor: Cursor, question: str, values: Mapping[str, object] | Sequence[object]) -> bool:
    cursor.execute(question, values)
    return cursor.fetchone() == (True,)

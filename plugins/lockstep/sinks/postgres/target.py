"""What Lockstep keeps in a target database, beside the data: markers, owners, and the database's own id.

    lockstep_marker     one row for each published (deployment, pipeline, sink, epoch), written with the epoch's rows
    lockstep_range      the interval of each marker, written with it: by that it is found whatever number its epoch has
    lockstep_target     who owns which table
    lockstep_target_id  one random id: tells this database from any other one
    lockstep_keys       for upserts: how many new keys each epoch brought, written with its rows

Every method takes a cursor within the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.errors import SinkUnavailable, TargetChanged
from lockstep.sinks.base import Marker, SinkEpoch
from lockstep.sinks.handles import SinkName
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.postgres.rights import Name, require_rights
from lockstep.sinks.tables.markers import MarkerLooks
from lockstep.sinks.tables.ownership import owned, require_apart

_TABLES = {
    "lockstep_marker": """
        CREATE TABLE IF NOT EXISTS {} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, epoch bigint NOT NULL,
            token bigint NOT NULL, manifest_hash text NOT NULL, rows jsonb,
            published_at timestamptz NOT NULL DEFAULT now(), -- when the transaction that wrote it began
            PRIMARY KEY (deployment, pipeline, sink, epoch))""",
    "lockstep_range": """
        CREATE TABLE IF NOT EXISTS {} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, span text NOT NULL,
            epoch bigint NOT NULL, token bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, span),
            UNIQUE (deployment, pipeline, sink, token, epoch))""",
    "lockstep_target": """
        CREATE TABLE IF NOT EXISTS {} (
            relation text NOT NULL, deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL,
            shared boolean NOT NULL,
            PRIMARY KEY (relation, deployment, pipeline, sink))""",
    "lockstep_target_id": """
        CREATE TABLE IF NOT EXISTS {} (
            id uuid NOT NULL DEFAULT gen_random_uuid(), only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one))""",
}
_KEYS = {
    "lockstep_keys": """
        CREATE TABLE IF NOT EXISTS {} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, relation text NOT NULL,
            epoch bigint NOT NULL, new bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, relation, epoch))""",
}

_NO_RANGES = sql.SQL(
    "(SELECT NULL::uuid AS deployment, NULL::text AS pipeline, NULL::text AS sink, NULL::text AS span, "
    "NULL::bigint AS epoch, NULL::bigint AS token WHERE false)"
)

# schemas with owners beside the sink's own, as far as the role may read them
_HOMES = """
    SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'lockstep_target' AND c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> %s
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped
         AND (a.attname = 'deployment' AND a.atttypid = 'uuid'::regtype
              OR a.attname IN ('relation', 'pipeline', 'sink', 'shared'))) = 5
    ORDER BY n.nspname
"""

# a row of lockstep_target may have a name as it was given once, longer than Postgres keeps it
_AS_STORED = sql.SQL(
    "split_part(relation, '.', 1)::name::text || '.' || substr(relation, strpos(relation, '.') + 1)::name::text"
)
_RELATIVES = """
    WITH RECURSIVE target (oid) AS (SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid),
        below (oid) AS (TABLE target UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid),
        above (oid) AS (TABLE target UNION SELECT i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.oid)
    SELECT n.nspname || '.' || c.relname FROM (TABLE below UNION TABLE above) r
    JOIN pg_class c ON c.oid = r.oid JOIN pg_namespace n ON n.oid = c.relnamespace
"""


@dataclass(frozen=True, order=True)
class Relation:
    """A table by schema and name, both exactly as pg_class has them."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> Relation:
        """`schema.table`; without a schema: public."""
        schema, dot, table = text.partition(".")
        return cls(schema, table) if dot else cls("public", schema)

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.table)

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class TargetTables(MarkerLooks):
    """Lockstep's own tables in `schema`, as seen by the sink `owner`."""

    schema: str
    owner: SinkName

    # --- set-up ---

    def lock_set_up(self, cursor: Cursor) -> None:
        """Whoever changes tables goes one by one; lasts as long as the transaction."""
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")

    def rights(self, *, upserts: bool = False) -> dict[Name, tuple[str, ...]]:
        """What every execution has to be allowed on these tables. Who owns a table is written down once."""
        reading = dict.fromkeys(("lockstep_target", "lockstep_target_id"), ("SELECT",))
        writing = ("lockstep_marker", *(_KEYS if upserts else ()))
        adding = {"lockstep_range": ("SELECT", "INSERT")}
        tables = {**dict.fromkeys(writing, ("SELECT", "INSERT", "UPDATE")), **adding, **reading}
        return {(self.schema, name): needed for name, needed in tables.items()}

    def create(self, cursor: Cursor, *, upserts: bool = False) -> None:
        """Create what is missing; a role without CREATE passes if all is there."""
        for table, statement in (_TABLES | _KEYS if upserts else _TABLES).items():
            if not self._exists(cursor, table):
                cursor.execute(sql.SQL(statement).format(self._table(table)))
                if table == "lockstep_target_id":
                    cursor.execute(sql.SQL("INSERT INTO {} DEFAULT VALUES").format(self._table(table)))

    def claim(self, cursor: Cursor, outputs: Mapping[str, Relation], *, shared: bool, alone: bool = False) -> None:
        """Own the table of each output. Raises `TargetOwned` if another pipeline does and not both say shared=True;
        `alone`: if anybody else does, another sink of the same pipeline included; `PreflightRefused` where two outputs
        have one table."""
        stored = {output: self._stored(cursor, relation) for output, relation in outputs.items()}
        kin = {output: (str(found), _relatives(cursor, found)) for output, found in stored.items()}
        require_apart(self.owner.sink, kin)
        for relation in stored.values():
            for *owner, theirs, home in self._claims(cursor, relation):
                deployment, pipeline, sink = owner
                another = (deployment, pipeline) != (self.owner.deployment, self.owner.pipeline)
                if alone or (another and not (shared and theirs)):
                    raise owned(self.owner.sink, relation, (deployment, pipeline, sink), home, alone=alone)
            self._record_claim(cursor, relation, shared)

    def _record_claim(self, cursor: Cursor, relation: Relation, shared: bool) -> None:
        cursor.execute(
            sql.SQL(
                "SELECT shared FROM {} WHERE (relation, deployment, pipeline, sink) = (%s, %s::uuid, %s, %s)"
            ).format(self._table("lockstep_target")),
            (str(relation), *self.owner_key),
        )
        if cursor.fetchone() != (shared,):  # most preflights find it, and write nothing
            require_rights(cursor, self.owner.sink, {(self.schema, "lockstep_target"): ("INSERT", "UPDATE")})
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {} (relation, deployment, pipeline, sink, shared) VALUES (%s, %s, %s, %s, %s) "
                    "ON CONFLICT (relation, deployment, pipeline, sink) DO UPDATE SET shared = excluded.shared"
                ).format(self._table("lockstep_target")),
                (str(relation), *self.owner_key, shared),
            )

    def disclaim(self, cursor: Cursor) -> None:
        """Own nothing any more."""
        if self._exists(cursor, "lockstep_target"):
            cursor.execute(
                sql.SQL("DELETE FROM {} WHERE (deployment, pipeline, sink) = (%s::uuid, %s, %s)").format(
                    self._table("lockstep_target")
                ),
                self.owner_key,
            )

    def _stored(self, cursor: Cursor, relation: Relation) -> Relation:
        """As pg_class has it, or would: Postgres cuts a name after 63 bytes, and says so to nobody."""
        cursor.execute("SELECT %s::name::text, %s::name::text", (relation.schema, relation.table))
        return Relation(*(cursor.fetchone() or (relation.schema, relation.table)))

    def other_owners(self, cursor: Cursor, relation: Relation) -> list[tuple[str, str, str, bool]]:
        """(deployment, pipeline, sink, shared) of every other sink on `relation`, its partitions or parents, in
        whatever schema it says so."""
        return [found[:4] for found in self._claims(cursor, self._stored(cursor, relation))]

    def _claims(self, cursor: Cursor, relation: Relation) -> list[tuple[str, str, str, bool, str]]:
        """`other_owners`, each with the schema that says so."""
        relatives = list(_relatives(cursor, relation))
        cursor.execute(_HOMES, (self.schema,))
        found = []
        for home in [self.schema, *(name for (name,) in cursor.fetchall())]:
            cursor.execute(
                sql.SQL(
                    "SELECT deployment::text, pipeline, sink, shared, %s FROM {} "
                    "WHERE (deployment, pipeline, sink) IS DISTINCT FROM (%s::uuid, %s, %s) AND {} = ANY(%s)"
                ).format(sql.Identifier(home, "lockstep_target"), _AS_STORED),
                (home, *self.owner_key, relatives),
            )
            found += cursor.fetchall()
        return found

    def target_id(self, cursor: Cursor) -> str:
        """Raises `TargetChanged` where Lockstep's tables are missing: no preflight has been here."""
        if self._exists(cursor, "lockstep_target_id"):
            cursor.execute(sql.SQL("SELECT id::text FROM {}").format(self._table("lockstep_target_id")))
            if row := cursor.fetchone():
                return str(row[0])
        raise TargetChanged(
            f"sink {self.owner.sink}: the database has no {self.schema}.lockstep_target_id, which every target has "
            "after its preflight: the connection leads to another database, or the schema argument changed"
        )

    # --- markers ---

    def insert_marker(self, cursor: Cursor, epoch: SinkEpoch) -> bool:
        """False: the marker is there already. Waits for whoever holds it, or the epoch's range, in an open or prepared
        transaction. Raises `LedgerConflict` if the range stands there under another number."""
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} (deployment, pipeline, sink, epoch, token, manifest_hash) "
                "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            ).format(self._table("lockstep_marker")),
            (*self.owner_key, epoch.id, epoch.token, epoch.manifest_hash),
        )
        inserted = cursor.rowcount == 1
        if inserted and epoch.span is not None and self._exists(cursor, "lockstep_range"):
            self._insert_range(cursor, epoch, epoch.span)
        return inserted

    def _insert_range(self, cursor: Cursor, epoch: SinkEpoch, span: str) -> None:
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} (deployment, pipeline, sink, span, epoch, token) "
                "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            ).format(self._table("lockstep_range")),
            (*self.owner_key, span, epoch.id, epoch.token),
        )
        if cursor.rowcount != 1:
            shown = self.find_marker_of_span(cursor, span)
            raise shown_before(self.owner.sink, epoch, shown or Marker(0, 0, "", span))

    def record_rows(self, cursor: Cursor, epoch: SinkEpoch, rows: Mapping[str, int]) -> None:
        """Note the rows per output in the marker that this transaction has inserted."""
        cursor.execute(
            sql.SQL(
                "UPDATE {} SET rows = %s WHERE (deployment, pipeline, sink, epoch, token) = (%s::uuid, %s, %s, %s, %s)"
            ).format(self._table("lockstep_marker")),
            (json.dumps(dict(rows)), *self.owner_key, epoch.id, epoch.token),
        )
        if cursor.rowcount != 1:
            raise SinkUnavailable(
                f"sink {self.owner.sink}: the session has lost its transaction, which had inserted the marker of epoch "
                f"{epoch.id}: is there a pooler in between that switches servers? Connect directly"
            )

    def _selected(self, cursor: Cursor, statement: str, *values: object) -> list[Marker]:
        if not self._exists(cursor, "lockstep_marker"):
            return []
        ranges: sql.Composable = self._table("lockstep_range")
        if not self._exists(cursor, "lockstep_range"):  # no preflight since this is an older version's target
            ranges = _NO_RANGES
        tables = {"markers": self._table("lockstep_marker"), "ranges": ranges}
        cursor.execute(sql.SQL(statement).format(**tables), (*self.owner_key, *values))
        return [Marker(*row) for row in cursor.fetchall()]

    # --- keys of upserts ---

    def count_keys(self, cursor: Cursor, epoch: SinkEpoch, relation: Relation, new: int) -> None:
        """Note that this transaction brings `new` keys into `relation`; what an epoch brings again adds to it."""
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} AS k (deployment, pipeline, sink, relation, epoch, new) "
                "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (deployment, pipeline, sink, relation, epoch) "
                "DO UPDATE SET new = k.new + excluded.new"
            ).format(self._table("lockstep_keys")),
            (*self.owner_key, str(relation), epoch.id, new),
        )

    def missing_keys(self, cursor: Cursor, relation: Relation) -> int:
        """How many keys `relation` has less than its epochs have brought; in one snapshot."""
        cursor.execute(
            sql.SQL(
                "SELECT greatest(0, (SELECT coalesce(sum(new), 0) FROM {} WHERE (deployment, pipeline, sink, relation) "
                "= (%s::uuid, %s, %s, %s)) - (SELECT count(*) FROM {}))"
            ).format(self._table("lockstep_keys"), relation.identifier),
            (*self.owner_key, str(relation)),
        )
        (missing,) = cursor.fetchone() or (0,)
        return int(missing)

    @property
    def owner_key(self) -> tuple[str, str, str]:
        return self.owner.deployment, self.owner.pipeline, self.owner.sink

    def _table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self.schema, name)

    def _exists(self, cursor: Cursor, table: str) -> bool:
        cursor.execute("SELECT to_regclass(format('%%I.%%I', %s::text, %s::text)) IS NOT NULL", (self.schema, table))
        row = cursor.fetchone()
        return bool(row and row[0])


def _relatives(cursor: Cursor, relation: Relation) -> set[str]:
    """Itself and all tables that it shows rows of, or that show its rows."""
    cursor.execute(_RELATIVES, (relation.schema, relation.table))
    return {str(relation), *(name for (name,) in cursor.fetchall())}

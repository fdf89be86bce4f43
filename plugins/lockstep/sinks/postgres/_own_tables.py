"""Lockstep's own tables in a Postgres database; see `lockstep.sinks.tables.own_tables`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.sinks.postgres._rights import Name, require_rights
from lockstep.sinks.tables.own_tables import IDENTITY, KEYS, MARKERS, RANGES, TARGETS, OwnTables, Row

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

_EXISTING = "SELECT t FROM unnest(%s::text[]) AS t WHERE to_regclass(format('%%I.%%I', %s::text, t)) IS NOT NULL"

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
_AS_STORED = (
    "split_part(relation, '.', 1)::name::text || '.' || substr(relation, strpos(relation, '.') + 1)::name::text"
)
_RELATIVES = """
    WITH RECURSIVE target (oid) AS (SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid),
        below (oid) AS (TABLE target UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid),
        above (oid) AS (TABLE target UNION SELECT i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.oid)
    SELECT n.nspname || '.' || c.relname FROM (TABLE below UNION TABLE above) r
    JOIN pg_class c ON c.oid = r.oid JOIN pg_namespace n ON n.oid = c.relnamespace
"""


@dataclass(frozen=True)
class PostgresOwnTables(OwnTables[Cursor]):
    """Lockstep's own tables in the schema `home`."""

    relation_as_stored = _AS_STORED
    add_keys = (
        "INSERT INTO {keys} AS k (deployment, pipeline, sink, relation, epoch, new) VALUES (%s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (deployment, pipeline, sink, relation, epoch) DO UPDATE SET new = k.new + excluded.new"
    )

    # --- set-up ---

    def lock_set_up(self, cursor: Cursor) -> None:
        """Whoever changes tables goes one by one; lasts as long as the transaction."""
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")

    def rights(self) -> dict[Name, tuple[str, ...]]:
        """What every execution has to be allowed on these tables. Who owns a table is written down once."""
        reading = dict.fromkeys((TARGETS, IDENTITY), ("SELECT",))
        writing = (MARKERS, *((KEYS,) if self.upserts else ()))
        adding = {RANGES: ("SELECT", "INSERT")}
        tables = {**dict.fromkeys(writing, ("SELECT", "INSERT", "UPDATE")), **adding, **reading}
        return {(self.home, name): needed for name, needed in tables.items()}

    def create(self, cursor: Cursor) -> None:
        tables = _TABLES | _KEYS if self.upserts else _TABLES
        existing = self._existing(cursor, *tables)
        for table, statement in tables.items():
            if table not in existing:
                cursor.execute(sql.SQL(statement).format(_identifier(self.table(table))))
                if table == IDENTITY:
                    cursor.execute(sql.SQL("INSERT INTO {} DEFAULT VALUES").format(_identifier(self.table(table))))

    def _require_may_own(self, cursor: Cursor) -> None:
        require_rights(cursor, self.owner.sink, {(self.home, TARGETS): ("INSERT", "UPDATE")})

    # --- statements ---

    def _query(self, cursor: Cursor, statement: str, values: Sequence[object] = (), **names: Relation) -> list[Row]:
        _execute(cursor, statement, values, names)
        return list(cursor.fetchall())

    def _change(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> int:
        _execute(cursor, statement, values, names)
        return int(cursor.rowcount)

    def _insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> bool:
        return self._change(cursor, f"{statement} ON CONFLICT DO NOTHING", values, **names) == 1

    # --- the catalogue ---

    def _existing(self, cursor: Cursor, *tables: str) -> set[str]:
        cursor.execute(_EXISTING, (list(tables), self.home))
        return {str(table) for (table,) in cursor.fetchall()}

    def _as_stored(self, cursor: Cursor, relation: Relation) -> Relation:
        """Postgres cuts a name after 63 bytes, and says so to nobody."""
        cursor.execute("SELECT %s::name::text, %s::name::text", relation.names)
        return Relation(*(cursor.fetchone() or relation.names))

    def _relatives(self, cursor: Cursor, relation: Relation) -> set[str]:
        cursor.execute(_RELATIVES, relation.names)
        return {str(relation), *(name for (name,) in cursor.fetchall())}

    def _homes(self, cursor: Cursor) -> list[str]:
        cursor.execute(_HOMES, (self.home,))
        return [str(name) for (name,) in cursor.fetchall()]


def _execute(cursor: Cursor, statement: str, values: Sequence[object], names: Mapping[str, Relation]) -> None:
    """A percent sign in a name is doubled if there are values, as the driver then reads it so."""
    percent = "%%" if values else "%"
    quoted = {key: _identifier(relation, percent) for key, relation in names.items()}
    cursor.execute(sql.SQL(statement).format(**quoted), tuple(values) or None)


def _identifier(relation: Relation, percent: str = "%") -> sql.Identifier:
    return sql.Identifier(*(name.replace("%", percent) for name in relation.names))

"""SQL of the PostgreSQL dialect, by subject. {names} are identifiers, %s and %(names)s values."""

from __future__ import annotations

# --- Lockstep's own tables --------------------------------------------------------------------------------------------

OWN_TABLES = {
    "lockstep_marker": """
        CREATE TABLE IF NOT EXISTS {table} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, epoch bigint NOT NULL,
            token bigint NOT NULL, manifest_hash text NOT NULL, rows jsonb,
            published_at timestamptz NOT NULL DEFAULT now(), -- when the transaction that wrote it began
            PRIMARY KEY (deployment, pipeline, sink, epoch))""",
    "lockstep_range": """
        CREATE TABLE IF NOT EXISTS {table} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, span text NOT NULL,
            epoch bigint NOT NULL, token bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, span),
            UNIQUE (deployment, pipeline, sink, token, epoch))""",
    "lockstep_target": """
        CREATE TABLE IF NOT EXISTS {table} (
            relation text NOT NULL, deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL,
            shared boolean NOT NULL,
            PRIMARY KEY (relation, deployment, pipeline, sink))""",
    "lockstep_target_id": """
        CREATE TABLE IF NOT EXISTS {table} (
            id uuid NOT NULL DEFAULT gen_random_uuid(), only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one))""",
    "lockstep_keys": """
        CREATE TABLE IF NOT EXISTS {table} (
            deployment uuid NOT NULL, pipeline text NOT NULL, sink text NOT NULL, relation text NOT NULL,
            epoch bigint NOT NULL, new bigint NOT NULL,
            PRIMARY KEY (deployment, pipeline, sink, relation, epoch))""",
}

EXISTING_TABLES = "SELECT t FROM unnest(%s::text[]) AS t WHERE to_regclass(format('%%I.%%I', %s::text, t)) IS NOT NULL"

# other schemas with owners of tables, as far as the role may read them
OTHER_SCHEMAS = """
    SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'lockstep_target' AND c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> %s
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped
         AND (a.attname = 'deployment' AND a.atttypid = 'uuid'::regtype
              OR a.attname IN ('relation', 'pipeline', 'sink', 'shared'))) = 5
    ORDER BY n.nspname
"""

# a row of lockstep_target may have a longer name than Postgres keeps
RELATION_AS_STORED = (
    "split_part(relation, '.', 1)::name::text || '.' || substr(relation, strpos(relation, '.') + 1)::name::text"
)
RELATED_TABLES = """
    WITH RECURSIVE target (oid) AS (SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))::oid),
        below (oid) AS (TABLE target UNION SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid),
        above (oid) AS (TABLE target UNION SELECT i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.oid)
    SELECT n.nspname || '.' || c.relname FROM (TABLE below UNION TABLE above) r
    JOIN pg_class c ON c.oid = r.oid JOIN pg_namespace n ON n.oid = c.relnamespace
"""


# --- the catalogue ----------------------------------------------------------------------------------------------------

# to create a missing table is a right of its schema
MISSING_RIGHTS = """
    SELECT w.schema, CASE WHEN c.oid IS NULL THEN '' ELSE w.name END,
           CASE WHEN c.oid IS NULL AND w.name <> '' THEN 'CREATE' ELSE w.privilege END, current_user
    FROM unnest(%(schemas)s::text[], %(names)s::text[], %(rights)s::text[], %(made)s::bool[])
         WITH ORDINALITY w (schema, name, privilege, made, n)
    JOIN pg_namespace s ON s.nspname = w.schema::name
    LEFT JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = w.name::name
    WHERE CASE WHEN c.oid IS NOT NULL THEN NOT has_table_privilege(c.oid, w.privilege)
               WHEN w.name <> '' THEN w.made AND NOT has_schema_privilege(s.oid, 'CREATE')
               ELSE NOT has_schema_privilege(s.oid, w.privilege) END
    ORDER BY w.n
"""

KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type"}

FIND_TABLE = """
    SELECT c.oid::bigint, c.relkind::text, has_table_privilege(c.oid, 'INSERT'), row_security_active(c.oid),
           (SELECT string_agg(l.oid::regclass::text, ', ' ORDER BY l.oid::regclass::text)
            FROM (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) AS member(oid)
            JOIN pg_class l ON l.oid = member.oid
            WHERE l.relpersistence <> 'p' OR l.relkind NOT IN ('r', 'p'))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
"""

COLUMNS = """
    SELECT a.attname, CASE WHEN t.typtype = 'e' THEN 'enum' WHEN n.nspname = 'pg_catalog' THEN t.typname::text
                           ELSE n.nspname || '.' || t.typname END,
           format_type(a.atttypid, a.atttypmod), CASE d.typtype WHEN 'd' THEN d.typtypmod ELSE a.atttypmod END,
           a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '',
           d.typtype = 'd',
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (indkey))
    FROM pg_attribute a JOIN pg_type d ON d.oid = a.atttypid
    JOIN pg_type t ON t.oid = CASE d.typtype WHEN 'd' THEN d.typbasetype ELSE d.oid END
    JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""

HAS_TRIGGERS = """
    WITH target (oid) AS (SELECT to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text)))
    SELECT EXISTS (
        SELECT FROM pg_trigger g
        WHERE g.tgrelid IN (SELECT oid FROM target UNION SELECT p.relid FROM target, pg_partition_tree(target.oid) p))
"""
# a partition's part of a parent's index counts as that index; an exclusion may take any two rows for equal
UNIQUE_KEYS = """
    SELECT i.indexrelid::regclass::text, NOT i.indisexclusion AND bool_or(a.attname = %(epoch_column)s)
    FROM (SELECT to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))) t (oid)
    JOIN LATERAL (SELECT t.oid UNION SELECT relid FROM pg_partition_tree(t.oid)) m (oid) ON true
    JOIN pg_index i ON i.indrelid = m.oid AND (i.indisunique OR i.indisexclusion)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
    GROUP BY i.indexrelid, i.indisexclusion
    HAVING i.indisexclusion OR bool_or(a.attname <> ALL (%(columns)s) AND (
        a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) ~ %(numbering)s)) IS NOT TRUE
    ORDER BY 1
"""
NUMBERING = r"\m(nextval|gen_random_uuid|uuid_generate_v[0-9a-z]+|uuidv[47])\("  #: defaults that are never equal

REFERRING_TABLES = """
    SELECT DISTINCT conrelid::regclass::text FROM pg_constraint
    WHERE contype = 'f' AND confrelid = %s::regclass ORDER BY 1
"""

# An ordinary heap with no more columns than fit into a page, none excluded from TOAST; no partition, no parent; no
# trigger (foreign keys have some), no constraint but NOT NULL; no column that the server fills; no index but non-unique
# ones on columns of a fixed length with the server's own operator classes, which compare numbers and times.
ACCEPTS_FITTING_ROWS = """
    SELECT c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhassubclass
       AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid) AND NOT c.relhasrules
       AND c.relnatts <= 250
       AND (SELECT m.amname FROM pg_am m WHERE m.oid = c.relam) = 'heap'
       AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype <> 'n')
       AND NOT EXISTS (
           SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND (a.attgenerated <> '' OR a.attidentity <> '' OR (a.attlen < 0 AND a.attstorage = 'p')
                OR (a.attname <> ALL (%(columns)s) AND (a.atthasdef OR a.attnotnull))))
       AND NOT EXISTS (
           SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
           WHERE i.indrelid = c.oid AND (
               i.indisunique OR i.indisexclusion OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
               OR m.amname NOT IN ('brin', 'btree')
               OR EXISTS (SELECT FROM unnest(i.indclass::oid[]) k (oid) WHERE k.oid >= 16384)
               OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND a.attlen <= 0)))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s AND c.relname = %(table)s
"""

MAY_ADD_COLUMNS = """
    SELECT pg_has_role(c.relowner, 'USAGE'), current_user
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


# --- sessions ---------------------------------------------------------------------------------------------------------

# sessions of this epoch and sink with lower tokens; parsed and ended in one statement, as process ids are reused
_LOWER = """
    FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND CASE WHEN a.application_name ~ ('^' || %(prefix)s || '[0-9]+$')
               THEN substr(a.application_name, length(%(prefix)s) + 1)::numeric < %(token)s ELSE false END
"""
END_SESSIONS = f"SELECT pg_terminate_backend(a.pid) {_LOWER}"
PUBLISHERS = f"""
    SELECT a.pid, a.state_change, a.query_start,
           CASE WHEN a.state = 'active' AND a.wait_event IS DISTINCT FROM 'ClientRead' THEN clock_timestamp() END,
           (SELECT sum(p.bytes_processed) FROM pg_stat_progress_copy p WHERE p.pid = a.pid)
    {_LOWER} AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)
    ORDER BY a.pid
"""  # noqa: S608

# transactions that have written to the markers or their ranges, or locked them; a prepared one has no session
MARKER_WRITERS = """
    SELECT DISTINCT CASE WHEN l.pid IS NULL THEN 'prepared ' || p.gid
                         ELSE 'session ' || l.pid || ' (' || COALESCE(a.application_name, '') || ')' END AS name
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relname IN ('lockstep_marker', 'lockstep_range')
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks x ON x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid' AND x.granted
    LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
    WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.granted AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND COALESCE(a.pid, 0) <> pg_backend_pid()
    ORDER BY name LIMIT 5
"""


# --- upserts ----------------------------------------------------------------------------------------------------------

_TABLE = "to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))"
MAY_UPSERT = f"SELECT has_table_privilege({_TABLE}, 'SELECT') AND has_table_privilege({_TABLE}, 'UPDATE')"
MAY_CREATE = "SELECT has_schema_privilege(%s, 'CREATE')"
GROWTH = f"""
    SELECT sum(pg_stat_get_xact_tuples_inserted(m.oid) - pg_stat_get_xact_tuples_deleted(m.oid))
    FROM (SELECT {_TABLE}::oid UNION SELECT relid FROM pg_partition_tree({_TABLE})) m (oid)
"""  # noqa: S608

# the columns of every unique index that ON CONFLICT accepts
UNIQUE_INDEXES = f"""
    SELECT array_agg(a.attname::text)
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid
"""  # noqa: S608
# unique indexes that lack a column of the key, whatever their predicates and expressions; and exclusions, which may
# take any two rows for equal
OTHER_UNIQUE_INDEXES = f"""
    SELECT i.indexrelid::regclass::text FROM pg_index i
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND (i.indisunique OR i.indisexclusion)
    GROUP BY i.indexrelid HAVING bool_or(i.indisexclusion) OR NOT array_agg(a.attname::text) @> %(key)s ORDER BY 1
"""  # noqa: S608
COMPARES_BY_BYTES = f"""
    SELECT coalesce(bool_and(c.collisdeterministic), true)
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = {_TABLE} AND a.attname = ANY (%(key)s)
"""  # noqa: S608
# the first column of the unique index on just the key
LEADING_COLUMN = f"""
    SELECT min(a.attname::text) FILTER (WHERE a.attnum = i.indkey[0])
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid HAVING array_agg(a.attname::text) <@ %(key)s AND count(*) = cardinality(%(key)s)
"""  # noqa: S608

"""What can be told without sending rows: that a table refuses none whose types fit, and the server no text."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.sinks.tables.text_and_bytes import Rows, has_character, longest

_LONGEST = 1 << 28  #: bytes; a value may have four times as many

# An ordinary heap with no more columns than fit into a page, none kept from TOAST; no part of another; no trigger
# (foreign keys are some), no constraint but NOT NULL; no column that the server fills; no index but those on columns of
# a fixed length by what the server brings along, which compare numbers and times, and keep no second one away. A user's
# type is none of ours.
_TAKES_WHAT_FITS = """
    SELECT c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhassubclass
       AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid) AND NOT c.relhasrules
       AND c.relnatts <= 250
       AND (SELECT m.amname FROM pg_am m WHERE m.oid = c.relam) = 'heap'
       AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype <> 'n')
       AND NOT EXISTS (
           SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND (a.attgenerated <> '' OR a.attidentity <> '' OR (a.attlen < 0 AND a.attstorage = 'p')
                OR (a.attname <> ALL (%(given)s) AND (a.atthasdef OR a.attnotnull))))
       AND NOT EXISTS (
           SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
           WHERE i.indrelid = c.oid AND (
               i.indisunique OR i.indisexclusion OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
               OR m.amname NOT IN ('brin', 'btree')
               OR EXISTS (SELECT FROM unnest(i.indclass::oid[]) k (oid) WHERE k.oid >= 16384)
               OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND a.attlen <= 0)))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s AND c.relname = %(table)s
"""


def takes_what_fits(cursor: Cursor, relation: Relation, given: Sequence[str]) -> bool:
    """Whether `relation` has nothing that could refuse or change a row of the columns `given`, if it has no null too
    many and the server its text. The relation is locked against changes."""
    cursor.execute(_TAKES_WHAT_FITS, {"given": list(given), "schema": relation.schema, "table": relation.table})
    return cursor.fetchone() == (True,)


def takes_text(cursor: Cursor, rows: Rows) -> bool:
    """Types were compared; what is left is text: the server has no NUL, and an encoding of its own lacks characters."""
    encoding, lengths = cursor.connection.info.parameter_status("server_encoding"), longest(rows)
    if encoding != "UTF8" or lengths is None or max(lengths.values(), default=0) > _LONGEST:
        return False
    return not has_character(rows, "\0")

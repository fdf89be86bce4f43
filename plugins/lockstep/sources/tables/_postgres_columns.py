"""The columns of a Postgres table that is read: which Arrow type holds every value of each, and how it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from psycopg2 import sql

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_TEXT = "{}::text"

#: type of pg_catalog → (expression, Arrow type)
_EXACT: dict[str, tuple[str, pa.DataType]] = {
    "bool": ("{}", pa.bool_()),
    "int2": ("{}", pa.int16()),
    "int4": ("{}", pa.int32()),
    "int8": ("{}", pa.int64()),
    "float4": ("{}", pa.float32()),
    "float8": ("{}", pa.float64()),
    "text": ("{}", pa.string()),
    "varchar": ("{}", pa.string()),
    "uuid": (_TEXT, pa.string()),
    "json": (_TEXT, pa.string()),
    "jsonb": (_TEXT, pa.string()),
    "bytea": ("encode({}, 'hex')", pa.binary()),
    "date": ("({} - date '1970-01-01')", pa.date32()),
    "timestamp": (_MICROSECONDS, pa.timestamp("us")),
    "timestamptz": (_MICROSECONDS, pa.timestamp("us", "UTC")),
    "xid8": ("{}::text::bigint", pa.int64()),
}

#: type of pg_catalog → the values that its Arrow type can't hold
_UNHELD = {
    "numeric": "{} = 'NaN'",
    "date": "NOT isfinite({})",
    "timestamp": "NOT isfinite({}) OR {} > '294246-12-31'",
    "timestamptz": "NOT isfinite({}) OR {} > '294246-12-31'",
}

COLUMNS = """
    SELECT a.attname, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname::text ELSE '' END, t.typtype::text,
           format_type(a.atttypid, a.atttypmod), a.atttypmod, a.attnotnull
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""

#: Of each column: its name, and what its values hang on beside the rows. Like a row's, a catalog entry's xmin tells
#: also that a change was taken back.
SHAPES = """
    SELECT a.attname, a.attnum, a.xmin::text, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
           (SELECT string_agg(concat_ws(' ', e.oid, e.xmin, e.enumlabel), ',' ORDER BY e.enumsortorder)
            FROM pg_enum e WHERE e.enumtypid = a.atttypid)
    FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class SourceColumn:
    """A column as pg_attribute has it. `kind`: pg_type.typtype, `e` for an enum; `modifier`: atttypmod."""

    name: str
    type_name: str
    kind: str
    type_text: str
    modifier: int
    not_null: bool

    @property
    def arrow(self) -> pa.DataType | None:
        """The type that holds every value, None if Spark has none."""
        if self.kind == "e":
            return pa.string()
        if self.type_name == "numeric":
            return self._decimal()
        return _EXACT[self.type_name][1] if self.type_name in _EXACT else None

    def _decimal(self) -> pa.DataType | None:
        if self.modifier < 0:
            return None
        precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 1024) - 1024
        return pa.decimal128(precision, scale) if 0 <= scale <= precision <= 38 else None

    def select(self, order_by: str) -> sql.Composable:
        """The column in a form whose text loses nothing; a value that no Arrow type holds comes with its row's
        `order_by`, as a text that can't be taken for another value."""
        expression = _TEXT if self.kind == "e" else _EXACT.get(self.type_name, ("{}",))[0]
        if self.type_name not in _UNHELD:
            return sql.SQL(expression).format(sql.Identifier(self.name))
        checked = f"CASE WHEN {_UNHELD[self.type_name]} THEN concat({{0}}, {{1}}, {{2}}) ELSE ({expression})::text END"
        key = (sql.Literal(f" where {order_by} is "), sql.Identifier(order_by))
        return sql.SQL(checked.replace("{}", "{0}")).format(sql.Identifier(self.name), *key)

"""The columns of a MariaDB table that is read: which Arrow type holds every value of each, and how it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

COLUMNS = """
    SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable = 'YES'
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position
"""
_SIGNED = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "mediumint": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
}
_UNSIGNED = {
    "tinyint": pa.int16(),
    "smallint": pa.int32(),
    "mediumint": pa.int32(),
    "int": pa.int64(),
    "bigint": pa.decimal128(20, 0),
}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "uuid")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_OTHERS = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}
INTEGERS = tuple(_SIGNED)
MOMENTS = ("datetime", "timestamp")


@dataclass(frozen=True)
class SourceColumn:
    """A column as information_schema has it. `type_text`: with length, sign and so on."""

    name: str
    type_name: str
    type_text: str
    precision: int | None
    scale: int | None
    nullable: bool

    @property
    def arrow(self) -> pa.DataType | None:
        """The type that holds every value, None if Spark has none."""
        if self.type_name in INTEGERS:
            return (_UNSIGNED if "unsigned" in self.type_text else _SIGNED)[self.type_name]
        if self.type_name == "decimal":
            return pa.decimal128(self.precision, self.scale) if (self.precision or 99) <= 38 else None
        if self.type_name in _TEXTS:
            return pa.string()
        return pa.binary() if self.type_name in _BYTES else _OTHERS.get(self.type_name)

    @property
    def select(self) -> str:
        """The column in a form whose text loses nothing: that of a FLOAT has six digits."""
        return f"CAST({quoted(self.name)} AS DOUBLE)" if self.type_name == "float" else quoted(self.name)

    def literal(self, value: str) -> str:
        """`value`, as this column's text, for a comparison."""
        if self.type_name in INTEGERS:
            return str(int(value))
        if not set(value) <= set("0123456789-:. "):
            raise ValueError(f"{value!r} is no moment")
        return f"TIMESTAMP'{value}'"


def quoted(name: str) -> str:
    """An identifier; a name with a backtick in it has it doubled."""
    return "`" + name.replace("`", "``") + "`"

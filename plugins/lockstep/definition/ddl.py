"""Parsing of Spark's DDL for schemas without Spark, for processes that load a pipeline's definition."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lockstep.errors import InvalidPipeline

_FIELD = re.compile(
    r"""\s*(?P<name>`(?:[^`]|``)+`|\w+)(?:\s*:\s*|\s+)(?P<type>.+?)
        (?P<required>\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?P<comment>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))?\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_NESTED = re.compile(r"\s*(ARRAY|MAP|STRUCT)\s*<(.*)>\s*", re.IGNORECASE | re.DOTALL)
_ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}


@dataclass(frozen=True)
class Field:
    """A column. `type`: in capitals, by its usual name; a nested type as written."""

    name: str
    type: str
    required: bool = False  #: NOT NULL
    comment: str = field(default="", compare=False)  #: in its quotes


def fields_of(ddl: str) -> list[Field]:
    """Parse `name TYPE [NOT NULL] [COMMENT '…'], …`. Raises `InvalidPipeline`."""
    return [_field(part) for part in split(ddl)]


def split_nested(type: str) -> tuple[str, str] | None:
    """ARRAY, MAP or STRUCT, and the text in its brackets; None for other types."""
    match = _NESTED.fullmatch(type)
    return (match[1].upper(), match[2]) if match else None


def plain(type: str) -> str:
    """The type in capitals, by its usual name; a nested type unchanged."""
    if split_nested(type):
        return type.strip()
    text = re.sub(r"\s+", " ", type.strip()).upper()
    word, bracket, rest = re.sub(r" ?([(),]) ?", r"\1", text).partition("(")
    return f"{_ALIASES.get(word, word)}{bracket}{rest}"


def quote_name(name: str) -> str:
    """A column's name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes."""
    parts, depth, quote, escaped = [""], 0, "", False
    for character in text:
        if quote:
            closes = character == quote and not escaped
            escaped = character == "\\" and not escaped and quote != "`"
            quote = "" if closes else quote
        elif character in "`'\"":
            quote = character
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise InvalidPipeline(f"schema: {text.strip()!r} is no column of Spark's DDL: write name TYPE")
    name = match["name"]
    name = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return Field(name, plain(match["type"]), match["required"] is not None, match["comment"] or "")

"""SQL text for MariaDB: identifiers are quoted in one place, values never become part of the text here."""

from __future__ import annotations

from typing import TypeAlias

Name: TypeAlias = str | tuple[str, ...]  #: an identifier; a tuple is qualified: database, table


def compose(template: str, **names: Name) -> str:
    """`template` with each {name} replaced by its quoted identifier; values stay %s for the driver."""
    return template.format(**{key: identifier(name) for key, name in names.items()})


def identifier(name: Name) -> str:
    """`name` in backticks; a percent sign is doubled, as the driver reads it in a statement with parameters."""
    parts = (name,) if isinstance(name, str) else name
    return ".".join("`" + part.replace("`", "``").replace("%", "%%") + "`" for part in parts)


def columns(names: list[str]) -> str:
    """A list of column names for a statement."""
    return ", ".join(map(identifier, names))

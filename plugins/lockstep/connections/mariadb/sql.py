"""SQL text for MariaDB: identifiers are quoted in one place, values never become part of the text here."""

from __future__ import annotations

from typing import TypeAlias

Name: TypeAlias = str | tuple[str, ...]  #: an identifier; a tuple is qualified: database, table


def compose(template: str, **names: Name) -> str:
    """`template` with each {name} replaced by its quoted identifier; values stay %s for the driver.

    A percent sign in a name is doubled if there is a %s, as the driver then reads it so.
    """
    quoted = {key: identifier(name) for key, name in names.items()}
    if "%s" in template:
        quoted = {key: text.replace("%", "%%") for key, text in quoted.items()}
    return template.format(**quoted)


def identifier(name: Name) -> str:
    """`name` in backticks."""
    parts = (name,) if isinstance(name, str) else name
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def columns(names: list[str]) -> str:
    """A list of column names for a statement without parameters."""
    return ", ".join(map(identifier, names))

"""The ledger's SQL: `sql/<subject>.sql` holds the statements of a subject, each below a line `-- name: verb_noun`."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_FOLDER = resources.files("lockstep.ledger") / "sql"
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statement(name: str) -> str:
    """The text of the statement `name`."""
    return _statements()[name]


@cache
def _statements() -> dict[str, str]:
    statements: dict[str, str] = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(file.read_text())
            statements |= dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    return statements


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Every migration as (version, name, text), in order."""
    files = sorted((f for f in (_FOLDER / "migrations").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(f.name.split("_")[0]), f.name.removesuffix(".sql"), f.read_text()) for f in files)

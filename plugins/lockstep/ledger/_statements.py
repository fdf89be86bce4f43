"""The ledger's SQL: one statement a file, named verb_noun."""

from __future__ import annotations

from functools import cache
from importlib import resources

_FOLDER = resources.files("lockstep.ledger") / "sql"


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return (_FOLDER / f"{name}.sql").read_text()


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Every migration as (version, name, text), in order."""
    files = sorted((f for f in (_FOLDER / "migrations").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(f.name.split("_")[0]), f.name.removesuffix(".sql"), f.read_text()) for f in files)

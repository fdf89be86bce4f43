"""What must be the same to the byte before and after published epochs are run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path

import psycopg2

#: xmin and ctid change when a row is written again, even with equal values
_ROWS = "SELECT count(*), coalesce(sum(hashtextextended(f.ctid::text || f.xmin::text || f::text, 0)), 0) FROM {} f"
_TABLES = ("lockstep.epoch", "lockstep.participant", "lockstep.transition", "lockstep.claim")


@dataclass(frozen=True)
class Fingerprint:
    """Each part: how many things there are, and a hash of all there is to notice of them."""

    ledger: tuple[int, str]
    table: tuple[int, str]
    files: tuple[int, str]
    landing: tuple[int, str]

    def changes(self, later: Fingerprint) -> list[str]:
        """Names of the parts that differ."""
        return [part.name for part in fields(self) if getattr(self, part.name) != getattr(later, part.name)]


def fingerprint(ledger: str, warehouse: str, out: Path, landing: Path) -> Fingerprint:
    """`ledger`, `warehouse`: DSNs. Rows with their place in the table, files with inode and time of change."""
    return Fingerprint(_rows(ledger, _TABLES), _rows(warehouse, ("public.flights",)), _files(out), _files(landing))


def _rows(dsn: str, tables: tuple[str, ...]) -> tuple[int, str]:
    with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(_ROWS.format(table))
            found.append(cursor.fetchone() or (0, 0))
    return sum(int(count) for count, _ in found), _hash(str(total) for _, total in found)


def _files(folder: Path) -> tuple[int, str]:
    facts = [
        f"{path} {(fact := path.stat()).st_ino} {fact.st_size} {fact.st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    return len(facts), _hash(iter(facts))


def _hash(texts: Iterator[str]) -> str:
    return sha256("\n".join(texts).encode()).hexdigest()

"""The table that everybody writes to, and what stands in it at the end."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import sql

from benchmarks.paths import jdbc_url

ROWS = 20_000


@dataclass(frozen=True)
class Outcome:
    """What a reader of the table finds. `left`: transactions that are still prepared in the server."""

    rows: int
    distinct: int
    left: int
    said: str  #: what the way itself said of its end

    def __str__(self) -> str:
        lost, doubled = ROWS - self.distinct, self.rows - self.distinct
        told = [f"{lost:,} lost"] * bool(lost) + [f"{doubled:,} twice"] * bool(doubled) or ["every row once"]
        return ", ".join([f"{self.rows:,} rows", *told, *[f"{self.left} left prepared"] * bool(self.left), self.said])


@dataclass(frozen=True)
class Target:
    """An empty table of numbers, a file of ROWS numbers, and a folder for what a way keeps."""

    dsn: str
    table: str
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "numbers-2013.csv"

    @property
    def jdbc(self) -> str:
        return jdbc_url(self.dsn)

    def set_up(self) -> None:
        self.folder.mkdir(parents=True)
        self.file.write_text("".join(f"{number}\n" for number in range(ROWS)))
        self.roll_back_prepared()
        table = sql.Identifier(self.table)
        self._execute(sql.SQL("CREATE TABLE {} (id bigint, lockstep_epoch bigint)").format(table))

    def commit_prepared(self) -> None:
        self._finish_prepared(sql.SQL("COMMIT PREPARED {}"))

    def roll_back_prepared(self) -> None:
        self._finish_prepared(sql.SQL("ROLLBACK PREPARED {}"))

    def outcome(self, said: str) -> Outcome:
        count = sql.SQL("SELECT count(*), count(DISTINCT id) FROM {}").format(sql.Identifier(self.table))
        [(rows, distinct)] = self._execute(count)
        return Outcome(rows, distinct, len(self._prepared()), said)

    def _prepared(self) -> list[str]:
        return [gid for (gid,) in self._execute(sql.SQL("SELECT gid FROM pg_prepared_xacts"))]

    def _finish_prepared(self, statement: sql.SQL) -> None:
        for gid in self._prepared():
            self._execute(statement.format(sql.Literal(gid)))

    def _execute(self, statement: sql.Composable) -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self.dsn)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

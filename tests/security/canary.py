"""Passwords that are easy to find again, with every character that a URI, a DSN or a shell gives a meaning."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import make_dsn, parse_dsn

from stack.postgres import PostgresServer


@dataclass(frozen=True)
class Canary:
    """A password, and the word between its special characters: any part that leaks has it, however it is quoted."""

    word: str = field(default_factory=lambda: f"canary{secrets.token_hex(6)}")

    @property
    def password(self) -> str:
        return self.word.join(["", "@", ":", "/", "%", "'", "\\", " ", "#", "?", "&", '"', ""])

    def dsn(self, admin: str, user: str) -> str:
        return str(make_dsn(**{**parse_dsn(admin), "user": user, "password": self.password}))

    def uri(self, admin: str, user: str) -> str:
        parts = parse_dsn(admin)
        where = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
        return f"postgresql://{user}:{quote(self.password, safe='')}@{where}"

    def told(self, text: str) -> list[str]:
        """The lines that tell it."""
        return [line for line in text.splitlines() if self.word in line]

    def told_in_files(self, folders: Iterable[Path]) -> list[str]:
        word = self.word.encode()
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return [str(path) for path in files if word in path.read_bytes()]

    def told_in_tables(self, admin: str) -> list[str]:
        """Rows of any table of any schema but the server's own."""
        found = []
        with closing(psycopg2.connect(admin)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> ALL (%s)",
                (["pg_catalog", "information_schema"],),
            )
            for schema, table in cursor.fetchall():
                name = sql.Identifier(schema, table)
                cursor.execute(sql.SQL("SELECT row::text FROM {} AS row").format(name))
                found += [f"{table}: {row}" for (row,) in cursor.fetchall() if self.word in row]
        return found


@contextmanager
def login(server: PostgresServer, admin: str, user: str, canary: Canary) -> Iterator[None]:
    """A superuser of this name with the canary for a password, as long as this lasts."""
    with closing(psycopg2.connect(admin)) as connection, connection, connection.cursor() as cursor:
        role = sql.Identifier(user)
        cursor.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(role, sql.Literal(canary.password)))
    yield
    server.start()
    with closing(psycopg2.connect(admin)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        for (gid,) in cursor.fetchall():
            cursor.execute("ROLLBACK PREPARED %s", (gid,))
        cursor.execute(sql.SQL("REASSIGN OWNED BY {0} TO CURRENT_USER; DROP ROLE {0}").format(role))


@contextmanager
def watched_arguments() -> Iterator[set[str]]:
    """Every command line that any process of this machine had meanwhile."""
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    try:
                        seen.add(Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                    except OSError:  # it ended
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()

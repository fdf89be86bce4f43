"""A Postgres server behind a proxy that drops the answer to a chosen statement: done, but nobody knows."""

from __future__ import annotations

from pathlib import Path

from stack.postgres import HOST, SUPERUSER, PostgresServer
from tests.proxy import CuttingProxy


class LosingProxy(CuttingProxy):
    """Forwards to `server`; once armed, the link dies before or after the server has done one statement."""

    def __init__(self, server: PostgresServer, passfile: Path) -> None:
        super().__init__(HOST, server.port)
        self._passfile = passfile
        lines = server.passfile.read_text().splitlines()
        password = next(line.rsplit(":", 1)[1] for line in lines if line.startswith(f"{HOST}:{server.port}:"))
        passfile.touch(mode=0o600)
        passfile.write_text(f"{HOST}:{self.port}:*:{SUPERUSER}:{password}\n")
        self.__enter__()

    def dsn(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@{HOST}:{self.port}/{database}?passfile={self._passfile}"

    def lose_answer(self, statement: bytes) -> None:
        """The server does `statement`; its answer never arrives. Once."""
        self.cut(after=statement)

    def lose_request(self, statement: bytes) -> None:
        """`statement` never arrives. Once."""
        self.cut(before=statement)

    def close(self) -> None:
        self.__exit__()

"""The receiver of docs/sinks/append_only.md in a process of its own; the append-only sinks for the behaviour suite."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.sinks.append_only import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.append_only.stdout import StdoutSink
from lockstep.sinks.append_only.tcp import TcpSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sinks" / "append_only.md"
PASSWORD = "s3cret-of-the-receiver"


@dataclass(frozen=True)
class Receiver:
    """A process that keeps each record once in `database`."""

    kind: str
    port: int
    database: Path

    @property
    def url(self) -> str:
        login = f"clerk:{PASSWORD}@" if self.kind == "http" else ""
        return f"{self.kind}://{login}127.0.0.1:{self.port}"

    def records(self) -> list[dict[str, Any]]:
        """In the order in which they came."""
        with closing(sqlite3.connect(self.database, timeout=60)) as database:
            return [json.loads(line) for (line,) in database.execute("SELECT record FROM received ORDER BY rowid")]


@contextmanager
def receiving(kind: str, folder: Path, *, drops_repeats: bool = True) -> Iterator[Receiver]:
    """The receiver of the page, listening on a free port of the loopback. `kind`: "http" or "tcp". One that doesn't
    drop repeats has a record as often as it came."""
    [source] = re.findall(r"```python\n(# receiver\.py.*?)```", PAGE.read_text(), re.S)
    if not drops_repeats:
        assert "key TEXT PRIMARY KEY" in source
        source = source.replace("key TEXT PRIMARY KEY", "key TEXT")
    program, database = folder / "receiver.py", folder / f"{kind}.db"
    program.write_text(source)
    command = [sys.executable, str(program), str(database), kind, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Receiver(kind, int(process.stdout.readline()), database)
        finally:
            process.kill()


class AppendUnderTest(SinkUnderTest):
    """A sink without transactions; `committer` remembers in a folder unless told otherwise."""

    guarantee = Guarantee.AT_LEAST_ONCE
    votes_with_data = False
    reads_back = False

    def __init__(self, folder: Path, committer: str | None = None, **arguments: Any) -> None:
        self.folder, self.arguments = folder, arguments
        self.committer = committer or str(folder / "sent")

    @abstractmethod
    def sink_with(self, committer: str | None) -> AppendOnlySink:
        """The sink with this committer."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """What has arrived."""

    def sink(self, *, shared: bool = False) -> Sink:
        return self.sink_with(None if self.guarantee is Guarantee.NONE else self.committer)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        other = str(self.folder / "sent elsewhere")
        with self.sink_with(other).opened(self.context()) as sink:
            sink.preflight(None)
        return self.sink_with(other), self.context()

    def visible(self) -> pa.Table:
        return pa.Table.from_pylist([row_of(record) for record in self.records()], SCHEMA)

    def unsettled(self) -> list[str]:
        return [str(path) for path in (self.folder / "sent").rglob("*~*")]

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")


class ReceiverUnderTest(AppendUnderTest):
    """TcpSink or HttpSink with a receiver that drops repeats."""

    def __init__(self, receiver: Receiver, folder: Path, committer: str | None = None, **arguments: Any) -> None:
        super().__init__(folder, committer, **arguments)
        self.receiver, self.others = receiver, dict[str, str]()

    def connections(self) -> dict[str, str]:
        return {"receiver": self.receiver.url, **self.others}

    def sink_with(self, committer: str | None) -> AppendOnlySink:
        kind = HttpSink if self.receiver.kind == "http" else TcpSink
        return kind("feed", output=OUTPUT, connection="receiver", committer=committer, **self.arguments)

    def records(self) -> list[dict[str, Any]]:
        return self.receiver.records()


class StdoutUnderTest(AppendUnderTest):
    """StdoutSink; `redirected` while it is used."""

    @property
    def output(self) -> Path:
        return self.folder / "stdout"

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Standard output goes to `output`, of child processes too."""
        with self.output.open("a") as file, redirect_stdout(file):
            yield

    def sink_with(self, committer: str | None) -> AppendOnlySink:
        return StdoutSink("feed", output=OUTPUT, committer=committer, **self.arguments)

    def records(self) -> list[dict[str, Any]]:
        return [record for line in self.output.read_bytes().splitlines() if (record := _parsed(line)) is not None]


def row_of(record: dict[str, Any]) -> dict[str, Any]:
    """The row of `SCHEMA` that a record tells."""
    row = {name: record[name] for name in SCHEMA.names}
    row["day"] = row["day"] and date.fromisoformat(row["day"])
    row["at"] = row["at"] and datetime.fromisoformat(row["at"])
    return row


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return None  # empty, or a killed process's rest
    return found

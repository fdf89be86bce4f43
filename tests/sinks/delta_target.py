"""Delta tables as tests look at them: a few lines of Python read the log, and the sink works in processes apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.epoch import Json
from lockstep.sinks.base import Sink
from lockstep.sinks.delta import DeltaSink, _open_sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA
from lockstep.testing._under_test import SinkUnderTest
from tests.apart import apart
from tests.sinks.open_apart import OpenApart

T = TypeVar("T")
LIBRARY = _open_sink  #: imported, and not used, by whoever forks: its children needn't import it each


@dataclass(frozen=True, kw_only=True)
class DeltaSinkApart(DeltaSink):
    """A DeltaSink each of whose calls is made in a process of its own."""

    def open(self, context: SinkContext) -> OpenSink:
        return OpenApart(self, lambda: DeltaSink.open(self, context))


@dataclass(frozen=True)
class Log:
    """Every action of a table whose log has no gaps and wasn't cleaned up."""

    root: Path

    def actions(self) -> list[Json]:
        found: list[Json] = []
        for number in range(len(list((self.root / "_delta_log").glob("*.json")))):
            text = (self.root / "_delta_log" / f"{number:020}.json").read_text()
            found += [json.loads(line) for line in text.splitlines()]
        return found

    def adds(self) -> dict[str, Json]:
        """The newest state's files by path, relative to the table."""
        live: dict[str, Json] = {}
        for action in self.actions():
            if add := action.get("add"):
                live[add["path"]] = add
            if remove := action.get("remove"):
                live.pop(remove["path"], None)
        return live

    @property
    def files(self) -> list[str]:
        return list(self.adds())

    def added(self) -> list[str]:
        """Every path that was ever added, as often as it was."""
        return [action["add"]["path"] for action in self.actions() if "add" in action]

    def rows(self, schema: pa.Schema = SCHEMA) -> pa.Table:
        found = [pq.ParquetFile(self.root / path).read().select(schema.names).cast(schema) for path in self.files]
        return pa.concat_tables([schema.empty_table(), *found])


class DeltaUnderTest(SinkUnderTest):
    votes_with_data = False
    replaceable = True

    def __init__(self, folder: Path, **arguments: Any) -> None:
        self.folder, self.arguments = folder, {"create": True, **arguments}

    @property
    def log(self) -> Log:
        return Log(self.folder / "table")

    def sink(self, *, shared: bool = False) -> DeltaSinkApart:
        return self._sink("table")

    def _sink(self, folder: str) -> DeltaSinkApart:
        return DeltaSinkApart("delta", output=OUTPUT, path=str(self.folder / folder), **self.arguments)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = self._sink("elsewhere")
        with sink.opened(self.context()) as live:
            live.preflight({OUTPUT: SCHEMA})
        return sink, self.context()

    def visible(self) -> pa.Table:
        return self.log.rows()

    def unsettled(self) -> list[str]:
        return []

    def lose(self, handle: str) -> None:
        raise AssertionError("there is no handle")


def on_table(root: Path, act: Callable[[Any], T]) -> T:
    """What somebody else does to the table with deltalake."""

    def run() -> T:
        from deltalake import DeltaTable

        return act(DeltaTable(root))

    return apart(run)


def append(root: Path, rows: pa.Table) -> None:
    """Rows that somebody else writes."""

    def run() -> None:
        from deltalake import write_deltalake

        write_deltalake(root, rows, mode="append")

    apart(run)

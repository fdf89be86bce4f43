"""The behaviour suite, run against the two sinks that docs/writing-a-sink.md shows."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from lockstep.sinks.base import Sink, SinkContext
from lockstep.testing import behaviour as behaviours
from lockstep.testing.behaviour import BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from lockstep.testing.sealed_rows import OUTPUT, SCHEMA
from lockstep.testing.under_test import SinkUnderTest
from tests.sinks.documented import module_of

#: a stopped process keeps SQLite's lock, and nobody can end it: the page says so
BEYOND_SQLITE = (behaviours.a_zombie_released_at_any_point_loses_and_doubles_nothing,)


class ArrowFilesUnderTest(SinkUnderTest):
    def __init__(self, folder: Path, module: ModuleType) -> None:
        self.folder, self.module = folder, module

    def sink(self, *, shared: bool = False) -> Sink:
        return self._sink("out")

    def _sink(self, name: str) -> Sink:
        sink: Sink = self.module.TransactionalFileSink("files", output=OUTPUT, path=str(self.folder / name))
        return sink

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        with self._sink("elsewhere").opened(self.context()) as sink:
            sink.preflight(None)
        return self._sink("elsewhere"), self.context()

    def visible(self) -> pa.Table:
        found = [SCHEMA.empty_table()]
        for path in (self.folder / "out").glob("*.arrow"):
            with pa.OSFile(str(path)) as file:
                found.append(pa.ipc.open_file(file).read_all().replace_schema_metadata(None))
        return pa.concat_tables(found)

    def unsettled(self) -> list[str]:
        return [path.name for path in (self.folder / "out" / ".pending").iterdir()]

    def lose(self, handle: str) -> None:
        with suppress(FileNotFoundError):
            (self.folder / "out" / ".pending" / handle).unlink()


class SqliteUnderTest(SinkUnderTest):
    votes_with_data = False

    def __init__(self, folder: Path, module: ModuleType) -> None:
        self.folder, self.module = folder, module

    def sink(self, *, shared: bool = False) -> Sink:
        return self._sink("target.db")

    def _sink(self, name: str) -> Sink:
        sink: Sink = self.module.SqliteSink("lite", output=OUTPUT, path=str(self.folder / name), table="Some rows")
        return sink

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        with self._sink("elsewhere.db").opened(self.context()) as sink:
            sink.preflight(None)
        return self._sink("elsewhere.db"), self.context()

    def visible(self) -> pa.Table:
        with closing(sqlite3.connect(self.folder / "target.db")) as connection:
            epochs = [epoch for (epoch,) in connection.execute('SELECT DISTINCT lockstep_epoch FROM "Some rows"')]
        with self.sink().opened(self.context()) as sink:
            batches = [batch for epoch in epochs for batch in sink.read(epoch, OUTPUT, SCHEMA)]
        return pa.Table.from_batches(batches, SCHEMA)

    def unsettled(self) -> list[str]:
        return []

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")


@pytest.mark.parametrize("behaviour", (*BEHAVIOURS, *VOTING_BEHAVIOURS), ids=lambda one: one.__name__)
def test_the_two_phase_sink_of_the_docs(behaviour: Behaviour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour(ArrowFilesUnderTest(tmp_path, module_of("transactional_file_sink", monkeypatch)))


@pytest.mark.parametrize(
    "behaviour", [one for one in BEHAVIOURS if one not in BEYOND_SQLITE], ids=lambda one: one.__name__
)
def test_the_write_ahead_sink_of_the_docs(
    behaviour: Behaviour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour(SqliteUnderTest(tmp_path, module_of("sqlite_sink", monkeypatch)))

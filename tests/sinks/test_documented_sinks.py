"""The two sinks that docs/writing-a-sink.md shows, and the test that it shows of the first."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest, behaviours
from lockstep.testing._behaviour import CRASHES, a_zombie_released_at_any_point_loses_and_doubles_nothing
from tests.sinks.documented import module_of, source_of
from tests.sinks.guarantees import expect_row

#: a stopped process keeps SQLite's lock, and nobody can end it: the page says so
BEYOND_SQLITE = (a_zombie_released_at_any_point_loses_and_doubles_nothing,)


class SqliteUnderTest(SinkUnderTest):
    votes_with_data = False

    def __init__(self, folder: Path) -> None:
        self.folder, self.module = folder, module_of("sqlite_sink")

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


def test_the_two_phase_sink_and_its_test_pass_as_the_page_shows_them(memory: Path) -> None:
    for name in ("transactional_file_sink", "test_transactional_file_sink"):
        (memory / f"{name}.py").write_text(source_of(name))
    quick = " and ".join(f"not {one.__name__}" for one in CRASHES)  # the page of guarantees has it killed and stopped
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", quick, "--rootdir", str(memory)]
    ran = subprocess.run(
        [*command, str(memory)], env={**os.environ, "TMPDIR": str(memory)}, capture_output=True, text=True
    )
    passed = len([one for one in behaviours(SinkUnderTest) if one not in CRASHES]) + 1
    assert ran.returncode == 0 and f"{passed} passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_the_transactional_file_sink(memory: Path) -> None:
    module_of("transactional_file_sink")
    expect_row("TransactionalFileSink (of the docs)", module_of("test_transactional_file_sink").FilesUnderTest(memory))


def test_the_write_ahead_sink_of_the_docs(memory: Path, subtests: pytest.Subtests) -> None:
    for behaviour in behaviours(SqliteUnderTest):
        if behaviour not in BEYOND_SQLITE:
            folder = memory / behaviour.__name__
            folder.mkdir()
            with subtests.test(behaviour.__name__):
                behaviour(SqliteUnderTest(folder))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_the_write_ahead_sink(memory: Path) -> None:
    expect_row("SqliteSink (of the docs)", SqliteUnderTest(memory))

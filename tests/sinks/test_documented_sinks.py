"""The sinks that docs/writing-a-sink.md shows and their test; and a target that drops what is pending too long."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import RunKey
from lockstep.ledger import migrate
from lockstep.ledger.report import Report
from lockstep.pipeline import Pipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Publication, SinkContext, Txn
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest, behaviours
from lockstep.testing._behaviour import CRASHES, a_zombie_released_at_any_point_loses_and_doubles_nothing
from stack.postgres import PostgresServer
from tests.crash.world import Numbers, World, rows_of_day, untouched
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


SOON, NEVER = timedelta(microseconds=1), timedelta(days=1)
DAY = 0
RUN = RunKey("numbers", "run")
_databases = count(1)


@pytest.fixture
def open_class() -> Any:
    """What the sink of the page opens."""
    return module_of("transactional_file_sink").OpenTransactionalFileSink


@pytest.fixture
def world(ledger_server: PostgresServer, tmp_path: Path) -> Iterator[World]:
    name = f"timeout_{next(_databases)}"
    dsn = ledger_server.create_database(name)
    migrate(dsn)
    sink = module_of("transactional_file_sink").TransactionalFileSink(
        "files", output="numbers", path=str(tmp_path / "out")
    )
    pipeline = Pipeline("numbers", sources={"numbers": Numbers()}, transform=untouched, sinks=[sink])
    yield World(dsn, "", tmp_path, pipeline, tmp_path / "staging")
    ledger_server.drop_database(name)


def shown(world: World) -> Counter[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    for path in (world.folder / "out").glob("*.arrow"):
        with pa.OSFile(str(path)) as file:
            rows.update(zip(*pa.ipc.open_file(file).read_all().to_pydict().values(), strict=True))
    return rows


@pytest.mark.fault("E23")
@pytest.mark.parametrize(("last", "following"), [("commit", "publish.files"), ("prepare.files", "commit")])
def test_what_was_dropped_is_published_from_the_wal(
    world: World, open_class: Any, monkeypatch: pytest.MonkeyPatch, last: str, following: str
) -> None:
    """After the decision, and before it."""
    monkeypatch.setattr(open_class, "transaction_timeout", SOON)
    world.run_until(RUN, DAY, last)
    [dropped] = (world.folder / "out" / ".pending").iterdir()  # what the target does when the timeout is over
    dropped.unlink()
    world.run(RUN, DAY, start=following)
    assert shown(world) == Counter(rows_of_day(DAY))
    assert world.publications(DAY) == {"files": Publication.REPAIRED}
    ledger = Report(world.ledger_dsn)
    reasons = [entry.reason for entry in ledger.history("numbers", 1) if entry.sink == "files" and entry.reason]
    ledger.close()
    assert ["outlived the timeout of 0:00:00.000001" in reason for reason in reasons] == [True], reasons


@pytest.mark.fault("E23")
@pytest.mark.parametrize(("timeout", "ratio", "warned"), [(SOON, 0.8, True), (NEVER, 0.8, False), (NEVER, 0.0, True)])
def test_a_transaction_near_its_timeout_is_warned_of(
    world: World,
    open_class: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    timeout: timedelta,
    ratio: float,
    warned: bool,
) -> None:
    monkeypatch.setattr(open_class, "transaction_timeout", timeout)
    monkeypatch.setattr(open_class, "transaction_timeout_warning", ratio)
    world.run_until(RUN, DAY, "prepare.files")
    with caplog.at_level(logging.WARNING):
        world.recover()  # finds it undecided, but live: its lease runs
        assert ("has been pending for" in caplog.text) is warned
        caplog.clear()
        world.run(RUN, DAY, start="commit")
    assert ("has been pending for" in caplog.text) is warned
    assert shown(world) == Counter(rows_of_day(DAY))


def test_recovery_ends_with_what_it_has_handled_and_not_while_somebody_else_publishes(
    world: World, open_class: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[Txn]] = []
    monkeypatch.setattr(open_class, "finish_recovering", lambda sink, handled: told.append(list(handled)))
    world.run_until(RUN, DAY, "prepare.files")
    world.recover()
    assert told == [[]], "a live attempt's transaction was handled"
    [path] = (world.folder / "out" / ".pending").iterdir()
    content = path.read_bytes()
    world.run_task("commit", RUN, DAY)
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(open_class, "write_again", lambda sink, epoch, wal: False)  # the other's marker isn't visible yet
        assert world.recover().problems == []
    assert world.state_of(DAY) == "committed"
    assert told == [[]], "a decided epoch isn't published"
    assert world.recover().finished == [1]
    assert told == [[], []]
    path.write_bytes(content)  # as a zombie may, who was stopped while it wrote
    world.recover()
    assert [txn.handle for txn in told[-1]] == [path.name]
    assert not path.exists()
    assert shown(world) == Counter(rows_of_day(DAY))

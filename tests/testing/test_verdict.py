"""`lockstep.testing` tells good sinks from bad ones: each of these has one bug that people really write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pytest

from lockstep.sdk import Batches, OpenSink, SinkEpoch, SinkName, Txn, Vote
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest, calls_of, judge
from lockstep.testing._crash_sweep import OnStep, Trace
from lockstep.testing._under_test import opened
from stack.postgres import PostgresServer
from tests.sinks.documented import module_of
from tests.testing.planted_sinks import TableSink

POWER_CUT = ("MarkerCommitter", "NotDurable")


class TableUnderTest(SinkUnderTest):
    votes_with_data = False

    def __init__(self, server: PostgresServer, dsn: str, committer: str) -> None:
        self.server, self.dsn, self.committer = server, dsn, committer

    def sink(self, *, shared: bool = False) -> Sink:
        return TableSink("planted", committer=self.committer)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        raise NotImplementedError

    def connections(self) -> dict[str, str]:
        return {"target": self.dsn}

    def visible(self) -> pa.Table:
        with closing(psycopg2.connect(self.dsn)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id, name, ratio, ok, day, at FROM rows")
            columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(SCHEMA)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)

    def unsettled(self) -> list[str]:
        return []

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")

    def lose_power(self) -> bool:
        if lost := self.committer in POWER_CUT:
            self.server.restart("immediate")
        return lost


#: after and before what changes something; the other calls only look, or set up
CHANGES = re.compile(
    r"publish\.\w+"
    r"|\w+\.(claim|send_values|commit_checkpoint):\d+ calls (cursor\.execute(many)?|connection\.commit)"
    r"|\w+\.session:\d+ calls connection\.__exit__"
)


#: bugs that show when one is stopped before its claim and overtaken, however long that takes; nobody waits for a lock
OVERTAKEN = ("KeyWithTheAttempt", "LooksUpOnce", "UncheckedInsert")
CLAIM = re.compile(r"\w+\.claim:\d+ calls cursor\.execute")


def trace_of(target: TableUnderTest) -> Trace:
    with opened(target) as sink:
        calls = calls_of(sink)
    wanted = CLAIM if target.committer in OVERTAKEN else CHANGES
    return lambda on_step: calls(lambda step: on_step(step) if wanted.fullmatch(step) else None)


@pytest.fixture(scope="module")
def server(memory_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    """What isn't flushed by its commit stays unflushed here."""
    settings = {"wal_writer_delay": "10s"}
    server = PostgresServer(memory_folder / "planted", passfile=passfile, template=server_template, settings=settings)
    with server.for_a_while():
        yield server


@pytest.mark.parametrize(
    ("committer", "kept"),
    [
        ("MarkerCommitter", Guarantee.EXACTLY_ONCE),
        ("RecordedAfterwards", Guarantee.AT_LEAST_ONCE),
        ("NotIdempotent", Guarantee.AT_LEAST_ONCE),
        ("KeyWithTheAttempt", Guarantee.AT_LEAST_ONCE),
        ("LooksUpOnce", Guarantee.AT_LEAST_ONCE),
        ("UncheckedInsert", Guarantee.AT_LEAST_ONCE),
        ("NotDurable", Guarantee.NONE),
        ("RecordedBefore", Guarantee.AT_MOST_ONCE),
        ("LosesInSilence", Guarantee.NONE),
    ],
)
def test_a_sink_is_found_to_keep_what_it_keeps(server: PostgresServer, committer: str, kept: Guarantee) -> None:
    target = TableUnderTest(server, server.create_database(committer.lower()), committer)
    verdict = judge(target, trace_of(target), max_wait=60 if committer in OVERTAKEN else 0.05)
    assert verdict.guarantee is kept, str(verdict)
    assert verdict.power_lost is (committer in POWER_CUT)
    assert verdict.faults == 2 * verdict.steps + verdict.power_lost >= 4, str(verdict)


# --- the two-phase sink of docs/writing-a-sink.md with one bug each ---

#: their classes are made when the page is read: no base classes for mypy
TransactionalFileSink: Any = module_of("transactional_file_sink").TransactionalFileSink
OpenTransactionalFileSink: Any = module_of("transactional_file_sink").OpenTransactionalFileSink


class ShowsTooEarly(TransactionalFileSink):  # type: ignore[misc]
    def open(self, context: SinkContext) -> OpenSink:
        return OpenShowsTooEarly(self, SinkName.of(context, self.name))


class OpenShowsTooEarly(OpenTransactionalFileSink):  # type: ignore[misc]
    """Commits when it votes: an attempt that isn't decided stands in the next one's way."""

    def pre_commit(self, txn: Txn) -> Vote:
        vote: Vote = super().pre_commit(txn)
        self.commit(txn)
        return vote


class KeyWithTheToken(TransactionalFileSink):  # type: ignore[misc]
    def open(self, context: SinkContext) -> OpenSink:
        return OpenKeyWithTheToken(self, SinkName.of(context, self.name))


class OpenKeyWithTheToken(OpenTransactionalFileSink):  # type: ignore[misc]
    """Two repairs have a marker each: the file that is its own marker is named by its execution."""

    again = ""

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        self.again = f".again-{epoch.token}"
        try:
            return bool(super().write_again(epoch, wal))
        finally:
            self.again = ""

    def _final(self, epoch: int) -> Path:
        final: Path = super()._final(epoch)
        if self.again:
            return final.with_suffix(f"{self.again}.arrow")
        return next(self.root.glob(f"{final.stem}.again-*.arrow"), final)


class PlantedFiles(module_of("test_transactional_file_sink").FilesUnderTest):  # type: ignore[misc]
    def __init__(self, folder: Path, kind: Callable[..., Sink]) -> None:
        super().__init__(folder)
        self.kind = kind

    def sink_in(self, name: str) -> Sink:
        return self.kind("files", output=OUTPUT, path=str(self.folder / name))


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (KeyWithTheToken, Guarantee.AT_LEAST_ONCE),
        (ShowsTooEarly, Guarantee.NONE),
    ],
)
def test_a_two_phase_sink_is_found_to_keep_what_it_keeps(memory: Path, kind: type[Sink], kept: Guarantee) -> None:
    verdict = judge(PlantedFiles(memory, kind))
    assert verdict.guarantee is kept, str(verdict)


def test_a_fault_that_did_not_happen_is_told_and_not_counted(memory: Path) -> None:
    """Three steps are taken in the first process only: neither kill nor stop can happen there later."""

    def trace(on_step: OnStep) -> None:
        with suppress(FileExistsError):
            (memory / "traced").touch(exist_ok=False)
            for number in range(3):
                on_step(f"step {number}")

    target = module_of("test_transactional_file_sink").FilesUnderTest(memory)
    target.votes_with_data = False  # one story only
    verdict = judge(target, trace)
    missed = [finding for finding in verdict.findings if finding.missed]
    assert (verdict.steps, len(missed), verdict.faults) == (4, 6, 2)
    assert "stopped at step 3 (the end): not tried, the process did not come to the step" in str(verdict)
    assert verdict.guarantee is Guarantee.EXACTLY_ONCE, str(verdict)

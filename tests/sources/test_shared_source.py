"""What the roles ask of a source: each run has an open copy of its own, and as many rows are read as were planned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from lockstep.epoch import Epoch, Interval, Position, RunKey
from lockstep.errors import LockstepError, SourceChanged, StageFailed
from lockstep.ledger import Ledger
from lockstep.roles.begin import begin
from lockstep.roles.stage import stage
from lockstep.runtime import Runtime
from lockstep.sinks import FileSink
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.open_source import OpenFileSource
from lockstep.wal.request import RESULT
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.sources.folder_world import FolderWorld, lines_of, worlds, write_lines


@pytest.fixture
def world(memory_server: PostgresServer, memory: Path) -> Iterator[FolderWorld]:
    with worlds(memory_server, memory) as make:
        yield make()


BARRIER = Barrier(2)


class MeetingSource(FileSource):
    """Two that open it go on together."""

    def open(self, context: SourceContext) -> OpenFileSource:
        BARRIER.wait(60)
        return super().open(context)


@pytest.mark.fault("A22")
def test_two_pipelines_in_two_threads_may_share_a_source(world: FolderWorld) -> None:
    (world.landing / "first.txt").write_text("1\n")
    world.run("first")
    (world.landing / "second.txt").write_text("2\n")
    source = MeetingSource(f"{world.landing}/*.txt", format="text")
    one = replace(world.pipeline, sources={"landing": source})
    sink = FileSink("out", output="lines", path=str(world.folder / "of-the-other"), format="parquet")
    other = replace(one, name="other", sinks=[sink])

    def lines(pipeline: Any) -> list[str]:
        with closing(Ledger(world.ledger_dsn)) as ledger:
            runtime = Runtime.of(pipeline, ledger, Staging(str(world.folder / "staging")), {})
            return sorted(lines_of(begin(runtime, RunKey("shared", pipeline.name)).plan.sources["landing"].end))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lines, [one, other])) == [["2"], ["1", "2"]]


class CountedSource(FileSource):
    """Counts its lines when it is planned."""

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenCounted(self, context)


class OpenCounted(OpenFileSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        position = super().latest(start, interval)
        return {**position, "rows": len(lines_of(position))}

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        planned: int | None = end["rows"]
        return planned


@pytest.mark.fault("L6")
@pytest.mark.parametrize(("read", "error"), [(2, SourceChanged), (4, StageFailed), (3, None)])
def test_nothing_is_sealed_unless_as_many_rows_were_read_as_were_planned(
    world: FolderWorld, read: int, error: type[LockstepError] | None
) -> None:
    (world.landing / "1.txt").write_text("1\n2\n3\n")
    source = CountedSource(f"{world.landing}/*.txt", format="text")
    pipeline, run = replace(world.pipeline, sources={"landing": source}), RunKey("counted", "1")

    def launch(request_uri: str) -> None:
        write_lines(request_uri)
        result = Path(request_uri.removeprefix("file://")).parent / RESULT
        told = json.loads(result.read_text())
        told["sources"]["landing"]["rows"] = read
        result.write_text(json.dumps(told))

    def sealed() -> Epoch:
        return stage(runtime, run, launch)

    with closing(Ledger(world.ledger_dsn)) as ledger:
        runtime = Runtime.of(pipeline, ledger, Staging(str(world.folder / "staging")), {})
        begin(runtime, run)
        if error is None:
            assert sealed().wal
            return
        with pytest.raises(error, match=f"3 rows of source landing were planned, and Spark read {read}"):
            sealed()
        assert ledger.epoch("watch", 1).wal is None

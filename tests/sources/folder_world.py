"""A pipeline from a watched folder to Parquet files, whose staging job reads the frozen ranges without Spark.

Everything else is the production code: the source, the ledger, the WAL, the sink, the roles.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lockstep import files
from lockstep.cli import app
from lockstep.crash import CrashPoint, observe
from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.replan import replan
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import begin
from lockstep.protocol.recover import recover
from lockstep.protocol.runtime import Runtime
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from lockstep.wal.staging import Staging
from tests.crash.victims import Hit
from tests.crash.world import perform

Make = Callable[..., "FolderWorld"]


def key_of(run: str | RunKey) -> RunKey:
    return run if isinstance(run, RunKey) else RunKey("watch", run)


def unchanged(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"lines": inputs["landing"]}


def lines_of(end: Any) -> list[str]:
    """The lines of a frozen position's files, or of their ranges."""
    found: list[str] = []
    for fact in end["files"]:
        data = Path(fact["path"]).read_bytes()[fact.get("from", 0) : fact.get("to")]
        found += data.decode().splitlines()
    return found


def write_lines(request_uri: str) -> None:
    """Do what the Spark job does: write the output's file and the result."""
    folder = Path(request_uri.removeprefix("file://")).parent
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    found = lines_of(request.sources["landing"].end)
    (folder / "lines").mkdir()
    pq.write_table(pa.table({"value": pa.array(found, pa.string())}), folder / "lines" / "part-00000.parquet")
    result = StageResult({"lines": len(found)}, {"landing": SourceCount(len(found), 0)}, "test")
    (folder / RESULT).write_text(json.dumps(result.to_json()))


@dataclass(eq=False)
class FolderWorld:
    """`folder` holds landing, staging and out. Every task makes its own connections, so that it can be forked."""

    ledger_dsn: str
    folder: Path
    pipeline: Pipeline

    @classmethod
    def make(cls, ledger_dsn: str, folder: Path, **arguments: Any) -> FolderWorld:
        (folder / "landing").mkdir()
        source = FileSource(f"{folder}/landing/*.txt", **{"format": "text", **arguments})
        sink = FileSink("out", output="lines", path=str(folder / "out"), format="parquet")
        return cls(ledger_dsn, folder, Pipeline("watch", {"landing": source}, unchanged, [sink]))

    def deploy(self, **arguments: Any) -> None:
        """The pipeline with other arguments of its source from now on."""
        source = self.pipeline.sources["landing"]
        assert isinstance(source, FileSource)
        self.pipeline = replace(self.pipeline, sources={"landing": replace(source, **arguments)})

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def runtime(self) -> Runtime:
        return runtime_for(self.pipeline, Ledger(self.ledger_dsn), Staging(str(self.folder / "staging")), {})

    def begin(self, run: str | RunKey, interval: Interval | None = None) -> Epoch:
        with closing((runtime := self.runtime()).ledger):
            return begin(runtime, key_of(run), interval)

    def task(self, name: str, run: str | RunKey, interval: Interval | None = None) -> None:
        """One task, as Airflow runs it."""
        task = f"{name}.out" if name in ("prepare", "publish") else name
        with closing((runtime := self.runtime()).ledger):
            perform(runtime, task, key_of(run), write_lines, interval)

    def run(self, run: str | RunKey, start: str = "begin", interval: Interval | None = None, upto: str = "") -> None:
        """Every task of one DAG run from `start` on, to `upto` at most."""
        for name in TASKS[TASKS.index(start) : TASKS.index(upto) + 1 if upto else None]:
            self.task(name, run, interval)

    def replan(self, epoch: int) -> Epoch:
        with closing((runtime := self.runtime()).ledger):
            return replan(runtime, epoch, "a test")

    def recover(self) -> None:
        with closing((runtime := self.runtime()).ledger):
            assert recover(runtime, recovery_grace=timedelta(0)).problems == []

    def epochs(self) -> list[Epoch]:
        with closing(Ledger(self.ledger_dsn)) as ledger:
            last = ledger.last_epoch("watch")
            return [ledger.epoch("watch", number) for number in range(1, last.id + 1)] if last else []

    def status(self, *arguments: str) -> str:
        """What `lockstep status` prints."""
        given = ["status", *arguments, "--ledger", self.ledger_dsn]
        return CliRunner().invoke(app, given, env={"COLUMNS": "400"}).stdout

    def told(self, of: str) -> dict[int, Any]:
        """The `late` or the `changed` files of each epoch, as `lockstep status` has them."""
        [pipeline] = json.loads(self.status("--json"))
        return {one["epoch"]["id"]: one[of] for one in pipeline["epochs"]}

    def leave(self) -> None:
        """What waiting for 30 s does: whoever was at an epoch isn't any more; no safety rests on it."""
        with closing(psycopg2.connect(self.ledger_dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("UPDATE lockstep.epoch SET lease_until = now(), attempted_at = now() - interval '1 second'")

    def shown(self) -> Counter[str]:
        """Every line that the sink shows."""
        found: Counter[str] = Counter()
        for path in files(str(self.folder / "out")):
            found.update(pq.ParquetFile(path).read()["value"].to_pylist())
        return found


TASKS = ("begin", "stage", "prepare", "commit", "publish", "cleanup")


def hits_of(world: FolderWorld, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Every point that a crash-free epoch of what has landed reaches."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    hits = []
    for task in TASKS:
        reached: list[CrashPoint] = []
        stop = observe(reached.append)
        world.task(task, "dry")
        stop()
        hits += [Hit(task, point, nth + 1) for point, times in Counter(reached).items() for nth in range(times)]
    monkeypatch.delenv("LOCKSTEP_TESTING")
    return hits


def tasks_while(world: FolderWorld, happens: Callable[[], None], run: str) -> list[tuple[str, Callable[[], None]]]:
    """The tasks of a run; at each crash point something happens."""

    def work(task: str) -> None:
        stop = observe(lambda point: happens())
        world.task(task, run)
        stop()

    return [(task, partial(work, task)) for task in TASKS]


def warnings(world: FolderWorld, caplog: pytest.LogCaptureFixture, run: str, **more: Any) -> list[str]:
    """What a run warns of."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lockstep"):
        world.run(run, **more)
    return [record.getMessage() for record in caplog.records]

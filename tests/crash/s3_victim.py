"""A process of its own that runs tasks of the small world with its WAL, or the files of its sink, on S3, and may die at
a crash point on the way.

A fork won't do: the threads of the client of object stores don't survive it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pytest

from lockstep.connections.object_store.address import from_hadoop
from lockstep.connections.object_store.store import ObjectStore
from lockstep.crash import CrashPoint, observe
from lockstep.epoch import RunKey
from lockstep.errors import StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.files import FileSink, files
from lockstep.wal.staging import Staging
from tests.crash.test_kill_and_zombie import RESUMES
from tests.crash.victims import Hit
from tests.crash.world import Rows, World, _write_parquet, make_world

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class S3World(World):
    """The same world, but for the WAL, and for the files where `files_uri` says where they go."""

    staging_uri: str = field(default="")
    files_uri: str = field(default="")

    @classmethod
    def make(cls, ledger: str, warehouse: str, folder: Path, staging_uri: str, files_uri: str = "") -> Self:
        pipeline = make_world(ledger, warehouse, folder, "two_phase").pipeline
        if files_uri:
            sinks = [replace(one, path=files_uri) if isinstance(one, FileSink) else one for one in pipeline.sinks]
            pipeline = replace(pipeline, sinks=sinks)
        return cls(ledger, warehouse, folder, pipeline, staging_uri=staging_uri, files_uri=files_uri)

    def runtime(self) -> Runtime:
        ledger, connections = Ledger(self.ledger_dsn), {"warehouse": self.warehouse_dsn}
        return runtime_for(self.pipeline, ledger, Staging(self.staging_uri), connections)

    def left_in_staging(self) -> list[str]:
        """Everything but the manifests that are kept, marks of folders among it."""
        everything = ObjectStore.at(self.staging_uri).find_below("")
        return sorted(found.path for found in everything if "/manifests/" not in found.path)

    def shown_in_files(self, day: int) -> Rows:
        if not self.files_uri:
            return super().shown_in_files(day)
        place = self._files.address.prefix
        return self._rows_by(self._files.read, [path.partition(f"/{place}/")[2] for path in files(self.files_uri)], day)

    def bare_files(self, day: int) -> Rows:
        if not self.files_uri:
            return super().bare_files(day)
        return self._rows_by(self._files.read, [found.path for found in self._files.children("").objects], day)

    def left_in_sink(self) -> list[str]:
        if not self.files_uri:
            return super().left_in_sink()
        return sorted(found.path for found in self._files.find_below(".lockstep/pending"))

    @property
    def _files(self) -> ObjectStore:
        return ObjectStore.at(self.files_uri)

    def _rows_by(self, read: Callable[[str], bytes], paths: list[str], day: int) -> Rows:
        with tempfile.TemporaryDirectory() as here:
            for path in paths:
                Path(here, path.rpartition("/")[2]).write_bytes(read(path))
            return self._rows_of(Path(here).iterdir(), day)

    def launch(self, request_uri: str) -> None:
        folder_uri = request_uri.partition("?")[0].rpartition("/")[0]
        store = ObjectStore.at(from_hadoop(folder_uri, request_uri.partition("?")[2]))
        write_by(store.read, store.replace)

    def in_process(self, tasks: list[str], run: RunKey, day: int, struck: tuple[str, CrashPoint, int] | None) -> int:
        """Run `tasks` in a process of its own, SIGKILL at the nth time that a task reaches a point; its exit code."""
        told = [self.ledger_dsn, self.warehouse_dsn, str(self.folder), self.staging_uri, self.files_uri]
        asked = {"world": told, "tasks": tasks, "run": [run.dag_id, run.run_id], "day": day, "struck": struck}
        command = [sys.executable, "-m", type(self).__module__, json.dumps(asked)]
        environment = {**os.environ, "LOCKSTEP_TESTING": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode > 0:
            raise AssertionError(done.stderr)
        return done.returncode


def kill_each(world: S3World, places: Iterable[tuple[Hit, str]], subtests: pytest.Subtests) -> None:
    """Kill a process at each place, and go on in one way: every row is shown once."""
    for hit, resume in places:
        with subtests.test(f"{hit} {resume}"):
            day = next(world.days)
            run = world.run_of(day, f"{hit} {resume}")
            tasks = list(world.tasks())
            died = world.in_process(tasks[: tasks.index(hit.task) + 1], run, day, (hit.task, hit.point, hit.nth))
            assert died == -9, "the point was not reached"
            if hit.task.startswith(("begin", "stage", "prepare")):
                world.require_nothing_shown(day)
                assert not world.bare_files(day)
            RESUMES[resume](world, run, day, hit.task)
            world.require_exactly_once(day)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def write_by(read: Callable[[str], bytes], replace: Callable[[str, bytes], object]) -> None:
    """What the Spark job leaves, by way of a local folder. `read`, `replace`: of paths below the execution's."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            (folder / "_request.json").write_bytes(read("_request.json"))
        except FileNotFoundError as error:
            raise StageFailed(f"the job's folder is gone: {error}") from error
        _write_parquet(folder)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "_request.json":
                replace(str(path.relative_to(folder)), path.read_bytes())


def main(kind: type[S3World], asked: str) -> None:
    told = json.loads(asked)
    ledger, warehouse, folder, *uris = told["world"]
    world, run = kind.make(ledger, warehouse, Path(folder), *uris), RunKey(*told["run"])
    for task in told["tasks"]:
        stop = _strike_at(*told["struck"][1:]) if told["struck"] and told["struck"][0] == task else None
        world.run_task(task, run, told["day"])
        if stop:
            stop()


def _strike_at(point: str, nth: int) -> Callable[[], None]:
    left = [nth]

    def strike(reached: CrashPoint) -> None:
        if reached.value == point:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), 9)

    return observe(strike)


if __name__ == "__main__":
    main(S3World, sys.argv[1])

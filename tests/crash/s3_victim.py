"""A process of its own that runs tasks of the small world with its WAL on S3, and may die at a crash point on the way.

A fork won't do: the threads of the client of object stores don't survive it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lockstep.crash import CrashPoint, observe
from lockstep.epoch import RunKey
from lockstep.errors import StageFailed
from lockstep.ledger import Ledger
from lockstep.object_store.address import from_hadoop
from lockstep.object_store.store import ObjectStore
from lockstep.runtime import Runtime
from lockstep.steps.stage_job import Launch
from lockstep.wal.staging import Staging
from tests.crash.world import World, _write_parquet, make_world

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class S3World(World):
    """The same world, but for the WAL."""

    staging_uri: str = field(default="")

    @classmethod
    def make(cls, ledger: str, warehouse: str, folder: Path, staging_uri: str) -> S3World:
        made = make_world(ledger, warehouse, folder, "two_phase")
        return cls(ledger, warehouse, folder, made.pipeline, staging_uri=staging_uri)

    def runtime(self) -> Runtime:
        ledger, connections = Ledger(self.ledger_dsn), {"warehouse": self.warehouse_dsn}
        return Runtime.of(self.pipeline, ledger, Staging(self.staging_uri), connections)

    def left_in_staging(self) -> list[str]:
        """Everything but the manifests that are kept, marks of folders among it."""
        everything = ObjectStore.at(self.staging_uri).find_below("")
        return sorted(found.path for found in everything if "/manifests/" not in found.path)

    def run_task(self, task: str, run: RunKey, day: int, job: Launch | None = None) -> None:
        super().run_task(task, run, day, job or write_to_s3)

    def in_process(self, tasks: list[str], run: RunKey, day: int, struck: tuple[str, CrashPoint, int] | None) -> int:
        """Run `tasks` in a process of its own, SIGKILL at the nth time that a task reaches a point; its exit code."""
        told = [self.ledger_dsn, self.warehouse_dsn, str(self.folder), self.staging_uri]
        asked = {"world": told, "tasks": tasks, "run": [run.dag_id, run.run_id], "day": day, "struck": struck}
        command = [sys.executable, "-m", "tests.crash.s3_victim", json.dumps(asked)]
        environment = {**os.environ, "LOCKSTEP_TESTING": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode > 0:
            raise AssertionError(done.stderr)
        return done.returncode


def write_to_s3(request_uri: str) -> None:
    """What the Spark job leaves, by way of a local folder."""
    folder_uri = request_uri.partition("?")[0].rpartition("/")[0]
    store = ObjectStore.at(from_hadoop(folder_uri, request_uri.partition("?")[2]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            (folder / "_request.json").write_bytes(store.read("_request.json"))
        except FileNotFoundError as error:
            raise StageFailed(f"the job's folder is gone: {error}") from error
        _write_parquet(folder)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "_request.json":
                store.replace(str(path.relative_to(folder)), path.read_bytes())


def main(asked: str) -> None:
    told = json.loads(asked)
    ledger, warehouse, folder, uri = told["world"]
    world, run = S3World.make(ledger, warehouse, Path(folder), uri), RunKey(*told["run"])
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
    main(sys.argv[1])

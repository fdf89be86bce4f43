"""`python -m benchmarks.scale`: what sealing and publishing take by number and size of files, and who does it.

An epoch of so many files is written below a table that adopts, sealed by the task alone, then read by Spark's executors
and sealed from what they tell, prepared and published. On a Connect server that is its own only executor, and on one
whose executor is a process of its own, at a standalone master. Quote ratios and CPU seconds, not seconds.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console

from benchmarks import data
from benchmarks.cpu import cpu_seconds
from benchmarks.paths import DEPLOYMENT, START
from lockstep.compute._executors import read_in_executors, ship_ours
from lockstep.epoch import Interval
from lockstep.sinks import DeltaSink
from lockstep.sinks.values import SinkContext, SinkEpoch
from lockstep.spark.session import connect
from lockstep.wal.file_digests import FileDigests
from lockstep.wal.manifest import Manifest
from lockstep.wal.request import StageRequest, TableStagingRequest
from lockstep.wal.staging import Staging
from stack.home import Home
from stack.processes import Processes
from stack.spark import ConnectServer, StandaloneCluster

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
OUTPUT, COLUMN = "flights", "lockstep_epoch"
FILES = (1, 10, 100)


@dataclass
class Step:
    """Of one shape of an epoch: wall and CPU seconds, of all processes, once a round."""

    shape: str
    files: int
    bytes: int
    name: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @contextmanager
    def timed(self, daemons: Iterable[int]) -> Iterator[None]:
        before, started = cpu_seconds(daemons), time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)
        self.cpu.append(cpu_seconds(daemons) - before)


class Shape:
    """Epochs of so many files, each of `rows`, for one table."""

    def __init__(self, folder: Path, sparks: Mapping[str, Any], files: int, rows: pa.Table) -> None:
        self.folder, self.sparks, self.files, self.rows = folder, sparks, files, rows
        self.name = f"scale_{files}_{rows.num_rows}"
        self.sink = DeltaSink("lake", output=OUTPUT, path=str(folder / "lake" / self.name), create=True)
        self.context = SinkContext(DEPLOYMENT, self.name, {})
        self.staging = Staging(str(folder / "staging"))
        self.steps: dict[str, Step] = {}
        self._numbers, self._size = count(1), 0
        with self.sink.opened(self.context) as live:
            live.preflight({OUTPUT: rows.schema})

    def step(self, name: str) -> Step:
        shape = f"{self.files} files of {self.rows.num_rows:,} rows"
        return self.steps.setdefault(name, Step(shape, self.files, self._size * self.files, name))

    def run(self, daemons: Iterable[int]) -> None:
        """One epoch through every step, by every way."""
        number = next(self._numbers)
        request = self._written(number)
        wal = self.staging.folder(DEPLOYMENT, self.name, number, 1)
        self.staging.create(wal)
        manifest = None
        for name, spark in self.sparks.items():
            with self.step(f"executors read, {name}").timed(daemons):
                found = read_in_executors(spark, request, "")
            if found is None or len(found) != self.files:
                raise SystemExit(f"the executors of {name} read {len(found or ())} of {self.files} files")
            with self.step(f"the task checks, {name}").timed(daemons):
                manifest = self._sealed(request, wal, found)
            self._forget(wal)
        with self.step("the task alone").timed(daemons):
            alone = self._sealed(request, wal, None)
        if manifest is not None and manifest.hash != alone.hash:
            raise SystemExit("the manifests differ")
        start = START + timedelta(days=number)
        epoch = SinkEpoch(number, 1, alone.hash, START, Interval(start, start + timedelta(days=1)))
        batches = self.staging.open(wal, alone.hash).outputs(self.sink.outputs)
        with self.sink.opened(self.context) as live:
            with self.step("prepare").timed(daemons):
                vote = live.prepare(epoch, batches)
            with self.step("publish").timed(daemons):
                live.publish(epoch, vote, batches)
        shutil.rmtree(self.folder / "staging" / wal)

    def _written(self, number: int) -> StageRequest:
        home = self.sink.home(self.context)
        there = self.staging.home(home, DEPLOYMENT, self.name)
        folder = Path(home.table.removeprefix("file://")) / there.folder(number, 1) / OUTPUT
        folder.mkdir(parents=True)
        marked = self.rows.append_column(COLUMN, pa.array([number] * self.rows.num_rows, pa.int64()))
        first = folder / "part-00000.zstd.parquet"
        pq.write_table(marked, first, compression="zstd")
        for file in range(1, self.files):
            shutil.copyfile(first, folder / f"part-{file:05}.zstd.parquet")
        self._size = first.stat().st_size
        wal = self.staging.uri_of(self.staging.folder(DEPLOYMENT, self.name, number, 1))
        homes = {OUTPUT: TableStagingRequest(home, there.uri_of(number, 1))}
        return StageRequest("", number, 1, wal, (OUTPUT,), {}, START, homes=homes, task_seals=0)

    def _sealed(self, request: StageRequest, wal: str, found: FileDigests | None) -> Manifest:
        return self.staging.seal(
            wal,
            deployment=DEPLOYMENT,
            pipeline=self.name,
            epoch=request.epoch,
            token=1,
            outputs=(OUTPUT,),
            observed={OUTPUT: self.files * self.rows.num_rows},
            sources={},
            homes={OUTPUT: request.homes[OUTPUT].home},
            digests=found or {},
        )

    def _forget(self, wal: str) -> None:
        (self.folder / "staging" / wal / "_manifest.json").unlink()


@contextmanager
def on_connect(folder: Path) -> Iterator[tuple[Any, list[int]]]:
    """A session of a Connect server that is its own only executor, and the server's pid."""
    processes = Processes(folder / "processes.json")
    try:
        server = ConnectServer(processes, folder / "connect")
        server.wait(server.launch())
        yield connect(server.url), [started.pid for started in processes.started]
    finally:
        processes.stop()


@contextmanager
def on_cluster(folder: Path) -> Iterator[tuple[Any, list[int]]]:
    """A session of a Connect server whose executor is a standalone worker's, and pids of server, master and worker."""
    processes = Processes(folder / "processes.json")
    try:
        cluster = StandaloneCluster(processes, folder / "cluster")
        cluster.start()
        server = ConnectServer(processes, folder / "connect", master=cluster.url)
        server.wait(server.launch())
        yield connect(server.url), [started.pid for started in processes.started]
    finally:
        processes.stop()


PLACES = {"connect": on_connect, "cluster": on_cluster}


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Of a large file; a small one has a tenth.")] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    on: Annotated[list[str] | None, typer.Option(help="'connect' or 'cluster' alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure, and print medians by shape and step."""
    if unknown := sorted(set(on or ()) - set(PLACES)):
        raise typer.BadParameter(f"{unknown}: there are {', '.join(PLACES)}", param_hint="--on")
    folder = Home.from_environment().root / "bench-scale"
    shutil.rmtree(folder, ignore_errors=True)
    ship_ours()
    table = data.flights(rows)
    try:
        with ExitStack() as stack:
            started = {name: stack.enter_context(PLACES[name](folder / name)) for name in on or PLACES}
            sparks = {name: spark for name, (spark, _) in started.items()}
            daemons = [pid for _, pids in started.values() for pid in pids]
            shapes = [
                Shape(folder, sparks, files, table.slice(0, size)) for files in FILES for size in (rows // 10, rows)
            ]
            _err.print("warming up …")
            for shape in shapes[:3]:
                shape.run(daemons)
                shape.steps.clear()
            for number in range(rounds):
                _err.print(f"round {number + 1} of {rounds} …")
                for shape in shapes:
                    shape.run(daemons)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _show([step for shape in shapes for step in shape.steps.values()], as_json)


def _show(steps: list[Step], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([vars(step) for step in steps]))
        return
    out = Console(width=max(Console().width, 120))
    for step in steps:
        told = f"{median(step.seconds):8.3f} s {median(step.cpu):8.2f} CPU s"
        out.print(f"{step.shape}: {step.name}: {told}")


if __name__ == "__main__":
    app()

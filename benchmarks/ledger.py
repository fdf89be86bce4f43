"""`python -m benchmarks.ledger`: what tasks ask of a ledger of millions of epochs, against the same of a thousand.

Both are filled by SQL, then real roles take new epochs through them by turns, each step on a connection of its own, as
a task does it. Nothing runs in Spark. At the end pipelines begin an epoch a second each, side by side, in
the large one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.aims import percentile
from benchmarks.ledger_filling import FIRST_DAY, SOURCE, Size, fill
from benchmarks.ways import Way
from lockstep import Pipeline
from lockstep.epoch import Attempt, Epoch, Interval, RunKey, Vote
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.ledger.report import Report
from lockstep.protocol.begin import begin
from lockstep.protocol.commit import commit
from lockstep.protocol.runtime import Runtime
from lockstep.sinks import FunctionSink
from lockstep.sources import FileSource
from lockstep.states import Role
from lockstep.wal.staging import Staging
from stack.home import Home
from stack.postgres import PostgresServer

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)

SETTINGS: dict[str, str | int] = {"shared_buffers": "1GB", "checkpoint_timeout": "30min", "max_wal_senders": 0}
SAFE: dict[str, str | int] = {
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "max_wal_size": "8GB",
    "wal_level": "replica",
}
FILLING: dict[str, str | int] = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_wal_size": "1GB",
    "wal_level": "minimal",
}
_HASH = "f" * 64
_FIRST = datetime.fromisoformat(f"{FIRST_DAY}T00:00:00+00:00")


def send(batch: Any, epoch: Any) -> None:
    """Where rows would go."""


@dataclass(frozen=True)
class Form:
    """How large the run is."""

    epochs: int
    claims: int
    history: int
    rounds: int
    load_seconds: float

    def __str__(self) -> str:
        return f"{self.epochs:,} epochs, {self.claims:,} claims a source, {self.load_seconds:.0f} s of load"


@dataclass
class Bench:
    """One ledger: where it is, how large, and the seconds of each step in it."""

    name: str
    dsn: str
    size: Size
    folder: Path
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _begun: dict[str, int] = field(default_factory=dict)  # epochs of a pipeline that came since it was filled

    def pipeline(self, number: int) -> Pipeline:
        """Odd ones take intervals, even ones what is new in a folder."""
        name = self.size.name(number)
        file = "{interval_start:%Y-%m-%dT%H-%M}.csv" if number % 2 else "*.csv"
        source = FileSource(str(self.folder / name / file), schema="id BIGINT")
        sink = FunctionSink("out", output="rows", function="benchmarks.ledger:send")
        return Pipeline(name=name, sources={SOURCE: source}, transform=dict, sinks=[sink], version="bench")

    def runtime(self, number: int, ledger: Ledger) -> Runtime:
        return runtime_for(self.pipeline(number), ledger, Staging(str(self.folder / "staging")), {})

    @contextmanager
    def timed(self, step: str) -> Iterator[Ledger]:
        """A ledger of one task's own; the connecting counts."""
        started = time.perf_counter()
        ledger = Ledger(self.dsn, "bench")
        yield ledger
        ledger.close()
        self.seconds.setdefault(step, []).append(time.perf_counter() - started)

    def epoch(self, number: int) -> None:
        """A new epoch of pipeline `number`, from begin to cleanup; then its pipeline's status."""
        name, file, run, interval = self._next(number)
        try:
            with self.timed("begin") as ledger:
                epoch = begin(self.runtime(number, ledger), run, interval)
        finally:
            file.unlink()
        attempt = Attempt(name, epoch.id, epoch.attempt)
        with self.timed("stage") as ledger:
            seal(ledger, attempt)
        with self.timed("prepare") as ledger:
            vote = vote_of(ledger, attempt)
        with self.timed("commit") as ledger:
            commit(self.runtime(number, ledger), run)
        with self.timed("publish") as ledger:
            publish(ledger, epoch, vote)
        with self.timed("cleanup") as ledger:
            ledger.record_cleanup(epoch, Role.CLEANUP)
        started = time.perf_counter()
        report = Report(self.dsn, "bench")
        found = report.pipeline(name)
        report.close()
        self.seconds.setdefault("status of a pipeline", []).append(time.perf_counter() - started)
        if found is None or found.counts.keys() != {"cleaned"} or found.holes:
            raise SystemExit(f"{self.name}: {found}")

    def _next(self, number: int) -> tuple[str, Path, RunKey, Interval | None]:
        """The pipeline's name, a file for its next epoch, that epoch's run and interval."""
        name = self.size.name(number)
        if name not in self._begun:
            self._begun[name] = self._last(name)
        ordinal = self._begun[name] = self._begun[name] + 1
        start = _FIRST + timedelta(minutes=ordinal - 1)
        interval = Interval(start, start + timedelta(minutes=1)) if number % 2 else None
        file = self.folder / name / f"{start:%Y-%m-%dT%H-%M}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("id\n1\n")
        return name, file, RunKey(name, f"run {ordinal} of {os.getpid()}", interval), interval

    def _last(self, name: str) -> int:
        ledger = Ledger(self.dsn, "bench")
        last = ledger.last_epoch(name)
        ledger.close()
        return last.id if last else 0

    def status(self) -> None:
        """Of all pipelines."""
        started = time.perf_counter()
        report = Report(self.dsn, "bench")
        found = report.pipelines()
        report.close()
        if len(found) != self.size.pipelines:
            raise SystemExit(f"{self.name}: {len(found)} pipelines")
        self.seconds.setdefault("status of all", []).append(time.perf_counter() - started)

    def recovery(self, number: int) -> None:
        """What a round of recovery asks of the ledger for a pipeline."""
        name = self.size.name(number)
        with self.timed("recovery's look") as ledger:
            ledger.unfinished_epochs(name)
            ledger.abandoned_epochs(name, ledger.recovery_grace(name))
            ledger.planned_sinks(name)
            ledger.last_epoch(name)


def seal(ledger: Ledger, attempt: Attempt) -> None:
    """What stage tells the ledger."""
    token = ledger.take_token(attempt, Role.STAGE)
    summary = {"outputs": {"rows": {"rows": 7, "digest": "0" * 32}}, "sources": {SOURCE: {"rows": 7}}}
    folder = f"bench/{attempt.pipeline}/epoch={attempt.epoch}/{token}"
    ledger.seal_epoch(attempt, folder, _HASH, summary, "bench")


def vote_of(ledger: Ledger, attempt: Attempt) -> Vote:
    """What prepare tells it."""
    vote = Vote(ledger.take_token(attempt, Role.PREPARE, "out"), None, "target", {"rows": 7})
    ledger.record_vote(attempt, "out", vote)
    return vote


def publish(ledger: Ledger, epoch: Epoch, vote: Vote) -> None:
    """What publish tells it."""
    attempt = Attempt(epoch.pipeline, epoch.id, epoch.attempt)
    ledger.take_token(attempt, Role.PUBLISH, "out")
    ledger.record_publication(epoch, "out", vote.token, "sent", Role.PUBLISH)


#: Of a run unless its options say otherwise: years in short, and years.
QUICK = Form(epochs=200_000, claims=20_000, history=200, rounds=25, load_seconds=20)
FULL = Form(epochs=10_000_000, claims=1_000_000, history=1000, rounds=100, load_seconds=600)


@app.command()
def main(
    full: Annotated[bool, typer.Option(help=f"{FULL}, which takes an hour; otherwise {QUICK}.")] = False,
    epochs: Annotated[int | None, typer.Option(min=1000, help="Epochs of the large ledger.")] = None,
    pipelines: Annotated[int, typer.Option(min=2, help="Pipelines of the large ledger.")] = 1_000,
    claims: Annotated[int | None, typer.Option(help="Files that two sources of it have claimed, each.")] = None,
    history: Annotated[
        int | None, typer.Option(help="Of so many of a pipeline's youngest epochs transitions are kept.")
    ] = None,
    small: Annotated[
        int, typer.Option(min=100, help="Epochs, and claims, of the ledger that it is compared with.")
    ] = 1_000,
    rounds: Annotated[int | None, typer.Option(min=1, help="New epochs of four pipelines in each ledger.")] = None,
    status_rounds: Annotated[int, typer.Option(help="How often all pipelines' status is asked for.")] = 3,
    load_seconds: Annotated[
        float | None, typer.Option(help="How long pipelines begin an epoch a second; 0: not at all.")
    ] = None,
    load_pipelines: Annotated[int, typer.Option(min=1, help="How many of them.")] = 50,
    keep: Annotated[Path | None, typer.Option(help="A folder where the filled ledgers stay for another run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Fill, measure, print."""
    said: dict[str, Any] = {
        "epochs": epochs,
        "claims": claims,
        "history": history,
        "rounds": rounds,
        "load_seconds": load_seconds,
    }
    form = replace(FULL if full else QUICK, **{name: value for name, value in said.items() if value is not None})
    folder = keep or Home.from_environment().root / f"bench-ledger-{os.getpid()}"
    sizes = {
        "small": Size(small, min(pipelines, 50, small // 20), small, small),
        "large": Size(form.epochs, pipelines, form.claims, form.history),
    }
    os.environ["PGPASSFILE"] = str(folder / "pgpass")
    server = PostgresServer(folder / "postgres", passfile=folder / "pgpass", settings={**SETTINGS, **SAFE})
    try:
        benches = _ledgers(server, folder, sizes)
        load = _measure(benches, form.rounds, status_rounds, load_pipelines, form.load_seconds)
    finally:
        if keep is None:
            server.remove()
            shutil.rmtree(folder, ignore_errors=True)
        else:
            server.stop()
    if as_json:
        typer.echo(json.dumps({"ways": [way.to_json(1) for way in _ways(benches, load)], "load": load}))
    else:
        _show(benches, load)


def _ledgers(server: PostgresServer, folder: Path, sizes: dict[str, Size]) -> list[Bench]:
    """Filled now, unless an earlier run has left them."""
    described = folder / "filled.json"
    shape = {name: [size.epochs, size.pipelines, size.claims, size.history] for name, size in sizes.items()}
    server.start()
    if not described.exists():
        server.restart(settings=FILLING)
        plans = _plans(server, folder, sizes["small"])
        for name, size in sizes.items():
            _err.print(f"filling the {name} ledger: {size.epochs:,} epochs of {size.pipelines} pipelines …")
            fill(server, name, size, plans, _err.print)
        server.restart(settings=SAFE)
        described.write_text(json.dumps(shape))
    elif json.loads(described.read_text()) != shape:
        raise SystemExit(f"{folder} has ledgers of other sizes: {described.read_text()}")
    for name in sizes:
        migrate(server.dsn(name))
    return [Bench(name, server.dsn(name), size, folder / "landing") for name, size in sizes.items()]


def _plans(server: PostgresServer, folder: Path, size: Size) -> tuple[Any, Any]:
    """What a real begin plans for an interval and for a cursor."""
    dsn = server.create_database("plans")
    migrate(dsn)
    server.restart(settings=SAFE)  # begin refuses to work with less
    bench = Bench("plans", dsn, Size(0, size.pipelines, 0, 0), folder / "landing")
    found = []
    for number in (1, 2):
        _, file, run, interval = bench._next(number)
        ledger = Ledger(dsn, "bench")
        found.append(_slim(begin(bench.runtime(number, ledger), run, interval).plan.to_json()))
        ledger.close()
        file.unlink()
    server.restart(settings=FILLING)
    return found[0], found[1]


def _slim(plan: Any) -> Any:
    """Without the source's arguments that are as they always are: ten million of them fill a disk."""
    spec = plan["sources"][SOURCE]["spec"]
    spec["arguments"] = {name: spec["arguments"][name] for name in ("path", "schema")}
    return plan


def _measure(
    benches: list[Bench], rounds: int, status_rounds: int, load_pipelines: int, load_seconds: float
) -> dict[str, Any]:
    chance = random.Random(1)
    for number in range(-3, rounds):
        if number == 0:  # what came before has warmed caches up
            for bench in benches:
                bench.seconds.clear()
        for bench in benches:
            others = [1, 2, 2 * chance.randrange(bench.size.pipelines // 2) + 1]
            for pipeline in [*others, others[-1] + 1]:
                bench.epoch(pipeline)
                bench.recovery(pipeline)
        if number % 20 == 0:
            _err.print(f"round {number} of {rounds}")
    for _ in range(status_rounds):
        for bench in benches:
            bench.status()
    if not load_seconds:
        return {}
    from benchmarks.ledger_load import run_load

    _err.print(f"{load_pipelines} pipelines, an epoch a second each, for {load_seconds:.0f} s …")
    large = benches[-1]
    numbers = range(large.size.pipelines - load_pipelines + 1, large.size.pipelines + 1)
    return run_load(large, list(numbers), load_seconds)


def _ways(benches: list[Bench], load: dict[str, Any]) -> list[Way]:
    """The same as the other benchmarks have it."""
    steps = [
        Way("ledger", f"{step}, {bench.name}", seconds=seconds)
        for bench in benches
        for step, seconds in bench.seconds.items()
    ]
    return [*steps, *([Way("load", "an epoch, begun each second", seconds=load.pop("seconds"))] if load else [])]


def _show(benches: list[Bench], load: dict[str, Any]) -> None:
    out = Console(width=max(Console().width, 130))
    large = benches[-1].size
    table = Table(
        title=f"ms, connecting included; small: {benches[0].size.epochs:,} epochs, large: {large.epochs:,} epochs "
        f"of {large.pipelines} pipelines, {large.claims:,} claims a source",
        title_justify="left",
    )
    columns = ("step", "small p50", "large p50", "small p99", "large p99", "p99 more", "n")
    for column in columns:
        table.add_column(column, justify="left" if column == "step" else "right")
    for step in benches[0].seconds:
        times = [bench.seconds[step] for bench in benches]
        middles = [f"{percentile(found, 0.5) * 1000:.1f}" for found in times]
        highs = [percentile(found, 0.99) * 1000 for found in times]
        table.add_row(
            step, *middles, *(f"{one:.1f}" for one in highs), f"{highs[1] - highs[0]:+.1f}", str(len(times[1]))
        )
    out.print(table)
    for what, value in load.items():
        if what == "seconds":
            continue
        out.print(f"load: {what}: {value}")


if __name__ == "__main__":
    app()

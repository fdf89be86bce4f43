"""`python -m benchmarks.profile`: where the time of one small epoch goes, by step and by process, with counts.

Whole epochs by `run_epoch` on a warm Spark Connect server, to which each epoch connects. The counts come from
Spark's event log and its server's log, from PostgreSQL's log of statements, and from a `chmod` that notes that it was
called; a step inside another one is part of it. Counts don't move with the machine, seconds do.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from itertools import count
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Annotated, Any
from unittest.mock import patch

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import data, paths
from benchmarks.cpu import cpu_of_tree
from benchmarks.servers import running
from lockstep import Pipeline, Windows, run_epoch
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from stack.home import Home

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
WHOLE = "epoch"
#: Steps as they are called, where they are looked up; indented: part of the one above.
STEPS = {
    "migrate": "lockstep.run.migrate",
    "begin": "lockstep.run.begin",
    "stage": "lockstep.run.stage",
    "  open the session": "lockstep.spark.session.connect",
    "  Spark": "lockstep.compute.stage.stage_epoch",
    "  seal": "lockstep.wal.staging.Staging.seal",
    "prepare": "lockstep.run.prepare",
    "commit": "lockstep.run.commit",
    "publish": "lockstep.run.publish",
    "cleanup": "lockstep.run.cleanup",
}
#: The same of a pack, whose steps go on side by side: of each the clock, and this process's work for it.
PACK_STEPS = {
    "begin": "lockstep.protocol.pack.begin_unless_idle",
    "stage": "lockstep.protocol.pack.stage",
    "  open the session": STEPS["  open the session"],
    "  Spark": STEPS["  Spark"],
    "  seal": STEPS["  seal"],
    "prepare": "lockstep.protocol.pack.prepare",
    "commit": "lockstep.protocol.pack.commit_together",
    "publish": "lockstep.protocol.pack.publish",
    "cleanup": "lockstep.protocol.pack.cleanup",
}
_POSTGRES = {"log_statement": "all", "log_connections": "on", "log_line_prefix": ""}
_SECONDS = 30.0  #: for Spark's event log to tell the end of what has ended


@dataclass
class Spent:
    """What one step took: wall seconds, CPU seconds by process, counts by what was counted."""

    wall: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: Spent) -> None:
        self.wall += other.wall
        for mine, theirs in ((self.cpu, other.cpu), (self.counts, other.counts)):
            for name, value in theirs.items():
                mine[name] = mine.get(name, 0) + value  # type: ignore[assignment]


@dataclass(frozen=True)
class Profile:
    """One epoch: what each step spent, and what Spark ran."""

    steps: Mapping[str, Spent]
    spark: Mapping[str, int]
    executions: tuple[str, ...]  #: Spark's SQL executions, with their jobs


class Meters:
    """Reads clocks and counters of the processes and logs of a benchmark's servers."""

    def __init__(self, place: paths.Place, events: Path, forks: Path) -> None:
        self._servers = place.servers
        self._logs = place.logs
        self._events = events
        self._forks = forks
        self._seen: Counter[str] = Counter()
        self._ends: Counter[Path] = Counter()  # as far as each log was counted

    def read(self) -> Spent:
        cpu = {name: cpu_of_tree(pid) for name, pid in self._servers.items()}
        statements = self._logs["postgres"].read_text(errors="replace")
        counts = {
            "statements": statements.count("LOG:  statement:"),
            "connections": statements.count("connection authorized"),
            "compiles": len(
                re.findall(r"Code generated in [\d.]+ ms", self._logs["spark"].read_text(errors="replace"))
            ),
            "chmod": len(self._forks.read_text()) if self._forks.exists() else 0,
        }
        return Spent(time.perf_counter(), {**cpu, "own": time.process_time()}, counts)

    def events(self, start: int) -> tuple[list[dict[str, Any]], int]:
        """Spark's events from byte `start` of its log on, as soon as every SQL execution of them has ended."""
        [log] = [path for path in self._events.iterdir() if not path.name.startswith(".")]
        deadline = time.monotonic() + _SECONDS
        while True:
            text = log.read_bytes()[start:]
            whole = text[: text.rfind(b"\n") + 1]
            found = [json.loads(line) for line in whole.splitlines()]
            open_ones = sum(("ExecutionStart" in one["Event"]) - ("ExecutionEnd" in one["Event"]) for one in found)
            if not open_ones or time.monotonic() > deadline:
                return found, start + len(whole)
            time.sleep(0.02)


def profile_epoch(meters: Meters, epoch: Callable[[], object], seen: int) -> tuple[Profile, int]:
    """Run `epoch` with every step timed. `seen`: bytes of Spark's event log that are of before; returned: of now."""
    _, seen = meters.events(seen)
    spent: dict[str, Spent] = {name: Spent() for name in STEPS}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def timing(*arguments: Any, **named: Any) -> Any:
            with _spending(meters, spent.setdefault(name, Spent())):
                return call(*arguments, **named)

        return timing

    with ExitStack() as stack:
        for name, where in STEPS.items():
            stack.enter_context(patch(where, timed(name, _found(where))))
        timed(WHOLE, epoch)()
    events, seen = meters.events(seen)
    return Profile(spent, *_count(events)), seen


def profile_pack(meters: Meters, pack: Callable[[], object], epochs: int, seen: int) -> tuple[Profile, int]:
    """The same of `pack`, which moves so many: all figures are of one of them."""
    _, seen = meters.events(seen)
    spent: dict[str, Spent] = {name: Spent() for name in PACK_STEPS}
    turn = Lock()

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def timing(*arguments: Any, **named: Any) -> Any:
            wall, own = time.perf_counter(), time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                taken = Spent(time.perf_counter() - wall, {"own": time.thread_time() - own})
                with turn:
                    spent[name].add(taken)

        return timing

    with ExitStack() as stack:
        for name, where in PACK_STEPS.items():
            stack.enter_context(patch(where, timed(name, _found(where))))
        with _spending(meters, spent.setdefault(WHOLE, Spent())):
            pack()
    events, seen = meters.events(seen)
    for one in spent.values():
        one.wall /= epochs
        one.cpu = {name: value / epochs for name, value in one.cpu.items()}
        one.counts = {name: round(value / epochs) for name, value in one.counts.items()}
    counts, executions = _count(events)
    return Profile(spent, {name: round(value / epochs) for name, value in counts.items()}, executions[-3:]), seen


@contextmanager
def _spending(meters: Meters, spent: Spent) -> Iterator[None]:
    before = meters.read()
    try:
        yield
    finally:
        after = meters.read()
        cpu = {name: after.cpu[name] - before.cpu[name] for name in after.cpu}
        counts = {name: after.counts[name] - before.counts[name] for name in after.counts}
        spent.add(Spent(after.wall - before.wall, cpu, counts))


def _found(where: str) -> Any:
    return pkgutil.resolve_name(where)


def _count(events: list[dict[str, Any]]) -> tuple[dict[str, int], tuple[str, ...]]:
    kinds = Counter(one["Event"].rpartition(".")[2] for one in events)
    jobs = Counter(
        (one.get("Properties") or {}).get("spark.sql.execution.id")
        for one in events
        if one["Event"] == "SparkListenerJobStart"
    )
    executions = tuple(
        f"{jobs[str(one['executionId'])]} jobs: {_node(one)}"
        for one in events
        if one["Event"].endswith("SparkListenerSQLExecutionStart")
    )
    counts = {
        "jobs": kinds["SparkListenerJobStart"],
        "stages": kinds["SparkListenerStageCompleted"],
        "tasks": kinds["SparkListenerTaskEnd"],
        "SQL executions": kinds["SparkListenerSQLExecutionStart"],
    }
    return counts, executions


def _node(event: Mapping[str, Any]) -> str:
    return str(event.get("sparkPlanInfo", {}).get("nodeName", ""))


@contextmanager
def _counting_chmod(folder: Path) -> Iterator[Path]:
    """Processes that are started meanwhile find a `chmod` that leaves a byte in the file that is returned."""
    real, noted = shutil.which("chmod"), folder / "chmod.calls"
    own = folder / "bin"
    own.mkdir(parents=True)
    (own / "chmod").write_text(f'#!/bin/sh\nprintf x >> {noted}\nexec {real} "$@"\n')
    (own / "chmod").chmod(0o755)
    with patch.dict(os.environ, {"PATH": f"{own}{os.pathsep}{os.environ['PATH']}"}):
        yield noted


@contextmanager
def metered(folder: Path) -> Iterator[tuple[paths.Place, Meters]]:
    """Both servers below `folder`, with everything on that the meters read."""
    events = folder / "events"
    events.mkdir(parents=True)
    logging = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    with (
        _counting_chmod(folder) as forks,
        running(folder, jdbc=False, spark_settings=logging, postgres_settings=_POSTGRES) as place,
    ):
        yield place, Meters(place, events, forks)


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows an epoch.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="Epochs that are measured.")] = 5,
    warm: Annotated[int, typer.Option(min=0, help="Epochs that go before.")] = 20,
    windows: Annotated[bool, typer.Option(help="Fold the rows into one-hour windows, with state.")] = False,
    pack: Annotated[int, typer.Option(min=0, help="So many epochs by one pack a round; 0: one epoch.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Profile epochs, print the medians."""
    if windows and pack:
        raise typer.BadParameter("epochs with windows go one after the other: give one of both", param_hint="--pack")
    folder = Home.from_environment().root / "bench-profile"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        profiles = _profiles(folder, rows, rounds, warm, windows, pack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        typer.echo(json.dumps(profiles, default=vars))
    else:
        _show(profiles, rows, windows, pack)


def _profiles(folder: Path, rows: int, rounds: int, warm: int, windows: bool, pack: int) -> list[Profile]:
    with metered(folder) as (place, meters):
        csv = data.write_csv(data.flights(rows), folder / "rows.csv")
        table = "profile_windows" if windows else "profile_rows"
        epoch = _windowed(place, csv, table) if windows else _plain(place, csv, table)
        _err.print(f"{warm} epochs to warm up …")
        for _ in range(warm):
            epoch()
        found, seen = [], 0
        for number in range(rounds):
            _err.print(f"epoch {number + 1} of {rounds} …")
            if pack:
                profile, seen = profile_pack(meters, lambda: paths.packed_epochs(place, csv, table, pack), pack, seen)
            else:
                profile, seen = profile_epoch(meters, epoch, seen)
            found.append(profile)
        return found


def _plain(place: paths.Place, csv: Path, table: str) -> Callable[[], object]:
    paths.fresh_table(place.warehouse, table)
    return lambda: paths.one_epoch(place, csv, table, place.url)


def _windowed(place: paths.Place, csv: Path, table: str) -> Callable[[], object]:
    hourly = Windows(
        schema="origin STRING, flights BIGINT, delay BIGINT",
        key=["origin"],
        time="time_hour",
        size=timedelta(hours=1),
        aggregates={"flights": "count(*)", "delay": "sum(dep_delay)"},
    )

    def fold(inputs: Any, state: Any) -> Any:
        found = hourly.fold(inputs["flights"], state)
        return {"hourly": found.results, "late": found.late}, found.state

    landing = place.folder / "landing" / table
    landing.mkdir(parents=True)
    numbers = count()
    pipeline = Pipeline(
        table,
        {
            "flights": FileSource(
                str(landing), format="csv", schema=data.SPARK_SCHEMA, options={"nullValue": "NA"}, max_files_per_epoch=1
            )
        },
        fold,
        [FileSink(name, output=name, path=str(place.folder / "out" / name)) for name in ("hourly", "late")],
        state=hourly.state(),
        version="bench",
    )

    def epoch() -> object:
        shutil.copy(csv, landing / f"{next(numbers):06}.csv")
        staging = str(place.folder / "staging")
        return run_epoch(pipeline, ledger=place.ledger, staging=staging, spark=place.url, connections={})

    return epoch


def _show(profiles: list[Profile], rows: int, windows: bool, pack: int) -> None:
    out = Console(width=max(Console().width, 130))
    what = f"epochs of {rows:,} rows{', windows of an hour' if windows else ''}"
    if pack:
        what = f"packs of {pack} {what}; of each epoch"
    table = Table(title=f"{len(profiles)} {what}, medians; CPU in ms", title_justify="left")
    names = ("spark", "postgres", "own")
    counted = ("statements", "connections", "compiles", "chmod")
    for column in ("step", "ms", *(f"CPU {name}" for name in names), *counted):
        table.add_column(column, justify="left" if column == "step" else "right")
    for step in profiles[0].steps:
        spent = [profile.steps[step] for profile in profiles]
        cells = [
            median(one.wall for one in spent) * 1000,
            *(median(_cpu(one, name) for one in spent) for name in names),
        ]
        counts = [median(one.counts.get(name, 0) for one in spent) for name in counted]
        table.add_row(step, *(f"{cell:.0f}" for cell in cells), *(f"{cell:g}" for cell in counts))
    out.print(table)
    out.print("Spark: " + ", ".join(f"{median(one.spark[n] for one in profiles):g} {n}" for n in profiles[0].spark))
    for line in profiles[-1].executions:
        out.print(f"  {line}")


def _cpu(spent: Spent, name: str) -> float:
    return spent.cpu.get(name, 0.0) * 1000


if __name__ == "__main__":
    app()

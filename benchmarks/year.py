"""`python -m benchmarks.year`: the days of the demo's flights in one call of `run_epochs`, and some one by one.

Two sources joined, a table and a folder: the pipeline of `make demo`, without Airflow. Quote ratios, not seconds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.cpu import cpu_seconds
from benchmarks.paths import Place, rows_in
from benchmarks.servers import running
from benchmarks.ways import Way, show
from lockstep import Pipeline, run_epoch, run_epochs
from lockstep.sinks import FileSink, PostgresSink
from stack.home import Home
from stack.landing import demo_days, land

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
YEAR = 365
GROUP, ALONE = "demo", "a day by itself"
_WARM = 3


def packed(days: int) -> str:
    """The way's name: of a part of the year the aim doesn't speak."""
    return f"{days} days, packed"


@app.command()
def main(
    days: Annotated[int, typer.Option(min=1, max=YEAR, help="The first so many days of 2013, in one pack.")] = YEAR,
    rounds: Annotated[int, typer.Option(min=1, help="How many days are moved one by one.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure the pack once, and days one by one before it; print seconds and CPU of all processes."""
    folder = Home.from_environment().root / "bench-year"
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["LOCKSTEP_HOME"] = str(folder)  # from which the pipeline's paths count, as soon as it is imported
    try:
        land(folder / "landing", demo_days(max(days, rounds + _WARM)))
        with running(folder, jdbc=False) as place:
            ways = _measured(place, days, rounds)
            rows = rows_in(place.warehouse, "flights")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"flights of {days} days", as_json)


def _measured(place: Place, days: int, rounds: int) -> list[Way]:
    from spark_apps.flights import pipeline as flights

    alone, pack = Way(GROUP, ALONE), Way(GROUP, packed(days))
    by_itself = _by_itself(flights, place.folder)
    for number, day in enumerate(demo_days(rounds + _WARM)):
        before, started = _cpu(place), time.perf_counter()
        run_epoch(by_itself, interval=_interval(day), spark=place.url, **_places(place))
        if number >= _WARM:
            alone.seconds.append(time.perf_counter() - started)
            alone.cpu.append(_cpu(place) - before)
    _err.print(f"{days} days in one pack …")
    before, started = _cpu(place), time.perf_counter()
    run_epochs(flights, intervals=[_interval(day) for day in demo_days(days)], spark=place.url, **_places(place))
    pack.seconds.append(time.perf_counter() - started)
    pack.cpu.append(_cpu(place) - before)
    return [pack, alone]


def _by_itself(flights: Pipeline, folder: Path) -> Pipeline:
    """The same into places of its own."""
    sinks: Sequence[Any] = [
        PostgresSink("warehouse", tables={"flights": "public.flights_alone"}, connection="warehouse", create=True),
        FileSink("delays", output="delays", path=str(folder / "out" / "delays_alone"), format="parquet"),
    ]
    return replace(flights, name="flights_alone", sinks=sinks)


def _places(place: Place) -> dict[str, Any]:
    staging = str(place.folder / "staging")
    return {"ledger": place.ledger, "staging": staging, "connections": {"warehouse": place.warehouse}}


def _interval(day: date) -> tuple[datetime, datetime]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _cpu(place: Place) -> float:
    return cpu_seconds(place.servers.values())


if __name__ == "__main__":
    app()

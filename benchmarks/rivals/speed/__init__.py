"""Flink, Structured Streaming, Spark JDBC, dlt and Lockstep do the same work, by turns in one run.

`postgres`: flights by 12 columns from files into one table. `windows`: events from Kafka into hours into Kafka.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.rivals.speed import into_postgres
from benchmarks.servers import running
from benchmarks.ways import Way, measure, medians
from stack.home import Home

_err = Console(stderr=True)


def main(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the epoch into PostgreSQL.")] = 3_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured, after one round to warm up.")] = 2,
    only: Annotated[str, typer.Option(help="Part of a way's name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """How fast: Flink's XA sink, Spark's JDBC append, dlt and Lockstep, each from CSV or Parquet into PostgreSQL."""
    work = Home.from_environment().root / "rivals"
    run = work / "speed"
    shutil.rmtree(run, ignore_errors=True)
    try:
        ways = _measure(work, run, rows, rounds, only)
    finally:
        shutil.rmtree(run, ignore_errors=True)
    if as_json:
        typer.echo(json.dumps([way.to_json(rows) for way in ways]))
    else:
        Console(width=max(Console().width, 120)).print(medians(ways, rows, f"{rows:,} rows, medians"))


def _measure(work: Path, run: Path, rows: int, rounds: int, only: str) -> list[Way]:
    with ExitStack() as stack:
        place = stack.enter_context(running(run, jdbc=True))
        _err.print(f"making {rows:,} rows …")
        every = into_postgres.ways(stack, place, work, rows, _err.print)
        ways = [way for way in every if only in way.name]
        _err.print("warming up …")
        measure(ways, 1, _err.print, place.servers.values())
        for way in ways:
            way.forget()
        measure(ways, rounds, _err.print, place.servers.values())
    return ways

"""`python -m benchmarks.audits`: what share of a whole epoch its audits are.

Whole epochs by `run_epoch` from Parquet into PostgreSQL on a warm Spark, by turns. Quote ratios, not seconds.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import data, paths
from benchmarks.servers import running
from benchmarks.ways import Way, measure, show
from lockstep.audits import Audit, accepted_values, in_range, not_null, row_count, sql, steady, unique, volume
from stack.home import Home

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)

COUNTED = (row_count("flights"), volume("flights"))
READY = (
    *COUNTED,
    not_null("flights", "carrier"),
    accepted_values("flights", "origin", ["EWR", "JFK", "LGA"]),
    in_range("flights", "month", 1, 12),
)
AWAY = (
    not_null("flights", "carrier", quarantine=True),
    accepted_values("flights", "origin", ["EWR", "JFK", "LGA"], quarantine=True),
    in_range("flights", "month", 1, 12, quarantine=True),
)
WAYS: dict[str, Sequence[Audit]] = {
    "no audits": (),
    "2 of what the seal counts": COUNTED,
    "5 ready ones, of 3 columns": READY,
    "3 that send to quarantine, none goes": AWAY,
    "these, 3 % of the rows go": (*AWAY, in_range("flights", "day", at_least=2, quarantine=True)),
    "6, one a unique key": (*READY, unique("flights", "id")),
    "7, of all columns": (
        *READY,
        steady("flights", "count(*) FILTER (WHERE dep_delay IS NULL)", name="nulls"),
        sql("back_in_time", "SELECT * FROM flights WHERE arr_delay < -1440", outputs="flights"),
    ),
}


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Rows an epoch.")] = 3_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure each way in turn, print rows a second and shares."""
    folder = Home.from_environment().root / "bench-audits"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        ways = _measured(folder, rows, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"epochs of {rows:,} rows", as_json)


def _measured(folder: Path, rows: int, rounds: int) -> list[Way]:
    parquet = data.write_parquet(data.flights(rows), folder / "flights.parquet")
    with running(folder, jdbc=False) as place:

        def epoch(name: str) -> float:
            table = f"audited_{list(WAYS).index(name)}"  # a pipeline of its own, with a history of its own
            return paths.whole_epoch(place, parquet, rows, table, WAYS[name]).seconds

        ways = [Way("whole epochs", name, lambda name=name: epoch(name)) for name in WAYS]  # type: ignore[misc]
        for name in WAYS:
            epoch(name)  # warm
        servers = place.servers.values()
        measure(ways, rounds, _err.print, servers)
    return ways


if __name__ == "__main__":
    app()

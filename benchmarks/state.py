"""`python -m benchmarks.state`: what keyed state costs an epoch, whose keys are all, a tenth, or a thousandth of it.

Whole epochs by `run_epoch` on a warm Spark, each round one more of every pipeline. Quote ratios, not seconds.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import typer
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.paths import Place
from benchmarks.servers import running
from benchmarks.ways import Way, measure, show
from lockstep import KeyedState, Pipeline, run_epoch
from lockstep.sinks import FileSink
from lockstep.sources import SequenceSource
from stack.home import Home

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)
MANY, FEW = 1000, 10  #: keys that an epoch touches


def _counts(inputs: Any, touched: int) -> Any:
    # spread over the keys of the largest state, so that no two of few fall into one bucket for being neighbours
    return inputs["numbers"].groupBy((F.col("value") % touched * 997).alias("k")).agg(F.count("*").alias("n"))


def _stateless(touched: int) -> Callable[..., Any]:
    return lambda inputs: {"counts": _counts(inputs, touched)}


def _filling(touched: int, keys: int) -> Callable[..., Any]:
    """The first epoch: every key gets a row, those that later ones touch among them."""

    def fill(inputs: Any, state: Any) -> Any:
        every = (
            inputs["numbers"]
            .sparkSession.range(keys)
            .selectExpr(f"IF(id < {touched}, id * 997, id + {touched * 997}) AS k", "0L AS n")
        )
        return {"counts": _counts(inputs, touched)}, {"counts": every}

    return fill


def _adding(touched: int) -> Callable[..., Any]:
    def add(inputs: Any, state: Any) -> Any:
        new = _counts(inputs, touched)
        both = state["counts"].of(new).unionByName(new).groupBy("k").agg(F.sum("n").alias("n"))
        return {"counts": both}, {"counts": both}

    return add


def _way(place: Place, rows: int, touched: int, keys: int, buckets: int) -> Way:
    """Epochs of `rows` rows that touch `touched` keys; `keys`: how many the state has, 0 for none."""
    name = f"t{touched}-k{keys}"
    plain = Pipeline(
        name,
        {"numbers": SequenceSource(rows)},
        _stateless(touched),
        [FileSink("files", output="counts", path=str(place.folder / "out" / name))],
    )
    state = {"counts": KeyedState("k BIGINT, n BIGINT", key=["k"], buckets=buckets)}
    pipeline = replace(plain, transform=_adding(touched), state=state) if keys else plain

    def epoch(of: Pipeline) -> float:
        started = time.perf_counter()
        staging = str(place.folder / "staging")
        run_epoch(of, ledger=place.ledger, staging=staging, spark=place.spark, connections={})
        return time.perf_counter() - started

    epoch(replace(pipeline, transform=_filling(touched, keys)) if keys else pipeline)
    epoch(pipeline)  # warm
    said = f"a state of {keys:,} keys, {buckets} buckets" if keys else "no state"
    return Way(f"{touched:,} keys touched", said, lambda: epoch(pipeline))


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=MANY, help="Rows an epoch.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure each way in turn, print rows a second and shares."""
    folder = Home.from_environment().root / "bench-state"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with running(folder, jdbc=False) as place:
            ways = _measured(place, rows, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"epochs of {rows:,} rows", as_json)


def _measured(place: Place, rows: int, rounds: int) -> list[Way]:
    _err.print("filling the states …")
    ways = [_way(place, rows, MANY, MANY * times, 16) for times in (0, 1, 10, 1000)]
    ways += [_way(place, rows, FEW, FEW * times, 256) for times in (0, 1, 10, 1000, 100_000)]
    measure(ways, rounds, _err.print)
    return ways


if __name__ == "__main__":
    app()

"""`python -m benchmarks.epochs`: how fast epochs move, against the target's limit and what users do today.

One interleaved run: each round measures every path once, so that a machine that slows down slows all of them. Quote
ratios, not seconds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import data, paths
from benchmarks.servers import running
from benchmarks.ways import Way
from lockstep.wal.staging import Staging
from stack.home import Home

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)

LIMIT, SINK, SINK_WAL, EPOCH, JDBC = (
    "copy limit",
    "sink two_phase",
    "sink write_ahead",
    "whole epoch",
    "Spark JDBC append",
)
PARQUET, BARE, BARE_PARQUET = "whole epoch, Parquet", "bare Spark + COPY", "bare Spark + COPY, Parquet"
SMALL, MANY, PACKED = "one 100k epoch", "30 epochs of 100k", "30 epochs of 100k, packed"
GROUP, DAG_RUNS = "epochs", "DAG runs"
_MEANING = {
    LIMIT: "COPY BINARY of a pre-encoded file, one session",
    SINK: "PostgresSink from a sealed WAL: prepare + publish",
    SINK_WAL: "the same by write_ahead: validate + publish",
    EPOCH: "run_epoch: CSV → Spark → WAL → Postgres, warm",
    BARE: "Spark reads the same CSV, writes Parquet; then the copy limit",
    PARQUET: "run_epoch: Parquet → Spark → WAL → Postgres, warm",
    BARE_PARQUET: "the same of the same Parquet",
    JDBC: "Spark reads the same CSV, appends by JDBC; promises nothing",
    SMALL: "run_epoch, warm",
    MANY: "run_epoch thirty times, warm",
    PACKED: "run_epochs once, for thirty intervals, warm",
}


_LIMITS = ((EPOCH, BARE), (PARQUET, BARE_PARQUET))


@dataclass
class Bench:
    """Every timing of one run, by path, and what else was measured."""

    rows: int
    rounds: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)  #: peak bytes of a publishing process
    dag: dict[str, list[float]] = field(default_factory=dict)  #: seconds of a run, as the scheduler records them
    notes: list[str] = field(default_factory=list)
    only: tuple[str, ...] = ()  #: names of the paths that are measured; all if empty

    def measure(self, name: str, work: Callable[[], paths.Timing]) -> None:
        """Measure `name`, unless it isn't asked for."""
        if not self.only or name in self.only:
            self.add(name, work())

    def add(self, name: str, timing: paths.Timing) -> None:
        self.seconds.setdefault(name, []).append(timing.seconds)
        self.moved[name] = timing.rows

    def middle(self, name: str) -> float:
        return median(self.seconds[name])

    def rate(self, name: str) -> float:
        """Rows a second, by the median."""
        return self.moved[name] / self.middle(name)

    def ways(self) -> list[Way]:
        """The same as the other benchmarks have it; runs of DAGs in a group of their own."""
        return [
            *(Way(GROUP, name, seconds=seconds) for name, seconds in self.seconds.items()),
            *(Way(DAG_RUNS, name, seconds=seconds) for name, seconds in self.dag.items()),
        ]

    def ratios(self) -> dict[str, float]:
        """What the aims speak of. Larger is better but for the DAG's."""
        found = {
            f"{path} / {base}, speed": self.rate(path) / self.rate(base)
            for path, base in ((SINK, LIMIT), (SINK_WAL, LIMIT), (EPOCH, JDBC), (PARQUET, JDBC), *_LIMITS)
            if path in self.seconds and base in self.seconds
        }
        if self.dag:
            found["DAG run / DAG of empty tasks, time"] = median(self.dag["epoch"]) / median(self.dag["empty"])
        return found


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the large epoch.")] = 3_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each path is measured.")] = 5,
    jdbc: Annotated[bool, typer.Option(help="Also measure Spark's JDBC append (fetches its driver).")] = True,
    dag: Annotated[bool, typer.Option(help="Also measure DAG runs in a real Airflow.")] = True,
    only: Annotated[
        list[str] | None, typer.Option(help="Measure this path alone, no memory and no DAG; may be given again.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure, print a table."""
    if unknown := sorted(set(only or ()) - set(_MEANING)):
        raise typer.BadParameter(f"{unknown}: there are {', '.join(_MEANING)}", param_hint="--only")
    bench = Bench(rows, rounds, only=tuple(only or ()))
    folder = Home.from_environment().root / "bench"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _measure_paths(bench, folder, jdbc)
        if dag and not only:
            from benchmarks.dag_runs import measure_dag_runs

            _err.print("DAG runs: starting Airflow …")
            bench.dag = measure_dag_runs(folder / "airflow", rounds=max(rounds, 3))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        ways = [way.to_json(bench.rows) for way in bench.ways()]
        typer.echo(json.dumps({**asdict(bench), "ratios": bench.ratios(), "ways": ways}))
    else:
        _show(bench)


def _measure_paths(bench: Bench, folder: Path, jdbc: bool) -> None:
    _err.print(f"making {bench.rows:,} rows …")
    table = data.flights(bench.rows)
    csv = data.write_csv(table, folder / "flights.csv")
    small_csv = data.write_csv(table.slice(0, 100_000), folder / "small.csv")
    parquet = data.write_parquet(table, folder / "flights.parquet")
    encoded = data.write_encoded(table, folder / "flights.bin", 1)
    wal = seal(table, folder, 1)
    small_wal = seal(table.slice(0, min(100_000, bench.rows)), folder, 2)
    del table
    with running(folder, jdbc=jdbc) as place:
        if place.jdbc is None:
            bench.notes.append("Spark JDBC append is left out: its driver could not be had (or --no-jdbc)")
        paths.whole_epoch(place, small_csv, 100_000)  # warm
        for number in range(bench.rounds):
            _err.print(f"round {number + 1} of {bench.rounds} …")
            bench.measure(LIMIT, partial(paths.copy_limit, place, encoded, bench.rows))
            bench.measure(SINK, partial(paths.sink_from_wal, place, wal, bench.rows, "two_phase"))
            bench.measure(SINK_WAL, partial(paths.sink_from_wal, place, wal, bench.rows, "write_ahead"))
            bench.measure(EPOCH, partial(paths.whole_epoch, place, csv, bench.rows))
            bench.measure(BARE, partial(paths.bare_spark, place, csv, encoded, bench.rows))
            bench.measure(PARQUET, partial(paths.whole_epoch, place, parquet, bench.rows, "parquet_rows"))
            bench.measure(BARE_PARQUET, partial(paths.bare_spark, place, parquet, encoded, bench.rows))
            if place.jdbc is not None:
                bench.measure(JDBC, partial(paths.jdbc_append, place, csv, bench.rows))
            bench.measure(SMALL, partial(paths.whole_epoch, place, small_csv, 100_000))
        bench.measure(MANY, partial(_many, place, small_csv))
        bench.measure(PACKED, partial(paths.packed_epochs, place, small_csv, "packed_rows", 30))
        if bench.only:
            return
        for protocol in ("two_phase", "write_ahead"):
            bench.memory[f"{protocol}, 100k rows"] = paths.peak_memory(place, small_wal, protocol)
            bench.memory[f"{protocol}, {bench.rows:,} rows"] = paths.peak_memory(place, wal, protocol)


def seal(table: Any, folder: Path, token: int) -> tuple[str, str]:
    """Seal `table` as a WAL of two files, as two Spark tasks leave it; its folder and its manifest's hash."""
    staging = Staging(str(folder / "staging"))
    wal = staging.folder(paths.DEPLOYMENT, "bench", token, token)
    staging.create(wal)
    half = (table.num_rows + 1) // 2
    for number in range(2):
        data.write_parquet(
            table.slice(number * half, half), folder / "staging" / wal / "flights" / f"part-0000{number}.zstd.parquet"
        )
    manifest = staging.seal(
        wal,
        deployment=paths.DEPLOYMENT,
        pipeline="bench",
        epoch=token,
        token=token,
        outputs=("flights",),
        observed={"flights": table.num_rows},
        sources={},
    )
    return wal, manifest.hash


def _many(place: paths.Place, csv: Path) -> paths.Timing:
    paths.fresh_table(place.warehouse, "epoch_rows")
    return paths.timed(lambda: sum(paths.one_epoch(place, csv, "epoch_rows") for _ in range(30)))


def _show(bench: Bench) -> None:
    out = Console(width=max(Console().width, 150))
    table = Table(title=f"{bench.rows:,} rows by 12 columns, {bench.rounds} rounds, medians", title_justify="left")
    for column in ("path", "what", "s", "min-max", "M rows/s", "of the limit"):
        table.add_column(column, justify="left" if column in ("path", "what") else "right")
    for name, seconds in bench.seconds.items():
        share = f"{bench.rate(name) / bench.rate(LIMIT):.0%}" if LIMIT in bench.seconds else ""
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        table.add_row(name, _MEANING[name], f"{median(seconds):.2f}", spread, f"{bench.rate(name) / 1e6:.2f}", share)
    out.print(table)
    for what, size in bench.memory.items():
        out.print(f"peak memory of a publishing process, {what}: {size / 1e6:.0f} MB")
    for what, seconds in bench.dag.items():
        out.print(f"DAG run, {what}: {median(seconds):.2f} s ({min(seconds):.2f}-{max(seconds):.2f})")
    for what, ratio in bench.ratios().items():
        out.print(f"{what}: {ratio:.2f}")
    for note in bench.notes:
        out.print(note)


if __name__ == "__main__":
    app()

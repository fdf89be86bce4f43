"""`python -m benchmarks.kafka`: rows a second out of Kafka and into it, against what does it without Lockstep.

One interleaved run on one broker: each round measures every way once. Quote ratios, not seconds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import kafka_sink, kafka_source
from benchmarks.ways import Way, measure, show
from stack.home import Home
from stack.kafka import KafkaBroker

app = typer.Typer(pretty_exceptions_enable=False)
_err = Console(stderr=True)

#: What is measured: given a broker, an empty folder and the number of rows, its ways while their servers run.
Part = Callable[[KafkaBroker, Path, int], AbstractContextManager[list[Way]]]
PARTS = ("source", "sink", "shards")


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1000, help="Records of 100 bytes.")] = 1_000_000,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topic that is read.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[str | None, typer.Option(help=f"Measure this alone: {', '.join(PARTS)}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure each way in turn, print rows a second and shares."""
    if only is not None and only not in PARTS:
        raise typer.BadParameter(f"{only!r} is none of {', '.join(PARTS)}", param_hint="--only")
    folder = Home.from_environment().root / f"bench-kafka-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    source = partial(kafka_source.ways, partitions=partitions)
    parts: dict[str, Part] = {"source": source, "sink": kafka_sink.ways, "shards": kafka_sink.shards}
    try:
        with ExitStack() as stack:
            broker = stack.enter_context(KafkaBroker(folder / "broker", optimised=True).for_a_while())
            ways = _measured(
                stack, broker, folder, rows, rounds, {name: parts[name] for name in ([only] if only else PARTS)}
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(ways, rows, f"{rows:,} records", as_json)


def _measured(
    stack: ExitStack, broker: KafkaBroker, folder: Path, rows: int, rounds: int, parts: dict[str, Part]
) -> list[Way]:
    ways = []
    for name, part in parts.items():
        _err.print(f"{name}: making {rows:,} records …")
        (folder / name).mkdir(parents=True)
        ways += stack.enter_context(part(broker, folder / name, rows))
    measure(ways, rounds, _err.print)
    return ways


if __name__ == "__main__":
    app()

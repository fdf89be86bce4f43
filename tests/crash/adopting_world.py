"""A world whose epochs go into a table that adopts their files, and the same rows into Postgres, decided together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from lockstep.pipeline import Pipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.postgres import PostgresSink
from tests.crash.world import Row, Rows, World, make_world

OUTPUT, SINK = "numbers", "lake"


@dataclass(frozen=True)
class Table:
    """How a test looks at a table without the sink. `rows`: all that a reader sees; `files`: what the table's newest
    state consists of, relative to `root`."""

    sink: Sink
    root: Path
    rows: Callable[[], pa.Table]
    files: Callable[[], list[str]]


@dataclass(frozen=True)
class AdoptingWorld(World):
    table: Table | None = None

    @property
    def lake(self) -> Table:
        assert self.table is not None
        return self.table

    def shown_in_files(self, day: int) -> Rows:
        return self._shown(lambda row: row[0] == day)

    bare_files = shown_in_files

    def shown(self) -> dict[str, dict[int, Rows]]:
        warehouse = self.execute(self.warehouse_dsn, "SELECT day, number, label FROM public.numbers")
        places = {"warehouse": Counter(warehouse), "table": self._shown(lambda row: True)}
        days = {row[0] for rows in places.values() for row in rows}
        return {
            place: {day: Counter({row: n for row, n in rows.items() if row[0] == day}) for day in days}
            for place, rows in places.items()
        }

    def _shown(self, wanted: Callable[[Row], bool]) -> Rows:
        found = self.lake.rows()
        columns = (found[name].to_pylist() for name in ("day", "number", "label"))
        return Counter(row for row in zip(*columns, strict=True) if wanted(row))

    def staged_at_home(self) -> list[str]:
        """Every file that stands below the table and was staged by somebody."""
        root = self.lake.root
        return sorted(str(path.relative_to(root)) for path in (root / "_lockstep").rglob("*.parquet"))

    def left_in_sink(self) -> list[str]:
        return sorted(set(self.staged_at_home()) - set(self.lake.files()))


def make_adopting_world(ledger_dsn: str, warehouse_dsn: str, folder: Path, table: Table) -> AdoptingWorld:
    """`table`: of a sink called `lake` that takes the output `numbers`."""
    world = make_world(ledger_dsn, warehouse_dsn, folder, "two_phase")
    [warehouse] = [sink for sink in world.pipeline.sinks if isinstance(sink, PostgresSink)]
    pipeline: Pipeline = replace(world.pipeline, sinks=[warehouse, table.sink])
    return AdoptingWorld(ledger_dsn, warehouse_dsn, folder, pipeline, world.staging_folder, table=table)

"""A pipeline that shows its rows in two tables, one by each protocol, and restates days that turned out wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.epoch import RunKey
from lockstep.ledger import migrate
from lockstep.pipeline import Pipeline
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sources import Source
from tests.crash.world import Numbers, Rows, World, rows_of_day, write_others, write_parquet

TABLES: Mapping[str, ProtocolName] = {"numbers": "two_phase", "archive": "write_ahead"}
Job = Callable[[str], None]


def wrong_rows(day: int) -> Rows:
    """What the first run of a day shows, by `write_others`."""
    rows = rows_of_day(day)
    return Counter([(*rows[0][:2], "!"), *rows[1:]])


@dataclass(frozen=True)
class RestatingWorld(World):
    """A day's first run brings wrong rows, its second one the right ones."""

    def tables(self, day: int) -> dict[str, Rows]:
        asked = "SELECT day, number, label FROM public.{} WHERE day = %s"
        return {name: Counter(self.execute(self.warehouse_dsn, asked.format(name), (day,))) for name in TABLES}

    def shown(self) -> dict[str, dict[int, Rows]]:
        found: dict[str, dict[int, Rows]] = {}
        for name in TABLES:
            days = found.setdefault(name, {})
            for row in self.execute(self.warehouse_dsn, f"SELECT day, number, label FROM public.{name}"):
                days.setdefault(row[0], Counter())[row] += 1
        return found

    def require_exactly_once(self, day: int) -> None:
        for name, rows in self.tables(day).items():
            assert rows == self.expected(day), name

    def require_old_or_new(self, day: int) -> None:
        for name, rows in self.tables(day).items():
            assert rows in (wrong_rows(day), Counter(rows_of_day(day))), name

    def struck_day(self) -> int:
        day = next(self.days)
        self.publish_wrong(day)
        return day

    def run_of(self, day: int, name: str) -> RunKey:
        return self.restating_run(day, name)

    require_undecided = require_old_or_new

    def is_moved(self, day: int) -> bool:
        return "cleaned" in self.lives(day)[1:]

    def require_tidy(self) -> None:
        assert self.prepared() == []
        assert self.left_in_staging() == []

    def publish_wrong(self, day: int) -> None:
        self.run(RunKey("restating", f"wrong {day}"), day, job=write_others)
        assert all(rows == wrong_rows(day) for rows in self.tables(day).values())

    def restating_run(self, day: int, name: str = "right") -> RunKey:
        return RunKey("restating", f"{name} {day}", restate="the label was wrong")

    def restate(self, day: int, start: str = "begin", job: Job = write_parquet) -> None:
        self.run(self.restating_run(day), day, start, job)

    def lives(self, day: int) -> list[str]:
        return [life.state.value for life in self._looking.generations(self.epoch_of(day))]


def make_restating_world(
    ledger_dsn: str, warehouse_dsn: str, folder: Path, source: Source | None = None, **arguments: Any
) -> RestatingWorld:
    migrate(ledger_dsn)
    for name in TABLES:
        columns = "day bigint, number int, label text, lockstep_epoch bigint"
        World.execute(warehouse_dsn, f"CREATE TABLE public.{name} ({columns})")
    pipeline = Pipeline(
        name="numbers",
        sources={"numbers": source or Numbers()},
        transform=lambda inputs: {"numbers": inputs["numbers"]},
        sinks=[
            PostgresSink(
                name,
                tables={"numbers": f"public.{name}"},
                connection="warehouse",
                protocol=protocol,
                lock_timeout=0.3,
                **arguments,
            )
            for name, protocol in TABLES.items()
        ],
    )
    return RestatingWorld(ledger_dsn, warehouse_dsn, folder, pipeline, folder / "staging")


def with_sinks(world: RestatingWorld, *sinks: Any) -> RestatingWorld:
    """The same world, whose definition has these sinks from now on."""
    return dataclasses.replace(world, pipeline=dataclasses.replace(world.pipeline, sinks=list(sinks)))

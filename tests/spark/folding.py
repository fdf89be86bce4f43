"""Folding epochs into windows one after the other, with the state in memory, as `run_epoch` does it with files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lockstep import Sessions, Windows
from lockstep.compute._counting import ObservedFrame
from lockstep.compute.state import StateRows
from lockstep.definition.keyed_state import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: key, value, event time in seconds, partition
Event = tuple[str | None, int | None, int | None, int]
Start = tuple[str, int]  #: key and start of a window, in seconds


@dataclass
class Told:
    """What one epoch gave out: results and late rows, its balance, the watermark in seconds."""

    results: list[dict[str, Any]]
    late: list[dict[str, Any]]
    balance: dict[str, int]
    watermark: float | None


@dataclass
class Epochs:
    """Epochs of one pipeline; every epoch's counts must balance."""

    spark: SparkSession
    windows: Windows | Sessions
    where: str | None = None
    told: list[Told] = field(default_factory=list)
    state: dict[str, DataFrame] = field(default_factory=dict)

    def fold(self, events: Iterable[Event]) -> Told:
        found = self.windows.fold(frame_of(self.spark, events), self.before(), self.where)
        results, late = rows_of(found.results), rows_of(found.late)
        for name, changes in found.state.items():
            self.state[name] = self._after(name, changes)
        balance = found.balance.settle_counts([found.results, found.late, *found.state.values()])
        told = Told(results, late, balance, found.watermark.timestamp() if found.watermark else None)
        self.told.append(told)
        return told

    def before(self) -> dict[str, StateRows]:
        from lockstep.spark.ddl import struct_of

        declared = self.windows.state()
        empty = {name: self.spark.createDataFrame([], struct_of(one.schema)) for name, one in declared.items()}
        return {
            name: StateRows.of_frame(self.spark, one, self.state.get(name, empty[name]), name)
            for name, one in declared.items()
        }

    def _after(self, name: str, changes: DataFrame) -> DataFrame:
        declared = self.windows.state()[name]
        changes = ObservedFrame.of(changes, rows="count(1)").checkpoint()
        added = changes.where(f"NOT {DELETED}").drop(DELETED) if DELETED in changes.columns else changes
        if name not in self.state:
            return added
        return self.state[name].join(changes, list(declared.key), "left_anti").unionByName(added).localCheckpoint()

    @property
    def results(self) -> list[dict[str, Any]]:
        return [row for told in self.told for row in told.results]

    @property
    def late(self) -> list[dict[str, Any]]:
        return [row for told in self.told for row in told.late]

    def last(self) -> dict[Start, dict[str, Any]]:
        """Each window as it was emitted last: what a sink that upserts holds."""
        return {(row["key"], row["start"]): row for row in self.results}


def frame_of(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    rows = spark.createDataFrame(list(events), "key STRING, value INT, second BIGINT, part INT")
    return rows.selectExpr("key", "value", "timestamp_seconds(second) AS at", "part")


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Its rows with times in seconds, without the time zone that a client would put them in."""
    times = {"window_start": "start", "window_end": "end", "at": "at"}
    columns = [
        f"CAST(unix_micros({name}) AS DOUBLE) / 1e6 AS {times[name]}" if name in times else name
        for name in frame.columns
    ]
    return [row.asDict() for row in frame.selectExpr(*columns).collect()]


def batch(windows: Windows, events: Iterable[Event]) -> dict[Start, Mapping[str, Any]]:
    """What one computation over all events gives, for `AGGREGATES`."""
    size, step, offset = (int(span.total_seconds()) for span in (windows.size, windows.step, windows.offset))
    found: dict[Start, list[int | None]] = {}
    for key, value, second, _ in events:
        assert key is not None and second is not None
        newest = (second - offset) // step * step + offset
        for start in range(newest, newest - size, -step):
            found.setdefault((key, start), []).append(value)
    return {window: _aggregated(values) for window, values in found.items()}


def batch_of_sessions(gap: int, events: Iterable[Event]) -> dict[Start, Mapping[str, Any]]:
    """The same of sessions, `gap` in seconds; each with its end."""
    found: dict[Start, list[int | None]] = {}
    last: dict[str, tuple[Start, int]] = {}
    ends: dict[Start, int] = {}
    for key, value, second, _ in sorted(events, key=lambda event: event[2] or 0):
        assert key is not None and second is not None
        start, before = last.get(key, ((key, second), second))
        start = start if second - before < gap else (key, second)
        last[key] = (start, second)
        found.setdefault(start, []).append(value)
        ends[start] = second + gap
    return {start: {**_aggregated(values), "end": ends[start]} for start, values in found.items()}


AGGREGATES = {
    "rows": "count(*)",
    "total": "sum(value)",
    "low": "min(value)",
    "high": "max(value)",
    "mean": "avg(value)",
}
SCHEMA = "key STRING, rows BIGINT, total BIGINT, low INT, high INT, mean DOUBLE"


def _aggregated(values: list[int | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {
        "rows": len(values),
        "total": sum(known) if known else None,
        "low": min(known, default=None),
        "high": max(known, default=None),
        "mean": sum(known) / len(known) if known else None,
    }


def aggregates(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in AGGREGATES}

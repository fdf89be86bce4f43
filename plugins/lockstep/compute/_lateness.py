"""Which of a row's windows are closed, and which forgotten, by the watermark that the epoch began with.

An event is late by what earlier epochs have seen, as in Spark: neither the order of rows within an epoch nor the size
of epochs makes a row late within its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.compute._balances import CountedFrame
from lockstep.compute._watermarks import BEGINNING, FIRST, LAST, Watermark
from lockstep.compute._window_columns import merged_aggregates
from lockstep.definition.windows import END, MISSED, START, SteppedDefinition, WindowDefinition, micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Of a row, beside its own columns: whether it passes the condition; its event time and its pane's start, in µs.
PASSES, AT, PANE = "_window_passes", "_window_at", "_window_pane"
_START, _BACK = "_window_start", "_window_back"  # of a part: its window's start, and how far before its pane's that is
#: Of a pane, where the watermark is one of partitions: which one its rows are of, and their greatest event time.
PARTITION, SEEN = "_window_partition", "_window_seen"
BEGAN = "_window_began"  #: of a pane of sessions: its rows' least event time; SEEN is the greatest
ROWS = "_window_rows"  #: of a part of a window: the rows of which it is the newest window


@dataclass(frozen=True)
class Bounds:
    """In µs: windows that end by `closed` are closed, by `forgotten` forgotten.

    `newest` and `oldest`: SQL for where a row's newest and oldest windows end.
    """

    closed: int
    forgotten: int
    size: int
    step: int

    @classmethod
    def of(cls, windows: SteppedDefinition, before: Watermark) -> Bounds:
        forgotten = before.forgetting(windows).forgotten
        return cls(before.bound, forgotten, micros(windows.size), micros(windows.step))

    @property
    def newest(self) -> str:
        return f"({PANE} + {self.size}L)"

    @property
    def oldest(self) -> str:
        return f"({PANE} + {self.step}L)"

    def last_by(self, bound: int) -> str:
        """SQL for the greatest end of a row's windows that is at or before `bound`, if it is not before `oldest`."""
        return f"least({self.newest}, {bound}L - pmod({bound}L - {self.newest}, {self.step}L))"

    def missed_windows(self) -> str:
        """SQL for how many of a row's windows were forgotten."""
        return f"greatest(0L, ({self.last_by(self.forgotten)} - {self.oldest}) div {self.step}L + 1L)"

    def counts(self, windows: WindowDefinition) -> dict[str, str]:
        """What is counted of rows as they are read; corrected and partly_late are parts of folded."""
        late = f"{self.newest} <= {self.forgotten}L"
        last = self.last_by(self.closed)
        return {
            **counts_of_any(windows),
            "corrected": rows_with(f"{last} > {self.forgotten}L AND {last} >= {self.oldest}"),
            "partly_late": rows_with(f"{self.oldest} <= {self.forgotten}L AND NOT {late}"),
            "missed": rows_with(f"{self.oldest} <= {self.forgotten}L"),
        }

    def expand(self, windows: WindowDefinition, panes: DataFrame) -> DataFrame:
        """Parts of windows that aren't forgotten, from panes."""
        parts = self._spread(windows, panes) if self.size > self.step else panes.withColumnRenamed(PANE, _START)
        start, end = F.timestamp_micros(_START), F.timestamp_micros(F.col(_START) + self.size)
        kept = parts.where(f"{_START} + {self.size}L > {self.forgotten}L")
        return kept.withColumns({START: start, END: end}).drop(_START, PARTITION, SEEN)

    def _spread(self, windows: WindowDefinition, panes: DataFrame) -> DataFrame:
        """Each pane into its windows. A row counts for the newest of them, the last one to close."""
        back = F.explode(F.expr(f"sequence(0L, {self.size - self.step}L, {self.step}L)"))
        spread = panes.withColumn(_BACK, back).withColumn(_START, F.col(PANE) - F.col(_BACK))
        own = F.sum(F.expr(f"CASE WHEN {_BACK} = 0 THEN {ROWS} ELSE 0L END")).alias(ROWS)
        return spread.groupBy(*windows.key, _START).agg(
            *(c for one in windows.aggregate_columns() for c in merged_aggregates(one)), own
        )

    def late(self, rows: DataFrame, columns: Sequence[str], some: bool) -> CountedFrame:
        """The rows that missed windows; if there aren't `some`, nothing is read."""
        panes = self.size // self.step
        missed = [F.expr(self.missed_windows()).cast("int").alias(MISSED)] if panes > 1 else []
        late = rows.where(f"{self.oldest} <= {self.forgotten}L" if some else "false")
        found = late.select(*(F.col(f"`{name}`") for name in columns), *missed)
        return CountedFrame.of(found, late=rows_with(f"{MISSED} = {panes}" if missed else "true"))


def counts_of_any(windows: WindowDefinition) -> dict[str, str]:
    """What is counted of rows as they are read, whatever kind of windows they are folded into."""
    null = " OR ".join(f"`{column}` IS NULL" for column in windows.key)
    return {
        "in": "count(1)",
        "filtered": rows_with(f"NOT {PASSES}"),
        "untimed": rows_with(f"{PASSES} AND {AT} IS NULL"),
        "unkeepable": rows_with(f"{PASSES} AND NOT ({keepable(windows)})"),
        "keyless": rows_with(f"{PASSES} AND ({null})"),
        "greatest": f"coalesce(max({AT}), {BEGINNING}L)",
    }


def keepable(windows: WindowDefinition) -> str:
    """SQL for whether a row's event time is of the years 1 to 9999, and its windows are forgotten by their end."""
    return f"{AT} BETWEEN {FIRST}L AND {LAST - micros(windows.span + windows.lateness)}L"


def rows_with(condition: str) -> str:
    """SQL that counts the rows of which the condition is true."""
    return f"count(CASE WHEN {condition} THEN 1 END)"

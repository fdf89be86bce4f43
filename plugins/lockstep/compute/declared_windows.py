"""Event-time windows and sessions: their definitions, which any process can load. Spark folds rows into them.

They are Flink's window operator with its watermark and allowed lateness, and its EventTimeSessionWindows, for pipelines
whose epochs are batches. What they keep between epochs is keyed state, so windows and sinks are always of the same
epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.definition.windows import SessionDefinition, SteppedDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute.state import StateRows
    from lockstep.compute.windows import Folded


@dataclass(frozen=True, kw_only=True)
class Windows(SteppedDefinition):
    """Rows folded into windows by event time: tumbling, or sliding with `slide`.

    `schema`: Spark DDL of the key's columns and the aggregates; `key`: names of the former. `time`: column or SQL
    expression of type TIMESTAMP. `aggregates`: by name, one of count, sum, min, max, avg over any SQL expression.
    `size`, `slide`: windows start at whole multiples of `slide` (else of `size`) since 1970 UTC, plus `offset`.

    The watermark is the greatest event time of the epochs before, less `out_of_order`; with `partition` (column or SQL
    expression) the smallest of the partitions' greatest times, leaving out one that had no row for `idle_epochs`
    epochs that had some. A window is closed when the watermark reaches its end, and forgotten `lateness` later: until
    then late rows correct it, afterwards they go to `late`, also when `lateness` is raised. `emit`: "final"
    emits a window when it closes, and again when it is corrected; "updates" emits each window that the epoch touched.

    `name`: of its state and of its balance; `buckets`: see `KeyedState`. Raises `InvalidPipeline`.
    """

    def fold(self, frame: DataFrame, state: Mapping[str, StateRows], where: str | None = None) -> Folded:
        """Fold the rows of `frame` into the windows of `state`, what the transform was given.

        `where`: a SQL condition; rows for which it isn't true are left out, and counted. Runs Spark jobs at once.
        Raises `BadRecords` for rows with a null in the key, without an event time, or with one whose windows would be
        kept beyond the year 9999; `InvalidPipeline`.
        """
        from lockstep.compute.windows import fold  # Spark is imported where rows are folded, and nowhere else

        return fold(self, frame, state, where)


@dataclass(frozen=True, kw_only=True)
class Sessions(SessionDefinition):
    """Rows folded into sessions by event time: those of a key that follow each other by less than `gap`.

    A session is the window from its first row's time to its last row's plus `gap`. Rows between two sessions join them.
    The other arguments are those of `Windows`: `schema`, `key`, `time`, `aggregates`; the
    watermark by `out_of_order`, `partition`, `idle_epochs`; `lateness`, `emit`, `name`, `buckets`.

    A row is late if it is older than the watermark less `lateness`, and no session that is kept began before it. The
    results also have a boolean column `absorbed`: true where a session that was emitted before is part of another
    session now, which has another start and is emitted in the same epoch. A sink that upserts them needs
    `deleted="absorbed"`, except with `lateness` 0 and `emit` "final", where a session that is emitted never changes.
    Raises `InvalidPipeline`.
    """

    def fold(self, frame: DataFrame, state: Mapping[str, StateRows], where: str | None = None) -> Folded:
        """Fold the rows of `frame` into the sessions of `state`, what the transform was given.

        `where`: a SQL condition; rows for which it isn't true are left out, and counted. Runs Spark jobs at once.
        Raises `BadRecords` for rows with a null in the key, without an event time, or with one whose session would be
        kept beyond the year 9999; `InvalidPipeline`.
        """
        from lockstep.compute.sessions import fold  # Spark is imported where rows are folded, and nowhere else

        return fold(self, frame, state, where)

"""Session windows: the definition of them, which any process can load. Spark folds rows into them.

What Flink's EventTimeSessionWindows and Spark's session_window are, for pipelines whose epochs are batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.definition.sessions import SessionDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute._folding import Folded
    from lockstep.compute.state import StateRows


@dataclass(frozen=True, kw_only=True)
class Sessions(SessionDefinition):
    """Rows folded into sessions by event time: those of a key that follow each other by less than `gap`.

    A session is the window from its first row's time to its last one's plus `gap`. Rows that stand between two
    sessions make one of them. All else is said as `Windows` has it: `schema`, `key`, `time`, `aggregates`; the
    watermark by `out_of_order`, `partition`, `idle_epochs`; `lateness`, `emit`, `name`, `buckets`.

    A row is late if it is older than the watermark less `lateness`, and no session that is kept began before it. The
    results have a boolean column `absorbed` besides: true where a session that was emitted before is part of another
    one now, which begins at another time and is emitted in the same epoch. A sink that upserts them needs it as
    `deleted="absorbed"`; not with `lateness` 0 and `emit` "final", where a session that is emitted never changes.
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

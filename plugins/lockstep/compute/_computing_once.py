"""An aggregation that more than one thing reads, computed once, so that its input needn't be kept for that.

As `DataFrame.persist` has it: whatever has the aggregation's plan within its own gets its rows from then on. But these
are few, and this process has them.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lockstep.compute._inputs import ObservedFrame
from lockstep.compute._local_rows import collect_plain
from lockstep.compute._reading_once import note_computed, reads_once, require_kept
from lockstep.compute.enrich import asks
from lockstep.errors import StageFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BYTES = 6 << 20  #: of Arrow: more would be sent back to Spark in more time than it takes to keep an input


def compute_once(frame: DataFrame) -> pa.Table | None:
    """The rows of `frame`, where inputs are read but once and it is made of an aggregation row by row: that is computed
    by one job, and whatever reads it, or did before, gets these rows. Columns that `frame` leaves out may be there.

    None, and nothing was done, of anything else: its rows may be as many as those that it reads.
    Raises `ReadAgain` if they are many, or not flat, or if outside systems were asked for what is computed anew if
    anything else reads the input; `StageFailed` if Spark counted others than it handed out.
    """
    if not reads_once():
        return None
    plan: Any = cast(Any, frame)._plan
    if (aggregation := _aggregation(plan)) is None:
        return None
    if asks():
        require_kept("outside systems are asked once")
    held = _computed(frame, aggregation)
    return held if _selected_from(plan) is aggregation else _rows(frame)


def _aggregation(plan: Any) -> Any:
    from pyspark.sql.connect import plan as plans

    while isinstance(plan, plans.Project | plans.WithColumns | plans.WithColumnsRenamed | plans.Filter | plans.Drop):
        plan = plan._child
    return plan if isinstance(plan, plans.Aggregate | plans.Deduplicate) else None


def _selected_from(plan: Any) -> Any:
    """Of what `plan` is a plain selection of columns."""
    from pyspark.sql.connect import plan as plans
    from pyspark.sql.connect.expressions import ColumnReference

    while isinstance(plan, plans.Project) and all(isinstance(one._expr, ColumnReference) for one in plan._columns):
        plan = plan._child
    return plan


def _computed(frame: DataFrame, plan: Any) -> pa.Table:
    from pyspark.sql.connect import dataframe

    from lockstep.compute._held_plan import HeldRows

    if "held" in vars(plan):
        return cast(pa.Table, plan.held)
    before: Any = dataframe.DataFrame(copy(plan), cast(Any, frame)._session)
    counted = ObservedFrame.of(before, rows="count(1)")
    table = _rows(counted.frame)
    note_computed(before)
    if len(table) != (said := counted.counts().get("rows")):
        raise StageFailed(f"Spark counted {said} rows that are looked up in the state and handed out {len(table)}")
    held = HeldRows(frame.sparkSession, table, counted.frame.schema)
    held._root_plan_id = plan._plan_id  # by which columns of the frame are found
    plan.plan, plan.held = held.plan, table
    return table


def _rows(frame: DataFrame) -> pa.Table:
    table = collect_plain(frame, _BYTES)
    if table is None:
        require_kept("what is looked up in the state is too much for this process, or not flat")
    return table

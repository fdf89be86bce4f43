"""An epoch's input read by one job only, with nothing kept, where that is all that the transform needs.

A transform is called with inputs that no job has read. What it does then shows whether one job reads them all; if not,
it is called again with inputs that were read and kept. An aggregation with few rows that has several readers is
computed once: as with `DataFrame.persist`, every plan that contains it gets its rows from then on, which this process
has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lockstep.compute._counting import ObservedFrame
from lockstep.compute._local_rows import collect_plain
from lockstep.compute.enrich import asks
from lockstep.errors import StageFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ReadAgain(BaseException):
    """The inputs have to be kept, and the transform called anew. No `Exception`: a transform must not catch it."""


@dataclass
class Readings:
    """The frames that jobs of Lockstep's own have read while the transform ran. `once`: the inputs aren't kept.
    `computed`: whether of some frame only the rows are left."""

    once: bool
    frames: list[DataFrame] = field(default_factory=list)
    computed: bool = False


_readings: ContextVar[Readings | None] = ContextVar("readings", default=None)


@contextmanager
def noting_reads(*, once: bool) -> Iterator[Readings]:
    """While this lasts, one run of a transform, it is noted what reads its inputs; `once`: they aren't kept."""
    readings = Readings(once)
    token = _readings.set(readings)
    try:
        yield readings
    finally:
        _readings.reset(token)


def reads_once() -> bool:
    """Whether the inputs aren't kept, so that whoever reads one should do so once."""
    return (readings := _readings.get()) is not None and readings.once


def note_read(frame: DataFrame) -> None:
    """A job has read all of `frame`."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)


def note_computed(frame: DataFrame) -> None:
    """A job has read all of `frame`, and nobody needs to again."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)
        readings.computed = True


def require_kept(why: str) -> None:
    """Somebody has to read the inputs a second time. Raises `ReadAgain` if they aren't kept."""
    if (readings := _readings.get()) is not None and readings.once:
        raise ReadAgain(why)


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
    table = _computed(frame, aggregation)
    return table if _selected_from(plan) is aggregation else _rows(frame)


def _aggregation(plan: Any) -> Any:
    from pyspark.sql.connect import plan as plans

    while isinstance(plan, plans.Project | plans.WithColumns | plans.WithColumnsRenamed | plans.Filter | plans.Drop):
        plan = plan._child
    return plan if isinstance(plan, plans.Aggregate | plans.Deduplicate) else None


def _selected_from(plan: Any) -> Any:
    """Of what `plan` is a plain selection of columns."""
    from pyspark.sql.connect import plan as plans
    from pyspark.sql.connect.expressions import ColumnReference

    while isinstance(plan, plans.Project) and all(
        isinstance(column._expr, ColumnReference) for column in plan._columns
    ):
        plan = plan._child
    return plan


def _computed(frame: DataFrame, plan: Any) -> pa.Table:
    from pyspark.sql.connect import dataframe

    from lockstep.compute._local_plan import LocalRowsPlan

    if "held" in vars(plan):
        return cast(pa.Table, plan.held)
    before: Any = dataframe.DataFrame(copy(plan), cast(Any, frame)._session)
    counted = ObservedFrame.of(before, rows="count(1)")
    table = _rows(counted.frame)
    note_computed(before)
    if len(table) != (rows := counted.counts().get("rows")):
        raise StageFailed(f"Spark counted {rows} rows that are looked up in the state and handed out {len(table)}")
    local_plan = LocalRowsPlan(frame.sparkSession, table, counted.frame.schema)
    local_plan._root_plan_id = plan._plan_id  # by which columns of the frame are found
    plan.plan, plan.held = local_plan.plan, table
    return table


def _rows(frame: DataFrame) -> pa.Table:
    table = collect_plain(frame, _BYTES)
    if table is None:
        require_kept("what is looked up in the state is too much for this process, or not flat")
    return table

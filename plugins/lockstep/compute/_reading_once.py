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
from lockstep.compute.enrich import has_enrichments
from lockstep.errors import StageFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_readings: ContextVar[Readings | None] = ContextVar("readings", default=None)
_BYTES = 6 << 20  #: of Arrow: more would be sent back to Spark in more time than it takes to keep an input


class ReadAgain(BaseException):
    """The inputs have to be kept, and the transform called again. Not an `Exception`: a transform must not catch it."""


@dataclass
class Readings:
    """The frames that Lockstep's own jobs have read while the transform ran. `once`: the inputs aren't kept.
    `computed`: the plan of some frame was replaced by its rows."""

    once: bool
    frames: list[DataFrame] = field(default_factory=list)
    computed: bool = False


@contextmanager
def noting_reads(*, once: bool) -> Iterator[Readings]:
    """Record the frames that jobs read during one run of a transform. `once`: its inputs aren't kept."""
    readings = Readings(once)
    token = _readings.set(readings)
    try:
        yield readings
    finally:
        _readings.reset(token)


def reads_once() -> bool:
    """True if the inputs aren't kept, so that each should be read once."""
    return (readings := _readings.get()) is not None and readings.once


def note_read(frame: DataFrame) -> None:
    """Record that a job has read all of `frame`."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)


def note_computed(frame: DataFrame) -> None:
    """Record that a job has read all of `frame`, and that no other job needs to."""
    if (readings := _readings.get()) is not None:
        readings.frames.append(frame)
        readings.computed = True


def require_kept(why: str) -> None:
    """Raise `ReadAgain` if the inputs aren't kept, as they are read a second time because of `why`."""
    if (readings := _readings.get()) is not None and readings.once:
        raise ReadAgain(why)


def compute_once(frame: DataFrame) -> pa.Table | None:
    """Compute the aggregation that `frame` is made of, row by row, by one job; return the rows.

    Every plan with that aggregation, also one made before, gets these rows from then on. The result may have columns
    that `frame` leaves out. None, with nothing done, if inputs are kept or `frame` is no such aggregation: it may have
    as many rows as its input. Raises `ReadAgain` if the rows are many, or not flat, or if an enrichment was made, which
    may be asked only once; `StageFailed` if Spark counted other rows than it returned.
    """
    if not reads_once():
        return None
    from pyspark.sql.connect import plan as plans
    from pyspark.sql.connect.expressions import ColumnReference

    row_by_row = (plans.Project, plans.WithColumns, plans.WithColumnsRenamed, plans.Filter, plans.Drop)
    aggregation: Any = cast(Any, frame)._plan
    only_selects = True  # columns of the aggregation, without expressions
    while isinstance(aggregation, row_by_row):
        only_selects &= isinstance(aggregation, plans.Project) and all(
            isinstance(column._expr, ColumnReference) for column in aggregation._columns
        )
        aggregation = aggregation._child
    if not isinstance(aggregation, plans.Aggregate | plans.Deduplicate):
        return None
    if has_enrichments():
        require_kept("an enrichment may run only once")
    table = _computed(frame, aggregation)
    return table if only_selects else _rows(frame)


def _computed(frame: DataFrame, plan: Any) -> pa.Table:
    from pyspark.sql.connect import dataframe

    from lockstep.compute._local_plan import LocalRowsPlan

    if "computed_rows" in vars(plan):
        return cast(pa.Table, plan.computed_rows)
    before: Any = dataframe.DataFrame(copy(plan), cast(Any, frame)._session)
    counted = ObservedFrame.of(before, rows="count(1)")
    table = _rows(counted.frame)
    note_computed(before)
    if len(table) != (rows := counted.counts().get("rows")):
        raise StageFailed(f"Spark counted {rows} rows that are looked up in the state and returned {len(table)}")
    local_plan = LocalRowsPlan(frame.sparkSession, table, counted.frame.schema)
    local_plan._root_plan_id = plan._plan_id  # columns of the frame refer to it
    plan.plan, plan.computed_rows = local_plan.plan, table
    return table


def _rows(frame: DataFrame) -> pa.Table:
    table = collect_plain(frame, _BYTES)
    if table is None:
        require_kept("the keys that are looked up in the state are too many for this process, or not flat")
    return table

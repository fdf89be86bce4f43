"""Rows that the process holds are known by the frame that was made of them, as long as somebody has it."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.compute._local_rows import LocalFrame, rows_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_let_go_with_their_frame(session: SparkSession) -> None:
    """A process that moves many epochs would hold the rows of all."""
    made = LocalFrame.over(session, pa.table({"id": [1, 2]}), None, lambda rows: {"rows": len(rows)}, rows="count(1)")
    assert rows_in(made.shown) == pa.table({"id": [1, 2]})
    frame = weakref.ref(made.shown)
    del made
    gc.collect()
    assert frame() is None

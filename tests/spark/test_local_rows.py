"""Rows that the process holds are known by the frame that was made of them, as long as somebody has it."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lockstep.compute._local_rows import LocalFrame, rows_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_rows_are_let_go_with_their_frame(session: SparkSession) -> None:
    """A process that moves many epochs would hold the rows of all."""
    made = LocalFrame.over(session, pa.table({"id": [1, 2]}), None, lambda rows: {"rows": len(rows)}, rows="count(1)")
    assert rows_in(made.shown) == pa.table({"id": [1, 2]})
    frame = weakref.ref(made.shown)
    del made
    gc.collect()
    assert frame() is None


def test_rows_are_sent_to_spark_once_it_is_asked_about_them(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[pa.Table] = []
    real = session.createDataFrame

    def noting(table: pa.Table, schema: object) -> DataFrame:
        sent.append(table)
        return real(table, schema)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(session, "createDataFrame", noting)
    rows = pa.table({"id": [1, 2], "hidden": [3, 4]})
    made = LocalFrame.over(session, rows, "hidden", lambda rows: {"rows": len(rows)}, rows="sum(hidden)")
    assert made.shown.sparkSession is session
    assert made.observed.uses_in(made.shown) == 1
    assert not sent
    doubled = made.shown.select((made.shown["id"] * 2).alias("twice"))  # a column is found by its frame
    assert sorted(row.twice for row in doubled.collect()) == [2, 4]
    assert made.counts() == {"rows": 7}
    assert made.shown.unionByName(doubled.withColumnRenamed("twice", "id")).count() == 4
    assert len(sent) == 1

"""The plan of a Connect DataFrame over rows in this process. The server gets the rows only when it runs the plan.

Most such frames are written by this process, and never sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect import dataframe
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.types import StructType

_rows_left_out: ContextVar[bool] = ContextVar("left_out", default=False)


@contextmanager
def without_rows() -> Iterator[None]:
    """Build plans without their rows, for inspection: nothing is sent."""
    token = _rows_left_out.set(True)
    try:
        yield
    finally:
        _rows_left_out.reset(token)


class LocalRowsPlan(LogicalPlan):
    """`spark.createDataFrame(table, schema)`, called when the plan is first run."""

    def __init__(self, spark: SparkSession, table: pa.Table, schema: StructType) -> None:
        super().__init__(None)
        self._spark, self._table, self._schema = spark, table, schema
        self._sent: Any = None

    def plan(self, session: Any) -> Any:
        relation = self._create_proto_relation()
        if _rows_left_out.get():
            relation.local_relation.schema = self._schema.json()
            return relation
        if self._sent is None:
            self._sent = cast(Any, self._spark.createDataFrame(self._table, self._schema))._plan
        relation.repartition.input.CopyFrom(self._sent.plan(session))
        relation.repartition.num_partitions = 1  # else an aggregation of a few rows would shuffle them
        relation.repartition.shuffle = False
        relation.common.plan_id = self._root_plan_id  # columns of the frame refer to it
        return relation

    def frame(self) -> DataFrame:
        """The DataFrame of this plan."""
        frame = dataframe.DataFrame(self, cast(Any, self._spark))
        frame._cached_schema = self._schema
        return cast(DataFrame, frame)


def relation_of(frame: DataFrame) -> Any:
    """The frame's plan as a Spark Connect client would send it, without rows."""
    plan: Any = cast(Any, frame)._plan
    with without_rows():
        return plan.plan(frame.sparkSession.client)

"""What the columns of outputs are made of, as plans of a real Spark Connect client say it: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from lockstep import rows_of
from lockstep.column_lineage import ColumnLineage, How, Part
from lockstep.compute._column_lineage import column_lineage
from lockstep.compute.stage import stage_epoch
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, request_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
Transform = Callable[["DataFrame", "DataFrame"], "DataFrame"]

ORDERS = "id bigint, customer string, amount bigint, tags array<string>, place struct<city: string, zip: string>"
ORDER_ROWS = [
    (1, "a", 10, ["x", "y"], ("Ulm", "1")),
    (2, "b", -5, ["y"], ("Bonn", "2")),
    (3, "a", 7, [], ("Ulm", "3")),
    (4, "c", 7, ["x"], (None, "4")),
]
CUSTOMERS = "customer string, name string, id bigint"
CUSTOMER_ROWS = [("a", "Ada", 1), ("b", "Bob", 9), ("d", "Dan", 3)]


def sources(session: SparkSession) -> dict[str, DataFrame]:
    """Frames as a transform gets them."""
    return {
        "orders": session.createDataFrame(ORDER_ROWS, ORDERS),
        "customers": session.createDataFrame(CUSTOMER_ROWS, CUSTOMERS),
    }


def told(session: SparkSession, transform: Transform) -> ColumnLineage | None:
    inputs = sources(session)
    output = transform(inputs["orders"], inputs["customers"])
    return column_lineage(inputs, {"rows": output}).get("rows")


def parts(*names: str) -> frozenset[Part]:
    """`orders.id IDENTITY`, …"""
    split = [name.replace(" ", ".").split(".") for name in names]
    return frozenset(Part(source, column, How(how)) for source, column, how in split)


#: by what it is about: a transform, what its columns are made of, and its rows
TOLD: dict[str, tuple[Transform, dict[str, frozenset[Part] | None], frozenset[Part] | None]] = {
    "sums by group": (
        lambda o, c: o.groupBy("customer").agg(
            F.sum("amount").alias("total"), F.count("*").alias("n"), (F.max("id") + F.min("amount")).alias("both")
        ),
        {
            "customer": parts("orders.customer IDENTITY"),
            "total": parts("orders.amount AGGREGATION"),
            "n": parts(),
            "both": parts("orders.id AGGREGATION", "orders.amount AGGREGATION"),
        },
        parts("orders.customer GROUP_BY"),
    ),
    "a join by a condition, with names that both have": (
        lambda o, c: o.join(c, o["customer"] == c["customer"], "right").select(o["id"], c["id"].alias("other"), "name"),
        {
            "id": parts("orders.id IDENTITY"),
            "other": parts("customers.id IDENTITY"),
            "name": parts("customers.name IDENTITY"),
        },
        parts("orders.customer JOIN", "customers.customer JOIN"),
    ),
    "a choice by a condition": (
        lambda o, c: o.select(
            F.when(F.col("amount") > 0, F.col("customer")).otherwise(F.col("id").cast("string")).alias("it")
        ),
        {"it": parts("orders.amount CONDITIONAL", "orders.customer TRANSFORMATION", "orders.id TRANSFORMATION")},
        parts(),
    ),
    "rows of which nobody knows, beside some that are known": (
        lambda o, c: o.join(c.mapInArrow(lambda batches: batches, c.schema), "customer").select(
            "customer", "amount", "name"
        ),
        {"customer": parts("orders.customer IDENTITY"), "amount": parts("orders.amount IDENTITY"), "name": None},
        None,
    ),
}


#: of which nothing is told
UNTOLD: tuple[Transform, ...] = (
    lambda o, c: o.sparkSession.sql("SELECT id FROM {o}", o=o),
    lambda o, c: o.selectExpr("id", "amount + 1 AS more"),
    lambda o, c: o.join(c, o["id"] == c["id"]),
)


def test_each_column_is_told_with_all_that_it_is_made_of_or_not_at_all(
    session: SparkSession, subtests: pytest.Subtests
) -> None:
    for about, (transform, columns, rows) in TOLD.items():
        with subtests.test(about):
            assert told(session, transform) == ColumnLineage(columns, rows)
            assert transform(*sources(session).values()).columns == list(columns)
    assert [told(session, transform) for transform in UNTOLD] == [None] * len(UNTOLD)


def test_what_lockstep_itself_puts_around_frames_is_seen_through(session: SparkSession, tmp_path: Path) -> None:
    """Counts of rows, marks of malformed ones, conserved rows, and an input that is kept since two outputs read it."""

    def transform(inputs: Frames) -> Frames:
        rows = inputs["input"]
        return {
            "rows": rows.withColumn("name", F.upper("name")),
            "last": rows.groupBy("name").agg(F.max("id").alias("id")),
        }

    source = csv(tmp_path, "id,name,at\n1,x,\n2,y,\n", on_bad_records="quarantine")
    pipeline = replace(pipeline_of(source, transform, ("rows", "last")), conservation=[rows_of("input").into("rows")])
    request = replace(request_of(tmp_path, pipeline), column_lineage=True)
    assert stage_epoch(session, pipeline, request).column_lineage == {
        "rows": ColumnLineage(
            {
                "id": parts("input.id IDENTITY"),
                "name": parts("input.name TRANSFORMATION"),
                "at": parts("input.at IDENTITY"),
            },
            parts(),
        ),
        "last": ColumnLineage(
            {"name": parts("input.name IDENTITY"), "id": parts("input.id AGGREGATION")}, parts("input.name GROUP_BY")
        ),
    }

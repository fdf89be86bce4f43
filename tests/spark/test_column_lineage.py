"""What the columns of outputs are made of, as plans of a real Spark Connect client say it: all of it, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import rows_of
from lockstep.audits import not_null
from lockstep.column_lineage import ColumnLineage, How, Part
from lockstep.compute._column_lineage import Plans, column_lineage
from lockstep.compute.stage import stage_epoch
from lockstep.epoch import RunKey
from lockstep.roles.begin import begin
from lockstep.roles.stage import stage as stage_role
from lockstep.run import in_process
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, request_of, stage
from tests.spark.test_state import Summing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TEXT = "id,name,at\n1,x,\n2,y,\n"
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
#: other values for a source's column, by which others differ
OTHER: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("orders", "id"): lambda value: value + 1,
    ("orders", "customer"): lambda value: {"a": "b", "b": "d"}.get(value, "a"),
    ("orders", "amount"): lambda value: 3 - 2 * value,
    ("orders", "tags"): lambda value: [*value, "z"],
    ("orders", "place"): lambda value: ("Kiel", value[1] + "0"),
    ("customers", "customer"): lambda value: {"a": "b", "b": "a"}.get(value, "c"),
    ("customers", "name"): lambda value: value + "!",
    ("customers", "id"): lambda value: value + 1,
}


def sources(session: SparkSession, changed: Collection[tuple[str, str]] = ()) -> dict[str, DataFrame]:
    """Frames as a transform gets them; `changed`: the columns that have other values."""
    found = {}
    for name, schema, names, rows in (
        ("orders", ORDERS, ("id", "customer", "amount", "tags", "place"), ORDER_ROWS),
        ("customers", CUSTOMERS, ("customer", "name", "id"), CUSTOMER_ROWS),
    ):
        others = [OTHER[name, one] if (name, one) in changed else lambda value: value for one in names]
        told = [tuple(other(value) for other, value in zip(others, row, strict=True)) for row in rows]
        found[name] = session.createDataFrame(told, schema)
    return found


def told(session: SparkSession, transform: Transform) -> ColumnLineage | None:
    inputs = sources(session)
    output = transform(inputs["orders"], inputs["customers"])
    return column_lineage(inputs, {"rows": output}).get("rows")


def parts(*names: str) -> frozenset[Part]:
    """`orders.id IDENTITY`, …"""
    split = [name.replace(" ", ".").split(".") for name in names]
    return frozenset(Part(source, column, How(how)) for source, column, how in split)


def add(left: Column, right: Column) -> Column:
    return F.udf(lambda one, other: f"{one}{other}", "string")(left, right)


#: by what it is about: a transform, what its columns are made of, and its rows
TOLD: dict[str, tuple[Transform, dict[str, frozenset[Part] | None], frozenset[Part] | None]] = {
    "a column as it is, renamed, computed": (
        lambda o, c: o.select("id", o["customer"].alias("who"), (F.col("amount") * 2).alias("double")),
        {
            "id": parts("orders.id IDENTITY"),
            "who": parts("orders.customer IDENTITY"),
            "double": parts("orders.amount TRANSFORMATION"),
        },
        parts(),
    ),
    "all, and one put in place": (
        lambda o, c: o.select("*").withColumn("amount", F.concat("customer", F.lit("!"))).drop("tags", "place"),
        {
            "id": parts("orders.id IDENTITY"),
            "customer": parts("orders.customer IDENTITY"),
            "amount": parts("orders.customer TRANSFORMATION"),
        },
        parts(),
    ),
    "renames, by name and by place": (
        lambda o, c: c.withColumnsRenamed({"name": "first", "id": "number"}).toDF("x", "y", "z"),
        {
            "x": parts("customers.customer IDENTITY"),
            "y": parts("customers.name IDENTITY"),
            "z": parts("customers.id IDENTITY"),
        },
        parts(),
    ),
    "rows are chosen, in order": (
        lambda o, c: o.where(F.col("amount") > 0).orderBy("customer").dropna(subset=["place"]).select("id").limit(9),
        {"id": parts("orders.id IDENTITY")},
        parts("orders.amount FILTER", "orders.customer SORT", "orders.place FILTER"),
    ),
    "text as condition leaves columns told, and not what chooses rows": (
        lambda o, c: o.where("amount > 0").select("id"),
        {"id": parts("orders.id IDENTITY")},
        None,
    ),
    "a column's name as text": (
        lambda o, c: o.selectExpr("id", "amount").withColumn("more", F.expr("amount + 1")),
        {"id": parts("orders.id IDENTITY"), "amount": parts("orders.amount IDENTITY"), "more": None},
        parts(),
    ),
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
    "sums by a computed group, under Spark's own names": (
        lambda o, c: (
            o.groupBy(F.upper("customer").alias("who")).sum("amount").withColumnRenamed("sum(amount)", "total")
        ),
        {"who": parts("orders.customer TRANSFORMATION"), "total": parts("orders.amount AGGREGATION")},
        parts("orders.customer GROUP_BY"),
    ),
    "a join by a shared name": (
        lambda o, c: o.drop("id", "tags", "place").join(c, "customer", "left"),
        {
            "customer": parts("orders.customer IDENTITY"),
            "amount": parts("orders.amount IDENTITY"),
            "name": parts("customers.name IDENTITY"),
            "id": parts("customers.id IDENTITY"),
        },
        parts("orders.customer JOIN", "customers.customer JOIN"),
    ),
    "a full join has its key from both": (
        lambda o, c: o.join(c, "customer", "full").select("customer"),
        {"customer": parts("orders.customer TRANSFORMATION", "customers.customer TRANSFORMATION")},
        parts("orders.customer JOIN", "customers.customer JOIN"),
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
    "a join of aliases, the one dropped": (
        lambda o, c: (
            o.alias("o")
            .join(c.alias("c"), F.col("o.id") == F.col("c.id"))
            .select("o.*", "c.name")
            .drop("tags", "place")
        ),
        {
            "id": parts("orders.id IDENTITY"),
            "customer": parts("orders.customer IDENTITY"),
            "amount": parts("orders.amount IDENTITY"),
            "name": parts("customers.name IDENTITY"),
        },
        parts("orders.id JOIN", "customers.id JOIN"),
    ),
    "rows that another one has, or hasn't": (
        lambda o, c: o.join(c, o["id"] == c["id"], "anti").join(c, "customer", "semi").select("id"),
        {"id": parts("orders.id IDENTITY")},
        parts("orders.id JOIN", "customers.id JOIN", "orders.customer JOIN", "customers.customer JOIN"),
    ),
    "a join with itself": (
        lambda o, c: (
            o.alias("l").join(o.groupBy("customer").agg(F.max("amount").alias("most")), "customer").select("id", "most")
        ),
        {"id": parts("orders.id IDENTITY"), "most": parts("orders.amount AGGREGATION")},
        parts("orders.customer GROUP_BY", "orders.customer JOIN"),
    ),
    "a union by place, and one by name": (
        lambda o, c: (
            o.select("id", "customer")
            .union(c.select("id", "name"))
            .unionByName(c.select("customer", F.lit(0).alias("more")), allowMissingColumns=True)
        ),
        {
            "id": parts("orders.id IDENTITY", "customers.id IDENTITY"),
            "customer": parts("orders.customer IDENTITY", "customers.name IDENTITY", "customers.customer IDENTITY"),
            "more": parts(),
        },
        parts(),
    ),
    "a choice by a condition": (
        lambda o, c: o.select(
            F.when(F.col("amount") > 0, F.col("customer")).otherwise(F.col("id").cast("string")).alias("it")
        ),
        {"it": parts("orders.amount CONDITIONAL", "orders.customer TRANSFORMATION", "orders.id TRANSFORMATION")},
        parts(),
    ),
    "a rank and a running sum": (
        lambda o, c: o.select(
            "id",
            F.row_number().over(Window.partitionBy("customer").orderBy("amount", "id")).alias("rank"),
            F.sum("amount").over(Window.partitionBy("customer").orderBy("id")).alias("so far"),
        ),
        {
            "id": parts("orders.id IDENTITY"),
            "rank": parts("orders.customer WINDOW", "orders.amount WINDOW", "orders.id WINDOW"),
            "so far": parts("orders.amount AGGREGATION", "orders.customer WINDOW", "orders.id WINDOW"),
        },
        parts(),
    ),
    "functions of one's own": (
        lambda o, c: o.select(add(F.col("customer"), o["amount"]).alias("added")),
        {"added": parts("orders.customer TRANSFORMATION", "orders.amount TRANSFORMATION")},
        parts(),
    ),
    "parts of nested values, and functions over their elements": (
        lambda o, c: o.select(
            "place.city",
            F.col("place")["zip"].alias("zip"),
            F.transform("tags", lambda tag: F.concat(tag, F.col("customer"))).alias("marked"),
        ),
        {
            "city": parts("orders.place TRANSFORMATION"),
            "zip": parts("orders.place TRANSFORMATION"),
            "marked": parts("orders.tags TRANSFORMATION", "orders.customer TRANSFORMATION"),
        },
        parts(),
    ),
    "a row for each element: how many there are isn't told": (
        lambda o, c: o.select("id", F.explode("tags").alias("tag")),
        {"id": parts("orders.id IDENTITY"), "tag": parts("orders.tags TRANSFORMATION")},
        None,
    ),
    "one row of each": (
        lambda o, c: o.select("customer", "amount").distinct().dropDuplicates(["amount"]),
        {"customer": parts("orders.customer IDENTITY"), "amount": parts("orders.amount IDENTITY")},
        parts("orders.customer GROUP_BY", "orders.amount GROUP_BY"),
    ),
    "values for nulls": (
        lambda o, c: c.fillna("?", ["name"]).replace("a", "b", ["customer"]).repartition(2, "id").hint("broadcast"),
        {
            "customer": parts("customers.customer TRANSFORMATION"),
            "name": parts("customers.name TRANSFORMATION"),
            "id": parts("customers.id IDENTITY"),
        },
        parts(),
    ),
    "a name in other letters": (
        lambda o, c: c.select("NAME", F.col("Id").cast("string")),
        {"NAME": parts("customers.name IDENTITY"), "Id": parts("customers.id TRANSFORMATION")},
        parts(),
    ),
    "a column that was overwritten, by the frame that had it before": (
        lambda o, c: c.select(c["id"], "name").withColumn("name", F.upper("name")),
        {"id": parts("customers.id IDENTITY"), "name": parts("customers.name TRANSFORMATION")},
        parts(),
    ),
    "rows of which nobody knows, beside some that are known": (
        lambda o, c: o.join(c.mapInArrow(lambda batches: batches, c.schema), "customer").select(
            "customer", "amount", "name"
        ),
        {"customer": parts("orders.customer IDENTITY"), "amount": parts("orders.amount IDENTITY"), "name": None},
        None,
    ),
    "rows that were computed before": (
        lambda o, c: o.join(c.localCheckpoint().alias("c"), o["id"] == F.col("c.id")).select("amount", "c.name"),
        {"amount": parts("orders.amount IDENTITY"), "name": None},
        None,
    ),
}


@pytest.mark.parametrize("about", TOLD)
def test_each_column_is_told_with_all_that_it_is_made_of_and_by_its_name(session: SparkSession, about: str) -> None:
    transform, columns, rows = TOLD[about]
    assert told(session, transform) == ColumnLineage(columns, rows)
    assert transform(*sources(session).values()).columns == list(columns)


@pytest.mark.parametrize("about", [about for about, (_, _, rows) in TOLD.items() if rows is not None])
def test_no_column_depends_on_one_that_is_not_told(session: SparkSession, about: str) -> None:
    transform, columns, rows = TOLD[about]
    known = {
        name: {(part.source, part.column) for part in (*made, *(rows or ()))}
        for name, made in columns.items()
        if made is not None
    }
    plain = values(transform(*sources(session).values()))
    for part in {frozenset(one) for one in known.values()}:
        found = values(transform(*sources(session, OTHER.keys() - part).values()))
        for name in known:
            if known[name] == part:
                assert found[name] == plain[name], f"{name} depends on more than {sorted(part)}"


def values(frame: DataFrame) -> dict[str, Counter[str]]:
    """By column, in no order."""
    rows = frame.collect()
    return {name: Counter(repr(row[name]) for row in rows) for name in frame.columns}


#: by why nothing is told of the output: nobody knows its columns by name, or what any is made of
UNTOLD: dict[str, Transform] = {
    "SQL": lambda o, c: o.sparkSession.sql("SELECT id FROM {o}", o=o),
    "text that computes, and names it itself": lambda o, c: o.selectExpr("id", "amount + 1 AS more"),
    "text that is a value": lambda o, c: o.select(F.expr("current_date")),
    "a computed column without a name": lambda o, c: o.select("id", F.col("amount") + 1),
    "columns for each key, by pivot": lambda o, c: o.groupBy("customer").pivot("id", [1, 2]).sum("amount"),
    "columns as rows": lambda o, c: o.unpivot("customer", ["id", "amount"], "what", "value"),
    "groups of groups": lambda o, c: o.rollup("customer").agg(F.sum("amount").alias("total")),
    "columns by a pattern": lambda o, c: o.select(o.colRegex("`a.*`")),
    "rows that both have": lambda o, c: o.select("id").intersect(c.select("id")),
    "a function over partitions": lambda o, c: o.select("id").mapInArrow(lambda batches: batches, "id bigint"),
    "a function over groups": lambda o, c: c.groupBy("name").applyInArrow(lambda table: table, c.schema),
    "rows that the transform has looked at": lambda o, c: o.sparkSession.createDataFrame(
        [(row.id,) for row in o.collect()], "id bigint"
    ),
    "a file that is no source": lambda o, c: o.sparkSession.read.schema("id bigint").json("nowhere"),
    "two columns of one name": lambda o, c: o.join(c, o["id"] == c["id"]),
}


@pytest.mark.parametrize("about", UNTOLD)
def test_of_what_is_not_known_nothing_is_told(session: SparkSession, about: str) -> None:
    assert told(session, UNTOLD[about]) is None


#: by why nobody can say what `it` is made of
UNSURE: dict[str, Transform] = {
    "text": lambda o, c: o.select("id", F.expr("amount * 2").alias("it")),
    "a column that the same selection names": lambda o, c: o.select(F.col("id").alias("new"), F.col("new").alias("it")),
    "a column that was overwritten since": lambda o, c: o.withColumn("id", o["amount"]).select(
        "amount", o["id"].alias("it")
    ),
    "a name that was given in other letters": lambda o, c: o.withColumn("ID", o["amount"]).select(
        "amount", F.col("id").alias("it")
    ),
    "a query within": lambda o, c: o.select("id", c.select(F.max("name")).scalar().alias("it")),
    "a function by its name alone": lambda o, c: o.select("id", F.call_function("abs", "amount").alias("it")),
    "a count of different rows": lambda o, c: c.groupBy("id").agg(F.countDistinct("*").alias("it")),
    "all columns at once": lambda o, c: o.select("id", F.hash("*").alias("it")),
}


@pytest.mark.parametrize("about", UNSURE)
def test_a_column_that_may_be_another_is_told_as_nothing(session: SparkSession, about: str) -> None:
    found = told(session, UNSURE[about])
    assert found is not None and found.columns["it"] is None
    assert any(found.columns.values()), "what is known beside it"


@pytest.mark.parametrize("on_bad_records", ["fail", "quarantine"])
def test_what_lockstep_itself_puts_around_frames_is_seen_through(
    session: SparkSession, tmp_path: Path, on_bad_records: Any
) -> None:
    """Counts of rows, marks of malformed ones, conserved rows, and an input that is kept since two outputs read it."""

    def transform(inputs: Frames) -> Frames:
        rows = inputs["input"]
        return {
            "rows": rows.withColumn("name", F.upper("name")),
            "last": rows.groupBy("name").agg(F.max("id").alias("id")),
        }

    source = csv(tmp_path, "id,name,at\n1,x,\n2,y,\n", on_bad_records=on_bad_records)
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


def test_rows_that_may_go_to_quarantine_are_told_by_column_and_not_by_what_sends_them(
    session: SparkSession, tmp_path: Path
) -> None:
    pipeline = replace(pipeline_of(csv(tmp_path, TEXT)), audits=[not_null("rows", "name", quarantine=True)])
    found = stage_epoch(session, pipeline, replace(request_of(tmp_path, pipeline), column_lineage=True)).column_lineage
    columns = {name: parts(f"input.{name} IDENTITY") for name in ("id", "name", "at")}
    assert found == {"rows": ColumnLineage(columns, None)}


def test_nobody_looks_into_a_plan_where_nobody_wants_to_know(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.compute.stage.column_lineage", lambda *_: 1 / 0)
    assert stage(session, tmp_path, pipeline_of(csv(tmp_path, TEXT))).result.column_lineage == {}


def test_no_epoch_fails_for_its_lineage(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plans, "table", lambda *_: 1 / 0)
    pipeline = pipeline_of(csv(tmp_path, TEXT))
    found = stage_epoch(session, pipeline, replace(request_of(tmp_path, pipeline), column_lineage=True))
    assert (found.rows, found.column_lineage) == ({"rows": 2}, {})


def test_the_sealed_manifest_has_it_where_it_is_wanted_and_never_of_state(
    session: SparkSession, ledger_dsn: str, tmp_path: Path
) -> None:
    summing = Summing(session, ledger_dsn, tmp_path / "with state")
    assert sealed(summing, wanted=True) == {}
    plain: dict[str, Any] = {"state": {}, "transform": lambda inputs: {"totals": inputs["numbers"]}}
    columns = {"value": parts("numbers.value IDENTITY")}
    asked = Summing(session, ledger_dsn, tmp_path / "asked", name="asked", **plain)
    assert sealed(asked, wanted=True) == {"totals": ColumnLineage(columns, parts())}
    assert sealed(Summing(session, ledger_dsn, tmp_path / "not", name="not", **plain), wanted=False) == {}


def sealed(summing: Summing, *, wanted: bool) -> Mapping[str, ColumnLineage]:
    runtime, run = replace(summing.runtime(), column_lineage=wanted), RunKey("test", summing.pipeline.name)
    begin(runtime, run)
    epoch = stage_role(runtime, run, in_process(summing.pipeline, summing.spark))
    assert epoch.wal and epoch.manifest_hash
    return runtime.staging.manifest(epoch.wal, epoch.manifest_hash).column_lineage

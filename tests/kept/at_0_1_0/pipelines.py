"""The pipelines of the kept deployment, as users write them: public names only.

They are today's definitions of what was planned then. Where users have to change theirs, change it here too; what the
old name wrote is in the kept files, which nobody touches.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep import KeyedState, Pipeline, Windows
from lockstep.sinks import (
    ByColumns,
    ByFunction,
    ByTime,
    FileSink,
    HttpSink,
    KafkaSink,
    MariaDbSink,
    PostgresSink,
    StdoutSink,
    TcpSink,
)
from lockstep.sources import (
    DataSourceSource,
    FileSource,
    KafkaSource,
    MariaDbTableSource,
    PostgresTableSource,
    SequenceSource,
    Source,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute.state import StateRows

Frames = Mapping[str, "DataFrame"]
States = Mapping[str, "StateRows"]

IN_FLIGHT = 6
ORDERS = (
    "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT"
)
TOTALS = KeyedState("customer STRING, total BIGINT", key=["customer"], buckets=2)
SUMS = KeyedState("parity INT, total BIGINT", key=["parity"], buckets=2)
HOURLY = Windows(
    schema="page STRING, clicks BIGINT, longest INT",
    key=["page"],
    time="at",
    size=timedelta(hours=1),
    aggregates={"clicks": "count(*)", "longest": "max(seconds)"},
    lateness=timedelta(hours=1),
    buckets=2,
)
#: what a pipeline needs besides two PostgreSQL databases and a folder
NEEDS: Mapping[str, tuple[str, ...]] = {
    "lines": ("tcp",),
    "tables": ("http",),
    "maria": ("maria",),
    "maria_again": ("maria",),
    "events": ("kafka",),
}


def split_orders(inputs: Frames) -> Frames:
    orders = inputs["orders"]
    return {
        "orders": orders.where("amount >= 0"),
        "refunds": orders.where("amount < 0").select("id", "customer", "day"),
    }


def total_by_customer(inputs: Frames, state: States) -> tuple[Frames, Frames]:
    from pyspark.sql import functions as F

    new = inputs["payments"].groupBy("customer").agg(F.sum("amount").alias("total"), F.max("gone").alias("gone"))
    old = state["totals"].of(new).withColumn("gone", F.lit(False))
    after = old.unionByName(new).groupBy("customer").agg(F.sum("total").alias("total"), F.max("gone").alias("gone"))
    return {"totals": after}, {"totals": after.drop("gone")}


def same_lines(inputs: Frames) -> Frames:
    return {"lines": inputs["lines"]}


def both_tables(inputs: Frames) -> Frames:
    return {"accounts": inputs["accounts"], "entries": inputs["entries"]}


def sum_by_parity(inputs: Frames, state: States) -> tuple[Frames, Frames]:
    from pyspark.sql import functions as F

    numbers = inputs["numbers"].withColumn("parity", (F.col("value") % 2).cast("int"))
    new = numbers.groupBy("parity").agg(F.sum("value").alias("total"))
    old = state["sums"].of(new)
    after = old.unionByName(new).groupBy("parity").agg(F.sum("total").alias("total"))
    return {"numbers": numbers, "sums": after, "words": numbers.selectExpr("CAST(value AS STRING) AS word")}, {
        "sums": after
    }


def by_hour(inputs: Frames, state: States) -> tuple[Frames, Frames]:
    found = HOURLY.fold(inputs["clicks"], state)
    return {"hourly": found.results, "late": found.late}, found.state


def same_moves(inputs: Frames) -> Frames:
    return {"moves": inputs["moves"]}


def same_events(inputs: Frames) -> Frames:
    return {"events": inputs["events"].selectExpr("key", "value")}


def first_letter(batch: pa.RecordBatch) -> pa.Array:
    """The bucket of each row of output `totals`."""
    return pa.array([f"letter={name[0]}" for name in batch.column("customer").to_pylist()], pa.string())


def pipelines(home: Path, accept: tuple[str, ...] = ()) -> dict[str, Pipeline]:
    """By name, with every file below `home`. `accept`: what a restored database is known by, once it was looked at."""
    made = [
        _orders(home),
        _customers(home),
        _lines(home),
        _tables(accept),
        _numbers(home, "numbers", SequenceSource(10)),
        _numbers(home, "resumed", DataSourceSource(_SEQUENCE, options={"first": "0"}, max_rows_per_epoch=10)),
        _clicks(home),
        _maria(accept),
        _maria_again(home, accept),
        _events(home),
    ]
    return {pipeline.name: pipeline for pipeline in made}


_SEQUENCE = "lockstep.compute.sequence:SequenceDataSource"


def _orders(home: Path) -> Pipeline:
    return Pipeline(
        name="orders",
        sources={"orders": FileSource(f"{home}/landing/orders/{{interval_start:%Y-%m-%d}}.csv", schema=ORDERS)},
        transform=split_orders,
        version="kept",
        sinks=[
            PostgresSink(
                "warehouse",
                tables={"orders": "public.orders", "refunds": "public.refunds"},
                connection="warehouse",
                create=True,
            ),
            FileSink(
                "by_hour",
                output="orders",
                path=f"{home}/out/by_hour",
                bucket=ByTime("at", "%Y-%m/hour=%d-%H"),
                success="_SUCCESS",
            ),
            FileSink("refunds", output="refunds", path=f"{home}/out/refunds", format="csv", max_rows_per_file=2),
        ],
    )


def _customers(home: Path) -> Pipeline:
    return Pipeline(
        name="customers",
        sources={
            "payments": FileSource(
                f"{home}/landing/payments", format="json", schema="customer STRING, amount BIGINT, gone BOOLEAN"
            )
        },
        transform=total_by_customer,
        version="kept",
        state={"totals": TOTALS},
        max_in_flight=IN_FLIGHT,
        sinks=[
            PostgresSink(
                "totals",
                tables={"totals": "public.totals"},
                connection="warehouse",
                mode="upsert",
                key=["customer"],
                deleted="gone",
                create=True,
            ),
            FileSink(
                "changes",
                output="totals",
                path=f"{home}/out/changes",
                format="json",
                bucket=ByFunction(f"{__name__}:first_letter"),
            ),
        ],
    )


def _lines(home: Path) -> Pipeline:
    return Pipeline(
        name="lines",
        sources={
            "lines": FileSource(f"{home}/landing/lines/*.csv", grow=True, schema="id BIGINT, word STRING", hash=True)
        },
        transform=same_lines,
        version="kept",
        max_in_flight=IN_FLIGHT,
        sinks=[
            StdoutSink("stdout", output="lines", committer=f"{home}/sent"),
            TcpSink("tcp", output="lines", connection="tcp", committer=f"{home}/sent"),
        ],
    )


def _tables(accept: tuple[str, ...]) -> Pipeline:
    arguments: dict[str, Any] = {"connection": "warehouse", "create": True, "protocol": "write_ahead"}
    return Pipeline(
        name="tables",
        sources={
            "accounts": PostgresTableSource(
                "public.accounts", connection="warehouse", order_by="xid", columns=("id", "owner"), accept=accept
            ),
            "entries": PostgresTableSource(
                "public.entries", connection="warehouse", order_by="id", settle=timedelta(0), accept=accept
            ),
        },
        transform=both_tables,
        version="kept",
        max_in_flight=IN_FLIGHT,
        sinks=[
            PostgresSink(
                "accounts",
                tables={"accounts": "public.accounts_copy"},
                **arguments,
            ),
            PostgresSink("entries", tables={"entries": "public.entries_copy"}, schema="proofs", **arguments),
            HttpSink(
                "http", output="entries", connection="http", committer="postgres:warehouse", records_per_request=2
            ),
        ],
    )


def _numbers(home: Path, name: str, source: Source) -> Pipeline:
    return Pipeline(
        name=name,
        sources={"numbers": source},
        transform=sum_by_parity,
        version="kept",
        state={"sums": SUMS},
        max_in_flight=IN_FLIGHT,
        sinks=[
            PostgresSink(
                "shared", tables={"numbers": "public.numbers"}, connection="warehouse", create=True, shared=True
            ),
            PostgresSink(
                "newest",
                tables={"sums": f"public.{name}_sums"},
                connection="warehouse",
                create=True,
                mode="upsert",
                key={"sums": ["parity"]},
                order="column:total",
            ),
            FileSink("by_parity", output="numbers", path=f"{home}/out/{name}", bucket=ByColumns("parity")),
            FileSink("words", output="words", path=f"{home}/out/words", format="text", shared=True),
        ],
    )


def _clicks(home: Path) -> Pipeline:
    return Pipeline(
        name="clicks",
        sources={
            "clicks": FileSource(
                f"{home}/landing/clicks", schema="page STRING, seconds INT, at TIMESTAMP", max_files_per_epoch=1
            )
        },
        transform=by_hour,
        version="kept",
        state=HOURLY.state(),
        max_in_flight=IN_FLIGHT,
        sinks=[
            FileSink("hourly", output="hourly", path=f"{home}/out/hourly", format="json"),
            FileSink("late", output="late", path=f"{home}/out/late"),
        ],
    )


def _maria(accept: tuple[str, ...]) -> Pipeline:
    arguments: dict[str, Any] = {"connection": "maria", "create": True}
    return Pipeline(
        name="maria",
        sources={
            "moves": MariaDbTableSource("moves", connection="maria", order_by="id", settle=timedelta(0), accept=accept)
        },
        transform=same_moves,
        version="kept",
        max_in_flight=IN_FLIGHT,
        sinks=[
            MariaDbSink("prepared", tables={"moves": "moves_prepared"}, **arguments),
            MariaDbSink("newest", tables={"moves": "moves_newest"}, mode="upsert", key=["piece"], **arguments),
        ],
    )


def _maria_again(home: Path, accept: tuple[str, ...]) -> Pipeline:
    return Pipeline(
        name="maria_again",
        sources={
            "moves": MariaDbTableSource(
                "moves", connection="maria", order_by="id", settle=timedelta(0), accept=accept, columns=("id", "piece")
            )
        },
        transform=same_moves,
        version="kept",
        max_in_flight=IN_FLIGHT,
        sinks=[
            MariaDbSink(
                "repeated",
                tables={"moves": "moves_repeated"},
                connection="maria",
                create=True,
                protocol="write_ahead",
            ),
        ],
    )


def _events(home: Path) -> Pipeline:
    return Pipeline(
        name="events",
        sources={"events": KafkaSource("kept.events", connection="kafka", key="string", value="string", group="kept")},
        transform=same_events,
        version="kept",
        max_in_flight=IN_FLIGHT,
        sinks=[
            KafkaSink(
                "once",
                output="events",
                topic="kept.once",
                connection="kafka",
                key="key",
                marker_topic="kept.markers",
                shards=2,
            ),
            KafkaSink(
                "repeated",
                output="events",
                topic="kept.repeated",
                connection="kafka",
                key="key",
                guarantee="at_least_once",
                committer=f"{home}/sent",
            ),
        ],
    )

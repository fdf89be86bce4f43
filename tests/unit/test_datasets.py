"""What lineage calls the places of sources and sinks: as OpenLineage's rules have it, and never with a login."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.dataset import Dataset
from lockstep.sinks import DeltaSink, FileSink, IcebergSink, KafkaSink, MariaDbSink, PostgresSink
from lockstep.sources import FileSource, KafkaSource, MariaDbTableSource, PostgresTableSource

SECRET = "hunter2"
CONNECTIONS = {
    "uri": f"postgresql://me:{SECRET}@db.example:6543/shop?password={SECRET}",
    "words": f"host=db.example dbname=shop user=me password={SECRET}",
    "socket": f"host=/run/postgresql dbname=shop password={SECRET}",
    "several": f"host=one,two port=1,2 dbname=shop password={SECRET}",
    "mariadb": f"mysql://me:{SECRET}@db.example/shop",
    "kafka": f"kafka://me:{SECRET}@one:9093,two:9093/?security.protocol=SASL_SSL&sasl.mechanism=PLAIN",
    "brokers": "one:9092,two:9092",
}


def postgres(connection: str, table: str = "public.orders") -> PostgresSink:
    return PostgresSink("sink", tables={"rows": table}, connection=connection)


def files(path: str) -> FileSink:
    return FileSink("sink", output="rows", path=path)


def test_a_sink_s_place_has_the_name_that_others_give_it_too(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        (postgres("uri"), "postgres://db.example:6543", "shop.public.orders"),
        (postgres("words", "orders"), "postgres://db.example:5432", "shop.public.orders"),
        (postgres("socket"), "postgres://localhost:5432", "shop.public.orders"),
        (postgres("several"), "postgres://one:1", "shop.public.orders"),
        (MariaDbSink("sink", tables={"rows": "t"}, connection="mariadb"), "mysql://db.example:3306", "shop.t"),
        (MariaDbSink("sink", tables={"rows": "d.t"}, connection="mariadb"), "mysql://db.example:3306", "d.t"),
        (files("/out/orders"), "file", "/out/orders"),
        (files("s3://bucket/some/orders?endpoint_override=http://127.0.0.1:1"), "s3://bucket", "some/orders"),
        (files("gs://bucket/orders"), "gs://bucket", "orders"),
        (files("az://box/orders?account=me"), "abfss://box@me.dfs.core.windows.net", "orders"),
        (files("hdfs://node:8020/orders"), "hdfs://node:8020", "/orders"),
        (files("hdfs://node/orders"), "hdfs://node:8020", "/orders"),
        (KafkaSink("sink", output="rows", topic="orders", connection="kafka"), "kafka://one:9093", "orders"),
        (KafkaSink("sink", output="rows", topic="orders", connection="brokers"), "kafka://one:9092", "orders"),
        (DeltaSink("sink", output="rows", path="s3://bucket/lake/orders"), "s3://bucket", "lake/orders"),
        (IcebergSink("sink", output="rows", table="a.b", catalog="c", location="/lake/b"), "file", "/lake/b"),
    ]
    for sink, namespace, name in cases:
        with subtests.test(sink=sink, namespace=namespace, name=name):
            assert sink.datasets(CONNECTIONS) == {"rows": Dataset(namespace, name)}
            assert SECRET not in repr(sink.datasets(CONNECTIONS))


def test_a_sink_s_output_may_have_several_places() -> None:
    sink = KafkaSink("sink", output="rows", topics=["b", "a"], topic_column="to", connection="kafka")
    assert sink.datasets(CONNECTIONS) == {
        "rows": (Dataset("kafka://one:9093", "a"), Dataset("kafka://one:9093", "b")),
    }


def test_a_source_s_places_have_the_names_that_others_give_them_too(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, list[tuple[str, str]]]] = [
        (FileSource("/in/orders/{interval_start:%Y-%m-%d}.csv", schema="id INT"), [("file", "/in/orders")]),
        (FileSource("/in/orders/*.csv", schema="id INT"), [("file", "/in/orders")]),
        (FileSource("/in/orders", schema="id INT"), [("file", "/in/orders")]),
        (FileSource("s3://bucket/in/{interval_start:%Y}/x.csv", schema="id INT"), [("s3://bucket", "in")]),
        (FileSource("s3://bucket/in?endpoint_override=http://127.0.0.1:1", schema="id INT"), [("s3://bucket", "in")]),
        (KafkaSource(("a", "b"), connection="kafka"), [("kafka://one:9093", "a"), ("kafka://one:9093", "b")]),
        (KafkaSource(pattern="a.*", connection="kafka"), []),
        (
            PostgresTableSource("orders", connection="uri", order_by="id"),
            [("postgres://db.example:6543", "shop.public.orders")],
        ),
        (MariaDbTableSource("t", connection="mariadb", order_by="id"), [("mysql://db.example:3306", "shop.t")]),
    ]
    for source, found in cases:
        with subtests.test(source=source, found=found):
            assert source.datasets(CONNECTIONS) == tuple(Dataset(*one) for one in found)


def test_a_table_whose_folder_only_its_catalog_knows_has_no_name() -> None:
    assert IcebergSink("sink", output="rows", table="a.b", catalog="c").datasets(CONNECTIONS) == {}

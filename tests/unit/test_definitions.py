"""What pipelines, sinks, sources and state may say of themselves, what stands of it in plans, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lockstep import KeyedState, Pipeline, rows_of
from lockstep.audits import conserved, not_null
from lockstep.audits.audit import audit_from_spec, outputs_conserved
from lockstep.compute.declared_windows import Windows
from lockstep.connections.names import Dataset
from lockstep.definition.conservation import Conservation
from lockstep.definition.ddl import Field, fields_of
from lockstep.errors import InvalidPipeline
from lockstep.sinks import DeltaSink, FileSink, IcebergSink, KafkaSink, MariaDbSink, PostgresSink
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import FileSource, KafkaSource, MariaDbTableSource, PostgresTableSource
from lockstep.spark.ddl import struct_of
from lockstep.wal.manifest import StateVersion, version_of, version_to_json
from lockstep.wal.request import StateRequest
from lockstep.wal.state_staging import WrittenState

# --- sinks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderSink(Sink):
    name: str
    output: str
    path: str
    columns: tuple[str, ...] = ()
    formats: Mapping[str, Any] = field(default_factory=dict)
    tries: int = 3

    operational: ClassVar = frozenset({"tries"})
    local_paths: ClassVar = frozenset({"path"})

    def open(self, context: SinkContext) -> OpenSink:
        raise NotImplementedError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    return tmp_path


def test_a_dataclass_is_a_whole_description_from_which_any_process_makes_the_sink_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FolderSink("folder", "rows", path="out", columns=("a", "b"), formats={"a": {"width": 3}}, tries=5)
    assert sink.outputs == ("rows",)
    arguments = {
        "name": "folder",
        "output": "rows",
        "path": str(home / "out"),
        "columns": ["a", "b"],
        "formats": {"a": {"width": 3}},
    }
    assert sink.spec() == {"type": f"{__name__}:FolderSink", "arguments": arguments}
    assert sink.settings() == {"tries": 5}
    spec = json.loads(json.dumps(sink.spec()))
    monkeypatch.setenv("LOCKSTEP_HOME", "/elsewhere")
    again = Sink.from_spec(spec, {"tries": 7})
    assert again.spec() == spec
    assert again.settings() == {"tries": 7}


def test_a_description_that_could_not_stand_in_a_handle_or_a_plan_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="sink name 'two words'"):
        FolderSink("two words", "rows", path="/out")
    sink = FolderSink("folder", "rows", path="/out", formats={"a": object()})
    with pytest.raises(InvalidPipeline, match="sink folder: formats is dict, which can't be JSON in a plan"):
        sink.spec()


# --- the names that lineage gives to places, never with a login ---------------------------------------------------

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
    sink = KafkaSink("sink", output="rows", topics=["b", "a"], topic_column="to", connection="kafka")
    assert sink.datasets(CONNECTIONS) == {
        "rows": (Dataset("kafka://one:9093", "a"), Dataset("kafka://one:9093", "b")),
    }
    only_its_catalog_knows = IcebergSink("sink", output="rows", table="a.b", catalog="c")
    assert only_its_catalog_knows.datasets(CONNECTIONS) == {}


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


# --- schemas, as Spark reads them ---------------------------------------------------------------------------------

SCHEMAS = {
    "k STRING NOT NULL, n BIGINT": ["STRING", "BIGINT"],
    "k string  not null comment 'a, b NOT NULL', n long comment \"it's\"": ["STRING", "BIGINT"],
    "k: INTEGER, n : NUMERIC( 10 , 2 ) NOT NULL": ["INT", "DECIMAL(10,2)"],
    "k TIMESTAMP_LTZ, n DEC(5) COMMENT 'it\\'s, so'": ["TIMESTAMP", "DECIMAL(5)"],
    "k REAL NOT\tNULL, n Decimal(38,18)": ["FLOAT", "DECIMAL(38,18)"],
}


@pytest.mark.fault("J17")
def test_windows_and_spark_are_told_the_same_types(subtests: pytest.Subtests) -> None:
    for ddl in SCHEMAS:
        with subtests.test(ddl=ddl):
            windows = Windows(schema=ddl, key=["k"], time="at", size=timedelta(hours=1), aggregates={"n": "max(x)"})
            assert list(windows.columns().values()) == SCHEMAS[ddl]
            assert [field.dataType for field in struct_of(ddl)] == [
                field.dataType
                for field in struct_of(", ".join(f"{name} {kind}" for name, kind in windows.columns().items()))
            ]
            for state in windows.state().values():
                struct_of(state.schema)


def test_a_nested_type_keeps_its_names() -> None:
    ddl = "`a``b` STRUCT<X: INT NOT NULL, `y,z` ARRAY<MAP<STRING, DECIMAL(4,1)>>> COMMENT 'c'"
    assert fields_of(ddl) == [Field("a`b", "STRUCT<X: INT NOT NULL, `y,z` ARRAY<MAP<STRING, DECIMAL(4,1)>>>")]
    assert struct_of(ddl).simpleString() == "struct<a`b:struct<X:int,y,z:array<map<string,decimal(4,1)>>>>"


@pytest.mark.fault("J17")
def test_what_is_no_schema_is_refused(subtests: pytest.Subtests) -> None:
    for ddl in ("", "a", "a INT,", "a INT b INT, c", "a INT NULL", "a NOT NULL", "a INT COMMENT none"):
        with subtests.test(ddl=ddl), pytest.raises(InvalidPipeline, match="schema: "):
            struct_of(ddl)


# --- keyed state --------------------------------------------------------------------------------------------------

SCHEMA, KEY = "k BIGINT, began TIMESTAMP, due TIMESTAMP", ("k", "began")
PLAIN = KeyedState(SCHEMA, KEY, 4, "due")
FOUND = KeyedState(SCHEMA, KEY, 4, "due", ["k"], self_expiring=True)


def test_what_older_versions_did_not_have_is_only_said_where_it_is_asked_for() -> None:
    told = StateRequest("file:///s", {"plain": PLAIN, "found": FOUND}, {}, {}).to_json()
    assert set(told["declared"]["plain"]) == {"schema", "key", "buckets", "expires"}
    assert StateRequest.from_json(told).declared == {"plain": PLAIN, "found": FOUND}
    for one in (PLAIN, FOUND):
        version = StateVersion(SCHEMA, KEY, 4, "due", (), tuple(one.found_by))
        assert version_of(version_to_json(version)) == version
        assert ("found_by" in version_to_json(version)) == (one is FOUND)
        wrote = WrittenState(SCHEMA, KEY, 4, "due", frozenset(), frozenset(), 0, tuple(one.found_by), one.self_expiring)
        assert WrittenState.from_json(wrote.to_json()) == wrote
        assert ("found_by" in wrote.to_json()) == ("self_expiring" in wrote.to_json()) == (one is FOUND)


def test_a_definition_that_makes_no_sense_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"found_by": ["due"]}, "must name columns of the key"),
        ({"found_by": ["k", "k"]}, "each once"),
        ({"self_expiring": True}, "needs expires="),
    ]
    for settings, told in cases:
        with subtests.test(settings=settings, told=told), pytest.raises(InvalidPipeline, match=told):
            KeyedState(SCHEMA, KEY, **settings)


# --- how rows travel ----------------------------------------------------------------------------------------------


def pipeline_of(*declared: Conservation) -> Pipeline:
    sources = {name: FileSource(f"landing/{name}/{{interval_start:%Y-%m-%d}}.csv", schema="id INT") for name in "ab"}
    sinks = [FileSink(name, output=name, path=f"out/{name}") for name in ("paid", "refunds")]
    return Pipeline("orders", sources, lambda inputs: inputs, sinks, conservation=declared)


Said = Callable[[Conservation], Conservation]


def test_what_can_not_be_meant_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Said, str]] = [
        (lambda rows: rows.into(), "say into\\(\\) once"),
        (lambda rows: rows.into("paid", "paid"), "say into\\(\\) once"),
        (lambda rows: rows.into("paid").into("refunds"), "say into\\(\\) once"),
        (lambda rows: rows.filtered("", "id = 1"), "a unique name, not ''"),
        (lambda rows: rows.filtered("in", "id = 1"), "a unique name, not 'in'"),
        (lambda rows: rows.filtered("odd", "id = 1").filtered("odd", "id = 3"), "a unique name, not 'odd'"),
        (lambda rows: rows.filtered("paid", "id = 1").into("paid"), r"\['paid'\] is the name of another count"),
        (lambda rows: rows.exploded("x").exploded("y"), "say exploded once"),
        (lambda rows: rows.joined("full", key="id"), "one of one_to_one, many_to_one, left, not 'full'"),  # type: ignore[arg-type]
        (lambda rows: rows.joined("many_to_one", key=[]), "at least one column"),
        (lambda rows: rows.joined("left", key="id"), "of a left join say unmatched="),
        (lambda rows: rows.joined("one_to_one", key="id"), "partner= names the other source"),
        (lambda rows: rows.joined("many_to_one", key="id", partner="b"), "partner= names the other source"),
        (lambda rows: rows.joined("one_to_one", key="id", partner="b").filtered("odd", "id = 1"), "every row of both"),
        (lambda rows: rows.exploded("x").joined("one_to_one", key="id", partner="b"), "every row of both"),
        (lambda rows: rows.joined("many_to_one", key="id").aggregated("id", count="n"), "joined or aggregated"),
        (lambda rows: rows.aggregated("id", count="n").joined("many_to_one", key="id"), "joined or aggregated"),
    ]
    for said, told in cases:
        whole = rf"^conservation of a into .*{told}"
        with subtests.test(told=told), pytest.raises(InvalidPipeline, match=whole):
            said(rows_of("a"))
    for sources in ((), ("a", "a")):
        with subtests.test(sources=sources), pytest.raises(InvalidPipeline, match="name the sources whose rows travel"):
            rows_of(*sources)


def test_a_pipeline_refuses_what_it_does_not_have(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Conservation], str]] = [
        ([rows_of("a")], "has no outputs"),
        ([rows_of("a", "c").into("paid")], r"names unknown sources \['c'\]; the pipeline has \['a', 'b'\]"),
        (
            [rows_of("a").into("paid", "gifts")],
            r"names unknown outputs \['gifts'\]; the pipeline has \['paid', 'refunds'\]",
        ),
        ([rows_of("a").joined("one_to_one", key="id", partner="c").into("paid")], r"names unknown sources \['c'\]"),
        ([rows_of("a").into("paid"), rows_of("a").filtered("odd", "id = 1").into("paid")], "is declared twice"),
        ([rows_of("b").into("paid"), rows_of("a").joined("one_to_one", key="id", partner="b").into("paid")], "twice"),
    ]
    for declared, told in cases:
        whole = rf"^pipeline orders: conservation of .*{told}"
        with subtests.test(told=told), pytest.raises(InvalidPipeline, match=whole):
            pipeline_of(*declared)


def test_an_audit_asks_of_what_is_said_and_a_plan_freezes_it() -> None:
    asked = conserved("paid", "refunds")
    assert audit_from_spec(asked.spec()) == asked
    assert outputs_conserved([asked.spec(), not_null("paid", "id").spec()]) == ("paid", "refunds")
    said = rows_of("a").into("paid")
    with pytest.raises(InvalidPipeline, match=r"asks whether rows were conserved into \['refunds'\]: say in"):
        replace(pipeline_of(said), audits=[asked])
    replace(pipeline_of(said, rows_of("b").into("refunds")), audits=[asked])
    joined: Any = rows_of("a").joined("one_to_one", key={"id": "lower(id)"}, partner="b").into("paid")
    assert joined.mirrored == Conservation(("b",), ("paid",), key={"id": "lower(id)"})
    pipeline_of(joined, rows_of("b").into("refunds"))

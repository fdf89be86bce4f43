"""Staging over Spark Connect: every row once, every bad record found, every input read once."""

from __future__ import annotations

import gc
import json
import os
import re
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from lockstep.compute._executors import ship_by_value
from lockstep.compute.stage import committing
from lockstep.errors import BadRecords, InvalidPipeline, PlanMismatch, SourceChanged, SparkRefused, StageFailed
from lockstep.sources import FileSource, SourceContext
from lockstep.spark.session import connect, release_later
from lockstep.spark.session import session as session_at
from lockstep.wal.manifest import SourceCount
from tests.spark import pipelines
from tests.spark.pipelines import Transform, pipeline_of
from tests.spark.staged import Staged, csv, plan, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


NOON = "2013-01-02T12:00:00Z"
GOOD = f"id,name,at\n1,x,{NOON}\n2,y,{NOON}\n"

BAD_CSV = {
    "too few fields": "3,z",
    "too many fields": f"3,z,{NOON},more",
    "a wrong type in the first column": f"three,z,{NOON}",
    "a wrong type in the last column": "3,z,noon",
    "a number too large": f"99999999999999999999,z,{NOON}",
    "a quote that never ends": f'3,"z,{NOON}',
}
#: each kind of bad record, a good one behind it
MIXED = GOOD + "".join(f"{bad}\n4,w,{NOON}\n" for bad in BAD_CSV.values())


def only(column: str) -> Transform:
    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        return {"rows": inputs["input"].select(column)}

    return transform


@pytest.mark.fault("J5")
def test_every_row_arrives_typed_once_in_any_order_with_duplicates(session: SparkSession, tmp_path: Path) -> None:
    text = f'id,name,at\n2,"a, ""b""\\",{NOON}\n1,NA,\n1,NA,\n,"",{NOON}\n'
    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, text, options={"nullValue": "NA"})))
    noon = datetime(2013, 1, 2, 12, tzinfo=UTC)
    expected = [(2, 'a, "b"\\', noon), (1, None, None), (1, None, None), (None, "", noon)]
    assert Counter(tuple(row.values()) for row in staged.rows()) == Counter(expected)
    assert staged.result.rows == {"rows": 4}
    assert staged.result.sources == {"input": SourceCount(4)}
    names = [path.name for path in (staged.folder / "rows").iterdir() if not path.name.startswith(".")]
    assert names and all(name.endswith(".zstd.parquet") for name in names)
    assert str(pq.read_schema(staged.folder / "rows" / names[0]).field("at").type) == "timestamp[us, tz=UTC]"


@pytest.mark.fault("J4")
def test_a_bad_record_fails_the_epoch_though_the_transform_reads_one_column(
    session: SparkSession, tmp_path: Path
) -> None:
    pipeline = pipeline_of(csv(tmp_path, MIXED), only("name"))
    with pytest.raises(BadRecords, match=r"6 of 14 records") as caught:
        stage(session, tmp_path, pipeline)
    assert re.findall(r"2013-01-02\.csv:(\d+): ", str(caught.value)) == ["4", "6", "8", "10", "12", "14"]


@pytest.mark.fault("J4")
def test_a_bad_record_goes_to_quarantine_and_is_counted(session: SparkSession, tmp_path: Path) -> None:
    source = csv(tmp_path, MIXED, on_bad_records="quarantine")
    staged = stage(session, tmp_path, pipeline_of(source, only("name")))
    assert sorted(row["name"] for row in staged.rows()) == [*"wwwwwwxy"]
    assert staged.result.sources == {"input": SourceCount(14, 6)}
    kept = [
        json.loads(line)
        for file in (staged.folder / "quarantine" / "input").glob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert sorted(record["record"] for record in kept) == sorted(BAD_CSV.values())
    assert all(record["file"].endswith("2013-01-02.csv") for record in kept)


@pytest.mark.fault("J4")
def test_a_bad_record_is_told_by_column_and_type_and_without_its_values(session: SparkSession, tmp_path: Path) -> None:
    schema = "id BIGINT NOT NULL COMMENT 'a, b', `a``b` DECIMAL(4,1), at DATE, ok BOOLEAN, tail STRING"
    text = "id,a`b,at,ok,tail\nhush,1,2013-01-02,true,hush\n1,hush,hush,hush,hush\n1,1\n99999999999999999999,1,,,\n"
    (tmp_path / "2013-01-02.csv").write_text(text)
    source = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.csv", schema=schema)
    with pytest.raises(BadRecords) as caught:
        stage(session, tmp_path, pipeline_of(source))
    assert [line.partition("2013-01-02.csv:")[2] for line in str(caught.value).splitlines()[1:]] == [
        "2: column id is no BIGINT",
        "3: column a`b is no DECIMAL(4,1), column at is no DATE, column ok is no BOOLEAN",
        "4: another number of values than the schema's 5 columns",
        "5: column id is no BIGINT",
    ]
    assert "hush" not in str(caught.value)


@pytest.mark.fault("J4")
@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("grow", [False, True])
def test_a_decimal_that_would_be_rounded_is_malformed(
    session: SparkSession, tmp_path: Path, kind: Literal["csv", "json"], grow: bool
) -> None:
    fits = [(1, "1234.56", "7"), (2, "-0.10", "-9999999999"), (3, "1.5000", "1e3")]
    wrong = [(4, "1.005", "7"), (5, "9999.999", "7"), (6, "0.00000000001", "7"), (7, "1.5", "0.5"), (8, "12345.6", "1")]
    if kind == "csv":
        lines = ["id,file,d,name", *(f"{id},{price},{whole},x" for id, price, whole in fits + wrong)]
    else:
        lines = [f'{{"id":{id},"file":{price},"d":{whole},"name":"x"}}' for id, price, whole in fits + wrong]
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / f"2013-01-02.{kind}").write_text("\n".join(lines) + "\n")

    def run(on_bad_records: Literal["fail", "quarantine"]) -> Staged:
        place = str(folder) if grow else f"{folder}/{{interval_start:%Y-%m-%d}}.{kind}"
        schema = "id BIGINT, file DECIMAL(6,2), d DECIMAL, name STRING"
        source = FileSource(place, format=kind, schema=schema, grow=grow, on_bad_records=on_bad_records)
        return stage(session, tmp_path, pipeline_of(source, only("file")))

    with pytest.raises(BadRecords, match="5 of 8 records") as caught:
        run("fail")
    told = str(caught.value).splitlines()[1:]
    expected = ["column file has more digits than DECIMAL(6,2)"] * 3 + ["column d has more digits than DECIMAL"]
    expected += ["column file is no DECIMAL(6,2)" if kind == "json" and grow else expected[0]]
    assert sorted(line.rpartition(": ")[2] for line in told) == sorted(expected)
    assert len([line for line in told if re.search(rf"\.{kind}:\d+: ", line)]) == 5
    staged = run("quarantine")
    assert sorted(str(row["file"]) for row in staged.rows()) == ["-0.10", "1.50", "1234.56"]
    assert staged.result.sources == {"input": SourceCount(8, 5)}


def test_decimals_in_structs_and_arrays_are_not_rounded_either(session: SparkSession, tmp_path: Path) -> None:
    good, nested, listed = '{"a":{"b":1.25,"B2":[1]}}', '{"a":{"b":1.255}}', '{"c":[1.1,1.11]}'
    (tmp_path / "2013-01-02.json").write_text(f"{good}\n{nested}\n{listed}\n")
    schema = "a STRUCT<b: DECIMAL(4,2), B2: ARRAY<INT>>, c ARRAY<DEC(3,1)>, m MAP<STRING, DECIMAL(4,1)>"
    schema = f"{schema}, s STRUCT<d: DECIMAL(4,1), m: MAP<STRING, INT>>"  # has nothing to be compared by
    source = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.json", format="json", schema=schema)
    with pytest.raises(BadRecords, match=r"(?s)2 of 3 .*column a has more digits.*column c has more digits"):
        stage(session, tmp_path, pipeline_of(source))


@pytest.mark.fault("R9")
def test_a_header_that_is_not_the_schemas_is_a_bad_record_and_no_row_is_quoted_for_one(
    session: SparkSession, tmp_path: Path
) -> None:
    for text, told in (
        (f"7,hunter2 CSV x,{NOON}\n", r"(?s)header.*Header: \?, \?, \?.*Schema: id, name, at.*2013-01-02\.csv"),
        ("id,name\n1,x\n", r"(?s)CSV header.*Header length: 2, schema size: 3.*2013-01-02\.csv"),
        (f"name,id,at\n1,2,{NOON}\n", r"(?s)header.*name, id, at.*2013-01-02\.csv"),
    ):
        with pytest.raises(BadRecords, match=told) as raised:
            stage(session, tmp_path, pipeline_of(csv(tmp_path, text)))
        shown = "".join(traceback.format_exception(raised.value))
        assert "hunter2" not in shown and NOON not in shown


def test_fields_over_several_lines_are_read_with_multiline(session: SparkSession, tmp_path: Path) -> None:
    source = csv(tmp_path, f'id,name,at\n1,"x\ny",{NOON}\n2,z,{NOON}\n', options={"multiLine": "true"})
    staged = stage(session, tmp_path, pipeline_of(source))
    assert sorted(row["name"] for row in staged.rows()) == ["x\ny", "z"]


def test_bad_json_lines_are_found(session: SparkSession, tmp_path: Path) -> None:
    text = '{"id":1,"name":"x"}\n{"id":"one"}\n{"id":2,\n{"name":"z","id":3}\n'
    (tmp_path / "2013-01-02.json").write_text(text)
    source = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.json", format="json", schema="id BIGINT, name STRING")
    with pytest.raises(BadRecords, match=r"(?s)2 of 4 .*json:2: column id is no BIGINT\n.*json:3: no JSON object$"):
        stage(session, tmp_path, pipeline_of(source, only("name")))


def test_text_and_parquet_are_sources_too(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "2013-01-02.txt").write_text("a\n\nb\n")
    text = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.txt", format="text")
    assert [row["value"] for row in stage(session, tmp_path, pipeline_of(text)).rows()] == ["a", "", "b"]
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "2013-01-02.parquet")
    parquet = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.parquet", format="parquet")
    staged = stage(session, tmp_path, pipeline_of(parquet))
    assert [row["id"] for row in staged.rows()] == [1, 2]
    assert staged.result.sources == {"input": SourceCount(2)}


def test_parquet_of_another_type_is_a_clear_error(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "2013-01-02.parquet")
    source = FileSource(f"{tmp_path}/{{interval_start:%Y-%m-%d}}.parquet", format="parquet", schema="id BIGINT")
    with pytest.raises(BadRecords, match=r"2013-01-02\.parquet.*id"):
        stage(session, tmp_path, pipeline_of(source))


@pytest.mark.fault("A10")
def test_an_empty_range_is_an_epoch_with_a_schema(session: SparkSession, tmp_path: Path) -> None:
    source = FileSource(f"{tmp_path}/{{interval_start:%Y}}.csv", schema="id BIGINT, name STRING", missing="empty")
    staged = stage(session, tmp_path, pipeline_of(source))
    assert staged.rows() == []
    assert staged.result.rows == {"rows": 0}
    assert staged.result.sources == {"input": SourceCount(0)}
    (file,) = (staged.folder / "rows").glob("*.parquet")
    assert pq.read_schema(file).names == ["id", "name"]


def test_names_that_look_like_patterns_are_read_literally(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a [1] {b} ü%20"
    folder.mkdir()
    (folder / "x*?.csv").write_text(GOOD)
    (folder / "xyz.tmp").write_text(GOOD)
    pipeline = pipeline_of(FileSource(str(tmp_path / "*"), schema="id INT, name STRING, at TIMESTAMP"))
    staged = stage(session, tmp_path, pipeline)
    assert staged.result.sources == {"input": SourceCount(2)}
    (folder / "x*?.csv").write_text(GOOD + "bad\n")
    with pytest.raises(BadRecords, match=r"csv:4"):
        stage(session, tmp_path, pipeline)


@pytest.mark.fault("A4")
def test_a_file_replaced_after_the_plan_fails_the_execution(session: SparkSession, tmp_path: Path) -> None:
    pipeline = pipeline_of(csv(tmp_path, GOOD))
    ranges = plan(pipeline)
    csv(tmp_path, GOOD + f"3,z,{NOON}\n")
    with pytest.raises(SourceChanged, match=r"2013-01-02\.csv"):
        stage(session, tmp_path, pipeline, ranges)


def test_a_file_that_vanishes_while_it_is_read_is_a_changed_source(session: SparkSession, tmp_path: Path) -> None:
    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        (tmp_path / "2013-01-02.csv").unlink()
        return {"rows": inputs["input"]}

    with pytest.raises(SourceChanged, match="No such file"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), transform))


@pytest.mark.fault("B18", "J13")
def test_two_outputs_come_from_one_read_though_the_file_is_replaced_between_them(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "2013-01-02.csv"
    calls: list[int] = []

    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        calls.append(1)
        if len(calls) == 2:  # the input has been read and kept: what comes now must not be seen
            facts = path.stat()
            path.write_text(GOOD.replace("1,x", "7,x"))
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        total = inputs["input"].groupBy().sum("id").withColumnRenamed("sum(id)", "total")
        return {"rows": inputs["input"], "total": total}

    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), transform, ("rows", "total")))
    assert len(calls) == 2
    assert sum(row["id"] for row in staged.rows()) == 3
    assert staged.rows("total") == [{"total": 3}]
    assert staged.result.sources == {"input": SourceCount(2)}


def test_what_is_kept_for_two_outputs_is_released_at_the_end_and_by_no_finalizer(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finalizer of PySpark's asks the server wherever garbage is collected, and waits without a deadline."""
    from pyspark.sql.connect import dataframe
    from pyspark.sql.connect.plan import CachedRemoteRelation

    asked, kept = [], list[str]()
    finalize = CachedRemoteRelation.__del__
    monkeypatch.setattr(CachedRemoteRelation, "__del__", lambda self: asked.append(self._spark_session))

    def twice(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        return {"rows": inputs["input"].where("id = 1"), "rest": inputs["input"].where("id = 2")}

    def noting(checkpoint: Any) -> None:
        kept.append(checkpoint._plan._relation_id)
        release_later(checkpoint)

    monkeypatch.setattr("lockstep.compute._counting.release_later", noting)
    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), twice, ("rows", "rest")))
    assert [len(staged.rows(name)) for name in ("rows", "rest")] == [1, 1]
    gc.collect()
    assert asked == [None] * len(kept) != []
    monkeypatch.setattr(CachedRemoteRelation, "__del__", finalize)
    for relation in kept:
        again: Any = dataframe.DataFrame(CachedRemoteRelation(relation, None), session)  # type: ignore[arg-type]
        with pytest.raises(PySparkException, match="No DataFrame with id"):
            again.collect()


def test_a_read_that_the_optimizer_cuts_out_is_counted_all_the_same(session: SparkSession, tmp_path: Path) -> None:
    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        return {"rows": inputs["input"].where("false")}

    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), transform))
    assert staged.result.rows == {"rows": 0}
    assert staged.result.sources == {"input": SourceCount(2)}
    with pytest.raises(BadRecords):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD + "bad\n"), transform))


def test_a_source_that_no_output_reads_is_refused(session: SparkSession, tmp_path: Path) -> None:
    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        return {"rows": inputs["input"].sparkSession.range(3)}

    with pytest.raises(InvalidPipeline, match="input"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), transform))


@pytest.mark.fault("H15")
def test_a_plan_with_other_sources_is_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PlanMismatch, match="replan"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD)), {})


def test_python_functions_reach_the_workers_by_value(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "OFFSET", 5000)  # a worker that imported the module itself would add 1000
    staged = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), pipelines.with_udf, ("rows", "total")))
    assert [row["id"] for row in staged.rows()] == [5001, 5002]
    mapped = stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), pipelines.with_arrow_udf))
    assert [row["name"] for row in mapped.rows()] == ["<x>", "<y>"]


def test_of_a_partial_the_functions_package_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial is an object of functools, which Spark can't pickle by value: so were no later epoch of the process."""
    registry: set[str] = set()
    monkeypatch.setattr("pyspark.cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES", registry)
    ship_by_value(pipeline_of(FileSource("x", schema="id BIGINT"), partial(partial(pipelines.with_udf))))
    assert {"tests", "lockstep.wal"} <= registry and "functools" not in registry


def test_a_task_puts_its_file_in_place_by_itself_only_where_no_executor_can_be_lost() -> None:
    several = ("local-cluster[2,1,512]", "spark://host:7077", "yarn", "")
    for masters, algorithm in (("local", "local[2]"), "2"), (several, "1"):
        for master in masters:
            settings: Any = SimpleNamespace(conf={"spark.master": master})
            assert committing(settings) == {"mapreduce.fileoutputcommitter.algorithm.version": algorithm}, master


PAGE = Path(__file__).parents[2] / "docs" / "sources.md"


def read(spark: SparkSession, path: Path, **arguments: Any) -> tuple[list[tuple[Any, ...]], int]:
    """The good rows, and how many are malformed."""
    source = FileSource(str(path), **arguments).open(SourceContext.for_reading("test", "input", {}))
    position = {"files": [{"path": str(path), "size": 0, "mtime_ns": 0}]}
    records = source.read_records(spark, None, position)
    return [tuple(row) for row in records.good().collect()], records.bad().count()


def documented(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    """The rows that the page's own check lets through."""
    [check] = re.findall(r"```python\n(def one_object_a_line.*?)```", PAGE.read_text(), re.S)
    found: dict[str, Any] = {}
    exec(check, found)
    return [tuple(row) for row in found["one_object_a_line"](spark.read.text(f"file://{path}")).collect()]


TRAILING = ['{"id": 2} {"id": 3}', '{"id": 2}, {"id": 3}', '{"id": 2} rest', '{"id": 2}}', '{"id": 2}] [{"id": 3}']


@pytest.mark.fault("J4")
def test_text_behind_the_first_json_object_of_a_line_is_seen_by_the_documented_check_only(
    spark: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for line in TRAILING:
        with subtests.test(line=line):
            path = tmp_path / "a.json"
            path.write_text(f'{{"id": 1}}\n{line}\n')
            assert read(spark, path, format="json", schema="id BIGINT") == ([(1,), (2,)], 0)
            with pytest.raises(Exception, match=r"MALFORMED_RECORD_IN_PARSING|more than one object"):
                documented(spark, path)


@pytest.mark.fault("J4")
def test_a_quote_that_is_not_closed_is_seen_in_every_column_but_the_last(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,name,note\n1,a,"open\n2,"b,x\n')
    schema = "id BIGINT, name STRING, note STRING"
    assert read(spark, path, schema=schema) == ([(1, "a", "open")], 1)


def failing(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    from pyspark.sql import functions as F

    def fail(value: int) -> int:
        raise ValueError("not this one")

    def wait(value: int) -> int:
        time.sleep(200)
        return value

    frame = inputs["input"]
    return {
        "rows": frame.withColumn("id", F.udf(wait, "bigint")("id")),
        "others": frame.withColumn("id", F.udf(fail, "bigint")("id")),
    }


@pytest.mark.timeout(120, func_only=True)
def test_an_output_that_fails_ends_the_others(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match=r"ValueError \(.*test_stage_epoch\.py.* in fail"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD), failing, ("rows", "others")))


@pytest.mark.fault("W6")
def test_no_setting_changes_what_a_file_means(spark_connect: str, tmp_path: Path) -> None:
    text = "id,day\n1,1500-01-01\n2,2026-02-30\n"
    settings = {"schema": "id BIGINT, day DATE", "options": {"dateFormat": "yyyy-MM-dd"}}
    source = csv(tmp_path, text, on_bad_records="quarantine", **settings)
    legacy = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.legacy.timeParserPolicy": "LEGACY"}

    def set_legacy(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        inputs["input"].sparkSession.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
        return {"rows": inputs["input"]}

    with session_at(spark_connect) as spark:
        for name, value in legacy.items():
            spark.conf.set(name, value)
        found = stage(connect(spark), tmp_path, pipeline_of(source))
        assert found.rows() == [{"id": 1, "day": date(1500, 1, 1)}]
        assert found.result.sources["input"].quarantined == 1
        with pytest.raises(SparkRefused, match=r"datetimeRebaseModeInWrite=LEGACY .not CORRECTED"):
            stage(spark, tmp_path, pipeline_of(source, set_legacy))

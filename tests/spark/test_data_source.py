"""Streaming readers of Spark's Python data source API as sources, and tables, read by Spark's workers."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from pyspark import cloudpickle

from lockstep.epoch import Position
from lockstep.errors import InvalidPipeline, SourceUnavailable
from lockstep.sources import DataSourceSource, OpenSource, SequenceSource, Source, SourceContext
from lockstep.spark._pyspark import HAS_READ_LIMITS
from lockstep.spark.ddl import struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMS = "tests.spark.streams"


def opened(source: Source, connections: Mapping[str, str] | None = None) -> OpenSource:
    return source.open(SourceContext("pipeline", "source", lambda paths: set(), connections or {}))


def epochs(source: OpenSource) -> list[tuple[Any, Any]]:
    """The ranges of a source until it has no more."""
    found: list[Position] = []
    for _ in range(20):
        end = source.latest(found[-1] if found else None, None)
        if source.is_empty(None, end):
            return [(position["start"], position["end"]) for position in found]
        found.append(end)
    raise AssertionError("it has no end")


# --- planning, without Spark -----------------------------------------------------------------------------------------


def test_a_simple_reader_tells_where_each_range_ends() -> None:
    source = opened(DataSourceSource(f"{STREAMS}:Letters"))
    assert epochs(source) == [({"n": 0}, {"n": 4}), ({"n": 4}, {"n": 8}), ({"n": 8}, {"n": 10})]
    with pytest.raises(InvalidPipeline, match="takes no read limit"):
        opened(DataSourceSource(f"{STREAMS}:Letters", max_rows_per_epoch=3)).latest(None, None)


@pytest.mark.skipif(not HAS_READ_LIMITS, reason="this pyspark has no read limits: they came with 4.2")
def test_a_reader_is_asked_with_its_own_read_limit_or_with_the_given_one() -> None:
    assert len(epochs(opened(DataSourceSource(f"{STREAMS}:Limited")))) == 5
    assert len(epochs(opened(DataSourceSource(f"{STREAMS}:Limited", max_files_per_epoch=3)))) == 2


def test_a_class_that_is_no_data_source_is_named(subtests: pytest.Subtests) -> None:
    for reference in ["nothing:Here", f"{STREAMS}:Slice", f"{STREAMS}:Nothing", "Letters"]:
        told = r"data source|DataSource"
        with subtests.test(reference=reference), pytest.raises(InvalidPipeline, match=told):
            opened(DataSourceSource(reference)).latest(None, None)


def test_what_a_reader_raises_is_told_without_its_secret_options() -> None:
    source = DataSourceSource(f"{STREAMS}:Limited", connection_options={"url": "queue"})
    assert source.connections == ("queue",)
    for secret, told in [
        ("broken://secret", r"ConnectionError: \*\*\* doesn't answer$"),
        ("mq://reader:p%2Fss%3Aw%40rd@host/queue", r"PermissionError: no such login: reader, \*\*\*$"),
    ]:
        with pytest.raises(SourceUnavailable, match=told):
            opened(source, {"queue": secret}).latest(None, None)


def test_what_a_reader_raises_on_a_worker_is_told_without_its_secret_options(subtests: pytest.Subtests) -> None:
    for place in ["schema", "streamReader", "partitions", "read"]:
        with subtests.test(place=place):
            secret = "mq://reader:p%2Fss%3Aw%40rd@host/queue"
            source = opened(
                DataSourceSource(f"{STREAMS}:Talkative", options={"at": place}, connection_options={"url": "queue"}),
                {"queue": secret},
            )
            position = {"start": {"shard": {"n": 0}}, "end": {"shard": {"n": 2}}}
            with pytest.raises(RuntimeError) as raised:
                rows_as_a_worker_reads_them(source, position)
            told = "".join(traceback.format_exception(raised.value))
            assert f"ConnectionError: {place}: *** doesn't answer, password ***" in told
            assert secret not in told and "p/ss:w@rd" not in told


def rows_as_a_worker_reads_them(source: OpenSource, position: Position) -> list[Any]:
    """What Spark asks of the class that it is given, here."""
    spark = MagicMock()
    source.read(spark, None, position)
    [[frozen]] = [call.args for call in spark.dataSource.register.call_args_list]
    sent = pickle.loads(cloudpickle.dumps(frozen))  # type: ignore[no-untyped-call]
    found = sent({})
    reader = found.reader(found.schema())
    return [row for partition in reader.partitions() for row in reader.read(partition)]


def test_a_sequence_counts_on_where_it_stopped_and_ends() -> None:
    source = opened(SequenceSource(40, first=5, last=100))
    assert epochs(source) == [({"next": 5}, {"next": 45}), ({"next": 45}, {"next": 85}), ({"next": 85}, {"next": 100})]
    endless = opened(SequenceSource(40))
    assert endless.latest(endless.latest(None, None), None) == {"start": {"next": 40}, "end": {"next": 80}}


# --- reading, with Spark ---------------------------------------------------------------------------------------------


def read(spark: SparkSession, source: OpenSource, position: Position) -> list[Any]:
    return sorted(tuple(row) for row in source.read(spark, None, position).collect())


def test_each_row_of_a_stream_is_read_once_epoch_by_epoch(session: SparkSession) -> None:
    letters = opened(DataSourceSource(f"{STREAMS}:Letters", options={"Alphabet": "ABCDEFGHIJ"}))
    position, rows = None, []
    for _ in range(4):
        position = letters.latest(position, None)
        rows += read(session, letters, position)
    assert rows == [(n, letter, None) for n, letter in enumerate("ABCDEFGHIJ")]


def test_secret_options_stand_in_no_plan(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    source = opened(
        DataSourceSource(f"{STREAMS}:Limited", connection_options={"url": "queue"}), {"queue": "ok://topsecret"}
    )
    source.read(session, None, source.latest(None, None)).explain("formatted")
    told = capsys.readouterr().out
    assert "limited" in told.lower()
    assert "topsecret" not in told


def test_ddl_means_what_spark_takes_it_for(session: SparkSession, subtests: pytest.Subtests) -> None:
    for ddl in [
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h STRING, i BINARY, j DATE",
        "a TIMESTAMP, b TIMESTAMP_NTZ, c DECIMAL(12,3), d DECIMAL, e NUMERIC(4)",
        "`a, ``b` array<int> not null, c: map<string, array<date>> COMMENT 'x, y', d struct<x: int, y string>",
    ]:
        with subtests.test(ddl=ddl):
            [spark, own] = [
                [(f.name, f.dataType, f.nullable) for f in s]
                for s in (session.createDataFrame([], ddl).schema, struct_of(ddl))
            ]
            assert own == spark
    for ddl in ("a NOTHING", "a INTERVAL DAY", "a", "a ARRAY<INT, INT>"):
        with subtests.test(ddl=ddl), pytest.raises(InvalidPipeline, match="schema"):
            struct_of(ddl)

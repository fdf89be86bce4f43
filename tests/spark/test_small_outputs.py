"""Outputs of small epochs are written by the process that runs the job: rows, types and refusals are those of Spark."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from lockstep.compute import stage as staging
from lockstep.compute._local_rows import VARIABLE, LocalFrame, MemoryBudget, collect_plain, rows_in
from lockstep.compute.stage import stage_epoch
from lockstep.errors import BadRecords, StageFailed, StagingUnavailable
from lockstep.sources.records import FrozenFiles, Reading, SourceRecords
from lockstep.wal.request import JobFiles
from tests.spark.pipelines import pipeline_of, unchanged
from tests.spark.staged import Staged, csv, request_of, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Frames = Mapping[str, "DataFrame"]
TEXT = "id,name,at\n1,ä,2013-01-02 01:00:00\n2,,\n"


def of_every_plain_type(inputs: Frames) -> Frames:
    found = inputs["input"].selectExpr(
        "id",
        "name",
        "at",
        "id > 1 AS bool",
        "CAST(id AS BYTE) AS byte",
        "CAST(id AS SHORT) AS short",
        "CAST(id AS INT) AS `int`",
        "id * CAST('NaN' AS FLOAT) AS nan",
        "CAST(-0.0 AS DOUBLE) AS zero",
        "CAST(id AS DECIMAL(9,2)) AS small",
        "CAST(id AS DECIMAL(18,3)) AS wide",
        "CAST(id AS DECIMAL(38,4)) AS widest",
        "CAST(name AS BINARY) AS bytes",
        "CAST(at AS DATE) AS day",
        "CAST(at AS TIMESTAMP_NTZ) AS local",
        "DATE'0001-01-01' AS first",
        "id AS `a.b ,;{}()=`",
    )
    return {"rows": found}


def nested(inputs: Frames) -> Frames:
    return {"rows": inputs["input"].selectExpr("id", "array(name) AS names", "struct(id, name) AS both")}


def nothing(inputs: Frames) -> Frames:
    return {"rows": inputs["input"].where("id < 0")}


def only_names(inputs: Frames) -> Frames:
    return {"rows": inputs["input"].select("name")}


def found_in(staged: Staged) -> pa.Table:
    tables = [pq.read_table(file) for file in sorted((staged.folder / "rows").glob("*.parquet"))]
    return pa.concat_tables(one.replace_schema_metadata(None) for one in tables)


@pytest.fixture(autouse=True)
def written_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders of outputs that this process has written."""
    found: list[str] = []
    real = JobFiles.write

    def noting(self: JobFiles, folder: str, table: pa.Table) -> None:
        found.append(folder.rpartition("/")[2])
        real(self, folder, table)

    monkeypatch.setattr(JobFiles, "write", noting)
    monkeypatch.setattr(staging, "_left_to_spark", set())
    return found


@pytest.mark.parametrize(("transform", "here"), [(of_every_plain_type, True), (nothing, True), (nested, False)])
def test_rows_and_types_are_those_of_sparks_own_files(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written_here: list[str],
    transform: Callable[[Frames], Frames],
    here: bool,
) -> None:
    pipeline = pipeline_of(csv(tmp_path, TEXT), transform)
    mine = stage(session, tmp_path, pipeline)
    assert bool(written_here) is here
    monkeypatch.setenv(VARIABLE, "0")
    sparks = stage(session, tmp_path, pipeline)
    assert len(written_here) == here
    assert mine.result.rows == sparks.result.rows
    assert mine.result.sources == sparks.result.sources
    assert found_in(mine).schema == found_in(sparks).schema
    assert str(found_in(mine).sort_by("id").to_pylist()) == str(found_in(sparks).sort_by("id").to_pylist())  # NaN


def test_more_rows_than_this_process_takes_are_written_by_spark(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_here: list[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    found = stage(session, tmp_path, pipeline_of(csv(tmp_path, TEXT)))
    assert not written_here
    assert found.result.rows == {"rows": 2}
    assert found.result.sources["input"].rows == 2
    assert len(found.rows()) == 2


@pytest.mark.parametrize(("more", "looked_at"), [("", 0), (",,\n", 0), ("x,y,\n", 1), ("3,z,yesterday\n", 1)])
def test_records_are_marked_only_where_some_is_malformed(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, looked_at: int
) -> None:
    marked: list[str] = []
    real = Reading.read

    def noting(self: Reading, spark: SparkSession, found: FrozenFiles) -> SourceRecords:
        marked.extend(found.files)
        return real(self, spark, found)

    monkeypatch.setattr(Reading, "read", noting)
    source = csv(tmp_path, TEXT + more)
    with pytest.raises(BadRecords, match=r"(?s)1 of 3 records .*:4: column") if looked_at else nullcontext():
        found = stage(session, tmp_path, pipeline_of(source, only_names))
        assert found.result.sources["input"].rows == len(found.rows()) == 2 + bool(more)
    assert len(marked) == looked_at


def test_epochs_side_by_side_hold_no_more_than_there_is_room_for(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_here: list[str]
) -> None:
    monkeypatch.setattr(staging, "MEMORY_BUDGET", budget := MemoryBudget(2))
    pipeline = pipeline_of(csv(tmp_path, TEXT))
    with budget.reserve(2):
        assert len(stage(session, tmp_path, pipeline).rows()) == 2
        assert not written_here
    assert len(stage(session, tmp_path, pipeline).rows()) == 2
    assert written_here == ["rows"]
    with MemoryBudget(0).reserve(1) as alone:
        assert alone


def test_rows_that_spark_refuses_to_hand_out_are_written_by_spark(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_here: list[str]
) -> None:
    """A server's limit can't be changed once it runs: the refusal is in the words of Spark's TaskSetManager."""

    def refuse(frame: DataFrame) -> None:
        raise SparkConnectGrpcException(
            "(org.apache.spark.SparkException) Job aborted due to stage failure: Total size of serialized results of 3 "
            "tasks (1536.0 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)"
        )

    monkeypatch.setattr(staging, "collect_plain", refuse)
    found = stage(session, tmp_path, pipeline_of(csv(tmp_path, TEXT)))
    assert not written_here
    assert found.result.sources["input"].rows == len(found.rows()) == 2


def test_a_folder_is_written_once(session: SparkSession, tmp_path: Path) -> None:
    pipeline = pipeline_of(csv(tmp_path, TEXT))
    request = request_of(tmp_path, pipeline)
    stage_epoch(session, pipeline, request)
    with pytest.raises(StagingUnavailable, match="rows"):
        stage_epoch(session, pipeline, request)


def test_rows_that_get_lost_on_their_way_here_fail_the_epoch(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = collect_plain

    def losing(frame: DataFrame) -> pa.Table | None:
        found = real(frame)
        return None if found is None else found.slice(1)

    monkeypatch.setattr(staging, "collect_plain", losing)
    with pytest.raises(StageFailed, match="returned 1"):
        stage(session, tmp_path, pipeline_of(csv(tmp_path, TEXT), unchanged))


def test_rows_are_let_go_with_their_frame(session: SparkSession) -> None:
    """A process that moves many epochs would hold the rows of all."""
    made = LocalFrame.over(session, pa.table({"id": [1, 2]}), None, lambda rows: {"rows": len(rows)}, rows="count(1)")
    assert rows_in(made.visible) == pa.table({"id": [1, 2]})
    frame = weakref.ref(made.visible)
    del made
    gc.collect()
    assert frame() is None

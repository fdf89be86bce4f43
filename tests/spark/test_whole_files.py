"""Files are read to their end: Spark goes by what the plan froze of them, and Parquet files say how many rows
there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.plan import LogicalPlan

from lockstep.errors import StageFailed
from lockstep.sources import FileSource
from lockstep.sources.files import open_source
from lockstep.sources.files._columns import read_parquet
from lockstep.sources.records import FrozenFiles, SourceRecords
from lockstep.spark.session import session as session_at
from lockstep.wal.manifest import SourceCount
from tests.spark.pipelines import Transform, pipeline_of
from tests.spark.staged import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["csv", "json", "text"]
FORMATS: tuple[Format, ...] = ("csv", "json", "text")
MANY = 200_000


def lines(folder: Path, kind: Format, rows: int) -> FileSource:
    """One file of `rows` records."""
    written = {"csv": "id\n" + "".join(f"{n}\n" for n in range(rows)), "text": "x\n" * rows}
    written["json"] = "".join(f'{{"id": {n}}}\n' for n in range(rows))
    (folder / "2013-01-02").write_text(written[kind])
    schema = None if kind == "text" else "id BIGINT"
    return FileSource(f"{folder}/{{interval_start:%Y-%m-%d}}", format=kind, schema=schema)


def parquet(folder: Path, rows: int) -> FileSource:
    pq.write_table(pa.table({"id": range(rows)}), folder / "2013-01-02.parquet", row_group_size=max(rows // 20, 1))
    return FileSource(f"{folder}/{{interval_start:%Y-%m-%d}}.parquet", format="parquet")


def few(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["input"].limit(3)}


def none(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["input"].limit(0)}


def first_batches(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)

    return {"rows": inputs["input"].mapInArrow(first, "id BIGINT")}


def filtered(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["input"].where("id = 5").selectExpr("1 AS one")}


@pytest.fixture
def forgetful(spark_connect: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session that answers a request to read as it answered an equal one, whatever has become of the files."""
    with session_at(spark_connect) as found:
        found.conf.set("spark.connect.session.planCache.enabled", "true")
        yield found


def corrected(
    spark: SparkSession, folder: Path, kind: Format, monkeypatch: pytest.MonkeyPatch, of: tuple[int, int] = (2, 50)
) -> list[int]:
    """How many rows are staged of a file, and of the longer one that takes its place, each by a new process."""
    found = []
    for rows in of:
        monkeypatch.setattr(LogicalPlan, "_nextPlanId", 0)  # a process numbers its plans from 0
        found.append(len(stage(spark, folder, pipeline_of(lines(folder, kind, rows))).rows()))
    return found


@pytest.mark.fault("A23")
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_read_as_the_shorter_one_before_it_fails_the_execution(
    forgetful: SparkSession, tmp_path: Path, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FrozenFiles, "digest", "the same")
    with pytest.raises(StageFailed, match=r"source input: Spark read a file as one of \d+ bytes.*nothing was sealed"):
        corrected(forgetful, tmp_path, kind, monkeypatch)


@pytest.mark.fault("A23")
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", FORMATS)
def test_nobody_takes_a_request_for_a_corrected_file_for_the_one_before(
    forgetful: SparkSession, tmp_path: Path, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert corrected(forgetful, tmp_path, kind, monkeypatch) == [2, 50]


@pytest.mark.fault("A23")
@pytest.mark.sample(1)
@pytest.mark.parametrize("corrected_rows", [1300, 3100])
def test_a_stale_size_of_whole_blocks_is_noticed_beside_other_files_in_blocks(
    forgetful: SparkSession, tmp_path: Path, corrected_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    monkeypatch.setattr(FrozenFiles, "digest", "the same")
    (tmp_path / "b.txt").write_text("x\n" * 3100)
    source = FileSource(f"{tmp_path}/*.txt", format="text")
    for rows in (1000, corrected_rows):
        monkeypatch.setattr(LogicalPlan, "_nextPlanId", 0)
        (tmp_path / "a.txt").write_text("x\n" * rows)
        if rows == 1000:
            assert len(stage(forgetful, tmp_path, pipeline_of(source)).rows()) == 4100
    with pytest.raises(StageFailed, match=r"Spark read a file as one of 2000 bytes, .*nothing was sealed"):
        stage(forgetful, tmp_path, pipeline_of(source))


@pytest.mark.fault("A23")
def test_fewer_rows_than_the_footers_say_fail_the_execution(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(*arguments: Any) -> SourceRecords:
        records = read_parquet(*arguments)
        return replace(records, frame=records.frame.where("id <> 7"))

    monkeypatch.setattr(open_source, "read_parquet", losing)
    with pytest.raises(StageFailed, match="footers of its files say 20 rows, and Spark read 19; nothing was sealed"):
        stage(session, tmp_path, pipeline_of(parquet(tmp_path, 20)))


@pytest.mark.fault("A23")
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("transform", [few, none, first_batches, filtered])
def test_a_transform_that_wants_a_part_of_its_input_alarms_nobody(
    session: SparkSession, tmp_path: Path, kind: str, transform: Transform
) -> None:
    source: Any = parquet(tmp_path, MANY) if kind == "parquet" else lines(tmp_path, "csv", MANY)
    staged = stage(session, tmp_path, pipeline_of(source, transform))
    assert staged.result.rows["rows"] == len(staged.rows())
    if kind == "parquet":
        assert staged.result.sources == {"input": SourceCount(MANY)}

"""Files are read to their end: Spark goes by what the plan froze of them, and Parquet files say how many rows
there are."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.plan import LogicalPlan

from lockstep.compute import _whole_files
from lockstep.compute._inputs import Input
from lockstep.errors import StageFailed
from lockstep.sources import FileSource
from lockstep.sources.records import Listing, Reading, Records
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


def looked_at(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    assert inputs["input"].first() is not None and not inputs["input"].isEmpty()
    return {"rows": inputs["input"].where("id < 3")}


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
    monkeypatch.setattr(Listing, "digest", "the same")
    with pytest.raises(StageFailed, match=r"source input: Spark read a file as one of \d+ bytes.*nothing was sealed"):
        corrected(forgetful, tmp_path, kind, monkeypatch)


@pytest.mark.fault("A23")
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", FORMATS)
def test_nobody_takes_a_request_for_a_corrected_file_for_the_one_before(
    forgetful: SparkSession, tmp_path: Path, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert corrected(forgetful, tmp_path, kind, monkeypatch) == [2, 50]


@pytest.fixture
def cutting(spark_connect: str) -> Iterator[SparkSession]:
    """A session that cuts files into blocks of a few records."""
    with session_at(spark_connect) as found:
        found.conf.set("spark.sql.files.maxPartitionBytes", "1000")
        yield found


def never(*_: object) -> NoReturn:
    raise AssertionError("the files were read once more")


def test_files_in_blocks_are_read_once(cutting: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Input, "_read_again", never)
    for name, rows in (("a", 2000), ("b", 10), ("c", 1000), ("d", 0)):
        (tmp_path / f"{name}.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(rows)))
    source = FileSource(f"{tmp_path}/*.csv", format="csv", schema="id BIGINT")
    assert stage(cutting, tmp_path, pipeline_of(source)).result.sources == {"input": SourceCount(3010)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("transform", [few, looked_at])
def test_blocks_that_were_not_all_read_alarm_nobody(
    cutting: SparkSession, tmp_path: Path, transform: Transform
) -> None:
    staged = stage(cutting, tmp_path, pipeline_of(lines(tmp_path, "csv", 2000), transform))
    assert staged.result.rows["rows"] == len(staged.rows()) == 3


def test_a_compressed_file_beside_blocks_and_a_last_block_without_a_record_alarm_nobody(
    cutting: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(f"{n},{'x' * 900}\n" for n in range(3)) + f"3,{'x' * 1500}\n")
    (tmp_path / "b.csv.gz").write_bytes(
        gzip.compress("".join(["id,x\n", *(f"{n},{n**9}\n" for n in range(500))]).encode())
    )
    source = FileSource(f"{tmp_path}/*", format="csv", schema="id BIGINT, x STRING")
    assert stage(cutting, tmp_path, pipeline_of(source)).result.sources == {"input": SourceCount(504)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", [(300, 1000), (700, 710)])
def test_a_file_in_blocks_that_is_read_as_a_shorter_one_fails_the_execution(
    forgetful: SparkSession, tmp_path: Path, rows: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    monkeypatch.setattr(Listing, "digest", "the same")
    with pytest.raises(StageFailed, match="nothing was sealed"):
        corrected(forgetful, tmp_path, "csv", monkeypatch, rows)


@pytest.mark.fault("A23")
@pytest.mark.sample(1)
@pytest.mark.parametrize("corrected_rows", [1300, 3100])
def test_a_stale_size_of_whole_blocks_is_noticed_beside_other_files_in_blocks(
    forgetful: SparkSession, tmp_path: Path, corrected_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    monkeypatch.setattr(Listing, "digest", "the same")
    (tmp_path / "b.txt").write_text("x\n" * 3100)
    source = FileSource(f"{tmp_path}/*.txt", format="text")
    for rows in (1000, corrected_rows):
        monkeypatch.setattr(LogicalPlan, "_nextPlanId", 0)
        (tmp_path / "a.txt").write_text("x\n" * rows)
        if rows == 1000:
            assert len(stage(forgetful, tmp_path, pipeline_of(source)).rows()) == 4100
    with pytest.raises(StageFailed, match=r"Spark read a file as one of 2000 bytes, .*nothing was sealed"):
        stage(forgetful, tmp_path, pipeline_of(source))


def test_to_ask_for_other_sizes_opens_no_file_that_has_a_frozen_one(cutting: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv.gz"
    file.write_text("what nobody can read")
    reading = Reading("csv", "id BIGINT", {"header": "true"})
    records = reading.read_sound(cutting, Listing({file.as_uri(): {"size": file.stat().st_size}}))
    assert records is not None and _whole_files.planned_size(records) is None
    with pytest.raises(PySparkException, match=r"bad\.csv\.gz"):
        _whole_files.planned_size(replace(records, sizes=(7,)))


@pytest.mark.fault("A23")
def test_files_that_were_all_read_alarm_nobody_though_another_read_cuts_them_elsewhere(
    cutting: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does when executors come or go between the two."""
    read_again = Input._read_again

    def elsewhere(read: Input, spark: SparkSession) -> Any:
        spark.conf.set("spark.sql.files.maxPartitionBytes", "700")
        return read_again(read, spark)

    monkeypatch.setattr(Input, "_read_again", elsewhere)
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(f"{n},{'x' * 900}\n" for n in range(3)) + f"3,{'x' * 1500}\n")
    source = FileSource(f"{tmp_path}/*.csv", format="csv", schema="id BIGINT, x STRING")
    assert stage(cutting, tmp_path, pipeline_of(source)).result.sources == {"input": SourceCount(4)}
    assert cutting.conf.get("spark.sql.files.maxPartitionBytes") == "700", "it was read once more"


def test_of_very_many_sizes_the_least_and_the_largest_count(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_whole_files, "_MOST_SIZES", 1)
    for rows in (1, 2, 3):
        (tmp_path / f"{rows}.txt").write_text("x\n" * rows)
    source = FileSource(f"{tmp_path}/*.txt", format="text")
    assert stage(session, tmp_path, pipeline_of(source)).result.sources == {"input": SourceCount(6)}
    monkeypatch.setattr(Listing, "sizes", frozenset({2, 4}))
    with pytest.raises(StageFailed, match="one of 6 bytes"):
        stage(session, tmp_path, pipeline_of(source))


@pytest.mark.fault("A23")
def test_fewer_rows_than_the_footers_say_fail_the_execution(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reading.read

    def losing(reading: Reading, spark: SparkSession, found: Listing) -> Records:
        records = read(reading, spark, found)
        return replace(records, frame=records.frame.where("id <> 7"))

    monkeypatch.setattr(Reading, "read", losing)
    with pytest.raises(StageFailed, match="footers of its files say 20 rows, and Spark read 19; nothing was sealed"):
        stage(session, tmp_path, pipeline_of(parquet(tmp_path, 20)))


@pytest.mark.fault("A23")
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("transform", [few, none, looked_at, first_batches, filtered])
def test_a_transform_that_wants_a_part_of_its_input_alarms_nobody(
    session: SparkSession, tmp_path: Path, kind: str, transform: Transform
) -> None:
    source: Any = parquet(tmp_path, MANY) if kind == "parquet" else lines(tmp_path, "csv", MANY)
    staged = stage(session, tmp_path, pipeline_of(source, transform))
    assert staged.result.rows["rows"] == len(staged.rows())
    if kind == "parquet":
        assert staged.result.sources == {"input": SourceCount(MANY)}

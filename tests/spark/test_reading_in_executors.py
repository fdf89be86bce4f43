"""What Spark has written is read by Spark's own executors, which need neither Lockstep nor the pipeline for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from lockstep.compute import _executors
from lockstep.compute._executors import ship_by_value, ship_ours
from lockstep.compute.sequence import SequenceDataSource
from lockstep.compute.stage import stage_epoch
from lockstep.connections.object_store.store import require_own_threads
from lockstep.sources.files.line_pieces import reader_of
from lockstep.sources.tables._mariadb_reading import SelectOut
from lockstep.sources.tables._postgres_reading import CopyOut
from lockstep.spark.python_readers import RangeReader, _frozen, ship
from lockstep.wal.file_digests import EpochColumn, FileDigests, Place, read_file_digest
from lockstep.wal.reading import read_files
from lockstep.wal.request import StageResult
from lockstep.wal.storages import storage_at
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import csv, request_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = "2013-01-02T12:00:00Z"
TEXT = f"id,name,at\n1,x,{NOON}\n2,y,{NOON}\n3,,{NOON}\n"


def thrice_and_once(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    rows = inputs["input"]
    return {"rows": rows.repartitionByRange(3, "id"), "names": rows.select("name")}


def staged(session: SparkSession, folder: Path, task_seals: int | None) -> tuple[StageResult, Path]:
    pipeline = pipeline_of(csv(folder, TEXT), thrice_and_once, ("rows", "names"))
    request = replace(request_of(folder, pipeline), task_seals=task_seals)
    return stage_epoch(session, pipeline, request), folder / "staging" / str(request.token)


@pytest.fixture(autouse=True)
def written_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE_ROWS", "0")


def test_executors_find_in_each_file_what_the_task_would(session: SparkSession, tmp_path: Path) -> None:
    result, folder = staged(session, tmp_path, 0)
    assert result.files is not None
    names = {(path.parent.name, path.name) for path in folder.rglob("*.parquet")}
    assert set(result.files) == names and len(names) == 4
    for output, name in names:
        place = Place(output, str(folder), output)
        here = read_file_digest(storage_at(place.storage), place, name)
        assert FileDigests([result.files[output, name]]).to_json() == FileDigests([here]).to_json()


def test_few_bytes_are_the_tasks(session: SparkSession, tmp_path: Path) -> None:
    assert [staged(session, tmp_path, task_seals)[0].files for task_seals in (1 << 20, None)] == [None, None]


def cannot(*_: Any) -> Any:
    raise ImportError("no module named numpy")


def test_executors_that_cannot_read_are_done_without(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_executors, "read_files", cannot)
    result, _ = staged(session, tmp_path, 0)
    assert result.files is None and result.rows == {"rows": 3, "names": 3}
    assert "no module named numpy" in caplog.text


def test_whoever_asked_a_store_before_is_not_taken_for_the_executor(tmp_path: Path) -> None:
    require_own_threads()
    ship_ours()
    (tmp_path / "ask").write_bytes(cloudpickle.dumps(require_own_threads))  # type: ignore[no-untyped-call]
    code = f"import pathlib, pickle\npickle.loads(pathlib.Path({str(tmp_path / 'ask')!r}).read_bytes())()"
    done = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def frozen_sequence() -> Any:
    return _frozen(SequenceDataSource, {"partitions": "3"}, {"next": 5}, {"next": 100})


def read_of(folder: Path) -> Any:
    (folder / "rows").mkdir()
    pq.write_table(pa.table({"x": [1, 2], "y": [["a"], None], "epoch": [3, 3]}), folder / "rows" / "rows.parquet")

    def read() -> list[Any]:
        import pyarrow as pa

        asked = pa.RecordBatch.from_pydict({"place": [0], "name": ["rows.parquet"]})
        place = Place("rows", str(folder), "rows", EpochColumn("epoch", 3))
        return [row["error"] for batch in read_files([place], iter([asked])) for row in batch.to_pylist()]

    return read


COUNT = "reader = found({}).reader(None); print(sum(len(b) for p in reader.partitions() for b in reader.read(p)))"


def test_what_reads_on_a_worker_needs_nothing_of_lockstep_there(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for made in (RangeReader, SequenceDataSource):
        ship(made)
    ship_by_value(pipeline_of(csv(tmp_path, TEXT)))
    cases: list[tuple[Any, str, str]] = [
        (CopyOut("host=x", "a", pa.schema([])), "print(found)", "CopyOut(application='a', schema=)"),
        (SelectOut({"password": "x"}, pa.schema([])), "print(found)", "SelectOut(schema=)"),
        (frozen_sequence(), COUNT, "95"),
        (reader_of([], None), "print(callable(found))", "True"),
        (read_of(tmp_path), "print(found())", "[None]"),
    ]
    for found, use, told in cases:
        with subtests.test(use, told=told):
            ship(found)
            load = f"import sys, pickle; sys.modules['lockstep'] = None; found = pickle.load(sys.stdin.buffer); {use}"
            sent = cloudpickle.dumps(found)  # type: ignore[no-untyped-call]
            done = subprocess.run([sys.executable, "-c", load], input=sent, cwd=tmp_path, env={}, capture_output=True)
            assert (done.stdout.decode().strip(), done.returncode) == (told, 0), done.stderr.decode()[-500:]

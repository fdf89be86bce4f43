"""Readers that know nothing of Lockstep count the rows of adopted files: polars and DuckDB, each by its own code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.sinks.durable_file import HashedFile
from lockstep.sinks.files._format import FileFormat, encoder
from lockstep.testing._sealed_rows import SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import epoch, prepare
from stack import outside_readers
from stack.delta import DELTA_SPARK
from tests.apart import apart
from tests.sinks import filtering_reader, outside_reader
from tests.sinks.compaction.lakes import ROWS, DeltaLake, IcebergLake, Lake

EPOCH = "lockstep_epoch"
Wals = Mapping[int, Sequence[SealedRows]]
Read = Callable[..., pa.Table]


@pytest.fixture(params=["delta", "iceberg"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_lake(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Lake]:
    if kind == "delta":
        return lambda **arguments: DeltaLake(tmp_path, **arguments)
    dsn, folder = request.getfixturevalue("warehouse_dsn"), request.getfixturevalue("memory")
    return lambda **arguments: IcebergLake(dsn, folder, **arguments)


@pytest.fixture(params=["polars", "duckdb"])
def read(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Read:
    """The table of a lake as the reader finds it, or one epoch of it."""
    if not outside_readers.present():
        pytest.skip("polars and DuckDB's extensions are not here: `make readers` fetches them")

    def read(lake: Lake, epoch: int | None = None) -> pa.Table:
        target = tmp_path / "found.arrow"
        told = [request.param, kind, lake.address(), str(target), *([] if epoch is None else [str(epoch)])]
        command = [sys.executable, outside_reader.__file__, *told]
        environment = {**os.environ, "PYTHONPATH": str(outside_readers.FOLDER), "POLARS_ICEBERG_PLANNER": "pyiceberg"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return pa.ipc.open_file(target).read_all()

    return read


READERS = {"delta": ("polars", "duckdb", "deltalake", "spark"), "parquet": ("polars", "duckdb", "spark")}


def wrong_filters(reader: str, kind: str, place: str) -> list[str]:
    """Filters that find other rows in the table, by its bounds, than without them."""
    jars = ",".join(map(str, DELTA_SPARK.paths())) if reader == "spark" else ""
    command = [sys.executable, filtering_reader.__file__, reader, kind, place, jars]
    folders = [str(outside_readers.FOLDER)] if reader in ("polars", "duckdb") else []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    environment["PYTHONPATH"] = os.pathsep.join([*folders, str(Path(__file__).parents[2])])
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert "DONE" in done.stdout, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if line.startswith("WRONG")]


@pytest.mark.fault("S2", "S3")
@pytest.mark.parametrize("kind", list(READERS))
def test_every_reader_finds_odd_values_of_every_type_by_every_filter(kind: str, tmp_path: Path) -> None:
    if not (outside_readers.present() and DELTA_SPARK.present):
        pytest.skip("`make readers delta` fetches what reads")
    if kind == "delta":
        lake = DeltaLake(tmp_path)
        for number, odd in enumerate(filtering_reader.tables(), 1):
            lake.publish(number, [SealedRows(odd)])
        place = lake.address()
    else:
        place = str(tmp_path)
        for number, odd in enumerate(filtering_reader.tables()):
            with closing(HashedFile(tmp_path / f"{number}.parquet")) as file:
                with encoder(FileFormat.PARQUET, file, odd.schema) as write:
                    write(odd)
                file.finish()
    for reader in READERS[kind]:
        assert wrong_filters(reader, kind, place) == [], reader
    if kind == "delta":
        lake.compact()
        for reader in ("duckdb", "deltalake"):
            assert wrong_filters(reader, kind, place) == [], f"{reader}, compacted"


def rows_of(found: pa.Table) -> Counter[tuple[Any, ...]]:
    """How often each row is there, with its epoch."""
    schema = SCHEMA.append(pa.field(EPOCH, pa.int64()))
    columns = [column.to_pylist() for column in found.select(schema.names).cast(schema).columns]
    return Counter(zip(*columns, strict=True))


def marked(wals: Wals) -> Counter[tuple[Any, ...]]:
    """The rows of these epochs, each with its own."""
    tables = [
        batches.table.select(SCHEMA.names).append_column(EPOCH, pa.array([number] * batches.rows, pa.int64()))
        for number, wal in wals.items()
        for batches in wal
    ]
    return rows_of(pa.concat_tables(tables))


def test_they_find_each_row_of_each_published_epoch_once_and_no_other_also_in_compacted_files(
    make_lake: Callable[..., Lake], read: Read
) -> None:
    lake = make_lake()
    wals = {number: lake.publish(number, sealed(300, start=1000 * number)) for number in (2, 1)}
    lake.publish(3, sealed(0))
    undecided = sealed(50, start=9000)
    apart(lambda: prepare(lake.target, epoch(4, token=40), undecided))
    assert rows_of(read(lake)) == marked(wals)
    for number, wal in wals.items():
        assert rows_of(read(lake, number)) == marked({number: wal})
    assert read(lake, 4).num_rows == 0
    wals |= lake.fill(5, 6)
    assert lake.compact().files_after == 1
    wals |= lake.fill(7)
    assert rows_of(read(lake)) == marked(wals)
    assert rows_of(read(lake, 5)) == marked({5: wals[5]})


def test_they_find_the_same_in_partitions_and_under_columns_that_came_later(
    make_lake: Callable[..., Lake], read: Read
) -> None:
    lake = make_lake(partition_by=["day"], on_new_columns="add")
    days, wals = (date(2013, 1, 1), None, date(2013, 1, 2)), {}
    for number, day in enumerate(days, 1):
        found = table(ROWS, 1000 * number).set_column(4, "day", pa.array([day] * ROWS, pa.date32()))
        if number == 3:
            found = found.append_column("extra", pa.array(range(ROWS), pa.int64()))
        wals[number] = lake.publish(number, [SealedRows(found)])
    there = read(lake)
    assert rows_of(there) == marked(wals)
    assert Counter(there["extra"].to_pylist()) == Counter([*range(ROWS), *[None] * 2 * ROWS])

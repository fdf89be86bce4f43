"""Rewriting: the same rows, whatever their types, in memory that doesn't grow with the files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.sinks import rewriting
from lockstep.sinks.rewriting import require_written, rewrite
from tests.sinks.test_delta import WIDE


def _written(folder: Path, *tables: pa.Table) -> list[Path]:
    paths = [folder / f"{number}.parquet" for number in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, store_schema=False, compression="zstd")
    return paths


def _rewritten(paths: list[Path], target: Path) -> pq.FileMetaData:
    with target.open("wb") as file:
        read = rewrite([partial(path.open, "rb") for path in paths], file)
    return require_written(partial(target.open, "rb"), read, "sink lake", target.name)


def test_values_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    paths = _written(tmp_path, WIDE, WIDE.slice(0, 1), WIDE.slice(0, 0))
    footer = _rewritten(paths, tmp_path / "new.parquet")
    expected = pa.concat_tables([pq.read_table(path) for path in paths])
    found = pq.read_table(tmp_path / "new.parquet")
    assert repr(found.to_pylist()) == repr(expected.to_pylist()) and found.schema.equals(expected.schema)
    assert footer.row_group(0).column(0).compression == "ZSTD", "as it was"


def test_field_ids_and_what_may_be_null_stay(tmp_path: Path) -> None:
    number = pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"})
    rows = pa.table({"id": [1, 2]}, schema=pa.schema([number]))
    _rewritten(_written(tmp_path, rows, rows), tmp_path / "new.parquet")
    assert pq.read_schema(tmp_path / "new.parquet").field("id").equals(number, check_metadata=True)


def test_files_of_another_schema_are_not_taken_along(tmp_path: Path) -> None:
    paths = _written(tmp_path, pa.table({"id": [1]}), pa.table({"id": ["1"]}))
    with pytest.raises(ValueError, match="another schema"):
        _rewritten(paths, tmp_path / "new.parquet")


def test_memory_does_not_grow_with_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "GROUP_BYTES", 1 << 20)
    monkeypatch.setattr(rewriting, "BATCH_BYTES", 1 << 18)
    peaks = []
    for times in (1, 12):
        rows = pa.table({"id": range(60_000 * times), "text": [f"{i:>40}" for i in range(60_000 * times)]})
        paths = _written(tmp_path, rows, rows)
        del rows
        pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            footer = _rewritten(paths, tmp_path / "new.parquet")
        finally:
            pa.set_memory_pool(usual)
        assert footer.num_rows == 120_000 * times and footer.num_row_groups > 3 * times
        peaks.append(pool.max_memory())
    assert peaks[1] < 2 * peaks[0], peaks

"""What a catalog is to point to has reached the disk, with its name, before it does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockstep.sinks.iceberg._durable_io import DurableFileIO, durable_io


def test_a_closed_file_and_every_name_on_its_way_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "db" / "table" / "metadata" / "00000.json"
    with durable_io().new_output(f"file://{path}").create() as file:
        file.write(b"{}")
        assert str(path) not in synced
    folders = [tmp_path, tmp_path / "db", tmp_path / "db" / "table"]
    assert synced == [*map(str, folders), str(path), str(path.parent)]
    assert path.read_bytes() == b"{}"


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = f"file://{tmp_path}/one"
    with durable_io().new_output(path).create() as file:
        file.write(b"1")
    with pytest.raises(FileExistsError):
        durable_io().new_output(path).create()
    with durable_io().new_output(path).create(overwrite=True) as file:
        file.write(b"2")
    assert durable_io().new_input(path).open().read() == b"2"


def test_a_table_can_not_have_another_class_loaded() -> None:
    """Who may change a table's properties would have any code run here."""
    io = durable_io({"py-io-impl": "os.system", "s3.endpoint": "http://127.0.0.1"})
    assert type(io) is DurableFileIO and "py-io-impl" not in io.properties

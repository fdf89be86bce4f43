"""A reader gets the rows that were sealed, or an error: never a row of anything else."""

from __future__ import annotations

import base64
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.errors import InvalidPipeline, StagingRefused, StagingUnavailable, WalCorrupt
from lockstep.wal import parquet as parquet
from lockstep.wal._storage import ReadableFile
from lockstep.wal.manifest import Manifest, canonical
from lockstep.wal.reading import OutputBatches, SealedWal
from lockstep.wal.storages import LocalStorage
from tests.cases import cases

from .conftest import DEPLOYMENT, Staged, either_storage, either_way, read_in_chunks, rows, staging_of

FOLDER = f"{DEPLOYMENT}/flights/epoch=3/17"


def wal_of(staged: Staged) -> SealedWal:
    return staged.staging.open(FOLDER, staged.seal().hash)


def part_of(staged: Staged) -> Path:
    """The second file of flights."""
    return sorted((staged.path / "flights").glob("*.parquet"))[1]


@pytest.fixture
def wal(staged: Staged) -> SealedWal:
    return wal_of(staged)


@pytest.fixture
def part(staged: Staged) -> Path:
    return part_of(staged)


def flights(wal: SealedWal) -> OutputBatches:
    return wal.outputs(["flights"])[0]


def table(batches: OutputBatches) -> pa.Table:
    return pa.Table.from_batches(list(batches), batches.schema)


@either_storage
@either_way
def test_a_reader_gets_the_rows_that_were_sealed_each_time(
    kind: str, tmp_path: Path, chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    staged = Staged(any_staging, root).fill()
    wal = any_staging.open(FOLDER, staged.seal().hash)
    wal.check()
    both = wal.outputs(["delays", "flights"])
    assert [(batches.output, batches.rows) for batches in both] == [("delays", 40), ("flights", 500)]
    for _ in range(2):
        assert table(both[1]).equals(rows(500))
        assert table(both[0]).equals(rows(40))


@either_way
def test_batches_are_bounded_in_rows_and_bytes(
    chunked: bool, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    staged = another()
    staged.write("flights", rows(70_000))
    batches = flights(staged.staging.open(FOLDER, staged.seal(flights=70_000).hash))
    assert [batch.num_rows for batch in batches] == [65_536, 4_464]
    assert all(batch.schema.equals(batches.schema, check_metadata=True) for batch in batches)
    staged, wide = another(), pa.table({"data": [random.Random(number).randbytes(60_000) for number in range(400)]})
    staged.write("flights", wide)
    batches = flights(staged.staging.open(FOLDER, staged.seal(flights=400).hash))
    assert max(batch.nbytes for batch in batches) < 20 << 20, "wide rows are fewer"
    assert table(batches).equals(wide)


@pytest.mark.fault("B5")
def test_files_that_the_manifest_does_not_name_are_not_read(wal: SealedWal, staged: Staged) -> None:
    pq.write_table(rows(9), staged.path / "flights" / "part-00009-zombie.parquet")
    (staged.path / "flights" / "_SUCCESS").unlink()
    wal.check()
    assert table(flights(wal)).equals(rows(500))
    with pytest.raises(InvalidPipeline, match="no output 'weather', it has delays, flights"):
        wal.outputs(["weather"])


def read(wal: SealedWal) -> None:
    for batches in wal.outputs(["flights", "delays"]):
        list(batches)


BOTH = cases("act", [read, SealedWal.check])


@pytest.mark.fault("B11")
@BOTH
@either_way
def test_a_file_cut_short_anywhere_is_corrupt(
    act: Callable[[SealedWal], None], another: Callable[[], Staged], chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    staged = another()
    wal, part = wal_of(staged), part_of(staged)
    data = part.read_bytes()
    for size in (0, 1, 4, len(data) // 2, len(data) - 8, len(data) - 1):
        part.write_bytes(data[:size])
        with pytest.raises(WalCorrupt, match=f"{part.name}: bytes found {size}, the manifest has {len(data)}"):
            act(wal)
    part.write_bytes(data + b"\0")
    with pytest.raises(WalCorrupt, match="bytes found"):
        act(wal)
    seen = 0
    with pytest.raises(WalCorrupt):
        for batch in flights(wal):
            seen += batch.num_rows
    assert seen == 300, "the rows before are followed by an error, not by an end"


@pytest.mark.fault("B12")
@BOTH
@either_way
def test_one_flipped_bit_anywhere_is_corrupt(
    act: Callable[[SealedWal], None], another: Callable[[], Staged], chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    staged = another()
    wal, part = wal_of(staged), part_of(staged)
    data = part.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    places = {
        "magic": 0,
        "page header": 5,
        "page": (len(data) - footer) // 2,
        "footer": len(data) - 8 - footer // 2,
        "footer length": len(data) - 8,
        "end": len(data) - 1,
    }
    for place in places.values():
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        part.write_bytes(flipped)
        with pytest.raises(WalCorrupt, match=f"{part.name}: sha256 found"):
            act(wal)
    part.write_bytes(data)
    act(wal)


@BOTH
def test_a_file_that_is_gone_or_became_a_link_or_a_folder_is_refused(
    act: Callable[[SealedWal], None], another: Callable[[], Staged], tmp_path: Path
) -> None:
    staged = another()
    wal, part = wal_of(staged), part_of(staged)
    shutil.move(part, tmp_path / "same.parquet")
    part.symlink_to(tmp_path / "same.parquet")
    with pytest.raises(StagingRefused):
        act(wal)
    part.unlink()
    with pytest.raises(WalCorrupt, match=f"{part.name} is missing"):
        act(wal)
    part.mkdir()
    with pytest.raises(WalCorrupt):
        act(wal)


@cases("lie", ["file", "schema", "total"])
def test_a_manifest_that_contradicts_its_files_is_corrupt(lie: str, another: Callable[[], Staged]) -> None:
    """Even when the ledger has its hash: a seal with a bug in it."""
    staged = another()
    value = json.loads(staged.seal().to_bytes())
    output = value["outputs"]["flights"]
    match lie:
        case "file":
            output["files"][1]["rows"] -= 1
            output["rows"] -= 1
        case "schema":
            other = pa.schema([("id", pa.int64()), ("tail", pa.string()), ("delay", pa.float32())])
            output["schema"] = base64.b64encode(other.serialize().to_pybytes()).decode()
        case "total":
            output["rows"] += 1
    (staged.path / "_manifest.json").write_bytes(canonical(value))
    wal = staged.staging.open(FOLDER, Manifest.from_bytes(canonical(value)).hash)
    for act in (read, SealedWal.check):
        with pytest.raises(WalCorrupt):
            act(wal)


@pytest.mark.fault("B12")
def test_a_manifest_that_differs_in_one_byte_is_refused(staged: Staged) -> None:
    manifest_hash = staged.seal().hash
    path = staged.path / "_manifest.json"
    data = path.read_bytes()
    for place in range(0, len(data), 11):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(WalCorrupt, match="the ledger has"):
            staged.staging.open(FOLDER, manifest_hash)
    for other in (b"", data[:-1], data + b"\n"):
        path.write_bytes(other)
        with pytest.raises(WalCorrupt, match="the ledger has"):
            staged.staging.open(FOLDER, manifest_hash)
    path.write_bytes(data)
    staged.staging.open(FOLDER, manifest_hash).check()


@pytest.mark.fault("B16")
def test_a_missing_folder_is_corrupt_but_missing_staging_is_unavailable(staged: Staged) -> None:
    manifest_hash = staged.seal().hash
    shutil.rmtree(staged.path.parent)
    with pytest.raises(WalCorrupt, match="missing"):
        staged.staging.open(FOLDER, manifest_hash)
    shutil.rmtree(staged.root / DEPLOYMENT)
    with pytest.raises(StagingUnavailable, match="check the mount"):
        staged.staging.open(FOLDER, manifest_hash)


def test_another_executions_manifest_is_corrupt_here(staged: Staged) -> None:
    manifest = staged.seal()
    shutil.copytree(staged.path, staged.path.with_name("18"))
    with pytest.raises(WalCorrupt, match="holds the manifest of"):
        staged.staging.open(FOLDER.replace("/17", "/18"), manifest.hash)


class LyingFile(io.BytesIO):
    """Bytes with one bit wrong, at the same size: a stale page."""

    def __init__(self, data: bytes) -> None:
        wrong = bytearray(data)
        wrong[len(data) // 2] ^= 1
        super().__init__(wrong)


class LyingStorage(LocalStorage):
    """Lies about Parquet files on the calls that `lies` names; `opened` holds whether each call asked for the disk."""

    def __init__(self, root: Path, lies: set[int]) -> None:
        super().__init__(root)
        self.lies, self.opened = lies, list[bool]()

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        file = super().open(path, fresh)
        if not path.endswith(".parquet"):
            return file
        self.opened.append(fresh)
        return LyingFile(file.read()) if len(self.opened) in self.lies else file


def lying(staged: Staged, *lies: int) -> tuple[LyingStorage, OutputBatches]:
    manifest_hash = staged.seal().hash
    storage = LyingStorage(staged.root, set(lies))
    staged.staging._storage = storage
    [delays] = staged.staging.open(FOLDER, manifest_hash).outputs(["delays"])
    return storage, delays


@pytest.mark.fault("B15")
@either_way
def test_a_stale_page_is_read_again_from_the_disk_and_what_stays_wrong_is_corrupt(
    chunked: bool, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    storage, delays = lying(another(), 1)
    assert table(delays).equals(rows(40))
    assert storage.opened[:2] == [False, True]
    storage, delays = lying(another(), 1, 2)
    with pytest.raises(WalCorrupt, match="sha256 found"):
        list(delays)
    assert storage.opened == [False, True]


def test_a_file_that_changes_between_hash_and_parse_gives_no_wrong_row(
    staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "IN_MEMORY", 0)
    monkeypatch.setattr(parquet, "_CHUNK", 64)
    _, delays = lying(staged, 2)  # 1 is hashed, 2 is parsed
    with pytest.raises(WalCorrupt, match=r"delays/part-00000.* changed while it was read"):
        list(delays)


@pytest.mark.fault("B16")
def test_a_read_error_in_the_middle_is_unavailable_not_corrupt(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "IN_MEMORY", 0)
    storage, delays = lying(staged)
    opened = storage.open

    def failing(path: str, fresh: bool = False) -> Any:
        file = opened(path, fresh)
        if len(storage.opened) == 2:
            monkeypatch.setattr(file, "read", fail)
        return file

    def fail(size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(storage, "open", failing)
    with pytest.raises(StagingUnavailable, match="Input/output error"):
        list(delays)

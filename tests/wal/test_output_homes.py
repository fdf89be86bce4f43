"""An output whose files live below the table that adopts them: sealed, read and let go as the others are."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.errors import StageFailed, StagingRefused, WalCorrupt
from lockstep.wal import sealing
from lockstep.wal._storage import ReadableFile, Storage
from lockstep.wal.digest import digest_batches
from lockstep.wal.file_digests import DigestedFile, digest_file
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.manifest import FACTS, Manifest, canonical
from lockstep.wal.reading import OutputBatches
from lockstep.wal.staging import Staging
from lockstep.wal.storages import LocalStorage, ObjectStorage
from lockstep.wal.table_staging import TableStaging
from tests.cases import cases
from tests.wal.conftest import DEPLOYMENT, Staged, local_store, rows

EPOCH = "lockstep_epoch"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def home(table: Path) -> TableStaging:
    return TableStaging(str(table), EPOCH)


def marked(found: pa.Table, epoch: int = 3) -> pa.Table:
    return found.append_column(EPOCH, pa.array([epoch] * found.num_rows, pa.int64()))


def folder_of(table: Path, token: int = 17, epoch: int = 3) -> Path:
    return table / "_lockstep" / DEPLOYMENT / "flights" / str(epoch) / str(token)


def write(table: Path, *parts: pa.Table, token: int = 17) -> list[Path]:
    """The output `delays` as Spark leaves it."""
    folder = folder_of(table, token) / "delays"
    folder.mkdir(parents=True)
    paths = [folder / f"part-{number:05}.parquet" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        pq.write_table(part, path)
    return paths


@pytest.fixture
def staged_apart(staging: Staging, root: Path) -> Staged:
    """Flights in staging; delays are another test's to write."""
    found = Staged(staging, root)
    staging.create(found.folder)
    found.write("flights", rows(300), rows(200, 300))
    return found


def seal(staged: Staged, home: TableStaging, delays: int = 40) -> Manifest:
    return staged.seal(homes={"delays": home}, delays=delays)


def delays_of(staged: Staged, manifest: Manifest) -> OutputBatches:
    [found] = staged.staging.open(staged.folder, manifest.hash).outputs(["delays"])
    return found


def test_it_is_read_as_any_other_and_its_files_are_named_with_their_footers_for_whoever_adopts_them(
    staged_apart: Staged, table: Path, home: TableStaging
) -> None:
    paths = write(table, marked(rows(25)), marked(rows(15, 25)))
    manifest = seal(staged_apart, home)
    found = delays_of(staged_apart, manifest)
    assert pa.Table.from_batches(list(found)) == rows(40)
    assert manifest.outputs["delays"].digest == digest_batches(rows(0).schema, rows(40).to_batches()).hexdigest()
    assert manifest.outputs["flights"].home is None
    staged_apart.staging.open(staged_apart.folder, manifest.hash).check()
    assert [table / file.path for file in found.files] == paths
    assert [file.uri for file in found.files] == [f"file://{path}" for path in paths]
    assert [file.bytes for file in found.files] == [path.stat().st_size for path in paths]
    assert not any("=" in file.path for file in found.files), "readers would take that for a partition"
    opened = Opened(table)
    found = through(opened, found)
    found.check_listed()
    assert [facts for _, facts in found.facts()] == [FileFacts.of(pq.read_metadata(path)) for path in paths]
    assert opened.paths == []


def test_an_empty_output_is_at_home_too(staged_apart: Staged, table: Path, home: TableStaging) -> None:
    write(table, marked(rows(0)))
    found = delays_of(staged_apart, seal(staged_apart, home, delays=0))
    assert (list(found), found.rows, [file.rows for file in found.files]) == ([], 0, [0])


@cases(
    "wrong",
    [
        rows(40),
        marked(rows(40), epoch=4),
        rows(40).append_column(EPOCH, pa.array([*[3] * 39, None], pa.int64())),
        rows(40).append_column(EPOCH, pa.array([3] * 40, pa.int32())),
        marked(rows(40)).select([EPOCH, "id", "tail", "delay"]),
    ],
)
def test_files_whose_rows_do_not_name_the_epoch_are_not_sealed(
    staged_apart: Staged, table: Path, home: TableStaging, wrong: pa.Table
) -> None:
    shutil.rmtree(table, ignore_errors=True)
    write(table, wrong)
    with pytest.raises(StageFailed, match=EPOCH):
        seal(staged_apart, home)


def test_files_that_are_not_what_spark_counted_or_not_written_at_home_are_not_sealed(
    staged_apart: Staged, table: Path, home: TableStaging
) -> None:
    with pytest.raises(Exception, match="delays"):
        seal(staged_apart, home)
    write(table, marked(rows(40)))
    for counted in (39, 41, 0):
        with pytest.raises(StageFailed, match="observed"):
            seal(staged_apart, home, delays=counted)


def test_a_file_that_is_not_as_it_was_sealed_is_found(staged_apart: Staged, table: Path, home: TableStaging) -> None:
    [path] = write(table, marked(rows(40)))
    found = delays_of(staged_apart, seal(staged_apart, home))
    data = path.read_bytes()
    harms: dict[str, Callable[[], object]] = {
        "changed": lambda: path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:]),
        "cut": lambda: path.write_bytes(data[:-1]),
        "other rows": lambda: pq.write_table(marked(rows(39)), path),
        "gone": path.unlink,
    }
    for name, harm in harms.items():
        harm()
        for look in (found.check, lambda: list(found), found.check_listed):
            with pytest.raises(WalCorrupt):
                look()
            assert path.exists() != (name == "gone")


class Opened(LocalStorage):
    """A table's folder; `paths`: what was opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.paths: list[str] = []

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        self.paths.append(path.rpartition("/")[2])
        return super().open(path, fresh)


def through(storage: Storage, found: OutputBatches) -> OutputBatches:
    return OutputBatches(storage, found._folder, found._manifest, found._noted)


def test_values_of_rows_are_noted_beside_the_manifest_and_go_with_the_wal(
    staged_apart: Staged, table: Path, home: TableStaging
) -> None:
    secret = rows(2).set_column(1, "tail", pa.array(["A. Person", "B. Person"]))
    write(table, marked(secret))
    manifest, staging = seal(staged_apart, home, delays=2), staged_apart.staging

    def holders() -> list[str]:
        return [path.name for path in staged_apart.root.rglob("*") if path.is_file() and b"Person" in path.read_bytes()]

    assert holders() == [FACTS]
    staging.archive(staged_apart.folder, DEPLOYMENT, "flights", 3)
    staging.discard_epoch(DEPLOYMENT, "flights", 3)
    assert holders() == []
    assert staging.kept_manifest(DEPLOYMENT, "flights", 3, manifest.hash) == manifest


def test_facts_that_are_not_as_they_were_noted_are_found(staged_apart: Staged, table: Path, home: TableStaging) -> None:
    write(table, marked(rows(40)))
    wal = staged_apart.staging.open(staged_apart.folder, seal(staged_apart, home).hash)
    path = staged_apart.path / FACTS
    harms: tuple[Callable[[], object], ...] = (
        lambda: path.write_bytes(path.read_bytes().replace(b"39", b"38")),
        path.unlink,
    )
    for harm in harms:
        harm()
        for look in (wal.check, lambda: list(wal.outputs(["delays"])[0].facts())):
            with pytest.raises(WalCorrupt, match=FACTS):
                look()


@cases("kind", ["local", "object"])
def test_a_file_is_read_again_only_if_it_was_written_anew_though_its_size_is_the_same(
    kind: str, tmp_path: Path
) -> None:
    table = tmp_path / "a table"
    paths = write(table, marked(rows(25)), marked(rows(15, 25)))
    folder = f"{folder_of(table).relative_to(table)}"
    local, store = Opened(table), local_store(table)
    storage = local if kind == "local" else ObjectStorage(store)
    sealed = sealing.seal_table_staging(storage, folder, "delays", 40, TableStaging(str(table), EPOCH), 3)
    found, read, open_object = OutputBatches(storage, f"{folder}/delays", sealed), local.paths, store.open

    def watched(path: str, etag: str | None = None) -> Any:
        read.append(path.rpartition("/")[2])
        return open_object(path, etag)

    store.open = watched  # type: ignore[method-assign]
    checks = [found.check_listed] if kind == "local" else [found.check, found.check_listed]
    read.clear()
    for check in checks:
        check()
    assert read == []
    data, before = paths[1].read_bytes(), paths[1].stat()
    paths[1].unlink()
    paths[1].write_bytes(data)  # as a backup gives it back
    checks[0]()
    assert set(read) == {paths[1].name}
    paths[1].write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    if kind == "local":
        os.utime(paths[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    for check in checks:
        with pytest.raises(WalCorrupt, match="sha256"):
            check()
    paths[1].unlink()
    for check in checks:
        with pytest.raises(WalCorrupt, match="missing"):
            check()


def test_a_file_that_changes_while_it_is_sealed_is_not_sealed(
    staged_apart: Staged, table: Path, home: TableStaging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(table, marked(rows(25)), marked(rows(15, 25)))

    def digested(storage: Storage, path: str, *arguments: Any) -> DigestedFile:
        found = digest_file(storage, path, *arguments)
        again = tmp_path / uuid4().hex
        again.write_bytes(paths[0].read_bytes())
        again.replace(paths[0])  # at once: others read it meanwhile
        return found

    monkeypatch.setattr("lockstep.wal.sealing.digest_file", digested)
    with pytest.raises(StageFailed, match="changed while it was sealed"):
        seal(staged_apart, home)


def test_a_manifest_has_the_home_of_an_output_and_a_damaged_home_is_found(
    staged_apart: Staged, table: Path, home: TableStaging
) -> None:
    write(table, marked(rows(40)))
    manifest = seal(staged_apart, home)
    value = json.loads(manifest.to_bytes())
    again = Manifest.from_bytes(manifest.to_bytes())
    assert (again, again.hash, again.outputs["delays"].home) == (manifest, manifest.hash, home)
    damages: list[object] = [{}, {"table": "/x"}, {"table": 1, "epoch_column": "e"}, []]
    for damage in damages:
        value["outputs"]["delays"]["home"] = damage
        with pytest.raises(WalCorrupt):
            Manifest.from_bytes(canonical(value))


def test_an_executions_files_are_discarded_and_nobody_elses_and_no_link_is_followed(
    staging: Staging, table: Path, home: TableStaging, tmp_path: Path
) -> None:
    for token in (17, 18):
        write(table, marked(rows(4)), token=token)
    (folder_of(table).parent / "somebody's").mkdir()
    (table / "data.parquet").write_bytes(b"the table's own")
    there = staging.home(home, DEPLOYMENT, "flights")
    assert there.tokens(3) == [17, 18]
    for _ in range(2):
        there.discard(3, 17)
    assert there.tokens(3) == [18]
    assert sorted(path.name for path in folder_of(table).parent.iterdir()) == ["18", "somebody's"]
    assert (table / "data.parquet").exists()
    assert there.tokens(4) == []
    (folder_of(table, 18) / "link").symlink_to(tmp_path)
    with pytest.raises(StagingRefused, match="link"):
        there.discard(3, 18)
    assert list(folder_of(table, 18).rglob("*.parquet"))

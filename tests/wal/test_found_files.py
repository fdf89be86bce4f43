"""Files that executors have read: the task seals what it would have read itself, and sees what has changed since."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.errors import StageFailed
from lockstep.wal._storage import Storage
from lockstep.wal.file_digests import EpochColumn, FileDigests, Place, digest_file, read_file_digest
from lockstep.wal.manifest import Manifest
from lockstep.wal.parquet import fingerprint
from lockstep.wal.reading import read_files
from lockstep.wal.staging import Staging
from lockstep.wal.storages import LocalStorage
from lockstep.wal.table_staging import TableStaging
from tests.wal.conftest import Staged, rows
from tests.wal.test_output_homes import EPOCH, folder_of, marked, write


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def any_job(any_staging: Staging, root: Path, table: Path) -> Staged:
    return job_in(any_staging, root, table)


@pytest.fixture
def job(staging: Staging, root: Path, table: Path) -> Staged:
    return job_in(staging, root, table)


def job_in(staging: Staging, root: Path, table: Path) -> Staged:
    """Flights in staging, delays below their table: not sealed."""
    found = Staged(staging, root)
    staging.create(found.folder)
    found.write("flights", rows(300), rows(200, 300))
    write(table, marked(rows(25)), marked(rows(15, 25)))
    return found


def known(job: Staged, table: Path) -> FileDigests:
    """What executors tell, as the task gets it."""
    storages: dict[str, Storage] = {"flights": job.staging._storage, "delays": LocalStorage(table)}
    flights = Place("flights", "", f"{job.folder}/flights")
    delays = Place("delays", "", str(folder_of(table).relative_to(table) / "delays"), EpochColumn(EPOCH, 3))
    found = [
        read_file_digest(storages[place.output], place, name)
        for place in (flights, delays)
        for name in storages[place.output].stamps(place.folder)
        if name.endswith(".parquet") and not name.startswith(".")
    ]
    return FileDigests.from_json(json.loads(json.dumps(FileDigests(found).to_json())))


def seal(job: Staged, table: Path, found: FileDigests | None = None) -> Manifest:
    """Sealed, and not yet a WAL: so it can be sealed again."""
    manifest = job.seal(homes={"delays": TableStaging(str(table), EPOCH)}, digests=found)
    for name in ("_facts.json", "_manifest.json"):
        (job.path / name).unlink()
    return manifest


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the files that the task reads."""
    names: list[str] = []

    def watched(storage: Storage, path: str, fresh: bool = False) -> object:
        names.append(path.rpartition("/")[2])
        return fingerprint(storage, path, fresh)

    monkeypatch.setattr("lockstep.wal.sealing.fingerprint", watched)
    yield names


def test_the_manifest_is_the_same_whoever_has_read_the_files(any_job: Staged, table: Path, read: list[str]) -> None:
    by_executors = seal(any_job, table, known(any_job, table))
    assert read == [], "the task reads nothing"
    by_the_task = seal(any_job, table)
    assert len(read) == 4
    assert by_executors.to_bytes() == by_the_task.to_bytes()
    assert Manifest.from_bytes(by_executors.to_bytes()) == by_the_task
    value = known(any_job, table).to_json()
    other_version = {**value, "digest_version": value["digest_version"] + 1}
    assert len(FileDigests.from_json(value)) == 4 and len(FileDigests.from_json(other_version)) == 0


def test_a_file_that_changed_or_went_since_is_not_sealed(any_job: Staged, table: Path) -> None:
    found = known(any_job, table)
    path = folder_of(table) / "delays" / "part-00001.parquet"
    pq.write_table(marked(rows(15, 26)), path)
    with pytest.raises(StageFailed, match="changed since an executor read it"):
        seal(any_job, table, found)
    path.unlink()
    with pytest.raises(StageFailed, match=r"part-00001\.parquet is missing, though"):
        seal(any_job, table, found)
    pq.write_table(marked(rows(15, 25)), path)
    any_job.write("flights", rows(300), rows(200, 301))
    with pytest.raises(StageFailed, match="changed since an executor read it"):
        seal(any_job, table, found)


def test_a_file_that_came_since_is_read_and_counted(job: Staged, table: Path, read: list[str]) -> None:
    found = known(job, table)
    late = folder_of(table) / "delays" / "part-00002.parquet"
    pq.write_table(marked(rows(1)), late)
    with pytest.raises(StageFailed, match="observed 40 rows, the files hold 41"):
        seal(job, table, found)
    pq.write_table(marked(rows(0)), late)
    assert len(seal(job, table, found).outputs["delays"].files) == 3
    assert set(read) == {late.name}


def test_what_looks_otherwise_here_is_read_and_sealed_if_it_is_the_same(
    job: Staged, table: Path, read: list[str]
) -> None:
    before, found = seal(job, table), known(job, table)
    path = folder_of(table) / "delays" / "part-00001.parquet"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    read.clear()
    manifest = seal(job, table, found)
    assert set(read) == {path.name}
    assert manifest.outputs["delays"].digest == before.outputs["delays"].digest
    assert manifest == seal(job, table)


def test_where_the_storage_has_no_name_for_bytes_the_task_reads_them(
    any_job: Staged, table: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = known(any_job, table)
    nameless = [replace(file, stamp=replace(file.stamp, etag=None)) for file in found.values()]
    seal(any_job, table, FileDigests(nameless))
    assert len(read) == 4


def test_a_file_that_changes_while_it_is_read_is_not_told_of(
    job: Staged, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder_of(table) / "delays" / "part-00001.parquet"

    def digested(*arguments: object) -> object:
        path.write_bytes(path.read_bytes())
        return digest_file(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("lockstep.wal.file_digests.digest_file", digested)
    with pytest.raises(OSError, match="changed while it was read"):
        known(job, table)


def test_an_executor_says_which_files_it_cannot_read(table: Path) -> None:
    write(table, marked(rows(25)))
    folder = folder_of(table) / "delays"
    (folder / "part-00001.parquet").write_bytes(b"no Parquet")
    place = Place("delays", str(table), str(folder.relative_to(table)), EpochColumn(EPOCH, 3))
    names = ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    asked = pa.RecordBatch.from_pydict({"place": [0, 0, 0], "name": names})
    [first, second, third] = [batch.to_pylist()[0] for batch in read_files([place], iter([asked]))]
    assert [*FileDigests.from_json(json.loads(first["found"]))] == [("delays", names[0])] and first["error"] is None
    assert second["found"] is None and "part-00001.parquet: StageFailed" in second["error"]
    assert third["found"] is None and "part-00002.parquet: FileNotFoundError" in third["error"]


def test_a_draft_that_is_gone_while_its_folder_is_listed_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes the same file beside it, and removes its draft between the listing and the look."""
    (tmp_path / "part-1").write_bytes(b"whole")
    draft = tmp_path / ".part-1.5e1f"
    draft.write_bytes(b"whole")
    scan = os.scandir

    @contextmanager
    def listed(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scan(folder) as entries:
            found = list(entries)
        draft.unlink()
        yield found

    monkeypatch.setattr(os, "scandir", listed)
    assert list(LocalStorage(tmp_path).stamps("")) == ["part-1"]

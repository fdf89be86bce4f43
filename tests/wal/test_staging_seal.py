"""The seal takes exactly what Spark counted, makes it durable, and puts the manifest last."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.crash import CrashInjected, CrashPoint
from lockstep.errors import InvalidPipeline, LockstepError, StageFailed, StagingRefused, StagingUnavailable
from lockstep.wal import file_digests as early_digests
from lockstep.wal import parquet as parquet
from lockstep.wal import sealing
from lockstep.wal import storages as local_storage
from lockstep.wal._storage import Storage
from lockstep.wal.digest import DIGEST_VERSION, digest_batches
from lockstep.wal.file_digests import DigestedFile, EarlyDigests, digest_file
from lockstep.wal.manifest import Manifest
from lockstep.wal.request import REQUEST, RESULT
from lockstep.wal.staging import Staging
from tests.cases import cases
from tests.crash_states import CrashState, Recording, broken_states, recorded

from .conftest import (
    DEPLOYMENT,
    OUTPUTS,
    Staged,
    either_storage,
    either_way,
    object_staging,
    read_in_chunks,
    rows,
    staging_of,
)

FOLDER = f"{DEPLOYMENT}/flights/epoch=3/17"


@either_storage
@either_way
def test_the_manifest_counts_and_digests_what_was_staged(
    kind: str, tmp_path: Path, chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_chunks(chunked, monkeypatch)
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    staged = Staged(any_staging, root).fill()
    manifest = staged.seal()
    flights = manifest.outputs["flights"]
    assert (manifest.deployment, manifest.pipeline, manifest.epoch, manifest.token) == (DEPLOYMENT, "flights", 3, 17)
    assert [file.rows for file in flights.files] == [300, 200]
    assert flights.rows == 500 and manifest.outputs["delays"].rows == 40
    assert flights.schema.equals(rows(0).schema, check_metadata=True)
    assert flights.digest == digest_batches(flights.schema, rows(500).to_batches()).hexdigest()
    assert manifest.digest_version == DIGEST_VERSION
    assert (staged.path / "_manifest.json").read_bytes() == manifest.to_bytes()
    assert manifest == any_staging.open(staged.folder, manifest.hash).manifest


def test_what_hadoop_leaves_beside_the_rows_is_ignored(staged: Staged) -> None:
    (staged.path / "flights" / "_temporary" / "0").mkdir(parents=True)
    (staged.path / "_temporary").mkdir()
    (staged.path / "quarantine").mkdir()
    (staged.path / "quarantine" / "part-0.json").touch()
    staged.staging.write_json(FOLDER, "_result.json", {})
    assert set(staged.seal().outputs) == set(OUTPUTS)


@pytest.mark.fault("B20")
def test_an_output_without_rows_is_sealed_with_its_schema_beside_one_of_very_many_files(staged: Staged) -> None:
    staged.write("delays", rows(0))
    staged.write("flights", *(rows(5, 5 * part) for part in range(100)))
    manifest = staged.seal(delays=0)
    flights = manifest.outputs["flights"]
    assert len(flights.files) == 100
    assert flights.digest == digest_batches(flights.schema, rows(500).to_batches()).hexdigest()
    assert manifest.outputs["delays"].rows == 0 and len(manifest.outputs["delays"].schema) == 3
    [delays] = staged.staging.open(FOLDER, manifest.hash).outputs(["delays"])
    assert [batch.num_rows for batch in delays] in ([], [0])


def write_none(folder: Path) -> None:
    for path in (folder / "delays").glob("*.parquet"):
        path.unlink()


def write(table: pa.Table) -> Callable[[Path], object]:
    return lambda folder: pq.write_table(table, folder / "flights" / "part-9.parquet")


def damage(folder: Path, start: int, end: int | None, data: bytes = b"") -> None:
    file = next((folder / "flights").glob("*.parquet"))
    whole = bytearray(file.read_bytes())
    whole[start:end] = data
    file.write_bytes(whole)


WRONG: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: shutil.rmtree(folder / "delays"), r"no folder for \['delays'\]"),
    (write_none, "delays: no file"),
    (lambda folder: (folder / "weather").mkdir(), "weather"),
    (lambda folder: (folder / "flights" / "notes.txt").touch(), "notes.txt"),
    (lambda folder: (folder / "part-00000.parquet").touch(), r"part-00000\.parquet"),
    (lambda folder: (folder / "flights" / "day=1").mkdir(), "day=1"),
    (write(rows(0).rename_columns(["id", "tail", "other"])), "part-9.parquet has the schema"),
    (write(rows(0).set_column(0, "id", pa.array([], pa.int32()))), "part-9.parquet has the schema"),
    (write(rows(7)), "output flights: Spark observed 500 rows, the files hold 507"),
    (lambda folder: damage(folder, -20, None), "can't be parsed"),
    (lambda folder: damage(folder, 0, None), "can't be parsed"),
    (lambda folder: damage(folder, 4, 200, bytes(196)), "can't be parsed"),
]


@pytest.mark.fault("B1")
@either_way
def test_what_the_job_did_not_count_fails_the_stage(
    chunked: bool, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    read_in_chunks(chunked, monkeypatch)
    for number, (break_it, says) in enumerate(WRONG):
        with subtests.test(f"{number} {says}"):
            staged = another()
            break_it(staged.path)
            with pytest.raises(StageFailed, match=says):
                staged.seal()
            assert not (staged.path / "_manifest.json").exists()


def test_an_output_that_was_not_observed_and_another_executions_folder_are_not_sealed(staged: Staged) -> None:
    cases: list[tuple[int, type[LockstepError], str]] = [
        (17, StageFailed, "observed None"),
        (18, StagingRefused, "isn't the folder of"),
    ]
    for token, refusal, says in cases:
        with pytest.raises(refusal, match=says):
            staged.staging.seal(
                FOLDER,
                deployment=DEPLOYMENT,
                pipeline="flights",
                epoch=3,
                token=token,
                outputs=OUTPUTS,
                observed={"flights": 500},
                sources={},
            )


@cases("place", ["flights/part-9.parquet", "flights/_hidden", "_hidden", "weather"])
def test_a_link_beside_the_outputs_or_in_one_refuses_the_seal(
    place: str, another: Callable[[], Staged], tmp_path: Path
) -> None:
    staged = another()
    pq.write_table(rows(0), tmp_path / "elsewhere.parquet")
    (staged.path / place).symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(StagingRefused, match="symbolic link"):
        staged.seal()


def test_an_output_needs_a_name_that_can_be_a_folder_and_types_that_have_a_digest(staged: Staged) -> None:
    for output in ("../delays", "quarantine", "_hidden", ""):
        with pytest.raises(InvalidPipeline):
            staged.seal(outputs=(output,))
    staged.write("delays", pa.table({"pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
    with pytest.raises(InvalidPipeline, match="pairs"):
        staged.seal(delays=1)


@either_storage
def test_a_wal_is_sealed_once(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    staged = Staged(any_staging, root).fill()
    manifest = staged.seal()
    with pytest.raises(StagingRefused, match="written only once"):
        staged.seal()
    assert any_staging.open(staged.folder, manifest.hash).manifest == manifest


@pytest.mark.fault("B8")
@cases("point", [CrashPoint.STAGE_BEFORE_MANIFEST, CrashPoint.STAGE_AFTER_MANIFEST])
def test_a_crash_leaves_no_manifest_or_a_whole_one(
    point: CrashPoint, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = another()
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    monkeypatch.setenv("LOCKSTEP_CRASH", f"{point}:raise")
    with pytest.raises(CrashInjected):
        staged.seal()
    path = staged.path / "_manifest.json"
    if point is CrashPoint.STAGE_BEFORE_MANIFEST:
        assert not path.exists()
    else:
        manifest = Manifest.from_bytes(path.read_bytes())
        staged.staging.open(FOLDER, manifest.hash).check()


@pytest.mark.fault("B10")
def test_an_fsync_that_fails_at_any_place_fails_the_execution(
    staging: Staging, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, calls, failing = os.fsync, [0], [0]

    def flaky(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == failing[0]:
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", flaky)
    last = 0
    while True:
        staged = Staged(staging, root, token=last + 1).fill()
        calls[0], failing[0] = 0, last + 1
        try:
            staged.seal()
        except (StageFailed, StagingUnavailable) as error:
            assert "Input/output error" in str(error)
            assert calls[0] >= failing[0]
            last += 1
        else:
            break
    assert last == calls[0] == 3 + 2 + 5 + 2  # files, output folders, the way up, the manifest and its folder


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> Queue[str]:
    """The files whose digest was begun, in order, however small they are."""
    monkeypatch.setattr(early_digests, "MIN_BYTES", 0)
    monkeypatch.setattr(early_digests, "POLL_SECONDS", 0.001)
    begun: Queue[str] = Queue()

    def watched(
        storage: Storage,
        path: str,
        hashed: parquet.Fingerprint,
        least: str | None = None,
        epoch: early_digests.EpochColumn | None = None,
    ) -> DigestedFile:
        begun.put(path)
        return digest_file(storage, path, hashed, least, epoch)

    monkeypatch.setattr(early_digests, "digest_file", watched)
    monkeypatch.setattr(sealing, "digest_file", watched)
    return begun


def digest_early(staged: Staged, digested: Queue[str], files: int) -> EarlyDigests:
    with staged.staging.digesting_early(FOLDER, OUTPUTS, 1 << 40) as early:
        assert len({digested.get(timeout=30) for _ in range(files)}) == files
    return early


def test_what_is_digested_while_the_job_runs_is_not_digested_again(staged: Staged, digested: Queue[str]) -> None:
    early = digest_early(staged, digested, 3)
    sealed = staged.seal(early=early)
    assert digested.empty()
    (staged.path / "_manifest.json").unlink()
    assert staged.seal() == sealed


def test_a_file_that_changes_after_its_early_digest_is_digested_again(staged: Staged, digested: Queue[str]) -> None:
    early = digest_early(staged, digested, 3)
    staged.write("delays", rows(40, 1000))
    delays = staged.seal(early=early).outputs["delays"]
    assert delays.digest == digest_batches(delays.schema, rows(40, 1000).to_batches()).hexdigest()
    assert digested.qsize() == 1


def test_what_can_not_be_read_early_is_left_to_the_seal(staged: Staged, digested: Queue[str]) -> None:
    [path] = staged.write("delays", rows(40))
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    early = digest_early(staged, digested, 3)
    path.write_bytes(whole)
    assert staged.seal(early=early).outputs["delays"].rows == 40


def test_files_that_came_after_the_job_are_digested_by_the_seal(staged: Staged, digested: Queue[str]) -> None:
    shutil.rmtree(staged.path / "flights")
    early = digest_early(staged, digested, 1)
    staged.write("flights", rows(300), rows(200, 300))
    staged.seal(early=early)
    assert digested.qsize() == 2


def test_an_object_store_is_not_asked_again_and_again(root: Path, digested: Queue[str]) -> None:
    staged = Staged(object_staging(root), root).fill()
    staged.seal(early=digest_early(staged, digested, 0))
    assert digested.qsize() == 3


def _job(staged: Staged, files: dict[str, bytes]) -> None:
    """What Spark leaves: nothing of it fsynced."""
    for output in OUTPUTS:
        (staged.path / output).mkdir()
    for name, content in files.items():
        (staged.path / name).write_bytes(content)


def _story(memory: Path) -> tuple[Recording, Staged, str]:
    """One execution of stage, from its empty folder to its seal."""
    files = {}
    for name, count in (
        ("flights/part-0.parquet", 300),
        ("flights/part-1.parquet", 200),
        ("delays/part-0.parquet", 40),
    ):
        pq.write_table(rows(count), memory / "part")
        files[name] = (memory / "part").read_bytes()
    root = memory / "staging"
    root.mkdir()
    staged = Staged(Staging(str(root)), root)
    with recorded(root) as recording:
        recording.mark("begun")
        staged.staging.create(staged.folder)
        staged.staging.write_json(staged.folder, REQUEST, {"asked": True})
        _job(staged, files)
        staged.staging.write_json(staged.folder, RESULT, {"counted": True})
        manifest = staged.seal()
        recording.mark("sealed")
    return recording, staged, manifest.hash


def _check(state: CrashState, staged: Staged, manifest_hash: str) -> None:
    try:
        wal = staged.staging.open(staged.folder, manifest_hash)
        wal.check()
        read = {output.output: sum(batch.num_rows for batch in output) for output in wal.outputs(OUTPUTS)}
        assert read == {"flights": 500, "delays": 40}
    except LockstepError:
        assert "sealed" not in state.marks, "what the ledger knows as sealed is gone or damaged"
    for _, _, folder in staged.staging.executions(DEPLOYMENT, "flights"):
        staged.staging.discard(folder)
    assert staged.staging.executions(DEPLOYMENT, "flights") == []


def _broken(memory: Path) -> tuple[int, list[str]]:
    recording, staged, manifest_hash = _story(memory)
    broken = (AssertionError, LockstepError, OSError)
    return broken_states(recording, staged.root, lambda state: _check(state, staged, manifest_hash), broken)


@pytest.mark.fault("B8")
@pytest.mark.tier("test")
def test_after_a_power_cut_a_wal_is_absent_or_complete(memory: Path) -> None:
    number, broken = _broken(memory)
    assert broken == []
    assert number > 300


@pytest.mark.tier("test")
@pytest.mark.parametrize("forgotten", [stat.S_ISDIR, stat.S_ISREG], ids=["folders", "files"])
def test_a_forgotten_fsync_is_noticed(
    memory: Path, forgotten: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(path: Path) -> Any:
        if not forgotten(path.stat().st_mode):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    monkeypatch.setattr(local_storage, "_sync", sync)
    assert _broken(memory)[1]

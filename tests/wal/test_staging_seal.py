"""The seal takes exactly what Spark counted, makes it durable, and puts the manifest last."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.crash import CrashInjected, CrashPoint
from lockstep.errors import InvalidPipeline, StageFailed, StagingRefused, StagingUnavailable, WalCorrupt
from lockstep.wal import _early_digests as early_digests
from lockstep.wal import _parquet as parquet
from lockstep.wal import sealing
from lockstep.wal._early_digests import DigestedFile, EarlyDigests, digest_file
from lockstep.wal._storage import Storage
from lockstep.wal.digest import DIGEST_VERSION, digest_batches
from lockstep.wal.manifest import Manifest
from lockstep.wal.staging import Staging
from tests.cases import cases

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
def test_an_output_without_rows_is_sealed_with_its_schema(staged: Staged) -> None:
    staged.write("delays", rows(0))
    manifest = staged.seal(delays=0)
    assert manifest.outputs["delays"].rows == 0 and len(manifest.outputs["delays"].schema) == 3
    [delays] = staged.staging.open(FOLDER, manifest.hash).outputs(["delays"])
    assert [batch.num_rows for batch in delays] in ([], [0])


@pytest.mark.fault("B20")
def test_ten_thousand_rows_in_two_hundred_files(staged: Staged) -> None:
    staged.write("flights", *(rows(50, 50 * part) for part in range(200)))
    manifest = staged.seal(flights=10_000)
    assert len(manifest.outputs["flights"].files) == 200
    assert manifest.outputs["flights"].digest == digest_batches(rows(0).schema, rows(10_000).to_batches()).hexdigest()


# --- refusals ---


def nothing(staged: Staged) -> None: ...


def remove_output(staged: Staged) -> None:
    shutil.rmtree(staged.path / "delays")


def empty_output(staged: Staged) -> None:
    for path in (staged.path / "delays").glob("*.parquet"):
        path.unlink()


def foreign_output(staged: Staged) -> None:
    (staged.path / "weather").mkdir()


def foreign_file(staged: Staged) -> None:
    (staged.path / "flights" / "notes.txt").touch()


def file_among_outputs(staged: Staged) -> None:
    (staged.path / "part-00000.parquet").touch()


def partitioned(staged: Staged) -> None:
    (staged.path / "flights" / "day=1").mkdir()


def other_schema(staged: Staged) -> None:
    pq.write_table(rows(0).rename_columns(["id", "tail", "other"]), staged.path / "flights" / "part-9.parquet")


def other_type(staged: Staged) -> None:
    table = rows(0)
    pq.write_table(table.set_column(0, "id", table["id"].cast("int32")), staged.path / "flights" / "part-9.parquet")


def second_writer(staged: Staged) -> None:
    pq.write_table(rows(7), staged.path / "flights" / "part-00009-other-c000.snappy.parquet")


def truncated(staged: Staged) -> None:
    file = next((staged.path / "flights").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-20])


def empty_file(staged: Staged) -> None:
    next((staged.path / "flights").glob("*.parquet")).write_bytes(b"")


def bad_page(staged: Staged) -> None:
    file = next((staged.path / "flights").glob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[4:200] = bytes(196)
    file.write_bytes(data)


@pytest.mark.fault("B1")
@either_way
@cases(
    "break_it, says",
    [
        (remove_output, r"no folder for \['delays'\]"),
        (empty_output, "delays: no file"),
        (foreign_output, "weather"),
        (foreign_file, "notes.txt"),
        (file_among_outputs, r"part-00000\.parquet"),
        (partitioned, "day=1"),
        (other_schema, "part-9.parquet has the schema"),
        (other_type, "part-9.parquet has the schema"),
        (second_writer, "observed 500 rows, the files hold 507"),
        (truncated, "can't be parsed"),
        (empty_file, "can't be parsed"),
        (bad_page, "can't be parsed"),
    ],
)
def test_what_the_job_did_not_count_fails_the_stage(
    break_it: Callable[[Staged], None],
    says: str,
    another: Callable[[], Staged],
    chunked: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_in_chunks(chunked, monkeypatch)
    staged = another()
    break_it(staged)
    with pytest.raises(StageFailed, match=says):
        staged.seal()
    assert not (staged.path / "_manifest.json").exists()


def test_a_difference_to_the_observed_rows_names_output_and_both_numbers(staged: Staged) -> None:
    with pytest.raises(StageFailed, match="output delays: Spark observed 41 rows, the files hold 40"):
        staged.seal(delays=41)


def test_an_output_that_was_not_observed_fails_the_stage(staged: Staged) -> None:
    with pytest.raises(StageFailed, match="observed None"):
        staged.staging.seal(
            FOLDER,
            deployment=DEPLOYMENT,
            pipeline="flights",
            epoch=3,
            token=17,
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


def test_another_executions_folder_is_not_sealed(staged: Staged) -> None:
    with pytest.raises(StagingRefused, match="isn't the folder of"):
        staged.staging.seal(
            FOLDER,
            deployment=DEPLOYMENT,
            pipeline="flights",
            epoch=3,
            token=18,
            outputs=OUTPUTS,
            observed={},
            sources={},
        )


@cases("output", ["../delays", "quarantine", "_hidden", ""])
def test_an_output_needs_a_name_that_can_be_a_folder(output: str, staged: Staged) -> None:
    with pytest.raises(InvalidPipeline):
        staged.seal(outputs=(output,))


def test_a_type_that_has_no_digest_is_named(staged: Staged) -> None:
    staged.write("delays", pa.table({"pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
    with pytest.raises(InvalidPipeline, match="pairs"):
        staged.seal(delays=1)


@either_storage
def test_a_wal_is_sealed_once(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    staged = Staged(any_staging, root).fill()
    manifest = staged.seal()
    with pytest.raises(StagingRefused, match="written once"):
        staged.seal()
    assert any_staging.open(staged.folder, manifest.hash).manifest == manifest


# --- crashes and durability ---


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


SEAL = """
import sys
from pathlib import Path
from tests.wal.conftest import Staged
from lockstep.wal.staging import Staging
import pyarrow.parquet, numpy
print("ready", file=sys.stderr, flush=True)
Staged(Staging(sys.argv[1]), Path(sys.argv[1])).seal()
"""


def strace(staged: Staged, log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("strace") is None:
        pytest.skip("strace isn't installed")
    command = ["strace", "-f", "-y", "-o", str(log), "-e", "trace=fsync,link,linkat,unlink,unlinkat,rename", *options]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, sys.executable, "-c", SEAL, str(staged.root)], capture_output=True, text=True, env=environment
    )
    if "ptrace" in done.stderr and "ready" not in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    return done


@pytest.mark.fault("B8")
@pytest.mark.tier("test")
def test_everything_is_synced_before_the_manifest_has_its_name_and_its_name_after(
    staged: Staged, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    done = strace(staged, log)
    assert done.returncode == 0, done.stderr
    calls = [call for call in finished_calls(log) if str(staged.root) in call]
    named = next(
        number for number, call in enumerate(calls) if re.search(r"link(at)?\(", call) and "unlink" not in call
    )
    assert '_manifest.json"' in calls[named] and " = 0" in calls[named]

    def synced(path: Path, among: list[str]) -> bool:
        return any("fsync(" in call and f"<{path}>" in call and call.rstrip().endswith("= 0") for call in among)

    files = sorted(staged.path.rglob("*.parquet"))
    folders = [staged.path / output for output in OUTPUTS]
    ways = [path for path in (staged.path, *staged.path.parents) if path.is_relative_to(staged.root)]
    assert [path for path in (*files, *folders, *ways) if not synced(path, calls[:named])] == []
    assert re.search(r"fsync\(\d+<[^>]*_manifest\.json\.[0-9a-f]+>\)", "\n".join(calls[:named]))
    assert synced(staged.path, calls[named:])


def finished_calls(log: Path) -> list[str]:
    """strace's lines in the order in which the calls returned, each in one piece."""
    begun: dict[str, str] = {}
    calls = []
    for line in log.read_text().splitlines():
        process, _, call = line.partition(" ")
        if call.endswith("<unfinished ...>"):
            begun[process] = call.removesuffix("<unfinished ...>").strip()
        elif "resumed>" in call:
            calls.append(begun.pop(process) + call.partition("resumed>")[2])
        else:
            calls.append(call)
    return calls


@pytest.mark.fault("B8")
@pytest.mark.tier("test")
def test_a_kill_where_the_manifest_gets_its_name_leaves_none_or_a_whole_one(staged: Staged, tmp_path: Path) -> None:
    done = strace(staged, tmp_path / "calls", "-e", "inject=link,linkat:signal=KILL:when=1")
    assert done.returncode in (-9, 137), done.stderr
    path = staged.path / "_manifest.json"
    if path.exists():
        staged.staging.open(FOLDER, Manifest.from_bytes(path.read_bytes()).hash).check()
    else:
        with pytest.raises(WalCorrupt, match="missing"):
            staged.staging.open(FOLDER, "0" * 64)
    staged.staging.discard(FOLDER)
    assert staged.staging.executions(DEPLOYMENT, "flights") == []


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


# --- digests made while the job still runs ---


@pytest.fixture
def every_file_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_digests, "LEAST_BYTES", 0)
    monkeypatch.setattr(early_digests, "POLL_SECONDS", 0.001)


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch, every_file_early: None) -> Queue[str]:
    """The files whose digest was begun, in order."""
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


def test_no_digest_is_begun_after_the_job(staged: Staged, digested: Queue[str]) -> None:
    shutil.rmtree(staged.path / "flights")
    shutil.rmtree(staged.path / "delays")
    early = digest_early(staged, digested, 0)
    staged.write("flights", rows(300), rows(200, 300))
    staged.write("delays", rows(40))
    staged.seal(early=early)
    assert digested.qsize() == 3


def test_an_object_store_is_not_asked_again_and_again(root: Path, digested: Queue[str]) -> None:
    staged = Staged(object_staging(root), root).fill()
    staged.seal(early=digest_early(staged, digested, 0))
    assert digested.qsize() == 3

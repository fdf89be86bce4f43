"""Folders of executions: created once, found by their whole names, deleted bit by bit, nothing foreign touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from lockstep.crash import CrashInjected, CrashPoint, observe
from lockstep.epoch import SourceRange
from lockstep.errors import InvalidPipeline, SourceChanged, StageFailed, StagingRefused, StagingUnavailable
from lockstep.wal.request import (
    REQUEST,
    RESULT,
    StageRequest,
    StageResult,
    read_error,
    read_request,
    write_error,
    write_result,
)
from lockstep.wal.staging import Staging
from tests.cases import cases
from tests.small_disk import small_disk

from .conftest import DEPLOYMENT, Staged, either_storage, staging_of

FOLDER = f"{DEPLOYMENT}/flights/epoch=3/17"


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


# --- addresses ---


def test_a_folder_has_one_name_here_and_one_for_spark(root: Path) -> None:
    for uri, told in (
        (f"{root}", f"file://{root}"),
        (f"file://{root}", f"file://{root}"),
        ("/a b%20", "file:///a b%20"),
        ("file:///a%20b", "file:///a b"),
        ("s3://bucket/lockstep?region=eu-central-1&endpoint_override=127.0.0.1:9", "s3a://bucket/lockstep"),
    ):
        staging = Staging(uri)
        assert staging.folder(DEPLOYMENT, "flights", 3, 17) == FOLDER
        assert staging.uri_of(FOLDER) == f"{told}/{FOLDER}"


@cases(
    "uri, told",
    [
        *((uri, "") for uri in ("staging", "./staging", "file:staging", "file://host/staging", "nfs://host/x")),
        ("s3://me:hunter2@bucket/x", ""),
        ("s3:///bucket/x?secret_access_key=hunter2", ""),
        ("file://host/x?token=hunter2", ""),
        ("s3://b/x#hunter2", ""),
        ("s3://bucket/x?region=eu-central-1&client_secret=hunter2", "client_secret"),
        ("s3://bucket/x?region=eu-central-1&account_key=hunter2", "account_key"),
        ("s3://bucket/x?region=eu-central-1&endpoint_override=me:hunter2@host", "contains credentials"),
    ],
)
def test_an_address_that_leads_nowhere_or_holds_a_secret_is_refused_and_not_repeated(uri: str, told: str) -> None:
    with pytest.raises(StagingRefused, match=told or None) as refusal:
        Staging(uri)
    assert "hunter2" not in str(refusal.value)


# --- making ---


@cases(
    "folder",
    [
        "",
        "x",
        f"{DEPLOYMENT}/flights/epoch=3",
        f"{FOLDER}/flights",
        f"{DEPLOYMENT}/flights/epoch=03/17",
        f"{DEPLOYMENT}/flights/epoch=3/017",
        f"{DEPLOYMENT}/flights/epoch=3/17\n",
        f"{DEPLOYMENT}/flights/epoch=-3/17",
        f"{DEPLOYMENT}/../epoch=3/17",
        f"{DEPLOYMENT}/flights/../17",
        f"/{FOLDER}",
        f"../{FOLDER}",
        f"{DEPLOYMENT}/flights/epoch=٣/17",
    ],
)
def test_what_is_no_executions_folder_is_neither_made_nor_discarded(folder: str, staging: Staging, root: Path) -> None:
    for act in (staging.create, staging.discard):
        with pytest.raises((StagingRefused, InvalidPipeline)):
            act(folder)
    assert not root.exists()


@either_storage
def test_a_folder_and_its_small_files_are_made_once(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    any_staging.create(FOLDER)
    with pytest.raises(StagingRefused, match="created once"):
        any_staging.create(FOLDER)
    value = {"b": [1, None, "ß"], "a": {"nested": True}}
    any_staging.write_json(FOLDER, "_request.json", value)
    with pytest.raises(StagingRefused, match="written only once"):
        any_staging.write_json(FOLDER, "_request.json", {})
    assert any_staging.read_json(FOLDER, "_request.json") == value
    assert [path.name for path in (root / FOLDER).glob("*_request*")] == ["_request.json"], "no draft is left"
    assert (root / FOLDER / "_request.json").read_bytes().startswith(b'{"a":{"nested":true},"b":')


def test_a_small_file_that_is_missing_or_garbled_fails_the_stage(staging: Staging, root: Path) -> None:
    staging.create(FOLDER)
    with pytest.raises(StageFailed, match="missing"):
        staging.read_json(FOLDER, "_result.json")
    (root / FOLDER / "_result.json").write_text('{"rows":')
    with pytest.raises(StageFailed, match="isn't JSON"):
        staging.read_json(FOLDER, "_result.json")


def test_a_small_file_has_a_plain_name(staging: Staging) -> None:
    staging.create(FOLDER)
    for name in ("result.json", "_a/b.json", "../_x.json", "_x.pickle", "_.json"):
        with pytest.raises(StagingRefused):
            staging.write_json(FOLDER, name, {})
        with pytest.raises(StagingRefused):
            staging.read_json(FOLDER, name)


# --- requests, results and errors that a stage task and its Spark job leave for each other ---


def _request(folder: str) -> StageRequest:
    moment = datetime(2013, 1, 2, tzinfo=UTC)
    return StageRequest("", 3, 17, folder, ("rows",), {"numbers": SourceRange(None, {"day": 1})}, moment)


@cases("name", ["plain", "two words", "50%20", "what?", "#1"])
def test_the_job_finds_its_request_whatever_the_staging_folder_is_called(tmp_path: Path, name: str) -> None:
    staging = Staging(str(tmp_path / name))
    staging.create(FOLDER)
    request = _request(staging.uri_of(FOLDER))
    staging.write_json(FOLDER, REQUEST, request.to_json())
    uri = staging.uri_of(f"{FOLDER}/{REQUEST}")
    assert read_request(uri) == request
    result = StageResult({"rows": 1}, {}, "v1")
    write_result(uri, result)
    assert StageResult.from_json(staging.read_json(FOLDER, RESULT)) == result
    write_error(uri, SourceChanged("it grew"))
    with pytest.raises(SourceChanged, match="it grew"):
        raise read_error(uri)


@cases("bucket", ["bucket/lockstep", "bucket/two%20words"])
def test_the_job_is_told_the_endpoint_that_the_staging_address_names(bucket: str) -> None:
    staging = Staging(f"s3://{bucket}?region=eu-central-1&scheme=http&endpoint_override=127.0.0.1:9")
    address = staging.address_of(f"{FOLDER}/{REQUEST}")
    assert address.startswith(f"s3a://{unquote(bucket)}/{FOLDER}/{REQUEST}?") and "127.0.0.1" in address


# --- finding ---


@pytest.mark.fault("F4")
@either_storage
def test_executions_are_found_by_whole_names_and_the_rest_is_reported(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    assert any_staging.executions(DEPLOYMENT, "flights") == [] == any_staging.unknown_files(DEPLOYMENT, "flights")
    for epoch, token in ((10, 5), (2, 31), (2, 4)):
        any_staging.create(any_staging.folder(DEPLOYMENT, "flights", epoch, token))
    any_staging.create(any_staging.folder(DEPLOYMENT, "flights2", 1, 1))
    any_staging.create(any_staging.folder("another", "flights", 1, 1))
    home = root / DEPLOYMENT / "flights"
    folders = ("epoch=2/5x", "epoch=2/007", "epoch=x/3", "epoch=02/3", "Epoch=2/3", "manifests", "quarantine/epoch=1")
    for foreign in folders:
        (home / foreign).mkdir(parents=True)
        (home / foreign / "something").touch()
    (home / "epoch=2/notes.txt").write_text("mine")
    (home / "epoch=4").write_text("a file")
    assert any_staging.executions(DEPLOYMENT, "flights") == [
        (2, 4, f"{DEPLOYMENT}/flights/epoch=2/4"),
        (2, 31, f"{DEPLOYMENT}/flights/epoch=2/31"),
        (10, 5, f"{DEPLOYMENT}/flights/epoch=10/5"),
    ]
    unknown_files = {
        path.removeprefix(f"{DEPLOYMENT}/flights/") for path in any_staging.unknown_files(DEPLOYMENT, "flights")
    }
    assert unknown_files == {
        "epoch=2/5x",
        "epoch=2/007",
        "epoch=2/notes.txt",
        "epoch=x",
        "epoch=02",
        "Epoch=2",
        "epoch=4",
    }
    if kind == "local":
        (home / "epoch=2/5").symlink_to(tmp_path)
        assert [token for _, token, _ in any_staging.executions(DEPLOYMENT, "flights")] == [4, 31, 5]
        assert f"{DEPLOYMENT}/flights/epoch=2/5" in any_staging.unknown_files(DEPLOYMENT, "flights")


# --- discarding ---


def test_discard_takes_an_execution_or_those_of_an_epoch_and_nothing_else(staged: Staged) -> None:
    staging, home = staged.staging, staged.root / DEPLOYMENT / "flights"
    staged.seal()
    for other in ({"token": 18}, {"epoch": 30}, {"pipeline": "flights2"}):
        Staged(staging, staged.root, **other).fill()
    (home / "epoch=3" / "17x").mkdir()
    (home / "epoch=3" / "notes.txt").write_text("mine")
    left = {path for path in everything(staged.root) if path != FOLDER and not path.startswith(f"{FOLDER}/")}
    for _ in range(3):
        staging.discard(FOLDER)
        assert everything(staged.root) == left
    left = {path for path in left if "/flights/epoch=3/18" not in path}
    for _ in range(3):
        staging.discard_epoch(DEPLOYMENT, "flights", 3)
        assert everything(staged.root) == left


@pytest.mark.fault("F1")
@cases("epoch_wide", [False, True])
def test_discard_goes_on_where_a_crash_stopped_it(
    epoch_wide: bool, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = another()
    staged.seal()
    before, after = CrashPoint.CLEANUP_BEFORE_DELETE, CrashPoint.CLEANUP_AFTER_DELETE
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")

    def discard() -> None:
        if epoch_wide:
            staged.staging.discard_epoch(DEPLOYMENT, "flights", 3)
        else:
            staged.staging.discard(FOLDER, before=before, after=after)

    sizes = [len(everything(staged.root))]
    for attempt in count():
        monkeypatch.setenv("LOCKSTEP_CRASH", f"{(before, after)[attempt % 2]}:raise")
        try:
            discard()
        except CrashInjected:
            sizes.append(len(everything(staged.root)))
        else:
            break
    assert [one - other for one, other in pairwise(sizes)] == [0, 1] * (len(sizes) // 2)
    assert everything(staged.root) == {DEPLOYMENT, f"{DEPLOYMENT}/flights"}


@pytest.mark.fault("F8")
@cases("where", [".", "flights", "_temporary/0"])
def test_a_link_inside_an_execution_stops_discard_before_anything_is_deleted(
    where: str, another: Callable[[], Staged], tmp_path: Path
) -> None:
    staged = another()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    (staged.path / where).mkdir(parents=True, exist_ok=True)
    (staged.path / where / "link").symlink_to(precious)
    before = everything(staged.root)
    discards: tuple[Callable[[], object], ...] = (
        lambda: staged.staging.discard(FOLDER),
        lambda: staged.staging.discard_epoch(DEPLOYMENT, "flights", 3),
    )
    for discard in discards:
        with pytest.raises(StagingRefused, match="symbolic link"):
            discard()
    assert everything(staged.root) == before
    assert (precious / "file").read_text() == "keep"


@pytest.mark.fault("F8")
@cases("depth", [1, 2, 3, 4])
def test_no_folder_on_the_way_may_be_a_link(depth: int, another: Callable[[], Staged], tmp_path: Path) -> None:
    staged = another()
    link = staged.root.joinpath(*FOLDER.split("/")[:depth])
    shutil.move(link, tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "elsewhere")
    for act in (lambda: staged.staging.discard(FOLDER), staged.seal):
        with pytest.raises(StagingRefused, match="symbolic link"):
            act()
    assert list((tmp_path / "elsewhere").rglob("*.parquet"))


@pytest.mark.fault("F6")
def test_a_writer_that_is_still_alive_makes_discard_retryable(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    late = staged.path / "flights" / "late.parquet"
    stop = observe(lambda point: late.touch() if late.parent.exists() else None)
    try:
        with pytest.raises(StagingUnavailable, match="not empty"):
            staged.staging.discard(FOLDER)
    finally:
        stop()
    staged.staging.discard(FOLDER)
    assert staged.staging.executions(DEPLOYMENT, "flights") == []


# --- archiving ---


@either_storage
def test_archive_keeps_manifest_and_quarantine_beyond_the_epochs_folder(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    staged = Staged(any_staging, root).fill()
    (staged.path / "quarantine" / "landing").mkdir(parents=True)
    (staged.path / "quarantine" / "landing" / "part-0.json").write_text('{"bad":1}')
    manifest = staged.seal()
    for _ in range(2):
        any_staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    any_staging.discard_epoch(DEPLOYMENT, "flights", 3)
    any_staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    home = root / DEPLOYMENT / "flights"
    assert (home / "manifests" / "epoch=3.json").read_bytes() == manifest.to_bytes()
    assert (home / "quarantine" / "epoch=3" / "landing" / "part-0.json").read_text() == '{"bad":1}'
    assert any_staging.kept_manifest(DEPLOYMENT, "flights", 3, manifest.hash) == manifest
    assert any_staging.executions(DEPLOYMENT, "flights") == [] == any_staging.unknown_files(DEPLOYMENT, "flights")


@pytest.mark.fault("F1")
@cases("outrun", [False, True])
def test_archive_goes_on_where_a_crash_stopped_it_and_where_another_cleanup_came_first(
    outrun: bool, another: Callable[[], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = another()
    (staged.path / "quarantine").mkdir()
    for number in range(3):
        (staged.path / "quarantine" / f"part-{number}.json").write_text(str(number))
    staged.seal()
    moves, move = count(), type(staged.staging._storage).move

    def disturbed(self: object, source: str, target: str) -> None:
        number = next(moves)
        if number == 1 and not outrun:
            raise CrashInjected("in the middle")
        for _ in range(2 if number == 0 and outrun else 1):
            move(staged.staging._storage, source, target)

    monkeypatch.setattr(type(staged.staging._storage), "move", disturbed)
    if not outrun:
        with pytest.raises(CrashInjected):
            staged.staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    staged.staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    staged.staging.discard_epoch(DEPLOYMENT, "flights", 3)
    kept = staged.root / DEPLOYMENT / "flights" / "quarantine" / "epoch=3"
    assert [path.read_text() for path in sorted(kept.iterdir())] == ["0", "1", "2"]


# --- storage that says no ---


@pytest.mark.fault("B9")
def test_a_full_disk_is_named_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "tiny", "256k") as tiny:
        staging = Staging(str(tiny))
        staging.create(FOLDER)
        with pytest.raises(StagingUnavailable, match="No space left on device"):
            staging.write_json(FOLDER, "_request.json", "x" * 300_000)
        assert list((tiny / FOLDER).iterdir()) == []
        staging.write_json(FOLDER, "_request.json", "x")
        staging.discard(FOLDER)
        staged = Staged(staging, tiny).fill()
        with (staged.path / "_filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while filler.write(bytes(4096)):
                pass
        with pytest.raises(StagingUnavailable, match=r"_manifest.json: No space left on device"):
            staged.seal()
        assert not [path for path in staged.path.iterdir() if "manifest" in path.name]
        staging.discard(FOLDER)


@pytest.mark.fault("B17", "F6")
def test_a_permission_that_was_lost_is_named(staged: Staged) -> None:
    manifest_hash = staged.seal().hash
    staged.path.chmod(0)
    root = os.geteuid() == 0
    try:
        if root:  # who may pass any permission
            os.seteuid(65534)
        with pytest.raises(StagingUnavailable, match="Permission denied"):
            staged.staging.open(FOLDER, manifest_hash)
    finally:
        if root:
            os.seteuid(0)
        staged.path.chmod(0o755)

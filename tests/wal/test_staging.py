"""Folders of executions: made once, found by their whole names, deleted bit by bit, nothing foreign touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path

import pytest

from lockstep.crash import CrashInjected, CrashPoint, observe
from lockstep.errors import InvalidPipeline, StageFailed, StagingRefused, StagingUnavailable
from lockstep.wal.staging import Staging
from tests.cases import cases
from tests.small_disk import small_disk

from .conftest import DEPLOYMENT, Staged, either_storage, staging_of

FOLDER = f"{DEPLOYMENT}/flights/epoch=3/17"


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


# --- addresses ---


@cases("uri", ["file://{}", "{}"])
def test_a_folder_has_one_name_here_and_one_for_spark(uri: str, root: Path) -> None:
    staging = Staging(uri.format(root))
    assert staging.folder(DEPLOYMENT, "flights", 3, 17) == FOLDER
    assert staging.uri_of(FOLDER) == f"file://{root}/{FOLDER}"


def test_spark_gets_a_path_with_spaces_and_percent_signs_as_it_stands(tmp_path: Path) -> None:
    assert Staging(f"{tmp_path}/a b%20").uri_of("x") == f"file://{tmp_path}/a b%20/x"
    assert Staging(f"file://{tmp_path}/a%20b").uri_of("x") == f"file://{tmp_path}/a b/x"


def test_spark_reaches_s3_by_its_own_name_for_it() -> None:
    staging = Staging("s3://bucket/lockstep?region=eu-central-1&endpoint_override=127.0.0.1:9")
    assert staging.uri_of(FOLDER) == f"s3a://bucket/lockstep/{FOLDER}"


@cases("uri", ["staging", "./staging", "file:staging", "file://host/staging", "nfs://host/x"])
def test_an_address_that_is_not_absolute_or_not_known_is_refused(uri: str) -> None:
    with pytest.raises(StagingRefused):
        Staging(uri)


def test_a_login_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(StagingRefused) as refusal:
        Staging("s3://key:hunter2@bucket/x")
    assert "hunter2" not in str(refusal.value) and "key" not in str(refusal.value)


@cases(
    "option, told",
    [
        ("client_secret=hunter2", "client_secret"),
        ("account_key=hunter2", "account_key"),
        ("endpoint_override=me:hunter2@host", "carries a login"),
    ],
)
def test_a_secret_among_the_options_is_refused_and_not_repeated(option: str, told: str) -> None:
    with pytest.raises(StagingRefused) as refusal:
        Staging(f"s3://bucket/x?region=eu-central-1&{option}")
    assert told in str(refusal.value) and "hunter2" not in str(refusal.value)


@cases("uri", ["s3:///bucket/x?secret_access_key=hunter2", "file://host/x?token=hunter2", "s3://b/x#hunter2"])
def test_an_address_without_meaning_is_refused_without_what_may_be_a_secret(uri: str) -> None:
    with pytest.raises(StagingRefused) as refusal:
        Staging(uri)
    assert "hunter2" not in str(refusal.value)


# --- making ---


@either_storage
def test_a_folder_is_made_once(kind: str, tmp_path: Path) -> None:
    any_staging = staging_of(kind, tmp_path / "staging")
    any_staging.create(FOLDER)
    with pytest.raises(StagingRefused, match="made once"):
        any_staging.create(FOLDER)


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
def test_small_files_are_written_once_and_read_back(kind: str, tmp_path: Path) -> None:
    any_staging = staging_of(kind, tmp_path / "staging")
    any_staging.create(FOLDER)
    value = {"b": [1, None, "ß"], "a": {"nested": True}}
    any_staging.write_json(FOLDER, "_request.json", value)
    assert any_staging.read_json(FOLDER, "_request.json") == value
    with pytest.raises(StagingRefused, match="written once"):
        any_staging.write_json(FOLDER, "_request.json", {})
    assert any_staging.read_json(FOLDER, "_request.json") == value


def test_a_small_file_is_canonical_and_leaves_no_draft(staging: Staging, root: Path) -> None:
    staging.create(FOLDER)
    staging.write_json(FOLDER, "_request.json", {"b": 1, "a": [2]})
    assert [path.name for path in (root / FOLDER).iterdir()] == ["_request.json"]
    assert (root / FOLDER / "_request.json").read_bytes() == b'{"a":[2],"b":1}'


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


# --- finding ---


@pytest.mark.fault("F4")
@either_storage
def test_executions_are_found_by_whole_names_and_the_rest_is_reported(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    for epoch, token in ((10, 5), (2, 31), (2, 4)):
        any_staging.create(any_staging.folder(DEPLOYMENT, "flights", epoch, token))
    any_staging.create(any_staging.folder(DEPLOYMENT, "flights2", 1, 1))
    any_staging.create(any_staging.folder("another", "flights", 1, 1))
    home = root / DEPLOYMENT / "flights"
    for foreign in (
        "epoch=2/5x",
        "epoch=2/007",
        "epoch=x/3",
        "epoch=02/3",
        "Epoch=2/3",
        "manifests",
        "quarantine/epoch=1",
    ):
        (home / foreign).mkdir(parents=True)
        (home / foreign / "something").touch()
    (home / "epoch=2/notes.txt").write_text("mine")
    (home / "epoch=4").write_text("a file")
    assert any_staging.executions(DEPLOYMENT, "flights") == [
        (2, 4, f"{DEPLOYMENT}/flights/epoch=2/4"),
        (2, 31, f"{DEPLOYMENT}/flights/epoch=2/31"),
        (10, 5, f"{DEPLOYMENT}/flights/epoch=10/5"),
    ]
    strangers = {path.removeprefix(f"{DEPLOYMENT}/flights/") for path in any_staging.strangers(DEPLOYMENT, "flights")}
    assert strangers == {"epoch=2/5x", "epoch=2/007", "epoch=2/notes.txt", "epoch=x", "epoch=02", "Epoch=2", "epoch=4"}


@either_storage
def test_a_pipeline_that_never_staged_has_no_executions(kind: str, tmp_path: Path) -> None:
    any_staging = staging_of(kind, tmp_path / "staging")
    assert any_staging.executions(DEPLOYMENT, "flights") == []
    assert any_staging.strangers(DEPLOYMENT, "flights") == []


def test_a_link_among_the_executions_is_a_stranger(staged: Staged, tmp_path: Path) -> None:
    (staged.path.parent / "18").symlink_to(tmp_path)
    assert [token for _, token, _ in staged.staging.executions(DEPLOYMENT, "flights")] == [17]
    assert staged.staging.strangers(DEPLOYMENT, "flights") == [f"{DEPLOYMENT}/flights/epoch=3/18"]


# --- discarding ---


@pytest.fixture
def neighbours(staged: Staged) -> set[str]:
    """Other executions and foreign files; returns what must be left when `staged` is discarded."""
    staging, home = staged.staging, staged.root / DEPLOYMENT / "flights"
    Staged(staging, staged.root, token=18).fill()
    Staged(staging, staged.root, epoch=30).fill()
    Staged(staging, staged.root, pipeline="flights2").fill()
    (home / "epoch=3" / "17x").mkdir()
    (home / "epoch=3" / "notes.txt").write_text("mine")
    return {path for path in everything(staged.root) if path != FOLDER and not path.startswith(f"{FOLDER}/")}


def test_discard_takes_one_execution_and_nothing_else(staged: Staged, neighbours: set[str]) -> None:
    staged.seal()
    for _ in range(3):
        staged.staging.discard(FOLDER)
        assert everything(staged.root) == neighbours


def test_discard_epoch_takes_its_executions_and_leaves_strangers(staged: Staged, neighbours: set[str]) -> None:
    for _ in range(3):
        staged.staging.discard_epoch(DEPLOYMENT, "flights", 3)
        left = {path for path in neighbours if "/epoch=3/18" not in path or "flights2" in path}
        assert everything(staged.root) == left


@either_storage
def test_an_epochs_folder_goes_with_its_last_execution(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "staging"
    any_staging = staging_of(kind, root)
    Staged(any_staging, root).fill()
    any_staging.discard_epoch(DEPLOYMENT, "flights", 3)
    assert not list(root.rglob("epoch=*"))


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


def test_every_deletion_has_its_own_pair_of_crash_points(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    seen: list[tuple[CrashPoint, int]] = []
    stop = observe(lambda point: seen.append((point, len(everything(staged.root)))))
    try:
        staged.staging.discard(FOLDER)
    finally:
        stop()
    points = [point for point, _ in seen]
    sizes = [size for _, size in seen]
    assert points == [CrashPoint.ROLLBACK_BEFORE_FOLDER, CrashPoint.ROLLBACK_AFTER_FOLDER] * (len(points) // 2)
    assert sizes == [
        size for pair in zip(range(sizes[0], 3, -1), range(sizes[0] - 1, 2, -1), strict=True) for size in pair
    ]


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
    assert any_staging.executions(DEPLOYMENT, "flights") == [] == any_staging.strangers(DEPLOYMENT, "flights")


@pytest.mark.fault("F1")
def test_archive_goes_on_where_a_crash_stopped_it(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    (staged.path / "quarantine").mkdir()
    for number in range(3):
        (staged.path / "quarantine" / f"part-{number}.json").write_text(str(number))
    staged.seal()
    moves, move = count(), type(staged.staging._storage).move

    def dying(self: object, source: str, target: str) -> None:
        if next(moves) == 1:
            raise CrashInjected("in the middle")
        move(staged.staging._storage, source, target)

    monkeypatch.setattr(type(staged.staging._storage), "move", dying)
    with pytest.raises(CrashInjected):
        staged.staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    staged.staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    kept = staged.root / DEPLOYMENT / "flights" / "quarantine" / "epoch=3"
    assert [path.read_text() for path in sorted(kept.iterdir())] == ["0", "1", "2"]


def test_two_cleanups_at_once_keep_every_quarantined_record(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    (staged.path / "quarantine").mkdir()
    for number in range(3):
        (staged.path / "quarantine" / f"part-{number}.json").write_text(str(number))
    staged.seal()
    moves, move = count(), type(staged.staging._storage).move
    kept = staged.root / DEPLOYMENT / "flights" / "quarantine" / "epoch=3"

    def outrun(self: object, source: str, target: str) -> None:
        move(staged.staging._storage, source, target)
        if next(moves) == 0:  # the other one comes first to the very same file
            move(staged.staging._storage, source, target)

    monkeypatch.setattr(type(staged.staging._storage), "move", outrun)
    staged.staging.archive(FOLDER, DEPLOYMENT, "flights", 3)
    staged.staging.discard_epoch(DEPLOYMENT, "flights", 3)
    assert [path.read_text() for path in sorted(kept.iterdir())] == ["0", "1", "2"]


# --- storage that says no ---


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    with small_disk(tmp_path / "tiny", "256k") as folder:
        yield folder


@pytest.mark.fault("B9")
def test_a_full_disk_is_named_and_leaves_nothing_half_written(tiny: Path) -> None:
    staging = Staging(str(tiny))
    staging.create(FOLDER)
    with pytest.raises(StagingUnavailable, match="No space left on device"):
        staging.write_json(FOLDER, "_request.json", "x" * 300_000)
    assert list((tiny / FOLDER).iterdir()) == []
    staging.write_json(FOLDER, "_request.json", "x")
    staging.discard(FOLDER)


@pytest.mark.fault("B9")
def test_a_disk_too_full_for_the_manifest_leaves_no_manifest(tiny: Path) -> None:
    staged = Staged(Staging(str(tiny)), tiny).fill()
    with (staged.path / "_filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while filler.write(bytes(4096)):
            pass
    with pytest.raises(StagingUnavailable, match=r"_manifest.json: No space left on device"):
        staged.seal()
    assert not [path for path in staged.path.iterdir() if "manifest" in path.name]
    staged.staging.discard(FOLDER)


def test_a_read_only_file_system_is_named(tiny: Path) -> None:
    staged = Staged(Staging(str(tiny)), tiny).fill()
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    later = staged.staging.folder(DEPLOYMENT, "flights", 3, 18)
    for act in (staged.seal, lambda: staged.staging.discard(FOLDER), lambda: staged.staging.create(later)):
        with pytest.raises(StagingUnavailable, match="Read-only file system"):
            act()
    assert (staged.path / "flights").is_dir()


@pytest.fixture
def nobody() -> Iterator[None]:
    """Without root's right to pass any permission."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        yield
        os.seteuid(0)
    else:
        yield


@pytest.fixture
def closed(staged: Staged) -> Iterator[tuple[Staged, str]]:
    """A sealed WAL whose folder may no longer be entered."""
    manifest_hash = staged.seal().hash
    staged.path.chmod(0)
    yield staged, manifest_hash
    staged.path.chmod(0o755)


@pytest.mark.fault("B17", "F6")
def test_a_permission_that_was_lost_is_named(closed: tuple[Staged, str], nobody: None) -> None:
    staged, manifest_hash = closed
    with pytest.raises(StagingUnavailable, match="Permission denied"):
        staged.staging.open(FOLDER, manifest_hash)

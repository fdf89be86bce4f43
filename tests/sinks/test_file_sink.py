"""FileSink: whose folder it is, what its files are called, and what it does when something was damaged by hand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import Interval
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    OutcomeUnknown,
    PreflightRefused,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetFull,
    TargetOwned,
)
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files import _folder as file_folder
from lockstep.sinks.files import _format as file_format
from lockstep.sinks.files._folder import FolderTarget
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import EpochCut, Publication
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed, table
from lockstep.testing._under_test import (
    DEPLOYMENT,
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
    sweep,
)
from tests.sampling import Sampling
from tests.sinks.guarantees import expect_row
from tests.sinks.targets import FilesUnderTest

ROWS = 1000
OTHER_DEPLOYMENT = "99999999-2222-4333-8444-555555555555"
DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))


@pytest.fixture(autouse=True)
def several_groups_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


@pytest.fixture
def target(tmp_path: Path) -> FilesUnderTest:
    return FilesUnderTest(tmp_path, "parquet")


def names(target: FilesUnderTest) -> list[str]:
    return [Path(path).name for path in files(str(target.path))]


def state(target: FilesUnderTest) -> Path:
    return target.path / ".lockstep"


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("E12")
def test_files_are_listed_by_epoch_and_only_with_their_marker(target: FilesUnderTest) -> None:
    for number, token in ((10, 1), (9, 2)):
        wal = sealed(10, start=100 * number)
        publish(target, epoch(number, token=token), prepare(target, epoch(number, token=token), wal), wal)
    (target.path / "files-epoch=11-rows-00000.parquet").write_bytes(b"half a publication")
    vote = prepare(target, epoch(12, token=77), sealed(10))
    assert (state(target) / "77" / "_handle").read_text() == vote.handle
    assert names(target) == ["files-epoch=9-rows-00000.parquet", "files-epoch=10-rows-00000.parquet"]


@pytest.mark.fault("N6")
def test_who_misses_a_marker_while_listing_sees_no_replaced_epoch(target: FilesUnderTest) -> None:
    """A listing takes a while: it may have the newest marker, and not the one before."""
    at = [epoch(1)]
    for number in (2, 3):
        at.append(epoch(number, token=10 * number, manifest=f"{number}", replaced=at[-1:]))
    for one in at:
        wal = sealed(10, start=100 * one.id)
        publish(target, one, prepare(target, one, wal), wal)
    (state(target) / "epoch=2.json").unlink()
    assert names(target) == ["files-epoch=3-rows-00000.parquet"]


def test_files_of_a_replaced_epoch_are_gone_from_the_bare_folder_and_from_the_cut(target: FilesUnderTest) -> None:
    first = epoch(1)
    for at in (first, epoch(2, token=20, manifest="b", replaced=[first])):
        publish(target, at, prepare(target, at, sealed(10)), sealed(10))
    assert [path.name for path in target.path.glob("*.parquet")] == ["files-epoch=2-rows-00000.parquet"]
    with opened(target) as sink:
        assert sink.cut(EpochCut(2))[0].files == tuple(files(str(target.path)))
        assert [marker.replaced for marker in sink.markers()] == [(), (1,)]


def test_a_relative_path_leads_to_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files(str(tmp_path / "nowhere")) == []
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    sink = FileSink("files", output=OUTPUT, path="out/rows")
    assert sink.arguments()["path"] == str(tmp_path / "out/rows")
    assert files("out/rows") == []


def test_an_address_or_a_format_that_can_not_be_is_refused_by_name(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        *((path, {}, "POSIX") for path in ("ftp://bucket/out", "file:///tmp/out", "viewfs://name/out")),
        ("s3://AKIA1:hidden@bucket/x", {}, "login"),
        ("s3://bucket/x?secret_key=hidden", {}, "secret"),
        ("s3://bucket/x", {"max_bytes_per_file": 2 << 30}, "at most"),
        ("/out", {"connection": "lake"}, "object stores"),
        ("hdfs://a:hidden@b/c", {}, "carries a user"),
        ("hdfs://a/b", {"connection": "c"}, "connection"),
        ("hdfs://a/b:c", {}, "colon"),
        ("out", {"format": "orc"}, "'orc' must be one of parquet, csv, json"),
    ]
    for path, arguments, told in cases:
        with subtests.test(path):
            with pytest.raises(InvalidPipeline, match=told) as refusal:
                FileSink("files", output=OUTPUT, path=path, **arguments)
            assert "hidden" not in str(refusal.value)


# --- whose it is -----------------------------------------------------------------------------------------------------


@pytest.mark.fault("J11")
def test_a_folder_belongs_to_one_sink_of_one_pipeline_of_one_deployment(target: FilesUnderTest) -> None:
    prepare(target, epoch(), sealed(ROWS))
    for context in (target.context(pipeline="pipe2"), target.context(deployment=OTHER_DEPLOYMENT)):
        with opened(target, context) as sink, pytest.raises(TargetOwned, match="sink files of pipeline pipe "):
            sink.preflight(None)
    other = FileSink("other", output=OUTPUT, path=str(target.path))
    with other.opened(target.context()) as live, pytest.raises(TargetOwned, match="shared=True"):
        live.preflight(None)
    with opened(target, shared=True) as sink, pytest.raises(TargetOwned):
        sink.preflight(None)
    [txn] = pending(target)
    with opened(target, target.context(pipeline="pipe2")) as sink, pytest.raises(LedgerConflict):
        sink.abort(txn)
    assert pending(target) == [txn]


def test_owners_that_share_a_folder_do_not_meet(target: FilesUnderTest) -> None:
    contexts = [target.context(), target.context(pipeline="pipe2"), target.context(deployment=OTHER_DEPLOYMENT)]
    wals = [sealed(ROWS, start=5000 * number) for number in range(3)]
    for context, wal in zip(contexts, wals, strict=True):
        vote = prepare(target, epoch(), wal, context, shared=True)
        with opened(target, context, shared=True) as sink:
            assert sink.publish(epoch(), vote, wal) is Publication.COMMITTED
            assert sink.pending() == []
    expect_rows(target, *wals)


@pytest.mark.fault("F4")
def test_preflight_takes_away_what_its_own_killed_tries_left_and_nothing_else(target: FilesUnderTest) -> None:
    with opened(target) as sink:
        sink.preflight(None)
    own = f".lockstep-{hashlib.sha256(f'{DEPLOYMENT}:pipe:files'.encode()).hexdigest()[:12]}~0a1b2c3d"
    others = f".lockstep-{'0' * 12}~0a1b2c3d"
    foreign = (others, f"{own}0", f"{own[:-1]}x", "target.json~backup", "target.json~0a1b2c3d")
    for folder in (target.path, state(target)):
        for name in (own, *foreign):
            (folder / name).write_text("left")
    with opened(target) as sink:
        sink.preflight(None)
    for folder in (target.path, state(target)):
        left = {path.name for path in folder.iterdir()} - {".lockstep", "target.json"}
        assert left == set(foreign)


def test_a_symlink_or_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path, target: FilesUnderTest) -> None:
    (tmp_path / "real").mkdir()
    target.path.symlink_to(tmp_path / "real")
    with opened(target) as sink, pytest.raises(PreflightRefused, match="real path"):
        sink.preflight(None)
    target.path.unlink()
    target.path.write_text("not a folder")
    with opened(target) as sink, pytest.raises(PreflightRefused, match="not a folder"):
        sink.preflight(None)
    target.path.unlink()
    vote = prepare(target, epoch(), sealed(ROWS))
    state(target).rename(tmp_path / "moved")
    state(target).symlink_to(tmp_path / "moved")
    with opened(target) as sink, pytest.raises(PreflightRefused, match="symlink"):
        sink.publish(epoch(), vote, sealed(ROWS))


@pytest.mark.fault("J1")
def test_a_full_disk_is_refused_before_any_row_until_there_is_room(
    target: FilesUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(target) as sink:
        with monkeypatch.context() as short, pytest.raises(TargetFull, match="MB free"):
            short.setattr(file_folder, "MIN_FREE_BYTES", 1 << 60)
            sink.preflight(None)
        sink.preflight(None)


@pytest.mark.fault("F4")
def test_foreign_folders_are_neither_listed_nor_touched(target: FilesUnderTest) -> None:
    (vote,) = [prepare(target, epoch(token=10), sealed(ROWS))]
    handle = str(vote.handle)
    foreign = {
        "11": handle.replace(":pipe:", ":pipe2:"),
        "12": handle.replace(":files:", ":files2:"),
        "13": handle.replace("1111", "9999", 1),
        "14": "not a handle",
        "notes": handle,
        handle.replace(":pipe:", ":pipe2:") + "~abcd": "",
    }
    for folder, content in foreign.items():
        (state(target) / folder).mkdir()
        (state(target) / folder / "_handle").write_text(content)
    assert [txn.handle for txn in pending(target)] == [handle]
    sweep(target)
    assert sorted(path.name for path in state(target).iterdir()) == sorted([*foreign, "target.json"])


# --- damage ----------------------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_damaged_pending_files_are_written_again(target: FilesUnderTest) -> None:
    wals = []
    names = ("_vote.json", "_handle", "files-epoch={}-rows-00000.parquet")
    damages: tuple[Callable[[Path], None], ...] = (flip, cut, Path.unlink)
    for number, (name, damage) in enumerate(product(names, damages), 1):
        at, wal = epoch(number, token=10 * number), sealed(20, start=100 * number)
        vote = prepare(target, at, wal)
        damage(state(target) / str(at.token) / name.format(number))
        at = replace(at, token=at.token + 2)
        assert publish(target, at, vote, wal) is Publication.REPAIRED, (name, damage)
        wals.append(wal)
        expect_rows(target, *wals)
        expect_proof(target, at, wal)


def count_otherwise(path: Path) -> None:
    """Damage that can still be parsed: another number of rows."""
    told = path.read_bytes()
    path.write_bytes(re.sub(rb'"rows": ?[0-9]+', b'"rows":7000', told))
    assert path.read_bytes() != told


def test_a_damaged_marker_is_never_believed(target: FilesUnderTest) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    publish(target, epoch(), vote, sealed(ROWS))
    marker = state(target) / "epoch=1.json"
    whole = marker.read_bytes()
    for damage in (flip, count_otherwise):
        marker.write_bytes(whole)
        damage(marker)
        for ask in (lambda: publish(target, epoch(), vote, sealed(ROWS)), lambda: files(str(target.path))):
            with pytest.raises(OutcomeUnknown, match="damaged"):
                ask()


def test_a_target_without_its_id_is_not_written_to(target: FilesUnderTest) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    (state(target) / "target.json").unlink()
    with pytest.raises(TargetChanged, match="mount or restore"):
        publish(target, epoch(), vote, sealed(ROWS))
    assert names(target) == []


def test_a_published_file_that_is_gone_or_cut_is_not_read_as_a_short_epoch(target: FilesUnderTest) -> None:
    publish(target, epoch(), prepare(target, epoch(), sealed(ROWS)), sealed(ROWS))
    for damage in (cut, Path.unlink):
        damage(target.path / names(target)[1])
        with opened(target) as sink, pytest.raises(TargetChanged, match="missing or damaged"):
            list(sink.read(1, OUTPUT, SCHEMA))


@pytest.mark.fault("C16")
def test_an_epoch_that_is_published_is_not_prepared_again(target: FilesUnderTest) -> None:
    publish(target, epoch(), prepare(target, epoch(), sealed(ROWS)), sealed(ROWS))
    with pytest.raises(LedgerConflict, match="published"):
        prepare(target, epoch(token=11), sealed(ROWS))


def test_beside_a_marker_of_another_manifest_nothing_is_shown_and_nothing_deleted(target: FilesUnderTest) -> None:
    other = epoch(token=11, manifest="b")
    votes = prepare(target, epoch(), sealed(10)), prepare(target, other, sealed(ROWS))
    publish(target, epoch(), votes[0], sealed(10))
    with pytest.raises(LedgerConflict, match="other data under this epoch"):
        publish(target, other, votes[1], sealed(ROWS))
    assert sorted(path.name for path in target.path.iterdir()) == [".lockstep", *names(target)]
    assert [txn.token for txn in pending(target)] == [11]


class Died(Exception):
    pass


def test_a_range_that_another_manifest_has_taken_is_shown_by_no_file(target: FilesUnderTest) -> None:
    """By the same epoch of a ledger's earlier life, whose publication was cut off."""
    first, second = (replace(epoch(token=token, manifest=str(token)), interval=DAY) for token in (10, 11))
    wals = sealed(ROWS), sealed(ROWS, start=5000)
    votes = prepare(target, first, wals[0]), prepare(target, second, wals[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FolderTarget, "_make_bucket", lambda *_: (_ for _ in ()).throw(Died))
        with pytest.raises(Died):
            publish(target, first, votes[0], wals[0])
    with pytest.raises(LedgerConflict, match="no record of"):
        publish(target, second, votes[1], wals[1])
    assert names(target) == []
    assert publish(target, replace(first, token=12), votes[0], wals[0]) is Publication.COMMITTED
    expect_rows(target, wals[0])


def test_a_wal_or_schemas_without_the_output_are_refused(target: FilesUnderTest) -> None:
    with opened(target) as sink, pytest.raises(PreflightRefused, match="'rows'"):
        sink.preflight({"others": pa.schema([])})
    with pytest.raises(InvalidPipeline, match="'others'"):
        prepare(target, epoch(), [SealedRows(table(1), output=OUTPUT), SealedRows(table(1), output="others")])
    with opened(target) as sink, pytest.raises(SinkRejected, match="no output"):
        sink.prepare(epoch(token=11), [])


# --- a publication that was cut off, and other bytes after it ---------------------------------------------------------


def test_a_repair_takes_over_what_was_shown_and_where_it_would_write_other_files_says_how_to_go_on(
    target: FilesUnderTest,
) -> None:
    """Two of four files are shown, the pending folder is gone."""
    vote = prepare(target, epoch(), sealed(ROWS))
    for number in range(2):
        name = f"files-epoch=1-rows-{number:05d}.parquet"
        (target.path / name).hardlink_to(state(target) / "10" / name)
    with opened(target) as sink:
        assert isinstance(sink, TwoPhaseCommitSink)
        [txn] = sink.pending()
        target.lose(str(vote.handle))
        with pytest.raises(SinkUnavailable, match="missing or damaged"):
            sink.commit(txn)
    stranger = target.path / "files-epoch=1-rows-00009.parquet"
    stranger.write_bytes(b"of another writer")
    with pytest.raises(OutcomeUnknown, match="rows-00009"):
        publish(target, epoch(token=12), vote, sealed(ROWS))
    stranger.unlink()
    for target.rows_per_file in (200, 600):  # other files, as a new pyarrow might write
        with pytest.raises(OutcomeUnknown, match="move it away") as refusal:
            publish(target, epoch(token=12), vote, sealed(ROWS))
        assert names(target) == [] and str(target.path) in str(refusal.value)
    target.rows_per_file = 300
    assert publish(target, epoch(token=13), vote, sealed(ROWS)) is Publication.REPAIRED
    expect_rows(target, sealed(ROWS))
    sweep(target)
    expect_settled(target)


def test_a_foreign_file_under_a_final_name_is_never_replaced(target: FilesUnderTest) -> None:
    vote = prepare(target, epoch(), sealed(ROWS))
    stranger = target.path / "files-epoch=1-rows-00001.parquet"
    stranger.write_bytes(b"a stranger's")
    with pytest.raises(OutcomeUnknown, match="other bytes"):
        publish(target, epoch(), vote, sealed(ROWS))
    assert stranger.read_bytes() == b"a stranger's"
    stranger.unlink()
    assert publish(target, epoch(), vote, sealed(ROWS)) is Publication.COMMITTED
    expect_rows(target, sealed(ROWS))


# --- the behaviour suite, on a mounted folder ---


EVERYTHING = (*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING_BEHAVIOURS)
WITHOUT_CRASHES = [behaviour for behaviour in EVERYTHING if behaviour not in CRASHES]


@pytest.fixture
def stride() -> int:
    return 6


@pytest.mark.fault("A10", "C14", "C23", "D15", "E13", "E14", "J5")
@pytest.mark.parametrize("behaviour", CRASHES, ids=lambda one: one.__name__)
def test_file_sink(tmp_path: Path, behaviour: Behaviour) -> None:
    behaviour(FilesUnderTest(tmp_path, "parquet"))


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_file_sink_without_a_crash(tmp_path: Path, format: str, sampling: Sampling, subtests: pytest.Subtests) -> None:
    for behaviour in WITHOUT_CRASHES if format == "parquet" else sampling.sample(WITHOUT_CRASHES, 3):
        folder = tmp_path / behaviour.__name__
        folder.mkdir()
        with subtests.test(behaviour.__name__):
            behaviour(FilesUnderTest(folder, format))


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_about_file_sink(tmp_path: Path) -> None:
    expect_row("FileSink", FilesUnderTest(tmp_path, "parquet"))

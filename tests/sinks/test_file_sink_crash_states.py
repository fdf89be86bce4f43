"""FileSink after a power cut, in every state that its fsyncs allow (B8): an epoch is absent or complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from lockstep.epoch import Vote
from lockstep.errors import LockstepError
from lockstep.sinks import durable_file
from lockstep.sinks.files import _format as file_format
from lockstep.sinks.files import files
from lockstep.sinks.files.buckets import ByTime
from lockstep.testing._sealed_rows import SCHEMA, SealedRows, digest, sealed
from lockstep.testing._under_test import (
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
    sweep,
)
from tests import crash_states
from tests.crash_states import CrashState, Recording, broken_states, recorded
from tests.sampling import Sampling
from tests.sinks.targets import FilesUnderTest

ROWS = 150
WAL: list[SealedRows] = sealed(ROWS)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


@pytest.fixture(autouse=True)
def few_states(monkeypatch: pytest.MonkeyPatch, sampling: Sampling) -> None:
    if sampling.seed is not None:
        monkeypatch.setattr(crash_states, "MOST_STATES", 8)


def plain(memory: Path) -> FilesUnderTest:
    return FilesUnderTest(memory, "parquet", rows_per_file=100)


def bucketed(memory: Path) -> FilesUnderTest:
    return FilesUnderTest(memory, "parquet", bucket=ByTime("at"), success="_SUCCESS")


def _story(target: FilesUnderTest) -> tuple[Recording, Vote]:
    """One epoch, prepared and published."""
    with opened(target) as sink:
        sink.preflight(None)
    with recorded(target.path) as recording:
        recording.mark("claimed")
        with opened(target) as sink:
            vote = sink.prepare(epoch(), WAL)
            recording.mark("voted")
            sink.publish(epoch(), vote, WAL)
            recording.mark("published")
    return recording, vote


def _check(state: CrashState, target: FilesUnderTest, vote: Vote) -> None:
    shown = files(str(target.path))
    if any(target.path.rglob("_SUCCESS")):
        expect_bare_rows(target)
    assert shown or "published" not in state.marks, "what was published is gone"
    if shown:
        assert "voted" in state.marks, "an epoch is shown that was never voted"
        expect_rows(target, WAL)
    if "voted" in state.marks:
        publish(target, epoch(), vote, WAL)
        expect_proof(target, epoch(), WAL)
    else:
        sweep(target)
        again = prepare(target, epoch(token=20), WAL)
        publish(target, epoch(token=20), again, WAL)
    expect_rows(target, WAL)
    sweep(target)
    expect_settled(target)


def expect_bare_rows(target: FilesUnderTest, wal: list[SealedRows] = WAL) -> None:
    """Fail unless a reader who doesn't ask for markers finds these rows."""
    found = ds.dataset(str(target.path), SCHEMA, "parquet", partitioning=None).to_table(use_threads=False)
    assert digest(found) == digest(wal[0].table), "success is told of files that are gone"


BROKEN = (AssertionError, LockstepError, OSError, ValueError)


class Noticed(Exception):
    """A state is broken: enough is known."""


def _broken(target: FilesUnderTest) -> tuple[int, list[str]]:
    recording, vote = _story(target)
    return broken_states(recording, target.path, lambda state: _check(state, target, vote), BROKEN)


def _notice(target: FilesUnderTest) -> None:
    recording, vote = _story(target)

    def check(state: CrashState) -> None:
        try:
            _check(state, target, vote)
        except BROKEN as error:
            raise Noticed from error

    broken_states(recording, target.path, check, ())


@pytest.mark.fault("B8", "C22", "E14")
@pytest.mark.parametrize("of", [plain, bucketed])
def test_after_a_power_cut_an_epoch_is_absent_or_complete_and_can_be_finished(
    memory: Path, of: Callable[[Path], FilesUnderTest]
) -> None:
    number, broken = _broken(of(memory))
    assert broken == []
    assert number > 50


NEW = sealed(ROWS - 10, start=ROWS)


def _replacement(target: FilesUnderTest) -> tuple[Recording, Vote]:
    """An epoch that takes the place of one that is there."""
    publish(target, epoch(), prepare(target, epoch(), WAL), WAL)
    with recorded(target.path) as recording, opened(target) as sink:
        vote = sink.prepare(SECOND, NEW)
        recording.mark("voted")
        sink.publish(SECOND, vote, NEW)
        recording.mark("published")
    return recording, vote


SECOND = epoch(2, token=20, manifest="b", replaced=[epoch()])


def _check_replacement(state: CrashState, target: FilesUnderTest, vote: Vote) -> None:
    shown = digest(target.visible())
    wanted = [NEW] if "published" in state.marks else [WAL, NEW]
    assert shown in [digest(wal[0].table) for wal in wanted], f"{shown} is to be seen"
    if "voted" in state.marks:
        publish(target, SECOND, vote, NEW)
        expect_rows(target, NEW)
        expect_bare_rows(target, NEW)
    sweep(target)
    expect_settled(target)


@pytest.mark.fault("N1")
@pytest.mark.parametrize("of", [plain, bucketed])
def test_after_a_power_cut_the_old_rows_are_seen_or_the_new(memory: Path, of: Callable[[Path], FilesUnderTest]) -> None:
    target = of(memory)
    recording, vote = _replacement(target)
    check = partial(_check_replacement, target=target, vote=vote)
    number, broken = broken_states(recording, target.path, check, BROKEN)
    assert broken == []
    assert number > 50


class Forgetful:
    """`os`, as a module sees it that forgets to fsync either folders or files."""

    def __init__(self, forgotten: Callable[[int], bool]) -> None:
        self._forgotten = forgotten

    def __getattr__(self, name: str) -> Any:
        return self._fsync if name == "fsync" else getattr(os, name)

    def _fsync(self, descriptor: int) -> None:
        if not self._forgotten(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)


@pytest.mark.parametrize("forgotten", [stat.S_ISDIR, stat.S_ISREG], ids=["folders", "files"])
def test_a_forgotten_fsync_is_noticed(
    memory: Path, forgotten: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_file, "os", Forgetful(forgotten))
    for of in (plain, bucketed):
        folder = memory / of.__name__
        folder.mkdir()
        with pytest.raises(Noticed):
            _notice(of(folder))

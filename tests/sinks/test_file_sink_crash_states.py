"""FileSink after a power cut, in every state that its fsyncs allow (B8): an epoch is absent or complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Vote
from lockstep.errors import LockstepError
from lockstep.sinks import durable_file, file_format
from lockstep.sinks.files import files
from lockstep.testing.sealed_rows import SealedRows, sealed
from lockstep.testing.under_test import (
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
    sweep,
)
from tests.crash_states import CrashState, Recording, broken_states, recorded
from tests.sinks.targets import FilesUnderTest

ROWS = 150
WAL: list[SealedRows] = sealed(ROWS)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


def _story(memory: Path) -> tuple[Recording, Vote]:
    """One epoch, prepared and published."""
    target = FilesUnderTest(memory, "parquet", rows_per_file=100)
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


def _broken(memory: Path) -> tuple[int, list[str]]:
    recording, vote = _story(memory)
    target = FilesUnderTest(memory, "parquet", rows_per_file=100)
    broken = (AssertionError, LockstepError, OSError, ValueError)
    return broken_states(recording, target.path, lambda state: _check(state, target, vote), broken)


def test_after_a_power_cut_an_epoch_is_absent_or_complete_and_can_be_finished(memory: Path) -> None:
    number, broken = _broken(memory)
    assert broken == []
    assert number > 100


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
    assert _broken(memory)[1]

"""A folder of records after a power cut, in every state that its fsyncs allow: a record is missing or whole."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep.errors import LockstepError
from lockstep.sinks import durable_file
from lockstep.sinks.committers import OutsideCommitter, open_committer
from lockstep.sinks.committers.begun import BegunCommitter
from lockstep.sinks.values import SinkContext
from lockstep.testing._under_test import epoch
from tests.crash_states import CrashState, broken_states, recorded
from tests.sinks.test_file_sink_crash_states import Forgetful

BROKEN = (AssertionError, LockstepError, OSError)


def committer(disk: Path) -> OutsideCommitter:
    return open_committer("feed", str(disk / "out" / "sent"), SinkContext("deployment", "pipe", {}))


def send(disk: Path) -> None:
    """What a publisher does that has nothing else to do."""
    one = committer(disk)
    with one.session(epoch()) as session:
        if session.claimed:
            one.commit_checkpoint(epoch(), session)


def broken(disk: Path) -> tuple[int, list[str]]:
    disk.mkdir()
    with recorded(disk) as recording:
        recording.mark("begun")
        committer(disk).create_resource()
        id = committer(disk).resource_id()
        recording.mark("voted")
        send(disk)
        recording.mark("recorded")

    def check(state: CrashState) -> None:
        if "voted" in state.marks:
            assert committer(disk).resource_id() == id
            found = committer(disk).is_checkpoint_committed(1)
            assert found is None or found.manifest_hash == epoch().manifest_hash
            assert found or "recorded" not in state.marks, "what was recorded is gone"
        else:
            committer(disk).create_resource()
        send(disk)
        assert committer(disk).is_checkpoint_committed(1)
        committer(disk).create_resource()
        assert not list(disk.rglob("epoch=*~*"))

    return broken_states(recording, disk, check, BROKEN)


def test_after_a_power_cut_a_record_is_missing_or_whole(memory: Path) -> None:
    number, found = broken(memory / "disk")
    assert found == []
    assert number > 30


def begins_again(disk: Path) -> tuple[int, list[str]]:
    """Once a row may have gone out, no state may let anybody send another one."""
    disk.mkdir()

    def beforehand() -> BegunCommitter:
        return BegunCommitter(committer(disk))

    beforehand().create_resource()
    with recorded(disk) as recording:
        with beforehand().session(epoch()) as session:
            assert session.claimed
            recording.mark("sending")
            beforehand().commit_checkpoint(epoch(), session)
        recording.mark("recorded")

    def check(state: CrashState) -> None:
        with beforehand().session(epoch(token=11)) as session:
            assert not (session.claimed and "sending" in state.marks), "it is sent twice"
            if session.claimed:
                beforehand().commit_checkpoint(epoch(token=11), session)
        marker = beforehand().is_checkpoint_committed(1)
        assert marker is not None, "nobody says what became of it"
        assert marker.whole or "recorded" not in state.marks, "what was sent whole is said to be cut off"

    return broken_states(recording, disk, check, BROKEN)


@pytest.mark.fault("E29")
def test_after_a_power_cut_nothing_begins_again(memory: Path) -> None:
    number, found = begins_again(memory / "disk")
    assert found == []
    assert number > 10


@pytest.mark.parametrize("forgotten", [stat.S_ISDIR, stat.S_ISREG], ids=["folders", "files"])
def test_a_forgotten_fsync_is_noticed(
    memory: Path, monkeypatch: pytest.MonkeyPatch, forgotten: Callable[[int], bool]
) -> None:
    monkeypatch.setattr(durable_file, "os", Forgetful(forgotten))
    for broken_by in (broken, begins_again):
        _, found = broken_by(memory / broken_by.__name__)
        assert found, broken_by.__name__

"""FileSink when its process dies or hangs before any effect on the file system, and when the file system refuses."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Vote
from lockstep.errors import SinkUnavailable
from lockstep.sinks.files import _format as file_format
from lockstep.testing import _behaviour as behaviour
from lockstep.testing import _crash_sweep as crash_sweep
from lockstep.testing._crash_sweep import ended, fork
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import (
    epoch,
    expect_rows,
    expect_settled,
    opened,
    prepare,
    publish,
    sweep,
)
from tests.sinks.targets import FilesUnderTest

EFFECTS = ("mkdir", "rename", "link", "unlink", "rmdir", "fsync")
ROWS = 250


@pytest.fixture
def stride() -> int:
    return 8


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 100)


@pytest.fixture
def target(tmp_path: Path, small_files: None) -> FilesUnderTest:
    return FilesUnderTest(tmp_path, "parquet", rows_per_file=200)


def effects(on_step: crash_sweep.OnStep) -> None:
    """A Trace: every change of the file system that this process makes below a target, told before it is made."""

    def told(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if "decision-" not in str(args[0]):
                on_step(f"{name} {args[0]}")
            return real(*args, **kwargs)

        return call

    for name in EFFECTS:
        setattr(os, name, told(name, getattr(os, name)))
    real_open = os.open

    def opening(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_CREAT:
            on_step(f"create {path}")
        return real_open(path, flags, *args, **kwargs)

    os.open = opening


KILLED, STOPPED = signal.SIGKILL, signal.SIGSTOP
SWEEPS: list[tuple[crash_sweep.Story, crash_sweep.Plot, list[signal.Signals]]] = [
    (crash_sweep.prepares_and_publishes, crash_sweep.ALONE, [KILLED, STOPPED]),
    (crash_sweep.prepares_and_aborts, crash_sweep.ALONE, [KILLED, STOPPED]),
    (crash_sweep.repairs_what_was_lost, crash_sweep.ALONE, [KILLED, STOPPED]),
    (crash_sweep.repairs_what_was_lost, crash_sweep.REPLACEMENT, [KILLED, STOPPED]),
    (crash_sweep.repairs_what_was_lost, crash_sweep.REPLACED, [STOPPED]),
]


@pytest.mark.fault("C22", "E14", "N1", "N2")
@pytest.mark.parametrize(
    ("story", "plot", "action"), [(story, plot, action) for story, plot, actions in SWEEPS for action in actions]
)
def test_a_process_may_die_or_hang_before_any_effect_on_the_file_system(
    memory: Path, small_files: None, story: crash_sweep.Story, plot: crash_sweep.Plot, action: signal.Signals
) -> None:
    target = FilesUnderTest(memory, "parquet", rows_per_file=200)
    steps = crash_sweep.sweep_every_step(target, story, effects, action, ROWS, behaviour.select, plot)
    assert len(steps) > 20 and {step.split()[0] for step in steps} >= {"create", "link", "fsync", "rename"}, steps
    if plot is crash_sweep.REPLACEMENT:
        assert any(step.startswith("unlink") and "-epoch=" in step for step in steps), steps


@pytest.mark.parametrize("action", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_process_may_die_or_hang_while_it_claims_the_folder(
    memory: Path, action: signal.Signals, stride: int
) -> None:
    def claim(number: int, on_step: crash_sweep.OnStep) -> None:
        effects(on_step)
        with opened(FilesUnderTest(memory / str(number), "parquet")) as sink:
            sink.preflight(None)

    def claim_interrupted(number: int) -> None:
        steps = count()
        claim(number, lambda _: os.kill(os.getpid(), action) if next(steps) == number else None)

    for number in behaviour.select([""] * 50, action):
        with ended(fork(partial(claim_interrupted, number))) as child:
            if not child.wait_until_stopped() and child.code == 0:
                break
            target = FilesUnderTest(memory / str(number), "parquet")
            vote = prepare(target, epoch(), sealed(ROWS))
            child.release()
            assert child.wait() in (0, 1, -signal.SIGKILL)
        publish(target, epoch(), vote, sealed(ROWS))
        with opened(target) as sink:
            sink.preflight(None)
        expect_rows(target, sealed(ROWS))
        expect_settled(target)
    assert 10 < number < 50 - stride


def test_an_fsync_that_fails_is_never_taken_for_durable(
    target: FilesUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    vote: Vote | None = None
    for failing in range(100):
        calls = 0

        def fsync(descriptor: int, failing: int = failing) -> None:
            nonlocal calls
            calls += 1
            if calls == failing + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        at = epoch(failing + 1, token=10 * failing + 10, manifest=str(failing))
        wal = sealed(ROWS, start=failing * 10_000)
        with opened(target) as sink:
            sink.preflight(None)
            monkeypatch.setattr(os, "fsync", fsync)
            try:
                vote = sink.prepare(at, wal)
                sink.publish(at, vote, wal)
                break
            except SinkUnavailable as error:
                assert os.strerror(errno.EIO) in str(error)
            finally:
                monkeypatch.setattr(os, "fsync", real)
        sweep(target)
        vote = None
    assert failing > 8, "fewer calls of fsync than there are things to keep"
    assert calls == failing, "a call failed, and the epoch was shown nevertheless"
    assert vote is not None


@pytest.mark.fault("J1")
def test_a_disk_that_fills_up_is_named_and_gets_its_room_back(target: FilesUnderTest) -> None:
    def run() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with opened(target) as sink:
            sink.preflight(None)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # a real refusal by the system, of any write beyond
            with pytest.raises(SinkUnavailable, match="can't be read or written now"):
                sink.prepare(epoch(), sealed(20_000))
            assert sink.pending() == []

    assert fork(run).wait() == 0
    expect_rows(target)
    expect_settled(target)
    vote = prepare(target, epoch(token=11), sealed(ROWS))
    publish(target, epoch(token=11), vote, sealed(ROWS))
    expect_rows(target, sealed(ROWS))

"""The sealer after a power cut, in every state that its fsyncs allow (B8): a WAL is absent or complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lockstep.errors import LockstepError
from lockstep.wal import _local_storage as local_storage
from lockstep.wal.request import REQUEST, RESULT
from lockstep.wal.staging import Staging
from tests.crash_states import CrashState, Recording, broken_states, recorded
from tests.wal.conftest import DEPLOYMENT, OUTPUTS, Staged, rows


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
def test_after_a_power_cut_a_wal_is_absent_or_complete(memory: Path) -> None:
    number, broken = _broken(memory)
    assert broken == []
    assert number > 300


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

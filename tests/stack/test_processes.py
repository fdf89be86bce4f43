"""Ends exactly what it started: never a reused pid, always what a dead leader left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from stack.errors import StackError
from stack.processes import Processes, Started, wait_until
from tests.waiting import until

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
#: starts a child in a group of its own, tells its pid, and sleeps
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0, env={env})
open("child", "w").write(str(child.pid))
time.sleep(600)
"""


def start(processes: Processes, folder: Path, command: list[str]) -> Started:
    return processes.start("one", command, environment=dict(os.environ), cwd=folder, log=folder / "one.log")


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_another_call_ends_what_this_one_started(tmp_path: Path) -> None:
    started = start(Processes(tmp_path / "stack.json"), tmp_path, SLEEP)
    Processes(tmp_path / "stack.json").stop()
    assert not started.lives
    assert not (tmp_path / "stack.json").exists()
    Processes(tmp_path / "stack.json").stop()


@pytest.mark.parametrize("leads", [False, True], ids=["in a session of others", "that leads a session"])
def test_a_reused_pid_is_never_signalled(tmp_path: Path, leads: bool) -> None:
    bystander = subprocess.Popen(SLEEP, start_new_session=leads)
    try:
        entry = {"name": "old", "pid": bystander.pid, "created": 1.0, "log": "/nowhere"}
        (tmp_path / "stack.json").write_text(json.dumps({"mark": "no such mark", "processes": [entry]}))
        processes = Processes(tmp_path / "stack.json")
        assert [one.name for one in processes.dead()] == ["old"]
        processes.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("env", ["None", "{}"], ids=["with the mark", "without the mark"])
def test_what_a_killed_leader_left_behind_is_ended(tmp_path: Path, env: str) -> None:
    processes = Processes(tmp_path / "stack.json")
    leader = start(processes, tmp_path, [sys.executable, "-c", PARENT.format(env=env)])
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "")
    child = int((tmp_path / "child").read_text())
    psutil.Process(leader.pid).kill()
    assert lives(child)
    processes.stop()
    assert not lives(child)


def test_a_process_that_dies_while_it_is_waited_for_is_told_at_once_with_its_last_word(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "stack.json")
    started = start(processes, tmp_path, [sys.executable, "-c", "raise ValueError('no such thing')"])
    with pytest.raises(StackError, match="ValueError: no such thing"):
        wait_until(lambda: False, started, "one", 60)
    processes.stop()

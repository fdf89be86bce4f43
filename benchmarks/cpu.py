"""Processor seconds of everything that a benchmark has started: what a wall clock on a busy machine doesn't tell."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from contextlib import suppress

import psutil


def cpu_seconds(daemons: Iterable[int] = ()) -> float:
    """Of this process, its children and theirs, living or ended, and of the trees below the pids of `daemons`."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = psutil.Process(os.getpid())
    mine = own.cpu_times()
    found = {process.pid: process for process in own.children(recursive=True)}
    for pid in daemons:
        with suppress(psutil.Error):
            daemon = psutil.Process(pid)
            found.update({process.pid: process for process in (daemon, *daemon.children(recursive=True))})
    total = mine.user + mine.system + ended.ru_utime + ended.ru_stime
    for process in found.values():
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # user, system, and those of children that ended
    return total


def cpu_of_tree(pid: int) -> float:
    """Of one process and all that it has or had; of what ends meanwhile nothing is known."""
    total = 0.0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
    return total

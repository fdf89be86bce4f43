"""A warm Flink: one Java machine with a MiniCluster of two slots, which takes jobs as a session cluster does."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rivals.maven import FlinkProgram
from benchmarks.ways import WayFailed

VERSION = "Flink 2.2.0"
_STOP_SECONDS = 30


def program(work: Path) -> FlinkProgram:
    return FlinkProgram(Path(__file__).parent / "java", work / "flink-speed", ("speed",))


class FlinkSession:
    """Jobs by words on standard input, a line of JSON for each on standard output."""

    def __init__(self, started: subprocess.Popen[str], log: Path) -> None:
        self._started, self._log = started, log
        self._answer()

    @property
    def pid(self) -> int:
        return self._started.pid

    def run(self, job: str, **options: object) -> float:
        """Seconds from the request to the answer, with the job's start in them. Raises `WayFailed`."""
        assert self._started.stdin is not None
        began = time.perf_counter()
        self._started.stdin.write(" ".join([job, *(f"{name}={value}" for name, value in options.items())]) + "\n")
        self._started.stdin.flush()
        answer = self._answer()
        if not answer["ok"]:
            raise WayFailed(answer["error"])
        return time.perf_counter() - began

    def _answer(self) -> dict[str, Any]:
        for line in self._started.stdout or ():
            if line.startswith("{") and "job" not in (found := json.loads(line)):
                return dict(found)
        raise SystemExit(f"{VERSION} ended, see {self._log}")


@contextmanager
def flink_session(flink: FlinkProgram, folder: Path) -> Iterator[FlinkSession]:
    """Start it, with the heap and the collector that Spark has here, and end it."""
    log = folder / "flink.log"
    command = [*flink.command("Jobs", "-Xmx3g", "-XX:+UseParallelGC"), "serve"]
    with log.open("w") as told:
        started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True)
    try:
        yield FlinkSession(started, log)
    finally:
        if started.stdin is not None:
            started.stdin.close()  # the end of its input ends it
        try:
            started.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()

"""Flink's JDBC XA sinks under faults: jars by Maven, one JVM a job, killed by SIGKILL at a call of the XA resource."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rivals.faults.target import Outcome, Target
from benchmarks.rivals.maven import FlinkProgram

NEW, FUNCTION = "flink 2.2.0, JDBC sink 4.0.0-2.0", "flink 1.20.3, JDBC function 3.3.0-1.20"
_SLOW, _QUICK = 2_000, 40_000  # rows a second
_SECOND = 2  #: which call the trap is at: the first commit has passed then
_SECONDS = 240
_JAVA = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class Flink:
    """One version with one of its sinks. `work` keeps jars and classes from run to run."""

    name: str
    work: Path

    @property
    def _function(self) -> bool:
        return self.name == FUNCTION

    @property
    def _program(self) -> FlinkProgram:
        return FlinkProgram(Path(__file__).parent / "java", self.work, ("function",) if self._function else ())

    def set_up(self) -> None:
        """Fetch the jars and compile the job, unless that was done before."""
        self._program.set_up()

    def well(self, target: Target) -> Outcome:
        """Nothing goes wrong."""
        return target.outcome(self._finish(target, rate=_QUICK))

    def killed_behind_commit(self, target: Target) -> Outcome:
        """SIGKILL behind a COMMIT PREPARED that went through; restored from the newest complete checkpoint."""
        return self._killed(target, "commit:after", lambda: None)

    def committed_by_hand(self, target: Target) -> Outcome:
        """SIGKILL before a COMMIT PREPARED, which somebody then does by hand; restored."""
        return self._killed(target, "commit:before", target.commit_prepared)

    def rolled_back_by_hand(self, target: Target) -> Outcome:
        """SIGKILL before a COMMIT PREPARED; the transaction is rolled back by hand; restored."""
        return self._killed(target, "commit:before", target.roll_back_prepared)

    def batch(self, target: Target) -> Outcome:
        """RuntimeExecutionMode.BATCH, nothing goes wrong."""
        return target.outcome(self._finish(target, rate=_QUICK, checkpoints=False))

    def _killed(self, target: Target, where: str, meanwhile: Callable[[], None]) -> Outcome:
        mark = target.folder / "trapped"
        job = self._start(target, f"trap={where}:{mark}:{_SECOND}", rate=_SLOW)
        deadline = time.monotonic() + _SECONDS
        while not mark.exists():
            if job.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name}: the job never got to {where}, see {target.folder}/job.log")
            time.sleep(0.05)
        time.sleep(1)  # the coordinator may still be writing the checkpoint that is being committed
        job.kill()
        job.wait()
        meanwhile()
        return target.outcome(self._finish(target, f"restore={_newest_checkpoint(target)}", rate=_QUICK))

    def _finish(self, target: Target, *words: str, rate: int, checkpoints: bool = True) -> str:
        said, _ = self._start(target, *words, rate=rate, checkpoints=checkpoints).communicate(timeout=_SECONDS)
        return (said.strip().splitlines() or ["it said nothing"])[-1]

    def _start(self, target: Target, *words: str, rate: int, checkpoints: bool = True) -> subprocess.Popen[str]:
        job = [f"sink={'function' if self._function else 'new'}", f"table={target.table}", f"url={target.jdbc}"]
        job += [f"file=file://{target.file}", f"rate={rate}"]
        job += [f"checkpoints={target.folder}/checkpoints"] if checkpoints else []
        with (target.folder / "job.log").open("a") as log:
            command = [*self._program.command("Rows", *_JAVA), *job, *words]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)


def _newest_checkpoint(target: Target) -> Path:
    found = list((target.folder / "checkpoints").glob("*/chk-*/_metadata"))
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent

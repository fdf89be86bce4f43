"""Lockstep under the same faults: a process of its own is killed at a crash point, then somebody runs recovery.

python -m benchmarks.rivals.faults.lockstep_way TABLE FOLDER LEDGER WAREHOUSE SPARK  # one epoch, to be killed
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.paths import START
from benchmarks.rivals.faults.target import Outcome, Target
from lockstep import Pipeline, recover, run_epoch
from lockstep.crash import CrashPoint
from lockstep.sinks import PostgresSink
from lockstep.sources import FileSource


def same(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(inputs)


def pipeline_of(table: str, folder: Path) -> Pipeline:
    path = f"{folder}/numbers-{{interval_start:%Y}}.csv"
    return Pipeline(
        name=table,
        sources={"numbers": FileSource(path, schema="id BIGINT", options={"header": "false"})},
        transform=same,
        sinks=[PostgresSink("warehouse", tables={"numbers": f"public.{table}"}, connection="warehouse")],
    )


def epoch(table: str, folder: str, ledger: str, warehouse: str, spark: str) -> None:
    run_epoch(
        pipeline_of(table, Path(folder)),
        interval=(START, START + timedelta(days=1)),
        ledger=ledger,
        staging=f"{folder}/staging",
        spark=spark,
        connections={"warehouse": warehouse},
    )


@dataclass(frozen=True)
class Lockstep:
    """Epochs through the session's Spark Connect server."""

    name: str
    ledger: str
    spark: str

    def well(self, target: Target) -> Outcome:
        """Nothing goes wrong."""
        done = self._epoch(target, {})
        return target.outcome("the epoch ended well" if done == 0 else f"the epoch failed: {done}")

    def killed_behind_commit(self, target: Target) -> Outcome:
        """SIGKILL behind a COMMIT PREPARED that went through; then recovery."""
        return self._killed(target, CrashPoint.PUBLISH_AFTER_SINK_COMMIT, lambda: None)

    def committed_by_hand(self, target: Target) -> Outcome:
        """SIGKILL before a COMMIT PREPARED, which somebody then does by hand; then recovery."""
        return self._killed(target, CrashPoint.PUBLISH_BEFORE_SINK, target.commit_prepared)

    def rolled_back_by_hand(self, target: Target) -> Outcome:
        """SIGKILL before a COMMIT PREPARED; the transaction is rolled back by hand; then recovery."""
        return self._killed(target, CrashPoint.PUBLISH_BEFORE_SINK, target.roll_back_prepared)

    def _killed(self, target: Target, point: CrashPoint, meanwhile: Callable[[], None]) -> Outcome:
        done = self._epoch(target, {"LOCKSTEP_TESTING": "1", "LOCKSTEP_CRASH": f"{point.value}:kill"})
        if done != -signal.SIGKILL:
            raise SystemExit(f"Lockstep never got to {point.value}: it ended with {done}")
        meanwhile()
        connections = {"warehouse": target.dsn}
        left = recover(target.table, ledger=self.ledger, staging=f"{target.folder}/staging", connections=connections)
        return target.outcome("recovery ended well" if not left.problems else "; ".join(left.problems))

    def _epoch(self, target: Target, environment: Mapping[str, str]) -> int:
        command = [
            sys.executable,
            "-m",
            __name__,
            target.table,
            str(target.folder),
            self.ledger,
            target.dsn,
            self.spark,
        ]
        with (target.folder / "job.log").open("a") as log:
            return subprocess.run(command, env={**os.environ, **environment}, stderr=log, check=False).returncode


if __name__ == "__main__":
    epoch(*sys.argv[1:])

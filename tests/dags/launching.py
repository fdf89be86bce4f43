"""A pipeline, a launcher that starts spark-submit and lets go of it, and a worker that is killed as soon as it has.

python -m tests.dags.launching LEDGER STAGING
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import Pipeline
from lockstep.connections.names import absolute
from lockstep.epoch import Interval, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.launchers import Application, JobState
from lockstep.ledger import Ledger
from lockstep.protocol.stage import stage
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.wal.staging import Staging
from stack.spark import spark_environment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RUN = RunKey("launched", "first")
DAY = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
GATE, HELD_UP = "LOCKSTEP_HELD_AT", timedelta(minutes=3)


def held(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Whoever was started with a gate waits there until it is gone."""
    orders = inputs["orders"]
    gate = os.environ.get(GATE)
    return {"orders": orders.mapInArrow(_hold_at(gate), orders.schema) if gate else orders}


def _hold_at(gate: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def recovery_grace(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(gate).with_suffix(".reached").touch()
        deadline = time.monotonic() + HELD_UP.total_seconds()
        while Path(gate).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        yield from batches

    return recovery_grace


pipeline = Pipeline(
    name="launched",
    sources={"orders": FileSource("landing/{interval_start:%Y-%m-%d}.csv", format="csv", schema="id INT")},
    transform=held,
    sinks=[FileSink("archive", output="orders", path="out", format="parquet")],
)


@dataclass
class LooseLauncher:
    """spark-submit in a session of its own, which outlives whoever has started it."""

    environment: Mapping[str, str] = field(default_factory=dict)
    launched: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
        for setting in ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.ui.enabled=false"):
            command += ["--conf", setting]
        command += ["--py-files", str(application.code), str(application.file), *arguments]
        environment = {**spark_environment(), **self.environment}
        with Path(absolute(f"{token}.log")).open("wb") as log:
            self.launched[token] = subprocess.Popen(
                command, env=environment, start_new_session=True, stdout=log, stderr=log
            )
        return token

    def state(self, handle: str) -> JobState:
        match self.launched[handle].poll():
            case None:
                return JobState.RUNNING
            case 0:
                return JobState.SUCCEEDED
        return JobState.FAILED

    def cancel(self, handle: str) -> None:
        os.killpg(self.launched[handle].pid, signal.SIGTERM)


class KilledOnceItHas(LooseLauncher):
    """Nobody ever hears of the job."""

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        super().launch(application, arguments, token)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it was killed")


def main(dsn: str, staging: str) -> None:
    from lockstep.airflow._launching import OwnLauncher

    job = OwnLauncher(known, KilledOnceItHas({GATE: absolute("gate")}))
    with closing(Ledger(dsn)) as ledger:
        stage(runtime_for(known, ledger, Staging(staging), {}), RUN, job, job.reference)


if __name__ == "__main__":
    from tests.dags.launching import pipeline as known  # by the name that the driver imports it by

    main(*sys.argv[1:])

"""Run by the Python of an environment that has only the wheel: one epoch of `shop.py`, which lies beside it.

python run_installed.py connect|submit|airflow ADDRESS
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from shop import pipeline

import lockstep
from lockstep.epoch import Interval, RunKey
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.wal.staging import Staging

DAY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
LEDGER, STAGING = os.environ["LOCKSTEP_LEDGER"], os.environ["LOCKSTEP_STAGING"]
CONNECTIONS = {"warehouse": os.environ["LOCKSTEP_WAREHOUSE"]}


def by_connect(url: str) -> None:
    print(
        lockstep.run_epoch(
            pipeline, interval=DAY, ledger=LEDGER, staging=STAGING, spark=url, connections=CONNECTIONS
        ).state
    )


def by_roles(launch: Launch) -> None:
    migrate(LEDGER)
    run = RunKey("shop", "installed")
    runtime = runtime_for("shop", Ledger(LEDGER), Staging(STAGING), CONNECTIONS, pipeline)
    begin(runtime, run, Interval(*DAY))
    stage(runtime, run, launch, pipeline.reference())
    for sink in pipeline.sinks:
        prepare(runtime, run, sink.name)
    commit(runtime, run)
    for sink in pipeline.sinks:
        publish(runtime, run, sink.name)
    print(cleanup(runtime, run).state)


def by_submit(master: str) -> Launch:
    """What the documentation says to run without Airflow."""

    def launch(request_uri: str) -> None:
        import lockstep.compute.submit as submit

        application = Path(submit.__file__).with_name("stage_epoch.py")
        program = Path(sys.executable).with_name("spark-submit")
        command: list[str | Path] = [program, "--master", master, "--conf", "spark.ui.enabled=false"]
        for setting in ("spark.driver.host", "spark.driver.bindAddress"):
            command += ["--conf", f"{setting}=127.0.0.1"]
        subprocess.run([*command, application, "--request", request_uri], check=True)

    return launch


def by_airflow() -> Launch:
    from lockstep.airflow._launching import launcher

    return launcher(pipeline, "spark", {})


if __name__ == "__main__":
    way, address = sys.argv[1:]
    if way == "connect":
        by_connect(address)
    else:
        by_roles(by_submit(address) if way == "submit" else by_airflow())

"""One running stack for all end-to-end tests, on free ports and in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

import pytest

from lockstep.ledger import Ledger
from stack.airflow import ADMIN, Airflow
from stack.home import Home, Ports
from stack.lifecycle import Stack
from stack.postgres import HOST, free_port
from tests.e2e.airflow_api import AirflowApi
from tests.e2e.world import World

DAGS = Path(__file__).parent / "dags"


class TestedStack(Stack):
    """The default stack, with the tests' DAGs and a second Spark, behind spark-submit. OpenLineage is told of DAGs that
    enable it, and a socket of every metric."""

    __test__ = False

    @cached_property
    def metrics(self) -> socket.socket:
        """What StatsD would listen on."""
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((HOST, 0))
        made.setblocking(False)
        return made

    @property
    def lineage(self) -> Path:
        """A file with a line for each event."""
        return self.home.root / "lineage.jsonl"

    @cached_property
    def airflow(self) -> Airflow:
        local = {
            "AIRFLOW_CONN_SPARK_LOCAL": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",  # other tests want the processor, too
            "AIRFLOW_CONN_KAFKA": json.dumps({"conn_type": "kafka", "host": HOST, "port": self.home.ports.kafka}),
            "LOCKSTEP_TESTING": "1",  # tasks may be held up
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",  # whose triggerer is dead are soon another's
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                {"type": "file", "log_file_path": str(self.lineage), "append": True}
            ),
            "AIRFLOW__OPENLINEAGE__SELECTIVE_ENABLE": "True",
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": HOST,
            "AIRFLOW__METRICS__STATSD_PORT": str(self.metrics.getsockname()[1]),
        }
        return Airflow(
            self._processes,
            self.home.airflow,
            port=self.home.ports.airflow,
            database_port=self.home.ports.postgres,
            dags=DAGS,
            environment={**self.environment, **self._connections(), **local},
        )


@pytest.fixture(scope="package")
def stack() -> Iterator[TestedStack]:
    root = Path(tempfile.mkdtemp(prefix="lockstep-e2e-"))
    root.chmod(0o711)
    ports = Ports(postgres=free_port(), spark=free_port(), airflow=free_port(), kafka=free_port())
    made = TestedStack(Home(root, ports), kafka=False)  # a broker is started by whose tests want one
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PGPASSFILE", str(made.home.passfile))  # for what asks in this process
            made.up()
            yield made
    finally:
        made.down()
        made.metrics.close()
        if os.environ.get("LOCKSTEP_KEEP"):
            print(f"kept {root}")
        else:
            made.clean()
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="package")
def world(stack: TestedStack) -> Iterator[World]:
    password = json.loads(stack.airflow.passwords.read_text())[ADMIN]
    dsn = stack.environment["LOCKSTEP_LEDGER"]
    with closing(Ledger(dsn, "the tests")) as ledger:
        api = AirflowApi(stack.airflow.url, ADMIN, password)
        yield World(stack.home.root, api, ledger, dsn, stack.environment["LOCKSTEP_WAREHOUSE"])

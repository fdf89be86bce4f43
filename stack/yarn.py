"""A private YARN on loopback, a ResourceManager and one NodeManager, from Hadoop's own test cluster of Maven Central.

python3 -m stack.yarn        fetches what Spark's jars lack of it into the environment

It takes Spark's jobs in cluster mode, and runs drivers and executors as processes of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from stack.errors import StackError
from stack.hadoop import SERVERS, java, write_settings
from stack.home import import_path
from stack.jars import Jars, spark_jars
from stack.java import java_home
from stack.postgres import HOST, free_port
from stack.processes import Processes, wait_until
from stack.throwaway import ThrowawayServer

#: Which the ResourceManager asks for, and the one jar of the servers leaves to others.
CERTIFICATES = Jars(
    "yarn", alone=tuple(f"org.bouncycastle:bc{part}-jdk18on:1.82" for part in ("prov", "pkix", "util")), target="yarn"
)
START_SECONDS = 120

_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_PLACES = {
    "yarn.resourcemanager.address": "applications",
    "yarn.resourcemanager.scheduler.address": "scheduler",
    "yarn.resourcemanager.resource-tracker.address": "nodes",
    "yarn.resourcemanager.admin.address": "admin",
    "yarn.resourcemanager.webapp.address": "web",
    "yarn.nodemanager.address": "node",
    "yarn.nodemanager.localizer.address": "localizer",
    "yarn.nodemanager.webapp.address": "node-web",
}
SETTINGS: Mapping[str, str | int] = {
    "yarn.resourcemanager.hostname": HOST,
    "yarn.resourcemanager.scheduler.class": (
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
    ),
    "yarn.scheduler.minimum-allocation-mb": 256,
    "yarn.nodemanager.hostname": HOST,
    "yarn.nodemanager.resource.memory-mb": 4096,
    "yarn.nodemanager.resource.cpu-vcores": 4,
    # a disk that is nearly full, which is checked at the start in any case, and little memory are enough for tests
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
}


def fetched() -> bool:
    return SERVERS.present and CERTIFICATES.present


class YarnCluster(ThrowawayServer):
    """One YARN with settings, logs and what its jobs write under `folder`. It believes whoever asks (no Kerberos)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._processes = Processes(self.folder / "yarn.json")
        self._ports = {name: free_port() for name in _PLACES.values()}

    @property
    def web(self) -> str:
        """Of the ResourceManager, which answers questions about jobs there."""
        return f"http://{HOST}:{self._ports['web']}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which spark-submit finds it."""
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}

    def configuration(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What a job in cluster mode is to be given; `environment`: of its driver."""
        [jar, *_] = spark_jars("spark-core")
        common = {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable}
        driver = {**common, "PYTHONPATH": import_path(), **environment}
        return {
            "spark.yarn.jars": f"local:{jar.parent}/*",
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
            "spark.ui.enabled": "false",
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in driver.items()},
            **{f"spark.executorEnv.{name}": value for name, value in common.items()},
        }

    def start(self) -> None:
        """Start both and wait until the node has registered. Raises `StackError`."""
        addresses = {setting: f"{HOST}:{self._ports[name]}" for setting, name in _PLACES.items()}
        folders = {f"yarn.nodemanager.{kind}-dirs": str(self.folder / kind) for kind in ("local", "log")}
        sites: dict[str, Mapping[str, str | int]] = {
            "core": {"fs.defaultFS": "file:///"},
            "yarn": {**SETTINGS, **addresses, **folders},
        }
        write_settings(self.folder / "conf", sites)
        manager = self._launch("resourcemanager", _RESOURCE_MANAGER)
        self._launch("nodemanager", _NODE_MANAGER)
        wait_until(lambda: "RUNNING" in str(self.ask("nodes")), manager, "YARN", START_SECONDS)

    def ask(self, what: str) -> dict[str, Any]:
        """What the ResourceManager answers below /ws/v1/cluster; nothing before it serves."""
        page = f"http://{HOST}:{self._ports['web']}/ws/v1/cluster/{what}"
        with suppress(OSError), urlopen(page, timeout=START_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
        return {}

    @property
    def pids(self) -> list[int]:
        """Of what of it runs."""
        return [one.pid for one in self._processes.started if one.lives]

    def remove(self) -> None:
        self._processes.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _launch(self, name: str, main: str) -> Any:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "YARN_"))}
        return self._processes.start(
            name,
            java(main, self.folder, CERTIFICATES.paths()),
            environment=environment,
            cwd=self.folder,
            log=self.folder / f"{name}.log",
        )


if __name__ == "__main__":
    try:
        for jars in (SERVERS, CERTIFICATES):
            print(f"{jars.name}: {'here already' if jars.present else 'fetching …'}", flush=True)
            jars.fetch()
    except StackError as error:
        sys.exit(str(error))

"""A private HDFS on loopback, a NameNode and one DataNode, from Hadoop's own test cluster of Maven Central.

python3 -m stack.hdfs        fetches what Spark's jars lack of it into the environment

The two are processes of their own, of the Hadoop that pyspark ships: one jar brings both servers, the rest lies in
pyspark's folder. What the NameNode answered stands in its fsynced log, and survives a SIGKILL.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from stack.errors import StackError
from stack.hadoop import SERVERS, java, write_settings
from stack.postgres import HOST, free_port
from stack.processes import Processes, Started, wait_until
from stack.throwaway import ThrowawayServer

HDFS = SERVERS
START_SECONDS = 120

_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_PORTS = ("namenode", "namenode-http", "datanode", "datanode-http", "datanode-ipc")

DEFAULTS: Mapping[str, str | int] = {
    "dfs.replication": 1,
    # it serves as soon as its one DataNode has told what it has, and needn't wait for others
    "dfs.namenode.safemode.extension": 0,
    "dfs.namenode.safemode.min.datanodes": 1,
    "dfs.heartbeat.interval": 1,
    "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    # no `du` beside it, and no look for other hosts' names
    "fs.getspaceused.classname": "org.apache.hadoop.fs.DFCachingGetSpaceUsed",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.handler.count": 4,
    "dfs.datanode.handler.count": 4,
}


class HdfsServer(ThrowawayServer):
    """One HDFS with data, logs and settings under `folder`. It believes whoever asks (no Kerberos)."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str | int] | None = None) -> None:
        self.folder = folder.absolute()
        self.settings: dict[str, str | int] = {**DEFAULTS, **(settings or {})}
        self._processes = Processes(self.folder / "hdfs.json")
        self._namenode: Started | None = None
        self._datanode: Started | None = None

    # --- how it is reached ---

    @property
    def uri(self) -> str:
        """Of its root, without a slash behind it."""
        return f"hdfs://{HOST}:{self._ports['namenode']}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Hadoop's clients, Spark among them, find it as their default file system."""
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}

    # --- its life ---

    @property
    def pids(self) -> list[int]:
        """Of what of it runs, whoever started it."""
        return [one.pid for one in self._processes.started if one.lives]

    @property
    def lives(self) -> bool:
        return self._namenode is not None and self._namenode.lives

    def start(self) -> None:
        """Start what of it isn't running, with what it had, and wait until it serves. Raises `StackError`."""
        if not (self.folder / "formatted").exists():
            self._format()
        if not self.lives:
            self._namenode = self._launch("namenode", _NAMENODE)
        if self._datanode is None or not self._datanode.lives:
            self._datanode = self._launch("datanode", _DATANODE)
        assert self._namenode is not None
        wait_until(self._serves, self._namenode, "HDFS", START_SECONDS)

    def stop(self) -> None:
        """An orderly end."""
        self._processes.stop()
        self._namenode = self._datanode = None

    def kill(self) -> None:
        """SIGKILL its NameNode: what wasn't in its log yet never will be."""
        if self._namenode is None:
            raise StackError("HDFS doesn't run")
        self._namenode.kill()

    def administer(self, *words: str) -> None:
        """What an administrator asks of it, as `-safemode enter`. Raises `StackError` with what was answered."""
        command = [*self._java(_ADMIN), "-fs", self.uri, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment)
        if done.returncode:
            raise StackError(f"HDFS refuses {' '.join(words)}: {done.stdout}{done.stderr}")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- how it is set up ---

    @property
    def _ports(self) -> dict[str, int]:
        found: dict[str, int] = json.loads((self.folder / "ports.json").read_text())
        return found

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = {name: free_port() for name in _PORTS}
        (self.folder / "ports.json").write_text(json.dumps(ports))
        sites: dict[str, Mapping[str, str | int]] = {
            "core": {"fs.defaultFS": self.uri},
            "hdfs": {**self.settings, **self._places(ports)},
        }
        write_settings(self.folder / "conf", sites)
        done = subprocess.run(
            [*self._java(_NAMENODE), "-format", "-nonInteractive", "-force"],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )
        if done.returncode:
            raise StackError(f"HDFS could not be formatted: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
        (self.folder / "formatted").touch()

    def _places(self, ports: Mapping[str, int]) -> dict[str, str]:
        return {
            "dfs.namenode.rpc-address": f"{HOST}:{ports['namenode']}",
            "dfs.namenode.http-address": f"{HOST}:{ports['namenode-http']}",
            "dfs.namenode.name.dir": f"file://{self.folder}/names",
            "dfs.datanode.hostname": HOST,
            "dfs.datanode.address": f"{HOST}:{ports['datanode']}",
            "dfs.datanode.http.address": f"{HOST}:{ports['datanode-http']}",
            "dfs.datanode.ipc.address": f"{HOST}:{ports['datanode-ipc']}",
            "dfs.datanode.data.dir": f"file://{self.folder}/blocks",
        }

    def _launch(self, name: str, main: str) -> Started:
        return self._processes.start(
            name, self._java(main), environment=self._environment, cwd=self.folder, log=self.folder / f"{name}.log"
        )

    @property
    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "HDFS_"))}

    def _java(self, main: str) -> list[str]:
        return java(main, self.folder)

    def _serves(self) -> bool:
        """Whether it takes files: the NameNode has left its safe mode, as the DataNode told what it has."""
        state = self._bean("FSNamesystemState")
        return state.get("FSState") == "Operational" and state.get("NumLiveDataNodes", 0) > 0

    def _bean(self, name: str) -> dict[str, Any]:
        """What the NameNode tells of itself; nothing before it serves."""
        page = f"http://{HOST}:{self._ports['namenode-http']}/jmx?qry=Hadoop:service=NameNode,name={name}"
        with suppress(OSError), urlopen(page, timeout=START_SECONDS) as answer:
            beans: list[dict[str, Any]] = json.load(answer)["beans"]
            return beans[0] if beans else {}
        return {}


if __name__ == "__main__":
    try:
        print(f"{HDFS.name}: {'here already' if HDFS.present else 'fetching …'}", flush=True)
        HDFS.fetch()
    except StackError as error:
        sys.exit(str(error))

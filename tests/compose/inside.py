"""Runs the services of docker-compose.yaml as processes, in the order and on the conditions that the file says.

    python -m tests.compose.inside PLAN LOGS      in the sandbox of `sandbox.py`

PLAN is a JSON file: `services` by name, `addresses` of its databases. Once all are up it says so on a line of its own;
then it takes commands, each a line of JSON: `service`, `command`, and answers each by a line: `code`, `output`. It ends
with its input. PostgreSQL's image can't be had without a registry: the server of the environment stands in for it, by
the same name and login.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg2

from stack.postgres import programs
from stack.secret_file import write_secret

SECONDS = 240
DATA = Path("/standins")


class Composition:
    """Services by name; a running one is a process with a log of its own."""

    def __init__(self, services: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, str], logs: Path) -> None:
        self._services = services
        self._addresses = addresses
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def up(self) -> None:
        """Everything, as it is needed. Raises RuntimeError: which service did not get as far as others need it."""
        for name in self._services:
            self._need(name, "service_started")

    def run(self, name: str, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        """As `docker compose exec` does."""
        return subprocess.run(
            command, env=self._environment(name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )

    def _need(self, name: str, condition: str) -> None:
        service = self._services[name]
        if name not in self._running:
            for other, wanted in service["needs"].items():
                self._need(other, wanted)
            self._start(name)
        if condition == "service_completed_successfully":
            if (code := self._running[name].wait(SECONDS)) != 0:
                raise RuntimeError(f"{name} ended with {code}: {self._log(name).read_text()[-2000:]}")
        elif condition == "service_healthy":
            self._wait(name)

    def _wait(self, name: str) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            if self._running[name].poll() is not None:
                raise RuntimeError(f"{name} ended: {self._log(name).read_text()[-2000:]}")
            said = self._is_well(name)
            if not said:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} isn't well: {said}; {self._log(name).read_text()[-2000:]}")
            time.sleep(0.5)

    def _is_well(self, name: str) -> str:
        """Empty if so, otherwise what was said."""
        if name in self._addresses:
            return _takes_logins(self._addresses[name], self._services[name]["environment"])
        done = self.run(name, self._services[name]["health"])
        return "" if done.returncode == 0 else done.stdout.decode() or f"code {done.returncode}"

    def healthy(self) -> dict[str, str]:
        """By service that says how it is: what its check said where it failed, empty where not."""
        return {name: self._is_well(name) for name, one in self._services.items() if one["health"]}

    def _start(self, name: str) -> None:
        service = self._services[name]
        is_database = name in self._addresses
        command = _postgres(name, self._addresses[name], service) if is_database else service["command"]
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env=self._environment(name), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _environment(self, name: str) -> dict[str, str]:
        own = {variable: os.environ[variable] for variable in ("PATH", "HOME", "HOSTNAME", "LANG")}
        return {**own, **self._services[name]["environment"]}

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def _postgres(name: str, address: str, service: Mapping[str, Any]) -> list[str]:
    """As the image's entry does it: a user and a database by the name that it is told, then the service's command."""
    user, password = service["environment"]["POSTGRES_USER"], service["environment"]["POSTGRES_PASSWORD"]
    data = DATA / name
    write_secret(DATA / f"{name}.password", password)
    _tool("initdb", "-D", data, "-U", user, "--pwfile", DATA / f"{name}.password", "-A", "scram-sha-256")
    _tool("postgres", "--single", "-D", data, "postgres", stdin=f"CREATE DATABASE {user};\n")
    _, *arguments = service["command"] or ["postgres"]
    listening = ["-D", data, "-c", f"listen_addresses={address}", "-c", "unix_socket_directories="]
    return [str(programs() / "postgres"), *map(str, listening), *arguments]


def _tool(name: str, *arguments: object, stdin: str = "") -> None:
    command = [str(programs() / name), *map(str, arguments)]
    done = subprocess.run(
        command, input=stdin, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stdout[-1000:]}")


def _takes_logins(address: str, environment: Mapping[str, str]) -> str:
    user, password = environment["POSTGRES_USER"], environment["POSTGRES_PASSWORD"]
    try:
        psycopg2.connect(host=address, dbname=user, user=user, password=password).close()
    except psycopg2.OperationalError as error:
        return str(error)
    return ""


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    composition = Composition(plan["services"], plan["addresses"], Path(sys.argv[2]))
    try:
        composition.up()
        print(json.dumps({"up": True}), flush=True)
    except Exception as error:
        print(json.dumps({"up": False, "why": str(error)}), flush=True)
        return
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["service"] == "":
            print(json.dumps(composition.healthy()), flush=True)
            continue
        done = composition.run(asked["service"], asked["command"])
        print(json.dumps({"code": done.returncode, "output": done.stdout.decode()}), flush=True)


if __name__ == "__main__":
    main()

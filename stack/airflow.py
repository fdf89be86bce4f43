"""Airflow for one machine: api-server, scheduler with LocalExecutor, dag-processor and triggerer, each a process.

Secrets (keys, the admin's password) stand in 0600 files, not in the environment and not in command lines.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import io
import json
import os
import secrets
import subprocess
import sys
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from stack.errors import StackError
from stack.home import CHECKOUT, import_path
from stack.postgres import HOST, SUPERUSER, free_port
from stack.processes import Processes, Started, wait_until
from stack.secret_file import write_secret

ADMIN = "admin"
START_SECONDS = 240
#: --skip-serve-logs: the log servers would listen on every interface; the api-server reads the files itself
COMPONENTS: Mapping[str, list[str]] = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}

HEALTH = ("metadatabase", "scheduler", "dag_processor", "triggerer")

Settings = dict[str, dict[str, str]]


class Airflow:
    """One Airflow: its home is `folder`, its metadata the database `airflow` of the server at `database_port`."""

    def __init__(
        self,
        processes: Processes,
        folder: Path,
        *,
        port: int,
        database_port: int,
        dags: Path = CHECKOUT / "dags",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` reaches every task: Connections, PGPASSFILE, what pipelines read."""
        self._processes = processes
        self._folder = folder.absolute()
        self._port = port or free_port()
        self._database = f"{SUPERUSER}@{HOST}:{database_port}/airflow"
        self._dags = dags
        self._extra = dict(environment or {})

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    @property
    def passwords(self) -> Path:
        """JSON {user: password}, 0600."""
        return self._folder / "passwords.json"

    @property
    def environment(self) -> dict[str, str]:
        """For the components, and for an `airflow` command of the same installation."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
        own = {"AIRFLOW_HOME": str(self._folder), "PYTHONPATH": import_path(), "PYTHONUNBUFFERED": "1"}
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        return {**inherited, **own, "PATH": tools, **self._extra}

    def prepare(self) -> None:
        """Write the configuration and bring the metadata database up to this Airflow's version."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self.passwords.exists():
            write_secret(self.passwords, json.dumps({ADMIN: secrets.token_urlsafe(12)}))
        self._write_configuration()
        migrated = self._folder / f"migrated-{importlib.metadata.version('apache-airflow')}"
        if not migrated.exists():
            self._migrate()
            migrated.touch()

    def launch(self) -> list[Started]:
        """Start every component. Raises PortInUse."""
        free_port(self._port)
        return [self._launch(name, arguments) for name, arguments in COMPONENTS.items()]

    def kill(self, component: str) -> None:
        """SIGKILL it and what it has started, wherever they are in their work."""
        for one in self._processes.started:
            if one.name == f"airflow-{component}" and one.lives:
                family = psutil.Process(one.pid).children(recursive=True)
                one.kill()
                for process in family:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()

    def start(self, component: str) -> None:
        """In place of one that was killed."""
        self._launch(component, COMPONENTS[component])

    def wait(self, started: list[Started]) -> None:
        """Wait until every component says that it is healthy."""
        for component in started:
            wait_until(lambda: self.healthy, component, component.name, START_SECONDS)

    @property
    def healthy(self) -> bool:
        """Whether every component has reported lately, and tasks can ask for their context."""
        with suppress(OSError, ValueError):
            parts = self._ask("/api/v2/monitor/health")
            self._ask("/execution/health")  # built at the first question: the first task shouldn't wait for it
            return all(parts[part]["status"] == "healthy" for part in HEALTH)
        return False

    def _ask(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found

    def _launch(self, name: str, arguments: list[str]) -> Started:
        return self._processes.start(
            f"airflow-{name}",
            [str(Path(sys.executable).parent / "airflow"), *arguments],
            environment=self.environment,
            cwd=self._folder,
            log=self._folder / "logs" / f"{name}.log",
        )

    def _migrate(self) -> None:
        log = self._folder / "logs" / "migrate.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            command = [str(Path(sys.executable).parent / "airflow"), "db", "migrate"]
            done = subprocess.run(command, check=False, stdout=output, stderr=output, env=self.environment)
        if done.returncode != 0:
            raise StackError(f"`airflow db migrate` failed with code {done.returncode}: see {log}")

    def _write_configuration(self) -> None:
        path = self._folder / "airflow.cfg"
        before = configparser.ConfigParser(interpolation=None)
        before.read(path)
        after = configparser.ConfigParser(interpolation=None)
        after.read_dict(self._settings())
        for section, key in (("core", "fernet_key"), ("api", "secret_key"), ("api_auth", "jwt_secret")):
            after[section][key] = before.get(section, key, fallback=urlsafe_b64encode(secrets.token_bytes(32)).decode())
        text = io.StringIO()
        after.write(text)
        write_secret(path, text.getvalue())

    def _settings(self) -> Settings:
        return {
            "core": {
                "executor": "LocalExecutor",
                "parallelism": "8",
                "dags_folder": str(self._dags),
                "plugins_folder": str(CHECKOUT / "plugins"),
                "load_examples": "False",
                "dags_are_paused_at_creation": "True",
                "hostname_callable": "socket.gethostname",
                "simple_auth_manager_users": f"{ADMIN}:admin",
                "simple_auth_manager_passwords_file": str(self.passwords),
                "execution_api_server_url": f"{self.url}/execution/",
            },
            "database": {
                "sql_alchemy_conn": f"postgresql+psycopg2://{self._database}",
                "sql_alchemy_conn_async": f"postgresql+asyncpg://{self._database}",
            },
            "api": {"host": HOST, "port": str(self._port), "base_url": self.url, "workers": "1"},
            "api_auth": {},
            "scheduler": {
                "scheduler_idle_sleep_time": "0.1",
                "enable_health_check": "False",
                # after a power cut the new scheduler takes the old one's tasks over within a minute, not five
                "orphaned_tasks_check_interval": "20",
            },
            "dag_processor": {"refresh_interval": "5", "bundle_refresh_check_interval": "1"},
            "logging": {"base_log_folder": str(self._folder / "logs"), "colored_console_log": "False"},
        }

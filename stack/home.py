"""Where the stack keeps its things, and the ports that it listens on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lockstep.operations.dev_stacks import ENVIRONMENT
from stack.errors import StackError

CHECKOUT = Path(__file__).resolve().parent.parent
PORTS = {"postgres": 25_432, "spark": 25_002, "airflow": 28_080, "kafka": 25_092}


@dataclass(frozen=True)
class Ports:
    """Loopback ports; LOCKSTEP_PORT_POSTGRES, …_SPARK, …_AIRFLOW and …_KAFKA choose others. 0: any free one."""

    postgres: int
    spark: int
    airflow: int
    kafka: int = 0

    @classmethod
    def from_environment(cls) -> Ports:
        return cls(**{service: _port(service, default) for service, default in PORTS.items()})


@dataclass(frozen=True)
class Home:
    """Folder names under `.lockstep/` of the checkout, or under LOCKSTEP_HOME."""

    root: Path
    ports: Ports

    @classmethod
    def from_environment(cls) -> Home:
        root = Path(os.environ.get("LOCKSTEP_HOME") or CHECKOUT / ".lockstep").absolute()
        return cls(root, Ports.from_environment())

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def spark(self) -> Path:
        return self.root / "spark"

    @property
    def kafka(self) -> Path:
        return self.root / "kafka"

    @property
    def airflow(self) -> Path:
        return self.root / "airflow"

    @property
    def passfile(self) -> Path:
        return self.root / "pgpass"

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def record(self) -> Path:
        """The processes that were started, for `down`."""
        return self.root / "stack.json"

    @property
    def environment(self) -> Path:
        """What `lockstep env` prints while the stack runs."""
        return self.root / ENVIRONMENT

    @property
    def lock(self) -> Path:
        return self.root / "lock"


def import_path() -> str:
    """PYTHONPATH under which scheduler, workers, drivers and executors all import `lockstep` and `spark_apps`."""
    return os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "plugins")])


def _port(service: str, default: int) -> int:
    name = f"LOCKSTEP_PORT_{service.upper()}"
    text = os.environ.get(name) or str(default)
    if not (text.isdecimal() and 0 < int(text) < 65_536):
        raise StackError(f"{name} is {text!r}: a port between 1 and 65535 is expected")
    return int(text)

"""A machine for the services of docker-compose.yaml: its own files, network, processes and user, by bubblewrap.

It has the folders of the image, made from this checkout and its environment as the recipe says, and the names of the
services. Its network is one loopback that nobody else is on, so what a service binds to is nobody else's matter. All
that runs in it ends with it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyspark

from stack.errors import StackError
from stack.java import java_home
from stack.s3 import SPARK_S3
from tests.compose.composition import Recipe, Service

ROOT = Path(__file__).resolve().parents[2]
USER = "50000"
HOST = "composed"
#: Two services serve a page on port 8080, each on its own machine: here the one that nobody asks goes elsewhere.
ONE_NETWORK = {"SPARK_MASTER_WEBUI_PORT": "8079"}
MISSING = "bubblewrap is not installed: `apt-get install --no-install-recommends bubblewrap`"


@dataclass
class Composed:
    """The services, which run."""

    process: subprocess.Popen[str]

    def execute(self, service: str, *command: str) -> tuple[int, str]:
        """As `docker compose exec` does: its code, and what it said."""
        answer = self._ask({"service": service, "command": command})
        return answer["code"], answer["output"]

    def healthy(self) -> dict[str, str]:
        """Each service with a health check; what that said where it failed, empty where not."""
        return self._ask({"service": ""})

    def answer(self) -> dict[str, Any]:
        """What it says next. Raises StackError: it has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise StackError("the services are gone")

    def _ask(self, question: Mapping[str, object]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.answer()


@contextmanager
def composed(services: Mapping[str, Service], recipe: Recipe, folder: Path) -> Iterator[Composed]:
    """All of them, up. Raises StackError: which one isn't, and what it said. `folder` gets volumes and logs."""
    databases = [name for name, one in services.items() if one.image.startswith("postgres:")]
    addresses = {name: f"127.0.1.{number}" for number, name in enumerate(databases, start=1)}
    described = {name: asdict(one) for name, one in services.items()}
    for name, one in services.items():
        if one.image.startswith("lockstep:"):
            described[name]["environment"] = {**ONE_NETWORK, **recipe.environment, **one.environment}
    (folder / "plan.json").write_text(json.dumps({"services": described, "addresses": addresses}))
    names = {HOST: "127.0.0.1", **dict.fromkeys(services, "127.0.0.1"), **addresses}
    (folder / "hosts").write_text(
        "".join(f"{at} {name}\n" for name, at in [("localhost", "127.0.0.1"), *names.items()])
    )
    (folder / "passwd").write_text(f"lockstep:x:{USER}:{USER}::/home/lockstep:/bin/bash\n")
    (folder / "logs").mkdir()
    inside = [sys.executable, "-m", "tests.compose.inside", str(folder / "plan.json"), str(folder / "logs")]
    process = subprocess.Popen(
        [*_sandbox(services, recipe, folder), *inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        found = Composed(process)
        up = found.answer()
        if not up["up"]:
            raise StackError(up["why"])
        yield found
    finally:
        process.kill()  # and with the first of its processes all others
        process.wait()


def _sandbox(services: Mapping[str, Service], recipe: Recipe, folder: Path) -> Sequence[str]:
    java, environment = java_home(), Path(sys.prefix)
    system = [at for at in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc") if Path(at).exists()]
    shown = [*system, str(ROOT), str(environment), sys.base_prefix, str(java)]
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--hostname", HOST, "--clearenv"]
    command += ["--uid", USER, "--gid", USER, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for place in shown:
        command += ["--ro-bind", place, place]
    command += [
        "--bind",
        str(folder),
        str(folder),
        "--dir",
        "/home/lockstep",
        "--dir",
        "/standins",
        "--chdir",
        str(ROOT),
    ]
    for name in ("hosts", "passwd"):
        command += ["--ro-bind", str(folder / name), f"/etc/{name}"]
    command += ["--ro-bind", str(_programs(folder)), "/usr/local/bin"]
    command += [
        "--tmpfs",
        "/usr/lib/jvm",
        "--ro-bind",
        str(java),
        "/usr/lib/jvm/default",
        "--ro-bind",
        str(java),
        str(java),
    ]
    command += ["--ro-bind", str(_spark(folder)), "/spark"]
    for name in recipe.copied:
        command += ["--ro-bind", str(ROOT / name), f"/lockstep/{name}"]
    for volume in sorted({one for service in services.values() for one in service.volumes if _is_ours(service)}):
        source, target, *mode = volume.split(":")
        kept = Path(source) if source.startswith("/") else folder / "volumes" / source
        kept.mkdir(parents=True, exist_ok=True)
        command += ["--ro-bind" if mode == ["ro"] else "--bind", str(kept), target]
    settings = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/lockstep", "HOSTNAME": HOST, "LANG": "C.UTF-8"}
    for variable, value in settings.items():
        command += ["--setenv", variable, value]
    return command


def _is_ours(service: Service) -> bool:
    return service.image.startswith("lockstep:")


def _programs(folder: Path) -> Path:
    """What pip puts into /usr/local/bin of the image, from the environment of this checkout."""
    place = folder / "bin"
    place.mkdir()
    for name in ("python", "airflow", "lockstep", "weed"):
        program = place / name
        program.write_text(f'#!/bin/sh\nexec {Path(sys.prefix) / "bin" / name} "$@"\n')
        program.chmod(0o755)
    return place


def _spark(folder: Path) -> Path:
    """pyspark's own folder, as the image links it, with the jars by which it reaches S3.

    In the image Amazon's SDK is one bundle that hides what it needs; here what Spark has, too, is Spark's.
    """
    place, home = folder / "spark", Path(pyspark.__file__).parent
    (place / "jars").mkdir(parents=True)
    for one in home.iterdir():
        if one.name != "jars":
            (place / one.name).symlink_to(one)
    own = list((home / "jars").iterdir())
    known = {_library(jar) for jar in own}
    for jar in [*own, *(jar for jar in SPARK_S3.paths() if _library(jar) not in known)]:
        (place / "jars" / jar.name).symlink_to(jar)
    return place


def _library(jar: Path) -> str:
    """Its name without its version; classifiers, such as a platform's, are part of it."""
    return re.sub(r"-\d+(\.[\w]+)*", "", jar.name)


def find_bubblewrap() -> str | None:
    """The program, None where it isn't installed or mayn't make a machine here."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    tried = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    return program if subprocess.run(tried, capture_output=True, check=False, env=os.environ).returncode == 0 else None

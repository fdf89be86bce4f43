"""Flink's jars by Maven, and Java programs compiled against them; both are kept from run to run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_OPEN = (
    *("java.lang", "java.lang.reflect", "java.lang.invoke", "java.util", "java.util.concurrent"),
    *("java.util.concurrent.atomic", "java.time", "java.net", "java.io", "java.nio", "java.math", "java.text"),
    "sun.nio.ch",
)


@dataclass(frozen=True)
class FlinkProgram:
    """The Java files of a folder, with the jars of some profiles of `pom.xml`. `work`: keeps jars and classes."""

    sources: Path
    work: Path
    profiles: tuple[str, ...] = ()

    def set_up(self) -> None:
        """Fetch the jars and compile, unless that was done before. Raises `SystemExit` without a JDK or Maven."""
        jars, classes = self.work / "jars", self.work / "classes"
        if not jars.exists():
            profiles = ["--activate-profiles", ",".join(self.profiles)] if self.profiles else []
            where = [f"-DoutputDirectory={jars}.new", "-Dmdep.outputScope=false"]
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            _run(["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), *profiles, *goal, *where])
            Path(f"{jars}.new").rename(jars)
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir(parents=True)
        files = [str(path) for path in sorted(self.sources.glob("*.java"))]
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *files])

    def command(self, main: str, *java: str) -> list[str]:
        """What starts the program; its words come behind. `java`: options of the machine."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN]
        logging = f"-Dlog4j2.configurationFile={HERE}/log4j2.properties"
        return ["java", *java, *opened, logging, "-cp", f"{self.work}/classes:{self.work}/jars/*", main]


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError as missing:
        raise SystemExit(f"{command[0]} is needed: a JDK and Maven") from missing

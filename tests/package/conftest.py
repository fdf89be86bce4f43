"""What is built once, and the environments that it is installed into."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.package.installed import Installed, build, install


@pytest.fixture(scope="package")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="package")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


@pytest.fixture(scope="package")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Installed]]:
    """{extras: environment}, each made when first asked for."""
    made: dict[str, Installed] = {}

    def get(extras: str = "") -> Installed:
        if extras not in made:
            made[extras] = install(wheel, extras, tmp_path_factory.mktemp("env"))
        return made[extras]

    yield get
    for one in made.values():
        shutil.rmtree(one.folder, ignore_errors=True)

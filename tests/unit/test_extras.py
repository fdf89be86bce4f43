"""Whatever the library imports is brought by the package itself, or by the extra that its folder or an error names."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lockstep import airflow
from lockstep.distribution import _EXTRAS, PackageTooOld

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "plugins" / "lockstep"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: of folders that nothing else imports before it is known that the extra is there
OF_FOLDERS = {"airflow": "airflow", "sinks/iceberg": "iceberg"}


def _imports(path: Path) -> set[str]:
    """Top-level names that a module imports when it runs, at its top or later."""
    found = _imported(ast.parse(path.read_text()).body)
    return {name for name in found if name not in sys.stdlib_module_names and name != "lockstep"}


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Imports are statements: expressions aren't looked into."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield node.module.partition(".")[0]
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.expr):
            yield from _imported(ast.iter_child_nodes(node))


@cache
def _drawn_in(requirement: str) -> frozenset[str]:
    """Distributions that a requirement comes to, itself included."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(requirement)]
    while waiting:
        one = waiting.pop()
        for extra in ("", *one.extras):
            if (key := (canonicalize_name(one.name), extra)) not in seen:
                seen.add(key)
                waiting += [
                    wanted
                    for wanted in map(Requirement, _required_by(one.name))
                    if not wanted.marker or wanted.marker.evaluate({"extra": extra})
                ]
    return frozenset(name for name, _ in seen)


def _required_by(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # for another platform or Python
        return []


def _brought_by(requirements: list[str]) -> set[str]:
    """Names that can be imported once these are installed."""
    there = set().union(*map(_drawn_in, requirements))
    return {name for name, distributions in _offered().items() if there & distributions}


@cache
def _offered() -> dict[str, set[str]]:
    """Of this environment: distributions by the name that is imported."""
    found = packages_distributions().items()
    return {name: {canonicalize_name(one) for one in distributions} for name, distributions in found}


@pytest.fixture(scope="module")
def brought() -> dict[str, set[str]]:
    """By extra, with "" for none."""
    extras = {extra: _brought_by(wanted) for extra, wanted in PROJECT["optional-dependencies"].items()}
    return extras | {"": _brought_by(PROJECT["dependencies"])}


def test_the_extra_that_an_error_names_brings_the_package(brought: dict[str, set[str]]) -> None:
    assert [package for package, extra in _EXTRAS.items() if package not in brought[extra]] == []
    # or the test below would see nothing
    assert brought[""].isdisjoint({"airflow", "pyspark", "pyiceberg", "deltalake", "obstore", "confluent_kafka"})


def test_every_import_is_brought_by_the_package_or_by_an_extra_that_is_named(brought: dict[str, set[str]]) -> None:
    amiss = [
        f"{module} imports {name}"
        for path in LIBRARY.rglob("*.py")
        for module, names in [(path.relative_to(LIBRARY).as_posix(), _imports(path))]
        for name in names
        if name not in brought[""] and name not in _EXTRAS and name not in brought[_extra_of(module)]
    ]
    assert amiss == []


def _extra_of(module: str) -> str:
    return next((extra for folder, extra in OF_FOLDERS.items() if re.match(rf"{folder}/", module)), "")


def test_an_airflow_that_is_too_old_is_refused_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in "2.11.2", "3.0.6":
        monkeypatch.setattr(airflow, "version", lambda _, found=found: found)
        with pytest.raises(PackageTooOld, match=rf"Airflow {found} is too old: 3\.1 or newer is needed"):
            airflow.require_airflow()

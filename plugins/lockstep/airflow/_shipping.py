"""The code that a Spark driver and its executors import, as one zip for --py-files."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from lockstep.errors import InvalidPipeline

_SHIPPED = frozenset({".py", ".sql"})


def ship(packages: Iterable[str], folder: Path) -> Path:
    """Zip top-level `packages` into `folder`. Raises `InvalidPipeline` for one that can't be found."""
    archive = folder / "lockstep-code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for package in dict.fromkeys(packages):
            for file, name in _files(package):
                target.write(file, name)
    return archive


def file_of(module: str) -> Path:
    """The file that a module is loaded from. Raises `InvalidPipeline`."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InvalidPipeline(f"module {module} can't be found: put its package's parent folder on PYTHONPATH")
    return Path(spec.origin)


def _files(package: str) -> Iterator[tuple[Path, str]]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise InvalidPipeline(f"package {package} can't be found: put its parent folder on PYTHONPATH")
    if spec.submodule_search_locations is None:
        path = file_of(package)
        yield path, path.name
        return
    named: set[str] = set()  # of a package in several folders: what is imported is the first folder's
    for location in map(Path, spec.submodule_search_locations):
        for file in sorted(location.rglob("*")):
            name = f"{package}/{file.relative_to(location).as_posix()}"
            if file.suffix in _SHIPPED and file.is_file() and name not in named:
                named.add(name)
                yield file, name

"""The zip that Spark's driver and executors import from."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lockstep.orchestration._shipping import ship


def test_of_a_package_in_several_folders_the_module_that_python_imports_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, modules in (("first", ["ours"]), ("second", ["ours", "more"])):
        package = tmp_path / folder / "in_several_folders"
        package.mkdir(parents=True)
        for module in modules:
            (package / f"{module}.py").write_text(f"FROM = {folder!r}\n")
    for folder in ("second", "first"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    with zipfile.ZipFile(ship(["in_several_folders"], tmp_path)) as shipped:
        assert sorted(shipped.namelist()) == ["in_several_folders/more.py", "in_several_folders/ours.py"]
        assert shipped.read("in_several_folders/ours.py") == b"FROM = 'first'\n"

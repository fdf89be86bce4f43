"""How the Connect server is started; that it works is what every test with Spark shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from stack.spark import class_archive


def test_an_archive_of_classes_is_made_once_and_then_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CLASS_ARCHIVE", raising=False)
    assert class_archive() == ""
    archive = tmp_path / "spark.jsa"
    monkeypatch.setenv("SPARK_CLASS_ARCHIVE", str(archive))
    assert class_archive() == f' -XX:ArchiveClassesAtExit="{archive}"'
    archive.touch()
    assert class_archive() == f' -XX:SharedArchiveFile="{archive}"'

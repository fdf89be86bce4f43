"""One line says which Java was found and what is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from stack.errors import JavaMissing
from stack.java import find_java


def fake_java(folder: Path, version: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def test_an_old_java_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for version, found in (("1.8.0_412", 8), ("11.0.2", 11)):
        fake_java(tmp_path, version)
        with pytest.raises(
            JavaMissing, match=rf"17 or newer is needed, as Spark 4 is .*, found {found} at .*JAVA_HOME"
        ):
            find_java()


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == tmp_path / "bin" / "java"


def test_no_java_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="found none"):
        find_java()

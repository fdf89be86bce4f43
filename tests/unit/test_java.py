"""What is told of the Java that Spark would start."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.spark._java import java_found, what_never_passes

NEEDED = "Java 17 or newer is needed, as Spark 4 is compiled for it"
PICKED_UP = "Picked up JAVA_TOOL_OPTIONS: -Djavax.net.ssl.keyStorePassword=hunter2"


def test_what_java_picks_up_from_the_environment_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ['openjdk version "17.0.15" 2025-04-15', ""]
    for told in cases:
        with subtests.test(told=told):
            program = java_at(tmp_path, f"echo '{PICKED_UP}' >&2\necho '{told}' >&2", monkeypatch)
            assert java_found() == f"found {program}: {told or 'it says nothing of its version'}"


def java_at(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return program


def test_a_java_that_is_too_old_never_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["1.8.0_412", "11.0.2"]
    for version in cases:
        with subtests.test(version=version):
            program = java_at(tmp_path, f"echo 'openjdk version \"{version}\"' >&2", monkeypatch)
            assert what_never_passes() == f'{NEEDED}, found {program}: openjdk version "{version}"'


def test_no_java_never_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert what_never_passes() == f"{NEEDED}, {tmp_path}/bin/java can't be run: FileNotFoundError"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "found none" in str(what_never_passes())


def test_a_cause_that_nobody_knows_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ['openjdk version "17.0.15"', 'openjdk version "25"', ""]
    for told in cases:
        with subtests.test(told=told):
            java_at(tmp_path, f"echo '{told}' >&2; [ \"$1\" = -version ]", monkeypatch)
            assert what_never_passes() is None


def test_a_process_that_cannot_be_started_now_may_be_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_at(tmp_path, "exit 1", monkeypatch)

    def no_memory(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "run", no_memory)
    assert what_never_passes() is None

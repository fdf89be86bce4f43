"""What is told of the Java that Spark would start."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.spark._java import java_found

PICKED_UP = "Picked up JAVA_TOOL_OPTIONS: -Djavax.net.ssl.keyStorePassword=hunter2"


@pytest.mark.parametrize("told", ['openjdk version "17.0.15" 2025-04-15', ""])
def test_what_java_picks_up_from_the_environment_is_not_told(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{PICKED_UP}' >&2\necho '{told}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_found() == f"found {program}: {told or 'it says nothing of its version'}"

"""docs/tutorial.md, done as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def _write(folder: Path, source: str) -> None:
    """A Python block, into the file that its first line names."""
    named = re.match(r"# ([\w/]+\.py)", source)
    assert named, source
    path = folder / named[1]
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(
    tmp_path: Path, ledger_dsn: str, warehouse_dsn: str, spark_connect: str
) -> None:
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "LOCKSTEP_"))}
    environment = inherited | {
        "LOCKSTEP_HOME": str(tmp_path / "home"),
        "LOCKSTEP_LEDGER": ledger_dsn,
        "LOCKSTEP_WAREHOUSE": warehouse_dsn,
        "LOCKSTEP_STAGING": str(tmp_path / "staging"),
        "LOCKSTEP_SPARK": spark_connect,
    }
    said, answers = "", 0
    for language, text in BLOCK.findall(TUTORIAL.read_text()):
        if language == "python":
            _write(tmp_path, text)
        elif language == "text":
            answers += 1
            assert said == text
        elif not text.startswith("make "):  # tests/e2e and tests/cli/test_env.py do these
            done = subprocess.run(
                ["bash", "-euc", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            said = done.stdout
            assert done.returncode == 0, f"{text}\n{said}\n{done.stderr}"
    assert answers == 4

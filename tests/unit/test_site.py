"""The documentation's site, as `make docs` builds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.tier("all")
def test_the_site_builds_and_no_link_in_it_leads_nowhere(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "plugins").symlink_to(ROOT / "plugins")
    command = [str(BIN / "zensical"), "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    reference = (tmp_path / "build" / "site" / "reference" / "python" / "index.html").read_text()
    assert 'id="lockstep.sinks.PostgresSink"' in reference and "Tables of one PostgreSQL database" in reference


def test_the_reference_of_the_command_line_says_what_help_says(tmp_path: Path) -> None:
    program = [str(BIN / "typer"), "lockstep.cli", "utils", "docs", "--name", "lockstep", "--title", "Command line"]
    subprocess.run([*program, "--output", str(tmp_path / "cli.md")], capture_output=True, check=True)
    told = ROOT / "docs" / "reference" / "cli.md"
    assert told.read_text() == (tmp_path / "cli.md").read_text(), "`make docs` writes it anew"

"""The documentation's site, as `make docs` builds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A copy of what it is built from."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "plugins").symlink_to(ROOT / "plugins")
    return tmp_path


def _build(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "zensical", "build", "--clean", "--strict"], cwd=site, capture_output=True, text=True, check=False
    )


def test_the_site_builds_and_no_link_in_it_leads_nowhere(site: Path) -> None:
    built = _build(site)
    assert built.returncode == 0, built.stdout + built.stderr
    reference = (site / "build" / "site" / "reference" / "python" / "index.html").read_text()
    assert 'id="lockstep.sinks.PostgresSink"' in reference and "Tables of one PostgreSQL database" in reference


def test_a_link_to_a_heading_that_is_not_there_fails_the_build(site: Path) -> None:
    with (site / "docs" / "wal.md").open("a") as page:
        page.write("\n[nowhere](protocol.md#no-such-heading)\n")
    built = _build(site)
    assert built.returncode != 0 and "anchor does not exist" in built.stdout + built.stderr


def test_the_reference_of_the_command_line_says_what_help_says(tmp_path: Path) -> None:
    program = [str(BIN / "typer"), "lockstep.cli", "utils", "docs", "--name", "lockstep", "--title", "Command line"]
    subprocess.run([*program, "--output", str(tmp_path / "cli.md")], capture_output=True, check=True)
    told = ROOT / "docs" / "reference" / "cli.md"
    assert told.read_text() == (tmp_path / "cli.md").read_text(), "`make docs` writes it anew"

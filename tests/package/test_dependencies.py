"""All that the package and its extras draw in: its licences, and what is known of its vulnerabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.package.installed import EXTRAS, ROOT, Installed, run_tool, versions_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # an environment with everything is made


@pytest.fixture(scope="module")
def everything(installed: Callable[[str], Installed]) -> Installed:
    return installed(",".join(EXTRAS))


def _licences(environment: Installed, *arguments: str) -> tuple[int, str]:
    """pip-licenses by `[tool.pip-licenses]` of pyproject.toml: exit code, and what it says."""
    python = str(environment.folder / "bin" / "python")
    done = run_tool("pip-licenses>=5.5", "pip-licenses", "--python", python, *arguments)
    return done.returncode, done.stdout + done.stderr


def test_every_dependency_has_a_licence_that_is_allowed(everything: Installed) -> None:
    code, said = _licences(everything)
    assert code == 0, f"allow it in pyproject.toml and docs/dependencies.md, or do without it: {said}"
    print(said)


def test_a_licence_that_is_not_allowed_is_told_by_package(everything: Installed) -> None:
    code, said = _licences(everything, "--allow-only", "Apache-2.0")
    assert code != 0 and "not in allow-only licenses was found for package" in said


def test_the_docs_say_which_licences_are_allowed() -> None:
    policy = re.search(r'^allow-only = """\n(.*?)"""', (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert policy
    allowed = [line.rstrip("\\ ").rstrip(";") for line in policy[1].splitlines()]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert [licence for licence in allowed if f"`{licence}`" not in page] == []


def _audit(versions: dict[str, str], folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Vulnerabilities by package, and the packages of which nothing could be learnt."""
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    audit: list[str | Path] = [
        "--requirement",
        wanted,
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    done = run_tool("pip-audit>=2.10", "pip-audit", *audit)
    return _read(done.stdout) if done.stdout.startswith("{") else ({}, sorted(versions))


def _read(report: str) -> tuple[dict[str, list[str]], list[str]]:
    found = json.loads(report)["dependencies"]
    vulnerable = {one["name"]: [bug["id"] for bug in one["vulns"]] for one in found if one.get("vulns")}
    return vulnerable, [one["name"] for one in found if "skip_reason" in one]


def test_a_package_that_was_not_looked_up_is_not_taken_for_a_sound_one() -> None:
    sound = {"name": "sound", "version": "1", "vulns": []}
    bad = {"name": "bad", "version": "1", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["2"]}]}
    skipped = {"name": "skipped", "skip_reason": "not found"}
    assert _read(json.dumps({"dependencies": [sound, bad, skipped]})) == ({"bad": ["PYSEC-2026-1"]}, ["skipped"])


def test_no_dependency_has_a_known_vulnerability(everything: Installed, tmp_path: Path) -> None:
    """pip-audit ends with 0 where it could look nothing up; that is no pass here, but a skip that says so."""
    versions = versions_of(everything)
    _, unknown = _audit({"packaging": versions["packaging"]}, tmp_path)  # one, before the index is asked for all
    if unknown:
        pytest.skip(
            "NOT CHECKED for vulnerabilities: pip-audit learns nothing from the package index that is configured"
        )
    vulnerable, unknown = _audit(versions, tmp_path)
    assert vulnerable == {}
    if unknown:
        pytest.skip(f"no vulnerability is known, but NOT CHECKED: {', '.join(unknown)}")

"""The matrix of versions, and the page that its runs write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import matrix
from tests.matrix import COMBINATIONS, ROOT, Combination, Row, read, render

MADE = Row("locked", "3.3.2", "4.2.0", "3.11.2", "18.6", "9", "0", "1", "2026-11-23")
OTHER = replace(MADE, name="airflow-3.1", airflow="3.1.8")


def test_the_page_is_one_that_runs_have_written_in_which_nothing_failed() -> None:
    page = matrix.PAGE.read_text()
    rows = read(page)
    assert render(rows) in page and len({row.name for row in rows}) == len(rows)
    for row in rows:
        asked = COMBINATIONS[row.name]
        assert row.python.startswith(f"{asked.python}.") and row.airflow.startswith(asked.airflow), row
        assert int(row.passed) > 100 and row.failed == "0", row


def test_a_run_replaces_its_row_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "versions.md"
    page.write_text(f"# Versions\n\nBefore.\n\n{render([MADE])}\nAfter.\n")
    monkeypatch.setattr(matrix, "PAGE", page)
    matrix.write(OTHER)
    matrix.write(replace(MADE, failed="2"))
    assert page.read_text() == f"# Versions\n\nBefore.\n\n{render([replace(MADE, failed='2'), OTHER])}\nAfter.\n"


def test_a_combination_changes_the_requirement_of_its_line_alone() -> None:
    locked = (ROOT / "requirements.in").read_text()
    assert Combination().requirements(locked) == locked
    changed = Combination(airflow="3.1", beside=("fastapi<1",)).requirements(locked).splitlines()
    assert set(changed) - set(locked.splitlines()) == {"apache-airflow==3.1.*", "fastapi<1"}
    assert len(changed) == len(locked.splitlines()) + 1

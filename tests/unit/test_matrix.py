"""The matrix of versions, and the page that its runs write."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.orchestration import OLDEST as OLDEST_AIRFLOW
from lockstep.postgres.connection import OLDEST
from lockstep.spark import versions
from lockstep.spark.versions import line_of
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
        spark, _, server = row.spark.partition(", server ")
        assert spark.startswith(asked.spark) and server.startswith(asked.server), row
        assert row.postgresql.startswith(asked.postgresql) and int(row.passed) > 100 and row.failed == "0", row


def test_what_is_taken_is_what_the_page_has_rows_of() -> None:
    rows = read(matrix.PAGE.read_text())
    lines = {line_of(number) for row in rows for number in row.spark.split(", server ")}
    assert (min(lines), max(lines)) == (versions.OLDEST, versions.NEWEST)
    assert min(int(row.postgresql.partition(".")[0]) for row in rows) >= OLDEST
    airflows = sorted({row.airflow.rpartition(".")[0] for row in rows})
    assert airflows[0] == OLDEST_AIRFLOW
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = {one.rpartition(" :: ")[2] for one in project["classifiers"] if "Python :: 3." in one}
    assert {row.python.rpartition(".")[0] for row in rows} == lowest
    assert project["requires-python"] == f">={min(lowest)}"


def test_a_run_replaces_its_row_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "versions.md"
    after = "After.\n\n| another | table |\n|---|---|\n| its | row |\n"
    page.write_text(f"# Versions\n\nBefore.\n\n{render([MADE])}\n{after}")
    monkeypatch.setattr(matrix, "PAGE", page)
    matrix.write(OTHER)
    matrix.write(replace(MADE, failed="2"))
    assert page.read_text() == f"# Versions\n\nBefore.\n\n{render([replace(MADE, failed='2'), OTHER])}\n{after}"


def test_a_combination_changes_the_requirement_of_its_line_alone() -> None:
    locked = (ROOT / "requirements.in").read_text()
    assert Combination().requirements(locked) == locked
    changed = Combination(airflow="3.1", beside=("fastapi<1",)).requirements(locked).splitlines()
    assert set(changed) - set(locked.splitlines()) == {"apache-airflow==3.1.*", "fastapi<1"}
    assert len(changed) == len(locked.splitlines()) + 1
    moved = Combination(spark="4.1").requirements(locked).splitlines()
    assert set(moved) - set(locked.splitlines()) == {"pyspark==4.1.*", "pyspark-client<4.2"}
    assert len(moved) == len(locked.splitlines())


def test_what_a_combination_moves_is_not_held_by_the_lock() -> None:
    locked = (ROOT / "requirements.txt").read_text()
    assert (
        Combination().constraints(locked) == Combination(python="3.12", postgresql="14").constraints(locked) == locked
    )
    assert Combination(airflow="3.1").constraints(locked) == ""
    left = Combination(spark="4.0", beside=("protobuf<7",)).constraints(locked)
    gone = set(locked.splitlines()) - set(left.splitlines())
    assert {line.partition("==")[0] for line in gone} == {"pyspark", "pyspark-client", "protobuf"}


def test_each_combination_runs_the_tests_of_what_it_varies() -> None:
    for name, combination in COMBINATIONS.items():
        asked = " ".join(argument for tests in combination.tests for argument in tests)
        assert ("tests/spark" in asked) == (name in ("locked", "oldest") or name.startswith(("s", "c", "python"))), name
        assert ("tests/ledger" in asked) == (name in ("locked", "oldest") or name.startswith("postgresql")), name
        assert (
            ("tests/dags" in asked)
            == ("tests/e2e" in asked)
            == (name in ("locked", "oldest") or name.startswith(("a", "python")))
        ), name

"""The matrix of versions, and the page that its runs write."""

from __future__ import annotations

import tomllib

from lockstep.orchestration import OLDEST as OLDEST_AIRFLOW
from lockstep.postgres.connection import OLDEST
from lockstep.spark import versions
from lockstep.spark.versions import line_of
from tests import matrix
from tests.matrix import COMBINATIONS, ROOT, read, render


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

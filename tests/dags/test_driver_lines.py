"""What a spark-submit driver prints goes to DEBUG; what it said last before it died without a word does not."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from lockstep.errors import StageFailed
from stack.java import java_home
from tests.dags.pipelines import ORDERS


def test_a_driver_that_dies_without_a_word_leaves_its_last_lines_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lockstep.orchestration._launching import SubmitLauncher, launcher

    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    missing = tmp_path / "missing.py"
    made = launcher(ORDERS, "spark", {"application": str(missing)})
    assert isinstance(made, SubmitLauncher)
    with caplog.at_level(logging.INFO, "lockstep"), pytest.raises(StageFailed) as failed:
        made((tmp_path / "1" / "_request.json").as_uri())
    assert "\n" not in str(failed.value)
    [told] = [record for record in caplog.records if record.name == "lockstep.orchestration._launching"]
    assert told.levelname == "ERROR" and str(missing) in told.getMessage()
    assert "No such file" in told.getMessage() or "does not exist" in told.getMessage()

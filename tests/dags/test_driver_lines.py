"""What a spark-submit driver prints goes to DEBUG; what it said last before it died without a word does not."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lockstep.errors import StageFailed
from lockstep.wal.request import StageRequest
from stack.java import java_home
from tests.dags.pipelines import ORDERS


@pytest.fixture(scope="module", autouse=True)
def airflow() -> None:
    """Imported beforehand: it sets logging up anew."""
    import lockstep.orchestration._launching  # noqa: F401


def test_a_driver_that_dies_without_a_word_leaves_its_last_lines_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lockstep.orchestration._launching import SubmitLauncher, launcher

    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    missing = tmp_path / "missing.py"
    made = launcher(ORDERS, "spark", {"application": str(missing)})
    assert isinstance(made, SubmitLauncher)
    asked = tmp_path / "1" / "_request.json"
    asked.parent.mkdir()
    asked.write_text(json.dumps(StageRequest("", 1, 1, asked.parent.as_uri(), (), {}, datetime.now(UTC)).to_json()))
    with caplog.at_level(logging.INFO, "lockstep"), pytest.raises(StageFailed) as failed:
        made(asked.as_uri())
    assert "\n" not in str(failed.value)
    [told] = [record for record in caplog.records if record.name == "lockstep.orchestration._launching"]
    assert told.levelname == "ERROR" and str(missing) in told.getMessage()
    assert "No such file" in told.getMessage() or "does not exist" in told.getMessage()

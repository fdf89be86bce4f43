"""What a spark-submit driver prints goes to DEBUG; what it said last before it died without a word does not."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from lockstep.errors import StageFailed
from lockstep.wal.request import StageRequest
from stack.java import java_home
from tests.dags.pipelines import ORDERS


@pytest.fixture(scope="module", autouse=True)
def airflow() -> None:
    """Imported beforehand: it sets logging up anew."""
    import lockstep.orchestration._launching  # noqa: F401


@pytest.mark.tier("all")
def test_a_driver_that_dies_without_a_word_leaves_its_last_lines_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    missing = tmp_path / "missing.py"
    said = lines_of_a_driver(str(missing), tmp_path, monkeypatch, caplog)
    assert str(missing) in said and ("No such file" in said or "does not exist" in said)


def test_the_last_lines_of_a_driver_that_dies_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit

    printed = [*(f"line {number}\n" for number in range(999)), "Error: it does not exist\n"]
    dead = SimpleNamespace(stdout=printed, wait=lambda: 1, poll=lambda: 1)
    stub = SimpleNamespace(Popen=lambda *_, **__: dead, PIPE=-1, STDOUT=-2)
    monkeypatch.setattr(spark_submit, "subprocess", stub)
    said = lines_of_a_driver("any.py", tmp_path, monkeypatch, caplog)
    assert "line 998\nError: it does not exist" in said and "line 1\n" not in said


def lines_of_a_driver(
    application: str, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> str:
    """What is logged as an error of one that fails."""
    from lockstep.orchestration._launching import SubmitLauncher, launcher

    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    made = launcher(ORDERS, "spark", {"application": application})
    assert isinstance(made, SubmitLauncher)
    asked = folder / "1" / "_request.json"
    asked.parent.mkdir()
    asked.write_text(json.dumps(StageRequest("", 1, 1, asked.parent.as_uri(), (), {}, datetime.now(UTC)).to_json()))
    with caplog.at_level(logging.INFO, "lockstep"), pytest.raises(StageFailed) as failed:
        made(asked.as_uri())
    assert "\n" not in str(failed.value)
    [told] = [record for record in caplog.records if record.name == "lockstep.orchestration._launching"]
    assert told.levelname == "ERROR"
    return told.getMessage()

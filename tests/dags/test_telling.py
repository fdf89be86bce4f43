"""What a task's log holds when it fails: one sentence, last; the rest only for who asks for DEBUG."""

from __future__ import annotations

import io
import json
import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.errors import InvalidPipeline, StageFailed
from lockstep.wal.request import StageRequest
from stack.java import java_home
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.sdk import Context

SENTENCE = "pipeline orders: no column custmer"
FOREIGN = "java.lang.Exception\n\tat org.apache.spark.Foreign"


@pytest.fixture(scope="module", autouse=True)
def airflow() -> None:
    """Imported beforehand: it sets logging up anew."""
    import lockstep.orchestration._launching  # noqa: F401


def test_of_an_error_with_a_foreign_cause_the_sentence_is_left_and_the_cause_goes_to_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from lockstep.orchestration._telling import TellingOperator

    class Failing(TellingOperator):
        def perform(self, context: Context) -> Any:
            try:
                raise RuntimeError(FOREIGN)
            except RuntimeError as foreign:
                raise InvalidPipeline(SENTENCE) from foreign

    detail = logging.StreamHandler(io.StringIO())
    logging.getLogger("lockstep").addHandler(detail)
    with caplog.at_level(logging.DEBUG, "lockstep"), pytest.raises(InvalidPipeline) as raised:
        Failing(task_id="failing").execute(cast("Context", {}))
    logging.getLogger("lockstep").removeHandler(detail)
    shown = "".join(traceback.format_exception(raised.value))
    assert shown.endswith(f"{SENTENCE}\n")
    assert "Foreign" not in shown and "in perform" not in shown and "The above exception" not in shown
    assert {record.levelname for record in caplog.records if record.name.startswith("lockstep")} == {"DEBUG"}
    assert FOREIGN in detail.stream.getvalue() and "in perform" in detail.stream.getvalue()


def test_a_driver_s_lines_go_to_debug_and_the_hook_s_own_stay(caplog: pytest.LogCaptureFixture) -> None:
    from lockstep.orchestration._telling import DriverLog

    log = DriverLog(logging.getLogger("hook"))
    with caplog.at_level(logging.DEBUG):
        log.info("26/11/22 08:08:25 INFO SparkContext: Running Spark at 100 %d")
        log.info("Identified spark application id: %s", "application_1")
        log.warning("YARN doesn't answer")
    assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO", "WARNING"]


def test_the_last_lines_of_a_driver_that_dies_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit

    from lockstep.orchestration._launching import launcher

    printed = [*(f"line {number}\n" for number in range(999)), "Error: it does not exist\n"]
    dead = SimpleNamespace(stdout=printed, wait=lambda: 1, poll=lambda: 1)
    stub = SimpleNamespace(Popen=lambda *_, **__: dead, PIPE=-1, STDOUT=-2)
    monkeypatch.setattr(spark_submit, "subprocess", stub)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    request = StageRequest("", 1, 1, tmp_path.as_uri(), (), {}, datetime.now(UTC))
    (tmp_path / "_request.json").write_text(json.dumps(request.to_json()))
    made: Any = launcher(ORDERS, "spark", {"application": "any.py"})
    with caplog.at_level(logging.INFO, "lockstep"), pytest.raises(StageFailed) as failed:
        made((tmp_path / "_request.json").as_uri())
    assert "\n" not in str(failed.value)
    [told] = [record for record in caplog.records if record.name == "lockstep.orchestration._launching"]
    said = told.getMessage()
    assert told.levelname == "ERROR"
    assert "line 998\nError: it does not exist" in said and "line 1\n" not in said

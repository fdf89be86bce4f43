"""What a task's log holds when it fails: one sentence, last; the rest only for who asks for DEBUG."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.errors import InvalidPipeline, LockstepError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lockstep.orchestration._telling import TellingOperator

SENTENCE = "pipeline orders: no column custmer"
FOREIGN = "java.lang.Exception\n\tat org.apache.spark.Foreign"


def failing(work: Callable[[], Any]) -> TellingOperator:
    from lockstep.orchestration._telling import TellingOperator

    class Failing(TellingOperator):
        def perform(self, context: Context) -> Any:
            return work()

    return Failing(task_id="failing")


def deep() -> None:
    try:
        raise RuntimeError(FOREIGN)
    except RuntimeError as foreign:
        raise InvalidPipeline(SENTENCE) from foreign


def test_of_an_error_with_a_foreign_cause_the_sentence_is_left_and_the_cause_goes_to_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    detail = logging.StreamHandler(io.StringIO())
    logging.getLogger("lockstep").addHandler(detail)
    with caplog.at_level(logging.DEBUG, "lockstep"), pytest.raises(InvalidPipeline) as raised:
        failing(deep).execute(cast("Context", {}))
    logging.getLogger("lockstep").removeHandler(detail)
    shown = "".join(traceback.format_exception(raised.value))
    assert shown.endswith(f"{SENTENCE}\n")
    assert "Foreign" not in shown and "in deep" not in shown and "The above exception" not in shown
    assert {record.levelname for record in caplog.records if record.name.startswith("lockstep")} == {"DEBUG"}
    assert FOREIGN in detail.stream.getvalue() and "in deep" in detail.stream.getvalue()


def test_an_error_that_is_not_lockstep_s_keeps_its_trace() -> None:
    def mistake() -> None:
        raise KeyError("order")

    with pytest.raises(KeyError) as raised:
        failing(mistake).execute(cast("Context", {}))
    assert "in mistake" in "".join(traceback.format_exception(raised.value))


def test_an_error_keeps_its_class_so_that_the_retry_policy_knows_it() -> None:
    def fail() -> None:
        raise LockstepError("x")

    with pytest.raises(LockstepError) as raised:
        failing(fail).execute(cast("Context", {}))
    assert type(raised.value) is LockstepError


def test_a_driver_s_lines_go_to_debug_and_the_hook_s_own_stay(caplog: pytest.LogCaptureFixture) -> None:
    from lockstep.orchestration._telling import DriverLog

    log = DriverLog(logging.getLogger("hook"))
    with caplog.at_level(logging.DEBUG):
        log.info("26/11/22 08:08:25 INFO SparkContext: Running Spark at 100 %d")
        log.info("Identified spark application id: %s", "application_1")
        log.warning("YARN doesn't answer")
    assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO", "WARNING"]

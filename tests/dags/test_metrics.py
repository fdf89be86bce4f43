"""What tasks send by Airflow's own client: real packets of its StatsD client, of operators that
really ran; and what they log when they fail."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.errors import InvalidPipeline, NotPrepared, PublishBusy, SinkUnavailable, StageFailed
from lockstep.ledger.measures import GAUGES
from lockstep.ledger.report import Report
from lockstep.wal.request import StageRequest
from stack.java import java_home
from tests.dags.airflow_parts import statsd_client
from tests.dags.observed import DAY, RUN, Observed
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.sdk import Context

Received = Callable[[], list[str]]


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Where Airflow is configured to send to."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        listener.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(listener.getsockname()[1]))
        yield listener


@pytest.fixture
def received(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Received:
    """What was sent since the last call: on the loopback a packet is there once it is sent."""
    from lockstep.airflow import _telemetry

    monkeypatch.setattr(_telemetry, "Stats", statsd_client())
    listening.setblocking(False)

    def receive() -> list[str]:
        found = []
        while True:
            try:
                found.append(listening.recv(2000).decode().removeprefix("airflow."))
            except BlockingIOError:
                return found

    return receive


def named(found: list[str]) -> set[str]:
    return {one.partition(":")[0] for one in found}


def test_each_phase_sends_how_long_it_took_by_pipeline_and_sink(observed: Observed, received: Received) -> None:
    observed.decide()
    for _ in range(2):
        observed.run("Publish", sink="warehouse")
    found = received()
    assert named(found) == {
        "lockstep.phase.duration.numbers.begin",
        "lockstep.phase.duration.numbers.prepare.warehouse",
        "lockstep.phase.duration.numbers.prepare.files",
        "lockstep.phase.duration.numbers.commit",
        "lockstep.phase.duration.numbers.publish.warehouse",
        "lockstep.rows.numbers.warehouse.numbers",
    }
    assert all(re.fullmatch(r"[\d.]+\|ms", one.split(":")[1]) for one in found if "duration" in one)
    rows = [one for one in found if "rows" in one]
    assert rows == ["lockstep.rows.numbers.warehouse.numbers:20|c"], "once, however often publish runs"


def test_where_there_are_tags_the_name_stays_the_same_for_all(
    observed: Observed, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow import _telemetry

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    monkeypatch.setattr(_telemetry, "Stats", statsd_client())
    observed.run("Begin")
    assert named(received()) == {"lockstep.phase.duration,pipeline=numbers,phase=begin"}


def test_a_failure_is_counted_by_its_kind_and_raised_as_it_is(observed: Observed, received: Received) -> None:
    from lockstep.airflow._telemetry import timed

    observed.run("Begin")
    received()
    with pytest.raises(NotPrepared):
        observed.run("Prepare", sink="warehouse")
    assert received() == ["lockstep.phase.failures.numbers.prepare.warehouse.NotPrepared:1|c"]
    with pytest.raises(PublishBusy), timed("numbers", "publish", "files", (PublishBusy,)):
        raise PublishBusy("somebody is at it")
    assert received() == [], "what only waits is no failure"


def test_the_gauges_are_those_that_the_exporter_has(observed: Observed, received: Received) -> None:
    from lockstep.airflow._telemetry import send_gauges

    observed.world.run(RUN, DAY)
    with closing(Report(observed.world.ledger_dsn)) as report:
        send_gauges(report)
    found = received()
    names = {".".join(one.split(":")[0].split(".")[:2]) for one in found}
    assert names == {gauge.name.replace("_", ".", 1) for gauge in GAUGES}
    assert "lockstep.epochs.numbers.cleaned:1|g" in found
    assert "lockstep.sink_prepared_epochs.numbers.warehouse:0|g" in found


def test_a_client_that_fails_fails_no_task(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow import _telemetry

    class Broken:
        def __getattr__(self, name: str) -> Any:
            def fail(*arguments: Any, **tags: Any) -> None:
                raise OSError("no route")

            return fail

    monkeypatch.setattr(_telemetry, "Stats", Broken())
    with _telemetry.timed("numbers", "begin", None, ()):
        pass
    with pytest.raises(SinkUnavailable), _telemetry.timed("numbers", "begin", None, ()):
        raise SinkUnavailable("away")


def test_nothing_is_sent_or_measured_where_nobody_listens(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow import _telemetry

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
    with _telemetry.timed("numbers", "begin", None, ()):
        pass
    _telemetry.send_gauges(Report("host=127.0.0.1 port=1 dbname=nowhere"))
    assert received() == []


# --- what a task's log holds when it fails: one sentence, last; the rest only for who asks for DEBUG ---

SENTENCE = "pipeline orders: no column custmer"
FOREIGN = "java.lang.Exception\n\tat org.apache.spark.Foreign"


@pytest.fixture(scope="module", autouse=True)
def airflow() -> None:
    """Imported beforehand: it sets logging up anew."""
    import lockstep.airflow._launching  # noqa: F401


def test_of_an_error_with_a_foreign_cause_the_sentence_is_left_and_the_cause_goes_to_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from lockstep.airflow._base_operator import LockstepOperator

    class Failing(LockstepOperator):
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


@pytest.mark.fault("R10")
def test_an_execution_timeout_is_one_sentence_too() -> None:
    from lockstep.airflow._airflow import AirflowTaskTimeout
    from lockstep.airflow._base_operator import LockstepOperator

    class Slow(LockstepOperator):
        def perform(self, context: Context) -> Any:
            try:
                raise RuntimeError(FOREIGN)
            except RuntimeError as foreign:
                raise AirflowTaskTimeout("Timeout, PID: 7") from foreign

    with pytest.raises(AirflowTaskTimeout) as raised:
        Slow(task_id="slow", execution_timeout=timedelta(minutes=7)).execute(cast("Context", {}))
    shown = "".join(traceback.format_exception(raised.value))
    assert "execution_timeout, 0:07:00: its next try goes on" in shown.splitlines()[-1]
    assert "Foreign" not in shown and "in perform" not in shown and "The above exception" not in shown


def test_a_driver_s_lines_go_to_debug_and_the_hook_s_own_stay(caplog: pytest.LogCaptureFixture) -> None:
    from lockstep.airflow._launching import DriverLog

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

    from lockstep.airflow._launching import launcher

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
    [told] = [record for record in caplog.records if record.name == "lockstep.airflow._launching"]
    said = told.getMessage()
    assert told.levelname == "ERROR"
    assert "line 998\nError: it does not exist" in said and "line 1\n" not in said

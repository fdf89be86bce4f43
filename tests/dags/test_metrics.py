"""What tasks send by Airflow's own client: real packets of its StatsD client, of operators that really ran."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from lockstep.errors import NotPrepared, PublishBusy, SinkUnavailable
from lockstep.ledger.measures import GAUGES
from lockstep.ledger.report import Report
from tests.dags.airflow_parts import statsd_client
from tests.dags.observed import DAY, RUN, Observed

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
    from lockstep.orchestration import _metrics

    monkeypatch.setattr(_metrics, "Stats", statsd_client())
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
    from lockstep.orchestration import _metrics

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    monkeypatch.setattr(_metrics, "Stats", statsd_client())
    observed.run("Begin")
    assert named(received()) == {"lockstep.phase.duration,pipeline=numbers,phase=begin"}


def test_a_failure_is_counted_by_its_kind_and_raised_as_it_is(observed: Observed, received: Received) -> None:
    from lockstep.orchestration._metrics import timed

    observed.run("Begin")
    received()
    with pytest.raises(NotPrepared):
        observed.run("Prepare", sink="warehouse")
    assert received() == ["lockstep.phase.failures.numbers.prepare.warehouse.NotPrepared:1|c"]
    with pytest.raises(PublishBusy), timed("numbers", "publish", "files", (PublishBusy,)):
        raise PublishBusy("somebody is at it")
    assert received() == [], "what only waits is no failure"


def test_the_gauges_are_those_that_the_exporter_has(observed: Observed, received: Received) -> None:
    from lockstep.orchestration._metrics import send_gauges

    observed.world.run(RUN, DAY)
    with closing(Report(observed.world.ledger_dsn)) as report:
        send_gauges(report)
    found = received()
    names = {".".join(one.split(":")[0].split(".")[:2]) for one in found}
    assert names == {gauge.name.replace("_", ".", 1) for gauge in GAUGES}
    assert "lockstep.epochs.numbers.cleaned:1|g" in found
    assert "lockstep.sink_prepared_epochs.numbers.warehouse:0|g" in found


def test_a_client_that_fails_fails_no_task(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.orchestration import _metrics

    class Broken:
        def __getattr__(self, name: str) -> Any:
            def fail(*arguments: Any, **tags: Any) -> None:
                raise OSError("no route")

            return fail

    monkeypatch.setattr(_metrics, "Stats", Broken())
    with _metrics.timed("numbers", "begin", None, ()):
        pass
    with pytest.raises(SinkUnavailable), _metrics.timed("numbers", "begin", None, ()):
        raise SinkUnavailable("away")


def test_nothing_is_sent_or_measured_where_nobody_listens(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.orchestration import _metrics

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
    with _metrics.timed("numbers", "begin", None, ()):
        pass
    _metrics.send_gauges(Report("host=127.0.0.1 port=1 dbname=nowhere"))
    assert received() == []

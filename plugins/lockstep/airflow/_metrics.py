"""What tasks send by Airflow's own client, to StatsD, Datadog or OpenTelemetry, as its section [metrics] says.

Nothing rests on it: what can't be sent is a line in the log at DEBUG. A client without tags gets their values as parts
of the name, in the order of the tags, as Airflow's own old names have them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from airflow.configuration import conf

from lockstep.airflow._airflow import Stats
from lockstep.ledger.measures import GAUGES, measure
from lockstep.ledger.report import Report

_log = logging.getLogger(__name__)
_CLIENTS = ("statsd_on", "statsd_datadog_enabled", "otel_on")
_WITH_TAGS = ("statsd_datadog_enabled", "statsd_influxdb_enabled", "otel_on")

DURATION, FAILURES, ROWS = "lockstep.phase.duration", "lockstep.phase.failures", "lockstep.rows"


def switched_on() -> bool:
    """Whether there is anybody to send to."""
    return any(conf.getboolean("metrics", name, fallback=False) for name in _CLIENTS)


@contextmanager
def timed(pipeline: str, phase: str, sink: str | None, waits: tuple[type[Exception], ...]) -> Iterator[None]:
    """Send how long a phase took, or that it failed, by what kind of error; of what it `waits` for nothing."""
    began, tags = time.monotonic(), {"pipeline": pipeline, "phase": phase, **({"sink": sink} if sink else {})}
    try:
        yield
    except waits:
        raise
    except Exception as error:
        _send(Stats.incr, FAILURES, 1, tags | {"error": type(error).__name__})
        raise
    _send(Stats.timing, DURATION, timedelta(seconds=time.monotonic() - began), tags)


def count_rows(pipeline: str, sink: str, rows: Mapping[str, int]) -> None:
    """Of outputs that a sink has come to show."""
    for output, number in rows.items():
        _send(Stats.incr, ROWS, number, {"pipeline": pipeline, "sink": sink, "output": output})


def send_gauges(report: Report) -> None:
    """All that is measured of every pipeline. Raises `LedgerUnavailable`, `LedgerRefused`."""
    for one in measure(report) if switched_on() else ():
        for gauge in GAUGES:
            for labels, value in gauge.of(one):
                tags = zip(("pipeline", *gauge.labels), (one.pipeline, *labels), strict=True)
                _send(Stats.gauge, gauge.name.replace("_", ".", 1), value, dict(tags))


def _send(send: Callable[..., object], name: str, value: float | timedelta, tags: Mapping[str, str]) -> None:
    if not switched_on():
        return
    try:
        send(_name(name, tags), value, tags=dict(tags))
    except Exception:  # whatever a client does: an epoch doesn't fail for its metrics
        _log.debug("a metric wasn't sent", exc_info=True)


def _name(name: str, tags: Mapping[str, str]) -> str:
    if any(conf.getboolean("metrics", one, fallback=False) for one in _WITH_TAGS):
        return name
    return ".".join([name, *(re.sub(r"[^A-Za-z0-9_-]", "_", value) for value in tags.values())])

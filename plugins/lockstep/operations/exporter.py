"""exporter: what is measured of pipelines, in the format that Prometheus scrapes.

The ledger is asked at each scrape, and no number is kept for the next: one that doesn't answer in time is
`lockstep_ledger_up 0`, with no number beside it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from lockstep.distribution import naming_extra
from lockstep.errors import LedgerUnavailable, LockstepError
from lockstep.ledger.measures import GAUGES, Measures, measure
from lockstep.ledger.report import Report

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

T = TypeVar("T")
_log = logging.getLogger(__name__)

LEDGER_UP = "lockstep_ledger_up"
SCRAPE_SECONDS = "lockstep_scrape_seconds"


@dataclass
class Bounded(Generic[T]):
    """Calls a function and waits at most `seconds` for it; concurrent callers share the answer."""

    question: Callable[[], T]
    seconds: float
    _lock: Lock = field(default_factory=Lock, repr=False)
    _answer: Future[T] = field(default_factory=Future, repr=False)
    _asked_at: float = 0.0  #: by the monotonic clock; 0: never

    def ask(self) -> T:
        """The answer, at most `seconds` old; a later one is discarded. Raises `TimeoutError`, and what the function
        raises."""
        with self._lock:
            if not self._asked_at or self._answer.done():
                self._answer, self._asked_at = Future(), time.monotonic()
                Thread(target=self._work, args=(self._answer,), daemon=True, name="measure").start()
            answer, remaining = self._answer, self._asked_at + self.seconds - time.monotonic()
        return answer.result(max(remaining, 0))

    def _work(self, answer: Future[T]) -> None:
        try:
            answer.set_result(self.question())
        except BaseException as error:
            answer.set_exception(error)


class Exporter:
    """A collector of `prometheus_client`. `failure`: why the last scrape had no numbers, in one sentence."""

    def __init__(self, ledger: str, seconds: float) -> None:
        """`ledger`: a DSN. `seconds`: how long a scrape waits for it."""
        self._seconds = seconds
        self._measured = Bounded(lambda: _measure(ledger), seconds)
        self.failure: LockstepError | None = None

    def measure(self) -> list[Measures]:
        """All metrics. Raises `LockstepError` for any failure."""
        try:
            return self._measured.ask()
        except LockstepError:
            raise
        except TimeoutError:
            raise LedgerUnavailable(f"the ledger has not answered within {self._seconds:g} s") from None
        except Exception as error:
            raise LockstepError(f"what the ledger said can't be measured: {type(error).__name__}") from error

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: registration shouldn't scrape."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called at each scrape; never raises."""
        from prometheus_client.core import GaugeMetricFamily

        began = time.monotonic()
        try:
            metrics, failure = self.measure(), None
        except LockstepError as error:
            metrics, failure = [], error
        self._tell(failure)
        took = time.monotonic() - began
        yield GaugeMetricFamily(LEDGER_UP, "0: the ledger doesn't answer, and nothing else is told.", failure is None)
        yield GaugeMetricFamily(SCRAPE_SECONDS, "How long the ledger was asked.", took)
        for gauge in GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=("pipeline", *gauge.labels))
            for metric in metrics:
                for labels, value in gauge.of(metric):
                    family.add_metric((metric.pipeline, *labels), float(value))
            yield family

    def _tell(self, failure: LockstepError | None) -> None:
        """Log a failure once, and its end once: scrapes come every few seconds."""
        if failure is not None and str(failure) != str(self.failure):
            _log.warning("%s: %s", type(failure).__name__, failure)
        elif failure is None and self.failure is not None:
            _log.warning("the ledger answers again")
        self.failure = failure


def registry_of(exporter: Exporter) -> CollectorRegistry:
    """A registry with these metrics only. Raises `PackageMissing`."""
    with naming_extra("lockstep exporter"):
        from prometheus_client import CollectorRegistry
    registry = CollectorRegistry()
    registry.register(exporter)
    return registry


def as_text(registry: CollectorRegistry) -> str:
    """The metrics in Prometheus' text format."""
    from prometheus_client import generate_latest

    return generate_latest(registry).decode()


def serve(registry: CollectorRegistry, host: str, port: int) -> tuple[int, Thread]:
    """Answer scrapes in threads of this process: the port (of `port` 0 the one that was free), and the thread that
    listens. Raises `OSError` where that can't be had."""
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, host, registry)
    return server.server_port, thread


def _measure(ledger: str) -> list[Measures]:
    """Measures on its own connection, because an abandoned scrape may still use another."""
    with closing(Report(ledger)) as report:
        return measure(report)

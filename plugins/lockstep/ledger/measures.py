"""Metrics of pipelines, for Prometheus (`lockstep exporter`) and for Airflow's metrics client (the recovery DAG).

A constant number of queries for all pipelines, served by indexes: finished epochs are counted in advance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from lockstep.ledger.report import EpochStatus, PipelineStatus, Report, ShownEpoch
from lockstep.states import UNDECIDED, EpochState, ParticipantState

#: states of an epoch in regular order
_WAY = (EpochState.PLANNED, EpochState.STAGED, EpochState.COMMITTED, EpochState.PUBLISHED, EpochState.CLEANED)


@dataclass(frozen=True)
class ShownMeasures:
    """Measures of the newest epoch that is published in all sinks. `seconds`: time from the preceding state to each
    state, including waiting and retries, as far as the history has it."""

    epoch: int
    rows: Mapping[str, int]  #: by output
    seconds: Mapping[EpochState, float]


@dataclass(frozen=True)
class SinkMeasures:
    """Measures of a pipeline's unfinished epochs in one sink."""

    prepared: int = 0  #: voted, not published: each may hold a prepared transaction
    unpublished: int = 0  #: of these, committed


@dataclass(frozen=True)
class Measures:
    """Measures of one pipeline at one time of the ledger's clock. An age is None if there is nothing of the kind."""

    pipeline: str
    epochs: Mapping[EpochState, int]  #: every state
    stuck: int  #: need an operator or recovery
    held: int  #: of these, held by audits
    holes: int  #: between intervals; at most `report.BRIEF_HOLES`
    oldest_undecided: timedelta | None  #: since its range was frozen
    oldest_unpublished: timedelta | None  #: since it was decided
    lag: timedelta | None  #: age of the newest data published in all sinks
    verified_through: int
    unproven: bool
    kept_wals: int
    kept_bytes: int
    sinks: Mapping[str, SinkMeasures] = field(default_factory=dict)
    shown: ShownMeasures | None = None


def measure(report: Report) -> list[Measures]:
    """Measures of every pipeline that isn't forgotten, by name. Raises `LedgerUnavailable`, `LedgerRefused`."""
    pipelines = report.pipelines(limit=0, brief=True)
    published = report.shown_epochs({status.name: status.shown.epoch for status in pipelines if status.shown})
    now = report.now()
    return [_measures(status, published.get(status.name), now) for status in pipelines]


def _measures(pipeline: PipelineStatus, published: ShownEpoch | None, now: datetime) -> Measures:
    undecided = [
        now - epoch_status.epoch.planned_at for epoch_status in pipeline.epochs if epoch_status.epoch.state in UNDECIDED
    ]
    unpublished = [
        epoch_status.age for epoch_status in pipeline.epochs if epoch_status.epoch.state is EpochState.COMMITTED
    ]
    return Measures(
        pipeline.name,
        {state: pipeline.counts.get(state, 0) for state in EpochState},
        len(pipeline.stuck),
        sum(epoch_status.held for epoch_status in pipeline.epochs),
        len(pipeline.holes),
        max(undecided, default=None),
        max(unpublished, default=None),
        pipeline.shown.lag if pipeline.shown else None,
        pipeline.verified_through,
        pipeline.unproven is not None,
        pipeline.kept.epochs if pipeline.kept else 0,
        pipeline.kept.bytes if pipeline.kept else 0,
        _sinks(pipeline.epochs, published),
        _of_shown(published) if published else None,
    )


def _sinks(epochs: tuple[EpochStatus, ...], published: ShownEpoch | None) -> dict[str, SinkMeasures]:
    """Measures of every sink of an unfinished or the newest published epoch, including idle sinks."""
    names = set(published.sinks if published else ())
    prepared: Counter[str] = Counter()
    unpublished: Counter[str] = Counter()
    for status in epochs:
        for part in status.participants:
            names.add(part.sink)
            prepared[part.sink] += part.state is ParticipantState.PREPARED
            decided = status.epoch.state is EpochState.COMMITTED
            unpublished[part.sink] += decided and part.state is not ParticipantState.PUBLISHED
    return {name: SinkMeasures(prepared[name], unpublished[name]) for name in sorted(names)}


def _of_shown(published: ShownEpoch) -> ShownMeasures:
    seconds = {
        state: (published.came[state] - published.came[before]).total_seconds()
        for before, state in pairwise(_WAY)
        if before in published.came and state in published.came
    }
    return ShownMeasures(published.epoch, published.rows, seconds)


#: label values and number of a sample
Samples = Iterator[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class Gauge:
    """One metric. `of`: its samples for a pipeline, without the first label, the pipeline's name."""

    name: str
    help: str
    of: Callable[[Measures], Samples]
    labels: tuple[str, ...] = ()


def _one(value: float | None) -> Samples:
    """A sample, or none if the value is unknown."""
    if value is not None:
        yield (), value


def _seconds(age: timedelta | None) -> Samples:
    """An age in seconds; 0 if there is none, so that alerts resolve."""
    yield (), age.total_seconds() if age is not None else 0.0


#: the number of series is bounded by pipelines, sinks and outputs
GAUGES = (
    Gauge(
        "lockstep_epochs",
        "Epochs by state.",
        lambda status: (((state.value,), count) for state, count in status.epochs.items()),
        ("state",),
    ),
    Gauge("lockstep_stuck_epochs", "Epochs that need an operator or recovery.", lambda status: _one(status.stuck)),
    Gauge("lockstep_held_epochs", "Epochs held by audits until an operator decides.", lambda status: _one(status.held)),
    Gauge(
        "lockstep_holes",
        "Intervals without an epoch between the first and the last.",
        lambda status: _one(status.holes),
    ),
    Gauge(
        "lockstep_oldest_undecided_seconds",
        "Age of the oldest undecided epoch, since its range was frozen; 0 if there is none.",
        lambda status: _seconds(status.oldest_undecided),
    ),
    Gauge(
        "lockstep_oldest_unpublished_seconds",
        "Age of the oldest committed epoch that is not published in every sink; 0 if there is none.",
        lambda status: _seconds(status.oldest_unpublished),
    ),
    Gauge(
        "lockstep_lag_seconds",
        "Age of the newest data that is visible in all sinks.",
        lambda status: _one(status.lag.total_seconds() if status.lag is not None else None),
    ),
    Gauge(
        "lockstep_unproven",
        "1 if a sink's rows are not proven to be the sealed ones; see `lockstep status`.",
        lambda status: _one(status.unproven),
    ),
    Gauge(
        "lockstep_verified_epoch",
        "Every epoch up to this one is verified in every sink.",
        lambda status: _one(status.verified_through),
    ),
    Gauge("lockstep_kept_wals", "WALs retained after cleanup.", lambda status: _one(status.kept_wals)),
    Gauge("lockstep_kept_wal_bytes", "Bytes of retained WALs in staging.", lambda status: _one(status.kept_bytes)),
    Gauge(
        "lockstep_sink_prepared_epochs",
        "Epochs that a sink has voted for but not published; each may hold a prepared transaction.",
        lambda status: (((name,), sink.prepared) for name, sink in status.sinks.items()),
        ("sink",),
    ),
    Gauge(
        "lockstep_sink_unpublished_epochs",
        "Committed epochs that a sink has not published.",
        lambda status: (((name,), sink.unpublished) for name, sink in status.sinks.items()),
        ("sink",),
    ),
    Gauge(
        "lockstep_shown_epoch",
        "Number of the newest epoch published in every sink.",
        lambda status: _one(status.shown.epoch if status.shown else None),
    ),
    Gauge(
        "lockstep_shown_epoch_rows",
        "Rows of that epoch by output.",
        lambda status: (((name,), rows) for name, rows in status.shown.rows.items()) if status.shown else iter(()),
        ("output",),
    ),
    Gauge(
        "lockstep_shown_epoch_seconds",
        "Time that epoch took to each state, from the preceding one.",
        lambda status: (
            (((state.value,), took) for state, took in status.shown.seconds.items()) if status.shown else iter(())
        ),
        ("state",),
    ),
)

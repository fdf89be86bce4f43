"""Asset events about epochs: each is emitted once, by the task that publishes the epoch or else by the recovery DAG.

Airflow writes an event to its database when the task ends; what a sink shows is in the ledger. The two don't share a
transaction, so the ledger's `pending_asset_event` lists the events that haven't been seen in Airflow yet. A second
attempt looks in Airflow first: the event is to Airflow what the marker is to a sink. Two concurrent attempts may
both emit, so consumers act on epoch and generation.

Airflow triggers by the event of a partition only DAGs with a partitioned timetable, and by any other event only
those without one: so a sink has two assets. Versions before 3.3, where a task can't name a partition, have only the
first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from lockstep.airflow._airflow import HAS_PARTITIONS, Event, emit_events, events_of, is_over
from lockstep.airflow.connections import LEDGER, login
from lockstep.epoch import Epoch, Interval, Json, PendingAssetEvent, RunKey
from lockstep.errors import EventsUnread, LedgerUnavailable, LockstepError
from lockstep.ledger import Ledger
from lockstep.sinks.base import Sink
from lockstep.states import SHOWN, EpochState, Role

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from lockstep.pipeline import Pipeline

#: For this long the try that published an epoch, or its running DAG run, may emit the event; then recovery does.
OWN_RUN_FIRST = timedelta(hours=1)
#: For this long after the first look an asset may be missing in Airflow, for example while its DAG is broken.
GIVE_UP_AFTER = timedelta(days=7)
_BATCH = 1000  #: events in one run of recovery
_log = logging.getLogger(__name__)


def asset_of(pipeline: str, sink: str) -> Asset:
    """The asset of a pipeline's sink: it gets an event whenever an epoch is published there. For DAGs that are
    scheduled on assets."""
    return Asset(name=f"{pipeline}/{sink}", uri=f"lockstep://{pipeline}/{sink}", group="lockstep")


def partitions_of(pipeline: str, sink: str) -> Asset:
    """The partitioned asset of a pipeline's sink, with a partition for each epoch, by `partition_key`. For DAGs with
    a `PartitionedAssetTimetable`; Airflow 3.3 and later."""
    return Asset(name=f"{pipeline}/{sink}:epochs", uri=f"lockstep://{pipeline}/{sink}/epochs", group="lockstep")


def source_of(pipeline: str, source: str) -> Asset:
    """The asset of what a pipeline reads: an inlet of the task that reads it."""
    return Asset(name=f"{pipeline}:{source}", uri=f"lockstep-source://{pipeline}/{source}", group="lockstep")


def alias_of(name: str) -> AssetAlias:
    """The alias through which a mapped task emits events for the assets of many pipelines."""
    return AssetAlias(name=name, group="lockstep")


def partition_key(epoch: Epoch) -> str:
    """Start of the interval in UTC, as Airflow's own mappers read it; for a cursor the epoch's number. A restated
    epoch has the key of the original."""
    if epoch.interval is None:
        return str(epoch.root)
    return epoch.interval.start.replace(tzinfo=None).isoformat()


def inlets_of(pipeline: Pipeline) -> list[Asset]:
    return [source_of(pipeline.name, source) for source in pipeline.sources]


def outlets_of(pipeline: str, sinks: Iterable[str]) -> list[Asset]:
    """All assets of these sinks."""
    kinds = (asset_of, partitions_of) if HAS_PARTITIONS else (asset_of,)
    return [kind(pipeline, sink) for sink in sinks for kind in kinds]


def missing_intervals(
    pipeline: str, start: datetime, end: datetime, sink: str | None = None
) -> list[tuple[datetime, datetime]]:
    """The parts of the time from `start` to `end`, both aware, that `sink` doesn't show yet, or without `sink` not
    every sink: bounds in UTC, in order; empty if all is visible. For tasks and sensors of other DAGs in any version
    of Airflow; reads the ledger through Airflow's Connection. Raises `IntervalMissing` for invalid bounds."""
    interval = Interval(start, end)
    with closing(Ledger(login(LEDGER))) as ledger:
        visible = [
            epoch.interval
            for epoch in ledger.current_epochs(pipeline, interval)
            if epoch.interval is not None and _is_shown(ledger, epoch, sink)
        ]
    gaps, start = [], interval.start
    for span in visible:
        if start < span.start:
            gaps.append((start, span.start))
        start = max(start, span.end)
    return [*gaps, (start, interval.end)] if start < interval.end else gaps


def _is_shown(ledger: Ledger, epoch: Epoch, sink: str | None) -> bool:
    if sink is None or epoch.state not in (EpochState.COMMITTED, *SHOWN):
        return epoch.state in SHOWN
    participant = ledger.participants(epoch.pipeline, epoch.id).get(sink)
    return participant is not None and participant.publication is not None


@dataclass(frozen=True)
class _Unemitted:
    """An epoch in a sink of which some assets have no event yet. `assets`: their names."""

    epoch: Epoch
    sink: str
    assets: frozenset[str]


@dataclass
class AssetEventEmitter:
    """Emits pending asset events from a task. `alias`: the alias to use if the assets aren't outlets of the task."""

    ledger: Ledger
    role: Role
    alias: AssetAlias | None = None

    def emit_epoch(self, task: BaseOperator, context: Context, epoch: Epoch, sink: str) -> None:
        """Emit the event of a run that moves one epoch, unless it was emitted or the epoch has no part in the sink.
        If Airflow can't be asked, the event is left to the recovery DAG: the run has done its work."""
        unemitted = self._unemitted([epoch], sink)
        emit_events(task, context, list(self._events(unemitted)))

    def emit_pack(self, task: BaseOperator, context: Context, epochs: Sequence[Epoch], sinks: Sequence[str]) -> None:
        """Emit for each sink one event for all epochs, and one for each partition."""
        emit_events(
            task, context, [event for sink in sinks for event in self._events(self._unemitted(epochs, sink), pack=True)]
        )

    def emit_pending(self, task: BaseOperator, context: Context) -> list[str]:
        """Emit the events of all pipelines that publishing tasks didn't get to emit. Returns the failures by sink:
        the task has to succeed all the same, or Airflow drops the other events. Raises `LedgerUnavailable`."""
        self.ledger.delete_replaced_events(self.role)
        events: list[Event] = []
        failures: list[str] = []
        runs: dict[RunKey, bool] = {}
        by_sink: dict[tuple[str, str], list[PendingAssetEvent]] = {}
        for row in self.ledger.all_pending_events(_BATCH):
            by_sink.setdefault((row.pipeline, row.sink), []).append(row)
        for (pipeline, sink), rows in by_sink.items():
            try:
                unemitted = self._left_to_recovery(pipeline, sink, [row for row in rows if _is_abandoned(row, runs)])
                events += list(self._events(unemitted, pack=len(unemitted) > 1))  # all of a sink or none
            except LedgerUnavailable:
                raise
            except Exception as error:  # one pipeline's failure must not stop the others
                reason = str(error) if isinstance(error, LockstepError) else repr(error)
                failures.append(f"pipeline {pipeline}: the events of sink {sink} weren't emitted: {reason}")
                _log.error("%s", failures[-1])
                continue
            for event in unemitted:
                _log.info("emitted the event of %s in %s", event.epoch, sink)
        emit_events(task, context, events)
        return failures

    def _unemitted(self, epochs: Sequence[Epoch], sink: str) -> list[_Unemitted]:
        """The events that a run which has published these epochs has to emit, by number."""
        if not epochs:
            return []
        by_id = {epoch.id: epoch for epoch in epochs}
        rows = [row for row in self.ledger.pending_events(epochs[0].pipeline, list(by_id)) if row.sink == sink]
        turn = min(OWN_RUN_FIRST, timedelta(seconds=monotonic() - self.ledger.opened_at))  # a run's id may be reused
        mine = [row for row in rows if row.published_by == self.ledger.actor and (row.age or OWN_RUN_FIRST) < turn]
        every = frozenset(asset.name for asset in outlets_of(epochs[0].pipeline, [sink]))
        lacking = dict.fromkeys((row.epoch for row in mine), every)
        try:
            lacking |= self._missing_assets([row for row in rows if row not in mine])
        except EventsUnread as error:
            _log.warning("%s. The events of sink %s are left to the recovery DAG", error, sink)
        return [_Unemitted(by_id[number], sink, lacking[number]) for number in sorted(lacking)]

    def _left_to_recovery(self, pipeline: str, sink: str, rows: Sequence[PendingAssetEvent]) -> list[_Unemitted]:
        """The events of a sink that are left to recovery, oldest first."""
        lacking = self._missing_assets(rows)
        late = {row.epoch for row in rows if row.epoch in lacking and (row.missed or timedelta()) >= GIVE_UP_AFTER}
        for number in sorted(late):
            unknown = " and ".join(sorted(lacking[number]))
            _log.warning(
                "%s epoch %s: no event for %s days, as Airflow has no asset %s",
                pipeline,
                number,
                GIVE_UP_AFTER.days,
                unknown,
            )
        if late:
            self.ledger.delete_unemittable_events(pipeline, sink, sorted(late), self.role)
        numbers = [row.epoch for row in rows if row.epoch in lacking.keys() - late]
        if numbers:
            self.ledger.mark_missed(pipeline, sink, numbers, self.role)
        return [_Unemitted(self.ledger.epoch(pipeline, number), sink, lacking[number]) for number in numbers]

    def _missing_assets(self, rows: Sequence[PendingAssetEvent]) -> dict[int, frozenset[str]]:
        """{epoch: names of the assets without an event of it} for one sink's rows; marks the others in the ledger as
        emitted. One asset may have an event that the other lacks: Airflow writes none for an asset that isn't active
        when the task ends. Raises `EventsUnread`."""
        if not rows:
            return {}
        pipeline, sink, numbers = rows[0].pipeline, rows[0].sink, {row.epoch for row in rows}
        emitted = {
            asset.name: _emitted_epochs(asset, numbers, self.ledger.deployment())
            for asset in outlets_of(pipeline, [sink])
        }
        lacking = {number: frozenset(name for name in emitted if number not in emitted[name]) for number in numbers}
        for number in sorted(numbers):
            if not lacking[number]:
                self.ledger.mark_emitted(pipeline, number, [sink], self.role)
        return {number: names for number, names in lacking.items() if names}

    def _events(self, unemitted: Sequence[_Unemitted], pack: bool = False) -> Iterator[Event]:
        """The events of one sink."""
        if not unemitted:
            return
        pipeline, sink = unemitted[0].epoch.pipeline, unemitted[0].sink
        facts = [(event, _facts(event.epoch, sink, self.ledger.deployment())) for event in unemitted]
        asset = asset_of(pipeline, sink)
        if whole := [facts_of_epoch for event, facts_of_epoch in facts if asset.name in event.assets]:
            yield Event(asset, _merge_facts(whole) if pack else whole[0], alias=self.alias)
        partitions = partitions_of(pipeline, sink)
        for event, facts_of_epoch in facts:
            if partitions.name in event.assets:
                yield Event(partitions, facts_of_epoch, partition=partition_key(event.epoch))


def _emitted_epochs(asset: Asset, numbers: set[int], deployment: str) -> set[int]:
    """The epochs of `numbers` of which the asset has an event. Other events are ignored: any user or an earlier
    ledger may have written them."""
    emitted: set[int] = set()
    for extra in events_of(asset):
        if extra.get("deployment", deployment) != deployment:  # older events lack it
            continue
        several = extra.get("epochs")
        mentioned = [extra.get("epoch"), *(several if isinstance(several, list) else ())]
        emitted |= {number for number in mentioned if isinstance(number, int) and number in numbers}
        if emitted == numbers:
            break
    return emitted


def _is_abandoned(row: PendingAssetEvent, over_by_run: dict[RunKey, bool]) -> bool:
    """Return whether no run that came to the epoch will emit its event."""
    if (row.age or OWN_RUN_FIRST) >= OWN_RUN_FIRST:
        return True
    for run in {run.whole for run in row.runs}:
        if run not in over_by_run:
            over_by_run[run] = is_over(run.dag_id, run.run_id)
    return all(over_by_run[run.whole] for run in row.runs)


def _facts(epoch: Epoch, sink: str, deployment: str) -> dict[str, Json]:
    """Content of the event of an epoch in a sink. `deployment`: id of the ledger."""
    generation = epoch.generation
    outputs = Sink.from_spec(epoch.plan.sinks[sink]).outputs
    return {
        "pipeline": epoch.pipeline,
        "sink": sink,
        "deployment": deployment,
        "epoch": epoch.id,
        "generation": generation.number if generation else 0,
        "replaces": [generation.replaces, generation.through or generation.replaces] if generation else None,
        "interval": str(epoch.interval) if epoch.interval else None,
        "state": epoch.state.value,
        "rows": rows_of(epoch, outputs),
        "digest": _counts(epoch, outputs, "digest"),
    }


def rows_of(epoch: Epoch, outputs: Iterable[str]) -> dict[str, int]:
    """Sealed rows by output."""
    return _counts(epoch, outputs, "rows")


def _counts(epoch: Epoch, outputs: Iterable[str], what: str) -> dict[str, Any]:
    return {name: epoch.counted[name][what] for name in outputs if name in epoch.counted}


def _merge_facts(facts: Sequence[dict[str, Any]]) -> dict[str, Json]:
    rows: dict[str, int] = {}
    for epoch_facts in facts:
        for output, count in epoch_facts["rows"].items():
            rows[output] = rows.get(output, 0) + count
    first = facts[0]
    return {
        "pipeline": first["pipeline"],
        "sink": first["sink"],
        "deployment": first["deployment"],
        "epochs": [epoch_facts["epoch"] for epoch_facts in facts],
        "rows": rows,
    }

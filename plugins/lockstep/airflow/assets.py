"""What Airflow's assets are told of epochs: each once, by the task that shows it, or else by the recovery DAG.

An event is written with the end of its task, in Airflow's database; what a sink shows is in the ledger. Nothing makes
one transaction of the two, so the ledger's `pending_asset_event` lists the events that weren't seen in Airflow yet. A
second attempt looks in Airflow first: the event is to Airflow what the marker is to a sink. Two attempts that look at
the same moment may both emit, so consumers act on epoch and generation.

Airflow starts by the event of a partition only DAGs that go by partitions, and by any other event only those that
don't: so a sink has two assets. Versions before 3.3, where a task can't name a partition, have the first alone.
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

from lockstep.airflow._airflow import HAS_PARTITIONS, Event, events_of, is_over, tell
from lockstep.airflow.connections import LEDGER, login
from lockstep.epoch import Epoch, Interval, Json, PendingAssetEvent, RunKey
from lockstep.errors import EventsUnread, LedgerUnavailable, LockstepError
from lockstep.ledger import Ledger
from lockstep.sinks.base import Sink
from lockstep.states import SHOWN, EpochState, Role

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from lockstep.pipeline import Pipeline

#: The try that has shown an epoch tells it by itself, and whoever's run is under way may do so: after this others do.
TURN = timedelta(hours=1)
#: So long an asset may be unknown to Airflow, as that of a DAG that is broken, since somebody looked there first.
PATIENCE = timedelta(days=7)
_AT_ONCE = 1000  #: epochs of sinks in one round
_log = logging.getLogger(__name__)


def asset_of(pipeline: str, sink: str) -> Asset:
    """What a pipeline publishes in a sink: an event whenever an epoch is shown there. For DAGs that go by assets."""
    return Asset(name=f"{pipeline}/{sink}", uri=f"lockstep://{pipeline}/{sink}", group="lockstep")


def partitions_of(pipeline: str, sink: str) -> Asset:
    """The same in partitions, of which each epoch is one, by `partition_key`. For DAGs that go by partitions, by a
    `PartitionedAssetTimetable`; of Airflow 3.3 and later."""
    return Asset(name=f"{pipeline}/{sink}:epochs", uri=f"lockstep://{pipeline}/{sink}/epochs", group="lockstep")


def source_of(pipeline: str, source: str) -> Asset:
    """What a pipeline reads: the inlet of the task that reads it."""
    return Asset(name=f"{pipeline}:{source}", uri=f"lockstep-source://{pipeline}/{source}", group="lockstep")


def alias_of(name: str) -> AssetAlias:
    """Through which a mapped task tells the assets of many pipelines."""
    return AssetAlias(name=name, group="lockstep")


def partition_key(epoch: Epoch) -> str:
    """The start of its interval in UTC, as Airflow's own mappers read it; of a cursor's epoch the number. What takes
    the place of an epoch has the key of that one."""
    if epoch.interval is None:
        return str(epoch.root)
    return epoch.interval.start.replace(tzinfo=None).isoformat()


def inlets_of(pipeline: Pipeline) -> list[Asset]:
    return [source_of(pipeline.name, source) for source in pipeline.sources]


def outlets_of(pipeline: str, sinks: Iterable[str]) -> list[Asset]:
    """Every asset of these sinks."""
    kinds = (asset_of, partitions_of) if HAS_PARTITIONS else (asset_of,)
    return [kind(pipeline, sink) for sink in sinks for kind in kinds]


def missing_intervals(
    pipeline: str, start: datetime, end: datetime, sink: str | None = None
) -> list[tuple[datetime, datetime]]:
    """What of the time from `start` to `end`, both aware, `sink` doesn't show yet, or without it not every sink: its
    bounds in UTC, by time; empty: all of it is there. For tasks and sensors of other DAGs, in any version of Airflow:
    asks the ledger, by Airflow's Connection. Raises `IntervalMissing` for bounds that are none."""
    interval = Interval(start, end)
    with closing(Ledger(login(LEDGER))) as ledger:
        shown = [
            epoch.interval
            for epoch in ledger.current_epochs(pipeline, interval)
            if epoch.interval is not None and _is_shown(ledger, epoch, sink)
        ]
    return list(_gaps(interval, shown))


def _is_shown(ledger: Ledger, epoch: Epoch, sink: str | None) -> bool:
    if sink is None or epoch.state not in (EpochState.COMMITTED, *SHOWN):
        return epoch.state in SHOWN
    found = ledger.participants(epoch.pipeline, epoch.id).get(sink)
    return found is not None and found.publication is not None


def _gaps(interval: Interval, shown: Sequence[Interval]) -> Iterator[tuple[datetime, datetime]]:
    at = interval.start
    for one in shown:
        if at < one.start:
            yield at, one.start
        at = max(at, one.end)
    if at < interval.end:
        yield at, interval.end


@dataclass(frozen=True)
class _News:
    """An epoch in a sink that some assets don't know yet. `assets`: their names."""

    epoch: Epoch
    sink: str
    assets: frozenset[str]


@dataclass
class AssetEventEmitter:
    """Has a task tell what nobody has told. `alias`: through which it does so, if its assets aren't its own."""

    ledger: Ledger
    role: Role
    alias: AssetAlias | None = None

    def tell_epoch(self, task: BaseOperator, context: Context, epoch: Epoch, sink: str) -> None:
        """Of a run that moves one: its event, unless it is told, or has no part in the sink. What can't be looked up is
        left to the recovery DAG: the sink shows it, and that is all that the run has to do."""
        news = self._news([epoch], sink)
        tell(task, context, list(self._events(news)))

    def tell_pack(self, task: BaseOperator, context: Context, epochs: Sequence[Epoch], sinks: Sequence[str]) -> None:
        """Of a run that moves many: of each sink one event for all, and one for each partition."""
        tell(task, context, [one for sink in sinks for one in self._events(self._news(epochs, sink), pack=True)])

    def tell_left(self, task: BaseOperator, context: Context) -> list[str]:
        """Of all pipelines what whoever has shown it didn't get to tell. Returns of which sinks that can't be done: the
        task has to succeed even so, or it tells nothing of the others. Raises `LedgerUnavailable`."""
        self.ledger.delete_replaced_events(self.role)
        events: list[Event] = []
        failures: list[str] = []
        runs: dict[RunKey, bool] = {}
        by_sink: dict[tuple[str, str], list[PendingAssetEvent]] = {}
        for row in self.ledger.all_pending_events(_AT_ONCE):
            by_sink.setdefault((row.pipeline, row.sink), []).append(row)
        for (pipeline, sink), rows in by_sink.items():
            try:
                news = self._left(pipeline, sink, [row for row in rows if _turn_is_over(row, runs)])
                events += list(self._events(news, pack=len(news) > 1))  # all of a sink's, or none
            except LedgerUnavailable:
                raise
            except Exception as error:  # whatever it is: one pipeline's trouble isn't another's
                told = str(error) if isinstance(error, LockstepError) else repr(error)
                failures.append(f"pipeline {pipeline}: assets of sink {sink} weren't told: {told}")
                _log.error("%s", failures[-1])
                continue
            for one in news:
                _log.info("told of %s in %s", one.epoch, sink)
        tell(task, context, events)
        return failures

    def _news(self, epochs: Sequence[Epoch], sink: str) -> list[_News]:
        """What a run that has come to the end of these has to tell, by number."""
        if not epochs:
            return []
        by_id = {epoch.id: epoch for epoch in epochs}
        rows = [row for row in self.ledger.pending_events(epochs[0].pipeline, list(by_id)) if row.sink == sink]
        turn = min(TURN, timedelta(seconds=monotonic() - self.ledger.opened_at))  # a run's id may come back
        mine = [row for row in rows if row.published_by == self.ledger.actor and (row.age or TURN) < turn]
        every = frozenset(asset.name for asset in outlets_of(epochs[0].pipeline, [sink]))
        lacking = dict.fromkeys((row.epoch for row in mine), every)
        try:
            lacking |= self._lacking([row for row in rows if row not in mine])
        except EventsUnread as error:
            _log.warning("%s. What sink %s shows is left for the recovery DAG to tell", error, sink)
        return [_News(by_id[number], sink, lacking[number]) for number in sorted(lacking)]

    def _left(self, pipeline: str, sink: str, rows: Sequence[PendingAssetEvent]) -> list[_News]:
        """What nobody else will tell of a sink, oldest first."""
        lacking = self._lacking(rows)
        late = {row.epoch for row in rows if row.epoch in lacking and (row.missed or timedelta()) >= PATIENCE}
        for number in sorted(late):
            unknown = " and ".join(sorted(lacking[number]))
            _log.warning(
                "%s epoch %s: told in vain for %s days, no asset %s in Airflow",
                pipeline,
                number,
                PATIENCE.days,
                unknown,
            )
        if late:
            self.ledger.delete_unemittable_events(pipeline, sink, sorted(late), self.role)
        left = [row.epoch for row in rows if row.epoch in lacking.keys() - late]
        if left:
            self.ledger.mark_missed(pipeline, sink, left, self.role)
        return [_News(self.ledger.epoch(pipeline, number), sink, lacking[number]) for number in left]

    def _lacking(self, rows: Sequence[PendingAssetEvent]) -> dict[int, frozenset[str]]:
        """{epoch: names of the assets that have no event of it} of one sink's rows; the ledger learns which all know.
        One may lack what the other has: of an asset that isn't active when a task ends Airflow writes no event. Raises
        `EventsUnread`."""
        if not rows:
            return {}
        pipeline, sink, wanted = rows[0].pipeline, rows[0].sink, {row.epoch for row in rows}
        known = {asset.name: _known(asset, wanted, self.ledger.deployment()) for asset in outlets_of(pipeline, [sink])}
        lacking = {number: frozenset(name for name in known if number not in known[name]) for number in wanted}
        for number in sorted(wanted):
            if not lacking[number]:
                self.ledger.mark_emitted(pipeline, number, [sink], self.role)
        return {number: names for number, names in lacking.items() if names}

    def _events(self, news: Sequence[_News], pack: bool = False) -> Iterator[Event]:
        """Of one sink."""
        if not news:
            return
        pipeline, sink = news[0].epoch.pipeline, news[0].sink
        facts = [(one, _facts(one.epoch, sink, self.ledger.deployment())) for one in news]
        asset = asset_of(pipeline, sink)
        if whole := [told for one, told in facts if asset.name in one.assets]:
            yield Event(asset, _together(whole) if pack else whole[0], alias=self.alias)
        partitions = partitions_of(pipeline, sink)
        for one, told in facts:
            if partitions.name in one.assets:
                yield Event(partitions, told, partition=partition_key(one.epoch))


def _known(asset: Asset, wanted: set[int], deployment: str) -> set[int]:
    """Which of these the asset has an event of. Anybody may have written others, a ledger before this one too."""
    known: set[int] = set()
    for extra in events_of(asset):
        if extra.get("deployment", deployment) != deployment:  # older events don't say it
            continue
        several = extra.get("epochs")
        told = [extra.get("epoch"), *(several if isinstance(several, list) else ())]
        known |= {number for number in told if isinstance(number, int) and number in wanted}
        if known == wanted:
            break
    return known


def _turn_is_over(row: PendingAssetEvent, known: dict[RunKey, bool]) -> bool:
    """Whether no run that came to the epoch will tell it by itself."""
    if (row.age or TURN) >= TURN:
        return True
    for run in {run.whole for run in row.runs}:
        if run not in known:
            known[run] = is_over(run.dag_id, run.run_id)
    return all(known[run.whole] for run in row.runs)


def _facts(epoch: Epoch, sink: str, deployment: str) -> dict[str, Json]:
    """What an event says of an epoch in a sink. `deployment`: of the ledger that numbers it."""
    outputs = Sink.from_spec(epoch.plan.sinks[sink]).outputs
    return {
        "pipeline": epoch.pipeline,
        "sink": sink,
        "deployment": deployment,
        "epoch": epoch.id,
        "generation": epoch.generation.number if epoch.generation else 0,
        "replaces": _replaced(epoch),
        "interval": str(epoch.interval) if epoch.interval else None,
        "state": epoch.state.value,
        "rows": rows_of(epoch, outputs),
        "digest": _counts(epoch, outputs, "digest"),
    }


def rows_of(epoch: Epoch, outputs: Iterable[str]) -> dict[str, int]:
    """As the seal counted them, by output."""
    return _counts(epoch, outputs, "rows")


def _counts(epoch: Epoch, outputs: Iterable[str], what: str) -> dict[str, Any]:
    return {name: epoch.counted[name][what] for name in outputs if name in epoch.counted}


def _replaced(epoch: Epoch) -> Json:
    """First and last epoch whose place it takes."""
    if epoch.generation is None:
        return None
    return [epoch.generation.replaces, epoch.generation.through or epoch.generation.replaces]


def _together(facts: Sequence[dict[str, Any]]) -> dict[str, Json]:
    rows: dict[str, int] = {}
    for one in facts:
        for output, count in one["rows"].items():
            rows[output] = rows.get(output, 0) + count
    first = facts[0]
    return {
        "pipeline": first["pipeline"],
        "sink": first["sink"],
        "deployment": first["deployment"],
        "epochs": [one["epoch"] for one in facts],
        "rows": rows,
    }

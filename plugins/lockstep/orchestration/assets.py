"""What Airflow's assets are told of epochs: each once, by the task that shows it, or else by the recovery DAG.

An event is written with the end of its task, in Airflow's database; what a sink shows is in the ledger. Nothing makes
one transaction of the two, so `untold` in the ledger says what nobody has found in Airflow yet, and whoever isn't the
first to tell looks there before: the event is to Airflow what the marker is to a sink. Two that look at the same moment
may both tell, so consumers act on epoch and generation.

Airflow starts by the event of a partition only DAGs that go by partitions, and by any other event only those that
don't: so a sink has two assets. Versions before 3.3, where a task can't name a partition, have the first alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from lockstep.epoch import Epoch, Interval, Json, RunKey, Untold
from lockstep.errors import LockstepError
from lockstep.ledger import Ledger
from lockstep.orchestration._airflow import HAS_PARTITIONS, Event, events_of, is_over, tell
from lockstep.orchestration.connections import LEDGER, login
from lockstep.sinks.base import Sink
from lockstep.states import SHOWN, EpochState, Role

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from lockstep.pipeline import Pipeline

#: The try that has shown an epoch tells it by itself, and whoever's run is under way may do so: after this others do.
TURN = timedelta(hours=1)
PATIENCE = timedelta(days=7)  #: so long an asset may be unknown to Airflow, as that of a DAG that is broken
_AT_ONCE = 1000  #: epochs of sinks in one round
_SLACK = timedelta(hours=1)  #: between the clocks of ledger and Airflow
_log = logging.getLogger(__name__)


def asset_of(pipeline: str, sink: str) -> Asset:
    """What a pipeline publishes in a sink: an event whenever an epoch is shown there. For DAGs that go by assets."""
    return Asset(name=f"{pipeline}.{sink}", uri=f"lockstep://{pipeline}/{sink}", group="lockstep")


def partitions_of(pipeline: str, sink: str) -> Asset:
    """The same in partitions, of which each epoch is one, by `partition_key`. For DAGs that go by partitions, by a
    `PartitionedAssetTimetable`; of Airflow 3.3 and later."""
    return Asset(name=f"{pipeline}.{sink}:epochs", uri=f"lockstep://{pipeline}/{sink}/epochs", group="lockstep")


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


@dataclass
class Teller:
    """Has a task tell what nobody has told. `alias`: through which it does so, if its assets aren't its own."""

    ledger: Ledger
    role: Role
    alias: AssetAlias | None = None

    def tell_epoch(self, task: BaseOperator, context: Context, epoch: Epoch, sink: str) -> None:
        """Of a run that moves one: its event, unless it is told, or has no part in the sink."""
        found = self._news([epoch], [sink])
        tell(task, context, [event for one in found for event in self._events([one])])

    def tell_pack(self, task: BaseOperator, context: Context, epochs: Sequence[Epoch], sinks: Sequence[str]) -> None:
        """Of a run that moves many: of each sink one event for all, and one for each partition."""
        found = self._news(epochs, sinks)
        by_sink = {sink: [one for one in found if one[1] == sink] for sink in sinks}
        tell(task, context, [event for news in by_sink.values() if news for event in self._events(news, pack=True)])

    def tell_left(self, task: BaseOperator, context: Context) -> list[str]:
        """Of all pipelines what whoever has shown it didn't get to tell: what is told now."""
        for late in self.ledger.forget_untold(PATIENCE, self.role):
            _log.warning(
                "%s epoch %s: Airflow has no asset of sink %s to tell of it", late.pipeline, late.epoch, late.sink
            )
        events: list[Event] = []
        told: list[str] = []
        runs: dict[RunKey, bool] = {}
        by_sink: dict[tuple[str, str], list[Untold]] = {}
        for row in self.ledger.all_untold(_AT_ONCE):
            by_sink.setdefault((row.pipeline, row.sink), []).append(row)
        for (pipeline, sink), rows in by_sink.items():
            try:
                waiting = [row for row in self._unknown(rows) if _turn_is_over(row, runs)]
                news = [(self.ledger.epoch(pipeline, row.epoch), sink) for row in waiting]
                events += self._events(news, pack=len(news) > 1) if news else []
            except LockstepError as error:  # one pipeline's trouble isn't another's
                _log.error("assets of %s %s: %s: %s", pipeline, sink, type(error).__name__, error)
            else:
                told += [f"{pipeline} epoch {epoch.id} in {sink}" for epoch, _ in news]
        tell(task, context, events)
        return told

    def _news(self, epochs: Sequence[Epoch], sinks: Sequence[str]) -> list[tuple[Epoch, str]]:
        """Epoch and sink of what is to be told."""
        if not epochs:
            return []
        by_id = {epoch.id: epoch for epoch in epochs}
        rows = [row for row in self.ledger.untold(epochs[0].pipeline, list(by_id)) if row.sink in sinks]
        mine = [row for row in rows if row.shown_by == self.ledger.actor and (row.age or TURN) < TURN]
        others = self._unknown([row for row in rows if row not in mine])
        return [(by_id[row.epoch], row.sink) for row in sorted([*mine, *others], key=lambda row: (row.epoch, row.sink))]

    def _unknown(self, rows: Sequence[Untold]) -> list[Untold]:
        """Those of which Airflow has no event. The ledger learns which it has."""
        found = []
        for sink in {(row.pipeline, row.sink) for row in rows}:
            of_sink = [row for row in rows if (row.pipeline, row.sink) == sink]
            known = self._known_epochs(sink, min(row.shown_at for row in of_sink))
            for row in of_sink:
                if row.epoch in known:
                    self.ledger.note_told(row.pipeline, row.epoch, [row.sink], self.role)
                else:
                    found.append(row)
        return found

    def _known_epochs(self, sink: tuple[str, str], since: datetime) -> set[int]:
        known: set[int] = set()
        for extra in events_of(asset_of(*sink), since - _SLACK):
            known |= {extra.get("epoch"), *(extra.get("epochs") or ())} - {None}
        return known

    def _events(self, news: Sequence[tuple[Epoch, str]], pack: bool = False) -> Iterator[Event]:
        """Of one sink."""
        [(first, sink), *_] = news
        facts = [_facts(epoch, sink) for epoch, _ in news]
        asset = asset_of(first.pipeline, sink)
        yield Event(asset, _together(facts) if pack else facts[0], alias=self.alias)
        if HAS_PARTITIONS:
            partitions = partitions_of(first.pipeline, sink)
            for (epoch, _), told in zip(news, facts, strict=True):
                yield Event(partitions, told, partition=partition_key(epoch))


def _turn_is_over(row: Untold, known: dict[RunKey, bool]) -> bool:
    """Whether no run that came to the epoch will tell it by itself."""
    if (row.age or TURN) >= TURN:
        return True
    for run in {run.whole for run in row.runs}:
        if run not in known:
            known[run] = is_over(run.dag_id, run.run_id)
    return all(known[run.whole] for run in row.runs)


def _facts(epoch: Epoch, sink: str) -> dict[str, Json]:
    """What an event says of an epoch in a sink."""
    outputs = Sink.from_spec(epoch.plan.sinks[sink]).outputs
    return {
        "pipeline": epoch.pipeline,
        "sink": sink,
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
        "epochs": [one["epoch"] for one in facts],
        "rows": rows,
    }

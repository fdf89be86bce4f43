"""Which data interval a run moves: the one in its conf, or else the one that Airflow gave it.

Airflow's own forms ask for an interval, so no params are declared, which would ask again; in a conf they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Context

from lockstep.airflow._airflow import (
    AssetTriggeredTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    width_of,
)
from lockstep.airflow._conf import said_of
from lockstep.airflow.timetables import intervals_of_schedule
from lockstep.epoch import Interval, KeyedBy
from lockstep.errors import IntervalMissing, InvalidPipeline
from lockstep.pipeline import Pipeline

START, END = "interval_start", "interval_end"
_WAY_OUT = (
    'trigger it with one: in the form Data Interval, "Specify Manually"; by REST data_interval_start and '
    f'data_interval_end, with a logical_date; or a conf {{"{START}": "2013-01-01T00:00:00+00:00", '
    f'"{END}": "2013-01-02T00:00:00+00:00"}}'
)
_NOT_INTERVALS = frozenset({"@once", "@continuous"})


def timetable_of(
    pipeline: Pipeline, schedule: Any, first: datetime | None, last: datetime | None, pack: int | None = None
) -> Any:
    """What Airflow shall be given: for an interval pipeline a cron string or a timedelta becomes a timetable of real
    data intervals, in UTC, none of which starts before `first` or after `last`, and of which a run may take `pack` at
    once; anything else stays as it is."""
    if not makes_intervals(pipeline, schedule):
        return schedule
    return intervals_of_schedule(schedule, first=first, last=last, pack=pack or 1)


def makes_intervals(pipeline: Pipeline, schedule: Any) -> bool:
    if pipeline.identity is not KeyedBy.INTERVAL:
        return False
    return isinstance(schedule, timedelta) or (isinstance(schedule, str) and schedule not in _NOT_INTERVALS)


def require_intervals(pipeline: Pipeline, dag: DAG) -> None:
    """Raise `InvalidPipeline` if the runs that `dag`'s schedule makes have no interval for an interval pipeline."""
    if pipeline.identity is not KeyedBy.INTERVAL:
        return
    timetable = dag.timetable
    if isinstance(timetable, AssetTriggeredTimetable):
        found = "is scheduled on assets, and a run that they trigger has no data interval"
    elif isinstance(timetable, CronTriggerTimetable | DeltaTriggerTimetable) and not width_of(timetable):
        found = f"has the schedule {dag.schedule!r}, of which Airflow makes data intervals of no length"
    else:
        return
    raise InvalidPipeline(
        f"pipeline {pipeline.name} moves data intervals, and DAG {dag.dag_id} {found}: give it a timetable of real "
        'ones, such as schedule=CronDataIntervalTimetable("@daily", timezone="UTC") of airflow.sdk, or None if it is '
        "only triggered"
    )


def interval_of(pipeline: Pipeline, context: Context, *, alone: bool = True) -> Interval | None:
    """The run's interval; None for a cursor pipeline. Params come from whoever triggered the run: nothing is believed.
    `alone`: no interval pipeline in the DAG could be meant by them.

    Raises `IntervalMissing` if there is none, or an empty one; `InvalidPipeline` if a cursor pipeline is given one.
    """
    if pipeline.identity is not KeyedBy.INTERVAL:
        if alone:
            _refuse_given(pipeline, said_of(context))
        return None
    given = _given(said_of(context))
    bounds = given or (context.get("data_interval_start"), context.get("data_interval_end"))
    if bounds[0] is None or bounds[1] is None:
        raise IntervalMissing(f"pipeline {pipeline.name} needs a data interval and this run has none: {_WAY_OUT}")
    try:
        return Interval(_plain(bounds[0]), _plain(bounds[1]))
    except IntervalMissing as error:
        raise IntervalMissing(f"pipeline {pipeline.name} can't use this run's {error}: {_WAY_OUT}") from error


def cut(pipeline: Pipeline, span: Interval, schedule: str | timedelta, most: int) -> list[Interval]:
    """The intervals of the schedule that `span` is made of; one that has no moment of the schedule within it stays
    whole. Raises `IntervalMissing` for more than `most`, and where `span` isn't made of whole ones."""
    ticks = intervals_of_schedule(schedule).within(span.start, span.end, most + 1)
    found = [Interval(_plain(tick.start), _plain(tick.end)) for tick in ticks]
    if not any(span.start < moment < span.end for tick in found for moment in (tick.start, tick.end)):
        return [span]
    if len(found) > most:
        raise IntervalMissing(
            f"pipeline {pipeline.name}: {span} is more than {most} intervals of the schedule, the most that this DAG "
            "takes in one run: trigger it in parts, or as a backfill, or say a larger pack="
        )
    if (found[0].start, found[-1].end) != (span.start, span.end):
        raise IntervalMissing(
            f"pipeline {pipeline.name}: {span} isn't made of whole intervals of the schedule; those in it reach from "
            f"{found[0].start.isoformat()} to {found[-1].end.isoformat()}: trigger it with such bounds"
        )
    return found


def _refuse_given(pipeline: Pipeline, params: Mapping[str, Any]) -> None:
    if given := [name for name in (START, END) if params.get(name) is not None]:
        raise InvalidPipeline(
            f"pipeline {pipeline.name} is given {' and '.join(given)}, and its epochs are numbers, not intervals: no "
            "source of it reads by interval. Trigger it without them, or give a FileSource's path a placeholder such "
            "as {interval_start:%Y-%m-%d}"
        )


def _given(params: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    start, end = params.get(START), params.get(END)
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise IntervalMissing(f"only one of the params {START} and {END} is given: {_WAY_OUT}")
    return _parsed(START, start), _parsed(END, end)


def _parsed(name: str, text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise IntervalMissing(f"param {name} is {str(text)[:60]!r}, no ISO 8601 date and time: {_WAY_OUT}") from error


def _plain(moment: datetime) -> datetime:
    """Airflow's moments are pendulum's, whose arithmetic and pickles differ."""
    return datetime.fromisoformat(moment.isoformat())

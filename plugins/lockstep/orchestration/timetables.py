"""Schedules that end without taking the DAG's manual runs with them.

A DAG's own `end_date` goes to its tasks. Airflow leaves a task out of every run, even a manual one, whose logical date
is after that, and the run ends green although nothing has moved. Here the end belongs to the schedule alone.

`orchestration/plugin.py` registers these with Airflow, which looks a timetable up by name.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable, DeltaDataIntervalTimetable
from pendulum import DateTime, instance


class _Ending:
    """The bound that both timetables share. `last`: no scheduled interval starts after it."""

    _last: DateTime

    def ending(self, last: datetime) -> Any:
        self._last = instance(last)
        return self

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        latest = self._last if restriction.latest is None else min(self._last, restriction.latest)
        bounded = restriction._replace(latest=latest)
        inherited: Any = super()
        found: DagRunInfo | None = inherited.next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=bounded
        )
        return found

    def serialize(self) -> dict[str, Any]:
        inherited: Any = super()
        return {**inherited.serialize(), "last": self._last.isoformat()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Any:
        inherited: Any = super()
        return inherited.deserialize(data).ending(datetime.fromisoformat(data["last"]))


class CronIntervals(_Ending, CronDataIntervalTimetable):
    """Data intervals between the moments of a cron expression, in UTC."""


class DeltaIntervals(_Ending, DeltaDataIntervalTimetable):
    """Data intervals of one length."""


def intervals_until(schedule: str | timedelta, last: datetime) -> Any:
    """A timetable of real data intervals in UTC, the last of which starts at `last` or before."""
    if isinstance(schedule, timedelta):
        return DeltaIntervals(schedule).ending(last)
    return CronIntervals(schedule, timezone="UTC").ending(last)


def ends(timetable: Any) -> bool:
    """Whether `timetable` knows its own end."""
    return isinstance(timetable, _Ending)

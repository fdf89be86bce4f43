"""Schedules with a start and an end that don't apply to manual runs, and whose runs may take several intervals at
once.

A DAG's own `start_date` and `end_date` are passed on to its tasks. Airflow leaves a task out of a manual run whose
logical date is outside of them, and the run ends green although nothing has moved. Here both belong to the schedule
only.

A schedule of packs makes a run for each interval as it ends. Of intervals that are over already, when catching up or
in a backfill, it puts as many into one run as a pack may have. Airflow identifies a run by its logical date, and
names it by its `run_after`, whatever its data interval. So both encode the length of the pack, and two packs with
only the start or only the end in common are two runs.

`airflow/plugin.py` registers these with Airflow, which looks a timetable up by name.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from airflow.sdk.timezone import convert_to_utc
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable, DeltaDataIntervalTimetable
from pendulum import DateTime, instance

if TYPE_CHECKING:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun


class _PackRun(DagRunInfo):
    """A run of one or more intervals. `run_after` is one microsecond later than the end for each interval after the
    first."""

    __slots__ = ()

    @classmethod
    def of(cls, intervals: int, start: DateTime, end: DateTime) -> Self:
        return cls(end + timedelta(microseconds=intervals - 1), DataInterval(start, end))

    @property
    def logical_date(self) -> DateTime:
        """The start plus the same offset, so that packs of different lengths have different logical dates."""
        span = _span_of(self)
        return span.start + (self.run_after - span.end)


class _Intervals:
    """Common part of both timetables. `first` and `last`: bounds of the starts of scheduled intervals; a backfill
    has its own start. `pack`: the most intervals in a run."""

    _first: DateTime | None = None
    _last: DateTime | None = None
    _pack: int = 1

    def starting(self, first: datetime) -> Self:
        self._first = convert_to_utc(first)
        return self

    def ending(self, last: datetime) -> Self:
        self._last = convert_to_utc(last)
        return self

    def packing(self, pack: int) -> Self:
        self._pack = pack
        return self

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        bounds = [bound for bound in (self._last, restriction.latest) if bound is not None]
        bounded = restriction._replace(earliest=restriction.earliest or self._first, latest=min(bounds, default=None))
        run = self._next(last_automated_data_interval, bounded)
        return run and self._gather(run, bounded._replace(catchup=True))

    def _next(self, last: DataInterval | None, restriction: TimeRestriction) -> DagRunInfo | None:
        inherited: Any = super()
        run: DagRunInfo | None = inherited.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        return run

    def _gather(self, first: DagRunInfo, restriction: TimeRestriction) -> DagRunInfo:
        """One run of `first` and the intervals after it that are over by now."""
        spans = [_span_of(first)]
        while len(spans) < self._pack:
            following = self._next(spans[-1], restriction)
            if following is None or _span_of(following).end > datetime.now(UTC):
                break
            spans.append(_span_of(following))
        return _PackRun.of(len(spans), spans[0].start, spans[-1].end)

    def next_run_info_from_dag_model(self, *, dag_model: DagModel) -> DagRunInfo | None:
        """The run that `next_dagrun_info` returned before Airflow stored it."""
        inherited: Any = super()
        run: DagRunInfo | None = inherited.next_run_info_from_dag_model(dag_model=dag_model)
        return run and _PackRun(run.run_after, _span_of(run))

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo:
        """The run from which Airflow computes the next. A manual run with the logical date of a scheduled one counts
        as that one: by its own interval, which may end there, the next run would have this date again and again."""
        inherited: Any = super()
        run: DagRunInfo = inherited.run_info_from_dag_run(dag_run=dag_run)
        if dag_run.run_type == "manual" and (date := dag_run.logical_date) is not None:
            for span in self.within(date, date + timedelta(microseconds=1), 1):
                return _PackRun.of(1, span.start, span.end)
        return run

    def within(self, start: datetime, end: datetime, max_intervals: int) -> list[DataInterval]:
        """Up to `max_intervals` intervals of the schedule that start at or after `start` and before `end`."""
        everything = TimeRestriction(instance(start), None, catchup=True)
        intervals: list[DataInterval] = []
        step = self._next(None, everything)
        while step is not None and _span_of(step).start < end and len(intervals) < max_intervals:
            intervals.append(_span_of(step))
            step = self._next(intervals[-1], everything)
        return intervals

    def serialize(self) -> dict[str, Any]:
        inherited: Any = super()
        bounds = {name: at.isoformat() for name, at in (("first", self._first), ("last", self._last)) if at is not None}
        return {**inherited.serialize(), **bounds, **({"pack": self._pack} if self._pack > 1 else {})}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Any:
        inherited: Any = super()
        timetable: Any = inherited.deserialize(data).packing(data.get("pack", 1))
        first, last = (datetime.fromisoformat(data[name]) if name in data else None for name in ("first", "last"))
        return _bound(timetable, first, last)


def _span_of(run: DagRunInfo) -> DataInterval:
    assert run.data_interval is not None  # both timetables set it
    return run.data_interval


class CronIntervals(_Intervals, CronDataIntervalTimetable):
    """Data intervals between the moments of a cron expression, in UTC."""


class DeltaIntervals(_Intervals, DeltaDataIntervalTimetable):
    """Data intervals of one length, counted from the end of the last run's, or else from the first start. Without
    catchup Airflow counts from 1970, and skips a span that isn't made of whole intervals."""

    def _next(self, last: DataInterval | None, restriction: TimeRestriction) -> DagRunInfo | None:
        origin = last.end if last is not None else restriction.earliest
        if not restriction.catchup and origin is not None:
            passed = (instance(datetime.now(UTC)) - origin).as_timedelta()
            newest: DateTime = origin + self._delta * (passed // self._delta - 1)
            earliest = max(newest, restriction.earliest or newest)
            restriction = restriction._replace(earliest=earliest, catchup=True)
        return super()._next(last, restriction)


Intervals: TypeAlias = CronIntervals | DeltaIntervals


def intervals_of_schedule(
    schedule: str | timedelta, *, first: datetime | None = None, last: datetime | None = None, pack: int = 1
) -> Intervals:
    """A timetable of real data intervals in UTC, none of which starts before `first` or after `last`."""
    timetable: Intervals = (
        DeltaIntervals(schedule) if isinstance(schedule, timedelta) else CronIntervals(schedule, timezone="UTC")
    )
    return _bound(timetable.packing(pack), first, last)


def knows_its_bounds(timetable: Any) -> bool:
    """Return whether a DAG of `timetable` needs no start and end of its own."""
    return timetable is None or isinstance(timetable, _Intervals)


def _bound(timetable: Intervals, first: datetime | None, last: datetime | None) -> Intervals:
    timetable = timetable if first is None else timetable.starting(first)
    return timetable if last is None else timetable.ending(last)

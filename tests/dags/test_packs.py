"""Packs in Airflow: which epochs a run takes, what is refused, and what the schedule puts into one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from lockstep.epoch import Interval
from lockstep.errors import IllegalTransition, IntervalMissing, InvalidPipeline, RestateRefused
from tests.cases import cases
from tests.dags.airflow_parts import as_airflow_has_it, before_3_2, first_run, row_of
from tests.dags.pipelines import ORDERS, Numbers, pipeline_of

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def dag(**arguments: Any) -> Any:
    from lockstep.airflow.dag import epoch_dag

    return epoch_dag(ORDERS, **{"schedule": "@daily", "pack": 7, **arguments})


def cut(span: Interval, schedule: str | timedelta = "@daily", most: int = 7) -> list[Interval]:
    from lockstep.airflow import _run_conf

    return _run_conf.cut(ORDERS, span, schedule, most)


def days(first: float, last: float) -> Interval:
    return Interval(START + first * DAY, START + last * DAY)


def test_a_pack_is_one_task_that_tells_every_asset() -> None:
    made = dag()
    assert [task.task_id for task in made.tasks] == ["pack"]
    told = {asset.name for asset in made.get_task("pack").outlets}
    assert {name.partition(":")[0] for name in told} == {"orders/raw", "orders/copy"}
    assert made.max_active_runs == 1
    from lockstep.airflow.dag import epoch_dag

    assert epoch_dag(pipeline_of(Numbers()), pack=3).task_ids == ["pack"]


@cases("pack", [0, -1, True, 1.5, "7", 10_001])
def test_what_is_no_size_of_a_pack_and_a_schedule_that_says_not_how_long_intervals_are_are_refused(pack: Any) -> None:
    with pytest.raises(InvalidPipeline, match="a number from 1 to 10000"):
        dag(pack=pack)
    for schedule in (None, "@once", "@continuous"):
        with pytest.raises(InvalidPipeline, match="which defines the epochs' intervals"):
            dag(schedule=schedule)


@cases(
    "asked, refused, why",
    [
        ({"lockstep_restate": "a bug", "lockstep_restore": 7}, RestateRefused, "`lockstep restore` does"),
        ({"lockstep_replan": "new", "lockstep_replan_epoch": 7}, IllegalTransition, "`lockstep replan` does"),
    ],
)
def test_a_run_of_many_epochs_shows_no_earlier_rows_again(asked: Any, refused: Any, why: str) -> None:
    with pytest.raises(refused, match=why):
        dag().get_task("pack")._runs({"params": asked, "ti": SimpleNamespace(dag_id="orders", run_id="manual")})


def test_a_run_is_cut_into_the_intervals_of_the_schedule() -> None:
    assert cut(days(0, 3)) == [days(0, 1), days(1, 2), days(2, 3)]
    assert cut(days(0, 1)) == [days(0, 1)]
    assert cut(days(0, 3), timedelta(days=1)) == [days(0, 1), days(1, 2), days(2, 3)]
    months = cut(Interval(START, datetime(2024, 4, 1, tzinfo=UTC)), "@monthly")
    assert [one.start.month for one in months] == [1, 2, 3]
    assert cut(days(0.25, 0.5)) == [days(0.25, 0.5)]
    assert cut(days(0.25, 1)) == [days(0.25, 1)]
    assert cut(days(0, 0.5), timedelta(days=1)) == [days(0, 0.5)]
    assert len(cut(days(0, 7))) == 7
    with pytest.raises(IntervalMissing, match="more than 7 intervals"):
        cut(days(0, 8))
    with pytest.raises(IntervalMissing, match="more than 7 intervals"):
        cut(days(0, 4000))
    for span in (days(0.5, 2), days(0, 2.5), days(0.5, 2.5), days(0.5, 1.5)):
        with pytest.raises(IntervalMissing, match="isn't made of whole intervals"):
            cut(span)


def test_a_schedule_of_now_has_a_run_for_each_interval() -> None:
    from airflow.timetables.base import TimeRestriction

    yesterday = pendulum.today("UTC").subtract(days=1)
    restriction = TimeRestriction(yesterday, None, catchup=True)
    timetable = dag().timetable
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    second = timetable.next_dagrun_info(last_automated_data_interval=first.data_interval, restriction=restriction)
    assert (first.data_interval.start, first.data_interval.end) == (yesterday, yesterday.add(days=1))
    assert (second.data_interval.start, second.data_interval.end) == (yesterday.add(days=1), yesterday.add(days=2))


@cases("schedule", ["@daily", timedelta(days=1)])
@cases("last", [None, START + 9 * DAY])
def test_a_schedule_that_catches_up_and_a_backfill_put_a_pack_into_one_run(
    schedule: Any, last: datetime | None
) -> None:
    timetable = dag(schedule=schedule, end_date=last).timetable
    again = type(timetable).deserialize(timetable.serialize())
    until = START + 9 * DAY
    assert scheduled(again, START, until) == scheduled(timetable, START, until) == [days(0, 7), days(7, 10)]
    some = scheduled(dag(start_date=START).timetable, START + 2 * DAY, START + 11 * DAY)
    assert some == [days(2, 9), days(9, 12)], "a backfill of these takes no other"


@cases("schedule", ["@daily", timedelta(days=1), "*/5 * * * *"])
def test_packs_that_only_begin_or_only_end_together_are_runs_of_their_own(schedule: Any) -> None:
    """Airflow takes a logical date, or a run's id, that there is already for the same run: the longer pack's other
    intervals would never run."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.types import DagRunType

    made: Any = as_airflow_has_it(dag(schedule=schedule, pack=31))
    step = timedelta(minutes=5) if isinstance(schedule, str) and schedule[0] == "*" else DAY

    def backfill(first: int, last: int) -> list[Any]:
        return [*made.iter_dagrun_infos_between(START + first * step, START + last * step)]

    runs = [run for ends in ((0, 0), (0, 4), (0, 30), (4, 4), (4, 5), (14, 30), (30, 30)) for run in backfill(*ends)]
    assert len(runs) == 7
    named: dict[str, Any] = {"run_type": DagRunType.BACKFILL_JOB, "logical_date": START}
    ids = {DagRun.generate_run_id(run_after=run.run_after, **named) for run in runs}
    assert len({run.logical_date for run in runs}) == len(ids) == 7
    assert all(timedelta() <= run.logical_date - run.data_interval.start < timedelta(seconds=1) for run in runs)
    single = next(run for run in runs if run.data_interval.end - run.data_interval.start == step)
    assert (single.logical_date, single.run_after) == (single.data_interval.start, single.data_interval.end)
    again = [(run.logical_date, run.run_after) for run in backfill(0, 30)]
    assert again == [(run.logical_date, run.run_after) for run in runs[2:3]], "reprocessing finds its own run"


def test_a_scheduled_pack_keeps_its_logical_date_while_airflow_stores_it() -> None:
    made: Any = as_airflow_has_it(dag(start_date=START, catchup=True))
    stored, found = row_of(made), first_run(made)
    assert stored.next_dagrun == found.logical_date != START
    assert (found.data_interval.start, found.data_interval.end) == (START, START + 7 * DAY)
    if not before_3_2():  # which makes the run of this
        again = made.timetable.next_run_info_from_dag_model(dag_model=stored)
        assert (again, again.logical_date) == (found, found.logical_date)


def scheduled(timetable: Any, earliest: datetime = START, latest: datetime | None = None) -> list[Interval]:
    from airflow.timetables.base import TimeRestriction

    until = pendulum.instance(latest) if latest else None
    restriction = TimeRestriction(pendulum.instance(earliest), until, catchup=True)
    found: list[Any] = []
    while info := timetable.next_dagrun_info(
        last_automated_data_interval=found[-1] if found else None, restriction=restriction
    ):
        found.append(info.data_interval)
    return [Interval(one.start, one.end) for one in found]

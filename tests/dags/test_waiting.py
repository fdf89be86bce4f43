"""How a task waits for what others have to do first: rescheduled or deferred, with growing pauses, and not for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import (
    EpochBusy,
    KeysHeld,
    LedgerUnavailable,
    OutOfOrder,
    PublishBusy,
    Retryable,
    SourceNotReady,
    TargetFull,
    TooManyInFlight,
    WaitedInVain,
)
from lockstep.protocol.runtime import Runtime
from tests.cases import cases
from tests.dags.airflow_parts import deferred, rescheduled
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lockstep.airflow._airflow import TaskDeferred
    from lockstep.airflow.operators import EpochOperator
    from lockstep.airflow.triggers import FilesTrigger

FILE = "/landing/2013-01-05.csv"
MISSING_FILE = SourceNotReady(f"{FILE} is expected, and there is no such file yet", [FILE])
MISSING = SourceNotReady("landing/2013-01-05.csv is expected, and there is no such file yet")
HOURS = timedelta(hours=2)


def missing(error: Retryable, *, at_begin: bool = False, **arguments: Any) -> EpochOperator:
    """A task that finds that something is missing, always; `at_begin`: the one that waits for input."""
    from lockstep.airflow._phases import retry_arguments
    from lockstep.airflow.operators import BeginOperator, EpochOperator

    class Missing(EpochOperator):
        def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
            raise error

    class MissingAtBegin(Missing, BeginOperator):
        perform = EpochOperator.perform  # no ledger to migrate

    kind = MissingAtBegin if at_begin else Missing
    return kind(task_id="missing", pipeline=ORDERS, **{**retry_arguments(), **arguments})


def waiting_for(span: timedelta) -> Context:
    """The context of a task that first looked so long ago; never, for no span."""
    first = datetime.now(UTC) - span if span else None
    ti = SimpleNamespace(dag_id="orders", run_id="r", get_first_reschedule_date=lambda context: first)
    return cast("Context", {"ti": ti, "params": {}, "task": None})


@pytest.fixture
def no_ledger(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """Runs operators without a ledger; the list has how long each wait keeps the lease."""
    from lockstep.airflow import operators

    kept: list[timedelta] = []

    @contextmanager
    def opened(*arguments: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(operators, "open_runtime", opened)
    monkeypatch.setattr(operators, "keep_lease", lambda runtime, run, pause: kept.append(pause))
    return kept


@cases("error", [OutOfOrder, KeysHeld, PublishBusy])
def test_any_task_waits_for_what_other_epochs_have_to_do(error: type[Retryable], no_ledger: list[timedelta]) -> None:
    no_ledger.clear()
    with rescheduled():
        missing(error("epoch 1 is planned")).execute(waiting_for(timedelta()))
    assert no_ledger == [timedelta(seconds=5)]


@cases("error", [SourceNotReady, EpochBusy, TooManyInFlight, TargetFull])
def test_only_begin_waits_for_input_another_run_and_room(error: type[Retryable], no_ledger: list[timedelta]) -> None:
    no_ledger.clear()
    with pytest.raises(error):
        missing(error("not yet")).execute(waiting_for(timedelta()))
    with pytest.raises(LedgerUnavailable):
        missing(LedgerUnavailable("no answer"), at_begin=True).execute(waiting_for(timedelta()))
    assert not no_ledger, "a failed try, and no wait"
    with rescheduled():
        missing(error("not yet"), at_begin=True).execute(waiting_for(timedelta()))


def test_pauses_grow_up_to_the_longest_and_end_with_the_patience() -> None:
    from lockstep.airflow._base_operator import wait_after

    task = missing(MISSING)

    def pause(waited: timedelta) -> int:
        return round(wait_after(MISSING, task, waiting_for(waited), HOURS).pause.total_seconds())

    spans = [0, 10, 60, 3600, 7100]
    assert [pause(timedelta(seconds=span)) for span in spans] == [5, 5, 30, 300, 100]


@pytest.mark.fault("H24")
def test_at_the_end_of_its_patience_a_task_fails_for_good_and_says_for_what_it_waited(
    no_ledger: list[timedelta],
) -> None:
    task = missing(MISSING, at_begin=True, max_wait=HOURS)
    with pytest.raises(WaitedInVain, match=r"waited 2:00:00 in vain: landing/.* from begin .*max_wait="):
        task.execute(waiting_for(HOURS))


def wake(task: EpochOperator, left: TaskDeferred, found: Sequence[str] = ()) -> None:
    """What Airflow does when the trigger has fired; it keeps arguments as JSON."""
    kwargs = json.loads(json.dumps({**(left.kwargs or {}), "event": list(found)}))
    task.resume_execution(left.method_name, kwargs, waiting_for(timedelta()))


def test_a_deferrable_task_leaves_looking_for_its_files_to_the_triggerer(no_ledger: list[timedelta]) -> None:
    with deferred() as left:
        missing(MISSING_FILE, at_begin=True, deferrable=True).execute(waiting_for(timedelta()))
    path, arguments = left[0].trigger.serialize()
    assert path == "lockstep.airflow.triggers.FilesTrigger"
    assert (arguments["places"], arguments["every"]) == ([FILE], 5.0)
    assert json.loads(json.dumps(arguments)) == arguments
    ends = datetime.fromisoformat(arguments["until"]) - datetime.fromisoformat(arguments["since"])
    assert timedelta(minutes=5) <= ends < timedelta(minutes=6)  # the longest pause, whatever the triggerer finds
    assert left[0].timeout is not None  # and without any triggerer the scheduler wakes it


@cases("error", [MISSING, EpochBusy("busy"), TooManyInFlight("two"), OutOfOrder("not yet")])
def test_what_no_triggerer_can_look_for_is_waited_for_rescheduled(error: Retryable, no_ledger: list[timedelta]) -> None:
    with rescheduled():
        missing(error, at_begin=True, deferrable=True).execute(waiting_for(timedelta()))


def test_airflows_default_for_deferrable_operators_counts_unless_a_task_is_told_otherwise(
    no_ledger: list[timedelta], monkeypatch: pytest.MonkeyPatch
) -> None:
    with rescheduled():
        missing(MISSING_FILE, at_begin=True).execute(waiting_for(timedelta()))
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    with deferred():
        missing(MISSING_FILE, at_begin=True).execute(waiting_for(timedelta()))
    with rescheduled():
        missing(MISSING_FILE, at_begin=True, deferrable=False).execute(waiting_for(timedelta()))


def test_a_task_that_is_woken_counts_its_patience_from_the_first_look(no_ledger: list[timedelta]) -> None:
    task = missing(MISSING_FILE, at_begin=True, deferrable=True)
    with deferred() as left:
        task.execute(waiting_for(timedelta()))
    assert left[0].kwargs is not None
    left[0].kwargs["since"] = (datetime.now(UTC) - HOURS).isoformat()
    with pytest.raises(WaitedInVain, match="waited 2:00:00 in vain"):
        wake(task, left[0])


def test_a_triggerer_that_sees_what_the_task_does_not_wakes_it_once_and_not_for_ever(
    no_ledger: list[timedelta],
) -> None:
    other = "/landing/other.csv"
    task = missing(SourceNotReady("both are missing", [FILE, other]), at_begin=True, deferrable=True)
    with deferred() as left:
        task.execute(waiting_for(timedelta()))
    with deferred() as again:
        wake(task, left[0], [FILE])
    assert again[0].trigger.serialize()[1]["places"] == [other]
    with rescheduled():
        wake(task, again[0], [other])


def trigger_at(place: str, lasts: timedelta) -> FilesTrigger:
    """As a triggerer makes it, from what was kept of one that another process made."""
    from lockstep.airflow.triggers import FilesTrigger

    now = datetime.now(UTC)
    _, arguments = FilesTrigger([place], now.isoformat(), (now + lasts).isoformat(), 0.01).serialize()
    return FilesTrigger(**json.loads(json.dumps(arguments)))


async def first_event(trigger: FilesTrigger) -> object:
    return (await anext(trigger.run())).payload


@cases("name", ["2013-01-05.csv", "2013-*.csv"])
def test_the_trigger_fires_when_the_file_is_there(tmp_path: Path, name: str) -> None:
    async def land() -> object:
        looking = asyncio.ensure_future(first_event(trigger_at(str(tmp_path / name), HOURS)))
        (tmp_path / "2013-01-05.csv.tmp").touch()
        done, _ = await asyncio.wait([looking], timeout=0.1)
        assert not done  # it is being written
        (tmp_path / "2013-01-05.csv.tmp").rename(tmp_path / "2013-01-05.csv")
        return await asyncio.wait_for(looking, 60)

    assert asyncio.run(land()) == [str(tmp_path / name)]


@cases("place", ["nowhere/2013-01-05.csv", "ftp://what/is/that.csv"])
def test_a_trigger_that_sees_nothing_or_cannot_look_fires_when_its_time_is_over(tmp_path: Path, place: str) -> None:
    whole = place if "://" in place else str(tmp_path / place)
    assert asyncio.run(first_event(trigger_at(whole, timedelta(seconds=0.1)))) == []

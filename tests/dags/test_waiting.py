"""How a task waits for what others have to do first: rescheduled, with growing pauses, and not for ever."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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
from lockstep.runtime import Runtime
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lockstep.orchestration.operators import EpochOperator

MISSING = SourceNotReady("landing/2013-01-05.csv is expected, and there is no such file yet")
HOURS = timedelta(hours=2)


def missing(error: Retryable, *, at_begin: bool = False, **arguments: Any) -> EpochOperator:
    """A task that finds that something is missing, always; `at_begin`: the one that waits for input."""
    from lockstep.orchestration._retrying import retry_arguments
    from lockstep.orchestration.operators import BeginOperator, EpochOperator

    class Missing(EpochOperator):
        def act(self, runtime: Runtime, run: RunKey, context: Context) -> dict[str, Any]:
            raise error

    class MissingAtBegin(Missing, BeginOperator):
        perform = EpochOperator.perform  # no ledger to migrate

    kind = MissingAtBegin if at_begin else Missing
    return kind(task_id="missing", pipeline=ORDERS, **{**retry_arguments(), **arguments})


@contextmanager
def rescheduled() -> Iterator[None]:
    from lockstep.orchestration._airflow import AirflowRescheduleException

    with pytest.raises(AirflowRescheduleException):
        yield


def waiting_for(span: timedelta) -> Context:
    """The context of a task that first looked so long ago; never, for no span."""
    first = datetime.now(UTC) - span if span else None
    ti = SimpleNamespace(dag_id="orders", run_id="r", get_first_reschedule_date=lambda context: first)
    return cast("Context", {"ti": ti, "params": {}, "task": None})


@pytest.fixture
def no_ledger(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """Runs operators without a ledger; the list has how long each wait keeps the lease."""
    from lockstep.orchestration import operators

    kept: list[timedelta] = []

    @contextmanager
    def opened(*arguments: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(operators, "open_runtime", opened)
    monkeypatch.setattr(operators, "hold_meanwhile", lambda runtime, run, pause: kept.append(pause))
    return kept


@pytest.mark.parametrize("error", [OutOfOrder, KeysHeld, PublishBusy])
def test_any_task_waits_for_what_other_epochs_have_to_do(error: type[Retryable], no_ledger: list[timedelta]) -> None:
    with rescheduled():
        missing(error("epoch 1 is planned")).execute(waiting_for(timedelta()))
    assert no_ledger == [timedelta(seconds=5)]


@pytest.mark.parametrize("error", [SourceNotReady, EpochBusy, TooManyInFlight, TargetFull])
def test_only_begin_waits_for_input_another_run_and_room(error: type[Retryable], no_ledger: list[timedelta]) -> None:
    with rescheduled():
        missing(error("not yet"), at_begin=True).execute(waiting_for(timedelta()))
    with pytest.raises(error):
        missing(error("not yet")).execute(waiting_for(timedelta()))


def test_what_breaks_is_a_failed_try_and_no_wait(no_ledger: list[timedelta]) -> None:
    with pytest.raises(LedgerUnavailable):
        missing(LedgerUnavailable("no answer"), at_begin=True).execute(waiting_for(timedelta()))
    assert not no_ledger


def test_the_log_says_in_one_line_what_is_waited_for_and_until_when(
    no_ledger: list[timedelta], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "lockstep"), rescheduled():
        missing(MISSING, at_begin=True).execute(waiting_for(timedelta(seconds=60)))
    [line] = [record.getMessage() for record in caplog.records if record.name.startswith("lockstep")]
    assert line == f"waiting, SourceNotReady: {MISSING}; looks again in 0:00:30, gives up in 1:59:00"


def test_pauses_grow_up_to_the_longest_and_end_with_the_patience() -> None:
    from lockstep.orchestration._waiting import pause_after

    task = missing(MISSING)

    def pause(waited: timedelta) -> int:
        return round(pause_after(MISSING, task, waiting_for(waited), HOURS).total_seconds())

    spans = [0, 10, 60, 3600, 7100]
    assert [pause(timedelta(seconds=span)) for span in spans] == [5, 5, 30, 300, 100]


def test_at_the_end_of_its_patience_a_task_fails_for_good_and_says_for_what_it_waited(
    no_ledger: list[timedelta],
) -> None:
    task = missing(MISSING, at_begin=True, patience=HOURS)
    with pytest.raises(WaitedInVain, match=r"waited 2:00:00 in vain: landing/.* from begin .*patience="):
        task.execute(waiting_for(HOURS))

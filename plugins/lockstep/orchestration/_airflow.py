"""What the supported versions of Airflow have in different places, or one of them lacks: the only place that knows.

Types are those of the version that requirements.txt locks. 3.2 moved timetables and exceptions into `airflow.sdk`, and
made a number of the flag for growing pauses. 3.3 brought retry policies, and before that only an `AirflowFailException`
ends a task's tries; and task groups with documentation.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup

from lockstep.errors import LockstepError, Terminal

if TYPE_CHECKING:
    from airflow.sdk import (
        CronDataIntervalTimetable,
        CronTriggerTimetable,
        DeltaTriggerTimetable,
        ExceptionRetryPolicy,
        RetryAction,
        RetryRule,
    )
    from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
        AirflowSkipException,
    )

    TWOFOLD: float
    HAS_RETRY_POLICIES: bool
else:
    try:
        from airflow.sdk import (
            CronDataIntervalTimetable,
            CronTriggerTimetable,
            DeltaTriggerTimetable,
        )
        from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable  # nothing public names it
        from airflow.sdk.exceptions import (
            AirflowException,
            AirflowFailException,
            AirflowNotFoundException,
            AirflowRescheduleException,
            AirflowSkipException,
        )

        TWOFOLD = 2.0
    except ImportError:  # 3.1
        from airflow.exceptions import (
            AirflowException,
            AirflowFailException,
            AirflowNotFoundException,
            AirflowRescheduleException,
            AirflowSkipException,
        )
        from airflow.timetables.interval import CronDataIntervalTimetable
        from airflow.timetables.simple import AssetTriggeredTimetable
        from airflow.timetables.trigger import CronTriggerTimetable, DeltaTriggerTimetable

        TWOFOLD = True
    try:
        from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

        HAS_RETRY_POLICIES = True
    except ImportError:  # 3.1 and 3.2
        HAS_RETRY_POLICIES = False

__all__ = [
    "TWOFOLD",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "AirflowSkipException",
    "AssetTriggeredTimetable",
    "CronDataIntervalTimetable",
    "CronTriggerTimetable",
    "DeltaTriggerTimetable",
    "as_raised",
    "documentation_of_group",
    "growth_of",
    "no_retry_of_terminal",
    "teams_of",
    "width_of",
]


@cache
def no_retry_of_terminal() -> Mapping[str, Any]:
    """Arguments of a task that isn't tried again after a `Terminal`; none where only `as_raised` can say so."""
    if not HAS_RETRY_POLICIES:
        return {}
    rule = RetryRule(exception=Terminal, action=RetryAction.FAIL, reason="trying again can't help")
    return {"retry_policy": ExceptionRetryPolicy(rules=[rule])}


def as_raised(error: LockstepError) -> Exception:
    """`error`; where no retry policy tells by its class whether to try again, a `Terminal` becomes of a class that
    Airflow doesn't try again, too. It stays what it was for callbacks."""
    if not HAS_RETRY_POLICIES and isinstance(error, Terminal):
        kind = type(error)
        error.__class__ = type(kind.__name__, (kind, AirflowFailException), {"__module__": kind.__module__})
    return error


def growth_of(task: Any) -> float:
    """By what each pause between a task's tries is longer than the one before; `TWOFOLD` is how to say 2."""
    told = task.retry_exponential_backoff
    return 2.0 if told and TWOFOLD is True else float(told or 1.0)


def documentation_of_group(markdown: str) -> dict[str, Any]:
    """Arguments of a task group."""
    return {"doc_md": markdown} if "doc_md" in inspect.signature(TaskGroup.__init__).parameters else {}


def width_of(timetable: CronTriggerTimetable | DeltaTriggerTimetable) -> Any:
    """Of the data intervals that a trigger's timetable makes; a timedelta, as a rule of none."""
    public = getattr(timetable, "interval", None)
    return getattr(timetable, "_interval", None) if public is None else public


def teams_of(dag_ids: Sequence[str]) -> Mapping[str, str | None]:
    """{DAG: its team}; in the api-server only, as it asks Airflow's database."""
    from airflow.models.dag import DagModel

    if not dag_ids:
        return {}
    if hasattr(DagModel, "get_dag_id_to_team_name_mapping"):
        return DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))
    return {dag_id: DagModel.get_team_name(dag_id) for dag_id in dag_ids}

"""What the supported versions of Airflow have in different places, or one of them lacks: the only place that knows.

Types are those of the version that requirements.txt locks. 3.2 moved timetables and exceptions into `airflow.sdk`, and
made a number of the flag for growing pauses. 3.3 brought retry policies, and before that only an `AirflowFailException`
ends a task's tries; task groups with documentation; and partitions that a task names when it tells assets. The client
of metrics moved into `airflow.sdk` with 3.2, which also gives events in parts, and locks a task's socket to its
supervisor.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, TaskGroup
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time import comms  # nothing public asks for events of assets that are no inlets
from airflow.sdk.execution_time.context import OutletEventAccessor

from lockstep.errors import EventsUnread, LockstepError, Terminal

if TYPE_CHECKING:
    from airflow.sdk import (
        BaseOperator,
        Context,
        CronDataIntervalTimetable,
        CronTriggerTimetable,
        DeltaTriggerTimetable,
        ExceptionRetryPolicy,
        RetryAction,
        RetryRule,
    )
    from airflow.sdk.configuration import conf
    from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
        AirflowSkipException,
        AirflowTaskTimeout,
        TaskDeferred,
    )

    Stats: Any
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
            AirflowTaskTimeout,
            TaskDeferred,
        )

        TWOFOLD = 2.0
    except ImportError:  # 3.1
        from airflow.exceptions import (
            AirflowException,
            AirflowFailException,
            AirflowNotFoundException,
            AirflowRescheduleException,
            AirflowSkipException,
            AirflowTaskTimeout,
            TaskDeferred,
        )
        from airflow.timetables.interval import CronDataIntervalTimetable
        from airflow.timetables.simple import AssetTriggeredTimetable
        from airflow.timetables.trigger import CronTriggerTimetable, DeltaTriggerTimetable

        TWOFOLD = True
    try:
        from airflow.sdk.observability.stats import Stats
    except ImportError:  # 3.1
        from airflow.stats import Stats
    try:
        from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

        HAS_RETRY_POLICIES = True
    except ImportError:  # 3.1 and 3.2
        HAS_RETRY_POLICIES = False
    try:
        from airflow.sdk.configuration import conf
    except ImportError:  # 3.1
        from airflow.configuration import conf

__all__ = [
    "HAS_PARTITIONS",
    "TWOFOLD",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "AirflowRuntimeError",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "AssetTriggeredTimetable",
    "CronDataIntervalTimetable",
    "CronTriggerTimetable",
    "DeltaTriggerTimetable",
    "Event",
    "Stats",
    "TaskDeferred",
    "as_raised",
    "defers_by_default",
    "documentation_of_group",
    "emit_events",
    "events_of",
    "growth_of",
    "is_over",
    "no_retry_of_terminal",
    "teams_of",
    "width_of",
]

_log = logging.getLogger(__name__)
_AT_ONCE = 500  #: events in an answer
#: Whether a task may name the partition that an event is of: in 3.2 only a run has one.
HAS_PARTITIONS = hasattr(OutletEventAccessor, "add_partitions")


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


def defers_by_default() -> bool:
    """Whether operators that can wait without a worker do, unless they are told otherwise."""
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def growth_of(task: Any) -> float:
    """By what each pause between a task's tries is longer than the one before; `TWOFOLD` is how to say 2."""
    growth = task.retry_exponential_backoff
    return 2.0 if growth and TWOFOLD is True else float(growth or 1.0)


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


@dataclass(frozen=True)
class Event:
    """Of an asset. `alias`: through which it is told; None: the task itself has the asset."""

    asset: Asset
    extra: dict[str, Any]
    partition: str | None = None
    alias: AssetAlias | None = None


class _Apart(AssetUniqueKey):
    """The key of an asset that is told of more than once, which Airflow otherwise keeps one event of."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def emit_events(task: BaseOperator, context: Context, events: Sequence[Event]) -> None:
    """Have Airflow write these events, and no others, when the task has succeeded. What it does then goes by the task's
    outlets as they are at its end: it writes an event for each. In a run with a partition key Airflow gives that to
    every event without one, which then starts no DAG: these are left to the recovery DAG."""
    if getattr(context.get("dag_run"), "partition_key", None) is not None:
        events = [event for event in events if event.partition is not None]
    task.outlets = list({outlet.name: outlet for outlet in (event.alias or event.asset for event in events)}.values())
    assets: set[str] = set()
    accessors: Any = context["outlet_events"] if events else None
    for event in events:
        if event.alias is not None:
            accessors[event.alias].add(event.asset, extra=event.extra)
            continue
        accessor = accessors[event.asset]
        if event.asset.name in assets:
            key = _Apart(event.asset.name, event.asset.uri)
            accessor = accessors._dict[key] = OutletEventAccessor(key=key)
        assets.add(event.asset.name)
        accessor.extra = event.extra
        if event.partition is not None:
            accessor.add_partitions(event.partition)


def events_of(asset: Asset) -> Iterator[dict[str, Any]]:
    """The `extra` of every event that Airflow has of the asset: the newest first, in parts, as far as somebody takes
    them; 3.1 tells all at once, the oldest first. Where one part ends and the next begins Airflow's own rows say, so
    nothing depends on what any clock shows. Raises `EventsUnread`."""
    in_parts = "limit" in comms.GetAssetEventByAsset.model_fields
    limit, before = _AT_ONCE, None
    while True:
        try:
            events = _ask_supervisor(
                comms.GetAssetEventByAsset, name=asset.name, uri=asset.uri, before=before, limit=limit, ascending=False
            ).asset_events
        except Exception as error:  # of the api-server, the socket, or the answer's form: whichever each version has
            reason = (str(error).strip().splitlines() or [""])[0]
            raise EventsUnread(
                f"Airflow's events of asset {asset.name} can't be read: {type(error).__name__}: {reason}"
            ) from error
        yield from (event.extra or {} for event in events)
        if not in_parts or len(events) < limit:
            return
        if events[-1].timestamp == before:  # the part was of one moment alone
            limit *= 2
        before = events[-1].timestamp


def is_over(dag_id: str, run_id: str) -> bool:
    """Whether a run has ended, or is gone."""
    try:
        state = _ask_supervisor(comms.GetDagRunState, dag_id=dag_id, run_id=run_id).state
    except Exception as unknown:  # whichever error each version has for it
        _log.debug("run %s of %s: %s", run_id, dag_id, unknown)
        return True
    return str(state) not in ("queued", "running")


def _ask_supervisor(message: Any, **arguments: Any) -> Any:
    """What the api-server answers to a task; what a version can't be told is left out."""
    from airflow.sdk.execution_time import task_runner  # has it while a task runs

    supported = {name: value for name, value in arguments.items() if name in message.model_fields}
    answer = task_runner.SUPERVISOR_COMMS.send(message(**supported))
    if isinstance(answer, comms.ErrorResponse):
        raise RuntimeError(f"Airflow answers {answer.error}")
    return answer


def one_at_a_time(decoder: Any) -> None:
    """Have a class of Airflow's send one question at a time, whichever threads ask: for a login again, for the jobs of
    a pack, in a user's launcher, and Airflow itself where it masks a secret. Otherwise they get each other's answers.
    Nothing is done where Airflow has a lock of its own."""
    if hasattr(decoder, "_thread_lock"):
        return
    send, lock = decoder.send, threading.RLock()  # a signal's handler may ask in the midst of a question

    @wraps(send)
    def locked_send(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with lock:
            return send(self, *arguments, **keywords)

    decoder.send = locked_send


one_at_a_time(comms.CommsDecoder)

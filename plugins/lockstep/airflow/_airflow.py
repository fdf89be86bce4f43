"""Differences between the supported versions of Airflow, all in this module.

Types are those of the version that requirements.txt locks. 3.2 moved timetables, exceptions and the client of metrics
into `airflow.sdk`, made the flag for exponential backoff a number, returns events in parts, and locks a task's socket
to its supervisor. 3.3 added retry policies (before, only an `AirflowFailException` ends a task's retries),
documentation of task groups, and asset events with a partition.
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
from airflow.sdk.execution_time import comms  # no public API for events of assets that are no inlets
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
        from airflow.sdk.definitions.timetables.assets import AssetTriggeredTimetable  # no public name
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
_PAGE = 500  #: events in a response
#: A task can set the partition of an event; in 3.2 only a run has one.
HAS_PARTITIONS = hasattr(OutletEventAccessor, "add_partitions")


@cache
def no_retry_of_terminal() -> Mapping[str, Any]:
    """Arguments of a task that isn't retried after a `Terminal`; empty where Airflow has no retry policies, see
    `as_raised`."""
    if not HAS_RETRY_POLICIES:
        return {}
    rule = RetryRule(exception=Terminal, action=RetryAction.FAIL, reason="a retry can't help")
    return {"retry_policy": ExceptionRetryPolicy(rules=[rule])}


def as_raised(error: LockstepError) -> Exception:
    """The error to raise for `error`. Without retry policies, a `Terminal` gets a class that is also an
    `AirflowFailException`, which Airflow doesn't retry. Callbacks still see its original class."""
    if not HAS_RETRY_POLICIES and isinstance(error, Terminal):
        kind = type(error)
        error.__class__ = type(kind.__name__, (kind, AirflowFailException), {"__module__": kind.__module__})
    return error


def defers_by_default() -> bool:
    """The default of `deferrable`, from Airflow's configuration."""
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def growth_of(task: Any) -> float:
    """Factor by which each pause between a task's tries is longer than the last; `TWOFOLD` is how to set 2."""
    growth = task.retry_exponential_backoff
    return 2.0 if growth and TWOFOLD is True else float(growth or 1.0)


def documentation_of_group(markdown: str) -> dict[str, Any]:
    """Arguments that document a task group."""
    return {"doc_md": markdown} if "doc_md" in inspect.signature(TaskGroup.__init__).parameters else {}


def width_of(timetable: CronTriggerTimetable | DeltaTriggerTimetable) -> Any:
    """Length of the data intervals that a trigger timetable makes, usually a timedelta of 0."""
    public = getattr(timetable, "interval", None)
    return getattr(timetable, "_interval", None) if public is None else public


def teams_of(dag_ids: Sequence[str]) -> Mapping[str, str | None]:
    """{DAG: its team}; only in the api-server, as it reads Airflow's database."""
    from airflow.models.dag import DagModel

    if not dag_ids:
        return {}
    if hasattr(DagModel, "get_dag_id_to_team_name_mapping"):
        return DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))
    return {dag_id: DagModel.get_team_name(dag_id) for dag_id in dag_ids}


@dataclass(frozen=True)
class Event:
    """An asset event. `alias`: the alias through which it is emitted; None if the asset is an outlet of the task."""

    asset: Asset
    extra: dict[str, Any]
    partition: str | None = None
    alias: AssetAlias | None = None


class _Apart(AssetUniqueKey):
    """Key of an asset in a task with several events of it, of which Airflow otherwise keeps only one."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def emit_events(task: BaseOperator, context: Context, events: Sequence[Event]) -> None:
    """Let Airflow write exactly these events when the task succeeds: it writes one for each of the task's outlets as
    they are at its end. In a run with a partition key Airflow gives that key to every event without one, which then
    triggers no DAG: such events are left to the recovery DAG."""
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
    """Yield the `extra` of the asset's events: newest first and page by page; Airflow 3.1 returns all at once, oldest
    first. Pages are delimited by Airflow's own timestamps, so no other clock matters. Raises `EventsUnread`."""
    in_parts = "limit" in comms.GetAssetEventByAsset.model_fields
    limit, before = _PAGE, None
    while True:
        try:
            events = _ask_supervisor(
                comms.GetAssetEventByAsset, name=asset.name, uri=asset.uri, before=before, limit=limit, ascending=False
            ).asset_events
        except Exception as error:  # of the api-server, the socket or the response's form; differs by version
            reason = (str(error).strip().splitlines() or [""])[0]
            raise EventsUnread(
                f"Airflow's events of asset {asset.name} can't be read: {type(error).__name__}: {reason}"
            ) from error
        yield from (event.extra or {} for event in events)
        if not in_parts or len(events) < limit:
            return
        if events[-1].timestamp == before:  # the whole page has one timestamp
            limit *= 2
        before = events[-1].timestamp


def is_over(dag_id: str, run_id: str) -> bool:
    """Return whether a run has ended or is gone."""
    try:
        state = _ask_supervisor(comms.GetDagRunState, dag_id=dag_id, run_id=run_id).state
    except Exception as unknown:  # differs by version
        _log.debug("run %s of %s: %s", run_id, dag_id, unknown)
        return True
    return str(state) not in ("queued", "running")


def _ask_supervisor(message: Any, **arguments: Any) -> Any:
    """Send a message to the api-server through the task's supervisor; leaves out arguments that this version doesn't
    have."""
    from airflow.sdk.execution_time import task_runner  # set while a task runs

    supported = {name: value for name, value in arguments.items() if name in message.model_fields}
    answer = task_runner.SUPERVISOR_COMMS.send(message(**supported))
    if isinstance(answer, comms.ErrorResponse):
        raise RuntimeError(f"Airflow returned {answer.error}")
    return answer


def one_at_a_time(decoder: Any) -> None:
    """Serialize the requests that `decoder` sends to the supervisor. Several threads send them: for renewed logins, the
    jobs of a pack, a user's launcher, and Airflow's masking of secrets; without a lock they would get each other's
    answers. Does nothing for an Airflow with a lock of its own."""
    if hasattr(decoder, "_thread_lock"):
        return
    send, lock = decoder.send, threading.RLock()  # a signal handler may interrupt a request

    @wraps(send)
    def locked_send(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with lock:
            return send(self, *arguments, **keywords)

    decoder.send = locked_send


one_at_a_time(comms.CommsDecoder)

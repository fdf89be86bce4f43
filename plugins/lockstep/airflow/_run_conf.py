"""What a run is asked to do: its data interval, and the requests in its conf to replan, restate, restore, recover or
resolve.

Airflow merges a run's conf into the params of its DAG, except with `[core] dag_run_conf_overrides_params = False`. The
conf counts here either way: a run that was asked to replan or restate must not go on as a usual run and end green.
Values come from the user who triggered the run, so all of them are checked.

No DAG params are declared for the interval: Airflow's own forms ask for one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lockstep.airflow._airflow import AssetTriggeredTimetable, CronTriggerTimetable, DeltaTriggerTimetable, width_of
from lockstep.airflow.timetables import intervals_of_schedule
from lockstep.epoch import Interval, Json, KeyedBy, RunKey
from lockstep.errors import IllegalTransition, IntervalMissing, InvalidPipeline, RestateRefused
from lockstep.features.generations import require_input, require_number, require_reason
from lockstep.pipeline import Pipeline

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

START, END = "interval_start", "interval_end"
REPLAN, REPLAN_EPOCH = "lockstep_replan", "lockstep_replan_epoch"
RESTATE, REQUEST, RESTORE = "lockstep_restate", "lockstep_request", "lockstep_restore"
INPUT, RESTATE_EPOCH, REPLACES = "lockstep_input", "lockstep_epoch", "lockstep_replaces"
_KEYS = frozenset({RESTATE, REQUEST, RESTORE, INPUT, RESTATE_EPOCH, REPLACES, REPLAN, REPLAN_EPOCH})
#: keys of the recovery DAG
PIPELINE, RECOVERY_GRACE = "pipeline", "recovery_grace_minutes"
RESOLVE_EPOCH, RESOLVE_SINK, RESOLVE_ENTRY = "resolve_epoch", "resolve_sink", "resolve_entry"

MAX_MINUTES = 60 * 24 * 365
_UNATTENDED = frozenset({"scheduled", "backfill"})  #: types of runs that are not triggered through a form
_NOT_INTERVALS = frozenset({"@once", "@continuous"})
_WAY_OUT = (
    'trigger it with one: in the form Data Interval, "Specify Manually"; by REST data_interval_start and '
    f'data_interval_end, with a logical_date; or a conf {{"{START}": "2013-01-01T00:00:00+00:00", '
    f'"{END}": "2013-01-02T00:00:00+00:00"}}'
)


def read_conf(context: Context) -> Mapping[str, Any]:
    """The run's conf over the params of its DAG, by name."""
    run = context.get("dag_run")
    conf = run.conf if run is not None else None
    return {**context["params"], **(conf or {})}


def _read_conf_without_defaults(context: Context) -> Mapping[str, Any]:
    """The conf as in `read_conf`, but for scheduled runs and backfills without params: a param of the DAG that
    happens to have the name of one of Lockstep's keys must not give every run the same interval."""
    run = context.get("dag_run")
    if run is not None and getattr(run, "run_type", None) in _UNATTENDED:
        return run.conf or {}
    return read_conf(context)


# --- data intervals ---


def timetable_of(
    pipeline: Pipeline, schedule: Any, first: datetime | None, last: datetime | None, pack: int | None = None
) -> Any:
    """The schedule to give to Airflow. For an interval pipeline, a cron string or a timedelta becomes a timetable of
    data intervals in UTC that start between `first` and `last`, with up to `pack` of them in a run. Any other schedule
    is returned as it is."""
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
        problem = "is scheduled on assets, and a run that they trigger has no data interval"
    elif isinstance(timetable, CronTriggerTimetable | DeltaTriggerTimetable) and not width_of(timetable):
        problem = f"has the schedule {dag.schedule!r}, of which Airflow makes data intervals of no length"
    else:
        return
    raise InvalidPipeline(
        f"pipeline {pipeline.name} moves data intervals, and DAG {dag.dag_id} {problem}: give it a timetable of real "
        'ones, such as schedule=CronDataIntervalTimetable("@daily", timezone="UTC") of airflow.sdk, or None if it is '
        "only triggered"
    )


def interval_of(pipeline: Pipeline, context: Context, *, alone: bool = True) -> Interval | None:
    """The interval in the run's conf, or else the run's data interval; None for a cursor pipeline. `alone`: the DAG has
    no interval pipeline that an interval in the conf could be for.

    Raises `IntervalMissing` if there is none, or an empty one; `InvalidPipeline` if a cursor pipeline is given one.
    """
    if pipeline.identity is not KeyedBy.INTERVAL:
        bounds = [name for name in (START, END) if _read_conf_without_defaults(context).get(name) is not None]
        if alone and bounds:
            raise InvalidPipeline(
                f"pipeline {pipeline.name} is given {' and '.join(bounds)}, and its epochs are numbers, not intervals: "
                "no source of it reads by interval. Trigger it without them, or give a FileSource's path a placeholder "
                "such as {interval_start:%Y-%m-%d}"
            )
        return None
    start, end = _bounds_in(_read_conf_without_defaults(context)) or (
        context.get("data_interval_start"),
        context.get("data_interval_end"),
    )
    if start is None or end is None:
        raise IntervalMissing(f"pipeline {pipeline.name} needs a data interval and this run has none: {_WAY_OUT}")
    try:
        return Interval(_to_datetime(start), _to_datetime(end))
    except IntervalMissing as error:
        raise IntervalMissing(f"pipeline {pipeline.name} can't use this run's {error}: {_WAY_OUT}") from error


def cut(pipeline: Pipeline, span: Interval, schedule: str | timedelta, max_intervals: int) -> list[Interval]:
    """Split `span` into the intervals of the schedule. A span without a boundary of the schedule inside it is returned
    uncut. Raises `IntervalMissing` if there are more than `max_intervals`, or if `span` doesn't start and end at
    boundaries of the schedule."""
    ticks = intervals_of_schedule(schedule).within(span.start, span.end, max_intervals + 1)
    intervals = [Interval(_to_datetime(tick.start), _to_datetime(tick.end)) for tick in ticks]
    if not any(span.start < moment < span.end for tick in intervals for moment in (tick.start, tick.end)):
        return [span]
    if len(intervals) > max_intervals:
        raise IntervalMissing(
            f"pipeline {pipeline.name}: {span} is more than {max_intervals} intervals of the schedule, the most that "
            "this DAG takes in one run: trigger it in parts, or as a backfill, or set a larger pack="
        )
    if (intervals[0].start, intervals[-1].end) != (span.start, span.end):
        raise IntervalMissing(
            f"pipeline {pipeline.name}: {span} isn't made of whole intervals of the schedule; those in it reach from "
            f"{intervals[0].start.isoformat()} to {intervals[-1].end.isoformat()}: trigger it with such bounds"
        )
    return intervals


def _bounds_in(conf: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    start, end = conf.get(START), conf.get(END)
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise IntervalMissing(f"only one of the params {START} and {END} is given: {_WAY_OUT}")
    bounds = []
    for name, text in ((START, start), (END, end)):
        try:
            bounds.append(datetime.fromisoformat(text))
        except (TypeError, ValueError) as error:
            raise IntervalMissing(
                f"param {name} is {str(text)[:60]!r}, no ISO 8601 date and time: {_WAY_OUT}"
            ) from error
    return bounds[0], bounds[1]


def _to_datetime(moment: datetime) -> datetime:
    """Convert Airflow's pendulum moments, whose arithmetic and pickles differ."""
    return datetime.fromisoformat(moment.isoformat())


# --- requests to replan ---


def read_replan(context: Context, pipelines: Collection[str]) -> tuple[str | None, int | None]:
    """The reason to freeze the run's undecided epoch anew, None if that isn't asked for, and the epoch's number if the
    conf has it. `pipelines`: all that the DAG moves. Raises `IllegalTransition`, also in a DAG that moves several: its
    run would begin epochs of the other ones."""
    number = read_conf(context).get(REPLAN_EPOCH)
    if number is not None and (type(number) is not int or not 1 <= number < 1 << 63):
        raise IllegalTransition(f"param {REPLAN_EPOCH} has to be the number of an epoch")
    try:
        reason = require_reason(read_conf(context).get(REPLAN))
    except RestateRefused:
        raise IllegalTransition(
            f"to replan an epoch {REPLAN} has to say why, in a line that stays in the history"
        ) from None
    if reason is not None and len(pipelines) > 1:
        raise IllegalTransition(f"this DAG moves {', '.join(pipelines)}: replan an epoch of one by `lockstep replan`")
    return reason, number


def refuse_replan(context: Context, pipelines: Collection[str]) -> None:
    """Raise `IllegalTransition` if a run that moves many epochs is asked to replan."""
    reason, number = read_replan(context, pipelines)
    if reason is not None or number is not None:
        raise IllegalTransition("a run that moves many epochs (pack=…) replans none: `lockstep replan` does")


# --- requests to restate and restore ---


def read_restate_reason(context: Context, pipeline: str, pipelines: Collection[str]) -> str | None:
    """Why the run is to replace what `pipeline` has published; None if it isn't. `pipelines`: all that the DAG moves;
    if there are several the conf has to name the one it means. Raises `RestateRefused`."""
    reasons, request = (read_conf(context).get(key) for key in (RESTATE, REQUEST))
    if isinstance(reasons, Mapping):
        _refuse_foreign(RESTATE, reasons, pipelines)
        if not reasons or None in reasons.values():
            raise RestateRefused(f'{RESTATE} restates nothing: say of which pipeline and why, {{"{pipeline}": "why"}}')
        return require_reason(reasons[pipeline], request) if pipeline in reasons else None
    reason = require_reason(reasons, request)
    if reason is not None and len(pipelines) > 1:
        raise RestateRefused(
            f"this DAG moves {', '.join(pipelines)}: say whose rows are to be replaced, by a conf "
            f'{{"{RESTATE}": {{"{pipeline}": "why"}}}}'
        )
    return reason


def _read_restore(context: Context, pipeline: str, pipelines: Collection[str], reason: str | None) -> int | None:
    """The epoch of `pipeline` whose rows the run is to show again; None if it reads its range."""
    value = read_conf(context).get(RESTORE)
    if value is not None and not isinstance(value, Mapping) and len(pipelines) > 1:
        raise RestateRefused(
            f"this DAG moves {', '.join(pipelines)}: say whose epoch is meant, by a conf "
            f'{{"{RESTORE}": {{"{pipeline}": 7}}}}'
        )
    number = _read_for(context, RESTORE, pipeline, pipelines)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 1 << 63:
        raise RestateRefused(
            f"{RESTORE} is the number of an epoch whose rows are to be shown again, not {str(number)[:60]!a}"
        )
    if reason is None:
        raise RestateRefused(f"to show the rows of epoch {number} again say why, with {RESTATE}")
    return number


def with_restate_request(run: RunKey, context: Context, pipeline: str, pipelines: Collection[str]) -> RunKey:
    """The run with what its conf asks for `pipeline`: why to restate, from which earlier rows or which input, for a
    cursor which epoch, and which epoch was visible at the time of the request. In a DAG of several pipelines each value
    may be given by pipeline. Raises `RestateRefused`, also for an unknown key with Lockstep's prefix."""
    for key in read_conf(context):
        if key.lower().startswith("lockstep") and key not in _KEYS:
            raise RestateRefused(f"{key[:60]!a} means nothing to Lockstep, which knows {', '.join(sorted(_KEYS))}")
    reason = read_restate_reason(context, pipeline, pipelines)
    restore = _read_restore(context, pipeline, pipelines, reason)
    reads, epoch, replaces = (_read_for(context, key, pipeline, pipelines) for key in (INPUT, RESTATE_EPOCH, REPLACES))
    if reason is None and isinstance(read_conf(context).get(RESTATE), Mapping):
        return run  # the request is for another pipeline
    return replace(
        run,
        restate=reason,
        restore=restore,
        input=require_input(reads, reason),
        epoch=require_number(epoch, reason),
        replaces=require_number(replaces, reason),
    )


def _read_for(context: Context, key: str, pipeline: str, pipelines: Collection[str]) -> object:
    value = read_conf(context).get(key)
    if not isinstance(value, Mapping):
        return value
    _refuse_foreign(key, value, pipelines)
    return value.get(pipeline)


def _refuse_foreign(key: str, by_pipeline: Mapping[str, object], pipelines: Collection[str]) -> None:
    foreign = [str(name)[:60] for name in by_pipeline if name not in pipelines]
    if foreign:
        raise RestateRefused(
            f"{key} names {', '.join(map(ascii, foreign[:5]))}, and this DAG moves {', '.join(pipelines)}"
        )


def refuse_restore(run: RunKey) -> None:
    """Raise `RestateRefused` if a run that moves many epochs is asked to restore."""
    if run.restore is not None:
        raise RestateRefused(
            "a run that moves many epochs (pack=…) shows no earlier rows again: `lockstep restore` does"
        )


def restate_conf(reason: str, pipeline: str | None) -> dict[str, Json]:
    """The conf that asks a run to restate. `pipeline`: which one, in a DAG that may move several."""
    return {RESTATE: {pipeline: reason} if pipeline else reason}


# --- requests to the recovery DAG ---


def read_recovery_grace(context: Context) -> timedelta | None:
    """The time for which undecided attempts are left alone; None: as long as the pipeline says. Raises
    `IllegalTransition`."""
    minutes = read_conf(context).get(RECOVERY_GRACE)
    if minutes is None:
        return None
    if type(minutes) is int and 0 <= minutes <= MAX_MINUTES:  # Airflow doesn't check a conf that is no param
        return timedelta(minutes=minutes)
    raise IllegalTransition(f"{RECOVERY_GRACE} is {minutes!r:.40}; it has to be a whole number from 0 to {MAX_MINUTES}")


def read_resolve_request(pipeline: str, context: Context) -> tuple[int, str, int] | None:
    """Epoch, sink and the id of the history entry that says what became of the rows, if the run names them and this
    pipeline. Raises `IllegalTransition` if only some are given.

    The right to trigger the DAG is the right to recover every pipeline, which is always safe. A resolution isn't: the
    page requires the right to change the pipeline's runs, and writes the resolution to the history before the run
    begins. An old run that is cleared, or an old conf that is sent again, names an entry that was used already.
    """
    conf = read_conf(context)
    epoch, sink, entry = (conf.get(name) for name in (RESOLVE_EPOCH, RESOLVE_SINK, RESOLVE_ENTRY))
    if epoch is None and sink is None and entry is None:
        return None
    if (
        conf.get(PIPELINE) == pipeline
        and isinstance(sink, str)
        and type(epoch) is type(entry) is int  # True is none
        and 1 <= min(epoch, entry) <= max(epoch, entry) < 1 << 63
    ):
        return epoch, sink, entry
    raise IllegalTransition(
        f"to resolve say {PIPELINE}, {RESOLVE_EPOCH}, {RESOLVE_SINK} and {RESOLVE_ENTRY} (numbers but the sink), as "
        "the page does"
    )

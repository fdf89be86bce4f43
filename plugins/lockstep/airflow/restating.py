"""Whether a run is to replace what is published, and by which rows: its conf says so, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep.airflow._conf import asked_of
from lockstep.airflow.replanning import REPLAN, REPLAN_EPOCH
from lockstep.epoch import Json, RunKey
from lockstep.errors import RestateRefused
from lockstep.protocol.generations import require_input, require_number, require_reason

if TYPE_CHECKING:
    from airflow.sdk import Context

RESTATE, REQUEST = "lockstep_restate", "lockstep_request"
RESTORE = "lockstep_restore"
INPUT, EPOCH, REPLACES = "lockstep_input", "lockstep_epoch", "lockstep_replaces"
KNOWN = frozenset({RESTATE, REQUEST, RESTORE, INPUT, EPOCH, REPLACES, REPLAN, REPLAN_EPOCH})


def reason_of(context: Context, pipeline: str, moved: Collection[str]) -> str | None:
    """Why the run is to replace what `pipeline` has published. `moved`: every pipeline of its DAG; if those are several
    the conf names whose rows it means. Params come from whoever triggered the run: nothing is believed. Raises
    `RestateRefused`."""
    given, request = (asked_of(context).get(key) for key in (RESTATE, REQUEST))
    if isinstance(given, Mapping):
        _refuse_strangers(RESTATE, given, moved)
        if not given or None in given.values():
            raise RestateRefused(f'{RESTATE} restates nothing: say of which pipeline and why, {{"{pipeline}": "why"}}')
        return require_reason(given[pipeline], request) if pipeline in given else None
    reason = require_reason(given, request)
    if reason is not None and len(moved) > 1:
        raise RestateRefused(
            f"this DAG moves {', '.join(moved)}: say whose rows are to be replaced, by a conf "
            f'{{"{RESTATE}": {{"{pipeline}": "why"}}}}'
        )
    return reason


def restored_by(context: Context, pipeline: str, moved: Collection[str], reason: str | None) -> int | None:
    """The epoch of `pipeline` whose rows a run is to show again; None: it reads its range. Raises `RestateRefused` for
    what is no epoch's number, or comes without a reason; `moved` as of `reason_of`."""
    given = asked_of(context).get(RESTORE)
    if given is not None and not isinstance(given, Mapping) and len(moved) > 1:
        raise RestateRefused(
            f"this DAG moves {', '.join(moved)}: say whose epoch is meant, by a conf "
            f'{{"{RESTORE}": {{"{pipeline}": 7}}}}'
        )
    given = _said_of(context, RESTORE, pipeline, moved)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given < 1 << 63:
        raise RestateRefused(
            f"{RESTORE} is the number of an epoch whose rows are to be shown again, not {str(given)[:60]!a}"
        )
    if reason is None:
        raise RestateRefused(f"to show the rows of epoch {given} again say why, with {RESTATE}")
    return given


def with_wish(run: RunKey, context: Context, pipeline: str, moved: Collection[str]) -> RunKey:
    """The run, with what its conf says of restating `pipeline`: why, by which earlier rows or by which input, and of a
    cursor which epoch; and what was shown when that was asked for. Where its DAG moves several, each of these may be
    said by pipeline. Raises `RestateRefused`, for a key that begins as these and is none, too."""
    for key in asked_of(context):
        if key.lower().startswith("lockstep") and key not in KNOWN:
            raise RestateRefused(f"{key[:60]!a} means nothing to Lockstep, which knows {', '.join(sorted(KNOWN))}")
    reason = reason_of(context, pipeline, moved)
    restore = restored_by(context, pipeline, moved, reason)
    reads, epoch, replaces = (_said_of(context, key, pipeline, moved) for key in (INPUT, EPOCH, REPLACES))
    if reason is None and isinstance(asked_of(context).get(RESTATE), Mapping):
        return run  # another one is to be restated
    return replace(
        run,
        restate=reason,
        restore=restore,
        input=require_input(reads, reason),
        epoch=require_number(epoch, reason),
        replaces=require_number(replaces, reason),
    )


def _said_of(context: Context, key: str, pipeline: str, moved: Collection[str]) -> object:
    given = asked_of(context).get(key)
    if not isinstance(given, Mapping):
        return given
    _refuse_strangers(key, given, moved)
    return given.get(pipeline)


def _refuse_strangers(key: str, given: Mapping[str, object], moved: Collection[str]) -> None:
    unknown_files = [str(name)[:60] for name in given if name not in moved]
    if unknown_files:
        raise RestateRefused(
            f"{key} names {', '.join(map(ascii, unknown_files[:5]))}, and this DAG moves {', '.join(moved)}"
        )


def refuse_to_restore(run: RunKey) -> None:
    """For a task that moves many epochs. Raises `RestateRefused`."""
    if run.restore is not None:
        raise RestateRefused(
            "a run that moves many epochs (pack=…) shows no earlier rows again: `lockstep restore` does"
        )


def conf_of(reason: str, pipeline: str | None) -> dict[str, Json]:
    """What asks a run for it. `pipeline`: which one, in a DAG that may move several."""
    return {RESTATE: {pipeline: reason} if pipeline else reason}

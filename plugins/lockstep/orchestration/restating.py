"""Whether a run is to replace what is published: its conf says so, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lockstep.epoch import Json
from lockstep.errors import RestateRefused
from lockstep.steps.generations import require_reason

if TYPE_CHECKING:
    from airflow.sdk import Context

RESTATE, REQUEST = "lockstep_restate", "lockstep_request"


def reason_of(context: Context, pipeline: str, moved: Collection[str]) -> str | None:
    """Why the run is to replace what `pipeline` has published. `moved`: every pipeline of its DAG; if those are several
    the conf names whose rows it means. Params come from whoever triggered the run: nothing is believed. Raises
    `RestateRefused`."""
    given, request = context["params"].get(RESTATE), context["params"].get(REQUEST)
    if isinstance(given, Mapping):
        strangers = [str(name)[:60] for name in given if name not in moved]
        if strangers:
            raise RestateRefused(
                f"{RESTATE} names {', '.join(map(ascii, strangers[:5]))}, and this DAG moves {', '.join(moved)}"
            )
        return require_reason(given[pipeline], request) if pipeline in given else None
    reason = require_reason(given, request)
    if reason is not None and len(moved) > 1:
        raise RestateRefused(
            f"this DAG moves {', '.join(moved)}: say whose rows are to be replaced, by a conf "
            f'{{"{RESTATE}": {{"{pipeline}": "why"}}}}'
        )
    return reason


def conf_of(reason: str, pipeline: str | None) -> dict[str, Json]:
    """What asks a run for it. `pipeline`: which one, in a DAG that may move several."""
    return {RESTATE: {pipeline: reason} if pipeline else reason}

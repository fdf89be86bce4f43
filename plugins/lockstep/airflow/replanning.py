"""Whether a run is to freeze its undecided epoch anew: its conf says so, and why."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from lockstep.airflow._conf import asked_of
from lockstep.errors import IllegalTransition, RestateRefused
from lockstep.features.generations import require_reason

if TYPE_CHECKING:
    from airflow.sdk import Context

REPLAN = "lockstep_replan"
REPLAN_EPOCH = "lockstep_replan_epoch"


def replanned_by(context: Context, moved: Collection[str]) -> tuple[str | None, int | None]:
    """The reason, None for a run that isn't to, and the number of the epoch that is meant, if it was said. `moved`:
    every pipeline of the DAG. Params come from whoever triggered the run: nothing is believed. Raises
    `IllegalTransition`, too where the DAG moves several: a run of it would begin epochs that nobody has asked for."""
    number = asked_of(context).get(REPLAN_EPOCH)
    if number is not None and (type(number) is not int or not 1 <= number < 1 << 63):
        raise IllegalTransition(f"param {REPLAN_EPOCH} has to be the number of an epoch")
    try:
        reason = require_reason(asked_of(context).get(REPLAN))
    except RestateRefused:
        raise IllegalTransition(
            f"to replan an epoch {REPLAN} has to say why, in a line that stays in the history"
        ) from None
    if reason is not None and len(moved) > 1:
        raise IllegalTransition(f"this DAG moves {', '.join(moved)}: replan an epoch of one by `lockstep replan`")
    return reason, number


def refuse_to_replan(context: Context, moved: Collection[str]) -> None:
    """For a task that moves many epochs: to go on as if nobody had asked would move what was to be frozen anew. Raises
    `IllegalTransition`."""
    reason, number = replanned_by(context, moved)
    if reason is not None or number is not None:
        raise IllegalTransition("a run that moves many epochs (pack=…) replans none: `lockstep replan` does")

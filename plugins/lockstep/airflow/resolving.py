"""What a run of the recovery DAG is asked for: for how long to leave attempts alone, and where it finds a person's word
on a decided epoch: in the ledger, to which the run points.

Who may trigger the DAG may recover every pipeline, which is always safe. Saying what became of rows isn't: the page
lets those do it who may change the pipeline's runs, and what they say stands in the history before the run begins. The
run names that entry: an old run that is cleared, or an old conf that is sent again, points to a word that is used up.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep.airflow._conf import asked_of
from lockstep.errors import IllegalTransition

if TYPE_CHECKING:
    from airflow.sdk import Context

PIPELINE, HOLD = "pipeline", "recovery_grace_minutes"
EPOCH, SINK, WORD = "resolve_epoch", "resolve_sink", "resolve_word"
MOST_MINUTES = 60 * 24 * 365


def asked_to_hold(context: Context) -> timedelta | None:
    """None: as long as the pipeline says. Raises `IllegalTransition` for what is no time."""
    minutes = asked_of(context).get(HOLD)
    if minutes is None:
        return None
    if type(minutes) is int and 0 <= minutes <= MOST_MINUTES:  # Airflow doesn't look at a conf that is no param
        return timedelta(minutes=minutes)
    raise IllegalTransition(f"{HOLD} is {minutes!r:.40}; it has to be a whole number from 0 to {MOST_MINUTES}")


def asked_to_resolve(pipeline: str, context: Context) -> tuple[int, str, int] | None:
    """Epoch, sink and the id of the word, if the run names them and this pipeline. Raises `IllegalTransition` for a
    part of it."""
    asked = asked_of(context)
    epoch, sink, word = (asked.get(name) for name in (EPOCH, SINK, WORD))
    if epoch is None and sink is None and word is None:
        return None
    if (
        asked.get(PIPELINE) == pipeline
        and isinstance(sink, str)
        and type(epoch) is type(word) is int  # True is none
        and 1 <= min(epoch, word) <= max(epoch, word) < 1 << 63
    ):
        return epoch, sink, word
    raise IllegalTransition(
        f"to resolve say {PIPELINE}, {EPOCH}, {SINK} and {WORD} (numbers but the sink), as the page does"
    )

"""Many ranges that a person would have restated together: each is an epoch, a run and a decision of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lockstep.airflow.ui._forms import Question
from lockstep.airflow.ui._runs import Asked
from lockstep.epoch import Interval
from lockstep.errors import IntervalMissing
from lockstep.ledger.report import EpochStatus

MOST_TOGETHER = 100  #: epochs that one form asks for


@dataclass(frozen=True)
class Wish:
    """For one epoch to be restated. `refused`: why it can't be, or None; `took`: as of `Report.took`; `asked`: the run
    that is there already."""

    found: EpochStatus
    took: timedelta | None
    refused: str | None
    question: Question
    asked: Asked | None


def interval_between(since: str, until: str) -> Interval:
    """Of what a form says, in UTC unless it says otherwise. Raises `IntervalMissing`."""
    return Interval(_moment(since), _moment(until))


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise IntervalMissing(f"{text[:40]!a} is no date, with or without a time") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def refuse_range(wishes: Sequence[Wish], span: Interval, pipeline: str) -> str | None:
    """Why no form asks for all of it, or None."""
    command = f"`lockstep restate {pipeline} --from … --to … --reason …`"
    if not wishes:
        return "no epoch of an interval lies there: those of a cursor are restated by `lockstep restate --epoch`"
    if len(wishes) > MOST_TOGETHER:
        return f"more than {MOST_TOGETHER} epochs lie there: take fewer at a time, or {command} does it"
    for one in wishes:
        own = one.found.epoch.interval
        if own is None or own.start < span.start or own.end > span.end:
            return f"only a part of epoch {one.found.epoch.id} lies there, and an epoch is restated whole"
    return None if any(one.refused is None for one in wishes) else "none of these can be restated now"


def question_of_all(user: str, pipeline: str, wishes: Sequence[Wish]) -> Question:
    """Of those that can be restated: which they are, as they stand, and by which runs."""
    seen = json.dumps([[one.question.dag_id, one.question.run().run_id] for one in wishes if one.refused is None])
    return Question(user, "restate together", pipeline, state=hashlib.sha256(seen.encode()).hexdigest())

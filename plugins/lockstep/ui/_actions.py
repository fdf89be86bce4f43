"""What a person may do from the page, and what it would come to: told before it is done, from the same look.

Only what the ledger decides alone is done here. Sinks are rolled back, published to and looked into by tasks: of the
recovery DAG, or of the epoch's next attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagNotFound
from airflow.models.dag import DagModel, DagTag
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from lockstep import remedies
from lockstep.brevity import short_interval
from lockstep.disclosure import list_some
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import NotConfigured
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus
from lockstep.orchestration.recovery import RECOVERY_TAG
from lockstep.orchestration.restating import RESTATE
from lockstep.states import UNDECIDED, EpochState, ParticipantState, Role

_NAMED = 10  #: epochs of a list


@dataclass(frozen=True)
class Action:
    """Of an epoch. `refused`: why it can't be done now, or None; `effects`: what it would do, sentence by sentence."""

    name: str
    title: str
    refused: Callable[[EpochStatus], str | None]
    effects: Callable[[EpochStatus], list[str]]
    act: Callable[[Ledger, EpochStatus, str], Epoch]


def _refuse_abort(found: EpochStatus) -> str | None:
    if found.epoch.state not in UNDECIDED:
        return f"it is {found.epoch.state}: only an undecided epoch's attempt can be voided"
    return None if found.run else "its attempt is void already: clear its run, and it goes on"


def _effects_of_abort(found: EpochStatus) -> list[str]:
    told = [f"The attempt of run {found.run} is void: none of its tasks can seal, vote or decide any more."]
    if found.leased:
        told.append("A task of it is at work at this moment; it will fail, and say that it was superseded.")
    told += _voided_votes(found)
    if found.epoch.wal:
        told.append("Its sealed WAL stays; the next attempt goes on with the same rows.")
    told.append(f"{_ROLLED_BACK} The next attempt does it, too.")
    if found.last_run:
        told.append(f"To try again: {remedies.clear(found.last_run.dag_id, found.last_run.run_id)}.")
    return told


def _abort(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    epoch = found.epoch
    return ledger.raise_attempt(epoch.pipeline, epoch.id, Role.OPERATOR, only=epoch.attempt, reason=reason)


def _refuse_void(found: EpochStatus) -> str | None:
    if found.epoch.state in UNDECIDED:
        return None
    return f"it is {found.epoch.state}: only an undecided epoch's range can be given up"


def _effects_of_void(found: EpochStatus) -> list[str]:
    epoch = found.epoch
    span = f" {short_interval(epoch.interval)}" if epoch.interval else ""
    if epoch.generation:
        told = [f"Nothing takes the place of epoch {epoch.generation.replaces}: its rows stay."]
    else:
        told = [
            f"The range{span} of {list_some(epoch.plan.sources, _NAMED)} is given up, for good: nothing ever reads it."
        ]
        told.append("Files that it claimed stay claimed: no other epoch takes them.")
    if found.run:
        told.append(f"The attempt of run {found.run} is void.")
    return [*told, *_voided_votes(found), _ROLLED_BACK]


def _void(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    return ledger.void_epoch(found.epoch.pipeline, found.epoch.id, reason, only=found.epoch.attempt)


def _refuse_release(found: EpochStatus) -> str | None:
    return None if found.held else "no audit holds it"


def _effects_of_release(found: EpochStatus) -> list[str]:
    offended = found.verdict.offended if found.verdict else ()
    told = [f"Audit {one} holds it no longer." for one in offended]
    told.append("The rows go to every sink as they are sealed; what is decided says who let them.")
    if found.last_run:
        told.append(f"To go on: {remedies.clear(found.last_run.dag_id, found.last_run.run_id)}.")
    return told


def _release(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    return ledger.release_epoch(found.epoch.pipeline, found.epoch.id, reason)


_ROLLED_BACK = "What it left in sinks and staging is rolled back by the recovery DAG."


def _voided_votes(found: EpochStatus) -> list[str]:
    voted = [one.sink for one in found.participants if one.state is ParticipantState.PREPARED]
    return [f"The votes of {list_some(voted, _NAMED)} are void."] if voted else []


ACTIONS = {
    one.name: one
    for one in (
        Action("abort", "Abort the attempt", _refuse_abort, _effects_of_abort, _abort),
        Action("release", "Release", _refuse_release, _effects_of_release, _release),
        Action("void", "Give the range up", _refuse_void, _effects_of_void, _void),
    )
}


def commands(found: EpochStatus) -> list[str]:
    """What else may be done to the epoch, by whoever has a command line: it needs a sink, or the definition."""
    epoch = found.epoch
    if epoch.state in UNDECIDED:
        return [remedies.replan(epoch.pipeline, epoch.id)]
    if epoch.state is EpochState.COMMITTED:
        late = [one.sink for one in found.participants if one.state is not ParticipantState.PUBLISHED]
        return [remedies.resolve(epoch.pipeline, epoch.id, sink) for sink in late]
    return []


def effects_of_recovery(unfinished: Sequence[Epoch], abandoned: Sequence[Epoch]) -> list[str]:
    """What a round of recovery would do to what the ledger holds now; what it sweeps only the sinks know."""
    told = []
    for state, does in ((EpochState.COMMITTED, "published"), (EpochState.PUBLISHED, "cleaned up")):
        if ids := [one.id for one in unfinished if one.state is state]:
            told.append(f"{_epochs(ids)} {'are' if len(ids) > 1 else 'is'} {does}, in order.")
    if abandoned:
        ids = [one.id for one in abandoned]
        told.append(f"The attempts of {_epochs(ids)} are void: nobody has been at them for the pipeline's hold.")
    return [*told, "Transactions, files and folders that nobody owns any more are taken away."]


def _epochs(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{'Epochs' if len(ids) > 1 else 'Epoch'} {', '.join(map(str, sorted(ids)[:_NAMED]))}{more}"


def refuse_restating(found: EpochStatus) -> str | None:
    """Why it can't be restated from here, or None."""
    epoch = found.epoch
    if epoch.interval is None:
        return "a cursor's range can't be restated: later epochs go on where it ended"
    if epoch.state is not EpochState.CLEANED:
        return f"it is {epoch.state}: only what every sink shows, and is cleaned up, is replaced"
    if found.last_run is None or found.last_run.dag_id in remedies.OF_NO_DAG:
        return "no DAG has moved it: `lockstep restate` does it"
    return None


def effects_of_restating(found: EpochStatus) -> list[str]:
    dag_id = found.last_run.dag_id if found.last_run else ""
    return [
        f"A run of DAG {dag_id} reads the interval afresh, with today's files and code, as an epoch of its own.",
        f"With its decision it takes the place of epoch {found.epoch.id} in every sink: readers see old rows or new.",
        "Until then nothing changes. A sink that can't replace refuses before anything is read.",
    ]


def restate(found: EpochStatus, user: str, reason: str) -> RunKey:
    """A run of the epoch's own DAG, in the user's name. Raises `NotConfigured` if the DAG is gone."""
    epoch = found.epoch
    assert epoch.interval is not None and found.last_run is not None
    span = {"interval_start": epoch.interval.start.isoformat(), "interval_end": epoch.interval.end.isoformat()}
    return _trigger(found.last_run.dag_id, {**span, RESTATE: reason}, user, reason)


def recovery_dags() -> list[str]:
    """The ids of the DAGs that `recovery_dag` made, as Airflow knows them."""
    with create_session() as session:
        found = select(DagModel.dag_id).join(DagTag, DagTag.dag_id == DagModel.dag_id)
        return sorted(session.scalars(found.where(DagTag.name == RECOVERY_TAG, ~DagModel.is_stale)))


def trigger_recovery(dag_id: str, pipeline: str, user: str, reason: str) -> RunKey:
    """A run of the recovery DAG for this pipeline alone, in the user's name. Raises `NotConfigured` if it is gone."""
    return _trigger(dag_id, {"pipeline": pipeline}, user, reason)


def _trigger(dag_id: str, conf: dict[str, str], user: str, note: str) -> RunKey:
    by = DagRunTriggeredByType.UI
    try:
        run = trigger_dag(dag_id, triggered_by=by, triggering_user_name=user, conf=conf, note=note)
    except DagNotFound:
        run = None
    if run is None:
        raise NotConfigured(f"Airflow has no DAG {dag_id} any more")
    return RunKey(run.dag_id, run.run_id)

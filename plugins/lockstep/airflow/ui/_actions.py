"""What the pages can do to an epoch or a range: what refuses it, its effects in sentences, and how it is done.

The ledger alone is enough for an `Action`. A `DagAction` needs a definition, a source or a sink, which the api-server
never reaches: a run of a DAG does it, which gets the request in its conf and checks it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lockstep.airflow._run_conf import (
    PIPELINE,
    REPLACES,
    REPLAN,
    REPLAN_EPOCH,
    RESOLVE_ENTRY,
    RESOLVE_EPOCH,
    RESOLVE_SINK,
    RESTATE_EPOCH,
    RESTORE,
    restate_conf,
)
from lockstep.airflow.ui._access import Question
from lockstep.airflow.ui._runs import RequestedRun, is_paused
from lockstep.epoch import PACKED, Epoch, Interval, Json
from lockstep.errors import IntervalMissing
from lockstep.features.generations import current_generation
from lockstep.features.restoring import shows_same_rows
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus, Report
from lockstep.observability import suggestions
from lockstep.observability.formatting import short_age, short_interval
from lockstep.observability.redaction import list_some
from lockstep.operations.resolve import Resolution
from lockstep.operations.restore import other_columns
from lockstep.states import UNDECIDED, EpochState, ParticipantState, Role

MAX_NAMES = 10  #: in a list
ROLLED_BACK = "The recovery DAG rolls back what it left in sinks and staging."
MAX_EPOCHS = 100  #: of one form


@dataclass(frozen=True)
class Action:
    """Something the ledger alone does to an epoch. `refused`: why it can't be done now, or None; `effects`: what it
    would do, in sentences."""

    name: str
    title: str
    refused: Callable[[EpochStatus], str | None]
    effects: Callable[[EpochStatus], list[str]]
    act: Callable[[Ledger, EpochStatus, str], Epoch]


def _refuse_abort(status: EpochStatus) -> str | None:
    if status.epoch.state not in UNDECIDED:
        return f"it is {status.epoch.state}: only an undecided epoch's attempt can be voided"
    return None if status.run else "its attempt is void already: clear its run to continue"


def _effects_of_abort(status: EpochStatus) -> list[str]:
    effects = [f"The attempt of run {status.run} is voided: its tasks can no longer seal, vote or decide."]
    if status.leased:
        effects.append("A task of it is running; it will fail and report that it was superseded.")
    effects += voided_votes(status)
    if status.epoch.wal:
        effects.append("Its sealed WAL stays; the next attempt continues with the same rows.")
    effects.append(f"{ROLLED_BACK} So does the next attempt.")
    if status.last_run:
        effects.append(f"To try again: {suggestions.clear(status.last_run.dag_id, status.last_run.run_id)}.")
    return effects


def _refuse_void(status: EpochStatus) -> str | None:
    if status.epoch.state in UNDECIDED:
        return None
    return f"it is {status.epoch.state}: only an undecided epoch's range can be given up"


def _effects_of_void(status: EpochStatus) -> list[str]:
    epoch = status.epoch
    span = f" {short_interval(epoch.interval)}" if epoch.interval else ""
    if epoch.generation:
        effects = [f"Epoch {epoch.generation.replaces} isn't replaced: its rows stay."]
    else:
        effects = [
            f"The range{span} of {list_some(epoch.plan.sources, MAX_NAMES)} is given up permanently: no epoch reads it."
        ]
        effects.append("Files that it claimed stay claimed: no other epoch reads them.")
    if status.run:
        effects.append(f"The attempt of run {status.run} is void.")
    return [*effects, *voided_votes(status), ROLLED_BACK]


def _effects_of_release(status: EpochStatus) -> list[str]:
    offended = status.verdict.offended if status.verdict else ()
    effects = [f"Audit {audit} no longer holds it." for audit in offended]
    manifest = (status.epoch.manifest_hash or "")[: suggestions.MANIFEST_DIGITS]
    effects.append(f"The rows of manifest {manifest} go to every sink; the history records the release.")
    if status.last_run:
        effects.append(f"To continue: {suggestions.clear(status.last_run.dag_id, status.last_run.run_id)}.")
    return effects


def voided_votes(status: EpochStatus) -> list[str]:
    voted = [participant.sink for participant in status.participants if participant.state is ParticipantState.PREPARED]
    return [f"The votes of {list_some(voted, MAX_NAMES)} are void."] if voted else []


ACTIONS = {
    action.name: action
    for action in (
        Action(
            "abort",
            "Abort the attempt",
            _refuse_abort,
            _effects_of_abort,
            lambda ledger, status, reason: ledger.raise_attempt(
                status.epoch.pipeline, status.epoch.id, Role.OPERATOR, only=status.epoch.attempt, reason=reason
            ),
        ),
        Action(
            "release",
            "Release",
            lambda status: None if status.held else "no audit holds it",
            _effects_of_release,
            lambda ledger, status, reason: ledger.release_epoch(
                status.epoch.pipeline, status.epoch.id, reason, only=status.epoch.manifest_hash
            ),
        ),
        Action(
            "void",
            "Give up the range",
            _refuse_void,
            _effects_of_void,
            lambda ledger, status, reason: ledger.void_epoch(
                status.epoch.pipeline, status.epoch.id, reason, only=status.epoch.attempt
            ),
        ),
    )
}


def commands(status: EpochStatus) -> list[str]:
    """Commands that can do more to the epoch: they need a sink or the definition."""
    epoch = status.epoch
    if epoch.state in UNDECIDED:
        return [suggestions.replan(epoch.pipeline, epoch.id)]
    if epoch.state is EpochState.COMMITTED:
        late = [
            participant.sink
            for participant in status.participants
            if participant.state is not ParticipantState.PUBLISHED
        ]
        return [suggestions.resolve(epoch.pipeline, epoch.id, sink) for sink in late]
    return []


@dataclass(frozen=True)
class DagAction:
    """Something that the epoch's DAG does. `refused`: why it can't be done so, or None; `effects`: what it would do,
    in sentences; `conf`: of the run."""

    name: str
    title: str
    refused: Callable[[EpochStatus, Report], str | None]
    effects: Callable[[EpochStatus, Report], list[str]]
    conf: Callable[[EpochStatus, Report, str], dict[str, Json]]


def _refuse_restating(status: EpochStatus, report: Report) -> str | None:
    epoch = status.epoch
    if epoch.interval is None:
        return "a cursor's epochs are restated by `lockstep restate --epoch`"
    if epoch.state is EpochState.REPLACED:
        return "another epoch has replaced it: restate its newest generation"
    if epoch.state is not EpochState.CLEANED:
        return f"it is {epoch.state}: only an epoch that is published and cleaned up can be replaced"
    return _refuse_dag(status, f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason …`")


def _effects_of_restating(status: EpochStatus, report: Report) -> list[str]:
    """The effects as in `lockstep restate --plan`, without the sinks, which the run asks."""
    epoch = status.epoch
    took = report.took(epoch)
    lasted = f" The last time it took {short_age(took)}." if took is not None else ""
    replaced = (
        f"Epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be replaced; "
        f"rows: {_rows(status)}."
    )
    return [
        replaced + lasted,
        f"A run of DAG {dag_of(status)} reads the interval again, with the current files and code, as a new epoch.",
        f"Its commit replaces epoch {epoch.id} in every sink: readers see either the old rows or the new ones.",
        "Until then nothing changes. A sink that can't replace rows refuses before anything is read: "
        f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason … --plan` checks all sinks now.",
        *_other_tasks(status),
        *_paused(status),
    ]


def _other_tasks(status: EpochStatus) -> list[str]:
    return ["Other tasks of that DAG also run for the interval."] if _part_of(status) else []


def _rows(status: EpochStatus) -> str:
    return list_some([f"{name} {count:,}" for name, count in status.rows.items()], MAX_NAMES) or "no rows"


def _number(epoch: Epoch) -> int:
    return epoch.generation.number if epoch.generation else 0


def _conf_of_restating(status: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    return {**_interval_of(status.epoch), **restate_conf(reason, _part_of(status)), REPLACES: status.epoch.id}


def _part_of(status: EpochStatus) -> str | None:
    """The pipeline, if its DAG moves several."""
    name = status.epoch.pipeline
    return name if status.last_run is not None and status.last_run.moves == name else None


def _refuse_restoring(status: EpochStatus, report: Report) -> str | None:
    """Refuse what `lockstep restore` would refuse, as far as the ledger knows."""
    epoch = status.epoch
    if epoch.interval is None:
        return "later epochs of a cursor start where it ended, so it can't be shown again"
    if epoch.state is not EpochState.REPLACED:
        return f"it is {epoch.state}: only a replaced epoch can be restored"
    wal = report.retained_wal(epoch.pipeline, epoch.id)
    if wal is None or wal.expired_at is not None:
        return "its WAL isn't retained, so its rows are gone: `Pipeline(keep_wal=…)` sets how long WALs stay"
    current = current_generation(report, epoch)
    if current.state is not EpochState.CLEANED:
        return f"epoch {current.id} is {current.state}: only an epoch that is published and cleaned up can be replaced"
    rival = report.pending_replacement(current)
    if rival is not None:
        return f"epoch {rival.id} is {rival.state}, and is going to replace epoch {current.id}: wait, or give it up"
    if shows_same_rows(epoch, current):
        return f"epoch {current.id} shows the same rows, by number, digest and columns"
    command = _command_to_restore(epoch)
    if status.last_run is not None and status.last_run.packed:
        return f"its run moved several epochs, and such a run can't restore: use {command}"
    return _refuse_dag(status, command)


def _effects_of_restoring(status: EpochStatus, report: Report) -> list[str]:
    """The effects as in `lockstep restore --plan`, without files and sinks, which the run checks."""
    epoch, current = status.epoch, current_generation(report, status.epoch)
    wal = report.retained_wal(epoch.pipeline, epoch.id)
    since = f", kept since {wal.retained_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if wal else ""
    columns = other_columns(epoch, current)
    effects = [
        f"The rows of epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be shown again: "
        f"{_rows(status)}; in place of those of epoch {current.id}, generation {_number(current)}: "
        f"{_rows(report.epoch_status(current))}.",
        f"A run of DAG {dag_of(status)} compares every file of its WAL{since}, with the manifest, and shows "
        "it as a new epoch: no input is read, and Spark isn't needed.",
        f"Its commit replaces epoch {current.id} in every sink: readers see either the old rows or the new ones.",
    ]
    if columns:
        effects.append(f"Columns that differ: {list_some(columns, MAX_NAMES)}. A sink that can't take them refuses.")
    return [
        *effects,
        "Until then nothing changes. A sink that can't replace rows refuses before anything is planned: "
        f"{_command_to_restore(epoch, ' --plan')} checks all sinks now.",
        *_other_tasks(status),
        *_paused(status),
    ]


def _conf_of_restoring(status: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    epoch, part = status.epoch, _part_of(status)
    restored = {part: epoch.id} if part else epoch.id
    replaced = current_generation(report, epoch).id
    return {**_interval_of(epoch), **restate_conf(reason, part), RESTORE: restored, REPLACES: replaced}


def _command_to_restore(epoch: Epoch, more: str = "") -> str:
    return f"`lockstep restore {epoch.pipeline} --epoch {epoch.id} --reason …{more}`"


def _refuse_replanning(status: EpochStatus, report: Report) -> str | None:
    epoch = status.epoch
    if epoch.state not in UNDECIDED:
        return f"it is {epoch.state}: only an undecided epoch's range is frozen anew"
    command = suggestions.replan(epoch.pipeline, epoch.id)
    if epoch.interval is None and epoch.generation is None:
        last, before = report.last_original(epoch.pipeline), report.predecessor(epoch)
        if last is not None and last.id != epoch.id and epoch.plan.snapshots:
            return f"epoch {last.id} starts where it ends: {command} keeps its range, and takes its snapshots anew"
        if last is not None and last.id != epoch.id:
            return f"epoch {last.id} starts where it ends: replan the last epoch, or give this one's range up"
        if before is not None and before.state in UNDECIDED:
            return f"epoch {before.id} before it is undecided, too, and a run would begin that one: use {command}"
    if status.last_run is not None and PACKED in status.last_run.run_id:
        return f"its run moved several epochs: use {command}"
    return _refuse_dag(status, command)


def _effects_of_replanning(status: EpochStatus, report: Report) -> list[str]:
    epoch = status.epoch
    if epoch.restores is not None:
        how = (
            f"A run of DAG {dag_of(status)} plans it anew for the current sinks: the same rows, those of epoch "
            f"{epoch.restores}, and no input is read. Then it moves the epoch."
        )
    else:
        now = f"the current files of {_span(epoch.interval)}" if epoch.interval else "all current input"
        how = (
            f"A run of DAG {dag_of(status)} freezes its range anew: {now}, read by the current definition, for its "
            f"sinks instead of {list_some(sorted(epoch.plan.sinks), MAX_NAMES)}. Then it moves the epoch."
        )
    effects = [how]
    if status.run:
        effects.append(f"The attempt of run {status.run} is then void.")
    if status.leased and epoch.restores is None:
        effects.append("A task of it is running; it will fail and report that it was superseded.")
    effects += voided_votes(status)
    if epoch.wal and epoch.restores is None:
        effects.append("Its sealed WAL is discarded: the rows are computed again.")
    return [*effects, "That run rolls back what it left in sinks and staging.", *_paused(status)]


def _conf_of_replanning(status: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    epoch = status.epoch
    # without it the run would find the epoch that it replaces and do nothing
    request = restate_conf(epoch.generation.reason, None) if epoch.generation else {}
    if epoch.restores is not None:
        request[RESTORE] = epoch.restores
    if epoch.generation and epoch.interval is None:
        request[RESTATE_EPOCH] = epoch.generation.replaces
    return {**_interval_of(epoch), **request, REPLAN: reason, REPLAN_EPOCH: epoch.id}


DAG_ACTIONS = {
    action.name: action
    for action in (
        DagAction("restate", "Restate", _refuse_restating, _effects_of_restating, _conf_of_restating),
        DagAction("restore", "Restore", _refuse_restoring, _effects_of_restoring, _conf_of_restoring),
        DagAction("replan", "Replan", _refuse_replanning, _effects_of_replanning, _conf_of_replanning),
    )
}


def _refuse_dag(status: EpochStatus, command: str) -> str | None:
    """Why no DAG can do it, and the command that can."""
    if status.last_run is None or status.last_run.dag_id in suggestions.OF_NO_DAG:
        return f"no DAG moved it: use {command}"
    if is_paused(dag_of(status)) is None:
        return f"Airflow no longer has DAG {dag_of(status)}: use {command}"
    return None


def _paused(status: EpochStatus) -> list[str]:
    dag_id = dag_of(status)
    return [f"DAG {dag_id} is paused: the run starts when it is unpaused."] if is_paused(dag_id) else []


def dag_of(status: EpochStatus) -> str:
    return status.last_run.dag_id if status.last_run else ""


def _span(interval: Interval | None) -> str:
    return short_interval(interval) if interval else "its range"


def _interval_of(epoch: Epoch) -> dict[str, str]:
    if epoch.interval is None:
        return {}
    return {"interval_start": epoch.interval.start.isoformat(), "interval_end": epoch.interval.end.isoformat()}


# --- actions of the recovery DAG, which needs no definition ---


def effects_of_recovery(unfinished: Sequence[Epoch], abandoned: Sequence[Epoch]) -> list[str]:
    """The effects of recovery according to the ledger; only the sinks know what it would sweep."""
    effects = []
    for state, does in ((EpochState.COMMITTED, "published"), (EpochState.PUBLISHED, "cleaned up")):
        if ids := [epoch.id for epoch in unfinished if epoch.state is state]:
            effects.append(f"{_epochs(ids)} {'are' if len(ids) > 1 else 'is'} {does}, in order.")
    if abandoned:
        ids = [epoch.id for epoch in abandoned]
        effects.append(
            f"The attempts of {_epochs(ids)} are voided: they had no heartbeat for the pipeline's "
            "recovery_grace. Those whose run has an unfinished task are left alone."
        )
    return [*effects, "Abandoned transactions, files and folders are deleted."]


def _epochs(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - MAX_NAMES} more" if len(ids) > MAX_NAMES else ""
    return f"{'Epochs' if len(ids) > 1 else 'Epoch'} {', '.join(map(str, sorted(ids)[:MAX_NAMES]))}{more}"


def refuse_resolving(status: EpochStatus, sink: str) -> str | None:
    """Why the epoch's outcome in the sink can't be resolved, or None."""
    if status.epoch.state is not EpochState.COMMITTED:
        return f"it is {status.epoch.state}: only a decided epoch's outcome can be unknown"
    participant = next((item for item in status.participants if item.sink == sink), None)
    if participant is None:
        return f"it was planned without a sink {sink}"
    return f"sink {sink} has published it" if participant.state is ParticipantState.PUBLISHED else None


def effects_of_resolving(sink: str, dag_id: str) -> list[str]:
    return [
        f"A run of DAG {dag_id} first checks sink {sink}. If the outcome can be proven there your statement "
        "is ignored: nothing is changed, and the run reports why.",
        "Otherwise your statement is stored as the epoch's outcome in this sink, and the run recovers the pipeline.",
        "If the sink can be reached, recovery finds the outcome by itself: no statement is needed.",
    ]


def choices_of_resolving(sink: str) -> dict[Resolution, str]:
    """The possible outcomes, and the effect of each."""
    return {
        "applied": f"Applied: sink {sink} shows the rows. Nothing is written; it counts as published, and as unproven "
        "until it is read back.",
        "not-applied": f"Not applied: sink {sink}, as it is now, lacks the rows. They are written there from the WAL.",
    }


def conf_of_recovery(pipeline: str) -> dict[str, Json]:
    """Conf of a run that recovers this pipeline only."""
    return {PIPELINE: pipeline}


def conf_of_resolving(epoch: Epoch, sink: str, entry: int) -> dict[str, Json]:
    """Conf of a run that first applies history entry `entry`, a user's resolution of the epoch in the sink."""
    return {PIPELINE: epoch.pipeline, RESOLVE_EPOCH: epoch.id, RESOLVE_SINK: sink, RESOLVE_ENTRY: entry}


@dataclass(frozen=True)
class RestateCandidate:
    """An epoch of a range to restate. `refused`: why it can't be, or None; `took`: as in `Report.took`; `requested`:
    an existing run for it."""

    status: EpochStatus
    took: timedelta | None
    refused: str | None
    question: Question
    requested: RequestedRun | None


def interval_between(since: str, until: str) -> Interval:
    """The interval that a form contains, in UTC by default. Raises `IntervalMissing`."""
    return Interval(_moment(since), _moment(until))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise IntervalMissing(f"{text[:40]!a} is not a date, with or without a time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def refuse_range(candidates: Sequence[RestateCandidate], span: Interval, pipeline: str) -> str | None:
    """Why a form can't restate the range, or None."""
    command = f"`lockstep restate {pipeline} --from … --to … --reason …`"
    if not candidates:
        return "no epoch with an interval is in this range: restate those of a cursor by `lockstep restate --epoch`"
    if len(candidates) > MAX_EPOCHS:
        return f"more than {MAX_EPOCHS} epochs are in this range: choose a smaller one, or use {command}"
    for candidate in candidates:
        interval = candidate.status.epoch.interval
        if interval is None or interval.start < span.start or interval.end > span.end:
            return f"only a part of epoch {candidate.status.epoch.id} is in this range"
    return None if any(candidate.refused is None for candidate in candidates) else "none of these can be restated now"


def question_of_all(user: str, pipeline: str, candidates: Sequence[RestateCandidate]) -> Question:
    """The question about all epochs that can be restated: it contains which they are, their state, and the runs."""
    seen = json.dumps(
        [
            [candidate.question.dag_id, candidate.question.run().run_id]
            for candidate in candidates
            if candidate.refused is None
        ]
    )
    return Question(user, "restate together", pipeline, state=hashlib.sha256(seen.encode()).hexdigest())

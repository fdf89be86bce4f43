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

NAMED = 10  #: epochs of a list


@dataclass(frozen=True)
class Action:
    """Of an epoch. `refused`: why it can't be done now, or None; `effects`: what it would do, sentence by sentence."""

    name: str
    title: str
    refused: Callable[[EpochStatus], str | None]
    effects: Callable[[EpochStatus], list[str]]
    act: Callable[[Ledger, EpochStatus, str], Epoch]


def _refuse_abort(status: EpochStatus) -> str | None:
    if status.epoch.state not in UNDECIDED:
        return f"it is {status.epoch.state}: only an undecided epoch's attempt can be voided"
    return None if status.run else "its attempt is void already: clear its run, and it goes on"


def _effects_of_abort(status: EpochStatus) -> list[str]:
    effects = [f"The attempt of run {status.run} is void: none of its tasks can seal, vote or decide any more."]
    if status.leased:
        effects.append("A task of it is at work at this moment; it will fail, and say that it was superseded.")
    effects += voided_votes(status)
    if status.epoch.wal:
        effects.append("Its sealed WAL stays; the next attempt goes on with the same rows.")
    effects.append(f"{ROLLED_BACK} The next attempt does it, too.")
    if status.last_run:
        effects.append(f"To try again: {suggestions.clear(status.last_run.dag_id, status.last_run.run_id)}.")
    return effects


def _abort(ledger: Ledger, status: EpochStatus, reason: str) -> Epoch:
    epoch = status.epoch
    return ledger.raise_attempt(epoch.pipeline, epoch.id, Role.OPERATOR, only=epoch.attempt, reason=reason)


def _refuse_void(status: EpochStatus) -> str | None:
    if status.epoch.state in UNDECIDED:
        return None
    return f"it is {status.epoch.state}: only an undecided epoch's range can be given up"


def _effects_of_void(status: EpochStatus) -> list[str]:
    epoch = status.epoch
    span = f" {short_interval(epoch.interval)}" if epoch.interval else ""
    if epoch.generation:
        effects = [f"Nothing takes the place of epoch {epoch.generation.replaces}: its rows stay."]
    else:
        effects = [
            f"The range{span} of {list_some(epoch.plan.sources, NAMED)} is given up, for good: nothing ever reads it."
        ]
        effects.append("Files that it claimed stay claimed: no other epoch takes them.")
    if status.run:
        effects.append(f"The attempt of run {status.run} is void.")
    return [*effects, *voided_votes(status), ROLLED_BACK]


def _void(ledger: Ledger, status: EpochStatus, reason: str) -> Epoch:
    return ledger.void_epoch(status.epoch.pipeline, status.epoch.id, reason, only=status.epoch.attempt)


def _refuse_release(status: EpochStatus) -> str | None:
    return None if status.held else "no audit holds it"


def _effects_of_release(status: EpochStatus) -> list[str]:
    offended = status.verdict.offended if status.verdict else ()
    effects = [f"Audit {audit} holds it no longer." for audit in offended]
    manifest = (status.epoch.manifest_hash or "")[: suggestions.MANIFEST_DIGITS]
    effects.append(f"The rows of manifest {manifest} go to every sink; what is decided says who let them.")
    if status.last_run:
        effects.append(f"To go on: {suggestions.clear(status.last_run.dag_id, status.last_run.run_id)}.")
    return effects


def _release(ledger: Ledger, status: EpochStatus, reason: str) -> Epoch:
    return ledger.release_epoch(status.epoch.pipeline, status.epoch.id, reason, only=status.epoch.manifest_hash)


ROLLED_BACK = "What it left in sinks and staging is rolled back by the recovery DAG."


def voided_votes(status: EpochStatus) -> list[str]:
    voted = [participant.sink for participant in status.participants if participant.state is ParticipantState.PREPARED]
    return [f"The votes of {list_some(voted, NAMED)} are void."] if voted else []


ACTIONS = {
    one.name: one
    for one in (
        Action("abort", "Abort the attempt", _refuse_abort, _effects_of_abort, _abort),
        Action("release", "Release", _refuse_release, _effects_of_release, _release),
        Action("void", "Give the range up", _refuse_void, _effects_of_void, _void),
    )
}


def commands(status: EpochStatus) -> list[str]:
    """What else may be done to the epoch, by whoever has a command line: it needs a sink, or the definition."""
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
    """Of an epoch, for the DAG that moved it. `refused`: why it can't be done so, or None; `effects`: what it would do,
    sentence by sentence; `conf`: what the run is told."""

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
        return "another epoch has taken its place: restate the youngest of its generations"
    if epoch.state is not EpochState.CLEANED:
        return f"it is {epoch.state}: only what every sink shows, and is cleaned up, is replaced"
    return _refuse_dag(status, f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason …`")


def _effects_of_restating(status: EpochStatus, report: Report) -> list[str]:
    """What `lockstep restate --plan` says, but for the sinks: they are asked by the run."""
    epoch = status.epoch
    took = report.took(epoch)
    lasted = f" Moving it took {short_age(took)} the last time." if took is not None else ""
    replaced = (
        f"Epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be replaced; "
        f"rows: {_rows(status)}."
    )
    return [
        replaced + lasted,
        f"A run of DAG {dag_of(status)} reads the interval afresh, with today's files and code, as a new epoch.",
        f"With its decision it takes the place of epoch {epoch.id} in every sink: readers see old rows or new.",
        "Until then nothing changes. A sink that can't replace refuses before anything is read: "
        f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason … --plan` asks all of them now.",
        *_other_tasks(status),
        *_paused(status),
    ]


def _other_tasks(status: EpochStatus) -> list[str]:
    return ["The other tasks of that DAG run for the interval, too."] if _part_of(status) else []


def _rows(status: EpochStatus) -> str:
    return list_some([f"{name} {count:,}" for name, count in status.rows.items()], NAMED) or "no rows"


def _number(epoch: Epoch) -> int:
    return epoch.generation.number if epoch.generation else 0


def _conf_of_restating(status: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    return {**_interval_of(status.epoch), **restate_conf(reason, _part_of(status)), REPLACES: status.epoch.id}


def _part_of(status: EpochStatus) -> str | None:
    """The pipeline, where it is one of those that its DAG moves."""
    name = status.epoch.pipeline
    return name if status.last_run is not None and status.last_run.moves == name else None


def _refuse_restoring(status: EpochStatus, report: Report) -> str | None:
    """As `lockstep restore` would, as far as the ledger knows it."""
    epoch = status.epoch
    if epoch.interval is None:
        return "later epochs of a cursor go on where one ended, so none is shown again"
    if epoch.state is not EpochState.REPLACED:
        return f"it is {epoch.state}: only what was shown once, and replaced, can come back"
    wal = report.kept_wal(epoch.pipeline, epoch.id)
    if wal is None or wal.expired_at is not None:
        return "its WAL isn't kept, so nobody has its rows: `Pipeline(keep_wal=…)` says how long WALs stay"
    current = current_generation(report, epoch)
    if current.state is not EpochState.CLEANED:
        return f"epoch {current.id} is {current.state}: only what every sink shows, and is cleaned up, is replaced"
    rival = report.pending_replacement(current)
    if rival is not None:
        return f"epoch {rival.id} is {rival.state}, and is to take the place of epoch {current.id}: wait, or give it up"
    if shows_same_rows(epoch, current):
        return f"epoch {current.id} shows these very rows, by number, digest and columns"
    command = _command_to_restore(epoch)
    if status.last_run is not None and status.last_run.packed:
        return f"a run moves it together with others, and such a run shows no earlier rows again: {command} does it"
    return _refuse_dag(status, command)


def _effects_of_restoring(status: EpochStatus, report: Report) -> list[str]:
    """What `lockstep restore --plan` says, but for the files and the sinks: these are asked by the run."""
    epoch, current = status.epoch, current_generation(report, status.epoch)
    wal = report.kept_wal(epoch.pipeline, epoch.id)
    since = f", kept since {wal.retained_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if wal else ""
    columns = other_columns(epoch, current)
    effects = [
        f"The rows of epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be shown again: "
        f"{_rows(status)}; in place of those of epoch {current.id}, generation {_number(current)}: "
        f"{_rows(report.epoch_status(current))}.",
        f"A run of DAG {dag_of(status)} compares every file of its WAL{since}, with the manifest, and shows "
        "it as a new epoch: no input is read, and Spark isn't asked.",
        f"With its decision it takes the place of epoch {current.id} in every sink: readers see these rows or those.",
    ]
    if columns:
        effects.append(
            f"Other columns than are shown: {list_some(columns, NAMED)}. A sink that can't take them refuses."
        )
    return [
        *effects,
        "Until then nothing changes. A sink that can't replace refuses before anything is planned: "
        f"{_command_to_restore(epoch, ' --plan')} asks all of them now.",
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
            return f"epoch {before.id} before it is undecided, too, and a run would begin that one: {command} does it"
    if status.last_run is not None and PACKED in status.last_run.run_id:
        return f"a run moves it together with others: {command} does it"
    return _refuse_dag(status, command)


def _effects_of_replanning(status: EpochStatus, report: Report) -> list[str]:
    epoch = status.epoch
    if epoch.restores is not None:
        return [*_effects_of_showing_again(status, epoch.restores), *_paused(status)]
    now = f"the files of {_span(epoch.interval)} that are there then" if epoch.interval else "all that is there then"
    effects = [
        f"A run of DAG {dag_of(status)} freezes its range anew: {now}, read by the definition of then, for its sinks; "
        f"instead of {list_some(sorted(epoch.plan.sinks), NAMED)}. Then it moves the epoch."
    ]
    if status.run:
        effects.append(f"The attempt of run {status.run} is void from then on.")
    if status.leased:
        effects.append("A task of it is at work at this moment; it will fail, and say that it was superseded.")
    effects += voided_votes(status)
    if epoch.wal:
        effects.append("Its sealed WAL is thrown away: the rows are computed again.")
    return [*effects, "What it left in sinks and staging is rolled back by that run.", *_paused(status)]


def _effects_of_showing_again(status: EpochStatus, restores: int) -> list[str]:
    effects = [
        f"A run of DAG {dag_of(status)} plans it anew for the sinks of then: the same rows, those of epoch {restores}, "
        "and no input is read. Then it moves the epoch."
    ]
    if status.run:
        effects.append(f"The attempt of run {status.run} is void from then on.")
    return [*effects, *voided_votes(status), "What it left in sinks and staging is rolled back by that run."]


def _conf_of_replanning(status: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    epoch = status.epoch
    # or the run would find what it is to replace, and have nothing to do
    place = restate_conf(epoch.generation.reason, None) if epoch.generation else {}
    if epoch.restores is not None:
        place[RESTORE] = epoch.restores
    if epoch.generation and epoch.interval is None:
        place[RESTATE_EPOCH] = epoch.generation.replaces
    return {**_interval_of(epoch), **place, REPLAN: reason, REPLAN_EPOCH: epoch.id}


DAG_ACTIONS = {
    one.name: one
    for one in (
        DagAction("restate", "Restate", _refuse_restating, _effects_of_restating, _conf_of_restating),
        DagAction("restore", "Restore", _refuse_restoring, _effects_of_restoring, _conf_of_restoring),
        DagAction("replan", "Replan", _refuse_replanning, _effects_of_replanning, _conf_of_replanning),
    )
}


def _refuse_dag(status: EpochStatus, command: str) -> str | None:
    """Why no DAG can do it, and the command that can."""
    if status.last_run is None or status.last_run.dag_id in suggestions.OF_NO_DAG:
        return f"no DAG has moved it: {command} does it"
    if is_paused(dag_of(status)) is None:
        return f"Airflow has no DAG {dag_of(status)} any more: {command} does it"
    return None


def _paused(status: EpochStatus) -> list[str]:
    dag_id = dag_of(status)
    return [f"DAG {dag_id} is paused: the run begins once somebody lets it go on."] if is_paused(dag_id) else []


def dag_of(status: EpochStatus) -> str:
    return status.last_run.dag_id if status.last_run else ""


def _span(interval: Interval | None) -> str:
    return short_interval(interval) if interval else "its range"


def _interval_of(epoch: Epoch) -> dict[str, str]:
    if epoch.interval is None:
        return {}
    return {"interval_start": epoch.interval.start.isoformat(), "interval_end": epoch.interval.end.isoformat()}


# --- by the recovery DAG, which needs no definition ---


def effects_of_recovery(unfinished: Sequence[Epoch], abandoned: Sequence[Epoch]) -> list[str]:
    """What a round of recovery would do to what the ledger holds now; what it sweeps only the sinks know."""
    effects = []
    for state, does in ((EpochState.COMMITTED, "published"), (EpochState.PUBLISHED, "cleaned up")):
        if ids := [epoch.id for epoch in unfinished if epoch.state is state]:
            effects.append(f"{_epochs(ids)} {'are' if len(ids) > 1 else 'is'} {does}, in order.")
    if abandoned:
        ids = [epoch.id for epoch in abandoned]
        effects.append(
            f"The attempts of {_epochs(ids)} are void: nobody has been at them for the pipeline's hold. One whose run "
            "has a task still to come is left alone."
        )
    return [*effects, "Transactions, files and folders that nobody owns any more are taken away."]


def _epochs(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"{'Epochs' if len(ids) > 1 else 'Epoch'} {', '.join(map(str, sorted(ids)[:NAMED]))}{more}"


def refuse_resolving(status: EpochStatus, sink: str) -> str | None:
    """Why there is nothing to be said of the epoch in the sink, or None."""
    if status.epoch.state is not EpochState.COMMITTED:
        return f"it is {status.epoch.state}: only a decided epoch's outcome can be unknown"
    participant = next((item for item in status.participants if item.sink == sink), None)
    if participant is None:
        return f"it was planned without a sink {sink}"
    return f"sink {sink} has published it" if participant.state is ParticipantState.PUBLISHED else None


def effects_of_resolving(sink: str, dag_id: str) -> list[str]:
    return [
        f"A run of DAG {dag_id} looks into sink {sink} first. What can be proven there counts, and not what you say: "
        "then nothing is changed, and the run tells why.",
        "Otherwise your word is kept as the epoch's outcome in this sink, and the run goes on to recover the pipeline.",
        "If the sink can be reached, recovery alone finds out by itself: nobody need say anything.",
    ]


def choices_of_resolving(sink: str) -> dict[Resolution, str]:
    """What a person may say, and what that comes to."""
    return {
        "applied": f"Applied: sink {sink} shows the rows. Nothing is written; it counts as published, and as unproven "
        "until somebody reads it back.",
        "not-applied": f"Not applied: sink {sink}, as it is now, lacks the rows. They are written there from the WAL.",
    }


def conf_of_recovery(pipeline: str) -> dict[str, Json]:
    """For this pipeline alone."""
    return {PIPELINE: pipeline}


def conf_of_resolving(epoch: Epoch, sink: str, word: int) -> dict[str, Json]:
    """The same, which first does what somebody has asked for of the epoch in the sink, in entry `word` of the
    history."""
    return {PIPELINE: epoch.pipeline, RESOLVE_EPOCH: epoch.id, RESOLVE_SINK: sink, RESOLVE_ENTRY: word}


MAX_EPOCHS = 100  #: epochs that one form asks for


@dataclass(frozen=True)
class RestateCandidate:
    """For one epoch to be restated. `refused`: why it can't be, or None; `took`: as of `Report.took`; `asked`: the run
    that is there already."""

    found: EpochStatus
    took: timedelta | None
    refused: str | None
    question: Question
    asked: RequestedRun | None


def interval_between(since: str, until: str) -> Interval:
    """Of what a form says, in UTC unless it says otherwise. Raises `IntervalMissing`."""
    return Interval(_moment(since), _moment(until))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise IntervalMissing(f"{text[:40]!a} is no date, with or without a time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def refuse_range(candidates: Sequence[RestateCandidate], span: Interval, pipeline: str) -> str | None:
    """Why no form asks for all of it, or None."""
    command = f"`lockstep restate {pipeline} --from … --to … --reason …`"
    if not candidates:
        return "no epoch of an interval lies there: those of a cursor are restated by `lockstep restate --epoch`"
    if len(candidates) > MAX_EPOCHS:
        return f"more than {MAX_EPOCHS} epochs lie there: take fewer at a time, or {command} does it"
    for candidate in candidates:
        interval = candidate.found.epoch.interval
        if interval is None or interval.start < span.start or interval.end > span.end:
            return f"only a part of epoch {candidate.found.epoch.id} lies there, and an epoch is restated whole"
    return None if any(candidate.refused is None for candidate in candidates) else "none of these can be restated now"


def question_of_all(user: str, pipeline: str, candidates: Sequence[RestateCandidate]) -> Question:
    """Of those that can be restated: which they are, as they stand, and by which runs."""
    seen = json.dumps(
        [
            [candidate.question.dag_id, candidate.question.run().run_id]
            for candidate in candidates
            if candidate.refused is None
        ]
    )
    return Question(user, "restate together", pipeline, state=hashlib.sha256(seen.encode()).hexdigest())

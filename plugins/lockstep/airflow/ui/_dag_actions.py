"""What a run of a DAG does for a person: it needs a definition, a source or a sink, which the api-server never reaches.

Told before it is done, as far as the ledger knows it. What is asked for by a run's conf the run asks for itself again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC

from lockstep.airflow.replanning import REPLAN, REPLAN_EPOCH
from lockstep.airflow.resolving import EPOCH, PIPELINE, SINK, WORD
from lockstep.airflow.restating import EPOCH as RESTATED
from lockstep.airflow.restating import REPLACES, RESTORE, conf_of
from lockstep.airflow.ui._actions import NAMED, voided_votes
from lockstep.airflow.ui._runs import is_paused
from lockstep.epoch import PACKED, Epoch, Interval, Json
from lockstep.ledger.report import EpochStatus, Report
from lockstep.observability import suggestions
from lockstep.observability.formatting import short_age, short_interval
from lockstep.observability.redaction import list_some
from lockstep.operations.resolve import Resolution
from lockstep.operations.restore import other_columns
from lockstep.protocol.generations import current_life
from lockstep.protocol.restoring import shows_same_rows
from lockstep.states import UNDECIDED, EpochState, ParticipantState


@dataclass(frozen=True)
class DagAction:
    """Of an epoch, for the DAG that moved it. `refused`: why it can't be done so, or None; `effects`: what it would do,
    sentence by sentence; `conf`: what the run is told."""

    name: str
    title: str
    refused: Callable[[EpochStatus, Report], str | None]
    effects: Callable[[EpochStatus, Report], list[str]]
    conf: Callable[[EpochStatus, Report, str], dict[str, Json]]


def _refuse_restating(found: EpochStatus, report: Report) -> str | None:
    epoch = found.epoch
    if epoch.interval is None:
        return "a cursor's epochs are restated by `lockstep restate --epoch`"
    if epoch.state is EpochState.REPLACED:
        return "another epoch has taken its place: restate the youngest of its generations"
    if epoch.state is not EpochState.CLEANED:
        return f"it is {epoch.state}: only what every sink shows, and is cleaned up, is replaced"
    return _refuse_dag(found, f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason …`")


def _effects_of_restating(found: EpochStatus, report: Report) -> list[str]:
    """What `lockstep restate --plan` says, but for the sinks: they are asked by the run."""
    epoch = found.epoch
    took = report.took(epoch)
    lasted = f" Moving it took {short_age(took)} the last time." if took is not None else ""
    told = (
        f"Epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be replaced; "
        f"rows: {_rows(found)}."
    )
    return [
        told + lasted,
        f"A run of DAG {dag_of(found)} reads the interval afresh, with today's files and code, as a new epoch.",
        f"With its decision it takes the place of epoch {epoch.id} in every sink: readers see old rows or new.",
        "Until then nothing changes. A sink that can't replace refuses before anything is read: "
        f"`lockstep restate {epoch.pipeline} --epoch {epoch.id} --reason … --plan` asks all of them now.",
        *_other_tasks(found),
        *_paused(found),
    ]


def _other_tasks(found: EpochStatus) -> list[str]:
    return ["The other tasks of that DAG run for the interval, too."] if _part_of(found) else []


def _rows(found: EpochStatus) -> str:
    return list_some([f"{name} {count:,}" for name, count in found.rows.items()], NAMED) or "no rows"


def _number(epoch: Epoch) -> int:
    return epoch.generation.number if epoch.generation else 0


def _conf_of_restating(found: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    return {**_interval_of(found.epoch), **conf_of(reason, _part_of(found)), REPLACES: found.epoch.id}


def _part_of(found: EpochStatus) -> str | None:
    """The pipeline, where it is one of those that its DAG moves."""
    name = found.epoch.pipeline
    return name if found.last_run is not None and found.last_run.moves == name else None


def _refuse_restoring(found: EpochStatus, report: Report) -> str | None:
    """As `lockstep restore` would, as far as the ledger knows it."""
    epoch = found.epoch
    if epoch.interval is None:
        return "later epochs of a cursor go on where one ended, so none is shown again"
    if epoch.state is not EpochState.REPLACED:
        return f"it is {epoch.state}: only what was shown once, and replaced, can come back"
    kept = report.retained_wal(epoch.pipeline, epoch.id)
    if kept is None or kept.expired_at is not None:
        return "its WAL isn't kept, so nobody has its rows: `Pipeline(keep_wal=…)` says how long WALs stay"
    current = current_life(report, epoch)
    if current.state is not EpochState.CLEANED:
        return f"epoch {current.id} is {current.state}: only what every sink shows, and is cleaned up, is replaced"
    rival = report.pending_replacement(current)
    if rival is not None:
        return f"epoch {rival.id} is {rival.state}, and is to take the place of epoch {current.id}: wait, or give it up"
    if shows_same_rows(epoch, current):
        return f"epoch {current.id} shows these very rows, by number, digest and columns"
    command = _command_to_restore(epoch)
    if found.last_run is not None and found.last_run.packed:
        return f"a run moves it together with others, and such a run shows no earlier rows again: {command} does it"
    return _refuse_dag(found, command)


def _effects_of_restoring(found: EpochStatus, report: Report) -> list[str]:
    """What `lockstep restore --plan` says, but for the files and the sinks: these are asked by the run."""
    epoch, current = found.epoch, current_life(report, found.epoch)
    kept = report.retained_wal(epoch.pipeline, epoch.id)
    since = f", kept since {kept.retained_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if kept else ""
    others = other_columns(epoch, current)
    told = [
        f"The rows of epoch {epoch.id}, generation {_number(epoch)} of {_span(epoch.interval)}, would be shown again: "
        f"{_rows(found)}; in place of those of epoch {current.id}, generation {_number(current)}: "
        f"{_rows(report.epoch_status(current))}.",
        f"A run of DAG {dag_of(found)} compares every file of its WAL{since}, with the manifest, and shows it as a new "
        "epoch: no input is read, and Spark isn't asked.",
        f"With its decision it takes the place of epoch {current.id} in every sink: readers see these rows or those.",
    ]
    if others:
        told.append(f"Other columns than are shown: {list_some(others, NAMED)}. A sink that can't take them refuses.")
    return [
        *told,
        "Until then nothing changes. A sink that can't replace refuses before anything is planned: "
        f"{_command_to_restore(epoch, ' --plan')} asks all of them now.",
        *_other_tasks(found),
        *_paused(found),
    ]


def _conf_of_restoring(found: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    epoch, part = found.epoch, _part_of(found)
    wanted = {part: epoch.id} if part else epoch.id
    shown = current_life(report, epoch).id
    return {**_interval_of(epoch), **conf_of(reason, part), RESTORE: wanted, REPLACES: shown}


def _command_to_restore(epoch: Epoch, more: str = "") -> str:
    return f"`lockstep restore {epoch.pipeline} --epoch {epoch.id} --reason …{more}`"


def _refuse_replanning(found: EpochStatus, report: Report) -> str | None:
    epoch = found.epoch
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
    if found.last_run is not None and PACKED in found.last_run.run_id:
        return f"a run moves it together with others: {command} does it"
    return _refuse_dag(found, command)


def _effects_of_replanning(found: EpochStatus, report: Report) -> list[str]:
    epoch = found.epoch
    if epoch.restores is not None:
        return [*_effects_of_showing_again(found, epoch.restores), *_paused(found)]
    now = f"the files of {_span(epoch.interval)} that are there then" if epoch.interval else "all that is there then"
    told = [
        f"A run of DAG {dag_of(found)} freezes its range anew: {now}, read by the definition of then, for its sinks; "
        f"instead of {list_some(sorted(epoch.plan.sinks), NAMED)}. Then it moves the epoch."
    ]
    if found.run:
        told.append(f"The attempt of run {found.run} is void from then on.")
    if found.leased:
        told.append("A task of it is at work at this moment; it will fail, and say that it was superseded.")
    told += voided_votes(found)
    if epoch.wal:
        told.append("Its sealed WAL is thrown away: the rows are computed again.")
    return [*told, "What it left in sinks and staging is rolled back by that run.", *_paused(found)]


def _effects_of_showing_again(found: EpochStatus, restores: int) -> list[str]:
    told = [
        f"A run of DAG {dag_of(found)} plans it anew for the sinks of then: the same rows, those of epoch {restores}, "
        "and no input is read. Then it moves the epoch."
    ]
    if found.run:
        told.append(f"The attempt of run {found.run} is void from then on.")
    return [*told, *voided_votes(found), "What it left in sinks and staging is rolled back by that run."]


def _conf_of_replanning(found: EpochStatus, report: Report, reason: str) -> dict[str, Json]:
    epoch = found.epoch
    # or the run would find what it is to replace, and have nothing to do
    place = conf_of(epoch.generation.reason, None) if epoch.generation else {}
    if epoch.restores is not None:
        place[RESTORE] = epoch.restores
    if epoch.generation and epoch.interval is None:
        place[RESTATED] = epoch.generation.replaces
    return {**_interval_of(epoch), **place, REPLAN: reason, REPLAN_EPOCH: epoch.id}


ERRANDS = {
    one.name: one
    for one in (
        DagAction("restate", "Restate", _refuse_restating, _effects_of_restating, _conf_of_restating),
        DagAction("restore", "Restore", _refuse_restoring, _effects_of_restoring, _conf_of_restoring),
        DagAction("replan", "Replan", _refuse_replanning, _effects_of_replanning, _conf_of_replanning),
    )
}


def _refuse_dag(found: EpochStatus, command: str) -> str | None:
    """Why no DAG can do it, and the command that can."""
    if found.last_run is None or found.last_run.dag_id in suggestions.OF_NO_DAG:
        return f"no DAG has moved it: {command} does it"
    if is_paused(dag_of(found)) is None:
        return f"Airflow has no DAG {dag_of(found)} any more: {command} does it"
    return None


def _paused(found: EpochStatus) -> list[str]:
    dag_id = dag_of(found)
    return [f"DAG {dag_id} is paused: the run begins once somebody lets it go on."] if is_paused(dag_id) else []


def dag_of(found: EpochStatus) -> str:
    return found.last_run.dag_id if found.last_run else ""


def _span(interval: Interval | None) -> str:
    return short_interval(interval) if interval else "its range"


def _interval_of(epoch: Epoch) -> dict[str, str]:
    if epoch.interval is None:
        return {}
    return {"interval_start": epoch.interval.start.isoformat(), "interval_end": epoch.interval.end.isoformat()}


# --- by the recovery DAG, which needs no definition ---


def effects_of_recovery(unfinished: Sequence[Epoch], abandoned: Sequence[Epoch]) -> list[str]:
    """What a round of recovery would do to what the ledger holds now; what it sweeps only the sinks know."""
    told = []
    for state, does in ((EpochState.COMMITTED, "published"), (EpochState.PUBLISHED, "cleaned up")):
        if ids := [one.id for one in unfinished if one.state is state]:
            told.append(f"{_epochs(ids)} {'are' if len(ids) > 1 else 'is'} {does}, in order.")
    if abandoned:
        ids = [one.id for one in abandoned]
        told.append(
            f"The attempts of {_epochs(ids)} are void: nobody has been at them for the pipeline's hold. One whose run "
            "has a task still to come is left alone."
        )
    return [*told, "Transactions, files and folders that nobody owns any more are taken away."]


def _epochs(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"{'Epochs' if len(ids) > 1 else 'Epoch'} {', '.join(map(str, sorted(ids)[:NAMED]))}{more}"


def refuse_resolving(found: EpochStatus, sink: str) -> str | None:
    """Why there is nothing to be said of the epoch in the sink, or None."""
    if found.epoch.state is not EpochState.COMMITTED:
        return f"it is {found.epoch.state}: only a decided epoch's outcome can be unknown"
    known = next((one for one in found.participants if one.sink == sink), None)
    if known is None:
        return f"it was planned without a sink {sink}"
    return f"sink {sink} has published it" if known.state is ParticipantState.PUBLISHED else None


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
    return {PIPELINE: epoch.pipeline, EPOCH: epoch.id, SINK: sink, WORD: word}

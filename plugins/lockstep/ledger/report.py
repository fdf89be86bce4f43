"""Reports for `lockstep status`: each pipeline's epochs, and why some are stuck. Read-only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta

import lockstep.ledger._guards as guards
from lockstep.definition.wal_retention import KeptWals
from lockstep.epoch import ChangedFile, Epoch, Interval, Json, KeyedBy, Outcome, Participant, Plan, RunKey, Verdict
from lockstep.ledger._connection import Row
from lockstep.ledger._rows import to_epoch, to_participant, to_verdict
from lockstep.ledger.reader import LedgerReader
from lockstep.observability import suggestions
from lockstep.states import UNDECIDED, EpochState, ParticipantState, Role

PATIENCE = timedelta(minutes=5)
YOUNGEST = 20  #: default number of epochs listed in addition to unfinished ones
SHOWN = 1000  #: limit for all pipelines together, at least one of each
BRIEF_HOLES = 101  #: limit in a brief report
_NO_PLAN = Plan({}, {}).to_json()
_AT_ONCE = 5000  #: epochs per query, whose plans are held in memory


@dataclass(frozen=True)
class EpochStatus:
    """Status of one epoch. `stuck`: why it does not progress and which command helps; None otherwise."""

    epoch: Epoch
    age: timedelta  #: since the last change of state or attempt
    attempt_age: timedelta
    run: str | None  #: owner of the attempt: run id of dag id
    leased: bool
    participants: tuple[Participant, ...]
    stuck: str | None
    attempts: int = 0  #: number of attempts opened by `begin`
    last_run: RunKey | None = None  #: the last run that began this epoch
    late: tuple[str, ...] = ()  #: files of its interval that arrived after the decision; unknown to the ledger
    changed: tuple[ChangedFile, ...] = ()  #: files that changed since they were read; unknown to the ledger
    #: by source, what held rows back when it was planned; reported by the source
    held_back: Mapping[str, str] = field(default_factory=dict)
    finished: tuple[str, ...] = ()  #: sources read to their end; reported by the source
    verdict: Verdict | None = None  #: of its audits
    redefined: tuple[str, ...] = ()  #: sinks and sources whose definition changed since

    @property
    def held(self) -> bool:
        """Whether a held verdict blocks the epoch until an operator decides."""
        undecided = self.epoch.state in UNDECIDED
        return undecided and self.verdict is not None and self.verdict.outcome is Outcome.HELD

    @property
    def rows(self) -> dict[str, int]:
        """Sealed rows per output."""
        outputs = self.epoch.counted
        return {name: facts["rows"] for name, facts in outputs.items() if "rows" in facts}

    @property
    def quarantined(self) -> dict[str, int]:
        """Rows per output that audits quarantined, where there are any."""
        outputs = (self.epoch.summary or {}).get("quarantined", {})
        return {name: facts["rows"] for name, facts in outputs.items() if facts["rows"]}


@dataclass(frozen=True)
class Unproven:
    """A published epoch whose rows in the sink are not proven to be the sealed ones."""

    epoch: int
    sink: str
    why: str


@dataclass(frozen=True)
class Shown:
    """The newest epoch published in all sinks, and the age of its data: since the end of the interval, or since the
    range of a cursor was frozen."""

    epoch: int
    lag: timedelta


@dataclass(frozen=True)
class ShownEpoch:
    """An epoch published in all sinks, with rows per output. `came`: time of the last transition to each state, of the
    first to `planned`, as far as the history has it."""

    epoch: int
    rows: Mapping[str, int]
    sinks: tuple[str, ...]
    came: Mapping[EpochState, datetime]


@dataclass(frozen=True)
class PipelineStatus:
    """Status of one pipeline: counts by state, gaps between intervals, newest epochs.

    `verified_through`: every epoch up to this one is verified in every sink; 0 if the first is not. `unproven`: the
    first published epoch that is not verified.
    """

    name: str
    identity: KeyedBy
    last_epoch: int
    counts: Mapping[EpochState, int]
    holes: tuple[Interval, ...]
    epochs: tuple[EpochStatus, ...]  #: unfinished and newest ones, highest number first
    forgotten: str | None = None  #: time, actor and reason of forgetting
    kept: KeptWals | None = None  #: retained WALs, if any
    verified_through: int = 0
    unproven: Unproven | None = None
    shown: Shown | None = None  #: None: no published epoch

    @property
    def stuck(self) -> tuple[EpochStatus, ...]:
        """Epochs that do not progress, oldest first."""
        return tuple(sorted((status for status in self.epochs if status.stuck), key=lambda status: status.epoch.id))

    @property
    def trouble(self) -> str | None:
        """One sentence about the stuck epochs and the command for the first; None if there are none."""
        if not self.stuck:
            return None
        first, numbers = self.stuck[0], ", ".join(str(status.epoch.id) for status in self.stuck)
        count = f"{len(self.stuck)} epochs are stuck ({numbers})" if len(self.stuck) > 1 else "an epoch is stuck"
        return f"pipeline {self.name}: {count}; epoch {first.epoch.id} ({first.epoch.state}): {first.stuck}"


@dataclass(frozen=True)
class LineEntry:
    """One epoch on a time line. `rows`: of all outputs; None before the seal."""

    epoch: int
    interval: Interval | None
    state: EpochState
    rows: int | None


@dataclass(frozen=True)
class HistoryEntry:
    """One transition and its actor. `sink` None: of the epoch itself."""

    at: datetime
    sink: str | None
    source: str | None
    target: str
    attempt: int | None
    token: int | None
    role: str
    actor: str
    reason: str | None
    ordinal: int | None = None  #: ordinal of `attempt` among those opened by begin; None for others


class Report(LedgerReader):
    """Reports of status and history. Raises `LedgerUnavailable`, `LedgerRefused`."""

    def pipelines(
        self,
        *,
        limit: int | None = None,
        max_wait: timedelta = PATIENCE,
        unfinished: int | None = None,
        brief: bool = False,
    ) -> list[PipelineStatus]:
        """Every pipeline that isn't forgotten, with its `limit` newest epochs and all unfinished ones.

        `limit` None: `YOUNGEST`, or fewer for many pipelines, `SHOWN` in total. `unfinished`, `brief`: see `pipeline`.

        An epoch is stuck if it needs an operator or recovery. A decided one: no change and no publisher for `max_wait`.
        An undecided one: its attempt was voided, or no task was active for `max_wait`.
        """
        rows = self._find_all("list_pipelines")
        youngest = min(YOUNGEST, max(1, SHOWN // max(1, len(rows)))) if limit is None else limit
        together = max(1, _AT_ONCE // max(1, youngest))
        parts = (rows[first : first + together] for first in range(0, len(rows), together))
        return [
            status for part in parts for status in self._pipelines(part, youngest, max_wait, None, unfinished, brief)
        ]

    def recoverable(self) -> list[str]:
        """Names of the pipelines that recovery handles: all but forgotten ones, and forgotten ones for seven days after
        a prepare."""
        return [str(row["name"]) for row in self._find_all("list_recoverable_pipelines")]

    def pipeline(
        self,
        name: str,
        *,
        limit: int = YOUNGEST,
        max_wait: timedelta = PATIENCE,
        before: int | None = None,
        unfinished: int | None = None,
        brief: bool = False,
    ) -> PipelineStatus | None:
        """One pipeline, or None if unknown.

        `before`: newest epochs below this number; `unfinished`: at most so many unfinished epochs, oldest first;
        `brief`: empty plans, seal summaries with rows only, and at most `BRIEF_HOLES` gaps.
        """
        row = self._find_one("find_pipeline", pipeline=name)
        return self._pipelines([row], limit, max_wait, before, unfinished, brief)[0] if row else None

    def line(self, pipeline: str, *, limit: int, before: int | None = None) -> list[LineEntry]:
        """The `limit` newest epochs below number `before` (None: of all), highest first, for a time line. Cheap for
        thousands."""
        rows = self._find_all("list_timeline", pipeline=pipeline, limit=limit, before=before)
        return [
            LineEntry(
                row["id"],
                Interval(row["start"], row["end"]) if row["start"] is not None else None,
                EpochState(row["state"]),
                row["rows"],
            )
            for row in rows
        ]

    def epoch_status(self, epoch: Epoch, *, max_wait: timedelta = PATIENCE) -> EpochStatus:
        """Status of an existing epoch."""
        return self._epochs([epoch.pipeline], 1, max_wait, epoch.id + 1, 0, False)[epoch.pipeline][0]

    def dags(self, pipelines: Iterable[str]) -> dict[str, frozenset[str]]:
        """Ids of the DAGs whose runs began the newest epochs of each pipeline."""
        rows = _by_pipeline(self._find_all("list_dags", pipelines=list(pipelines)))
        return {
            name: frozenset(row["dag_id"] for row in dag_rows) - suggestions.OF_NO_DAG
            for name, dag_rows in rows.items()
        }

    def pipelines_of_dag(self, dag_id: str) -> list[str]:
        """Pipelines whose epochs the DAG's runs began."""
        return [str(row["pipeline"]) for row in self._find_all("list_pipelines_of_dag", dag_id=dag_id)]

    def epochs_of_run(self, run: RunKey, pipelines: Iterable[str]) -> list[Epoch]:
        """Epochs that a run of Airflow began: of its DAG's pipeline, or one of each of `pipelines`."""
        names = [run.run_id, *(run.part(pipeline).run_id for pipeline in pipelines)]
        rows = self._find_all("list_epochs_of_runs", dag_id=run.dag_id, run_ids=names)
        return [to_epoch(row) for row in rows]

    def knows_run(self, run: RunKey, epoch: Epoch) -> bool:
        """Whether a run, possibly deleted, began an epoch of the range of `epoch`."""
        parts = (run, run.part(epoch.pipeline))
        names = [member.run_id for part in parts for member in (part, part.member(epoch.interval, 1))]
        return bool(self._find_all("list_epochs_of_runs", dag_id=run.dag_id, run_ids=names))

    def history(self, pipeline: str, epoch: int) -> list[HistoryEntry]:
        """All transitions of an epoch and its participants, oldest first."""
        rows = self._find_all("list_transitions", pipeline=pipeline, epoch=epoch)
        attempts = dict.fromkeys(row["attempt"] for row in rows if row["sink"] is None and row["role"] == Role.BEGIN)
        ordinals = {attempt: number for number, attempt in enumerate(attempts, 1)}
        return [replace(_entry(row), ordinal=ordinals.get(row["attempt"])) for row in rows]

    def took(self, epoch: Epoch) -> timedelta | None:
        """Time from the begin of the last attempt to the publication in all sinks, if the history has it."""
        moves = [entry for entry in self.history(epoch.pipeline, epoch.id) if entry.sink is None]
        starts = [entry.at for entry in moves if entry.attempt == epoch.attempt]
        published = [entry.at for entry in moves if entry.target == EpochState.PUBLISHED]
        return published[0] - starts[0] if starts and published else None

    def shown_epochs(self, epochs: Mapping[str, int]) -> dict[str, ShownEpoch]:
        """The given epoch of each pipeline with its rows and transition times."""
        rows = self._find_all("list_epoch_times", pipelines=list(epochs), epochs=list(epochs.values()))
        published = {}
        for row in rows:
            came = {state: row[state] for state in EpochState if row.get(state) is not None}
            sinks = tuple(row["sinks"] or ())
            published[row["pipeline"]] = ShownEpoch(row["epoch"], row["rows"] or {}, sinks, came)
        return published

    def _pipelines(
        self,
        rows: Sequence[Row],
        limit: int,
        max_wait: timedelta,
        before: int | None,
        unfinished: int | None,
        brief: bool,
    ) -> list[PipelineStatus]:
        """Status of several pipelines, with as many queries as for one."""
        names = [row["name"] for row in rows]
        counts = _by_pipeline(self._find_all("count_states", pipelines=names))
        intervals = [row["name"] for row in rows if row["keyed_by"] == KeyedBy.INTERVAL]
        gaps = _by_pipeline(
            self._find_all("find_gaps", pipelines=intervals, limit=BRIEF_HOLES if brief else None) if intervals else []
        )
        verified = {row["pipeline"]: row for row in self._find_all("find_verified", pipelines=names)}
        retained = {row.pop("pipeline"): row for row in self._find_all("count_retained_wals", pipelines=names)}
        freshness = {row["pipeline"]: row for row in self._find_all("list_freshness", pipelines=names)}
        epochs = self._epochs(names, limit, max_wait, before, unfinished, brief)
        statuses = []
        for row in rows:
            name = row["name"]
            blocker, newest = verified[name], freshness.get(name)
            unproven = None
            if blocker["unproven"] is not None:
                unproven = Unproven(blocker["epoch"], blocker["sink"], blocker["unproven"])
            status = PipelineStatus(
                name,
                KeyedBy(row["keyed_by"]),
                row["last_epoch"],
                {EpochState(count["state"]): int(count["epochs"]) for count in counts.get(name, ())},
                tuple(Interval(gap["start"], gap["end"]) for gap in gaps.get(name, ())),
                epochs.get(name, ()),
                guards.describe_forgetting(row) if row["forgotten_at"] is not None else None,
                KeptWals(**retained[name]) if name in retained else None,
                blocker["through"],
                unproven,
                Shown(newest["epoch"], newest["lag"]) if newest else None,
            )
            statuses.append(status)
        return statuses

    def _epochs(
        self,
        names: Sequence[str],
        limit: int,
        max_wait: timedelta,
        before: int | None,
        unfinished: int | None,
        brief: bool,
    ) -> dict[str, tuple[EpochStatus, ...]]:
        """Epoch status by pipeline, highest number first."""
        among = {"limit": limit, "before": before, "unfinished": unfinished, "brief": brief}
        epochs = _by_pipeline(self._find_all("list_epochs", pipelines=list(names), **among))
        publishers: dict[tuple[str, int], list[Row]] = {}
        keys = [(row["pipeline"], row["id"]) for epoch_rows in epochs.values() for row in epoch_rows]
        for row in self._find_all(
            "list_publishers", pipelines=[pipeline for pipeline, _ in keys], epochs=[number for _, number in keys]
        ):
            publishers.setdefault((row["pipeline"], row["epoch"]), []).append(row)
        return {
            name: tuple(_status(row, publishers.get((name, row["id"]), ()), max_wait) for row in epoch_rows)
            for name, epoch_rows in epochs.items()
        }


def _by_pipeline(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["pipeline"], []).append(row)
    return grouped


def _status(row: Row, publishers: Sequence[Row], max_wait: timedelta) -> EpochStatus:
    epoch = to_epoch(row if row["plan"] is not None else {**row, "plan": _NO_PLAN})
    participants = tuple(map(to_participant, publishers))
    verdict = to_verdict(row["verdict"]) if row["verdict"] else None
    silent = any(
        publisher["silence"] > max_wait for publisher in publishers if publisher["state"] != ParticipantState.PUBLISHED
    )
    return EpochStatus(
        epoch,
        row["age"],
        row["attempt_age"],
        f"{row['owner_run']} of {row['owner_dag']}" if row["owner_run"] is not None else None,
        row["leased"],
        participants,
        _stuck(epoch, row, participants, max_wait, silent, verdict),
        row["attempts"],
        RunKey(row["last_dag"], row["last_run"]) if row["last_run"] is not None else None,
        verdict=verdict,
    )


def to_json(value: object) -> Json:
    """A report as JSON: times in ISO 8601 UTC, ages in seconds."""
    match value:
        case Interval():
            return {"start": value.start.isoformat(), "end": value.end.isoformat()}
        case datetime():
            return value.astimezone(UTC).isoformat()
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        return {**members, "rows": value.rows} if isinstance(value, EpochStatus) else members
    return value


def _stuck(
    epoch: Epoch,
    row: Row,
    participants: tuple[Participant, ...],
    max_wait: timedelta,
    silent: bool,
    verdict: Verdict | None,
) -> str | None:
    if epoch.state is EpochState.STAGED and verdict is not None and verdict.outcome is Outcome.HELD:
        return guards.describe_hold(epoch.pipeline, epoch.id, verdict)
    if epoch.state in UNDECIDED:
        return _stuck_undecided(epoch, row, participants, max_wait)
    if epoch.state is EpochState.COMMITTED and silent:
        missing = [p.sink for p in participants if p.state is not ParticipantState.PUBLISHED]
        unpublished = row["before_state"] in _UNPUBLISHED
        waits = f"; the preceding epoch {row['before_id']} is {row['before_state']}" if unpublished else ""
        return (
            f"decided, not published in {', '.join(missing)}{waits}: {suggestions.recover(epoch.pipeline)} publishes it"
        )
    if epoch.state is EpochState.PUBLISHED and row["age"] > max_wait:
        return f"its WAL is not deleted: {suggestions.recover(epoch.pipeline)} deletes it"
    return None


def _stuck_undecided(epoch: Epoch, row: Row, participants: tuple[Participant, ...], max_wait: timedelta) -> str | None:
    if row["leased"] or (row["owner_run"] is not None and row["silence"] <= max_wait):
        return None
    missing = [p.sink for p in participants if p.state is ParticipantState.PENDING]
    lacks = "no sealed WAL" if epoch.wal is None else f"no vote of {', '.join(missing)}" if missing else "no decision"
    again = suggestions.clear(row["last_dag"], row["last_run"])
    if row["before_state"] in UNDECIDED:
        waits = f"waits for epoch {row['before_id']}, which is {row['before_state']}"
        return f"{lacks}; {waits}: once that is decided, {again}"
    ended = "its attempt was voided" if row["owner_run"] is None else "its lease has expired"
    why = f" ({epoch.reason})" if epoch.reason else ""
    give_up = suggestions.void(epoch.pipeline, epoch.id)
    return f"{lacks}, and no task is active: {ended}{why}; to continue it, {again}; to give up its range, {give_up}"


_UNPUBLISHED = UNDECIDED | {EpochState.COMMITTED}


def _entry(row: Row) -> HistoryEntry:
    return HistoryEntry(
        at=row["at"].astimezone(UTC),
        sink=row["sink"],
        source=row["source_state"],
        target=row["target_state"],
        attempt=row["attempt"],
        token=row["token"],
        role=row["role"],
        actor=row["actor"],
        reason=row["reason"],
    )

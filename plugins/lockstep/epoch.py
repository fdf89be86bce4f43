"""The facts of an epoch as the roles pass them around: frozen, and JSON where they cross a process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from lockstep.errors import IntervalMissing, InvalidPipeline, LedgerRefused
from lockstep.states import EpochState, ParticipantState

Json: TypeAlias = Any  #: None, bool, int, float, str, list and dict with string keys: what json.dumps takes
Position: TypeAlias = Json  #: where a source's range starts or ends; only the source can read it

PLAN_FORMAT = 1
PACKED = "/"  #: between a run's id and what names one epoch of its pack, or one pipeline of several that it moves
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def require_name(kind: str, name: str) -> str:
    """Return `name` if it can be part of folder names, gids and session names; raise `InvalidPipeline` otherwise."""
    if not _NAME.fullmatch(name):
        raise InvalidPipeline(
            f"{kind} name {name!r}: a name starts with a letter and has at most 40 letters, digits, '_', '.' or '-'"
        )
    return name


class KeyedBy(StrEnum):
    """How the epochs of a pipeline are identified."""

    INTERVAL = "interval"  #: a data interval in UTC; any order, in parallel
    CURSOR = "cursor"  #: a dense number; n+1 starts where n's range ends


class Input(StrEnum):
    """The input of an epoch that replaces another."""

    FRESH = "fresh"  #: its interval, planned anew: files that came late, or were corrected, belong to it
    FROZEN = "frozen"  #: exactly what that one read


@dataclass(frozen=True, order=True)
class Interval:
    """A half-open range of time [start, end), kept in UTC. Raises `IntervalMissing` when empty or naive."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for end in (self.start, self.end):
            if not isinstance(end, datetime):
                raise IntervalMissing(
                    f"interval bound {end!r} is a {type(end).__name__}; give an aware datetime, such as "
                    "datetime(2026, 1, 1, tzinfo=UTC)"
                )
            if end.tzinfo is None:
                raise IntervalMissing(f"interval bound {end.isoformat()} has no time zone; give an aware datetime")
        try:
            start, end = (moment.astimezone(UTC) for moment in (self.start, self.end))
        except OverflowError:
            raise IntervalMissing(
                f"interval [{self.start.isoformat()}, {self.end.isoformat()}) reaches beyond the years 1 to 9999"
            ) from None
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        if not self.start < self.end:
            raise IntervalMissing(
                f"interval [{self.start.isoformat()}, {self.end.isoformat()}) is empty: it must end after it starts"
            )

    def __str__(self) -> str:
        return f"[{self.start.isoformat()}, {self.end.isoformat()})"


@dataclass(frozen=True)
class SourceRange:
    """The frozen range of one source: positions are the source's own JSON.

    `spec`: which source, without secrets; None for sources that can't say it.
    `snapshot`: it is all that the source had then, which other epochs read, too; `start` is None.
    """

    start: Position | None
    end: Position
    spec: Json | None = None
    snapshot: bool = False

    def to_json(self) -> Json:
        spec = {} if self.spec is None else {"spec": self.spec}
        return {"start": self.start, "end": self.end, **spec, **({"snapshot": True} if self.snapshot else {})}

    @classmethod
    def from_json(cls, value: Json) -> SourceRange:
        return cls(value["start"], value["end"], value.get("spec"), value.get("snapshot", False))


@dataclass(frozen=True, order=True)
class Claim:
    """A file that belongs to one epoch: all of it, or the bytes [starts, ends) of a growing one.

    The other fields describe the file, so that a later look can detect a change: bytes, nanoseconds since 1970, and
    digests that only the source understands. `head` recognizes a file under another name.
    """

    path: str
    starts: int = 0
    ends: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    digest: str | None = None
    head: str | None = None  #: written, and looked for, but not given back


@dataclass(frozen=True)
class ChangedFile:
    """A file that is no longer what an epoch read. `difference`: what was, and what is, in words."""

    path: str
    difference: str

    def __str__(self) -> str:
        return f"{self.path} ({self.difference})"


@dataclass(frozen=True)
class Plan:
    """The input and destination of an epoch, frozen at its first `begin`. `sinks`: full specs, without secrets.

    `reads`: description of each source's input (`Source.reads_from`). `audits`: specs of the audits that run before any
    sink may vote. `input`: FROZEN if the ranges are those of the replaced epochs, for a replan. `foreign`: number and
    manifest hash of newer generations of the range, newest first, that sinks show by the decision of a lost ledger; the
    epoch replaces them too.
    """

    sources: Mapping[str, SourceRange]
    sinks: Mapping[str, Json]
    reads: Mapping[str, str] = field(default_factory=dict)
    audits: tuple[Json, ...] = ()
    input: Input = Input.FRESH
    foreign: tuple[tuple[int, str], ...] = ()

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The sources that it reads whole."""
        return tuple(name for name, source_range in self.sources.items() if source_range.snapshot)

    @property
    def positions(self) -> dict[str, Position]:
        """{source: end position} of the sources that have one."""
        return {name: source_range.end for name, source_range in self.sources.items() if not source_range.snapshot}

    def to_json(self) -> Json:
        return {
            "format": PLAN_FORMAT,
            "sources": {name: source_range.to_json() for name, source_range in self.sources.items()},
            "sinks": dict(self.sinks),
            "reads": dict(self.reads),
            **({"audits": list(self.audits)} if self.audits else {}),
            **({"input": str(self.input)} if self.input is Input.FROZEN else {}),
            **({"foreign": [list(statement) for statement in self.foreign]} if self.foreign else {}),
        }

    @classmethod
    def from_json(cls, value: Json) -> Plan:
        """Raises `LedgerRefused` for a format that this version of Lockstep doesn't know."""
        if value.get("format") != PLAN_FORMAT:
            raise LedgerRefused(
                f"plan has format {value.get('format')!r}, this Lockstep reads {PLAN_FORMAT}: upgrade it"
            )
        return cls(
            {name: SourceRange.from_json(source_range) for name, source_range in value["sources"].items()},
            dict(value["sinks"]),
            dict(value["reads"]),
            tuple(value.get("audits", ())),
            Input(value.get("input", Input.FRESH)),
            tuple((epoch, manifest_hash) for epoch, manifest_hash in value.get("foreign", ())),
        )


@dataclass(frozen=True)
class RunKey:
    """A run: Airflow's DAG id and run id, or their substitutes in `run_epoch`.

    `interval`: the interval that the run moves, if known. A run id keeps its interval: another one is refused.
    """

    dag_id: str
    run_id: str
    interval: Interval | None = field(default=None, compare=False)
    #: why it is to replace what is published of its range; None: it isn't
    restate: str | None = field(default=None, compare=False)
    #: with `restate`: the epoch whose rows are to be shown again, in place of reading the range
    restore: int | None = field(default=None, compare=False)
    #: another input; None: the pipeline's usual one
    input: Input | None = field(default=None, compare=False)
    #: of a cursor pipeline: the number of the epoch to restate
    epoch: int | None = field(default=None, compare=False)
    #: the epoch to replace, as the user saw it; None: the one that is published by then
    replaces: int | None = field(default=None, compare=False)

    def part(self, pipeline: str) -> RunKey:
        """The run as far as it moves `pipeline`, one of several in its DAG. So each has its own row in the ledger."""
        return replace(self, run_id=f"{self.run_id}{PACKED}{pipeline}")

    @property
    def whole(self) -> RunKey:
        """The run as Airflow knows it."""
        return RunKey(self.dag_id, self.run_id.partition(PACKED)[0])

    @property
    def moves(self) -> str | None:
        """The pipeline of a `part`. Pipeline names start with a letter, names of a pack's epochs with a digit."""
        count = self.run_id.partition(PACKED)[2].partition(PACKED)[0]
        return count if count[:1].isalpha() else None

    @property
    def packed(self) -> bool:
        """True for a `member` of a part or of the whole."""
        return any(name[:1].isdigit() for name in self.run_id.split(PACKED)[1:])

    def member(self, interval: Interval | None, number: int) -> RunKey:
        """The run of one epoch of the pack that this run moves: by its interval, or a cursor's by its `number` in the
        pack. So each has its own row in the ledger, and finds it again in every try."""
        name = interval.start.isoformat() if interval else str(number)
        return replace(self, run_id=f"{self.run_id}{PACKED}{name}", interval=interval)


@dataclass(frozen=True)
class Attempt:
    """One try at an epoch: the token that its `begin` took."""

    pipeline: str
    epoch: int
    token: int


@dataclass(frozen=True)
class Restaged:
    """The WAL that replaces a decided epoch's damaged WAL: the same rows, staged again.

    `reordered`: their order may differ. The epoch keeps the decided manifest hash, also in markers.
    """

    wal: str
    manifest_hash: str
    reordered: bool


@dataclass(frozen=True)
class Generation:
    """Data of an epoch that replaces a published one."""

    root: int  #: the original
    number: int  #: 1: the first that took its place
    replaces: int  #: whose place it takes with its decision: generation number - 1
    reason: str  #: given by the user
    restores: int | None = None  #: the earlier generation whose rows it shows again; None: it has read its range
    #: with state: the last one whose place it takes, of all from `replaces` on; None: it takes that one's alone
    through: int | None = None

    def __str__(self) -> str:
        """The replaced epochs and the source of the rows."""
        place = f"epoch {self.replaces}"
        if self.through not in (None, self.replaces):
            place = f"epochs {self.replaces} to {self.through}"
        return place if self.restores is None else f"{place} with the rows of epoch {self.restores}"


@dataclass(frozen=True)
class Epoch:
    """One row of the ledger."""

    pipeline: str
    id: int
    interval: Interval | None
    state: EpochState
    attempt: int
    plan: Plan
    planned_at: datetime
    wal: str | None = None  #: the sealed folder, relative to staging
    manifest_hash: str | None = None  #: sha256 of the manifest, 64 hex digits
    code_version: str | None = None
    summary: Json = None  #: counts and digests per output, counts per source: what stays after cleanup
    based_on: str | None = None  #: with state: the manifest hash of the epoch before, "" without one
    reason: str | None = None  #: why it is void, or why the last abort happened
    restaged: Restaged | None = None
    generation: Generation | None = None  #: None: the original of its range

    @property
    def root(self) -> int:
        """The original of its range."""
        return self.generation.root if self.generation else self.id

    @property
    def counted(self) -> Mapping[str, Any]:
        """Counts of the seal by output: rows, bytes, digest and more; empty before the seal."""
        return (self.summary or {}).get("outputs", {})  # type: ignore[no-any-return]

    @property
    def restores(self) -> int | None:
        """The earlier generation whose rows it shows again."""
        return self.generation.restores if self.generation else None

    @property
    def in_order(self) -> bool:
        """True for an epoch of a cursor pipeline, except one that only replaces another."""
        return self.interval is None and (self.generation is None or self.generation.through is not None)

    def __str__(self) -> str:
        span = f" {self.interval}" if self.interval else ""
        return f"{self.pipeline} epoch {self.id}{span}{f' in place of {self.generation}' if self.generation else ''}"


@dataclass(frozen=True)
class Vote:
    """A sink's promise that any process can publish this epoch, even if the voting one dies.

    `token` is the execution's; `handle` identifies the sink's transaction (gid or folder; None for a redo sink, or the
    number of transactions that it sends); `target_id` is the random id stored beside the marker table; `rows` are the
    rows written or checked per output.
    """

    token: int
    handle: str | None
    target_id: str
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LastShown:
    """One of the epochs that a sink was last to show, and how its target is known again. `spec`: the sink, as that
    epoch's plan froze it. `reported_lost`: a person has said that a target of this sink lacks it, or a later one."""

    sink: str
    epoch: int
    manifest_hash: str
    target_id: str
    publication: str
    spec: Json
    reported_lost: bool = False


@dataclass(frozen=True)
class Participant:
    """One sink's part in one epoch."""

    sink: str
    state: ParticipantState
    attempt: int | None
    vote: Vote | None
    execution: int | None = None  #: the largest token with which `prepare` has started
    publication: str | None = None  #: how it was published: see `lockstep.sinks.values.Publication`
    unproven: str | None = None  #: of a published one: why nothing proves that the sink shows what was sealed
    compared_at: datetime | None = field(default=None, compare=False)  #: when the sink was last read back
    compared_by: str | None = field(default=None, compare=False)
    age: timedelta | None = field(default=None, compare=False)  #: since the last change, by Postgres' clock


@dataclass(frozen=True)
class PendingAssetEvent:
    """An epoch that a sink shows, and of which nothing proves that Airflow's assets know it."""

    pipeline: str
    epoch: int
    sink: str
    published_at: datetime
    published_by: str  #: the actor
    age: timedelta | None = field(default=None, compare=False)  #: by Postgres' clock
    missed: timedelta | None = field(default=None, compare=False)  #: since Airflow was first told of it in vain
    runs: tuple[RunKey, ...] = field(default=(), compare=False)  #: those that came to the epoch


class Outcome(StrEnum):
    """The result of the audits of a sealed WAL."""

    PASSED = "passed"  #: nothing blocking offends
    HELD = "held"  #: something does: no sink may vote until a person answers
    RELEASED = "released"  #: a person has let it go on, with a reason


@dataclass(frozen=True)
class AuditResult:
    """`offending`: number of offending rows; 1 for an audit of a number that fails. `value`: the measured number, if it
    is compared with other epochs. `told`: number and bounds of a failed comparison, or why it was skipped."""

    name: str
    offending: int
    blocking: bool
    value: float | None = None
    told: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.told or f'{self.offending:,} row' + ('s' if self.offending != 1 else '')})"


@dataclass(frozen=True)
class Verdict:
    """The answer of an epoch's audits, for one sealed WAL and no other: it is bound to the manifest's hash."""

    manifest_hash: str
    outcome: Outcome
    results: tuple[AuditResult, ...]
    actor: str  #: who gave it; of a released one, who released it
    at: datetime
    reason: str | None = None  #: of a released one, why

    @property
    def offended(self) -> tuple[AuditResult, ...]:
        """The blocking audits that rows offend."""
        return tuple(result for result in self.results if result.offending and result.blocking)

    @property
    def warnings(self) -> tuple[AuditResult, ...]:
        return tuple(result for result in self.results if result.offending and not result.blocking)

    def __str__(self) -> str:
        if self.outcome is Outcome.PASSED:
            return f"{len(self.results)} audit{'s' if len(self.results) != 1 else ''} passed"
        names = ", ".join(map(str, self.offended))
        return f"held by {names}" if self.outcome is Outcome.HELD else f"released by {self.actor}: {self.reason}"


@dataclass(frozen=True)
class EpochReport:
    """The result of `run_epoch` and `recover` for an epoch."""

    pipeline: str
    epoch: int
    interval: Interval | None
    state: EpochState
    attempt: int
    already_published: bool  #: the epoch was there before; nothing was done
    rows: Mapping[str, int]  #: per output, in the WAL and so in every sink that takes it
    sources: Mapping[str, Json]  #: per source: rows read, quarantined
    publications: Mapping[str, str]  #: per sink: how it was published
    verdict: Verdict | None = None  #: of the audits, where the epoch has some
    quarantined: Mapping[str, int] = field(default_factory=dict)  #: per output: rows that audits sent to quarantine
    redefined: tuple[str, ...] = ()  #: sinks and sources that are others by now; nothing was written to these

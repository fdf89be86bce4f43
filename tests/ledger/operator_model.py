"""What the ledger must do with one interval epoch, in a few lines: who is refused, what moves, what is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep.epoch import RunKey
from lockstep.errors import (
    AlreadyDecided,
    EpochBusy,
    EpochVoid,
    Fenced,
    IllegalTransition,
    LockstepError,
    NotPrepared,
    UnknownEpoch,
)
from lockstep.states import DECIDED, SHOWN, UNDECIDED, EpochState, ParticipantState, Role

Told = tuple[str | None, str | None, str, str, str | None]  #: a row of the history: sink, from, to, role, reason
Refused = type[LockstepError] | None


@dataclass(frozen=True)
class Execution:
    """One running of prepare, with its token."""

    attempt: int
    sink: str
    token: int


@dataclass
class Part:
    """A participant."""

    state: ParticipantState = ParticipantState.PENDING
    vote: int | None = None
    youngest: int = 0
    retargeted: bool = False  #: a person has changed the vote: the one that prepare gave is another one now


@dataclass
class EpochModel:
    """`attempt` and tokens are the ledger's own numbers; `history`: every row that it must have written."""

    state: EpochState | None = None
    attempt: int = 0
    owner: RunKey | None = None
    leased: bool = False
    parts: dict[str, Part] = field(default_factory=dict)
    runs: dict[RunKey, int] = field(default_factory=dict)
    history: list[Told] = field(default_factory=list)

    # --- runs ---

    def refuses_begin(self, run: RunKey) -> Refused:
        if self.state is EpochState.VOID:
            return EpochVoid
        busy = self.state in UNDECIDED and self.leased and self.owner != run
        return EpochBusy if busy else None

    def begins(self, run: RunKey, attempt: int, sinks: Iterable[str]) -> None:
        if self.state is None:
            self._moves(EpochState.PLANNED, Role.BEGIN)
            self._takes_part(sinks, Role.BEGIN)
        elif self.state in UNDECIDED:
            self._raises(Role.BEGIN)
        if self.state in UNDECIDED:
            self.attempt, self.owner, self.leased = attempt, run, True
        self.runs[run] = attempt

    def refuses_start(self, attempt: int) -> Refused:
        """Of an execution of stage or prepare."""
        return AlreadyDecided if self.state in DECIDED else self._fences(attempt)

    def seals(self) -> None:
        if self.state is EpochState.PLANNED:
            self._moves(EpochState.STAGED, Role.STAGE)

    def starts(self, execution: Execution) -> None:
        if execution.sink in self.parts:
            self.parts[execution.sink].youngest = execution.token

    def refuses_vote(self, of: Execution) -> Refused:
        part = self.parts.get(of.sink)
        if self._fences(of.attempt):
            return Fenced
        if part is None:
            return UnknownEpoch
        if part.vote == of.token and not part.retargeted and (self.state in DECIDED or of.token >= part.youngest):
            return None
        if self.state in DECIDED:
            return Fenced
        if self.state is not EpochState.STAGED:
            return IllegalTransition
        return Fenced if of.token < max(part.youngest, part.vote or 0) else None

    def votes(self, of: Execution) -> None:
        part = self.parts[of.sink]
        if part.vote != of.token:
            self._tells(of.sink, part.state, ParticipantState.PREPARED, Role.PREPARE)
            part.state, part.vote = ParticipantState.PREPARED, of.token

    def refuses_commit(self, attempt: int) -> Refused:
        if self.state in DECIDED:
            return None
        all_voted = all(part.vote is not None and part.vote >= part.youngest for part in self.parts.values())
        ready = self.state is EpochState.STAGED and all_voted
        return self._fences(attempt) or (None if ready else NotPrepared)

    def commits(self) -> None:
        if self.state not in DECIDED:
            self._moves(EpochState.COMMITTED, Role.COMMIT)

    def refuses_publication(self) -> Refused:
        return None if self.state in DECIDED else IllegalTransition

    def publishes(self, sink: str, role: Role, reason: str | None = None) -> None:
        part = self.parts[sink]
        if self.state is EpochState.COMMITTED and part.state is ParticipantState.PREPARED:
            self._tells(sink, part.state, ParticipantState.PUBLISHED, role, reason)
            part.state = ParticipantState.PUBLISHED
            if all(other.state is ParticipantState.PUBLISHED for other in self.parts.values()):
                self._moves(EpochState.PUBLISHED, role, reason)

    def refuses_cleanup(self) -> Refused:
        return None if self.state in SHOWN else IllegalTransition

    def cleans(self) -> None:
        if self.state is EpochState.PUBLISHED:
            self._moves(EpochState.CLEANED, Role.CLEANUP)

    # --- who gives up, and people ---

    def aborts(self, only: int | None, attempt: int, role: Role, reason: str | None) -> None:
        if self.state in UNDECIDED and only in (None, self.attempt):
            self._raises(role, reason)
            self.attempt, self.owner, self.leased = attempt, None, False

    def refuses_void(self) -> Refused:
        return IllegalTransition if self.state in DECIDED else None

    def voids(self, attempt: int, reason: str) -> None:
        if self.state in UNDECIDED:
            self.aborts(None, attempt, Role.OPERATOR, reason)
            self._moves(EpochState.VOID, Role.OPERATOR, reason)

    def refuses_replan(self) -> Refused:
        return None if self.state in UNDECIDED else IllegalTransition

    def replans(self, attempt: int, sinks: Iterable[str], reason: str) -> None:
        self.aborts(None, attempt, Role.OPERATOR, reason)
        if self.state is EpochState.STAGED:
            self._moves(EpochState.PLANNED, Role.OPERATOR, reason)
        self.parts.clear()
        self._takes_part(sinks, Role.OPERATOR, reason)

    def refuses_retarget(self, sink: str) -> Refused:
        open_part = self.parts[sink].state is ParticipantState.PREPARED
        return None if self.state is EpochState.COMMITTED and open_part else IllegalTransition

    def retargets(self, sink: str, reason: str) -> None:
        self.parts[sink].retargeted = True
        self._tells(sink, ParticipantState.PREPARED, ParticipantState.PREPARED, Role.OPERATOR, reason)

    # --- inside ---

    def decision(self) -> tuple[int, dict[str, int | None]] | None:
        """What never changes once it is there."""
        return (self.attempt, {sink: part.vote for sink, part in self.parts.items()}) if self.state in DECIDED else None

    def _fences(self, attempt: int) -> Refused:
        return None if attempt == self.attempt else Fenced

    def _moves(self, to: EpochState, role: Role, reason: str | None = None) -> None:
        self._tells(None, self.state, to, role, reason)
        self.state = to

    def _raises(self, role: Role, reason: str | None = None) -> None:
        assert self.state is not None
        self._tells(None, self.state, self.state, role, reason)
        for sink, part in self.parts.items():
            if part.state is ParticipantState.PREPARED:
                self._tells(sink, part.state, ParticipantState.PENDING, role, reason)
        self.parts = {sink: Part() for sink in self.parts}

    def _takes_part(self, sinks: Iterable[str], role: Role, reason: str | None = None) -> None:
        for sink in sinks:
            self.parts[sink] = Part()
            self._tells(sink, None, ParticipantState.PENDING, role, reason)

    def _tells(self, sink: str | None, source: str | None, target: str, role: Role, reason: str | None = None) -> None:
        self.history.append((sink, str(source) if source else None, str(target), role.value, reason))

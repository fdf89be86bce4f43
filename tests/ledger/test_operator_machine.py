"""Runs, tasks and people in any order against one epoch: the ledger does what the model says, and writes it down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lockstep.epoch import Attempt, Epoch, RunKey, Vote
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
from lockstep.ledger import Ledger
from lockstep.states import DECIDED, SHOWN, UNDECIDED, EpochState, ParticipantState, Role
from tests.ledger.epochs import FLIGHTS, HASH, SINKS, Sql, a_plan, day, let_lease_run_out

# --- the model: what the ledger must do with one interval epoch: who is refused, what moves, what is told ---

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


# --- the ledger beside it ---

T = TypeVar("T")
RUNS = st.sampled_from([RunKey("flights", "scheduled"), RunKey("flights", "manual")])
ANY_SINK = st.sampled_from([*SINKS, "lake"])
REASONS = st.sampled_from(["the source was wrong", "wir räumen auf"])
FINISHERS = st.sampled_from([Role.PUBLISH, Role.RECOVER])


class Operating(RuleBasedStateMachine):
    """One epoch, on a day of its own. Refusals are predicted as well as moves."""

    ledger: ClassVar[Ledger]
    sql: ClassVar[Sql]
    days: ClassVar[count[int]]
    met: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.interval = day(next(self.days))
        self.model = EpochModel()
        self.executions: list[Execution] = []
        self.decided: object = None

    # --- runs and their tasks ---

    @initialize()
    def epoch_is_planned(self) -> None:
        self.begin(RunKey("flights", "scheduled"))

    @rule(run=RUNS)
    def begin(self, run: RunKey) -> None:
        if self.model.state is None:
            work = lambda: self.ledger.plan_epoch(FLIGHTS, a_plan(), {}, run, interval=self.interval, after=None)  # noqa: E731
        else:
            work = lambda: self.ledger.take_over(FLIGHTS, self.epoch.id, run)  # noqa: E731
        if epoch := self.expect(self.model.refuses_begin(run), work):
            self.model.begins(run, epoch.attempt, SINKS)

    @precondition(lambda self: self.model.leased)
    @rule()
    def lease_runs_out(self) -> None:
        let_lease_run_out(self.sql, self.epoch)
        self.model.leased = False

    @rule(run=RUNS)
    def stage(self, run: RunKey) -> None:
        if attempt := self.attempt_of(run):
            refused = self.model.refuses_start(attempt.token)
            if self.expect(refused, lambda: self.ledger.take_token(attempt, Role.STAGE)):
                self.ledger.seal_epoch(attempt, "folder", HASH, {}, "v1")
                self.model.seals()

    @rule(run=RUNS, sink=ANY_SINK)
    def prepare_starts(self, run: RunKey, sink: str) -> None:
        if attempt := self.attempt_of(run):
            refused = self.model.refuses_start(attempt.token)
            if token := self.expect(refused, lambda: self.ledger.take_token(attempt, Role.PREPARE, sink)):
                self.executions.append(Execution(attempt.token, sink, token))
                self.model.starts(self.executions[-1])

    @rule(back=st.integers(1, 4))
    def prepare_votes(self, back: int) -> None:
        """One of the last executions, fenced or not."""
        if len(self.executions) >= back:
            of = self.executions[-back]
            vote = Vote(of.token, f"handle {of.token}", "target", {"flights": 7})
            attempt = Attempt(FLIGHTS, self.epoch.id, of.attempt)
            if self.agrees(self.model.refuses_vote(of), lambda: self.ledger.record_vote(attempt, of.sink, vote)):
                self.model.votes(of)

    @rule(run=RUNS, silent=st.sampled_from([None, None, *SINKS]), decides=st.booleans())
    def a_run_goes_through(self, run: RunKey, silent: str | None, decides: bool) -> None:
        """Hardly any history would come so far step by step. `silent` doesn't vote."""
        self.begin(run)
        self.stage(run)
        for sink in sorted(self.model.parts.keys() - {silent}):
            self.prepare_starts(run, sink)
            self.prepare_votes(1)
        if decides:
            self.commit(run)

    @precondition(lambda self: self.model.state is EpochState.COMMITTED)
    @rule(role=FINISHERS, cleans=st.booleans())
    def every_sink_publishes(self, role: Role, cleans: bool) -> None:
        for sink in sorted(self.model.parts):
            self._publish(sink, role)
        if cleans:
            self.cleanup()

    @rule(run=RUNS)
    def commit(self, run: RunKey) -> None:
        if (attempt := self.attempt_of(run)) and self.agrees(
            self.model.refuses_commit(attempt.token), lambda: self.ledger.commit_epoch(attempt)
        ):
            self.model.commits()

    @precondition(lambda self: self.model.parts)
    @rule(role=FINISHERS, data=st.data())
    def publish(self, role: Role, data: st.DataObject) -> None:
        self._publish(data.draw(st.sampled_from(sorted(self.model.parts))), role)

    def _publish(self, sink: str, role: Role) -> None:
        token = self.model.parts[sink].vote or 0
        work = lambda: self.ledger.record_publication(self.epoch, sink, token, "committed", role)  # noqa: E731
        if self.agrees(self.model.refuses_publication(), work):
            self.model.publishes(sink, role)

    @precondition(lambda self: self.model.state is not None)
    @rule()
    def cleanup(self) -> None:
        work = lambda: self.ledger.record_cleanup(self.epoch, Role.CLEANUP)  # noqa: E731
        if self.agrees(self.model.refuses_cleanup(), work):
            self.model.cleans()

    @rule(run=RUNS)
    def abort(self, run: RunKey) -> None:
        if attempt := self.attempt_of(run):
            epoch = self.ledger.raise_attempt(FLIGHTS, attempt.epoch, Role.ABORT, only=attempt.token, reason="failed")
            self.model.aborts(attempt.token, epoch.attempt, Role.ABORT, "failed")

    # --- people ---

    @precondition(lambda self: self.model.state is not None)
    @rule(reason=REASONS)
    def a_person_aborts(self, reason: str) -> None:
        epoch = self.ledger.raise_attempt(FLIGHTS, self.epoch.id, Role.OPERATOR, reason=reason)
        self.model.aborts(None, epoch.attempt, Role.OPERATOR, reason)

    @precondition(lambda self: self.model.state is not None)
    @rule(reason=REASONS, sure=st.integers(0, 4))
    def a_person_voids(self, reason: str, sure: int) -> None:
        if sure and self.model.state in UNDECIDED:
            return  # or hardly any epoch would live to be decided
        work = lambda: self.ledger.void_epoch(FLIGHTS, self.epoch.id, reason)  # noqa: E731
        if epoch := self.expect(self.model.refuses_void(), work):
            self.model.voids(epoch.attempt, reason)

    @precondition(lambda self: self.model.state is not EpochState.PLANNED)
    @rule(reason=REASONS, sinks=st.sampled_from([SINKS, ("lake",)]))
    def a_person_replans(self, reason: str, sinks: tuple[str, ...]) -> None:
        work = lambda: self.ledger.replan_epoch(FLIGHTS, self.epoch.id, a_plan(sinks=sinks), {}, reason)  # noqa: E731
        if epoch := self.expect(self.model.refuses_replan(), work):
            self.model.replans(epoch.attempt, sinks, reason)

    @precondition(lambda self: self.model.parts)
    @rule(reason=REASONS, applied=st.booleans(), data=st.data())
    def a_person_resolves(self, reason: str, applied: bool, data: st.DataObject) -> None:
        sink = data.draw(st.sampled_from(sorted(self.model.parts)))
        token = self.model.parts[sink].vote or 0
        if applied:
            work = lambda: self.ledger.record_publication(self.epoch, sink, token, "resolved", Role.OPERATOR, reason)  # noqa: E731
            if self.agrees(self.model.refuses_publication(), work):
                self.model.publishes(sink, Role.OPERATOR, reason)
        elif self.agrees(
            self.model.refuses_retarget(sink),
            lambda: self.ledger.retarget_participant(self.epoch, sink, "restored", reason),
        ):
            self.model.retargets(sink, reason)

    # --- what must be true after each of them ---

    @invariant()
    def the_ledger_stands_where_the_model_does(self) -> None:
        if self.model.state is None:
            return
        epoch, parts = self.epoch, self.ledger.participants(FLIGHTS, self.epoch.id)
        assert (epoch.state, epoch.attempt) == (self.model.state, self.model.attempt)
        assert (epoch.wal is not None) == (epoch.state not in (EpochState.PLANNED, EpochState.VOID))
        found = {sink: (part.state, part.vote.token if part.vote else None) for sink, part in parts.items()}
        assert found == {sink: (part.state, part.vote) for sink, part in self.model.parts.items()}

    @invariant()
    def every_move_is_in_the_history_once_with_who_and_why(self) -> None:
        if self.model.state is not None:
            rows = self.sql(
                "SELECT sink, source_state, target_state, role, reason, actor FROM lockstep.transition "
                "WHERE (pipeline, epoch) = (%s, %s)",
                FLIGHTS,
                self.epoch.id,
            )
            self.sql.commit()
            assert Counter(row[:5] for row in rows) == Counter(self.model.history)
            assert {row[5] for row in rows} == {"tester"}

    @invariant()
    def what_is_decided_stays(self) -> None:
        assert self.decided is None or self.model.decision() == self.decided
        self.decided = self.model.decision()
        self.met[str(self.model.state)] += 1

    # --- asking ---

    @property
    def epoch(self) -> Epoch:
        found = self.ledger.epoch_of_interval(FLIGHTS, self.interval)
        assert found is not None
        return found

    def attempt_of(self, run: RunKey) -> Attempt | None:
        token = self.model.runs.get(run)
        return Attempt(FLIGHTS, self.epoch.id, token) if token is not None else None

    def expect(self, refused: Refused, work: Callable[[], T]) -> T | None:
        """What `work` gives, or None when it is refused as predicted."""
        if refused is None:
            return work()
        with pytest.raises(LockstepError) as raised:
            work()
        assert raised.type is refused, raised.value
        self.met[refused.__name__] += 1
        return None

    def agrees(self, refused: Refused, work: Callable[[], object]) -> bool:
        self.expect(refused, work)
        return refused is None


@pytest.mark.fault("D6", "H19")
def test_whatever_runs_and_people_do_the_ledger_follows_the_model(ledger: Ledger, sql: Sql) -> None:
    Operating.ledger, Operating.sql, Operating.days, Operating.met = ledger, sql, count(1), Counter()
    run_state_machine_as_test(
        Operating,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    refusals = {"AlreadyDecided", "EpochBusy", "Fenced", "IllegalTransition", "NotPrepared"}
    one_epoch = set(EpochState) - {EpochState.REPLACED}  # takes another one: see test_generations.py
    missed = {*map(str, one_epoch), *refusals} - set(Operating.met)
    assert not missed, f"no history came by {missed}: {Operating.met}"

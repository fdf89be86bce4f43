"""The protocol as steps: what each process may do next, one side effect at the ledger, a sink or storage at a time.

Read it from `Protocol.beginnings` (which process may start when) down through the steps in the order of the roles.
Reads and writes of different systems are separate steps, so anything may happen between them: other processes move,
the process rests (a zombie goes on at any later time) or vanishes (a crash). Every change of a state is an arrow of
`lockstep.states.TRANSITIONS`, taken under the fence that the table names; without an arrow there is no such step.

`recover` is no program of its own here: its parts (raise the attempt and roll back, sweep, publish, clean up) start
one by one whenever they may, which allows every order in which a recover could run them, and more.

What is bounded, and why that is enough:
- `most_processes` live processes at once, 2 in the search. Finished and crashed ones free their place, so attempts,
  executions, retries and recoveries in one history have no bound at all (tokens are renamed, see `world.compact`):
  3 attempts x 2 executions are contained. One zombie of any age meets one worker after the other, and every conflict
  in the protocol (marker row, epoch row, branch, folder) is between two parties. More at once: `checker.wander`.
- `most_folders` staging folders of one epoch at once: the sealed one and one other. Folders never touch each other.
- `spent` processes are taken away at once: what they would still do is fenced or done, for ever.
- A publishing session's token isn't stored: that it ends sessions of lower tokens is, for safety, a crash of theirs,
  which the search allows at every step; for liveness `checker.settle` does it explicitly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeVar

from lockstep.states import (
    DECIDED,
    EPOCH_TRANSITIONS,
    PARTICIPANT_TRANSITIONS,
    SHOWN,
    UNDECIDED,
    EpochState,
    Fence,
    ParticipantState,
    Role,
    Transition,
)
from tests.model.world import (
    NO_MARKER,
    NOTHING,
    THE_KEY,
    Adopted,
    Branch,
    Decision,
    Ledger,
    Participant,
    Process,
    Shown,
    Sink,
    SinkName,
    World,
)

E, P = EpochState, ParticipantState
VOTING, REDOING = SinkName.VOTING, SinkName.REDOING
SINKS = (VOTING, REDOING)

Moves = list[tuple[str, World, Process | None]]  #: what is done, the world without this process, the process or its end


class Knockout(StrEnum):
    """A planted bug: the model must turn red for each."""

    MARKER_KEY_WITH_ATTEMPT = "the marker's key holds the writer's token"
    NO_EXECUTION_TOKEN = "executions of one attempt share a gid and each other's vote"
    EXECUTION_NOT_REGISTERED = "a younger execution rolls back smaller tokens without fencing their votes first"
    TOKEN_WITHOUT_ATTEMPT = "an execution takes its token without asking whether its attempt is current"
    ROLLED_BACK_BEFORE_RAISE = "abort rolls branches back before it raises the attempt"
    CLEANUP_BEFORE_PUBLISHED = "cleanup runs once the epoch is committed"
    ATTEMPT_RAISED_AFTER_DECISION = "begin raises the attempt of a decided epoch"
    OLD_VOTE_COUNTS = "a vote counts although a younger execution of that prepare has started"
    TOKEN_AFTER_DECISION = "a prepare that starts after the decision gets a token"
    DISCARD_KEEPS_VOTES = "a WAL that fails its checks is discarded without a new attempt"
    STALE_COUNT = "commit counts before it locks the epoch row"
    NO_SWEEPER = "nobody sweeps"
    SWEEPS_THE_UNVOTED = "the sweeper takes whatever has no vote for rubbish"
    MARKER_BEFORE_HANDLE = "publish looks for the marker before the handle"
    ROW_COUNT_UNCHECKED = "a writer that got no marker row writes its rows nevertheless"
    NO_SESSION_ENDED = "a lock timeout at the marker doesn't end sessions of lower tokens"
    LOADED_UNPROVEN = "what was loaded before the seal is prepared without being compared with what is sealed"
    VOID_KEEPS_WAL = "void leaves epoch.wal set"
    NO_VERDICT_ASKED = "neither prepare nor commit asks for the verdict of the audits"
    VERDICT_OF_ANY_WAL = "a verdict counts for whatever is sealed, and not only for the WAL that was audited"
    HOME_GOES_WITH_FOLDER = "what is staged below a table is deleted wherever the WAL's folder is"
    EXPIRES_UNASKED = "files that no version of the table has are deleted without asking the ledger"
    EXPIRES_WHAT_IS_READ = "files that the table's newest version lacks are deleted, whoever reads an older one"
    EXPIRES_WHAT_IS_OVER = "the files of an epoch that is over are deleted without asking the table"


#: Only with these, and with none, does the table get other versions: no other bug has to do with them
EXPIRING = {Knockout.EXPIRES_UNASKED, Knockout.EXPIRES_WHAT_IS_READ, Knockout.EXPIRES_WHAT_IS_OVER}


class Step(StrEnum):
    """What a live process does next."""

    WRITE_FOLDER = "stage: write the folder"
    SEAL = "stage: seal"
    JUDGE = "audit: give the verdict"
    ASK_TOKEN = "prepare: take a token"
    INSERT = "prepare: insert the marker and the rows"
    INSERT_EARLY = "prepare: insert the marker and rows of a folder that isn't sealed"
    PROVE = "prepare: compare what was loaded with what is sealed"
    PREPARE = "prepare: PREPARE TRANSACTION"
    VOTE = "prepare: vote"
    DECIDE = "commit: lock, count, decide"
    DECIDE_BLINDLY = "commit: decide on an old count"
    LOOK_HANDLE = "publish: look for the handle"
    COMMIT_PREPARED = "publish: COMMIT PREPARED"
    LOOK_MARKER = "publish: look for the marker"
    REDO = "publish: insert the marker, then the rows of the WAL"
    COMMIT_REDO = "publish: COMMIT"
    RECORD = "publish: record"
    ARCHIVE = "cleanup: archive the manifest"
    DELETE = "cleanup: delete the folders"
    RECORD_CLEANED = "cleanup: record"
    ROLL_BACK_LOWER = "roll back what carries lower tokens"
    RAISE_TOO_LATE = "abort: raise the attempt, too late"
    DISCARD_TOO_LATE = "begin: discard the WAL, too late"
    ROLL_BACK = "sweep: roll back the branch"
    REMOVE = "sweep: remove the folder, and what it staged below a table"
    REMOVE_HERE = "sweep: remove the folder, and nothing below a table"
    EXPIRE = "expire: delete what the table has adopted"


Arrow = Transition[EpochState] | Transition[ParticipantState]
S = TypeVar("S", bound=StrEnum)

LAST_STEPS = {
    Step.SEAL,
    Step.JUDGE,
    Step.VOTE,
    Step.RECORD,
    Step.ROLL_BACK,
    Step.REMOVE,
    Step.REMOVE_HERE,
    Step.ROLL_BACK_LOWER,
    Step.EXPIRE,
}
HOLDS_MARKER = {Step.PROVE, Step.PREPARE, Step.COMMIT_REDO}  #: an open transaction with the marker's row in it


class Protocol:
    """Lockstep's protocol for one epoch and two sinks, with at most one planted bug, or one arrow open to everybody."""

    def __init__(
        self,
        knockout: Knockout | None = None,
        unfenced: Arrow | None = None,
        most_processes: int = 2,
        most_folders: int = 2,
    ) -> None:
        self.knockout = knockout
        self.unfenced = unfenced
        self.most_processes = most_processes
        self.most_folders = most_folders
        self.epoch_arrows = {(arrow.source, arrow.target): self._plant(arrow) for arrow in EPOCH_TRANSITIONS}
        self.participant_arrows = {
            (arrow.source, arrow.target): self._plant(arrow) for arrow in PARTICIPANT_TRANSITIONS
        }
        self.exercised: set[tuple[type[StrEnum], StrEnum | None, StrEnum, Role]] = set()
        self.steps: dict[str, Callable[[World, Process], Moves]] = {
            step: getattr(self, step.name.lower()) for step in Step
        }

    # --- the arrows of the table -------------------------------------------------------------------------------------

    def _plant(self, arrow: Transition[S]) -> Transition[S]:
        return dataclasses.replace(arrow, fence=Fence.NONE) if arrow is self.unfenced else arrow

    def moves_epoch(self, ledger: Ledger, target: EpochState, role: Role, attempt: int = NOTHING) -> bool:
        """Whether the table lets `role` move the epoch to `target` now, under the fence that it names."""
        arrow = self.epoch_arrows.get((ledger.state, target))
        if arrow is None or role not in arrow.roles or not self.passes(arrow.fence, ledger, None, attempt, attempt):
            return False
        self.exercised.add((EpochState, ledger.state, target, role))
        return True

    def moves_participant(
        self, ledger: Ledger, row: Participant, target: ParticipantState, role: Role, attempt: int, token: int
    ) -> bool:
        """Whether the table lets `role` move this participant to `target` now, under the fence that it names."""
        arrow = self.participant_arrows.get((row.state, target))
        if arrow is None or role not in arrow.roles or not self.passes(arrow.fence, ledger, row, attempt, token):
            return False
        self.exercised.add((ParticipantState, row.state, target, role))
        return True

    def passes(self, fence: Fence, ledger: Ledger, row: Participant | None, attempt: int, token: int) -> bool:
        match fence:
            case Fence.NONE:
                return True
            case Fence.ATTEMPT:
                return attempt == ledger.attempt
            case Fence.EXECUTION:
                assert row is not None
                if self.knockout is Knockout.NO_EXECUTION_TOKEN:
                    return attempt == ledger.attempt
                return attempt == ledger.attempt and token > row.vote and token >= row.execution
            case Fence.NEW_ATTEMPT:
                return token > ledger.attempt
            case Fence.SUCCESSOR:  # another epoch's decision: see `tests.model.generations`
                return False

    # --- who may start -----------------------------------------------------------------------------------------------

    def beginnings(self, world: World) -> Iterator[tuple[str, World]]:
        """Every process that a scheduler, a recovery run or a person could start now."""
        if world.ledger.state in UNDECIDED or world.ledger.state is None:
            yield from self.new_attempts(world)
            yield from self.executions(world)
        elif self.knockout is Knockout.ATTEMPT_RAISED_AFTER_DECISION and world.ledger.state in DECIDED:
            yield from self.raise_attempt(world, "begin", (Role.BEGIN,), world.ledger.state)
        yield from self.publications(world)
        yield from self.sweeps(world)
        yield from self.versions(world)

    def new_attempts(self, world: World) -> Iterator[tuple[str, World]]:
        state = world.ledger.state
        if state is None:
            yield from self.raise_attempt(world, "begin: freeze the range", (Role.BEGIN,), E.PLANNED)
            return
        raising = (Role.BEGIN, Role.ABORT, Role.RECOVER, Role.OPERATOR)
        yield from self.raise_attempt(world, "begin/abort/recover: raise the attempt", raising, state)
        yield from self.raise_attempt(world, "a person voids the epoch", (Role.OPERATOR,), E.VOID)
        if state is E.STAGED and self.knockout is Knockout.DISCARD_KEEPS_VOTES:
            yield (
                "begin: the WAL fails its checks",
                world.plus(Process(Step.DISCARD_TOO_LATE, attempt=world.ledger.attempt)),
            )
        elif state is E.STAGED:
            roles = (Role.BEGIN, Role.OPERATOR)
            yield from self.raise_attempt(world, "begin finds the WAL corrupt/a person replans", roles, E.PLANNED)
        if self.knockout is Knockout.ROLLED_BACK_BEFORE_RAISE:
            early = Process(Step.ROLL_BACK_LOWER, attempt=world.fresh_token(), wal=world.ledger.wal)
            yield "abort: start", world.plus(early)

    def raise_attempt(
        self, world: World, label: str, roles: tuple[Role, ...], target: EpochState
    ) -> Iterator[tuple[str, World]]:
        """One ledger transaction: a fresh token becomes the attempt and every vote is void; the rest comes after it."""
        ledger, token = world.ledger, world.fresh_token()
        if target is not ledger.state:
            roles = tuple(role for role in roles if self.moves_epoch(ledger, target, role, token))
        rows = [self.voided(ledger, row, role, token) for role in roles for row in (ledger.voting, ledger.redoing)]
        if not rows or None in rows:
            return
        releases = target is E.PLANNED or (target is E.VOID and self.knockout is not Knockout.VOID_KEEPS_WAL)
        wal = NOTHING if releases else ledger.wal
        kept = wal != NOTHING or self.knockout is Knockout.VERDICT_OF_ANY_WAL
        verdicts = (ledger.verdict, ledger.held) if kept else (NOTHING, NOTHING)
        raised = world._replace(
            ledger=Ledger(target, token, wal, Participant(P.PENDING), Participant(P.PENDING), *verdicts)
        )
        if any(branch.token < token for branch in world.voting.branches) or any(f != wal for f in world.folders):
            raised = raised.plus(Process(Step.ROLL_BACK_LOWER, attempt=token, wal=wal))
        yield label, raised

    def voided(self, ledger: Ledger, row: Participant, role: Role, token: int) -> Participant | None:
        if role is Role.OPERATOR:  # replan: a new sink set, so new rows
            row_or_new = Participant()
            self.moves_participant(ledger, row_or_new, P.PENDING, role, token, token)
        if row.state is P.PENDING or self.moves_participant(ledger, row, P.PENDING, role, token, token):
            return Participant(P.PENDING)
        return None

    def executions(self, world: World) -> Iterator[tuple[str, World]]:
        """stage, prepare and commit tasks of the current attempt's run; later they may find themselves fenced."""
        ledger = world.ledger
        starts_earlier = self.knockout in (Knockout.TOKEN_WITHOUT_ATTEMPT, Knockout.TOKEN_AFTER_DECISION)
        if ledger.state is E.PLANNED and len(world.folders) < self.most_folders:
            token = world.fresh_token()
            yield "stage: take a token", world.plus(Process(Step.WRITE_FOLDER, attempt=ledger.attempt, token=token))
        if ledger.state is E.PLANNED:
            for folder in world.folders:
                early = Process(Step.ASK_TOKEN, VOTING, ledger.attempt, wal=folder)
                for label, after, process in self.ask_token(world, early):
                    if process:
                        yield f"{label} before the seal", after.plus(process._replace(step=Step.INSERT_EARLY))
        if ledger.state is E.STAGED:
            yield from self.audits(world)
            for sink in SINKS:
                late = Process(Step.ASK_TOKEN, sink, ledger.attempt, wal=ledger.wal)
                if starts_earlier:
                    yield f"prepare {sink}: start", world.plus(late)
                else:
                    for label, after, process in self.ask_token(world, late):
                        if process:
                            yield label, after.plus(process)
            yield "commit: start", world.plus(Process(Step.DECIDE, attempt=ledger.attempt))

    def audits(self, world: World) -> Iterator[tuple[str, World]]:
        """Every epoch has audits here: those of one without pass at once. A person may release what is held."""
        ledger = world.ledger
        if ledger.verdict == NOTHING and ledger.held == NOTHING:
            yield "audit: read the WAL", world.plus(Process(Step.JUDGE, attempt=ledger.attempt, wal=ledger.wal))
        if ledger.held != NOTHING:
            released = ledger._replace(verdict=ledger.held, held=NOTHING)
            yield "a person releases the epoch", world._replace(ledger=released)

    def publications(self, world: World) -> Iterator[tuple[str, World]]:
        """publish and cleanup, by a task or by recover: open to everybody once the ledger says so."""
        ledger = world.ledger
        if ledger.state is E.COMMITTED:
            for sink in SINKS:
                yield from self.publication(world, sink)
        early = self.knockout is Knockout.CLEANUP_BEFORE_PUBLISHED and ledger.state is E.COMMITTED
        if ledger.state is E.PUBLISHED or early:
            yield "cleanup: start", world.plus(Process(Step.ARCHIVE))

    def publication(self, world: World, sink: SinkName) -> Iterator[tuple[str, World]]:
        row, ledger = world.participant(sink), world.ledger
        if row.state is P.PENDING:
            return
        looks_first = Step.LOOK_HANDLE if sink is VOTING else Step.LOOK_MARKER
        if self.knockout is Knockout.MARKER_BEFORE_HANDLE:
            looks_first = Step.LOOK_MARKER
        token = row.vote if sink is VOTING else NOTHING
        own_attempt = world.fresh_token() if self.knockout is Knockout.MARKER_KEY_WITH_ATTEMPT else NOTHING
        yield f"publish {sink}: start", world.plus(Process(looks_first, sink, own_attempt, token, ledger.wal))
        if row.state is P.PREPARED and world.sink(sink).shown:
            yield f"a person resolves {sink}: applied", self.resolve(world, sink)

    def resolve(self, world: World, sink: SinkName) -> World:
        """A person who looked at the sink says that the epoch is there."""
        return self.recorded(world, sink, (Role.OPERATOR,))

    def sweeps(self, world: World) -> Iterator[tuple[str, World]]:
        for branch in world.voting.branches:
            if self.knockout is not Knockout.NO_SWEEPER:
                yield from self.judge_branch(world, branch)
            gone = world.voting._replace(branches=tuple(b for b in world.voting.branches if b != branch))
            yield "a person rolls the branch back by hand", world._replace(voting=gone)
        if self.knockout is not Knockout.NO_SWEEPER:
            for folder in world.folders:
                yield from self.judge_folder(world, folder)

    # --- stage -------------------------------------------------------------------------------------------------------

    def write_folder(self, world: World, me: Process) -> Moves:
        folders = tuple(sorted({*world.folders, me.token}))
        return [("stage: Spark writes the folder", world._replace(folders=folders), me._replace(step=Step.SEAL))]

    def seal(self, world: World, me: Process) -> Moves:
        if not self.moves_epoch(world.ledger, E.STAGED, Role.STAGE, me.attempt):
            return [("stage: fenced", world, None)]
        return [("stage: seal", world._replace(ledger=world.ledger._replace(state=E.STAGED, wal=me.token)), None)]

    # --- audit -------------------------------------------------------------------------------------------------------

    def judge(self, world: World, me: Process) -> Moves:
        """One ledger transaction: of the WAL that was read, if it is sealed still; once."""
        ledger = world.ledger
        if ledger.state is not E.STAGED or me.attempt != ledger.attempt or me.wal != ledger.wal:
            return [("audit: fenced, or another WAL is sealed", world, None)]
        if ledger.verdict != NOTHING or ledger.held != NOTHING:
            return [("audit: the verdict is there", world, None)]
        passed, held = ledger._replace(verdict=me.wal), ledger._replace(held=me.wal)
        return [
            ("audit: passed", world._replace(ledger=passed), None),
            ("audit: held", world._replace(ledger=held), None),
        ]

    def lets_go_on(self, ledger: Ledger) -> bool:
        """Whether the audits of the WAL that is sealed have passed, or a person has released them."""
        match self.knockout:
            case Knockout.NO_VERDICT_ASKED:
                return True
            case Knockout.VERDICT_OF_ANY_WAL:
                return ledger.verdict != NOTHING
        return ledger.verdict == ledger.wal != NOTHING

    # --- prepare -----------------------------------------------------------------------------------------------------

    def ask_token(self, world: World, me: Process) -> Moves:
        """One ledger transaction under the epoch row's lock: undecided, attempt current; then take, register a token.

        From here on no smaller execution of this sink can vote, and a smaller one's vote no longer counts: so its
        branch will never be decided and may be rolled back.
        """
        name, ledger = SinkName(me.sink), world.ledger
        if ledger.state is E.STAGED and not self.lets_go_on(ledger):
            return [("prepare: no verdict lets it go on", world, None)]
        if not self.may_take_token(ledger, me.attempt):
            return [("prepare: no token, fenced", world, None)]
        token = ledger.attempt if self.knockout is Knockout.NO_EXECUTION_TOKEN else world.fresh_token()
        unregistered = (Knockout.EXECUTION_NOT_REGISTERED, Knockout.NO_EXECUTION_TOKEN, Knockout.TOKEN_WITHOUT_ATTEMPT)
        if self.knockout not in unregistered and ledger.state in UNDECIDED:
            world = world.with_participant(name, world.participant(name)._replace(execution=token))
        then = Step.INSERT if me.sink == VOTING else Step.VOTE  # a redoing sink validates, which leaves nothing behind
        return [(f"prepare {name}: take a token", world, me._replace(step=then, token=token))]

    def may_take_token(self, ledger: Ledger, attempt: int) -> bool:
        match self.knockout:
            case Knockout.TOKEN_WITHOUT_ATTEMPT:
                return True
            case Knockout.TOKEN_AFTER_DECISION if ledger.state in DECIDED:
                return True
            case _:
                return ledger.state in UNDECIDED and attempt == ledger.attempt

    def insert(self, world: World, me: Process) -> Moves:
        """The marker is the first row of the branch. A lock timeout at it rolls back branches of lower tokens."""
        sink, key = world.voting, self.marker_key(me)
        if any(row.key == key for row in sink.shown) and self.knockout is not Knockout.ROW_COUNT_UNCHECKED:
            return [("prepare: no marker row, the epoch is there: write nothing", world, None)]
        for branch in sink.branches:
            if self.same_key(branch, key):
                if branch.token > me.token:
                    return [("prepare: a larger token's branch holds the marker: fenced", world, None)]
                return [("prepare: roll back the lower token's branch", self.without(world, branch), me)]
        if self.open_session(world, me.sink):
            return []
        then = Step.PROVE if me.step == Step.INSERT_EARLY else Step.PREPARE
        return [("prepare: insert the marker and the rows", world, me._replace(step=then))]

    insert_early = insert

    def prove(self, world: World, me: Process) -> Moves:
        """What was loaded before the seal waits for it, and is rolled back unless it is what is sealed."""
        if world.ledger.state is E.PLANNED and me.attempt == world.ledger.attempt:
            return []
        if self.knockout is Knockout.LOADED_UNPROVEN:
            return [("prepare: prepare what was loaded, whatever is sealed", world, me._replace(step=Step.PREPARE))]
        if world.ledger.wal == me.wal != NOTHING:
            return [("prepare: what was loaded is sealed", world, me._replace(step=Step.PREPARE))]
        return [("prepare: other files are sealed: roll back", world, None)]

    def prepare(self, world: World, me: Process) -> Moves:
        branches = tuple(sorted((*world.voting.branches, Branch(me.token, me.wal))))
        after = world._replace(voting=world.voting._replace(branches=branches))
        return [("prepare: PREPARE TRANSACTION", after, me._replace(step=Step.VOTE))]

    def vote(self, world: World, me: Process) -> Moves:
        name, ledger = SinkName(me.sink), world.ledger
        row = world.participant(name)
        votes = (ledger, row, P.PREPARED, Role.PREPARE, me.attempt, me.token)
        if ledger.state is not E.STAGED or not self.lets_go_on(ledger) or not self.moves_participant(*votes):
            return [("prepare: vote refused, fenced", world, None)]
        voted = Participant(P.PREPARED, row.execution, me.token)
        return [(f"prepare {name}: vote", world.with_participant(name, voted), None)]

    # --- commit ------------------------------------------------------------------------------------------------------

    def decide(self, world: World, me: Process) -> Moves:
        """One ledger transaction: lock the epoch row, then count this attempt's votes, then decide."""
        if not self.lets_go_on(world.ledger):
            return [("commit: refused, no verdict lets it go on", world, None)]
        if not self.all_voted(world):
            return [("commit: refused, a vote is missing", world, None)]
        if self.knockout is Knockout.STALE_COUNT and me.attempt == world.ledger.attempt:
            return [("commit: count in an old snapshot", world, me._replace(step=Step.DECIDE_BLINDLY))]
        if not self.moves_epoch(world.ledger, E.COMMITTED, Role.COMMIT, me.attempt):
            return [("commit: fenced", world, None)]
        return [("commit: decide", self.decided(world, me.attempt), None)]

    def decide_blindly(self, world: World, me: Process) -> Moves:
        if world.ledger.state is not E.STAGED:
            return [("commit: fenced", world, None)]
        return [("commit: decide on the old count", self.decided(world, me.attempt), None)]

    def decided(self, world: World, attempt: int) -> World:
        ledger = world.ledger
        decision = Decision(attempt, ledger.wal, ledger.voting.vote)
        return world._replace(ledger=ledger._replace(state=E.COMMITTED), decision=decision)

    def all_voted(self, world: World) -> bool:
        return all(self.counts(row) for row in (world.ledger.voting, world.ledger.redoing))

    def counts(self, row: Participant) -> bool:
        """A vote counts while no younger execution of that prepare has started."""
        return row.state is P.PREPARED and (self.knockout is Knockout.OLD_VOTE_COUNTS or row.vote >= row.execution)

    # --- publish -----------------------------------------------------------------------------------------------------

    def look_handle(self, world: World, me: Process) -> Moves:
        if any(branch.token == me.token for branch in world.voting.branches):
            return [("publish: the handle is there", world, me._replace(step=Step.COMMIT_PREPARED))]
        if self.knockout is Knockout.MARKER_BEFORE_HANDLE:
            return self.conclude_absent(world, me)
        return [("publish: the handle is absent", world, me._replace(step=Step.LOOK_MARKER))]

    def commit_prepared(self, world: World, me: Process) -> Moves:
        sink = world.voting
        branch = next((b for b in sink.branches if b.token == me.token), None)
        if branch is None:
            return [("publish: COMMIT PREPARED says 42704", world, me._replace(step=Step.LOOK_HANDLE))]
        shown = (*sink.shown, Shown(self.marker_key(Process("", token=branch.token)), branch.wal))
        after = Sink(tuple(b for b in sink.branches if b != branch), shown)
        return [("publish: COMMIT PREPARED", world._replace(voting=after), me._replace(step=Step.RECORD))]

    def look_marker(self, world: World, me: Process) -> Moves:
        """In a transaction of its own, after the handle was absent: nothing may be concluded from one snapshot."""
        row = next((r for r in world.sink(SinkName(me.sink)).shown if r.key == self.marker_key(me)), None)
        if row is not None:
            return self.found_marker(world, me, row)
        if me.sink == VOTING and self.knockout is Knockout.MARKER_BEFORE_HANDLE:
            return [("publish: no marker", world, me._replace(step=Step.LOOK_HANDLE))]
        return self.conclude_absent(world, me)

    def found_marker(self, world: World, me: Process, row: Shown) -> Moves:
        if row.wal != me.wal:
            return [("publish: another manifest's marker: LedgerConflict", world, None)]
        return [("publish: the marker is there", world, me._replace(step=Step.RECORD))]

    def conclude_absent(self, world: World, me: Process) -> Moves:
        if world.sink(SinkName(me.sink)).shown:
            world = world._replace(fault="publish took an applied transaction for proven not applied (I18)")
        return [("publish: proven not applied", world, me._replace(step=Step.REDO))]

    def redo(self, world: World, me: Process) -> Moves:
        """A new transaction whose first row is the marker; the key arbitrates among all who redo."""
        name, key = SinkName(me.sink), self.marker_key(me)
        sink = world.sink(name)
        row = next((row for row in sink.shown if row.key == key), None)
        if row is not None and self.knockout is not Knockout.ROW_COUNT_UNCHECKED:
            return self.found_marker(world, me, row)
        if any(self.same_key(branch, key) for branch in sink.branches) or self.open_session(world, name):
            return []
        if me.wal not in world.folders or world.adopted is Adopted.GONE:
            world = world._replace(fault="a redo needs the WAL and it is gone (I21)")
            return [("publish: the WAL is gone", world, None)]
        return [(f"publish {name}: insert the marker and the rows", world, me._replace(step=Step.COMMIT_REDO))]

    def commit_redo(self, world: World, me: Process) -> Moves:
        name, key = SinkName(me.sink), self.marker_key(me)
        sink = world.sink(name)
        taken = any(row.key == key for row in sink.shown)
        shown = (*sink.shown, Shown(NO_MARKER if taken else key, me.wal))
        after = world.with_sink(name, sink._replace(shown=shown))
        return [(f"publish {name}: COMMIT", after, me._replace(step=Step.RECORD))]

    def record(self, world: World, me: Process) -> Moves:
        name = SinkName(me.sink)
        return [(f"publish {name}: record", self.recorded(world, name, (Role.PUBLISH, Role.RECOVER)), None)]

    def recorded(self, world: World, name: SinkName, roles: tuple[Role, ...]) -> World:
        """One ledger transaction: the participant, and with the last one the epoch."""
        row, ledger = world.participant(name), world.ledger
        if row.state is P.PREPARED:
            if not all(self.moves_participant(ledger, row, P.PUBLISHED, role, NOTHING, NOTHING) for role in roles):
                return world
            world = world.with_participant(name, row._replace(state=P.PUBLISHED))
        ledger = world.ledger
        last = ledger.voting.state is P.PUBLISHED and ledger.redoing.state is P.PUBLISHED
        if not last or ledger.state is not E.COMMITTED:
            return world
        if not all(self.moves_epoch(ledger, E.PUBLISHED, role) for role in roles):
            return world
        return world._replace(ledger=ledger._replace(state=E.PUBLISHED))

    # --- cleanup -----------------------------------------------------------------------------------------------------

    def archive(self, world: World, me: Process) -> Moves:
        return [("cleanup: archive the manifest", world._replace(archived=True), me._replace(step=Step.DELETE))]

    def delete(self, world: World, me: Process) -> Moves:
        if not world.folders:
            return [("cleanup: nothing left", world, me._replace(step=Step.RECORD_CLEANED))]
        folder = world.folders[0]
        keeps = self.may_be_adopted(world.ledger, folder)
        return [("cleanup: delete a folder", self.without_folder(world, folder, at_home=not keeps), me)]

    def record_cleaned(self, world: World, me: Process) -> Moves:
        if not all(self.moves_epoch(world.ledger, E.CLEANED, role) for role in (Role.CLEANUP, Role.RECOVER)):
            return [("cleanup: recorded already", world, None)]
        return [("cleanup: record", world._replace(ledger=world.ledger._replace(state=E.CLEANED)), None)]

    # --- abort, and the second half of begin, recover, void and replan -----------------------------------------------

    def roll_back_lower(self, world: World, me: Process) -> Moves:
        """After the attempt was raised to `me.attempt`: what carries a lower token can't be decided any more."""
        moves: Moves = [
            ("roll back a lower token's branch", self.without(world, branch), me)
            for branch in world.voting.branches
            if branch.token < me.attempt
        ]
        for folder in world.folders:
            if folder < me.attempt and folder != me.wal:
                moves.append(("remove a lower token's folder", self.without_folder(world, folder), me))
        too_early = self.knockout is Knockout.ROLLED_BACK_BEFORE_RAISE and me.attempt > world.ledger.attempt
        return moves or [
            ("nothing of lower tokens left", world, me._replace(step=Step.RAISE_TOO_LATE) if too_early else None)
        ]

    def raise_too_late(self, world: World, me: Process) -> Moves:
        if world.ledger.state not in UNDECIDED:
            return [("abort: decided", world, None)]
        raised = self.raise_attempt(world, "abort: raise the attempt", (Role.ABORT,), world.ledger.state)
        return [(label, after, None) for label, after in raised]

    def discard_too_late(self, world: World, me: Process) -> Moves:
        if world.ledger.state is not E.STAGED or world.ledger.attempt != me.attempt:
            return [("begin: fenced", world, None)]
        ledger = world.ledger._replace(state=E.PLANNED, wal=NOTHING)
        return [("begin: discard the WAL", world._replace(ledger=ledger), None)]

    # --- sweep: handles first, the ledger second, then act -----------------------------------------------------------

    def judge_branch(self, world: World, listed: Branch) -> Iterator[tuple[str, World]]:
        """The ledger is read some time after the listing. Had the branch gone since, to roll it back does nothing."""
        if self.is_rubbish(world, listed.token):
            yield "sweep: the ledger says rubbish", world.plus(Process(Step.ROLL_BACK, VOTING, token=listed.token))

    def is_rubbish(self, world: World, token: int) -> bool:
        """Undecided: below the attempt, or below a vote or registered execution of this attempt. Decided: not voted."""
        ledger = world.ledger
        if ledger.state in DECIDED:
            return token != ledger.voting.vote
        if self.knockout is Knockout.SWEEPS_THE_UNVOTED and token != ledger.voting.vote:
            return True
        return token < max(ledger.attempt, ledger.voting.vote, ledger.voting.execution)

    def roll_back(self, world: World, me: Process) -> Moves:
        branch = next((b for b in world.voting.branches if b.token == me.token), None)
        after = self.without(world, branch) if branch else world
        return [("sweep: roll back the branch", after, None)]

    def judge_folder(self, world: World, listed: int) -> Iterator[tuple[str, World]]:
        ledger = world.ledger
        if ledger.state in SHOWN or (listed < ledger.attempt and listed != ledger.wal):
            step = Step.REMOVE_HERE if self.may_be_adopted(ledger, listed) else Step.REMOVE
            yield "sweep: the ledger says rubbish", world.plus(Process(step, token=listed))

    def may_be_adopted(self, ledger: Ledger, token: int) -> bool:
        """Whether what execution `token` staged below a table may be the table's by now, or may yet get there: see
        `lockstep.features.table_staging`."""
        return token == ledger.wal and self.knockout is not Knockout.HOME_GOES_WITH_FOLDER

    def remove(self, world: World, me: Process) -> Moves:
        return [("sweep: remove the folder, and what is at home", self.without_folder(world, me.token), None)]

    def remove_here(self, world: World, me: Process) -> Moves:
        return [("sweep: remove the folder", self.without_folder(world, me.token, at_home=False), None)]

    # --- the table's versions, and what is left of older ones ---------------------------------------------------------

    def versions(self, world: World) -> Iterator[tuple[str, World]]:
        """Anybody may compact the table, and take that back; readers are at older versions for a time."""
        if not world.redoing.shown or self.unfenced or self.knockout not in (None, *EXPIRING):
            return
        if world.adopted is Adopted.NEWEST:
            yield "others compact the table", world._replace(adopted=Adopted.OLDER)
        if world.adopted is Adopted.OLDER:
            yield "others roll the table back", world._replace(adopted=Adopted.NEWEST)
            yield "time passes: no reader is at the older version", world._replace(adopted=Adopted.PAST)
        if world.adopted is not Adopted.GONE and self.may_expire(world):
            yield "expire: table and ledger say that nobody needs the files", world.plus(Process(Step.EXPIRE))

    def may_expire(self, world: World) -> bool:
        """See `lockstep.features.compactions`."""
        past, over = world.adopted is Adopted.PAST, world.ledger.state is E.CLEANED
        match self.knockout:
            case Knockout.EXPIRES_UNASKED:
                return past
            case Knockout.EXPIRES_WHAT_IS_READ:
                return over and world.adopted is not Adopted.NEWEST
            case Knockout.EXPIRES_WHAT_IS_OVER:
                return over
        return past and over

    def expire(self, world: World, me: Process) -> Moves:
        if world.adopted is Adopted.GONE:
            return [("expire: gone already", world, None)]
        after = world._replace(adopted=Adopted.GONE)
        if world.adopted is not Adopted.PAST:
            after = after._replace(fault="files were deleted that some version of the table has (I28)")
        elif world.ledger.state not in SHOWN:
            after = after._replace(fault="files were deleted from which a sink has yet to publish (I28)")
        return [("expire: delete the files", after, None)]

    # --- sinks -------------------------------------------------------------------------------------------------------

    def marker_key(self, writer: Process) -> int:
        if self.knockout is not Knockout.MARKER_KEY_WITH_ATTEMPT:
            return THE_KEY
        return writer.attempt if writer.step.startswith("publish") else writer.token

    def same_key(self, branch: Branch, key: int) -> bool:
        return self.knockout is not Knockout.MARKER_KEY_WITH_ATTEMPT or branch.token == key

    def open_session(self, world: World, sink: str) -> bool:
        """Whether somebody else's open transaction holds the marker's row."""
        if self.knockout is Knockout.MARKER_KEY_WITH_ATTEMPT:
            return False
        return any(p.step in HOLDS_MARKER and p.sink == sink for p in world.processes)

    def without(self, world: World, branch: Branch) -> World:
        """Our own code rolls a branch back: never the one that was decided."""
        left = tuple(b for b in world.voting.branches if b != branch)
        if world.decision and branch.token == world.decision.vote:
            world = world._replace(fault="our own code rolled the decided branch back")
        return world._replace(voting=world.voting._replace(branches=left))

    def spent(self, world: World, process: Process) -> bool:
        """Whether it can change nothing any more: what it would do is done, or it is fenced, and both are for ever."""
        if process.step not in LAST_STEPS:
            return False
        return all(then is None and after is world for _, after, then in self.steps[process.step](world, process))

    def without_folder(self, world: World, folder: int, *, at_home: bool = True) -> World:
        """`at_home`: with the files that a table adopts once the epoch is decided."""
        if folder not in world.folders:
            return world
        if at_home and folder == world.ledger.wal:
            world = world._replace(fault="files were deleted that a table has adopted, or may yet adopt (I28)")
        return world._replace(folders=tuple(f for f in world.folders if f != folder))

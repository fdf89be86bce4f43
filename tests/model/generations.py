"""The lives of one range: how a published epoch is replaced, by one decision, in two sinks that show it.

What happens within one life (attempts, executions, votes, the WAL) is `tests.model.model`'s. Here a life is a few
states, and what is walked through is how lives follow one another: whoever restates, decides, publishes or gives up may
rest between any two side effects for ever, and go on when other lives have come and gone.

The voting sink deletes the old rows in the branch that it prepares before the decision; the redoing one in the
transaction that writes the new ones after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lockstep.states import DECIDED, EPOCH_TRANSITIONS, UNDECIDED, EpochState, Role

E = EpochState
VOTING, REDOING = "warehouse", "archive"
SINKS = (VOTING, REDOING)
NOBODY = -1


class Knockout(StrEnum):
    """A planted bug: the model must turn red for each."""

    MARKER_GOES_WITH_ROWS = "the marker of a replaced epoch is deleted with its rows"
    PLANNED_BEFORE_SHOWN = "a replacement is planned once the epoch is decided, whether or not every sink shows it"
    RIVALS_UNCHECKED = "nobody looks whether the epoch is being replaced already"
    REPLACED_LATER = "the replaced epoch is recorded in a transaction after the decision"
    SHOWN_APART = "old rows go in one transaction, new ones come in another"
    SHOWN_UNDECIDED = "old rows go when the branch is prepared"


class Step(StrEnum):
    """What a live process does next."""

    PLAN = "begin: plan the replacement"
    PREPARE = "prepare: the branch, without the old rows"
    DECIDE = "commit: decide"
    REPLACE = "commit: record what is replaced"
    SHOW = "publish: marker, old rows away, new rows"
    ADD = "publish: new rows"
    RECORD = "publish: record"


class Life(NamedTuple):
    """An epoch of the range. `replaces`: the number of the life whose place it takes."""

    state: EpochState
    replaces: int = NOBODY
    recorded: frozenset[str] = frozenset()


class Branch(NamedTuple):
    """A prepared transaction: the rows of `life`, and those that it deletes."""

    life: int
    deletes: frozenset[int]


class Sink(NamedTuple):
    """Which lives' markers stand, and whose rows a reader sees."""

    markers: frozenset[int] = frozenset()
    rows: frozenset[int] = frozenset()
    branches: tuple[Branch, ...] = ()


class Process(NamedTuple):
    """A process between two side effects: it may rest there for ever, or vanish."""

    step: Step
    life: int
    sink: str = ""


class World(NamedTuple):
    lives: tuple[Life, ...] = (Life(E.STAGED),)
    voting: Sink = Sink()
    redoing: Sink = Sink()
    processes: tuple[Process, ...] = ()

    def sink(self, name: str) -> Sink:
        return self.voting if name == VOTING else self.redoing

    def with_sink(self, name: str, sink: Sink) -> World:
        return self._replace(voting=sink) if name == VOTING else self._replace(redoing=sink)

    def with_life(self, number: int, **changes: object) -> World:
        lives = list(self.lives)
        lives[number] = lives[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(lives=tuple(lives))

    def plus(self, process: Process) -> World:
        return self._replace(processes=tuple(sorted((*self.processes, process))))

    @property
    def current(self) -> int:
        """The youngest decided life, or the original."""
        return max((n for n, life in enumerate(self.lives) if life.state in DECIDED), default=0)


Moves = Iterator[tuple[str, World, Process | None]]


class Generations:
    """The protocol of replacing, with at most one planted bug. `most_lives`: those that were given up count, too."""

    start = World()

    def __init__(self, knockout: Knockout | None = None, most_lives: int = 4, most_processes: int = 2) -> None:
        self.knockout, self.most_lives, self.most_processes = knockout, most_lives, most_processes
        self.arrows = {(arrow.source, arrow.target): arrow.roles for arrow in EPOCH_TRANSITIONS}
        self.exercised: set[tuple[type[StrEnum], StrEnum | None, StrEnum, Role]] = set()

    def violation(self, world: World) -> str:
        return broken(world) or unsettled(self, world)

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if len(world.processes) < self.most_processes:
            yield from self.beginnings(world)
        yield from self.alone(world)
        for index, process in enumerate(world.processes):
            others = world._replace(processes=world.processes[:index] + world.processes[index + 1 :])
            yield f"crash before «{process.step}»", others
            for label, after, then in self.act(others, process):
                yield f"{label} (life {process.life})", after.plus(then) if then else after

    # --- who may start -----------------------------------------------------------------------------------------------

    def beginnings(self, world: World) -> Iterator[tuple[str, World]]:
        current = world.current
        if len(world.lives) < self.most_lives and self.may_be_replaced(world, current):
            yield "begin: somebody asks for another life", world.plus(Process(Step.PLAN, current))
        for number, life in enumerate(world.lives):
            if life.state is E.STAGED:
                yield "prepare: start", world.plus(Process(Step.PREPARE, number, VOTING))
                yield "commit: start", world.plus(Process(Step.DECIDE, number))
            if life.state is E.COMMITTED:
                for sink in SINKS:
                    yield f"publish {sink}: start", world.plus(Process(Step.SHOW, number, sink))

    def alone(self, world: World) -> Iterator[tuple[str, World]]:
        """What is one transaction of the ledger, asked and done at once."""
        for number, life in enumerate(world.lives):
            if life.state is E.PLANNED:
                yield "stage: seal", world.with_life(number, state=E.STAGED)
            if life.state in UNDECIDED and number > 0:
                voided = world.with_life(number, state=E.VOID)
                branches = tuple(b for b in world.voting.branches if b.life != number)
                yield "a person gives it up", voided.with_sink(VOTING, world.voting._replace(branches=branches))
            if life.state is E.PUBLISHED:
                yield "cleanup", world.with_life(number, state=E.CLEANED)

    def may_be_replaced(self, world: World, number: int) -> bool:
        if self.knockout is Knockout.PLANNED_BEFORE_SHOWN:
            return world.lives[number].state in DECIDED
        return world.lives[number].state is E.CLEANED

    # --- the steps ---------------------------------------------------------------------------------------------------

    def act(self, world: World, me: Process) -> Moves:
        match me.step:
            case Step.PLAN:
                yield self.plan(world, me)
            case Step.PREPARE:
                yield self.prepare(world, me)
            case Step.DECIDE:
                yield self.decide(world, me)
            case Step.REPLACE:
                yield "commit: record what is replaced", self.replaced(world, world.lives[me.life].replaces), None
            case Step.SHOW:
                yield self.show(world, me)
            case Step.ADD:
                sink = world.sink(me.sink)
                shown = world.with_sink(me.sink, sink._replace(rows=sink.rows | {me.life}))
                yield "publish: new rows", shown, Process(Step.RECORD, me.life, me.sink)
            case Step.RECORD:
                yield self.record(world, me)

    def plan(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        """One ledger transaction under the locks of the pipeline and of the epoch that is to be replaced."""
        rivals = [life for life in world.lives if life.replaces == me.life and life.state is not E.VOID]
        if self.knockout is Knockout.RIVALS_UNCHECKED:
            rivals = []
        if rivals or not self.may_be_replaced(world, me.life) or len(world.lives) >= self.most_lives:
            return "begin: refused", world, None
        return "begin: plan", world._replace(lives=(*world.lives, Life(E.PLANNED, me.life))), None

    def prepare(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        sink, life = world.voting, world.lives[me.life]
        if life.state is not E.STAGED or any(branch.life == me.life for branch in sink.branches):
            return "prepare: fenced", world, None
        branch = Branch(me.life, sink.rows & {life.replaces})
        rows = sink.rows - branch.deletes if self.knockout is Knockout.SHOWN_UNDECIDED else sink.rows
        branches = tuple(sorted((*sink.branches, branch), key=lambda one: one.life))
        return "prepare", world.with_sink(VOTING, Sink(sink.markers, rows, branches)), None

    def decide(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        """One ledger transaction that takes both rows' locks."""
        life = world.lives[me.life]
        voted = any(branch.life == me.life for branch in world.voting.branches)
        if life.state is not E.STAGED or not voted:
            return "commit: refused", world, None
        unchecked = self.knockout in (Knockout.RIVALS_UNCHECKED, Knockout.PLANNED_BEFORE_SHOWN)
        if life.replaces != NOBODY and world.lives[life.replaces].state is not E.CLEANED and not unchecked:
            return "commit: refused, what it would replace isn't there to be replaced", world, None
        decided = world.with_life(me.life, state=E.COMMITTED)
        if self.knockout is Knockout.REPLACED_LATER and life.replaces != NOBODY:
            return "commit: decide", decided, Process(Step.REPLACE, me.life)
        return "commit: decide", self.replaced(decided, life.replaces), None

    def replaced(self, world: World, number: int) -> World:
        if number == NOBODY:
            return world
        for role in self.arrows[E.CLEANED, E.REPLACED]:
            self.exercised.add((EpochState, E.CLEANED, E.REPLACED, role))
        return world.with_life(number, state=E.REPLACED)

    def show(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        """One transaction of the sink: the marker decides who writes."""
        sink, life = world.sink(me.sink), world.lives[me.life]
        record = Process(Step.RECORD, me.life, me.sink)
        if me.life in sink.markers:
            return "publish: the marker is there", world, record
        branch = next((b for b in sink.branches if b.life == me.life), None)
        deletes = branch.deletes if branch else sink.rows & {life.replaces}
        markers = sink.markers | {me.life}
        if self.knockout is Knockout.MARKER_GOES_WITH_ROWS:
            markers -= deletes
        left = tuple(b for b in sink.branches if b != branch)
        if self.knockout is Knockout.SHOWN_APART and deletes:
            without = world.with_sink(me.sink, Sink(markers, sink.rows - deletes, left))
            return "publish: old rows away", without, Process(Step.ADD, me.life, me.sink)
        return "publish: show", world.with_sink(me.sink, Sink(markers, sink.rows - deletes | {me.life}, left)), record

    def record(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        life = world.lives[me.life]
        if life.state is not E.COMMITTED:
            return "publish: recorded before", world, None
        recorded = life.recorded | {me.sink}
        state = E.PUBLISHED if recorded == set(SINKS) else E.COMMITTED
        return "publish: record", world.with_life(me.life, state=state, recorded=recorded), None


# --- what must hold --------------------------------------------------------------------------------------------------


def broken(world: World) -> str:
    """The rule that this world breaks."""
    for number, life in enumerate(world.lives):
        heirs = [one for one in world.lives if one.replaces == number and one.state is not E.VOID]
        if len(heirs) > 1:
            return f"life {number} has {len(heirs)} that are to replace it"
        if (life.state is E.REPLACED) != any(replaced_by.state in DECIDED for replaced_by in heirs):
            return f"life {number} is {life.state}, and what is to replace it {[heir.state.value for heir in heirs]}"
    for name in SINKS:
        sink = world.sink(name)
        if sink.markers and len(sink.rows) != 1:
            return f"a reader of {name} sees the rows of {len(sink.rows)} lives at once"
        for number in sink.rows:
            if world.lives[number].state not in DECIDED:
                return f"{name} shows life {number}, which is {world.lives[number].state}"
    return ""


def unsettled(protocol: Generations, world: World) -> str:
    """Liveness: everybody crashes, then recovery publishes what is decided: every sink shows the youngest life."""
    world = world._replace(processes=())
    for number, life in enumerate(world.lives):
        for sink in SINKS if life.state is E.COMMITTED else ():
            publisher: Process | None = Process(Step.SHOW, number, sink)
            while publisher:
                [(_, world, publisher)] = protocol.act(world, publisher)
    current = world.current
    if world.lives[current].state in UNDECIDED:
        return ""
    for name in SINKS:
        if world.sink(name).rows != {current}:
            return f"after recovery {name} shows {sorted(world.sink(name).rows)}, decided is life {current}"
    return ""

"""The WALs that stay after cleanup: who keeps one, who lets go of it, and who shows its rows again.

The lives of one range follow one another as in `tests.model.generations`; walked through is what becomes of their
files. A cleanup, whoever lets go of a kept WAL, and whoever plans a life that refers to one may rest between any
two side effects for ever, and go on when others have come and gone. Two definitions of the pipeline are at work at the
same time: one keeps WALs, one doesn't.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lockstep.states import EpochState

E = EpochState
NOBODY = -1
FINISHED = (E.CLEANED, E.REPLACED, E.VOID)


class Knockout(StrEnum):
    """A planted bug: the model must turn red for each."""

    CHOICE_UNTOLD = "cleanup deletes by what it has found itself, and records with its end what it kept"
    REFERENCES_UNSEEN = "a WAL is let go of though a life that isn't finished refers to it"
    KEPT_REFERENCES_UNSEEN = "a WAL is let go of though a kept one refers to it"
    PLANNED_UNSEEN = "a life that refers to a WAL is planned by an earlier look at it"


class Step(StrEnum):
    """What a live process does next."""

    CHOOSE = "cleanup: say which WAL stays"
    DELETE = "cleanup: delete"
    RECORD = "cleanup: record"
    MARK = "expire: say that it may be gone"
    LET_GO = "expire: delete"
    FORGET = "expire: forget"
    REFER = "begin: plan a life that refers to it"


class Row(StrEnum):
    """What the ledger says of a life's WAL after cleanup."""

    NONE = "nothing"
    KEPT = "it is there"
    EXPIRED = "it may be gone"


class Life(NamedTuple):
    """`files`: whether its own are whole; one that `restores` another has none, and reads that one's."""

    state: EpochState
    restores: int = NOBODY
    files: bool = True
    row: Row = Row.NONE


class Process(NamedTuple):
    """A process between two side effects. `keeps`: what a cleanup has found, or was told."""

    step: Step
    life: int
    keeps: bool = False


class World(NamedTuple):
    lives: tuple[Life, ...] = (Life(E.PUBLISHED),)
    processes: tuple[Process, ...] = ()

    def with_life(self, number: int, **changes: object) -> World:
        lives = list(self.lives)
        lives[number] = lives[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(lives=tuple(lives))

    def plus(self, process: Process) -> World:
        return self._replace(processes=tuple(sorted((*self.processes, process))))

    def owner(self, number: int) -> int:
        """Whose files a life reads."""
        while self.lives[number].restores != NOBODY:
            number = self.lives[number].restores
        return number


class KeptWals:
    """The protocol, with at most one planted bug."""

    start = World()

    def __init__(self, knockout: Knockout | None = None, most_lives: int = 3, most_processes: int = 2) -> None:
        self.knockout, self.most_lives, self.most_processes = knockout, most_lives, most_processes

    def violation(self, world: World) -> str:
        return broken(world)

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        yield from self.alone(world)
        if len(world.processes) < self.most_processes:
            yield from self.beginnings(world)
        for index, process in enumerate(world.processes):
            others = world._replace(processes=world.processes[:index] + world.processes[index + 1 :])
            yield f"crash before «{process.step}»", others
            label, after, then = self.act(others, process)
            yield f"{label} (life {process.life})", after.plus(then) if then else after

    def beginnings(self, world: World) -> Iterator[tuple[str, World]]:
        for number, life in enumerate(world.lives):
            if life.state is E.PUBLISHED:
                for keeps in (True, False):
                    yield f"cleanup: start, keeps={keeps}", world.plus(Process(Step.CHOOSE, number, keeps))
            if life.state in FINISHED and life.row is not Row.NONE:
                yield "expire: start", world.plus(Process(Step.MARK, number))
            if life.state is E.REPLACED and life.row is Row.KEPT and len(world.lives) < self.most_lives:
                yield "begin: somebody wants its rows again", world.plus(Process(Step.REFER, number))

    def alone(self, world: World) -> Iterator[tuple[str, World]]:
        """What is one transaction of the ledger, and asks for no file."""
        last = len(world.lives) - 1
        current = max(n for n, life in enumerate(world.lives) if life.state not in (E.STAGED, E.VOID))
        if world.lives[current].state is E.CLEANED:
            if world.lives[last].state is E.STAGED:
                decided = world.with_life(current, state=E.REPLACED)
                yield "commit: decide, every sink shows it", decided.with_life(last, state=E.PUBLISHED)
            elif len(world.lives) < self.most_lives:
                restated = world.with_life(current, state=E.REPLACED)
                yield "a restatement is shown", restated._replace(lives=(*restated.lives, Life(E.PUBLISHED)))
        if world.lives[last].state is E.STAGED:
            yield "a person gives it up", world.with_life(last, state=E.VOID)

    def act(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        life = world.lives[me.life]
        match me.step:
            case Step.CHOOSE:
                return self.choose(world, me)
            case Step.DELETE:
                gone = world if me.keeps or life.restores != NOBODY else world.with_life(me.life, files=False)
                return "cleanup: delete", gone, me._replace(step=Step.RECORD)
            case Step.RECORD:
                return self.record(world, me)
            case Step.MARK:
                if life.row is Row.NONE or (life.row is Row.KEPT and self.is_referred_to(world, me.life)):
                    return "expire: it stays", world, None
                return "expire: mark", world.with_life(me.life, row=Row.EXPIRED), me._replace(step=Step.LET_GO)
            case Step.LET_GO:
                gone = world if life.restores != NOBODY else world.with_life(me.life, files=False)
                return "expire: delete", gone, me._replace(step=Step.FORGET)
            case Step.FORGET:
                forgotten = world.with_life(me.life, row=Row.NONE) if life.row is Row.EXPIRED else world
                return "expire: forget", forgotten, None
            case Step.REFER:
                return self.refer(world, me)

    def choose(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        life = world.lives[me.life]
        then = me._replace(step=Step.DELETE)
        if self.knockout is Knockout.CHOICE_UNTOLD:
            return "cleanup: nobody is told", world, then
        if life.state is not E.PUBLISHED:
            return "cleanup: it is cleaned up", world, None
        if life.row is Row.NONE:
            life = life._replace(row=Row.KEPT if me.keeps else Row.EXPIRED)
        chosen = world.with_life(me.life, row=life.row)
        return "cleanup: choose", chosen, then._replace(keeps=life.row is Row.KEPT)

    def record(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        life = world.lives[me.life]
        if life.state is not E.PUBLISHED:
            return "cleanup: recorded before", world, None
        row = Row.NONE if life.row is Row.EXPIRED else life.row
        if self.knockout is Knockout.CHOICE_UNTOLD:
            row = Row.KEPT if me.keeps else Row.NONE
        return "cleanup: record", world.with_life(me.life, state=E.CLEANED, row=row), None

    def is_referred_to(self, world: World, number: int) -> bool:
        referring = [life for life in world.lives if life.restores == number]
        unfinished = any(life.state not in FINISHED for life in referring)
        kept = any(life.row is Row.KEPT for life in referring)
        return (unfinished and self.knockout is not Knockout.REFERENCES_UNSEEN) or (
            kept and self.knockout is not Knockout.KEPT_REFERENCES_UNSEEN
        )

    def refer(self, world: World, me: Process) -> tuple[str, World, Process | None]:
        """One ledger transaction under the pipeline's lock, which whoever lets go of WALs takes, too."""
        current = max(n for n, life in enumerate(world.lives) if life.state not in (E.STAGED, E.VOID))
        taken = world.lives[current].state is not E.CLEANED or world.lives[-1].state is E.STAGED
        kept = world.lives[me.life].row is Row.KEPT or self.knockout is Knockout.PLANNED_UNSEEN
        if taken or not kept or len(world.lives) >= self.most_lives:
            return "begin: refused", world, None
        return "begin: plan", world._replace(lives=(*world.lives, Life(E.STAGED, me.life))), None


def broken(world: World) -> str:
    """The rule that this world breaks."""
    for number, life in enumerate(world.lives):
        whole = world.lives[world.owner(number)].files
        if life.row is Row.KEPT and not whole:
            return f"the WAL of life {number} is kept, and its files are gone"
        if life.state in (E.STAGED, E.PUBLISHED) and life.restores != NOBODY and not whole:
            return f"life {number} is {life.state}, and the files that it refers to are gone"
    return ""

"""A cursor's epochs follow one another, and some are restated: every position stays shown once, and the state true.

What happens within one life, and how a sink swaps two, is `tests.model.model`'s and `tests.model.generations`'. Here it
is the order: an epoch reads where the last one ended, and with state starts from what the one before decided. Without
state a life that takes another's place stands aside of the order. With state it takes the place of all from an epoch
on, and the next one follows it. Whoever begins, stages or decides may rest between any two looks at the ledger.

A row is its position and the epoch that brought it: so a state that was made from replaced rows isn't a true one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lockstep.states import DECIDED, UNDECIDED, EpochState

E = EpochState
Rows = frozenset[tuple[int, int]]  #: (position, number of the epoch that brought it)


class Knockout(StrEnum):
    """A planted bug: the model must turn red for each."""

    END_MOVES = "the next epoch goes on where the one with the highest number ended, whosever place that took"
    JOIN_UNCHECKED = "nobody looks whether the last epoch is still the last one when the next is planned"
    NOT_SHOWN_YET = "an epoch is restated once it is decided, whether or not it is shown"
    SINGLY = "an epoch with state is replaced alone"
    BESIDE_UNDECIDED = "with state, epochs are replaced while a later one is undecided"
    THE_REST_STAYS = "of all that are to be replaced only the first one is"
    BASE_BY_NUMBER = "what takes the place of several starts from the state of the last of them"


#: those that can go wrong without state; the others need one
STATELESS = (Knockout.END_MOVES, Knockout.JOIN_UNCHECKED, Knockout.NOT_SHOWN_YET)


class Life(NamedTuple):
    """An epoch. `reads`: positions. `replaces`: numbers. `base`: the epoch whose state it was staged from, 0: none."""

    state: EpochState
    reads: range
    replaces: tuple[int, ...] = ()
    base: int = -1
    keeps: Rows = frozenset()

    @property
    def original(self) -> bool:
        return not self.replaces


class Process(NamedTuple):
    """A begin that has looked, and not written yet: of the epoch after epoch `of`, or of what replaces from `of` on."""

    restates: bool
    of: int
    reads: range
    replaces: tuple[int, ...] = ()


class World(NamedTuple):
    """`lives[0]` is epoch 1. `shown`: of the one sink."""

    lives: tuple[Life, ...] = ()
    shown: frozenset[int] = frozenset()
    processes: tuple[Process, ...] = ()

    def life(self, number: int) -> Life:
        return self.lives[number - 1]

    def with_life(self, number: int, **changes: object) -> World:
        lives = list(self.lives)
        lives[number - 1] = lives[number - 1]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(lives=tuple(lives))


class Cursors:
    """`state`: whether epochs hand on state."""

    start = World()

    def __init__(self, state: bool, knockout: Knockout | None = None, most_lives: int = 5) -> None:
        self.state, self.knockout, self.most_lives = state, knockout, most_lives

    # --- what the ledger's queries say ---

    def last_original(self, world: World) -> int:
        if self.knockout is Knockout.END_MOVES:
            return len(world.lives)
        return max((number for number, life in _numbered(world) if life.original), default=0)

    def aside(self, life: Life) -> bool:
        return not life.original and (not self.state or self.knockout is Knockout.SINGLY)

    def predecessor(self, world: World, number: int) -> int:
        """0: there is none."""
        life = world.life(number)
        below = number
        if not life.original and not self.aside(life) and self.knockout is not Knockout.BASE_BY_NUMBER:
            below = life.replaces[0]
        gone = (E.VOID,) if self.knockout is Knockout.BASE_BY_NUMBER else (E.VOID, E.REPLACED)
        found = (n for n, one in _numbered(world) if n < below and one.state not in gone and not self.aside(one))
        return max(found, default=0)

    def to_replace(self, world: World, number: int) -> tuple[int, ...]:
        """Nothing: it can't be restated now."""
        shown = DECIDED if self.knockout is Knockout.NOT_SHOWN_YET else {E.CLEANED}
        if world.life(number).state not in shown - {E.REPLACED}:
            return ()
        if any(number in one.replaces and one.state in UNDECIDED for one in world.lives):
            return ()
        if not self.state or self.knockout is Knockout.SINGLY:
            return (number,)
        standing = [
            (n, one.state) for n, one in _numbered(world) if n >= number and one.state not in (E.VOID, E.REPLACED)
        ]
        if self.knockout is Knockout.BESIDE_UNDECIDED:
            standing = [(n, state) for n, state in standing if state not in UNDECIDED]
        return tuple(n for n, _ in standing) if {state for _, state in standing} <= shown else ()

    # --- steps ---

    def violation(self, world: World) -> str:
        return broken(self, world) or unsettled(self, world)

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if len(world.lives) < self.most_lives and len(world.processes) < 2:
            yield from self.looks(world)
        for index, process in enumerate(world.processes):
            others = world._replace(processes=world.processes[:index] + world.processes[index + 1 :])
            yield "a begin dies", others
            if len(world.lives) < self.most_lives:
                yield "begin: plan", self.plan(others, process)
        for number, life in _numbered(world):
            yield from self.moves(world, number, life)

    def looks(self, world: World) -> Iterator[tuple[str, World]]:
        last = self.last_original(world)
        end = world.life(last).reads.stop if last else 0
        found = [Process(False, last, range(end, end + 1))]
        for number, _ in _numbered(world):
            if replaced := self.to_replace(world, number):
                reads = range(world.life(replaced[0]).reads.start, world.life(replaced[-1]).reads.stop)
                found.append(Process(True, number, reads, replaced))
        for process in found:
            yield (
                f"begin: look ({process.of})",
                world._replace(processes=tuple(sorted((*world.processes, process), key=str))),
            )

    def plan(self, world: World, me: Process) -> World:
        """One transaction under the pipeline's lock."""
        if me.restates:
            still = self.to_replace(world, me.of) == me.replaces
        else:
            still = self.last_original(world) == me.of or self.knockout is Knockout.JOIN_UNCHECKED
        planned = Life(E.PLANNED, me.reads, me.replaces)
        return world._replace(lives=(*world.lives, planned)) if still else world

    def moves(self, world: World, number: int, life: Life) -> Iterator[tuple[str, World]]:
        before = self.predecessor(world, number)
        ready = self.aside(life) or not before or world.life(before).state in DECIDED
        if life.state is E.PLANNED and (ready or not self.state):
            base = world.life(before).keeps if before and self.state and not self.aside(life) else frozenset()
            keeps = base | {(position, number) for position in life.reads} if self.state else frozenset()
            yield f"stage {number}", world.with_life(number, state=E.STAGED, base=before, keeps=keeps)
        if life.state in UNDECIDED and not life.original:
            yield f"a person gives {number} up", world.with_life(number, state=E.VOID)
        if life.state is E.STAGED and ready and self.may_decide(world, life, before):
            yield f"decide {number}", self.decided(world, number, life)
        if life.state is E.COMMITTED and self.may_show(world, number, life):
            shown = world._replace(shown=world.shown - set(life.replaces) | {number})
            yield f"show {number} and clean it up", shown.with_life(number, state=E.CLEANED)

    def may_decide(self, world: World, life: Life, before: int) -> bool:
        if self.state and not self.aside(life) and life.base != before:
            return False
        unshown = self.knockout is Knockout.NOT_SHOWN_YET
        return all(world.life(one).state is E.CLEANED or unshown for one in life.replaces)

    def decided(self, world: World, number: int, life: Life) -> World:
        world = world.with_life(number, state=E.COMMITTED)
        gone = life.replaces[:1] if self.knockout is Knockout.THE_REST_STAYS else life.replaces
        for one in gone:
            world = world.with_life(one, state=E.REPLACED)
        return world

    def may_show(self, world: World, number: int, life: Life) -> bool:
        before = 0 if self.aside(life) else self.predecessor(world, number)
        return not before or world.life(before).state is E.CLEANED


def _numbered(world: World) -> list[tuple[int, Life]]:
    return list(enumerate(world.lives, 1))


# --- what must hold --------------------------------------------------------------------------------------------------


def broken(protocol: Cursors, world: World) -> str:
    """The rule that this world breaks."""
    standing = {n: life for n, life in _numbered(world) if life.state in DECIDED - {E.REPLACED}}
    reads = sorted(position for life in standing.values() for position in life.reads)
    if reads != list(range(len(reads))):
        return f"decided and not replaced are epochs that read the positions {reads}"
    for number, life in standing.items():
        heirs = [n for n, one in standing.items() if number in one.replaces]
        if life.state is E.CLEANED and number not in world.shown and not heirs:
            return f"epoch {number} is {life.state}, and the sink doesn't show it"
    if protocol.state and standing:
        newest = max(standing, key=lambda n: standing[n].reads.stop)
        brought = {(position, n) for n, life in standing.items() for position in life.reads}
        if standing[newest].keeps != brought:
            return (
                f"the state of epoch {newest} has {sorted(standing[newest].keeps)}, decided rows are {sorted(brought)}"
            )
    return ""


def unsettled(protocol: Cursors, world: World) -> str:
    """Liveness and what is left: all that is decided is shown, once, and nothing that was replaced."""
    world = world._replace(processes=())
    moved = True
    while moved:
        moved = False
        for number, life in _numbered(world):
            for label, after in protocol.moves(world, number, life):
                if label.startswith("show"):
                    world, moved = after, True
                    break
            if moved:
                break
    wanted = {n for n, life in _numbered(world) if life.state in DECIDED - {E.REPLACED}}
    return (
        ""
        if world.shown == wanted
        else f"after recovery the sink shows {sorted(world.shown)}, decided are {sorted(wanted)}"
    )

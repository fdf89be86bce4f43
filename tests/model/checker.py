"""The search: every world that the protocol can reach, breadth first, so that the first red trace is a shortest one.

Two questions are asked of each world. `broken`: does it violate an invariant now? And, of what processes leave behind
(ledger, sinks, storage, and the zombies that hold a marker's row), `unsettled`: if everything crashed and recover ran,
would all be resolved; and if every zombie rested for ever, would one more DAG run still bring the epoch to its end?
The second needs no cycle search: what is asked is stronger than that a way out exists, namely that the scheduled
programs themselves, run once more, are that way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lockstep.states import DECIDED, SHOWN, UNDECIDED, EpochState, ParticipantState, Role
from tests.model.model import HOLDS_MARKER, SINKS, Knockout, Protocol
from tests.model.world import Process, World, compact


@dataclass
class Exploration:
    """What a search found. `violation` is empty when every reachable world keeps every invariant."""

    worlds: int = 0
    steps: int = 0
    settled: int = 0
    violation: str = ""
    trace: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.worlds} worlds, {self.steps} steps, {self.settled} settled"]
        return "\n".join(lines + ([self.violation, *self.trace] if self.violation else []))


def explore(protocol: Protocol) -> Exploration:
    """Search until the space is exhausted or the first violation is met."""
    start = World()
    parents: dict[World, tuple[World, str] | None] = {start: None}
    met, settled = {start}, set[World]()
    layer, found = [start], Exploration()
    while layer:
        following: list[World] = []
        for world in layer:
            for label, after in successors(protocol, world):
                found.steps += 1
                if after in met:
                    continue
                met.add(after)
                after = compact(without_spent(protocol, after))
                if after in parents:
                    continue
                parents[after] = (world, label)
                found.violation = broken(after) or unsettled(protocol, after, settled)
                if found.violation:
                    found.trace = trace(parents, after)
                    found.worlds, found.settled = len(parents), len(settled)
                    return found
                following.append(after)
        layer = following
    found.worlds, found.settled = len(parents), len(settled)
    return found


RARE = ("crash", "a person", "begin", "abort")


def wander(protocol: Protocol, seed: int, steps: int) -> Exploration:
    """Random histories, one after another, for spaces too large to search: with more processes and folders at once.

    What sets an epoch back is rare, or no history would get past its first steps.
    """
    chance, world, found = random.Random(seed), World(), Exploration()
    settled: set[World] = set()
    for found.steps in range(1, steps + 1):
        ways = list(successors(protocol, world))
        over = world.ledger.state in (EpochState.CLEANED, EpochState.VOID) and chance.random() < 0.2
        if over or not ways:
            world, found.trace = World(), []
            continue
        weights = [1 if label.startswith(RARE) and world.ledger.state else 20 for label, _ in ways]
        label, after = chance.choices(ways, weights)[0]
        world = compact(without_spent(protocol, after))
        found.trace.append(f"{len(found.trace) + 1:>3}. {label:<60} {_glance(world)}")
        found.violation = broken(world) or unsettled(protocol, world, settled)
        if found.violation:
            break
    found.settled = len(settled)
    return found


def successors(protocol: Protocol, world: World) -> Iterator[tuple[str, World]]:
    if len(world.processes) < protocol.most_processes:
        yield from protocol.beginnings(world)
    previous = None
    for index, process in enumerate(world.processes):
        if process == previous:
            continue
        previous = process
        others = world._replace(processes=world.processes[:index] + world.processes[index + 1 :])
        yield f"crash before «{process.step}»", others
        for label, after, then in protocol.steps[process.step](others, process):
            yield label, after.plus(then) if then else after


def without_spent(protocol: Protocol, world: World) -> World:
    """Let processes end that can't change anything any more: they only take up places."""
    left = tuple([p for p in world.processes if not protocol.spent(world, p)])
    return world if len(left) == len(world.processes) else world._replace(processes=left)


def trace(parents: dict[World, tuple[World, str] | None], world: World) -> list[str]:
    lines: list[str] = []
    step = parents[world]
    while step is not None:
        lines.append(f"{step[1]:<60} {_glance(world)}")
        world = step[0]
        step = parents[world]
    return [f"{number:>3}. {line}" for number, line in enumerate(reversed(lines), 1)]


def _glance(world: World) -> str:
    ledger = world.ledger
    votes = " ".join(f"{row.state}{_name(row.vote)}" for row in (ledger.voting, ledger.redoing))
    branches = " ".join(f"branch{_name(branch.token)}" for branch in world.voting.branches)
    folders = " ".join(f"folder{_name(folder)}" for folder in world.folders)
    shown = f"shown {len(world.voting.shown)}/{len(world.redoing.shown)}"
    row = f"{ledger.state} attempt{_name(ledger.attempt)} wal{_name(ledger.wal)}"
    return f"| {row} [{votes}] {branches} {folders} {shown}"


def _name(token: int) -> str:
    """`world.compact` names attempts 10, 20 …: 1.2 is the second token that was taken under the first attempt here."""
    return f":{token // 10}.{token % 10}" if token else ""


# --- invariants of every world ---------------------------------------------------------------------------------------


def broken(world: World) -> str:
    """The invariant that this world violates, or an empty string."""
    ledger, decision = world.ledger, world.decision
    if world.fault:
        return world.fault
    shown = (*world.voting.shown, *world.redoing.shown)
    if shown and decision is None:
        return "a sink shows rows of an undecided epoch (I3)"
    if len(world.voting.shown) > 1 or len(world.redoing.shown) > 1:
        return "a sink shows the epoch twice (I6)"
    if ledger.state in DECIDED:
        if decision is None or decision != (ledger.attempt, ledger.wal, ledger.voting.vote):
            return "the decision is not of the current attempt, or it changed (I2, I12)"
        if ledger.verdict != ledger.wal:
            return "decided without a verdict of the WAL that is decided"
        if ParticipantState.PENDING in (ledger.voting.state, ledger.redoing.state):
            return "decided without every vote (I2)"
        if any(row.wal != decision.wal for row in shown):
            return "a sink shows another manifest than the decided one (I4)"
    elif decision is not None:
        return "a decision was taken back (I2)"
    return _lost(world)


def _lost(world: World) -> str:
    ledger = world.ledger
    for name in SINKS:
        if world.participant(name).state is ParticipantState.PUBLISHED and not world.sink(name).shown:
            return f"{name} is recorded as published and shows nothing (I7)"
    if ledger.state in SHOWN and not (world.voting.shown and world.redoing.shown):
        return "published, and a sink shows nothing (I7)"
    if ledger.state in (EpochState.STAGED, EpochState.COMMITTED) and ledger.wal not in world.folders:
        return "the sealed WAL is gone and the epoch is not published (I21)"
    if ledger.state is EpochState.CLEANED and not world.archived:
        return "cleaned without its manifest archived (I21)"
    return ""


# --- what recover, or one more run, makes of it ----------------------------------------------------------------------


def unsettled(protocol: Protocol, world: World, settled: set[World]) -> str:
    """Why the programs, run once more from here, would not resolve everything; an empty string when they do."""
    holders = tuple(p for p in world.processes if p.step in HOLDS_MARKER)
    left_behind = compact(world._replace(processes=holders))
    if left_behind in settled:
        return ""
    settled.add(left_behind)
    crashed = left_behind._replace(processes=())
    return unresolved(Runner(protocol, crashed).recover()) or unfinished(Runner(protocol, left_behind).run())


def unresolved(world: World) -> str:
    """Quiescence: everything crashed, recover ran to its end."""
    ledger = world.ledger
    if ledger.state in DECIDED and ledger.state is not EpochState.CLEANED:
        return f"recover left a decided epoch {ledger.state} (I15)"
    if ledger.state not in DECIDED and (world.voting.shown or world.redoing.shown):
        return "recover left rows of an undecided epoch (I19)"
    if world.voting.branches:
        return "recover left a prepared branch (I13)"
    if set(world.folders) - {ledger.wal if ledger.state in UNDECIDED else 0}:
        return "recover left a folder behind (I13)"
    return broken(world)


def unfinished(world: World) -> str:
    """Liveness: the zombies rest for ever, one DAG run goes from begin to cleanup."""
    if world.ledger.state not in (EpochState.CLEANED, EpochState.VOID):
        return f"one more run ended with the epoch {world.ledger.state}: stuck (I27)"
    return unresolved(world)


class Runner:
    """Runs programs alone, each to its end, among processes that rest. Its tokens are larger than all of theirs."""

    def __init__(self, protocol: Protocol, world: World) -> None:
        self.protocol = protocol
        self.world = world

    def recover(self) -> World:
        protocol = self.protocol
        state = self.world.ledger.state
        if state in UNDECIDED:
            self._start(protocol.raise_attempt(self.world, "recover", (Role.RECOVER,), state), "recover")
        self._sweep()
        for sink in SINKS:
            self._start(protocol.publications(self.world), f"publish {sink}")
        self._start(protocol.publications(self.world), "cleanup")
        self._sweep()
        return compact(self.world)

    def run(self) -> World:
        """begin → stage → audit → prepare x 2 → commit → publish x 2 → cleanup, with recover for the last two and the
        sweep; a person releases what is held."""
        protocol = self.protocol
        if self.world.ledger.state in UNDECIDED or self.world.ledger.state is None:
            self._start(protocol.new_attempts(self.world), "begin")
        for task in ("stage", "audit", "a person releases", *(f"prepare {sink}" for sink in SINKS), "commit"):
            if self.world.ledger.state in UNDECIDED:
                self._start(protocol.executions(self.world), task)
        return self.recover() if self.world.ledger.state not in UNDECIDED else compact(self.world)

    def _sweep(self) -> None:
        for _ in range(len(self.world.voting.branches) + len(self.world.folders)):
            self._start(self.protocol.sweeps(self.world), "sweep")

    def _start(self, beginnings: Iterator[tuple[str, World]], task: str) -> None:
        """Start the first process whose label begins with `task`, if any may start, and run it to its end."""
        for label, after in beginnings:
            if label.startswith(task):
                started = Counter(after.processes) - Counter(self.world.processes)
                self.world = after._replace(processes=self.world.processes)
                for process in started.elements():
                    self._finish(process)
                return

    def _finish(self, process: Process) -> None:
        then: Process | None = process
        while then is not None:
            moves = self.protocol.steps[then.step](self.world, then)
            if not moves and not self._lock_timeout(then):
                return
            if moves:
                _, self.world, then = moves[0]

    def _lock_timeout(self, waiting: Process) -> bool:
        """End the sessions of lower tokens that hold the marker's row; sweep what is prepared."""
        holders = [p for p in self.world.processes if p.step in HOLDS_MARKER and p.sink == waiting.sink]
        if not holders or self.protocol.knockout is Knockout.NO_SESSION_ENDED:
            return False
        self.world = self.world._replace(processes=tuple(p for p in self.world.processes if p not in holders))
        return True

"""What the model checker looks at: one epoch's row in the ledger, two sinks, the staging folders, the live processes.

A `World` is a frozen value. Tokens are numbers whose order alone matters, so `compact` renames them and forgets those
that nobody can read again: that keeps the space finite without a limit on attempts or executions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from lockstep.states import DECIDED, EpochState, ParticipantState

NOTHING = 0  #: no token, no WAL, no vote


class SinkName(StrEnum):
    VOTING = "warehouse"  #: a TwoPhaseCommitSink: a branch, its first row the marker, is prepared before the decision
    REDOING = "archive"  #: a WriteAheadSink: one transaction with marker and data after the decision


class Participant(NamedTuple):
    """A sink's row in the ledger."""

    state: ParticipantState | None = None
    execution: int = NOTHING  #: the youngest execution that registered itself
    vote: int = NOTHING  #: the execution that voted; its branch is the one to commit


class Ledger(NamedTuple):
    state: EpochState | None = None
    attempt: int = NOTHING
    wal: int = NOTHING  #: the folder (named by its stage's token) that is sealed
    voting: Participant = Participant()
    redoing: Participant = Participant()
    verdict: int = NOTHING  #: the folder whose audits passed, or were released
    held: int = NOTHING  #: the folder whose audits hold the epoch


class Branch(NamedTuple):
    """A prepared transaction; it holds the marker's row until somebody finishes it."""

    token: int
    wal: int


class Shown(NamedTuple):
    """The epoch's rows in a sink, with the marker under which they were written. `NO_MARKER`: written without one."""

    key: int
    wal: int


class Adopted(StrEnum):
    """Where the table of the redoing sink, if that adopts, has the files of the sealed WAL, once the epoch is shown."""

    NEWEST = "in its newest version"  #: as long as nothing is shown: in none
    OLDER = "in an older version, which some reader may still be at"
    PAST = "in no version that anybody may read"
    GONE = "deleted"


NO_MARKER = ANOTHERS = -1
THE_KEY = 0  #: (deployment, pipeline, sink, epoch); a planted bug puts the writer's token there


class Sink(NamedTuple):
    branches: tuple[Branch, ...] = ()
    shown: tuple[Shown, ...] = ()


class Decision(NamedTuple):
    attempt: int
    wal: int
    vote: int


class Process(NamedTuple):
    """A task's process (or a person at a prompt) between two side effects: `step` is what it does next.

    It may rest there for ever, which makes it a zombie, or vanish, which is a crash. `attempt`, `token`, `wal` are
    what it knows: it read or took them earlier, and they may be out of date.
    """

    step: str
    sink: str = ""
    attempt: int = NOTHING
    token: int = NOTHING
    wal: int = NOTHING

    @property
    def bounds(self) -> bool:
        """Whether it compares others' tokens with the attempt it knows, however old that is."""
        return self.step.startswith(("roll back", "abort"))

    @property
    def is_early(self) -> bool:
        """Whether `wal` is a folder of which it waits to see whether it will be the sealed one."""
        return self.step.startswith(("prepare: insert the marker and rows of", "prepare: compare"))


class World(NamedTuple):
    ledger: Ledger = Ledger()
    decision: Decision | None = None
    voting: Sink = Sink()
    redoing: Sink = Sink()
    folders: tuple[int, ...] = ()
    archived: bool = False
    processes: tuple[Process, ...] = ()
    fault: str = ""  #: something that a step did and no rule allows
    adopted: Adopted = Adopted.NEWEST

    def sink(self, name: SinkName) -> Sink:
        return self.voting if name is SinkName.VOTING else self.redoing

    def participant(self, name: SinkName) -> Participant:
        return self.ledger.voting if name is SinkName.VOTING else self.ledger.redoing

    def with_sink(self, name: SinkName, sink: Sink) -> World:
        return self._replace(voting=sink) if name is SinkName.VOTING else self._replace(redoing=sink)

    def with_participant(self, name: SinkName, row: Participant) -> World:
        ledger = self.ledger
        ledger = ledger._replace(voting=row) if name is SinkName.VOTING else ledger._replace(redoing=row)
        return self._replace(ledger=ledger)

    def plus(self, process: Process) -> World:
        return self._replace(processes=tuple(sorted((*self.processes, process))))

    def fresh_token(self) -> int:
        """The next value of the ledger's sequence: larger than every token that anybody knows."""
        return max(_tokens(self)) + 1


def _tokens(world: World) -> set[int]:
    """Every token in the world, whatever it names."""
    ledger, voting, redoing = world.ledger, world.ledger.voting, world.ledger.redoing
    tokens = {NOTHING, ledger.attempt, ledger.wal, *world.folders, *(world.decision or ()), ledger.verdict, ledger.held}
    tokens.update((voting.execution, voting.vote, redoing.execution, redoing.vote))
    for rows in (world.voting.branches, world.voting.shown, world.redoing.shown):
        for row in rows:
            tokens.update(row)
    for process in world.processes:
        tokens.update(process[2:])
    return tokens


# --- one name for worlds that differ in nothing that matters ---------------------------------------------------------


def compact(world: World) -> World:
    """The same world with its tokens renamed; worlds that only differ in names become equal.

    Only comparisons that the protocol makes are kept: a folder, a branch, an execution against the attempts, and
    against its own kind. An attempt that isn't current never will be again, nor a WAL that isn't the sealed one: which
    of the old ones it is does not matter.
    """
    world = _forget(world)
    attempts = {world.ledger.attempt, *[process.attempt for process in world.processes]}
    voting, redoing = world.ledger.voting, world.ledger.redoing
    of_sink: dict[str, list[int]] = {"": [], SinkName.VOTING: [], SinkName.REDOING: []}
    for process in world.processes:
        of_sink[process.sink].append(process.token)
    branches = [branch.token for branch in world.voting.branches]
    names = {
        "": _names(attempts, [world.ledger.wal, *world.folders, *of_sink[""]]),
        SinkName.VOTING: _names(attempts, [voting.execution, voting.vote, *branches, *of_sink[SinkName.VOTING]]),
        SinkName.REDOING: _names(attempts, [redoing.execution, redoing.vote, *of_sink[SinkName.REDOING]]),
    }
    if all(token == name for naming in names.values() for token, name in naming.items()):
        return world
    return _renamed(world, names[""], names[SinkName.VOTING], names[SinkName.REDOING], names)


def _renamed(
    world: World, folder: dict[int, int], vote: dict[int, int], redo: dict[int, int], of: dict[str, dict[int, int]]
) -> World:
    ledger, decision = world.ledger, world.decision
    voting, redoing = ledger.voting, ledger.redoing
    processes = [
        Process(p.step, p.sink, folder[p.attempt], of[p.sink][p.token], folder[p.wal]) for p in world.processes
    ]
    return World(
        Ledger(
            ledger.state,
            folder[ledger.attempt],
            folder[ledger.wal],
            Participant(voting.state, vote[voting.execution], vote[voting.vote]),
            Participant(redoing.state, redo[redoing.execution], redo[redoing.vote]),
            folder.get(ledger.verdict, ANOTHERS),
            folder.get(ledger.held, ANOTHERS),
        ),
        # a decision that the ledger no longer bears out is broken, by whatever name
        Decision(folder.get(decision.attempt, -1), folder.get(decision.wal, -1), vote.get(decision.vote, -1))
        if decision
        else None,
        Sink(
            tuple([Branch(vote[branch.token], folder[branch.wal]) for branch in world.voting.branches]),
            tuple([Shown(vote.get(row.key, NO_MARKER), folder[row.wal]) for row in world.voting.shown]),
        ),
        Sink((), tuple([Shown(redo.get(row.key, NO_MARKER), folder[row.wal]) for row in world.redoing.shown])),
        tuple([folder[token] for token in world.folders]),
        world.archived,
        tuple(sorted(processes)),
        world.fault,
        world.adopted,
    )


def _names(attempts: set[int], tokens: list[int]) -> dict[int, int]:
    """Attempts become 10, 20, 30 …; a token between two of them gets a number between theirs."""
    names = {NOTHING: NOTHING}
    name = NOTHING
    for token in sorted({*attempts, *tokens}):
        if token != NOTHING:
            name = (name // 10 + 1) * 10 if token in attempts else name + 1
            names[token] = name
    return names


def _forget(world: World) -> World:
    """Drop what nobody will be compared with: old attempts, old WALs, executions that no younger one can meet."""
    ledger, sealed = world.ledger, world.ledger.wal
    if ledger.verdict not in (NOTHING, sealed) or ledger.held not in (NOTHING, sealed):
        verdict, held = (one if one in (NOTHING, sealed) else ANOTHERS for one in (ledger.verdict, ledger.held))
        ledger = ledger._replace(verdict=verdict, held=held)
        world = world._replace(ledger=ledger)
    processes = tuple([_without_old(process, world) for process in world.processes])
    if processes != world.processes:
        world = world._replace(processes=processes)
    for name in SinkName:
        sink = world.sink(name)
        rows: tuple[Branch | Shown, ...] = (*sink.branches, *sink.shown)
        if any(row.wal not in (NOTHING, sealed) for row in rows):
            branches = tuple(b if b.wal == sealed else b._replace(wal=NOTHING) for b in sink.branches)
            shown = tuple(row if row.wal == sealed else row._replace(wal=NOTHING) for row in sink.shown)
            world = world.with_sink(name, Sink(branches, shown))
    at_sinks = {process.sink for process in processes}
    decided = ledger.state in DECIDED
    if ledger.voting.execution and (decided or not (world.voting.branches or SinkName.VOTING in at_sinks)):
        world = world.with_participant(SinkName.VOTING, ledger.voting._replace(execution=NOTHING))
    if (ledger.redoing.execution or ledger.redoing.vote) and (decided or SinkName.REDOING not in at_sinks):
        row = ledger.redoing._replace(execution=NOTHING, vote=NOTHING)
        world = world.with_participant(SinkName.REDOING, row)
    return world


def _without_old(process: Process, world: World) -> Process:
    ledger = world.ledger
    may_be_sealed = process.is_early and ledger.state is EpochState.PLANNED and process.wal in world.folders
    if process.wal not in (NOTHING, ledger.wal) and not may_be_sealed:
        process = process._replace(wal=NOTHING)
    if 0 < process.attempt < ledger.attempt and not process.bounds:
        process = process._replace(attempt=NOTHING)
    return process

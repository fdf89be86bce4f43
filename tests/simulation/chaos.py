"""One simulation: a seed, a world, and what a scheduler, a person, a network and bad luck do to it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from lockstep.epoch import Interval, KeyedBy
from lockstep.errors import Retryable
from lockstep.protocol.recover import RecoveryReport, recover
from lockstep.states import DECIDED, UNDECIDED, EpochState
from tests.simulation import invariants
from tests.simulation.baton import Order, Process
from tests.simulation.dag_run import DagRun, Status, decide_together
from tests.simulation.invariants import Violation, Watch
from tests.simulation.misfortunes import Fortune, Taste
from tests.simulation.servers import Server
from tests.simulation.world import Counting, World, day

STEPS = (200, 800)
DAYS = 2


@dataclass
class Living:
    """A process, the task that it runs, and whether it hangs. `current`: its end is news to Airflow."""

    process: Process
    task: str
    run: DagRun | None = None
    hangs: bool = False
    current: bool = True

    @property
    def place(self) -> str:
        return self.process.place

    def __str__(self) -> str:
        return self.process.name


@dataclass
class Chaos:
    """Every decision is the seed's. `trace` tells what happened."""

    seed: int
    world: World
    servers: dict[str, Server]
    watch: Watch
    taste: Taste
    trace: list[str] = field(default_factory=list)
    living: list[Living] = field(default_factory=list)
    runs: list[DagRun] = field(default_factory=list)
    packs: bool = False  #: whether the epochs of runs that are about to decide are decided together
    restates: bool = False  #: whether some runs are to replace what is published
    restores: bool = False  #: whether some of these want the rows of an earlier life

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._fortune = Fortune(self._chance, self.taste)
        self._numbers = 0

    def unfold(self) -> None:
        """Faults, then quiescence; raises `Violation`."""
        for _ in range(self._chance.randrange(*STEPS)):
            choice = self._fortune.choose(self)
            self._tell(choice.told)
            choice.act()
        self._settle()

    # --- what may be done ---

    def begin_run(self) -> None:
        by_interval = self.world.pipeline.identity is KeyedBy.INTERVAL
        interval = day(self._chance.randrange(DAYS)) if by_interval else None
        self.runs = [run for run in self.runs if not run.over or self._chance.random() < 0.5]
        why = self._chance.choice([None, "a late file", "a bug"]) if self.restates else None
        back = self._earlier(interval) if self.restores and why and interval else None
        decided = [] if by_interval or why is None else [one.id for one in self.world.epochs() if one.state in DECIDED]
        epoch = self._chance.choice(decided) if decided else None
        if epoch is None and not by_interval:
            why = None
        self.runs.append(DagRun(self._next(), interval, self.world.sink_names, why, back, epoch))

    def _earlier(self, interval: Interval) -> int | None:
        """An epoch that was replaced, mostly."""
        lives = [one.id for one in self.world.epochs() if one.interval == interval and one.state is EpochState.REPLACED]
        return self._chance.choice([None, *lives, *lives])

    def start(self, task: str, run: DagRun) -> None:
        run.start(task)
        together = [other.key for other in self.runs if other is not run and other.ready() == ["commit"]]
        if self.packs and task == "commit" and together:
            work: Callable[[], object] = partial(decide_together, self.world, run.key, together)
        else:
            work = run.work(self.world, task)
        self.live(f"{run.name} {task}", work, run, task)

    def live(self, name: str, work: Callable[[], object], run: DagRun | None = None, task: str = "") -> None:
        self.living.append(Living(Process(f"«{name}» {self._next()}", work), task, run))

    def step(self, living: Living, order: Order = Order.GO) -> None:
        deciding = living.process.place in ("ledger: commit_epoch", "ledger: commit_epochs")
        living.process.step(order)
        if deciding:
            self.watch.on_decision()
        if self.watch.found:
            raise Violation(self.watch.found[0])
        if living.process.over:
            self._end(living)

    def _end(self, living: Living) -> None:
        self.living.remove(living)
        process = living.process
        if process.error is not None:
            self._tell(f"{living} ended with {type(process.error).__name__}: {process.error}")
            if problem := invariants.unexpected(process.error):
                raise Violation(f"{living}: {problem}") from process.error
        if living.run is not None and (alarm := invariants.false_alarm(process.error)):  # a person may be refused
            raise Violation(f"{living}: {alarm}") from process.error
        self._heed(process.result)
        if living.run is not None and living.current:
            living.run.end(living.task, self._status_of(process))

    def _heed(self, result: object) -> None:
        problems = result.problems if isinstance(result, RecoveryReport) else []
        for problem in problems:
            self._tell(f"recovery: {problem}")
        if alarm := invariants.false_alarm(None, problems):
            raise Violation(alarm)

    def _status_of(self, process: Process) -> Status:
        if process.error is None and not process.killed:
            return Status.DONE
        again = process.killed or isinstance(process.error, Retryable)
        return Status.WAITING if again and self._chance.random() < 0.8 else Status.FAILED

    def hang(self, living: Living) -> None:
        """Airflow takes it for dead now and then, and tries the task again beside it."""
        living.hangs = True
        if living.run is not None and living.current and self._chance.random() < 0.7:
            living.current = False
            living.run.end(living.task, Status.WAITING)

    def release(self, living: Living) -> None:
        living.hangs = False
        self.step(living)

    def mark(self, run: DagRun, task: str) -> None:
        for living in self.living:
            if (living.run, living.task) == (run, task):
                living.current = False
        run.end(task, Status.DONE)

    def tear(self, handle: str) -> None:
        epoch = self.servers["voting"].prepared.pop(handle).epoch
        self.watch.torn.add((epoch.id, "voting"))

    def grow(self) -> None:
        assert isinstance(self.world.source, Counting)
        self.world.source.extra = self._chance.randrange(3)

    # --- quiescence ---

    def _settle(self) -> None:
        """Faults stop: who hangs is released or killed, recovery runs, what is undecided is run once more."""
        self._tell("faults stop")
        for living in list(self.living):
            if living.hangs and self._chance.random() < 0.3:
                self._tell(f"{living}, having hung at {living.place}: dies")
                self.step(living, Order.KILL)
        while self.living:
            living = self._chance.choice(self.living)
            self._tell(f"{living} at {living.place}: goes on")
            self.step(living)
        self._recover()
        invariants.require_resolved(self.world, self.servers)
        for epoch in self.world.epochs():
            if epoch.state in UNDECIDED:
                self._run_through(epoch.id)
        self._recover()
        invariants.require_resolved(self.world, self.servers)
        undecided = [str(epoch) for epoch in self.world.epochs() if epoch.state in UNDECIDED]
        if undecided:
            raise Violation(f"I27: still undecided: {undecided}")
        invariants.require_no_repair(self.world, self.watch.torn)

    def _recover(self) -> None:
        self._tell("recovery runs alone")
        self.world.expire_leases()
        report = recover(self.world.runtime(), recovery_grace=timedelta(0))
        if report.problems:
            raise Violation(f"I15: recovery alone has problems: {report.problems}")
        again = recover(self.world.runtime(), recovery_grace=timedelta(0))
        if again.problems or again.finished or again.swept:
            raise Violation(f"I17: a second recovery still finds work: {again}")

    def _run_through(self, number: int) -> None:
        epoch = self.world.looking.epoch(self.world.pipeline.name, number)
        why = epoch.generation.reason if epoch.generation else None
        restated = epoch.id if why is not None and epoch.interval is None else None
        run = DagRun(self._next(), epoch.interval, self.world.sink_names, why, epoch.restores, restated)
        self._tell(f"{run.name} goes through epoch {number} alone")
        self.world.expire_leases()
        while ready := run.ready():
            run.start(ready[0])
            run.work(self.world, ready[0])()
            run.end(ready[0], Status.DONE)

    # --- telling ---

    def _tell(self, what: str) -> None:
        self.trace.append(f"{len(self.trace):4} {what}")

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def close(self) -> None:
        for living in self.living:
            if not living.process.over:
                living.process.step(Order.KILL)

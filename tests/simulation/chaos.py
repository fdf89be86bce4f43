"""One simulation: a seed, a world, and what a scheduler, a person, a network and bad luck do to it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from lockstep.epoch import Identity
from lockstep.errors import LedgerConflict, Retryable
from lockstep.roles import operate
from lockstep.roles.abort import abort_epoch
from lockstep.roles.recover import RecoveryReport, recover
from lockstep.states import UNDECIDED, EpochState, Role
from tests.simulation import invariants
from tests.simulation.baton import Order, Process
from tests.simulation.dag_run import DagRun, Status
from tests.simulation.invariants import Violation, Watch
from tests.simulation.servers import Server
from tests.simulation.world import Counting, World, day

MOST_PROCESSES = 4
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

    def __str__(self) -> str:
        return self.process.name


@dataclass
class Choice:
    weight: float
    told: str
    act: Callable[[], None]


@dataclass
class Chaos:
    """Every decision is the seed's. `trace` tells what happened."""

    seed: int
    world: World
    servers: dict[str, Server]
    watch: Watch
    trace: list[str] = field(default_factory=list)
    living: list[Living] = field(default_factory=list)
    runs: list[DagRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._numbers = 0
        self._most_runs = self._chance.choice((1, 2, 2, 3))

    def unfold(self) -> None:
        """Faults, then quiescence; raises `Violation`."""
        bad_luck = self._chance.choice((0.01, 0.03, 0.08))
        for _ in range(self._chance.randrange(*STEPS)):
            choices = self._misfortunes() if self._chance.random() < bad_luck else self._ordinary()
            [choice] = self._chance.choices(choices, [choice.weight for choice in choices])
            self._tell(choice.told)
            choice.act()
        self._settle()

    # --- what may happen ---

    def _ordinary(self) -> list[Choice]:
        """What goes on by itself: processes, and the scheduler of DAG runs."""
        found = [
            Choice(10, f"{living} at {living.process.place}: goes on", lambda one=living: self._step(one))  # type: ignore[misc]
            for living in self.living
            if not living.hangs
        ]
        if len(self.living) < MOST_PROCESSES:
            found += [self._starting(run, task) for run in self.runs for task in run.ready()]
        if len([run for run in self.runs if not run.over]) < self._most_runs:
            found.append(Choice(1, "a run begins", self._begin_run))
        return found or self._misfortunes()

    def _misfortunes(self) -> list[Choice]:
        found = [Choice(3, "leases run out", self.world.expire_leases)]
        for living in self.living:
            found += self._released(living) if living.hangs else self._of_living(living)
        if len(self.living) < MOST_PROCESSES:
            found.append(Choice(2, "recovery starts", self._start_recovery))
            found += self._of_a_person()
        found += [Choice(0.3, f"server {server.name} crashes", server.crash) for server in self.servers.values()]
        found += self._torn()
        found += [choice for run in self.runs for choice in self._by_hand(run)]
        if isinstance(self.world.source, Counting):
            found.append(Choice(1, "the source grows", self._grow))
        return found

    def _of_living(self, living: Living) -> list[Choice]:
        where = f"{living} at {living.process.place}"
        found = [
            Choice(1, f"{where}: killed", lambda: self._step(living, Order.KILL)),
            Choice(2, f"{where}: hangs", lambda: self._hang(living)),
        ]
        if living.process.faulty:
            found.append(Choice(0.5, f"{where}: fails", lambda: self._step(living, Order.FAIL)))
            found.append(Choice(1, f"{where}: answer lost", lambda: self._step(living, Order.LOSE)))
        return found

    def _released(self, living: Living) -> list[Choice]:
        return [
            Choice(3, f"{living} goes on, having hung at {living.process.place}", lambda: self._release(living)),
            Choice(
                0.5, f"{living} dies, having hung at {living.process.place}", lambda: self._step(living, Order.KILL)
            ),
        ]

    def _starting(self, run: DagRun, task: str) -> Choice:
        return Choice(3, f"{run.name} starts {task}", lambda: self._start(task, run))

    def _torn(self) -> list[Choice]:
        """Somebody runs ROLLBACK PREPARED by hand, after the decision."""
        found = []
        for handle, session in self.servers["voting"].prepared.items():
            if self.world.looking.epoch(self.world.pipeline.name, session.epoch.id).state is EpochState.COMMITTED:
                found.append(Choice(0.5, f"{handle} is rolled back by hand", lambda h=handle: self._tear(h)))  # type: ignore[misc]
        return found

    def _by_hand(self, run: DagRun) -> list[Choice]:
        found = []
        for task, status in run.status.items():
            if status is not Status.DONE and not run.over:
                found.append(Choice(0.1, f"{run.name}: {task} is marked success", lambda t=task: self._mark(run, t)))  # type: ignore[misc]
            if status in (Status.DONE, Status.FAILED):
                found.append(Choice(0.1, f"{run.name}: {task} is cleared", lambda t=task: run.clear(t)))  # type: ignore[misc]
        return found

    def _of_a_person(self) -> list[Choice]:
        found = []
        for epoch in self.world.epochs():
            number = epoch.id
            deeds: dict[str, Callable[[], object]] = {
                "abort": lambda n=number: abort_epoch(self.world.runtime(), n, Role.OPERATOR, reason="a person"),  # type: ignore[misc]
                "replan": lambda n=number: operate.replan(self.world.runtime(), n, "a person"),  # type: ignore[misc]
                "void": lambda n=number: operate.void(self.world.runtime(), n, "a person"),  # type: ignore[misc]
            }
            if epoch.state is EpochState.COMMITTED:
                deeds = {f"resolve {name}": self._resolving(number, name) for name in self.servers}
            for deed, work in deeds.items():
                weight = 0.05 if deed == "void" else 0.2
                told = f"a person starts {deed} {number}"
                found.append(Choice(weight, told, lambda d=deed, w=work: self._live(d, w)))  # type: ignore[misc]
        return found

    def _resolving(self, number: int, name: str) -> Callable[[], object]:
        """A person who has looked, and says what is true."""
        shown = any(shown.epoch == number for shown in self.servers[name].shown)
        word = "applied" if shown else "not-applied"
        return lambda: operate.resolve(self.world.runtime(), number, name, word, "a person looked")

    # --- what then is done ---

    def _begin_run(self) -> None:
        interval = day(self._chance.randrange(DAYS)) if self.world.pipeline.identity is Identity.INTERVAL else None
        self.runs = [run for run in self.runs if not run.over or self._chance.random() < 0.5]
        self.runs.append(DagRun(self._next(), interval, self.world.sink_names))

    def _start(self, task: str, run: DagRun) -> None:
        run.start(task)
        self._live(f"{run.name} {task}", run.work(self.world, task), run, task)

    def _start_recovery(self) -> None:
        self._live("recovery", lambda: recover(self.world.runtime(), hold=timedelta(0)))

    def _live(self, name: str, work: Callable[[], object], run: DagRun | None = None, task: str = "") -> None:
        self.living.append(Living(Process(f"«{name}» {self._next()}", work), task, run))

    def _step(self, living: Living, order: Order = Order.GO) -> None:
        deciding = living.process.place == "ledger: commit_epoch"
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
        self._heed(process.result)
        if living.run is not None and living.current:
            living.run.end(living.task, self._status_of(process))

    def _heed(self, result: object) -> None:
        for problem in result.problems if isinstance(result, RecoveryReport) else ():
            self._tell(f"recovery: {problem}")
            if problem.startswith(LedgerConflict.__name__):
                raise Violation(f"a false alarm: {problem}")

    def _status_of(self, process: Process) -> Status:
        if process.error is None and not process.killed:
            return Status.DONE
        again = process.killed or isinstance(process.error, Retryable)
        return Status.WAITING if again and self._chance.random() < 0.8 else Status.FAILED

    def _hang(self, living: Living) -> None:
        """Airflow takes it for dead now and then, and tries the task again beside it."""
        living.hangs = True
        if living.run is not None and living.current and self._chance.random() < 0.7:
            living.current = False
            living.run.end(living.task, Status.WAITING)

    def _release(self, living: Living) -> None:
        living.hangs = False
        self._step(living)

    def _mark(self, run: DagRun, task: str) -> None:
        for living in self.living:
            if (living.run, living.task) == (run, task):
                living.current = False
        run.end(task, Status.DONE)

    def _tear(self, handle: str) -> None:
        epoch = self.servers["voting"].prepared.pop(handle).epoch
        self.watch.torn.add((epoch.id, "voting"))

    def _grow(self) -> None:
        assert isinstance(self.world.source, Counting)
        self.world.source.extra = self._chance.randrange(3)

    # --- quiescence ---

    def _settle(self) -> None:
        """Faults stop: who hangs is released or killed, recovery runs, what is undecided is run once more."""
        self._tell("faults stop")
        while self.living:
            living = self._chance.choice(self.living)
            order = Order.KILL if living.hangs and self._chance.random() < 0.5 else Order.GO
            self._tell(f"{living} at {living.process.place}: {order}")
            self._step(living, order)
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
        report = recover(self.world.runtime(), hold=timedelta(0))
        if report.problems:
            raise Violation(f"I15: recovery alone has problems: {report.problems}")
        again = recover(self.world.runtime(), hold=timedelta(0))
        if again.problems or again.finished or again.swept:
            raise Violation(f"I17: a second recovery still finds work: {again}")

    def _run_through(self, number: int) -> None:
        epoch = self.world.looking.epoch(self.world.pipeline.name, number)
        run = DagRun(self._next(), epoch.interval, self.world.sink_names)
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
            living.process.step(Order.KILL)

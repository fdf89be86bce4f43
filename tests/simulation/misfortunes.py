"""What may happen next in a simulation, by itself or by bad luck, and how likely a seed finds it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Literal

from lockstep.operations.replan import replan, void
from lockstep.operations.resolve import resolve
from lockstep.protocol.abort import abort_epoch
from lockstep.protocol.recover import recover
from lockstep.states import EpochState, Role
from tests.simulation.baton import Order
from tests.simulation.dag_run import DagRun, Status
from tests.simulation.world import Counting

if TYPE_CHECKING:
    from tests.simulation.chaos import Chaos, Living

MOST_AWAKE, MOST_HANGING = 4, 3  # processes
#: where an effect is under way: bad luck comes there more often, or it would hardly ever hit the few steps that matter
AT_STAKE = ("marker", "write rows", "COMMIT", "TRANSACTION", "publish.", "commit.", "record_", "_vote", "commit_epoch")
TASTES = (0.2, 1.0, 1.0, 5.0)


class Kind(StrEnum):
    """Of misfortunes. Each seed has a taste of its own, as in swarm testing: most bugs hide from the average."""

    CLOCK = "clock"
    KILL = "kill"
    HANG = "hang"
    RELEASE = "release"
    LINK = "link"
    CRASH = "crash"
    RECOVERY = "recovery"
    PERSON = "person"
    AIRFLOW = "airflow"
    SOURCE = "source"


@dataclass(frozen=True)
class Taste:
    """What a seed has to like, beside what it likes by itself: some kinds more or less (0: not at all), and places.

    Where places are given (parts of their names), processes are struck there and nowhere else.
    """

    kinds: Mapping[Kind, float] = field(default_factory=dict)
    places: tuple[str, ...] = ()


#: epochs of which nothing is sealed when their runs have died, or stand still and are overtaken
LEFT_UNSEALED = Taste(
    {Kind.HANG: 10, Kind.KILL: 10, Kind.CLOCK: 20, Kind.RELEASE: 1},
    ("begin.after_open", "spark: write", "stage.before_seal"),
)


@dataclass
class Choice:
    """One thing that may happen."""

    weight: float
    told: str
    act: Callable[[], None]
    kind: Kind | None = None


class Fortune:
    """What a seed lets happen."""

    def __init__(self, chance: random.Random, taste: Taste) -> None:
        self._chance = chance
        self._bad_luck = chance.choice((0.01, 0.04, 0.08))
        self._taste = {kind: chance.choice(TASTES) for kind in Kind} | dict(taste.kinds)
        self._places = taste.places
        self._most_runs = chance.choice((1, 2, 2, 3))

    def choose(self, chaos: Chaos) -> Choice:
        bad_luck = self._bad_luck
        if any(map(self._at_stake, chaos.living)):
            bad_luck = 0.5 if self._places else 2 * bad_luck
        ordinary = [] if self._chance.random() < bad_luck else self._ordinary(chaos)
        choices = ordinary or list(self._misfortunes(chaos))
        [choice] = self._chance.choices(choices, list(map(self._weight, choices)))
        return choice

    def _weight(self, choice: Choice) -> float:
        return choice.weight * (self._taste[choice.kind] if choice.kind else 1)

    def _ordinary(self, chaos: Chaos) -> list[Choice]:
        """What goes on by itself: processes, and the scheduler of DAG runs."""
        found = [
            Choice(10, f"{living} at {living.place}: goes on", partial(chaos.step, living))
            for living in chaos.living
            if not living.hangs
        ]
        if _awake(chaos) < MOST_AWAKE:
            for run in chaos.runs:
                found += [Choice(3, f"{run.name} starts {t}", partial(chaos.start, t, run)) for t in run.ready()]
        if len([run for run in chaos.runs if not run.over]) < self._most_runs:
            found.append(Choice(1, "a run begins", chaos.begin_run))
        return found

    def _misfortunes(self, chaos: Chaos) -> Iterator[Choice]:
        yield Choice(3, "leases run out", chaos.world.expire_leases, Kind.CLOCK)
        for living in chaos.living:
            yield from _of_hanging(chaos, living) if living.hangs else self._of_living(chaos, living)
        if _awake(chaos) < MOST_AWAKE:
            work = partial(recover, chaos.world.runtime(), timedelta(0))
            yield Choice(2, "recovery starts", partial(chaos.live, "recovery", work), Kind.RECOVERY)
            yield from _of_people(chaos)
        for server in chaos.servers.values():
            yield Choice(0.3, f"server {server.name} crashes", server.crash, Kind.CRASH)
        for run in chaos.runs:
            yield from _in_the_ui(chaos, run)
        if isinstance(chaos.world.source, Counting):
            yield Choice(1, "the source grows", chaos.grow, Kind.SOURCE)

    def _of_living(self, chaos: Chaos, living: Living) -> Iterator[Choice]:
        where = f"{living} at {living.place}"
        stake = 6 if self._at_stake(living) else 0 if self._places else 1
        yield Choice(stake, f"{where}: killed", partial(chaos.step, living, Order.KILL), Kind.KILL)
        if len(chaos.living) - _awake(chaos) < MOST_HANGING:
            yield Choice(3 * stake, f"{where}: hangs", partial(chaos.hang, living), Kind.HANG)
        if living.process.faulty:
            yield Choice(0.5, f"{where}: fails", partial(chaos.step, living, Order.FAIL), Kind.LINK)
            yield Choice(1, f"{where}: answer lost", partial(chaos.step, living, Order.LOSE), Kind.LINK)

    def _at_stake(self, living: Living) -> bool:
        return not living.hangs and any(word in living.place for word in self._places or AT_STAKE)


def _awake(chaos: Chaos) -> int:
    return sum(not living.hangs for living in chaos.living)


def _of_hanging(chaos: Chaos, living: Living) -> Iterator[Choice]:
    where = f"{living}, having hung at {living.place}"
    yield Choice(1, f"{where}: goes on", partial(chaos.release, living), Kind.RELEASE)
    yield Choice(0.5, f"{where}: dies", partial(chaos.step, living, Order.KILL), Kind.KILL)


def _in_the_ui(chaos: Chaos, run: DagRun) -> Iterator[Choice]:
    for task, status in run.status.items():
        if status is not Status.DONE and not run.over:
            blocks = status is Status.RUNNING or task in run.ready()
            weight = 3 if blocks and task == "commit" else 0.4 if blocks else 0.05
            yield Choice(weight, f"{run.name}: {task} is marked success", partial(chaos.mark, run, task), Kind.AIRFLOW)
        if status in (Status.DONE, Status.FAILED):
            yield Choice(0.1, f"{run.name}: {task} is cleared", partial(run.clear, task), Kind.AIRFLOW)


def _of_people(chaos: Chaos) -> Iterator[Choice]:
    for epoch in chaos.world.epochs():
        committed = epoch.state is EpochState.COMMITTED
        deeds = _after_the_decision(chaos, epoch.id) if committed else _before(chaos, epoch.id)
        for deed, work in deeds.items():
            told = f"a person starts {deed} {epoch.id}"
            weight = 0.05 if deed == "void" else 0.2
            yield Choice(weight, told, partial(chaos.live, deed, work), Kind.PERSON)
        if committed:
            for handle in [h for h, held in chaos.servers["voting"].prepared.items() if held.epoch.id == epoch.id]:
                told = f"a person runs ROLLBACK PREPARED {handle}"
                yield Choice(1, told, partial(chaos.tear, handle), Kind.PERSON)


def _before(chaos: Chaos, number: int) -> dict[str, Callable[[], object]]:
    """Tried on decided epochs too: there they must be refused."""
    runtime, why = chaos.world.runtime(), "a person"
    return {
        "abort": partial(abort_epoch, runtime, number, Role.OPERATOR, reason=why),
        "replan": partial(replan, runtime, number, why),
        "void": partial(void, runtime, number, why),
    }


def _after_the_decision(chaos: Chaos, number: int) -> dict[str, Callable[[], object]]:
    return {f"resolve {name} of": partial(_resolve, chaos, number, name) for name in chaos.servers}


def _resolve(chaos: Chaos, number: int, name: str) -> object:
    """A person who looks, and says what is true."""
    shown = any(shown.epoch == number for shown in chaos.servers[name].shown)
    word: Literal["applied", "not-applied"] = "applied" if shown else "not-applied"
    return resolve(chaos.world.runtime(), number, name, word, "a person looked")

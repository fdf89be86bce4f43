"""What two sessions do to the same epochs at the same moment; each round starts at a barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

from lockstep.epoch import Attempt, RunKey, Vote
from lockstep.errors import EpochBusy, Fenced, KeysHeld, NotPrepared
from lockstep.ledger import Ledger, migrate
from lockstep.states import UNDECIDED, Role
from tests.ledger.epochs import CLICKS, FLIGHTS, a_plan, day

_PATIENCE = 60


def race(*racers: tuple[Callable[..., Any], tuple[Any, ...]]) -> list[Any]:
    """Run each racer on a thread and a connection of its own, with a common barrier as first argument.

    The rounds are decided in the server: threads race there as well as processes, and start quicker.
    """
    barrier = Barrier(len(racers))

    def run(racer: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return racer(barrier, *arguments)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(racers)) as pool:
        return [future.result() for future in [pool.submit(run, *racer) for racer in racers]]


@contextmanager
def _ledger(dsn: str, actor: str) -> Iterator[Ledger]:
    ledger = Ledger(dsn, actor)
    ledger.deployment()  # connect before the race
    yield ledger
    ledger.close()


def decide(barrier: Barrier, dsn: str, attempts: dict[int, int]) -> set[int]:
    """Commit each epoch; those that were committed by this process."""
    won = set()
    with _ledger(dsn, "decider") as ledger:
        for epoch, attempt in attempts.items():
            barrier.wait(_PATIENCE)
            try:
                ledger.commit_epoch(Attempt(FLIGHTS, epoch, attempt))
                won.add(epoch)
            except (Fenced, NotPrepared):
                pass
    return won


def take_turns(barrier: Barrier, dsn: str, asking: list[tuple[int, int, int]]) -> set[int]:
    """Ask for the turn for each (epoch, attempt, token), and let go of it before the next round; those that got it."""
    got = set()
    with _ledger(dsn, "asking") as ledger:
        for epoch, attempt, token in asking:
            barrier.wait(_PATIENCE)
            try:
                ledger.take_turn(Attempt(FLIGHTS, epoch, attempt), "warehouse", token)
                got.add(epoch)
            except KeysHeld:
                pass
            barrier.wait(_PATIENCE)  # nobody lets go before both have asked
            if epoch in got:
                ledger.raise_attempt(FLIGHTS, epoch, Role.ABORT)
    return got


def abort(barrier: Barrier, dsn: str, attempts: dict[int, int]) -> set[int]:
    """Raise each epoch's attempt; those that were still undecided."""
    won = set()
    with _ledger(dsn, "aborter") as ledger:
        for epoch, attempt in attempts.items():
            barrier.wait(_PATIENCE)
            if ledger.raise_attempt(FLIGHTS, epoch, Role.ABORT, only=attempt).state in UNDECIDED:
                won.add(epoch)
    return won


def vote_then_decide(barrier: Barrier, dsn: str, attempts: dict[int, int], sink: str) -> set[int]:
    """The last voter decides; both think that they may be it."""
    won = set()
    with _ledger(dsn, sink) as ledger:
        for epoch, token in attempts.items():
            attempt = Attempt(FLIGHTS, epoch, token)
            execution = ledger.take_token(attempt, Role.PREPARE, sink)
            barrier.wait(_PATIENCE)
            ledger.record_vote(attempt, sink, Vote(execution, "h", "t"))
            try:
                ledger.commit_epoch(attempt)
                won.add(epoch)
            except NotPrepared:
                pass
    return won


def take_over(barrier: Barrier, dsn: str, epochs: list[int], run_id: str) -> set[int]:
    won = set()
    with _ledger(dsn, run_id) as ledger:
        for epoch in epochs:
            barrier.wait(_PATIENCE)
            try:
                ledger.take_over(FLIGHTS, epoch, RunKey("flights", run_id))
                won.add(epoch)
            except EpochBusy:
                pass
    return won


def plan_clicks(barrier: Barrier, dsn: str, wanted: int, name: str) -> list[int]:
    """Plan `wanted` cursor epochs, each after whatever is last; their numbers."""
    numbers: list[int] = []
    with _ledger(dsn, name) as ledger:
        barrier.wait(_PATIENCE)
        while len(numbers) < wanted:
            last = ledger.last_epoch(CLICKS)
            after = last.id if last else 0
            run = RunKey("clicks", f"{name} {len(numbers)}")
            plan = a_plan(last.plan.sources["landing"].end if last else None, f"{name} {len(numbers)}")
            epoch = ledger.plan_epoch(CLICKS, plan, {}, run, interval=None, after=after)
            if epoch is not None:
                numbers.append(epoch.id)
    return numbers


def plan_days(barrier: Barrier, dsn: str, days: list[int], name: str) -> dict[int, int]:
    """Plan these days in this order; the epoch of each that this process got."""
    got = {}
    with _ledger(dsn, name) as ledger:
        for number in days:
            barrier.wait(_PATIENCE)
            run = RunKey("flights", f"{name} {number}")
            epoch = ledger.plan_epoch(FLIGHTS, a_plan(), {}, run, interval=day(number), after=None)
            if epoch is not None:
                got[number] = epoch.id
    return got


def take_tokens(barrier: Barrier, dsn: str, epoch: int, attempt: int, count: int) -> list[int]:
    with _ledger(dsn, "taker") as ledger:
        barrier.wait(_PATIENCE)
        return [ledger.take_token(Attempt(FLIGHTS, epoch, attempt), Role.STAGE) for _ in range(count)]


def migrating(barrier: Barrier, dsn: str) -> list[str]:
    barrier.wait(_PATIENCE)
    return migrate(dsn)

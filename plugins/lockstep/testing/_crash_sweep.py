"""Dies, or hangs, at every step of a story about one epoch; another process finishes; nothing is lost or doubled.

A story runs in a forked child that is killed (or stopped) when it has come to its n-th step, for every n. What a step
is, a `Trace` says: a crash point that is reached, or an effect on the file system. The ledger's part is played by
`Decision`: whoever records a vote first has it decided, everybody else is fenced.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from lockstep import crash
from lockstep.epoch import Vote
from lockstep.errors import LockstepError, Retryable
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing._children import Child, ended, fork
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import (
    PATIENCE,
    PAUSE,
    SinkUnderTest,
    epoch,
    expect_proof,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
    sweep,
)

OnStep = Callable[[str], None]
END = "the end"  #: a story's last step
Trace = Callable[[OnStep], None]  #: from now on, in this process, call OnStep with each step's name
Select = Callable[[list[str], signal.Signals], list[int]]  #: at which steps to take an action


# --- the ledger's part -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """The first vote that is recorded is decided, for good."""

    path: Path

    def record(self, vote: Vote) -> bool:
        """Whether this vote is the decided one; False means fenced."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        draft.write_text(json.dumps(asdict(vote)))
        with suppress(FileExistsError):
            os.link(draft, self.path)
        return self.vote() == vote

    def vote(self) -> Vote | None:
        with suppress(FileNotFoundError):
            return Vote(**json.loads(self.path.read_text()))
        return None


@dataclass(frozen=True)
class Round:
    """One epoch of a sweep: the first process's token, the WAL, and what was decided."""

    target: SinkUnderTest
    number: int
    rows: int
    decision: Decision

    @property
    def wal(self) -> list[SealedRows]:
        return sealed(self.rows, start=self.number * 100_000)

    def epoch(self, token: int) -> SinkEpoch:
        return epoch(self.number, token=token, manifest=f"round {self.number}")

    @property
    def first_token(self) -> int:
        return 1000 * self.number + 10

    @property
    def second_tokens(self) -> range:
        """One for each execution of the second process's prepare."""
        return range(1000 * self.number + 20, 1000 * self.number + 800)

    @property
    def publishing_token(self) -> int:
        """Every execution of publish takes a fresh one, too: an older one may have to give way."""
        return 1000 * self.number + 900


# --- stories of the first process ------------------------------------------------------------------------------------


def prepares_and_publishes(round: Round) -> None:
    at = round.epoch(round.first_token)
    vote = prepare(round.target, at, round.wal)
    if round.decision.record(vote):
        publish(round.target, round.epoch(round.first_token + 1), vote, round.wal)


def prepares_and_aborts(round: Round) -> None:
    prepare(round.target, round.epoch(round.first_token), round.wal)
    with opened(round.target) as sink:
        for txn in sink.pending():
            if txn.token == round.first_token:
                sink.abort(txn)


def repairs_what_was_lost(round: Round) -> None:
    at = round.epoch(round.first_token)
    vote = prepare(round.target, at, round.wal)
    if round.decision.record(vote):
        round.target.lose(str(vote.handle))
        publish(round.target, round.epoch(round.first_token + 1), vote, round.wal)


Story = Callable[[Round], None]


def finish(round: Round) -> Publication:
    """What a second process does, from the decision alone: sweep and start over, or publish what was decided."""
    if round.decision.vote() is None:
        sweep(round.target)
        _prepare_in_turn(round)
    vote = round.decision.vote()
    assert vote is not None
    return publish(round.target, round.epoch(round.publishing_token), vote, round.wal)


def _prepare_in_turn(round: Round) -> None:
    """Tried again as Airflow does, with a fresh token each time: a stopped process may hold a lock."""
    deadline = time.monotonic() + PATIENCE
    for token in round.second_tokens:
        try:
            round.decision.record(prepare(round.target, round.epoch(token), round.wal))
            return
        except LockstepError as error:
            if round.decision.vote() is not None:
                return  # it was released meanwhile, and was quicker: a retry finds the epoch decided
            if not isinstance(error, Retryable) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


# --- the sweep -------------------------------------------------------------------------------------------------------


def reached_points(on_step: OnStep) -> None:
    """A Trace: every crash point that the code reaches."""
    os.environ["LOCKSTEP_TESTING"] = "1"
    crash.observe(on_step)


def all_steps(steps: list[str], action: signal.Signals) -> list[int]:
    """A Select: each step."""
    return list(range(len(steps)))


def sweep_every_step(
    target: SinkUnderTest,
    story: Story,
    trace: Trace,
    action: signal.Signals,
    rows: int,
    select: Select = all_steps,
) -> list[str]:
    """Run `story` once for each of its steps, take `action` there, finish in a second process, and compare.

    Returns the names of all its steps, also of those that `select` leaves out. AssertionError names the step at which
    rows were lost, doubled or left behind.
    """
    with tempfile.TemporaryDirectory() as folder:
        rounds = (Round(target, n, rows, Decision(Path(folder, f"decision-{n}"))) for n in count(1))
        done = [next(rounds), next(rounds)]
        finish(done[0])  # whatever is made once for a target
        steps = steps_of(story, trace, done[1], Path(folder, "steps"))
        finish(done[1])
        for index in select(steps, action):
            round = next(rounds)
            try:
                _interrupted(round, story, trace, index, action)
                done.append(round)
                _compare(round, done)
            except AssertionError as error:
                at = f"{story.__name__}, {action.name} at step {index} ({steps[index]})"
                raise AssertionError(f"{at}: {error}") from error
        return steps


def steps_of(story: Story, trace: Trace, dry: Round, log: Path) -> list[str]:
    """The steps that `story` takes with `dry`, in order; `log` is a file to note them in."""
    log.unlink(missing_ok=True)

    def note(step: str) -> None:
        with log.open("a") as file:
            file.write(f"{step}\n")

    def run() -> None:
        trace(note)
        story(dry)
        note(END)

    assert fork(run).wait() == 0, f"{story.__name__} failed without any fault"
    return log.read_text().split("\n")[:-1]


def _interrupted(round: Round, story: Story, trace: Trace, index: int, action: signal.Signals) -> None:
    with child_at_step(round, story, trace, index, action) as child:
        if action is signal.SIGKILL:
            assert child.wait() == -signal.SIGKILL, "the child did not come to the step"
            finish(round)
        else:
            assert child.wait_until_stopped(), "the child did not come to the step"
            second = fork(lambda: finish(round))
            assert second.wait() == 0, "the second process could not finish"
            child.release()
            assert child.wait() in (0, 1), f"the released process ended by {child.code}"


@contextmanager
def child_at_step(round: Round, story: Story, trace: Trace, index: int, action: signal.Signals) -> Iterator[Child]:
    """A process that runs `story` and takes `action` at its step `index`."""

    def run() -> None:
        steps = count()

        def on_step(_: str) -> None:
            if next(steps) == index:
                os.kill(os.getpid(), action)

        trace(on_step)
        story(round)
        on_step(END)

    with ended(fork(run, quiet=True)) as child:  # a released zombie may well raise
        yield child


def _compare(round: Round, done: Sequence[Round]) -> None:
    vote = round.decision.vote()
    assert vote is not None
    sweep(round.target, vote)
    assert publish(round.target, round.epoch(vote.token), vote, round.wal) is Publication.FOUND
    expect_rows(round.target, *(one.wal for one in done))
    expect_proof(round.target, round.epoch(vote.token), round.wal)
    assert pending(round.target) == [], "something is pending"
    expect_settled(round.target)

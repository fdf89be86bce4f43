"""A process dies, or hangs, at every step of a story about one epoch; another one finishes; no row is lost or
doubled.

A story runs in a forked child that is killed (or stopped) at its n-th step, for every n. A `Trace` defines what a step
is: a crash point, an effect on the file system, a call. `Decision` plays the ledger: the first recorded vote is
decided, every later one is fenced.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from lockstep import crash
from lockstep.epoch import Vote
from lockstep.errors import LockstepError, Retryable
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import (
    PATIENCE,
    PAUSE,
    SinkUnderTest,
    epoch,
    expect_proof,
    expect_replaced,
    expect_rows,
    expect_settled,
    opened,
    pending,
    prepare,
    publish,
    shows,
    sweep,
    was_cut_off,
)


@dataclass
class Child:
    """A forked process. `wait` returns its exit code, or minus the signal that ended it."""

    pid: int
    code: int | None = None

    def wait(self) -> int:
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def is_running(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is None

    def wait_until_stopped(self) -> bool:
        """Return True once it has stopped, False if it ended."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self.code = os.waitstatus_to_exitcode(status)
        return False

    def release(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


def fork(action: Callable[[], object], *, quiet: bool = False) -> Child:
    """Run `action` in a child that exits 0 if it returns and 1 if it raises, and never lives longer than PATIENCE."""
    pid = os.fork()
    if pid:
        return Child(pid)
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        action()
        code = 0
    except BaseException:
        if not quiet:
            traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def ended(child: Child) -> Iterator[Child]:
    """Yield `child`, and kill it at the end of the block if it still runs."""
    try:
        yield child
    finally:
        child.end()


OnStep = Callable[[str], None]
END = "the end"  #: a story's last step
Trace = Callable[[OnStep], None]  #: from now on, in this process, call OnStep with each step's name
Select = Callable[[list[str], signal.Signals], list[int]]  #: at which steps to take an action
_REPLACEMENTS = 1000  #: what their numbers are above those of the replaced


# --- the ledger's part -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """The ledger's part: the first vote that is recorded is decided."""

    path: Path

    def record(self, vote: Vote) -> bool:
        """Record the vote. Return True if it is the decided one, False if another one came first."""
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
    """One epoch of a sweep: its tokens, its WAL and its decision. `replaced`: the epoch that it replaces."""

    target: SinkUnderTest
    number: int
    rows: int
    decision: Decision
    replaced: Round | None = None

    def replacement(self) -> Round:
        """Return the epoch that is to replace this one."""
        number = _REPLACEMENTS + self.number
        decision = Decision(self.decision.path.with_name(f"decision-{number}"))
        return Round(self.target, number, self.rows, decision, self)

    @property
    def wal(self) -> list[SealedRows]:
        return sealed(self.rows, start=self.number * 100_000)

    def epoch(self, token: int) -> SinkEpoch:
        replaced = [self.replaced.epoch(self.replaced.first_token)] if self.replaced else []
        return epoch(self.number, token=token, manifest=f"round {self.number}", replaced=replaced)

    @property
    def first_token(self) -> int:
        return 1000 * self.number + 10

    @property
    def second_tokens(self) -> range:
        """Tokens for the executions of prepare in the second process."""
        return range(1000 * self.number + 20, 1000 * self.number + 800)

    @property
    def publishing_token(self) -> int:
        """A token larger than those of prepare: publishing fences older executions."""
        return 1000 * self.number + 900


# --- stories of the first process ------------------------------------------------------------------------------------


def prepares_and_publishes(round: Round) -> None:
    sink_epoch = round.epoch(round.first_token)
    vote = prepare(round.target, sink_epoch, round.wal)
    if round.decision.record(vote):
        publish(round.target, round.epoch(round.first_token + 1), vote, round.wal)


def prepares_and_aborts(round: Round) -> None:
    prepare(round.target, round.epoch(round.first_token), round.wal)
    with opened(round.target) as sink:
        for txn in sink.pending():
            if txn.token == round.first_token:
                sink.abort(txn)


def repairs_what_was_lost(round: Round) -> None:
    sink_epoch = round.epoch(round.first_token)
    vote = prepare(round.target, sink_epoch, round.wal)
    if round.decision.record(vote):
        round.target.lose(str(vote.handle))
        publish(round.target, round.epoch(round.first_token + 1), vote, round.wal)


Story = Callable[[Round], None]


def finish(round: Round) -> Publication:
    """Finish the epoch as a second process, from the decision alone: sweep and prepare again, or publish the
    decision."""
    if round.decision.vote() is None:
        sweep(round.target)
        _prepare_in_turn(round)
    vote = round.decision.vote()
    assert vote is not None
    return publish(round.target, round.epoch(round.publishing_token), vote, round.wal)


def _prepare_in_turn(round: Round) -> None:
    """Prepare, and retry with a larger token each time as Airflow does: a stopped process may hold a lock."""
    deadline = time.monotonic() + PATIENCE
    for token in round.second_tokens:
        try:
            round.decision.record(prepare(round.target, round.epoch(token), round.wal))
            return
        except LockstepError as error:
            if round.decision.vote() is not None:
                return  # the first process was released meanwhile and was quicker
            if not isinstance(error, Retryable) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


# --- what comes before a story, and after it --------------------------------------------------------------------------


@dataclass(frozen=True)
class Plot:
    """How a story is embedded in several epochs.

    `begin`: runs before the story; returns the story's round. `end`: runs in a second process after the fault; returns
    the round whose rows have to be visible then. `watched`: a reader looks in between, and has to see the rows of
    either the old or the new epoch.
    """

    begin: Callable[[Round], Round]
    end: Callable[[Round], Round]
    watched: bool = False


def _finish_round(round: Round) -> Round:
    finish(round)
    return round


def _publish_then_replace(round: Round) -> Round:
    return _finish_round(round).replacement()


ALONE = Plot(lambda round: round, _finish_round)
REPLACEMENT = Plot(_publish_then_replace, _finish_round, watched=True)  #: the story is of the replacing epoch
REPLACED = Plot(
    lambda round: round, lambda round: _finish_round(_publish_then_replace(round))
)  #: the story is of the replaced epoch


# --- the sweep -------------------------------------------------------------------------------------------------------


def reached_points(on_step: OnStep) -> None:
    """Call `on_step` at every crash point that the code reaches; a `Trace`."""
    os.environ["LOCKSTEP_TESTING"] = "1"
    crash.observe(on_step)


def all_steps(steps: list[str], action: signal.Signals) -> list[int]:
    """Select every step."""
    return list(range(len(steps)))


def sweep_every_step(
    target: SinkUnderTest,
    story: Story,
    trace: Trace,
    action: signal.Signals,
    rows: int,
    select: Select = all_steps,
    plot: Plot = ALONE,
) -> list[str]:
    """Run `story` once for each of its steps, take `action` there, finish in a second process, and compare.

    Returns the names of all its steps, also of those that `select` leaves out. AssertionError names the step at which
    rows were lost, doubled or left behind.
    """
    with tempfile.TemporaryDirectory() as folder:
        rounds = (Round(target, n, rows, Decision(Path(folder, f"decision-{n}"))) for n in count(1))
        done = [plot.end(plot.begin(next(rounds)))]  # creates what is created once per target
        dry = plot.begin(next(rounds))
        steps = steps_of(story, trace, dry, Path(folder, "steps"))
        done.append(plot.end(dry))
        for index in select(steps, action):
            round = plot.begin(next(rounds))
            try:
                done.append(_interrupted(round, story, trace, index, action, plot, done))
                _compare(done[-1], done)
            except AssertionError as error:
                at_step = f"{story.__name__}, {action.name} at step {index} ({steps[index]})"
                raise AssertionError(f"{at_step}: {error}") from error
        return steps


def steps_of(story: Story, trace: Trace, dry: Round, log: Path) -> list[str]:
    """Run `story` with `dry` in a child process and return its steps in order. `log`: a file to note them in."""
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


def _interrupted(
    round: Round,
    story: Story,
    trace: Trace,
    index: int,
    action: signal.Signals,
    plot: Plot,
    done: Sequence[Round],
) -> Round:
    """Run `story`, take `action` at step `index`, finish. Return the round whose rows have to be visible now."""
    with child_at_step(round, story, trace, index, action) as child:
        if action is signal.SIGKILL:
            assert child.wait() == -signal.SIGKILL, "the child did not come to the step"
            _watch(round, plot, done)
            return plot.end(round)
        assert child.wait_until_stopped(), "the child did not come to the step"
        _watch(round, plot, done)
        second = fork(lambda: plot.end(round))
        assert second.wait() == 0, "the second process could not finish"
        child.release()
        assert child.wait() in (0, 1), f"the released process ended by {child.code}"
        return round if plot.end is _finish_round else round.replacement()


def _watch(round: Round, plot: Plot, done: Sequence[Round]) -> None:
    if plot.watched and round.replaced:
        rest = [past.wal for past in done]
        whole = any(shows(round.target, *rest, past.wal) for past in (round.replaced, round))
        assert whole, "a reader sees neither the replaced rows nor the new ones, or some of both"


@contextmanager
def child_at_step(round: Round, story: Story, trace: Trace, index: int, action: signal.Signals) -> Iterator[Child]:
    """Yield a process that runs `story` and sends itself `action` at step `index`."""

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
    if round.replaced:
        expect_settled(round.target)  # without another publication
    cut_off = [past for past in done if was_cut_off(past.target, past.epoch(past.first_token))]
    expected = Publication.CUT_OFF if round in cut_off else Publication.FOUND
    assert publish(round.target, round.epoch(vote.token), vote, round.wal) is expected
    if (replaced := round.replaced) is not None:
        vote_replaced = replaced.decision.vote()
        assert vote_replaced is not None
        token = replaced.publishing_token
        assert publish(replaced.target, replaced.epoch(token), vote_replaced, replaced.wal) is Publication.FOUND
        expect_replaced(replaced.target, replaced.epoch(vote_replaced.token))
    expect_rows(
        round.target, *(past.wal for past in done if past not in cut_off), cut_off=[past.wal for past in cut_off]
    )
    expect_proof(round.target, round.epoch(vote.token), round.wal)
    assert pending(round.target) == [], "something is pending"
    expect_settled(round.target)

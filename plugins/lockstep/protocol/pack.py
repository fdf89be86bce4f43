"""Packs: one process moves many epochs of one pipeline, for catching up and for backfills.

Each epoch has its own run, range, attempt, lease, WAL, manifest, votes, markers and ledger row. They share the Spark
session, with concurrent stage jobs; one connection a thread to the ledger and to each sink; and the ledger transaction
that decides all epochs which have their votes. See docs/protocol.md, "Packs".
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from lockstep.audits.evaluate import AskSpark
from lockstep.epoch import Attempt, Epoch, KeyedBy, RunKey
from lockstep.errors import (
    InvalidPipeline,
    KeysHeld,
    LockstepError,
    PackFailed,
    PackUnfinished,
    Retryable,
    TargetFull,
)
from lockstep.observability.suggestions import COMMANDS
from lockstep.protocol.abort import abort, abort_epoch
from lockstep.protocol.audit import audit
from lockstep.protocol.begin import begin_unless_idle
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit_together
from lockstep.protocol.lease import hold_lease
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import finish_decided
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.states import DECIDED, SHOWN, Role

MAX_EPOCHS = 10_000  #: epochs of a pack
_MAX_NAMED = 10  #: epochs of a cause, and causes, in one message
_log = logging.getLogger(__name__)


@dataclass
class Member:
    """One epoch of a pack. `error`: why it wasn't published; None as long as nothing has failed."""

    run: RunKey
    epoch: Epoch | None = None
    already: bool = False  #: every sink showed it before
    error: Exception | None = None
    _own: Attempt | None = field(default=None, repr=False)  #: the attempt that this pack began
    _lease: ExitStack = field(default_factory=ExitStack, repr=False)

    def __str__(self) -> str:
        if self.epoch is not None:
            return str(self.epoch)
        return f"the epoch of {self.run.interval or f'run {self.run.run_id}'}"

    @property
    def undecided(self) -> bool:
        return self.error is None and (self.epoch is None or self.epoch.state not in DECIDED)


def jobs_side_by_side() -> int:
    """Return the number of this process's cores: the job of a small epoch keeps one of them busy."""
    return max(1, len(os.sched_getaffinity(0)))


def move_pack(
    runtime: Runtime,
    runs: Iterable[RunKey],
    launch: Launch,
    reference: str = "",
    jobs: int | None = None,
    ask_spark: AskSpark | None = None,
) -> list[Member]:
    """Move an epoch for each of `runs`, members of one run (`RunKey.member`), from its source into every sink.

    `jobs`: how many epochs are staged concurrently. `ask_spark`: evaluates audits in Spark, if it is available. A
    failed epoch is aborted if it is undecided; the others go on. Epochs of a cursor go in their order: behind one that
    failed no more is begun, and only the first may have nothing to read. With state they are staged one by one, too. A
    list of epochs (`RunKey.epoch`) is moved to its end. Returns the members that were begun, in the order of `runs`.
    """
    if jobs is not None and jobs < 1:
        raise InvalidPipeline(f"pipeline {runtime.pipeline}: a pack needs at least one job, not {jobs}")
    return _Pack(runtime, iter(runs), launch, reference, jobs or jobs_side_by_side(), ask_spark).move()


def require_all_moved(members: Sequence[Member]) -> None:
    """Raise `PackUnfinished` if a member failed, or `PackFailed` if a retry helps none; the error names them."""
    failed = [(member, member.error) for member in members if member.error is not None]
    if not failed:
        return
    moved = [str(member.epoch.id) for member in members if member.error is None and member.epoch]
    retryable = any(isinstance(error, Retryable) or not isinstance(error, LockstepError) for _, error in failed)
    kind = PackUnfinished if retryable else PackFailed
    raise kind(
        f"{len(failed)} of {len(members)} epochs of the pack are not published: {_describe_causes(failed)}. "
        f"{f'Published are the epochs {_some(moved)}' if moved else 'None is published'}; run it again for "
        "the rest"
    )


def _describe_causes(failed: Sequence[tuple[Member, Exception]]) -> str:
    """Return each cause once, with its epochs: a year of epochs with one cause is one sentence."""
    causes: dict[str, list[str]] = {}
    for member, error in failed:
        causes.setdefault(f"{type(error).__name__}: {error}", []).append(str(member))
    lines = [f"{_some(members)}: {cause}" for cause, members in causes.items()]
    more = f"; and {len(lines) - _MAX_NAMED} more causes, see the log" if len(lines) > _MAX_NAMED else ""
    return "; ".join(lines[:_MAX_NAMED]) + more


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


Sized = TypeVar("Sized", bound=Sequence[Any])


def require_size(epochs: Sized) -> Sized:
    """Return `epochs`. Raise `InvalidPipeline` if they are too many for a pack, or none."""
    if not 1 <= len(epochs) <= MAX_EPOCHS:
        raise InvalidPipeline(f"a pack has 1 to {MAX_EPOCHS} epochs, not {len(epochs)}")
    return epochs


class _Pack:
    """Moves a pack: workers begin and stage its epochs, the thread that called `move` does everything after.

    `_room` bounds the epochs that are begun and not published.
    """

    def __init__(
        self,
        runtime: Runtime,
        runs: Iterator[RunKey],
        launch: Launch,
        reference: str,
        jobs: int,
        ask_spark: AskSpark | None,
    ) -> None:
        pipeline = runtime.defined
        self._ask_spark = ask_spark
        self._runtime, self._runs, self._launch, self._reference = runtime, runs, launch, reference
        self._in_order = pipeline.identity is KeyedBy.CURSOR
        #: an epoch that is prepared may block others, or they have to be published in order
        self._one_by_one = self._in_order or any(sink.holds_keys for sink in pipeline.sinks)
        in_sequence = any(feature.in_sequence(runtime) for feature in runtime.features)
        limit = 1 if in_sequence else pipeline.max_in_flight if self._in_order else 3 * jobs
        self._jobs = min(jobs, limit)
        self._room = threading.Semaphore(limit)
        self._turn = threading.RLock()  #: to take, and begin, the next one
        self._ended = threading.Event()  #: no more epochs are begun
        self._broken = threading.Event()  #: begun epochs won't be finished
        self._ready: SimpleQueue[Member | BaseException | None] = SimpleQueue()
        self._members: list[Member] = []
        self._settled = 0  #: how many epochs of a cursor have been handed on

    def move(self) -> list[Member]:
        workers = [threading.Thread(target=self._work, daemon=True, name="pack") for _ in range(self._jobs)]
        with self._runtime.for_thread() as runtime:
            if self._in_order:
                finish_decided(runtime)  # the next epoch is published after the one before it
            for worker in workers:
                worker.start()
            try:
                for ready in self._batches(len(workers)):
                    self._finish(runtime, ready)
            except BaseException:
                self._give_up(len(workers))
                raise
        for worker in workers:
            worker.join()
        return self._members

    def _give_up(self, workers: int) -> None:
        """Let the workers end, and release every lease, so that other processes may take the epochs over."""
        self._ended.set()
        self._broken.set()
        self._room.release(workers)
        for member in list(self._members):
            member._lease.close()

    # --- worker threads: begin and stage ---

    def _work(self) -> None:
        try:
            with self._runtime.for_thread() as runtime:
                while (member := self._next(runtime)) is not None:
                    try:
                        self._bring(runtime, member)
                    finally:
                        if self._broken.is_set():
                            member._lease.close()
                    self._ready.put(member)
            self._ready.put(None)
        except BaseException as error:  # raised again by `_batches`
            self._ready.put(error)

    def _next(self, runtime: Runtime) -> Member | None:
        self._room.acquire()
        with self._turn:
            run = None if self._ended.is_set() else next(self._runs, None)
            if run is None:
                self._ended.set()
                self._room.release()
                return None
            member = Member(run)
            if not self._in_order:
                self._members.append(member)
            elif not self._begin_in_order(runtime, member):
                self._room.release()
                return None
        if not self._in_order:
            self._guard(runtime, member, self._begin)
        return member

    def _begin_in_order(self, runtime: Runtime, member: Member) -> bool:
        """Return False if there is nothing more to read."""
        self._guard(runtime, member, self._begin)
        if member.epoch is None and member.error is None:
            self._ended.set()
            return False
        self._members.append(member)
        return True

    def _begin(self, runtime: Runtime, member: Member) -> None:
        member.epoch = begin_unless_idle(runtime, member.run, member.run.interval, idle=bool(self._members))
        if member.epoch is None:
            return
        member.already = member.epoch.state in SHOWN
        member._own = Attempt(member.epoch.pipeline, member.epoch.id, member.epoch.attempt)
        if member.undecided:
            member._lease.enter_context(hold_lease(runtime.ledger, member._own, Role.BEGIN))

    def _bring(self, runtime: Runtime, member: Member) -> None:
        self._guard(runtime, member, self._stage)
        reads_on = self._in_order and member.run.epoch is None
        if reads_on and _has_read_nothing(member) and not _sizes_ranges(runtime, member):
            self._ended.set()

    def _stage(self, runtime: Runtime, member: Member) -> None:
        member.epoch = stage(runtime, member.run, self._launch, self._reference)
        if member.undecided and member.epoch.plan.audits:
            audit(runtime, member.run, self._ask_spark)

    # --- the calling thread: prepare, commit, publish, cleanup ---

    def _batches(self, workers: int) -> Iterator[list[Member]]:
        """Yield the members that are staged, as they become ready; those of a cursor in their order."""
        waiting: list[Member] = []
        while workers:
            results = [self._ready.get()]
            while True:
                try:
                    results.append(self._ready.get_nowait())
                except Empty:
                    break
            for result in results:
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    workers -= 1
                else:
                    waiting.append(result)
            ready = self._due(waiting)
            if ready:
                yield ready

    def _due(self, waiting: list[Member]) -> list[Member]:
        """Remove from `waiting` the members that may go on now, and return them."""
        due = [] if self._in_order else list(waiting)
        while self._in_order and self._settled < len(self._members) and self._members[self._settled] in waiting:
            due.append(self._members[self._settled])
            self._settled += 1
        for member in due:
            waiting.remove(member)
        return due

    def _finish(self, runtime: Runtime, members: list[Member]) -> None:
        voted: list[Member] = []
        for member in members:
            if self._one_by_one:
                self._settle(runtime, voted)
            self._guard(runtime, member, partial(self._prepare, voted))
            voted.append(member)
        self._settle(runtime, voted)

    def _prepare(self, voted: list[Member], runtime: Runtime, member: Member) -> None:
        assert member.epoch is not None
        for sink in member.epoch.plan.sinks if member.undecided else ():
            try:
                prepare(runtime, member.run, sink)
            except (KeysHeld, TargetFull):
                if not voted:
                    raise
                self._settle(runtime, voted)  # these may hold the keys or the room that this one waits for
                prepare(runtime, member.run, sink)

    def _settle(self, runtime: Runtime, members: list[Member]) -> None:
        """Decide the members that have their votes in one transaction, publish them and clean up. Empties `members`."""
        undecided = [member for member in members if member.undecided]
        for member, decided in zip(undecided, self._decide(runtime, undecided), strict=True):
            if isinstance(decided, Exception):
                self._fail(runtime, member, decided)
            else:
                member.epoch = decided
        for member in members:
            self._guard(runtime, member, self._show)
            member._lease.close()
            self._room.release()
        members.clear()

    def _decide(self, runtime: Runtime, members: list[Member]) -> Sequence[Epoch | Exception]:
        if not members:
            return []
        try:
            return commit_together(runtime, [member.run for member in members])
        except LockstepError as error:
            return [error] * len(members)

    def _show(self, runtime: Runtime, member: Member) -> None:
        assert member.epoch is not None
        for sink in member.epoch.plan.sinks:
            publish(runtime, member.run, sink)
        member.epoch = cleanup(runtime, member.run)

    # --- failures ---

    def _guard(self, runtime: Runtime, member: Member, step: Callable[[Runtime, Member], None]) -> None:
        """Do a step of a member, unless it has failed; keep its failure with it."""
        if member.error is not None:
            return
        try:
            step(runtime, member)
        except Exception as error:
            self._fail(runtime, member, error)

    def _fail(self, runtime: Runtime, member: Member, error: Exception) -> None:
        member.error = error
        _log.debug("%s: traceback", member, exc_info=error)
        _log.error("%s: %s: %s", member, type(error).__name__, error)
        if self._in_order and member.run.epoch is None:
            with self._turn:  # no worker is beginning the next epoch from here on
                self._ended.set()
        try:
            _abort_own(runtime, member, f"{type(error).__name__}: {error}")
        except LockstepError as late:
            _log.warning("%s: what its attempt left remains for `recover`: %s", member, late)


def _abort_own(runtime: Runtime, member: Member, reason: str) -> None:
    """Abort the attempt that this pack began, and no other: another process may have begun the same run since."""
    if member._own is not None:
        abort_epoch(runtime, member._own.epoch, Role.ABORT, only=member._own.token, reason=reason)
    elif member.run.dag_id not in COMMANDS:  # a command's attempt may be another process's, still running
        abort(runtime, member.run, reason)


def _sizes_ranges(runtime: Runtime, member: Member) -> bool:
    """Return True if every source can size a range without reading it: then `begin` sees when nothing is left."""
    assert member.epoch is not None
    try:
        for name, planned in member.epoch.plan.sources.items():
            with runtime.open_source(name, planned) as source:
                if not planned.snapshot and source.bytes_planned(planned.start, planned.end) is None:
                    return False
    except LockstepError as error:
        _log.info("%s: no more epochs are begun: %s", member, error)
        return False
    return True


def _has_read_nothing(member: Member) -> bool:
    sources = (member.epoch.summary or {}).get("sources", {}) if member.epoch else {}
    return bool(sources) and not any(counts["rows"] for counts in sources.values())

"""Hooks by which optional features take part in the protocol.

A feature is a subclass of `Feature`. `lockstep.features.assembly` lists the features; a `Runtime` carries them. The
modules of `lockstep.protocol` call these hooks and import no feature.

Rules:

- A role calls the features in the order of the list. A hook may be called more than once in one run of a role:
  `selecting` and `opening` for each try to plan, `describing` for each description that a sink gets.
- Hooks are idempotent, as every step of a role is: a role that died is run again from its beginning.
- A hook that raises ends the role at that place, as a failing step of the role itself does. Nothing is caught, unless
  the hook's docstring says so.
- A side effect has a crash point before and after it, which belong to the feature.
- The safety rules hold for hooks, too: no hook shows rows before the decision, or deletes what a sink may still need.
- A feature object serves all threads and has no state of an epoch. What one execution of `stage` has to remember is in
  its `StagePart`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from lockstep.epoch import Attempt, Epoch, Interval, Json, RunKey, Vote
    from lockstep.protocol.runtime import Runtime
    from lockstep.protocol.stage_job import WrittenWal
    from lockstep.protocol.sweep import DeletionGuard
    from lockstep.sinks.base import Sink
    from lockstep.sinks.open_sink import OpenSink
    from lockstep.sinks.values import SinkEpoch
    from lockstep.sources.base import OpenSource
    from lockstep.states import Role
    from lockstep.wal.manifest import Manifest, SealedState
    from lockstep.wal.request import StageRequest, StageResult

T = TypeVar("T")
#: Plans a new epoch and stores it in the ledger; None if another run has planned one meanwhile
Planner: TypeAlias = "Callable[[], Epoch | None]"


def first_answer(answers: Iterable[T | None]) -> T | None:
    """Return the first answer that isn't None. Features behind it aren't asked if `answers` is a generator."""
    return next((answer for answer in answers if answer is not None), None)


class StagePart:
    """A feature's part in one execution of `stage`."""

    #: True: `write_wal` makes the epoch's WAL in the place of a Spark job
    replaces_job = False

    def write_wal(self, token: int) -> WrittenWal:
        """Write and seal the WAL of execution `token`."""
        raise NotImplementedError

    def requested(self, token: int, request: StageRequest) -> StageRequest:
        """Return `request` with what the feature asks of the job of execution `token`."""
        return request

    def running(self, folder: str) -> AbstractContextManager[object]:
        """Return a context that surrounds the job which writes into `folder`, or its launch."""
        return nullcontext()

    def sealed_state(self, token: int, result: StageResult) -> SealedState | None:
        """Make durable what the job wrote besides the outputs; the manifest names it. The first answer counts."""
        return None


class Feature:
    """Base class of features. Every hook does nothing."""

    # --- begin ---

    def requested(self, runtime: Runtime, run: RunKey) -> None:
        """Raise if the run asks for what the pipeline can't do."""

    def selecting(self, runtime: Runtime, run: RunKey, own: Epoch | None) -> Epoch | None:
        """Return the epoch that the run names, if it names one. `own`: what it got when it was run before. The first
        answer counts."""
        return None

    def opening(
        self, runtime: Runtime, run: RunKey, epoch: Epoch | None, plan: Planner
    ) -> tuple[Epoch | None, Planner]:
        """Return what `begin` is to do: take an epoch over, or without one call the planner."""
        return epoch, plan

    def planning(self, runtime: Runtime, interval: Interval | None, source: str, opened: OpenSource) -> None:
        """The source is about to be asked where the new epoch's range ends."""

    def preflight(self, runtime: Runtime, sink: OpenSink, replaced: Sequence[Epoch]) -> None:
        """The sink has passed its own preflight. `replaced`: epochs whose rows the epoch replaces."""

    def resuming(self, runtime: Runtime, run: RunKey, epoch: Epoch) -> Epoch | None:
        """Return another plan's epoch if `epoch` isn't to be taken over with the plan it has. The first answer
        counts."""
        return None

    def checking_wal(self, runtime: Runtime, epoch: Epoch, manifest: Manifest) -> None:
        """Begin has found the files of the sealed WAL intact. Raise `WalCorrupt` if what the manifest names besides
        them isn't: then the epoch is staged again."""

    def begun(self, runtime: Runtime, epoch: Epoch) -> None:
        """The run has its epoch, whatever state that is in."""

    # --- stage ---

    def staging(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool) -> StagePart | None:
        """Return the feature's part in the execution that is about to take its token, if it has one. `decided`: the
        epoch is staged again after its decision (`restage`), and nothing but its rows may change. Called as well by the
        process that seals the WAL of a job which an earlier one has launched."""
        return None

    # --- prepare ---

    def preparing(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: Sink) -> Vote | None:
        """Return the sink's vote if the feature has recorded one, else `prepare` makes the sink vote. The first answer
        counts."""
        return None

    def writing(self, runtime: Runtime, sink: OpenSink, epoch: SinkEpoch) -> SinkEpoch:
        """Return what the sink is told of the epoch that it is about to write."""
        return epoch

    # --- prepare, publish, cleanup ---

    def describing(self, runtime: Runtime, epoch: Epoch, described: SinkEpoch) -> SinkEpoch:
        """Return what sinks are told of the epoch."""
        return described

    # --- publish ---

    def shown_instead(self, runtime: Runtime, epoch: Epoch, sink: OpenSink) -> Epoch | None:
        """The target has no marker of `epoch`, which the ledger calls published there. Return the epoch whose marker
        proves the same. The first answer counts."""
        return None

    # --- cleanup ---

    def cleaning(self, runtime: Runtime, epoch: Epoch) -> None:
        """The epoch is published in every sink; nothing of it has been deleted. Called again until the cleanup is
        recorded: the place for notices of publication, which are at least once."""

    def archived(self, runtime: Runtime, epoch: Epoch) -> None:
        """The epoch's manifest is archived. Its WAL is about to be deleted."""

    def wal_to_keep(self, runtime: Runtime, epoch: Epoch) -> tuple[str, int] | None:
        """Return folder and bytes of the epoch's WAL if it is to outlive cleanup. The first answer counts."""
        return None

    def wal_deleted(self, runtime: Runtime, epoch: Epoch) -> None:
        """The epoch's WAL is deleted or retained; its cleanup isn't recorded yet."""

    def cleaned(self, runtime: Runtime, epoch: Epoch, role: Role) -> None:
        """The epoch's cleanup is recorded. Errors must be logged, not raised: the epoch is finished."""

    # --- abort and sweep ---

    def rolled_back(self, runtime: Runtime, epoch: Epoch) -> None:
        """The epoch's older attempts are void, their transactions rolled back and their folders deleted."""

    def discarding(self, runtime: Runtime, epoch: Epoch, token: int, folder: str) -> None:
        """`folder`, the WAL of execution `token`, is about to be deleted. The sweep keeps the folder and goes on if a
        hook raises `SinkUnavailable` or `InvalidPipeline`; it raises the error at its end."""

    def folders_swept(self, runtime: Runtime, only: int | None, guard: DeletionGuard) -> int:
        """The folders of WALs that are no longer needed are deleted, of epoch `only` or of all. Delete other files
        that `guard` allows to, and return the number of executions that these were of."""
        return 0

    # --- recover ---

    def sink_swept(self, runtime: Runtime, sink: Sink, opened: OpenSink, specs: Sequence[Json]) -> int:
        """The sink's transactions are resolved. `specs`: of the pipeline's sinks. Return how many other things
        were deleted."""
        return 0

    def sweeping_folders(self, runtime: Runtime) -> int:
        """Delete WALs that are due, before folders that are no longer needed are deleted; return how many."""
        return 0

    # --- packs ---

    def in_sequence(self, runtime: Runtime) -> bool:
        """Return True if an epoch of the pipeline can be staged only once the one before it is decided."""
        return False

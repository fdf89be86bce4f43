"""Restating: a run begins a generation that replaces what every sink shows, or continues one that was begun.

The rules are in `generations` and `restoring`. A restated range is read again; a restored one gets the rows of an
earlier generation, from its retained WAL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Input, RunKey
from lockstep.errors import RestateRefused, RunMismatch
from lockstep.features.generations import (
    current_generation,
    dependent_epochs,
    find_current,
    find_foreign,
    is_generation_of,
    plan_again,
    require_asked_for,
    require_asked_once,
    require_range_said,
    require_replaceable,
    require_restatable,
    require_unsealed,
    select_generation,
)
from lockstep.features.keyed_state import hands_on_state
from lockstep.features.restoring import check_restored, find_restored, plan_restored, require_same_wish, write_restored
from lockstep.protocol.begin import find_claims, last_number, make_plan, preflight
from lockstep.protocol.hooks import Feature, Planner, StagePart
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import WrittenWal
from lockstep.protocol.targets import find_known_losses, said_to_lack
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Replaced, SinkEpoch


class Restating(Feature):
    """Plans generations, and describes to sinks what they replace."""

    # --- begin ---

    def requested(self, runtime: Runtime, run: RunKey) -> None:
        require_range_said(runtime.defined, run)

    def selecting(self, runtime: Runtime, run: RunKey, own: Epoch | None) -> Epoch | None:
        """Return the current generation of the epoch that the run names. Raise `RunMismatch` if the run got an epoch of
        another range before."""
        if run.epoch is None:
            return None
        if own is None:
            return find_current(runtime, runtime.ledger.epoch(runtime.pipeline, run.epoch))
        if not is_generation_of(runtime, own, run.epoch):
            raise RunMismatch(
                f"run {run.run_id} stands for {own}, and is to restate epoch {run.epoch}: give it another id"
            )
        return own

    def opening(
        self, runtime: Runtime, run: RunKey, epoch: Epoch | None, plan: Planner
    ) -> tuple[Epoch | None, Planner]:
        if epoch is None:
            if run.restore is not None:
                raise RestateRefused(
                    f"can't show the rows of epoch {run.restore} again: nothing shows {run.interval} yet"
                )
            return None, plan
        generation, replace_it = select_generation(runtime, run, epoch)
        if not replace_it:
            require_same_wish(run, generation)
            require_asked_for(runtime, run, generation)
            require_unsealed(runtime, run, generation)
            return generation, plan
        if run.restore is not None:
            return None, partial(_plan_restored, runtime, run, generation, run.restore)
        return None, partial(_plan_restated, runtime, run, generation)

    def preflight(self, runtime: Runtime, sink: OpenSink, replaced: Sequence[Epoch]) -> None:
        for epoch in replaced:
            require_replaceable(runtime, sink, epoch)

    # --- stage ---

    def staging(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool) -> StagePart | None:
        return _RestoredWal(runtime, epoch) if epoch.restores is not None else None

    # --- what sinks are told ---

    def describing(self, runtime: Runtime, epoch: Epoch, described: SinkEpoch) -> SinkEpoch:
        """Add the epochs that this one replaces, and those that they have replaced."""
        if epoch.generation is None:
            return described
        before, generation = runtime.ledger.replaced(epoch), epoch.generation
        decided = tuple(map(_to_replaced, before))
        foreign = tuple(Replaced(*lost, foreign=True) for lost in epoch.plan.foreign)
        earlier = tuple(_earlier_generations(runtime, before))
        lacking = {replaced.id for replaced in (*foreign, *earlier) if replaced.foreign}
        return replace(
            described,
            replaced=(*foreign, *decided) if epoch.interval else (*decided, *foreign),
            earlier=earlier,
            generation=generation.number + len(lacking),
            root=generation.through or epoch.root,
            lacking=frozenset(lacking),
        )

    def writing(self, runtime: Runtime, sink: OpenSink, epoch: SinkEpoch) -> SinkEpoch:
        """Add which of the replaced epochs the target has lost, as a person has confirmed."""
        if not epoch.replaced:
            return epoch
        numbers = [replaced.id for replaced in (*epoch.replaced, *epoch.earlier)]
        lost = find_known_losses(said_to_lack(runtime.ledger, runtime.pipeline), sink, numbers)
        return replace(epoch, lacking=epoch.lacking | lost)

    def shown_instead(self, runtime: Runtime, epoch: Epoch, sink: OpenSink) -> Epoch | None:
        """A target that has lost an epoch, as a person has confirmed, shows the epoch that has replaced it since."""
        if not find_known_losses(said_to_lack(runtime.ledger, epoch.pipeline), sink, [epoch.id]):
            return None
        current = current_generation(runtime.ledger, epoch)
        return current if current.id != epoch.id else None


class _RestoredWal(StagePart):
    """Stages an earlier generation's rows from its retained WAL."""

    replaces_job = True

    def __init__(self, runtime: Runtime, epoch: Epoch) -> None:
        self._runtime, self._epoch = runtime, epoch

    def write_wal(self, token: int) -> WrittenWal:
        return write_restored(self._runtime, self._epoch, token)


def _plan_restated(runtime: Runtime, run: RunKey, current: Epoch) -> Epoch | None:
    """Plan the generation that replaces `current`, and with state all epochs behind it."""
    replaced = dependent_epochs(runtime, current)
    require_asked_once(run, replaced)
    require_restatable(runtime, replaced)
    preflight(runtime, current.plan, last_number(runtime) + 1, replaced)
    if run.input is Input.FROZEN or current.interval is None:
        plan = plan_again(runtime, replaced, afresh=run.input is not Input.FROZEN)
    else:
        plan = make_plan(runtime, current.interval, None, replaced=current)
    plan = replace(plan, foreign=find_foreign(runtime, current))
    claims = find_claims(runtime, plan) if current.interval else {}  # a cursor's files stay claimed by the first epoch
    through = replaced[-1].id if current.interval is None and hands_on_state(runtime) else None
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.plan_generation(current, plan, claims, run, run.restate or "", through=through)


def _plan_restored(runtime: Runtime, run: RunKey, current: Epoch, restored: int) -> Epoch | None:
    """Plan the generation that replaces `current` by the rows of epoch `restored`."""
    source = find_restored(runtime, current, restored)
    wal = check_restored(runtime, source)
    plan = plan_restored(runtime, source)
    schemas = {name: output.schema for name, output in wal.manifest.outputs.items()}
    preflight(runtime, plan, last_number(runtime) + 1, [current], schemas)
    plan = replace(plan, foreign=find_foreign(runtime, current))
    reach(CrashPoint.BEGIN_BEFORE_OPEN)
    return runtime.ledger.plan_generation(current, plan, {}, run, run.restate or "", restores=source.id)


def _earlier_generations(runtime: Runtime, replaced: Iterable[Epoch]) -> Iterator[Replaced]:
    """Yield the generations before the replaced ones, each with the number of the epoch that replaced it."""
    todo = list(replaced)
    while todo:
        successor = todo.pop()
        before = runtime.ledger.replaced(successor)
        yield from (Replaced(*lost, replaced_by=successor.id, foreign=True) for lost in successor.plan.foreign)
        yield from (replace(_to_replaced(epoch), replaced_by=successor.id) for epoch in before)
        todo += before


def _to_replaced(epoch: Epoch) -> Replaced:
    outputs = epoch.summary["outputs"] if epoch.summary else {}
    return Replaced(epoch.id, epoch.manifest_hash or "", {name: output["rows"] for name, output in outputs.items()})

"""Merging: a cursor's stuck epoch and what the next one would read become one epoch (`Pipeline(on_stuck="merge")`).

Flink does the same: the next checkpoint has what an aborted one had.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Plan, RunKey
from lockstep.errors import IllegalTransition, LockstepError, SourceClaimed
from lockstep.protocol.begin import find_claims, is_empty, join_ranges, make_plan, preflight
from lockstep.protocol.hooks import Feature
from lockstep.protocol.planned_sinks import find_changed_sinks
from lockstep.protocol.runtime import Runtime
from lockstep.states import EpochState

_REASON = "merged with what the next epoch would read (on_stuck='merge')"
_log = logging.getLogger(__name__)


class Merging(Feature):
    """Extends the range of an epoch that another run has left, if the pipeline asks for that."""

    def resuming(self, runtime: Runtime, run: RunKey, epoch: Epoch) -> Epoch | None:
        """Extend the frozen range, of which nothing is left out; without more to read the epoch stays as it is."""
        if not _may_be_merged(runtime, run, epoch):
            return None
        try:
            following = make_plan(runtime, None, epoch)
            if all(is_empty(runtime, name, planned) for name, planned in following.sources.items()):
                return None
            plan, claims = _join_next(runtime, epoch, following), find_claims(runtime, following)
        except LockstepError as error:
            _log.info("%s goes on with the range that it has: %s", epoch, error)
            return None
        preflight(runtime, plan, epoch.id)
        reach(CrashPoint.BEGIN_BEFORE_OPEN)
        try:
            return runtime.ledger.merge_epoch(epoch, plan, claims, run, _REASON)
        except (IllegalTransition, SourceClaimed) as error:  # another run has begun it, or the next one
            _log.info("%s is not merged: %s", epoch, error)
            return None


def _may_be_merged(runtime: Runtime, run: RunKey, stuck: Epoch) -> bool:
    """Return True for the last epoch of a cursor, of which nothing is sealed, if its own run doesn't ask for it."""
    pipeline = runtime.defined
    if pipeline.on_stuck != "merge" or stuck.state is not EpochState.PLANNED or stuck.generation is not None:
        return False
    if run.epoch is not None or runtime.find_attempt(run) is not None:
        return False
    last = runtime.ledger.last_original(pipeline.name)
    is_last = last is not None and last.id == stuck.id
    return is_last and stuck.plan.sources.keys() == pipeline.sources.keys() and not find_changed_sinks(runtime, stuck)


def _join_next(runtime: Runtime, stuck: Epoch, following: Plan) -> Plan:
    """Join the ranges of both, but for snapshots: these are read as they are now, as by any next epoch."""
    sources = {}
    for name, frozen in stuck.plan.sources.items():
        added = following.sources[name]
        both_snapshots = frozen.snapshot and added.snapshot
        sources[name] = added if both_snapshots else join_ranges(runtime, name, [frozen, added])
    return replace(stuck.plan, sources=sources)

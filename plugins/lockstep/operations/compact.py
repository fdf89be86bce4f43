"""compact: write the small files of a table's published epochs anew into few, by one commit of the table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from lockstep.errors import CompactionBusy, InvalidPipeline, UnknownEpoch
from lockstep.features.compactions import compacting_table, expire_replaced, sweep_dead_compactions
from lockstep.protocol.recover import known_sinks
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import require_shows_last
from lockstep.sinks import compacting
from lockstep.sinks.base import Sink
from lockstep.sinks.compacting import MIN_FILES, TARGET_BYTES, Compaction, Expiry, Goal, Progress
from lockstep.sinks.open_sink import OpenSink
from lockstep.states import SHOWN

_log = logging.getLogger(__name__)


def compact(
    runtime: Runtime,
    sink_name: str,
    *,
    target_bytes: int = TARGET_BYTES,
    min_files: int = MIN_FILES,
    expire: timedelta | None = None,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> Compaction:
    """Only files that this pipeline has brought, of epochs that every sink shows; each partition for itself.

    `target_bytes`: of a file, about; `min_files`: small ones that a partition needs before it is touched. What a dead
    compaction left is deleted first, and afterwards, with `expire`, what no version of the table has that was the
    newest one so long ago, or later. Raises `CompactionBusy`, `CompactionOvertaken`, `CompactionRefused`,
    `ExpiryRefused`, `UnknownEpoch` for a sink that the pipeline doesn't have, `InvalidPipeline` for one without files
    of its own, `LedgerConflict`, `TargetChanged` for a table without what the ledger calls shown last.
    """
    sink = _sink_named(runtime, sink_name)
    goal = Goal(_shown_in_all_sinks(runtime), target_bytes, min_files)
    with runtime.opened(sink) as opened:
        table = compacting_table(opened)
        if table is None:
            raise InvalidPipeline(
                f"sink {sink.name} can't be compacted: only the tables of DeltaSink and IcebergSink are made of files "
                "that epochs brought"
            )
        require_shows_last(runtime, opened)
        if dry_run:
            planned = compacting.plan(table, goal)
            return replace(planned, expired=_expired(runtime, sink, opened, expire, dry_run=True))
        with runtime.ledger.compacting(runtime.pipeline, sink.name) as held:
            if not held:
                raise CompactionBusy(f"sink {sink.name}: its table is being compacted at this moment: wait for that")
            sweep_dead_compactions(runtime, sink, opened, known_sinks(runtime))
            done = compacting.compact(table, goal, progress)
            return replace(done, expired=_expired(runtime, sink, opened, expire))


def _expired(
    runtime: Runtime, sink: Sink, opened: OpenSink, retention: timedelta | None, *, dry_run: bool = False
) -> Expiry | None:
    if retention is None:
        return None
    return expire_replaced(runtime, sink, opened, retention, known_sinks(runtime), dry_run=dry_run)


def compactable_sinks(runtime: Runtime) -> list[str]:
    """The sinks of the pipeline's last plan that `compact` takes."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    found = []
    for name, spec in last.plan.sinks.items() if last else ():
        try:
            if runtime.sink_to_sweep(spec).compacts:
                found.append(name)
        except InvalidPipeline as gone:  # its class isn't here
            _log.warning("sink %s is left alone: %s", name, gone)
    return found


def _sink_named(runtime: Runtime, name: str) -> Sink:
    """As it was planned last."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    if last is not None and name in last.plan.sinks:
        return runtime.sink_of(last, name)
    known = {sink.name: sink for sink in map(runtime.sink_to_sweep, known_sinks(runtime))}
    if name not in known:
        told = ", ".join(sorted(known)) or "none"
        raise UnknownEpoch(f"pipeline {runtime.pipeline} has no sink {name!r} in its last plans; it has {told}")
    return known[name]


def _shown_in_all_sinks(runtime: Runtime) -> Callable[[int], bool]:
    """Of an epoch that this ledger knows: the other sinks of one that isn't published yet may read its files."""
    open_epochs = {one.id for one in runtime.ledger.unfinished_epochs(runtime.pipeline) if one.state not in SHOWN}
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return lambda epoch: last is not None and epoch <= last.id and epoch not in open_epochs

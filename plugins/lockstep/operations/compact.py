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
    """Rewrite this pipeline's files of epochs that every sink shows, partition by partition.

    `target_bytes`: approximate size of a file. `min_files`: small files in a partition before it is rewritten. Files of
    a dead compaction are deleted first. With `expire`, files that have been in no current table version for that long
    are deleted afterwards. Raises `CompactionBusy`, `CompactionOvertaken`, `CompactionRefused`, `ExpiryRefused`,
    `UnknownEpoch` for an unknown sink, `InvalidPipeline` for one without files of its own, `LedgerConflict`,
    `TargetChanged` for a table that lacks the last published epoch.
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
        with runtime.ledger.compacting(runtime.pipeline, sink.name) as locked:
            if not locked:
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
    names = []
    for name, spec in last.plan.sinks.items() if last else ():
        try:
            if runtime.sink_to_sweep(spec).compacts:
                names.append(name)
        except InvalidPipeline as error:  # its class isn't here
            _log.warning("sink %s is left alone: %s", name, error)
    return names


def _sink_named(runtime: Runtime, name: str) -> Sink:
    """The sink as the last plan has it."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    if last is not None and name in last.plan.sinks:
        return runtime.sink_of(last, name)
    sinks = {sink.name: sink for sink in map(runtime.sink_to_sweep, known_sinks(runtime))}
    if name not in sinks:
        existing = ", ".join(sorted(sinks)) or "none"
        raise UnknownEpoch(f"pipeline {runtime.pipeline} has no sink {name!r} in its last plans; it has {existing}")
    return sinks[name]


def _shown_in_all_sinks(runtime: Runtime) -> Callable[[int], bool]:
    """A function that says whether every sink shows an epoch of this ledger. Until then other sinks may read its
    files."""
    unfinished = runtime.ledger.unfinished_epochs(runtime.pipeline)
    unpublished = {epoch.id for epoch in unfinished if epoch.state not in SHOWN}
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return lambda epoch_id: last is not None and epoch_id <= last.id and epoch_id not in unpublished

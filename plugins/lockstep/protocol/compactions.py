"""What dead compactions have left below a table: first it is fenced against them, then asked, then that is deleted.

It is asked twice: which compactions it knows, and which files it consists of. What it knows may be wrong: somebody has
edited its properties, or files were written under a sink's name that the table was taken from. A file that it consists
of stays, whoever wrote it. An older copy of a table, or another one at the same place, knows too little: nothing is
deleted unless the table shows what the ledger calls shown last, nor what a table of another of the sinks consists of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, LockstepError, PreflightRefused, TargetChanged
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import require_shows_last, target_id_of
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.base import Sink
from lockstep.sinks.compacting import CompactingTable, fence
from lockstep.sinks.open_sink import OpenSink
from lockstep.wal.table_staging import TableStagingFolders

_log = logging.getLogger(__name__)


def compacting_table(opened: OpenSink) -> CompactingTable[object] | None:
    """How the sink's table is compacted, if it is."""
    return opened.compaction() if isinstance(opened, AdoptingSink) else None


def sweep_compactions(runtime: Runtime, sink: Sink, opened: OpenSink, known: Sequence[Json]) -> int:
    """As `sweep_dead_compactions`, unless the table is being compacted, or doesn't show the last epoch."""
    table = compacting_table(opened)
    if table is None:
        return 0
    try:
        home = _home_of(runtime, sink)
        found = home.compactions()
        if not found or not _unknown(found, table, table.load_head()):
            return 0
        with runtime.ledger.compacting(runtime.pipeline, sink.name) as held:
            return sweep_dead_compactions(runtime, sink, opened, known) if held else 0
    except (PreflightRefused, TargetChanged, LedgerConflict) as gone:
        _log.warning("what compactions may have left below the table of sink %s is left alone: %s", sink.name, gone)
        return 0


def sweep_dead_compactions(runtime: Runtime, sink: Sink, opened: OpenSink, known: Sequence[Json]) -> int:
    """Delete what compactions wrote that the table never got, and never will; their number. The ledger has told the
    caller that no other one is under way; one that is all the same meets the fence. Raises as `require_shows_last`."""
    table, home = compacting_table(opened), _home_of(runtime, sink)
    found = home.compactions()
    if table is None or not found or not _unknown(found, table, table.load_head()):
        return 0
    require_shows_last(runtime, opened)
    dead = _unknown(found, table, fence(table))
    try:
        for other, head in other_tables(runtime, sink, opened, known):
            dead = _unknown(dead, other, head)
        dead = _unknown(dead, table, head := table.load_head())
        for file in table.files(head) if dead else ():
            if file.kept is None:  # ours; a log of before a compaction may name what was deleted behind that
                table.open_file(head, file.path).close()
    except (LockstepError, OSError) as error:
        _log.warning("what compactions may have left below the table of sink %s is left alone: %s", sink.name, error)
        return 0
    require_shows_last(runtime, opened)  # it may have become an older copy since
    for number in dead:
        home.discard_compaction(number)
        _log.info("sink %s: what compaction %s left is deleted: the table never had it", sink.name, number)
    return len(dead)


def other_tables(
    runtime: Runtime, sink: Sink, own: OpenSink, known: Sequence[Json]
) -> Iterator[tuple[CompactingTable[object], object]]:
    """The tables that the pipeline's other sinks adopt files into, or did with other arguments, each with its head: one
    of them may be at the place of this sink's."""
    for spec in known:
        other = runtime.sink_to_sweep(spec)
        if not other.adopts or other.spec() == sink.spec():
            continue
        with runtime.opened(other) as opened:
            table, target = compacting_table(opened), target_id_of(opened)
            if table is None or target is None:  # there is no such table
                continue
            try:
                head = table.load_head()
            except TargetChanged:
                if target == own.target_id():  # this very table, which had another sink then
                    continue
                raise
            yield table, head


def _home_of(runtime: Runtime, sink: Sink) -> TableStagingFolders:
    return runtime.staging.home(sink.home(runtime.sink_context()), runtime.ledger.deployment(), runtime.pipeline)


def _unknown(found: list[int], table: CompactingTable[object], head: object) -> list[int]:
    """Those of which the table, as it is now, neither knows nor has a file."""
    unknown = [number for number in found if not table.knows(head, number)]
    if not unknown:
        return []
    folders = {f"/{file.path}".rpartition("/")[0] for file in table.files(head)}
    return [number for number in unknown if not any(f"/{table.folder(number)}/" in f"{folder}/" for folder in folders)]

"""What dead compactions have left below a table: first it is fenced against them, then asked, then that is deleted.

It is asked twice: which compactions it knows, and which files it consists of. What it knows may be wrong: somebody has
edited its properties, or files were written under a sink's name that the table was taken from. A file that it consists
of stays, whoever wrote it.
"""

from __future__ import annotations

import logging

from lockstep.errors import PreflightRefused, TargetChanged
from lockstep.runtime import Runtime
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.base import Sink
from lockstep.sinks.compacting import CompactingTable, fence
from lockstep.sinks.open_sink import OpenSink
from lockstep.wal.home_staging import HomeStaging

_log = logging.getLogger(__name__)


def compacting_table(opened: OpenSink) -> CompactingTable[object] | None:
    """How the sink's table is compacted, if it is."""
    return opened.compaction() if isinstance(opened, AdoptingSink) else None


def sweep_compactions(runtime: Runtime, sink: Sink, opened: OpenSink) -> int:
    """As `sweep_dead_compactions`, unless a compaction of the table is under way."""
    table = compacting_table(opened)
    if table is None:
        return 0
    try:
        home = _home_of(runtime, sink)
        found = home.compactions()
        if not found or not _unknown(found, table, table.load_head()):
            return 0
        with runtime.ledger.compacting(runtime.pipeline, sink.name) as held:
            return sweep_dead_compactions(runtime, sink, table) if held else 0
    except (PreflightRefused, TargetChanged) as gone:
        _log.warning("what compactions may have left below the table of sink %s is left alone: %s", sink.name, gone)
        return 0


def sweep_dead_compactions(runtime: Runtime, sink: Sink, table: CompactingTable[object]) -> int:
    """Delete what compactions wrote that the table never got, and never will; the number of them. The ledger has told
    the caller that no other one is under way; one that is all the same meets the fence."""
    home = _home_of(runtime, sink)
    found = home.compactions()
    if not found or not _unknown(found, table, table.load_head()):
        return 0
    dead = _unknown(found, table, fence(table))
    for number in dead:
        home.discard_compaction(number)
        _log.info("sink %s: what compaction %s left is deleted: the table never had it", sink.name, number)
    return len(dead)


def _home_of(runtime: Runtime, sink: Sink) -> HomeStaging:
    return runtime.staging.home(sink.home(runtime.sink_context()), runtime.ledger.deployment(), runtime.pipeline)


def _unknown(found: list[int], table: CompactingTable[object], head: object) -> list[int]:
    """Those of which the table, as it is now, neither knows nor has a file."""
    unknown = [number for number in found if not table.knows(head, number)]
    if not unknown:
        return []
    folders = {f"/{file.path}".rpartition("/")[0] for file in table.files(head)}
    return [number for number in unknown if not any(f"/{table.folder(number)}/" in f"{folder}/" for folder in folders)]

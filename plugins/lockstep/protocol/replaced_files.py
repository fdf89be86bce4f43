"""Files below a table that it consisted of once: they go when no reader has a version with them, and nobody needs them.

Compaction leaves them there for readers of older versions, and so does whoever else takes files out; the folder that
they are in is one that VACUUM passes over. One goes only if the table says that no version names it which anybody may
still read, and the ledger that its epoch is over: cleaned up, or replaced since, shown by the table under the decided
manifest, its WAL gone. What the table never had is not for here: see `output_homes` and `compactions`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import cast
from urllib.parse import unquote

from lockstep.epoch import Json
from lockstep.errors import ExpiryRefused, UnknownEpoch
from lockstep.protocol.compactions import other_tables
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.base import Sink
from lockstep.sinks.compacting import CompactingTable, Expiry
from lockstep.sinks.open_sink import OpenSink
from lockstep.states import EpochState
from lockstep.wal.table_staging import ROOT, TableStagingFolder

_log = logging.getLogger(__name__)


def expire_replaced(
    runtime: Runtime, sink: Sink, opened: OpenSink, retention: timedelta, known: list[Json], *, dry_run: bool = False
) -> Expiry:
    """Delete what the pipeline or a compaction of it has brought below the table, and no reader of the last `retention`
    needs. The caller holds the table's compaction. `known`: the pipeline's sinks, whose tables lose nothing either.
    Raises `ExpiryRefused` if the table can't tell."""
    adopting = cast(AdoptingSink[object], opened)
    table = adopting.compaction()
    assert table is not None, "the caller has asked"
    home = runtime.staging.home(sink.home(runtime.sink_context()), runtime.ledger.deployment(), runtime.pipeline)
    since = runtime.ledger.now() - retention
    folders = list(home.folders())
    head = table.load_head()
    own = f"/{ROOT}/{runtime.ledger.deployment()}/{runtime.pipeline}/"
    readable = _below(own, table.readable(head, since))
    newest = [file.path for file in table.files(head)]
    for other, its_head in other_tables(runtime, sink, opened, known):
        newest += [file.path for file in other.files(its_head)]
    readable |= _below(own, newest)
    tails = {_tail(path) for path in (*newest, *map(unquote, newest))}
    why, kept, files, size = _Judge(runtime, adopting, table, head), Counter[str](), 0, 0
    for folder in folders:
        found = {path: size for path, size in home.sizes(folder).items() if path not in readable}
        if found and (reason := why.kept(folder)) is not None:
            kept[reason] += len(found)
        elif found:
            if lost := [path for path in found if _tail(path) in tails]:
                raise ExpiryRefused(
                    f"sink {sink.name}: {lost[0]}, which no version since {since} has by its path, is named as a "
                    "file that the newest version consists of: nothing more is deleted; was the table moved?"
                )
            files, size = files + len(found), size + sum(found.values())
            if not dry_run:
                home.expire(folder, sorted(found))
    if files and not dry_run:
        _log.info("sink %s: %s files, which no version since %s has, are deleted", sink.name, files, since)
    return Expiry(since, files, size, kept)


def _below(own: str, paths: Iterable[str]) -> set[str]:
    """Relative to the table's folder, however the table writes them. `own`: the pipeline's folder below it; a folder
    above the table may have the same name, so the last one counts."""
    told = (text for path in paths for text in (path, unquote(path)))
    return {text[at:] for text in told if (at := f"/{text}".rfind(own)) >= 0}


def _tail(path: str) -> str:
    """The end of a path that tells a staged or compacted file from all others: token, output and name, for instance."""
    return "/".join(path.split("/")[-3:])


class _Judge:
    """Why files that no version has stay all the same."""

    def __init__(
        self, runtime: Runtime, sink: AdoptingSink[object], table: CompactingTable[object], head: object
    ) -> None:
        self._runtime, self._sink, self._table, self._head = runtime, sink, table, head
        found = runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline)
        self._staged = {(one.epoch, one.token) for one in found}

    def kept(self, folder: TableStagingFolder) -> str | None:
        if folder.epoch is None:
            known = self._table.knows(self._head, folder.number)
            return None if known else "of compactions that the table doesn't know"
        return self._kept_epoch(folder.epoch, folder.number)

    def _kept_epoch(self, number: int, token: int) -> str | None:
        ledger, pipeline = self._runtime.ledger, self._runtime.pipeline
        try:
            epoch = ledger.epoch(pipeline, number)
        except UnknownEpoch:
            return "of epochs that the ledger doesn't know"
        if epoch.state not in (EpochState.CLEANED, EpochState.REPLACED):
            return "of epochs that aren't cleaned up"
        if not ledger.find_issued_tokens(pipeline, number, [token], attempts=False):
            return "of executions that the ledger doesn't know"
        if (number, token) in self._staged:
            return "of WALs that are kept"
        shown = self._sink.marker_in(self._head, number)
        if shown is None or shown.manifest_hash != epoch.manifest_hash:
            return "of epochs that the table shows by another word than the ledger's, or doesn't show"
        return None

"""Files below a table that adopts files: what dead compactions have left, and what no version of the table names.

Dead compactions. The table is first fenced against them, then asked, then their files are deleted. It is asked which
compactions it knows, and which files it consists of: such files stay in any case, as properties can be
edited by hand. An older copy of a table, or another table at the same place, knows too little. So nothing is
deleted unless the table shows what the ledger calls published last, nor what a table of another sink consists of.

Replaced files. Compaction leaves them for readers of older versions; VACUUM passes over their folder. A file goes only
if no version names it that anybody may still read, and its epoch is over: cleaned up or replaced, shown by the table
under the decided manifest, its WAL deleted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import cast
from urllib.parse import unquote

from lockstep.epoch import Json
from lockstep.errors import ExpiryRefused, LedgerConflict, LockstepError, PreflightRefused, TargetChanged, UnknownEpoch
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import require_shows_last, target_id_of
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.base import Sink
from lockstep.sinks.compacting import CompactingTable, Expiry, fence
from lockstep.sinks.open_sink import OpenSink
from lockstep.states import EpochState
from lockstep.wal.table_staging import ROOT, TableStagingFolder, TableStagingFolders

_log = logging.getLogger(__name__)


class Compactions(Feature):
    """Deletes what dead compactions have left when recovery sweeps a sink."""

    def sink_swept(self, runtime: Runtime, sink: Sink, opened: OpenSink, specs: Sequence[Json]) -> int:
        """Delete nothing while the table is being compacted, or doesn't show the last epoch."""
        table = compacting_table(opened)
        if table is None:
            return 0
        try:
            numbers = _home_of(runtime, sink).compactions()
            if not numbers or not _unknown(numbers, table, table.load_head()):
                return 0
            with runtime.ledger.compacting(runtime.pipeline, sink.name) as locked:
                return sweep_dead_compactions(runtime, sink, opened, specs) if locked else 0
        except (PreflightRefused, TargetChanged, LedgerConflict) as error:
            _log.warning("files of dead compactions below the table of sink %s are kept: %s", sink.name, error)
            return 0


def compacting_table(opened: OpenSink) -> CompactingTable[object] | None:
    """Return how the sink's table is compacted; None if it isn't."""
    return opened.compaction() if isinstance(opened, AdoptingSink) else None


def sweep_dead_compactions(runtime: Runtime, sink: Sink, opened: OpenSink, specs: Sequence[Json]) -> int:
    """Delete the files of compactions that the table never got; return the number of compactions.

    The caller holds the ledger's lock, so no other compaction is under way; one that is nevertheless meets the fence.
    Raises as `require_shows_last`.
    """
    table, home = compacting_table(opened), _home_of(runtime, sink)
    numbers = home.compactions()
    if table is None or not numbers or not _unknown(numbers, table, table.load_head()):
        return 0
    require_shows_last(runtime, opened)
    dead = _unknown(numbers, table, fence(table))
    try:
        for table_at_place, head in _other_tables(runtime, sink, opened, specs):
            dead = _unknown(dead, table_at_place, head)
        dead = _unknown(dead, table, head := table.load_head())
        for file in table.files(head) if dead else ():
            if file.skip_reason is None:  # ours; an old log may name files deleted since
                table.open_file(head, file.path).close()
    except (LockstepError, OSError) as error:
        _log.warning("files of dead compactions below the table of sink %s are kept: %s", sink.name, error)
        return 0
    require_shows_last(runtime, opened)  # it may have become an older copy since
    for number in dead:
        home.discard_compaction(number)
        _log.info("sink %s: deleted the files of compaction %s, which the table never had", sink.name, number)
    return len(dead)


def expire_replaced(
    runtime: Runtime, sink: Sink, opened: OpenSink, retention: timedelta, specs: list[Json], *, dry_run: bool = False
) -> Expiry:
    """Delete files of the pipeline and of its compactions that no reader of the last `retention` needs.

    The caller holds the ledger's lock on compacting the table. `specs`: the pipeline's sinks, whose tables lose
    nothing either. Raises `ExpiryRefused` if the table can't say what is readable.
    """
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
    for other_table, its_head in _other_tables(runtime, sink, opened, specs):
        newest += [file.path for file in other_table.files(its_head)]
    readable |= _below(own, newest)
    tails = {_tail(path) for path in (*newest, *map(unquote, newest))}
    rules, kept_files, files, size = _ExpiryRules(runtime, adopting, table, head), Counter[str](), 0, 0
    for folder in folders:
        sizes = {path: size for path, size in home.sizes(folder).items() if path not in readable}
        if sizes and (reason := rules.reason_to_keep(folder)) is not None:
            kept_files[reason] += len(sizes)
        elif sizes:
            if lost := [path for path in sizes if _tail(path) in tails]:
                raise ExpiryRefused(
                    f"sink {sink.name}: {lost[0]}, which no version since {since} has by its path, is named as a "
                    "file that the newest version consists of: nothing more is deleted; was the table moved?"
                )
            files, size = files + len(sizes), size + sum(sizes.values())
            if not dry_run:
                home.expire(folder, sorted(sizes))
    if files and not dry_run:
        _log.info("sink %s: %s files, which no version since %s has, are deleted", sink.name, files, since)
    return Expiry(since, files, size, kept_files)


def _below(own: str, paths: Iterable[str]) -> set[str]:
    """Return the paths relative to the table's folder, however the table writes them. `own`: the pipeline's folder
    below it; a folder above the table may have the same name, so the last one counts."""
    spellings = (text for path in paths for text in (path, unquote(path)))
    return {text[at:] for text in spellings if (at := f"/{text}".rfind(own)) >= 0}


def _tail(path: str) -> str:
    """Return the end of a path that identifies a staged or compacted file, such as token, output and name."""
    return "/".join(path.split("/")[-3:])


class _ExpiryRules:
    """The reasons for which files stay that no version of the table names."""

    def __init__(
        self, runtime: Runtime, sink: AdoptingSink[object], table: CompactingTable[object], head: object
    ) -> None:
        self._runtime, self._sink, self._table, self._head = runtime, sink, table, head
        executions = runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline)
        self._staged = {(execution.epoch, execution.token) for execution in executions}

    def reason_to_keep(self, folder: TableStagingFolder) -> str | None:
        if folder.epoch is None:
            is_known = self._table.knows(self._head, folder.number)
            return None if is_known else "of compactions that the table doesn't know"
        number, token = folder.epoch, folder.number
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
        marker = self._sink.marker_in(self._head, number)
        if marker is None or marker.manifest_hash != epoch.manifest_hash:
            return "of epochs that the table shows by another word than the ledger's, or doesn't show"
        return None


def _other_tables(
    runtime: Runtime, sink: Sink, own: OpenSink, specs: Sequence[Json]
) -> Iterator[tuple[CompactingTable[object], object]]:
    """Yield the adopting tables of the pipeline's other sinks, and of earlier specs of this one, each with its head:
    one of them may be at the place of this sink's."""
    for spec in specs:
        described = runtime.sink_to_sweep(spec)
        if not described.adopts or described.spec() == sink.spec():
            continue
        with runtime.opened(described) as opened:
            table, target = compacting_table(opened), target_id_of(opened)
            if table is None or target is None:  # there is no such table
                continue
            try:
                head = table.load_head()
            except TargetChanged:
                if target == own.target_id():  # this same table, which had another sink then
                    continue
                raise
            yield table, head


def _home_of(runtime: Runtime, sink: Sink) -> TableStagingFolders:
    return runtime.staging.home(sink.home(runtime.sink_context()), runtime.ledger.deployment(), runtime.pipeline)


def _unknown(numbers: list[int], table: CompactingTable[object], head: object) -> list[int]:
    """Return the compactions that this version of the table doesn't know, and of which it has no file."""
    unknown = [number for number in numbers if not table.knows(head, number)]
    if not unknown:
        return []
    folders = {f"/{file.path}".rpartition("/")[0] for file in table.files(head)}
    return [number for number in unknown if not any(f"/{table.folder(number)}/" in f"{folder}/" for folder in folders)]

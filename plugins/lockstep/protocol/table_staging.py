"""Outputs that a table adopts: where they are staged, and what of it may be deleted.

From the moment when a table adopts a file it is the table's for good. Which executions' files that may be follows from
the ledger, never from a folder: those of the decided WAL, and those of a WAL that was staged in its place, since the
decision. Everything else was never promised to any table by this ledger. By one that was restored to an earlier day it
may have been: so before anything is deleted the table is asked, too, and keeps all that belongs to an epoch which it
shows by another word than the ledger's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lockstep.epoch import Epoch
from lockstep.errors import PreflightRefused, StageFailed, TargetChanged
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.states import DECIDED, UNDECIDED, EpochState
from lockstep.wal.request import REQUEST, TableStagingRequest
from lockstep.wal.table_staging import TableStaging

_log = logging.getLogger(__name__)


def homes_of(runtime: Runtime, epoch: Epoch) -> dict[str, TableStaging]:
    """Where each of the epoch's outputs is staged that a sink adopts. Raises `PreflightRefused`, `SinkUnavailable`."""
    planned = {name: Sink.from_spec(spec) for name, spec in epoch.plan.sinks.items()}
    adopting = [runtime.sink_of(epoch, name) for name, sink in planned.items() if sink.adopts]
    return {sink.output: sink.home(runtime.sink_context()) for sink in adopting}


def home_requests(runtime: Runtime, epoch: Epoch, token: int) -> dict[str, TableStagingRequest]:
    """What execution `token` asks of Spark."""
    deployment = runtime.ledger.deployment()
    found = homes_of(runtime, epoch)
    there = {name: runtime.staging.home(home, deployment, epoch.pipeline) for name, home in found.items()}
    return {name: TableStagingRequest(home, there[name].uri_of(epoch.id, token)) for name, home in found.items()}


def may_be_adopted(runtime: Runtime, epoch: Epoch, token: int) -> bool:
    """Whether a table may have, or may yet get, the files of execution `token`: then they are never deleted."""
    if epoch.state is EpochState.VOID:
        return False
    if epoch.state in UNDECIDED:
        return token >= epoch.attempt or _is_of(epoch.wal, token)
    votes = [one.vote.token for one in runtime.ledger.participants(epoch.pipeline, epoch.id).values() if one.vote]
    return _is_of(epoch.wal, token) or token >= min(votes, default=0)  # what was staged in its place came after


def _is_of(wal: str | None, token: int) -> bool:
    return wal is not None and int(wal.rpartition("/")[2]) == token


def discard_homes(runtime: Runtime, epoch: Epoch, token: int, folder: str) -> None:
    """Before `folder`, the WAL of execution `token`, goes: delete what it staged elsewhere, unless a table may have
    it. The request in `folder` says where; an execution that didn't get to write one has staged nothing. Below a table
    that the plan names no longer nothing is deleted: nobody asks that one what it shows."""
    homes = requested_homes(runtime, folder)
    if not homes or may_be_adopted(runtime, epoch, token):
        return
    try:
        asked = {home.table for home in homes_of(runtime, epoch).values()}
    except PreflightRefused as gone:
        _log.warning("%s: what was staged below a table is left alone: %s", epoch, gone)
        return
    for home in homes:
        if home.table not in asked:
            _log.warning("%s: what was staged below %s is left alone: no sink of its plan", epoch, home.table)
    homes = [home for home in homes if home.table in asked]
    if homes and not is_shown_otherwise(runtime, epoch):
        _discard(runtime, epoch, token, homes)


def sweep_homes(runtime: Runtime, epoch: Epoch) -> int:
    """Delete what the epoch's dead executions, also those without a folder, left at home; the number of them."""
    deployment, swept = runtime.ledger.deployment(), 0
    try:
        homes = homes_of(runtime, epoch).values()
    except PreflightRefused as gone:
        _log.warning("%s: what was staged below a table is left alone: %s", epoch, gone)
        return 0
    for home in homes:
        tokens = runtime.staging.home(home, deployment, epoch.pipeline).tokens(epoch.id)
        tokens = [token for token in tokens if not may_be_adopted(runtime, epoch, token)]
        if not tokens or is_shown_otherwise(runtime, epoch):
            continue
        issued = runtime.ledger.find_issued_tokens(epoch.pipeline, epoch.id, tokens, attempts=False)
        for token in tokens:
            if token not in issued:
                _log.warning(
                    "%s: %s holds token %s, which this ledger never issued: left alone", epoch, home.table, token
                )
            else:
                _discard(runtime, epoch, token, [home])
                swept += 1
    return swept


def is_shown_otherwise(runtime: Runtime, epoch: Epoch) -> bool:
    """Whether a table that adopts shows the epoch, and not by this ledger's decision: a ledger that was restored knows
    nothing of it. A table that can't be looked into counts as one that does, unless it may answer later: then
    `SinkUnavailable` is raised."""
    decided = epoch.manifest_hash if epoch.state in DECIDED else None
    for name in epoch.plan.sinks:
        sink = runtime.sink_of(epoch, name)
        if not sink.adopts:
            continue
        try:
            with runtime.opened(sink) as table:
                table.target_id()  # a table that is missing may be put back
                shown = table.find_marker(epoch.id)
        except (PreflightRefused, TargetChanged) as gone:
            _log.warning("%s: what was staged for sink %s is left alone: %s", epoch, name, gone)
            return True
        if shown is not None and shown.manifest_hash != decided:
            _log.warning(
                "%s: sink %s shows it by a decision that this ledger has no memory of (token %s): what was staged "
                "below the table is left alone, it may be the table's",
                epoch,
                name,
                shown.token,
            )
            return True
    return False


def requested_homes(runtime: Runtime, folder: str) -> list[TableStaging]:
    """Where an execution was asked to stage outputs, if not in `folder`."""
    try:
        request = runtime.staging.read_json(folder, REQUEST)
    except StageFailed:
        return []
    return [TableStagingRequest.from_json(home).home for home in request.get("homes", {}).values()]


def _discard(runtime: Runtime, epoch: Epoch, token: int, homes: Iterable[TableStaging]) -> None:
    deployment = runtime.ledger.deployment()
    for home in homes:
        runtime.staging.home(home, deployment, epoch.pipeline).discard(epoch.id, token)

"""Outputs that are staged below the table that adopts their files, and what of them may be deleted.

A file that a table has adopted belongs to the table. The ledger, never a folder, says which executions' files that may
be: those of the decided WAL, and of a WAL that replaced it since the decision. This ledger has promised nothing else to
any table. A ledger that was restored from a backup may have done so before: so the table is asked, too, before anything
is deleted, and keeps all files of an epoch that it shows under another manifest than the ledger's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lockstep.epoch import Attempt, Epoch
from lockstep.errors import PreflightRefused, StageFailed, TargetChanged
from lockstep.protocol.hooks import Feature, StagePart
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.states import DECIDED, UNDECIDED, EpochState
from lockstep.wal.request import REQUEST, StageRequest, TableStagingRequest
from lockstep.wal.table_staging import TableStaging

_log = logging.getLogger(__name__)


def homes_of(runtime: Runtime, epoch: Epoch) -> dict[str, TableStaging]:
    """Return where each output is staged that a sink adopts. Raises `PreflightRefused`, `SinkUnavailable`."""
    planned = {name: Sink.from_spec(spec) for name, spec in epoch.plan.sinks.items()}
    adopting = [runtime.sink_of(epoch, name) for name, sink in planned.items() if sink.adopts]
    return {sink.output: sink.home(runtime.sink_context()) for sink in adopting}


def home_requests(runtime: Runtime, epoch: Epoch, token: int) -> dict[str, TableStagingRequest]:
    """Return what the request of execution `token` says about these outputs."""
    deployment = runtime.ledger.deployment()
    homes = homes_of(runtime, epoch)
    there = {name: runtime.staging.home(home, deployment, epoch.pipeline) for name, home in homes.items()}
    return {name: TableStagingRequest(home, there[name].uri_of(epoch.id, token)) for name, home in homes.items()}


def may_be_adopted(runtime: Runtime, epoch: Epoch, token: int) -> bool:
    """Return True if a table may have, or may still get, the files of execution `token`: they are never deleted."""
    if epoch.state is EpochState.VOID:
        return False
    if epoch.state in UNDECIDED:
        return token >= epoch.attempt or _is_of(epoch.wal, token)
    participants = runtime.ledger.participants(epoch.pipeline, epoch.id).values()
    votes = [participant.vote.token for participant in participants if participant.vote]
    return _is_of(epoch.wal, token) or token >= min(votes, default=0)  # a restaged WAL has a later token


def _is_of(wal: str | None, token: int) -> bool:
    return wal is not None and int(wal.rpartition("/")[2]) == token


class StagingBelowTables(Feature):
    """Has outputs staged below the tables that adopt their files, and deletes those of dead executions."""

    def staging(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool) -> StagePart | None:
        return _TablePart(runtime, epoch)

    def archived(self, runtime: Runtime, epoch: Epoch) -> None:
        sweep_homes(runtime, epoch)

    def rolled_back(self, runtime: Runtime, epoch: Epoch) -> None:
        sweep_homes(runtime, epoch)

    def discarding(self, runtime: Runtime, epoch: Epoch, token: int, folder: str) -> None:
        discard_homes(runtime, epoch, token, folder)


@dataclass(frozen=True)
class _TablePart(StagePart):
    runtime: Runtime
    epoch: Epoch

    def requested(self, token: int, request: StageRequest) -> StageRequest:
        return replace(request, homes=home_requests(self.runtime, self.epoch, token))


def discard_homes(runtime: Runtime, epoch: Epoch, token: int, folder: str) -> None:
    """Delete what execution `token` staged below tables, unless a table may have it, before its WAL `folder` goes.

    The request in `folder` says where; an execution without a request has staged nothing. Nothing is deleted below a
    table that the plan no longer names, as that table isn't asked what it shows.
    """
    homes = requested_homes(runtime, folder)
    if not homes or may_be_adopted(runtime, epoch, token):
        return
    try:
        planned = {home.table for home in homes_of(runtime, epoch).values()}
    except PreflightRefused as error:
        _log.warning("%s: what was staged below a table is left alone: %s", epoch, error)
        return
    for home in homes:
        if home.table not in planned:
            _log.warning("%s: what was staged below %s is left alone: no sink of its plan", epoch, home.table)
    homes = [home for home in homes if home.table in planned]
    if homes and not is_shown_otherwise(runtime, epoch):
        _discard(runtime, epoch, token, homes)


def sweep_homes(runtime: Runtime, epoch: Epoch) -> int:
    """Delete what the epoch's dead executions left below tables, also those without a folder; return their number."""
    deployment, swept = runtime.ledger.deployment(), 0
    try:
        homes = homes_of(runtime, epoch).values()
    except PreflightRefused as error:
        _log.warning("%s: what was staged below a table is left alone: %s", epoch, error)
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
    """Return True if an adopting table shows the epoch under a manifest that this ledger hasn't decided: a ledger that
    was restored from a backup may not know of it. A table that can't be read counts as one that does, unless it may
    answer later: then `SinkUnavailable` is raised."""
    decided = epoch.manifest_hash if epoch.state in DECIDED else None
    for name in epoch.plan.sinks:
        sink = runtime.sink_of(epoch, name)
        if not sink.adopts:
            continue
        try:
            with runtime.opened(sink) as table:
                table.target_id()  # raises if the table is missing, which may be put back
                marker = table.find_marker(epoch.id)
        except (PreflightRefused, TargetChanged) as error:
            _log.warning("%s: what was staged for sink %s is left alone: %s", epoch, name, error)
            return True
        if marker is not None and marker.manifest_hash != decided:
            _log.warning(
                "%s: sink %s shows it by a decision that this ledger has no memory of (token %s): what was staged "
                "below the table is left alone, it may be the table's",
                epoch,
                name,
                marker.token,
            )
            return True
    return False


def requested_homes(runtime: Runtime, folder: str) -> list[TableStaging]:
    """Return the tables below which an execution was asked to stage outputs."""
    try:
        request = runtime.staging.read_json(folder, REQUEST)
    except StageFailed:
        return []
    return [TableStagingRequest.from_json(home).home for home in request.get("homes", {}).values()]


def _discard(runtime: Runtime, epoch: Epoch, token: int, homes: Iterable[TableStaging]) -> None:
    deployment = runtime.ledger.deployment()
    for home in homes:
        runtime.staging.home(home, deployment, epoch.pipeline).discard(epoch.id, token)

"""restore: have an earlier generation's rows shown again, from its kept WAL, in every sink by one decision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.errors import LockstepError, RestateRefused, StageFailed, UnknownEpoch
from lockstep.features.generations import find_current, require_reason, require_replaceable
from lockstep.features.restoring import check_restored, find_restored, plan_restored
from lockstep.observability import suggestions
from lockstep.protocol.pack import Member, move_pack
from lockstep.protocol.runtime import Runtime
from lockstep.states import EpochState


@dataclass(frozen=True)
class Restorable:
    """An earlier generation of a range, and the epoch that shows the range now. `refusals`: why its rows can't be shown
    again, by sink, or under "" if no sink is the cause. `rows`, `shown_rows`: per output, by the seals;
    `other_columns`: outputs with other columns than are shown; sinks are asked whether they take them before anything
    is planned."""

    epoch: int
    generation: int  #: 0: the original
    interval: Interval | None
    rows: Mapping[str, int]
    code_version: str | None
    kept_since: datetime | None  #: None: its WAL isn't kept
    shown: int  #: the epoch that is shown
    shown_rows: Mapping[str, int]
    other_columns: tuple[str, ...]
    refusals: Mapping[str, str]


def find_restorable(runtime: Runtime, epoch: int, generation: int | None = None) -> tuple[Epoch, Epoch]:
    """The published epoch of the range of `epoch`, and the epoch whose rows are wanted: `epoch` itself, or the given
    generation of its range. Raises `UnknownEpoch`."""
    named_epoch = runtime.ledger.epoch(runtime.pipeline, epoch)
    if generation is None:
        return find_current(runtime, named_epoch), named_epoch
    members = [member for member in runtime.ledger.generations(named_epoch) if member.state is not EpochState.VOID]
    generations = {_number(member): member for member in members}
    if generation not in generations:
        has = ", ".join(f"{number} (epoch {member.id})" for number, member in sorted(generations.items()))
        raise UnknownEpoch(f"the range of {named_epoch} has no generation {generation}, it has {has or 'none'}")
    return find_current(runtime, named_epoch), generations[generation]


def plan(runtime: Runtime, current: Epoch, restored: Epoch) -> Restorable:
    """Say what would refuse to show `restored`'s rows again. Every file of its WAL is compared with the manifest; sinks
    are asked whether they can replace what they show, not whether they take the columns. Changes nothing."""
    refusals: dict[str, str] = {}
    try:
        check_restored(runtime, find_restored(runtime, current, restored.id))
        plan_restored(runtime, restored)
    except LockstepError as error:
        refusals[""] = str(error)
    for name in current.plan.sinks:
        try:
            with runtime.opened(runtime.sink_of(current, name)) as sink:
                require_replaceable(runtime, sink, current)
        except LockstepError as error:
            refusals[name] = str(error)
    retained = runtime.ledger.retained_wal(restored.pipeline, restored.id)
    since = retained.retained_at if retained and retained.expired_at is None else None
    return Restorable(
        restored.id,
        _number(restored),
        restored.interval,
        _rows(restored),
        restored.code_version,
        since,
        current.id,
        _rows(current),
        other_columns(restored, current),
        refusals,
    )


def restore(runtime: Runtime, current: Epoch, restored: Epoch, reason: str) -> Member:
    """Show `restored`'s rows in the place of `current`'s. Called again with the same reason it goes on with what it
    began, or finds that all is done. Raises `RestateRefused`, `EpochBusy`, and what the roles raise."""
    reason = require_reason(reason)
    digest = hashlib.sha256(f"{restored.id} {reason}".encode()).hexdigest()[:16]
    run_key = RunKey(suggestions.RESTORE, f"{runtime.pipeline}__{digest}", restate=reason, restore=restored.id)
    run = run_key.member(restored.interval, 0)
    own = runtime.find_attempt(run)
    before = runtime.epoch_of(own) if own else None
    if before is not None and before.state in (EpochState.REPLACED, EpochState.VOID):
        was = "was replaced since" if before.state is EpochState.REPLACED else f"was given up: {before.reason}"
        raise RestateRefused(f"for this reason {before} was begun before, and it {was}: give another reason")
    if before is None:
        find_restored(runtime, current, restored.id)
    [member] = move_pack(runtime, [run], _asks_no_spark, jobs=1)
    return member


def _asks_no_spark(request_uri: str) -> NoReturn:
    raise StageFailed(f"{request_uri} asks Spark for rows that are shown again from their WAL: nothing was sealed")


def _rows(epoch: Epoch) -> dict[str, int]:
    return {name: facts["rows"] for name, facts in epoch.counted.items()}


def other_columns(restored: Epoch, current: Epoch) -> tuple[str, ...]:
    """Outputs of `restored` that have others than `current` shows, by the seals."""
    was, now = (epoch.counted for epoch in (restored, current))
    return tuple(name for name in sorted(was) if was[name].get("columns") != now.get(name, {}).get("columns"))


def _number(epoch: Epoch) -> int:
    return epoch.generation.number if epoch.generation else 0

"""rewind: all that follows an epoch is restated, from a savepoint that was taken of it.

Nothing is taken back by itself: what every sink shows is replaced, by decisions as ever (`restate`). With state all
later epochs become one, which starts from the epoch's state; the savepoint has what staging has let go of since.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from lockstep.audits.in_spark import AskSpark
from lockstep.epoch import Epoch, Identity
from lockstep.errors import InvalidPipeline, RestateRefused, UnknownEpoch
from lockstep.operations.restate import restate
from lockstep.pack import Member
from lockstep.runtime import Runtime
from lockstep.states import DECIDED, EpochState
from lockstep.steps.generations import find_current
from lockstep.steps.keyed_state import hands_on_state
from lockstep.steps.stage_job import Launch
from lockstep.wal.savepoint import Savepoint, put_back, read_savepoint

_log = logging.getLogger(__name__)


def rewind(
    runtime: Runtime,
    source: str,
    because: str,
    launch: Launch,
    jobs: int | None = None,
    request: str | None = None,
    ask_spark: AskSpark | None = None,
) -> list[Member]:
    """Restate what follows the epoch of which the folder `source` holds a savepoint: with state as one epoch, without
    it each by itself. Called again with the same reason it goes on; arguments as those of `restate`.

    Raises `RestateRefused` for a savepoint of another history and where nothing follows, `PreflightRefused` for a sink
    that can't replace what it shows, `WalCorrupt` if a file isn't as it was saved; and what `restate` raises.
    """
    if runtime.defined.identity is not Identity.CURSOR:
        raise InvalidPipeline(
            f"the epochs of {runtime.pipeline} are intervals, which follow from nothing: restate them"
        )
    found = read_savepoint(source)
    epoch = _find_own(runtime, found, source)
    following = _find_following(runtime, epoch)
    for name in following[0].plan.sinks:
        with runtime.opened(runtime.sink_of(following[0], name)) as sink:
            sink.require_replaceable()
    if epoch.based_on is not None:
        state = runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "").state
        copied = put_back(found, source, state.versions if state else {}, runtime.states())
        _log.info("%s: %s files of its state are back in staging", epoch, copied)
    return restate(runtime, following, because, launch, jobs, request, ask_spark=ask_spark)


def _find_own(runtime: Runtime, found: Savepoint, source: str) -> Epoch:
    """The epoch that the savepoint was taken of, if it stands."""
    if (found.deployment, found.pipeline) != (runtime.ledger.deployment(), runtime.pipeline):
        _refuse(found, source, f"it is of pipeline {found.pipeline} in deployment {found.deployment}")
    try:
        epoch = runtime.ledger.epoch(runtime.pipeline, found.epoch)
    except UnknownEpoch:
        _refuse(found, source, "this ledger has no such epoch")
    if epoch.state not in DECIDED or epoch.manifest_hash != found.manifest_hash:
        _refuse(found, source, f"{epoch} is {epoch.state} here, and has another manifest or none")
    if dict(found.positions) != epoch.plan.positions:
        _refuse(found, source, f"{epoch} ended at other positions")
    if epoch.state is EpochState.REPLACED and hands_on_state(runtime):
        heir = runtime.ledger.successor(epoch)
        _refuse(found, source, f"{epoch} was replaced since{f', by epoch {heir.id}' if heir else ''}")
    return epoch


def _refuse(found: Savepoint, source: str, why: str) -> NoReturn:
    raise RestateRefused(
        f"the savepoint in {source} (epoch {found.epoch}, manifest {found.manifest_hash[:12]}) is of another history: "
        f"{why}. Have a new pipeline begin with it: `lockstep savepoint start <new pipeline> --from {source}`"
    )


def _find_following(runtime: Runtime, epoch: Epoch) -> list[Epoch]:
    """What is to be restated, in order; with state the first one, which takes all others along."""
    if hands_on_state(runtime):
        following = [one for one in runtime.ledger.standing_from(epoch) if one.id > epoch.id][:1]
    else:
        following = [find_current(runtime, one) for one in _originals_after(runtime, epoch)]
    if not following:
        raise RestateRefused(f"nothing follows {epoch} that is decided: the pipeline is where the savepoint is")
    return following


def _originals_after(runtime: Runtime, epoch: Epoch) -> list[Epoch]:
    found: list[Epoch] = []
    last = runtime.ledger.last_original(runtime.pipeline)
    while last is not None and last.id > epoch.root:
        found.append(last)
        last = runtime.ledger.last_original(runtime.pipeline, below=last.id)
    return [one for one in reversed(found) if one.state in DECIDED]

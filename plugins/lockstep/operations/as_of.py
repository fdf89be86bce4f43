"""as_of: read several sinks at one epoch, so that a join over a table, a folder and a lakehouse table sees the same
epochs.

The ledger knows which epochs every sink shows; each sink knows what its readers have to ask for. Nothing is locked: the
cut stays valid while newer epochs are published, until rows are removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from lockstep.epoch import Epoch, Json
from lockstep.errors import LedgerConflict, LockstepError, OutOfOrder, TargetChanged, TargetUnreadable, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.pipeline import Pipeline
from lockstep.protocol.identity import RENUMBERED, require_known_markers
from lockstep.protocol.targets import find_known_losses, find_lost, require_nothing_lost, said_to_lack
from lockstep.sinks.base import Sink
from lockstep.sinks.values import EpochCut, Guarantee, ReadCut, SinkContext, parse_span
from lockstep.states import DECIDED, SHOWN, EpochState


@dataclass(frozen=True)
class PipelineCut:
    """One set of epochs in every sink of a pipeline. `sinks`: by sink and output; `unreadable`: by sink, why not."""

    pipeline: str
    epochs: EpochCut
    sinks: Mapping[str, Mapping[str, ReadCut]]
    unreadable: Mapping[str, str]

    @property
    def epoch(self) -> int:
        """The newest one of them."""
        return self.epochs.newest


def as_of(
    pipeline: str | Pipeline, epoch: int | None = None, *, ledger: str, connections: Mapping[str, str]
) -> PipelineCut:
    """For each sink, what readers ask for to see the same epochs: all up to `epoch` (default: the newest that every
    sink shows), except those that some sink doesn't show yet or has lost.

    Tables give a predicate on the epoch column, folders the list of files, Iceberg also a snapshot if one shows exactly
    these epochs. Upserted tables, topics and other sinks that can't be read this way are in `unreadable`, and so is a
    sink that lacks its last published epoch. The sinks are those of the epoch's plan; a sink that joined later shows
    fewer epochs.

    Raises `UnknownEpoch` if the ledger has no such pipeline or epoch, or shows none yet; `OutOfOrder` if some sink
    doesn't show `epoch` yet; `LedgerUnavailable`, `LedgerRefused`, `SinkUnavailable`.
    """
    name = pipeline if isinstance(pipeline, str) else pipeline.name
    with closing(Ledger(ledger)) as opened:
        newest, cut = _newest_cut(opened, name) if epoch is None else _cut_at(opened, opened.epoch(name, epoch))
        context = SinkContext(opened.deployment(), name, connections)
        sinks, unreadable, lost = _ask_sinks(opened, newest, cut, context)
        if lost - {*cut.without}:
            cut = EpochCut(cut.newest, tuple(sorted(lost.union(cut.without))))
            sinks, unreadable, _ = _ask_sinks(opened, newest, cut, context)
    return PipelineCut(name, cut, sinks, unreadable)


def _ask_sinks(
    ledger: Ledger, newest: Epoch, cut: EpochCut, context: SinkContext
) -> tuple[dict[str, Mapping[str, ReadCut]], dict[str, str], set[int]]:
    """`PipelineCut.sinks`, `PipelineCut.unreadable`, and the epochs of the cut that readable sinks have lost, with all
    generations of their ranges, because a restored target may show an earlier one."""
    pipeline, lost = newest.pipeline, set[int]()
    sinks: dict[str, Mapping[str, ReadCut]] = {}
    unreadable: dict[str, str] = {}
    words = said_to_lack(ledger, pipeline)
    for name, spec in newest.plan.sinks.items():
        described = Sink.from_spec(spec)
        try:
            with described.opened(context) as sink:
                try:
                    read_cuts = {item.output: item for item in sink.cut(cut)}
                except TargetUnreadable:  # nothing that can't be read so is connected to
                    raise
                except LockstepError:  # of an emptied target, say
                    require_nothing_lost(ledger, pipeline, sink, described)
                    raise
                require_nothing_lost(ledger, pipeline, sink, described)
                require_known_markers(ledger, pipeline, sink)
                if any(word["sink"] == name for word in words):
                    lost |= find_known_losses(words, sink, find_lost(ledger, pipeline, sink))
                sinks[name] = read_cuts
        except (TargetUnreadable, TargetChanged, LedgerConflict) as error:
            unreadable[name] = str(error)
    generations = [generation for item in lost for generation in ledger.generations(ledger.epoch(pipeline, item))]
    return sinks, unreadable, {number for item in generations for number in _both(ledger, item) if number <= cut.newest}


def _newest_cut(ledger: Ledger, pipeline: str) -> tuple[Epoch, EpochCut]:
    while True:
        newest = _newest_shown(ledger, pipeline)
        cut = _cut(ledger, newest)
        successor = ledger.last_successor(newest)
        if successor is None or successor.state not in SHOWN:
            return newest, cut
        # shown since the newest was asked for: what it replaced is gone, and the cut would have neither


def _cut_at(ledger: Ledger, epoch: Epoch) -> tuple[Epoch, EpochCut]:
    cut = _cut(ledger, _require_shown(epoch))
    _require_not_replaced(ledger, epoch)
    return epoch, cut


def _cut(ledger: Ledger, newest: Epoch) -> EpochCut:
    """Asked after `newest`: every smaller number was given out before, and what is shown meanwhile is shown by every
    sink. Whether one up to it was replaced meanwhile is to be asked after this."""
    unfinished = ledger.unfinished_epochs(newest.pipeline)
    hidden = {number for epoch in unfinished if epoch.state not in SHOWN for number in _both(ledger, epoch)}
    hidden |= _hidden_by_lost_ledger(ledger, newest)
    return EpochCut(newest.id, tuple(sorted(number for number in hidden if number <= newest.id)))


def _hidden_by_lost_ledger(ledger: Ledger, newest: Epoch) -> set[int]:
    """The epochs that a lost ledger has decided and only some sinks show, and those that it has replaced, as the last
    `renumber` has read it in the sinks; without what this ledger has shown itself since. A sink that joined behind an
    epoch doesn't lack it."""
    renumbering = ledger.pipeline_change(newest.pipeline, RENUMBERED)
    if renumbering is None:
        return set()
    first = {name: renumbering["since"].get(name) for name, spec in newest.plan.sinks.items() if _keeps_record(spec)}
    sinks_by_epoch, places = defaultdict[int, set[str]](set), defaultdict[str, set[int]](set)
    hidden = set[int]()
    for marker in renumbering["shown"]:
        epoch, place = marker["epoch"], "/".join((marker["span"] or "").split("/")[:2])
        if not _is_shown(ledger, newest.pipeline, epoch):
            sinks_by_epoch[epoch].add(marker["sink"])
            places[place].add(epoch)
            hidden.update(marker.get("replaced", ()))
    for place, epochs in places.items():  # the markers of tables only tell by their range what they have replaced
        last = max(epochs)
        if place:
            hidden |= (epochs | _known_at(ledger, newest, place, last)) - {last}
    older = [
        {name for name, start in first.items() if start is not None and start <= epoch} for epoch in sinks_by_epoch
    ]
    return hidden.union(
        epoch for epoch, sinks in zip(sinks_by_epoch, older, strict=True) if not sinks <= sinks_by_epoch[epoch]
    )


def _known_at(ledger: Ledger, newest: Epoch, place: str, last: int) -> set[int]:
    """Epochs of this ledger that epoch `last` of a lost ledger replaced, by the range in its marker."""
    kind, _, first = place.partition("/")
    if kind == "epoch":  # with state, all from that epoch on
        return {*range(int(first), last)} if newest.based_on is not None else {int(first)}
    original = ledger.epoch_of_interval(newest.pipeline, parse_span(place)[0])
    return {generation.id for generation in ledger.generations(original) if generation.id < last} if original else set()


def _keeps_record(spec: Json) -> bool:
    return Guarantee(Sink.from_spec(spec).guarantee) is not Guarantee.NONE


def _is_shown(ledger: Ledger, pipeline: str, epoch: int) -> bool:
    try:
        return ledger.epoch(pipeline, epoch).state in SHOWN
    except UnknownEpoch:
        return False


def _newest_shown(ledger: Ledger, pipeline: str) -> Epoch:
    epoch = ledger.last_epoch(pipeline)
    while epoch is not None and (epoch.state not in SHOWN or epoch.state is EpochState.REPLACED):
        epoch = ledger.epoch_before(pipeline, epoch.id)
    if epoch is None:
        raise UnknownEpoch(f"the ledger has no epoch of pipeline {pipeline} that every sink shows")
    return epoch


def _require_shown(epoch: Epoch) -> Epoch:
    if epoch.state is EpochState.VOID:
        raise UnknownEpoch(f"{epoch} is void: nothing of it is shown anywhere")
    if epoch.state not in SHOWN:
        raise OutOfOrder(f"{epoch} is {epoch.state}: not every sink shows it yet")
    return epoch


def _both(ledger: Ledger, epoch: Epoch) -> set[int]:
    """Epochs that some sinks may show and others not: an undecided epoch; for a decided one also those that it replaces
    and earlier generations, which must not reappear when the newest are hidden."""
    hidden = {epoch.id}
    for generation in ledger.generations(epoch) if epoch.state in DECIDED else ():
        if generation.generation is not None and generation.id <= epoch.id:
            first = generation.generation.replaces
            hidden |= {
                *range(first, (generation.generation.through or first) + 1),
                *(foreign for foreign, _ in generation.plan.foreign),
            }
    return hidden


def _require_not_replaced(ledger: Ledger, newest: Epoch) -> None:
    """Raise `UnknownEpoch` where an epoch up to `newest` has given its place to one after it: what stood there then is
    gone."""
    successor = ledger.last_successor(newest)
    if successor is not None and successor.generation is not None:
        raise UnknownEpoch(
            f"pipeline {newest.pipeline} can't be read as of epoch {newest.id} any more: epoch "
            f"{successor.generation.replaces} was replaced by epoch {successor.id} since "
            f"({successor.generation.reason}); ask for epoch {successor.id} or a later one"
        )

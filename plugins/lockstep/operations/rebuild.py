"""rebuild: make a lost ledger anew from what sinks and staging prove, into an empty one, and say what they don't.

A sink shows an epoch only once it was decided, so one marker proves the decision; a manifest is kept only once every
sink has shown the epoch. What no sink shows counts as never decided: nobody has seen it. Where that proves too little
to go on without doubling or losing rows, nothing is written.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Generation, Interval, Json, KeyedBy, Plan, SourceRange, Vote
from lockstep.errors import (
    FormatUnknown,
    IllegalTransition,
    IntervalMissing,
    InvalidPipeline,
    LedgerRefused,
    LockstepError,
    WalCorrupt,
)
from lockstep.ledger.rebuilding import RebuiltEpoch
from lockstep.observability.redaction import list_some
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import find_claims
from lockstep.protocol.identity import register_pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Guarantee, Marker, SinkContext, Txn, parse_span
from lockstep.wal.manifest import Manifest
from lockstep.wal.reading import SealedWal
from lockstep.wal.request import REQUEST, StageRequest
from lockstep.wal.savepoint import START
from lockstep.wal.staging import Execution, Staging

_log = logging.getLogger(__name__)
_NAMED = 10  #: epochs in one sentence
_NOBODY_KNOWS_WHY = "not known: the ledger was rebuilt"


@dataclass(frozen=True)
class Rebuilding:
    """What was found. `refused`: why nothing can be written; `unproven`: what a person agrees to; `left`: what lies
    around of epochs that nobody shows, by name. New epochs get numbers above `beyond`, tokens above `token`."""

    pipeline: str
    deployment: str
    epochs: tuple[RebuiltEpoch, ...]
    refused: tuple[str, ...]
    unproven: tuple[str, ...]
    left: tuple[str, ...]
    beyond: int
    token: int

    def to_json(self) -> Json:
        """What the ledger keeps of it, and programs are told."""
        return {
            "pipeline": self.pipeline,
            "deployment": self.deployment,
            "epochs": len(self.epochs),
            "half_published": [one.id for one in self.epochs if not one.published],
            "refused": list(self.refused),
            "unproven": list(self.unproven),
            "left": list(self.left),
            "beyond": self.beyond,
            "token": self.token,
        }


def look(runtime: Runtime, deployment: str | None = None) -> Rebuilding:
    """Ask every sink of the definition, and staging. Nothing is written but what a sink's preflight makes.

    `deployment`: the id of the lost ledger, where staging has this pipeline under several, or none. Raises
    `IllegalTransition` if this ledger has epochs of the pipeline, `LedgerRefused` where nobody knows the id, and what
    sinks and staging raise.
    """
    if (last := runtime.ledger.last_epoch(runtime.pipeline)) is not None:
        raise IllegalTransition(
            f"this ledger has epochs of pipeline {runtime.pipeline} ({last} is the last): one that is older than its "
            f"sinks goes on with `lockstep renumber {runtime.pipeline}`, only an empty one is rebuilt"
        )
    return _Look(runtime, _find_deployment(runtime, deployment)).found()


def rebuild(runtime: Runtime, reason: str, deployment: str | None = None) -> Rebuilding:
    """Write what `look` finds. The half of an epoch that is missing is published by recovery, from its WAL.

    As the owner of the ledger's tables, and with everything stopped that ran with the lost ledger. Raises as `look`,
    and `IllegalTransition` where what was found doesn't suffice.
    """
    found = look(runtime, deployment)
    if found.refused:
        raise IllegalTransition(f"pipeline {runtime.pipeline} can't be rebuilt: {'; '.join(found.refused)}")
    reach(CrashPoint.REBUILD_BEFORE_ADOPT)
    runtime.ledger.adopt_deployment(found.deployment)
    reach(CrashPoint.REBUILD_AFTER_ADOPT)
    register_pipeline(runtime)
    reach(CrashPoint.REBUILD_BEFORE_RECORD)
    runtime.ledger.rebuild_pipeline(runtime.pipeline, found.epochs, found.beyond, found.token, found.to_json(), reason)
    reach(CrashPoint.REBUILD_AFTER_RECORD)
    _log.warning("pipeline %s: %s epochs are in the ledger again", runtime.pipeline, len(found.epochs))
    return found


def _find_deployment(runtime: Runtime, deployment: str | None) -> str:
    staging = runtime.staging
    known = [one for one in staging.deployments() if runtime.pipeline in staging.pipelines(one)]
    if deployment is not None:
        return deployment
    if len(known) == 1:
        return known[0]
    told = f"under {', '.join(known)}" if known else "nowhere"
    raise LedgerRefused(
        f"staging has pipeline {runtime.pipeline} {told}: say which ledger was lost by --deployment and its id (also "
        "the table lockstep_target of a warehouse, and markers, have it)"
    )


@dataclass(frozen=True)
class _Asked:
    """What a sink has told."""

    sink: Sink
    markers: Mapping[int, Marker]
    pending: tuple[Txn, ...]
    begun: Mapping[int, Marker]  #: of those of which some shards have one, and not all, or that are begun alone
    partly: tuple[int, ...]  #: those of them of which nobody knows how many shards there are
    target_id: str
    holds_rows: bool  #: two-phase: what was voted for is pending until it is shown
    may_hold_none: bool  #: or was voted for without a handle
    keeps_record: bool  #: whether a missing marker means anything
    beside: tuple[str, ...]  #: the pipeline's other sinks that own one of its tables
    now: str | None  #: of a former sink: the sink of the definition that owns its tables now

    @property
    def proofs(self) -> Mapping[int, Marker]:
        """Whatever proves that an epoch was decided."""
        return {**self.begun, **self.markers}


@dataclass(frozen=True)
class _Life:
    """What markers say of an epoch's range. `succeeded`: whether another one has taken its place."""

    interval: Interval
    generation: Generation | None
    succeeded: bool


@dataclass
class _Look:
    """One look at everything, and what is to be said of it."""

    runtime: Runtime
    deployment: str
    refused: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    noted: dict[str, list[int]] = field(default_factory=dict)  #: what isn't proven of single epochs: which
    _lives: dict[int, _Life] = field(default_factory=dict)  #: of an interval pipeline

    @cached_property
    def _specs(self) -> dict[str, Json]:
        """Of the definition's sinks, and of former ones as they would be now."""
        return dict(self.defined.sink_specs())

    @property
    def defined(self) -> Pipeline:
        return self.runtime.defined

    @property
    def staging(self) -> Staging:
        return self.runtime.staging

    @property
    def pipeline(self) -> str:
        return self.runtime.pipeline

    def found(self) -> Rebuilding:
        executions = self.staging.executions(self.deployment, self.pipeline)
        kept = self.staging.kept_epochs(self.deployment, self.pipeline)
        context = SinkContext(self.deployment, self.pipeline, self.runtime.connections)
        asked = [_ask(sink, context, set(kept)) for sink in self.defined.sinks]
        for one in [*asked]:  # what a renamed sink has shown under its former name stands in its table
            for name in {*one.beside} - self._specs.keys():
                spec = one.sink.spec()
                self._specs[name] = {**spec, "arguments": {**spec["arguments"], "name": name}}
                asked.append(_ask(Sink.from_spec(self._specs[name]), context, set(kept), now=one.sink.name))
        shown = sorted({number for one in asked for number in one.proofs})
        self._refuse_parts(asked)
        whole = [number for number in shown if not any(number in one.partly for one in asked)]
        self._lives = self._find_lives(whole, asked)
        epochs = [found for number in whole if (found := self._epoch(number, asked, executions, number in kept))]
        left = self._left(asked, executions, set(shown))
        self._tell_gaps(shown, kept)
        if self.defined.identity is KeyedBy.CURSOR:
            self._require_positions(epochs)
            epochs = self._with_claims(epochs)
        self._tell_what_nobody_knows(epochs, asked)
        token, beyond = self._largest(asked, executions, shown, kept)
        refused, unproven = tuple(self.refused), tuple(self.unproven)
        return Rebuilding(self.pipeline, self.deployment, tuple(epochs), refused, unproven, tuple(left), beyond, token)

    def _refuse_parts(self, asked: Iterable[_Asked]) -> None:
        for one in asked:
            if one.partly:
                self._refuse(
                    f"{one.sink.name} shows {_epochs(one.partly)} in part, some shards of several: only the lost "
                    "ledger knew how many there are"
                )

    def _refuse(self, why: str) -> None:
        self.refused.append(why)

    def _note(self, number: int, what: str) -> None:
        self.noted.setdefault(what, []).append(number)

    # --- one epoch ---

    def _epoch(
        self, number: int, asked: Sequence[_Asked], executions: Sequence[Execution], kept: bool
    ) -> RebuiltEpoch | None:
        markers = {one.sink.name: one.markers[number] for one in asked if number in one.markers}
        proofs = {one.sink.name: one.proofs[number] for one in asked if number in one.proofs}
        manifest_hash = self._agreed(number, proofs)
        if cut_off := [name for name, marker in proofs.items() if not marker.whole]:
            self._note(number, f"was cut off on its way to {', '.join(cut_off)}, and may be incomplete there")
        life = self._lives.get(number)
        if manifest_hash is None or (life is None and self.defined.identity is KeyedBy.INTERVAL):
            return None
        folders = [one for one in executions if one.epoch == number]
        wal = self._find_wal(folders, manifest_hash)
        archived = self._find_manifest(number, manifest_hash) if kept else None
        shown = {*markers, *(one.now for one in asked if one.sink.name in markers)}
        lacking = [one for one in asked if one.sink.name not in shown and one.keeps_record and one.now is None]
        lost = list[_Asked]()
        succeeded = life is not None and life.succeeded  # which isn't planned before all that
        if archived is not None or succeeded:  # every sink of its plan has shown it
            if lacking:
                self._note(number, f"was cleaned up, and {_names(lacking)} shows none of it: it came later, or lost it")
            lost, lacking = [one for one in lacking if min(one.markers, default=number) < number], []
        manifest = wal.manifest if wal else archived
        if lacking and not self._can_complete(number, lacking, wal, manifest_hash):
            return None
        if manifest is None and any(one.sink.adopts for one in asked):
            self._refuse(f"the manifest of epoch {number} isn't kept: nobody knows which files its tables have adopted")
        elif manifest is None:
            self._note(number, "has no kept manifest: `lockstep verify` can't compare it")
        votes = self._votes(number, asked, markers, [*lacking, *lost], manifest, manifest_hash)
        request = self._request(wal)
        tokens = self._tokens(number, asked, folders, votes, manifest)
        return RebuiltEpoch(
            id=number,
            interval=life.interval if life else None,
            generation=life.generation if life else None,
            plan=self._plan(number, request, votes),
            wal=self._folder(number, wal, manifest, proofs),
            manifest_hash=manifest_hash,
            summary=manifest.summary() if manifest else {"outputs": {}, "sources": {}},
            based_on=manifest.state.based_on if manifest and manifest.state else None,
            votes=votes,
            shown=frozenset(votes) - {one.sink.name for one in lacking},
            tokens=tokens,
            cleaned=succeeded or not (folders or lacking),
            kept=self._kept(wal) if succeeded else None,
            planned_at=request.timestamp if request else None,
        )

    def _agreed(self, number: int, markers: Mapping[str, Marker]) -> str | None:
        hashes = {marker.manifest_hash for marker in markers.values()}
        if len(hashes) == 1:
            return hashes.pop()
        self._refuse(
            f"sinks {', '.join(markers)} show epoch {number} of different manifests: one holds another life of it"
        )
        return None

    def _find_lives(self, whole: Sequence[int], asked: Sequence[_Asked]) -> dict[int, _Life]:
        """Which range each epoch has, and in whose place it stands, by what its markers carry. A range of which a life
        is missing, or two have one place, comes back in no part."""
        ranges: dict[Interval, dict[int, int]] = {}
        for number in whole:
            markers = [one.proofs[number] for one in asked if number in one.proofs]
            span = self._span(number, markers)
            if span is None:
                continue
            interval, generation = span
            lives = ranges.setdefault(interval, {})
            if generation in lives:
                told = f"epochs {lives[generation]} and {number} are both generation {generation} of {interval}"
                self._refuse(f"{told}: one of them is of another life of the ledger")
            lives[generation] = number
        found: dict[int, _Life] = {}
        for interval, lives in ranges.items():
            if self._refuse_gaps(interval, lives, asked):
                continue
            for place, number in lives.items():
                life = Generation(lives[0], place, lives[place - 1], _NOBODY_KNOWS_WHY) if place else None
                found[number] = _Life(interval, life, place + 1 in lives)
        if restated := [number for number, life in found.items() if life.generation]:
            self.unproven.append(
                f"why {_epochs(sorted(restated))} took the place of others isn't known, nor which runs and commands "
                "asked for it: one of these that is run again, or cleared, restates its range once more"
            )
        return found

    def _span(self, number: int, markers: Sequence[Marker]) -> tuple[Interval, int] | None:
        spans = {marker.span for marker in markers if marker.span}
        if self.defined.identity is KeyedBy.CURSOR:
            if spans:
                told = f"epoch {number} is a restatement, or has an interval ({spans.pop()})"
                self._refuse(f"{told}, and the definition's are numbers")
            elif any(marker.replaced for marker in markers):
                self._refuse(f"epoch {number} has taken the place of others: from where on isn't found again")
            return None
        if len(spans) != 1:
            told = f"the intervals {', '.join(sorted(spans))}" if spans else "no interval"
            self._refuse(f"the markers of epoch {number} carry {told}: what it has read would be shown twice")
            return None
        [span] = spans
        try:
            return parse_span(span)
        except (ValueError, IntervalMissing) as error:
            self._refuse(f"the markers of epoch {number} carry {span!a}, which is no interval: {error}")
            return None

    def _refuse_gaps(self, interval: Interval, lives: Mapping[int, int], asked: Sequence[_Asked]) -> bool:
        """Whether the lives of a range don't follow one another, in their order and by the markers' own word."""
        numbers = [lives[place] for place in sorted(lives)]
        if sorted(lives) != list(range(len(lives))):
            gone = ", ".join(str(place) for place in range(max(lives)) if place not in lives)
            self._refuse(
                f"{_epochs(numbers)} of {interval}: nobody has a marker of its generation {gone}, though such a marker "
                "stays for good: bring it back"
            )
            return True
        if numbers != sorted(numbers):
            self._refuse(f"the generations of {interval} are {_epochs(numbers)}, and none takes a younger one's place")
            return True
        for place, number in enumerate(numbers):
            told = {one for sink in asked if number in sink.proofs for one in sink.proofs[number].replaced}
            if strange := sorted(told - set(numbers[:place])):
                self._refuse(f"epoch {number} has replaced {_epochs(strange)}, which isn't a life of {interval}")
                return True
        return False

    def _kept(self, wal: SealedWal | None) -> tuple[str, int] | None:
        """What stays of an epoch that was replaced: its cleanup isn't done again, which would find that. Not a WAL that
        refers to another one: nothing says any more that this one has to stay for it."""
        if wal is None or wal.manifest.rows_in is not None or not self.defined.wal_retention.keeps:
            return None
        return wal.folder, sum(wal.manifest.outputs[name].bytes for name in wal.own)

    def _find_wal(self, folders: Iterable[Execution], manifest_hash: str) -> SealedWal | None:
        for one in folders:
            try:
                return self.staging.open(one.folder, manifest_hash)
            except (WalCorrupt, FormatUnknown) as error:
                _log.info("%s isn't the WAL: %s", one.folder, error)
        return None

    def _find_manifest(self, number: int, manifest_hash: str) -> Manifest | None:
        try:
            return self.staging.kept_manifest(self.deployment, self.pipeline, number, manifest_hash)
        except (WalCorrupt, FormatUnknown) as error:
            _log.info("epoch %s: %s", number, error)
            return None

    def _can_complete(self, number: int, lacking: Sequence[_Asked], wal: SealedWal | None, manifest_hash: str) -> bool:
        """Whether the rest of an epoch that some sinks show can be published without a doubt."""
        why = None
        if wal is None:
            why = "its WAL is not in staging"
        elif wal.manifest.rows_in is not None:
            why = f"its rows are in {wal.manifest.rows_in}, of an epoch that was replaced: who keeps that isn't known"
        else:
            try:
                wal.check()
            except (WalCorrupt, InvalidPipeline) as damage:
                why = str(damage)
        for one in lacking:
            if one.sink.numbers_rows and number not in one.begun:  # these are the very files, in their order
                why = f"nobody knows what {one.sink.name} has sent of it, and in how many transactions"
            elif one.holds_rows and not _pending_of(one, number, manifest_hash):
                others = [txn.handle for txn in one.pending if txn.epoch == number]
                if not one.may_hold_none:
                    why = f"{one.sink.name} neither shows nor holds it"
                elif others:  # whose marker would be in the way
                    why = f"{one.sink.name} holds {list_some(others, _NAMED)}, of another manifest: roll that back"
        if why is not None:
            self._refuse(
                f"epoch {number} is not shown by {_names(lacking)}, and others show it; it can't be completed: {why}. "
                "Take its rows and its marker out of those that show it, or bring the missing part back"
            )
        return why is None

    def _votes(
        self,
        number: int,
        asked: Sequence[_Asked],
        markers: Mapping[str, Marker],
        lacking: Sequence[_Asked],
        manifest: Manifest | None,
        manifest_hash: str,
    ) -> dict[str, Vote]:
        votes = {}
        for one in asked:
            rows = {
                output: manifest.outputs[output].rows
                for output in one.sink.outputs
                if manifest and output in manifest.outputs
            }
            name = one.sink.name
            if name in markers:
                # of what a table may have adopted nothing goes that was staged since its oldest vote
                token = manifest.token if one.sink.adopts and manifest else markers[name].token
                votes[name] = Vote(token, None, one.target_id, rows)
            elif one in lacking and one.holds_rows and (pending := _pending_of(one, number, manifest_hash)):
                held = max(pending, key=lambda txn: txn.token)
                votes[name] = Vote(held.token, held.handle, one.target_id, rows)
            elif (one in lacking or not one.keeps_record) and manifest is not None:
                votes[name] = Vote(manifest.token, None, one.target_id, rows)
        return votes

    def _tokens(
        self,
        number: int,
        asked: Sequence[_Asked],
        folders: Sequence[Execution],
        votes: Mapping[str, Vote],
        manifest: Manifest | None,
    ) -> tuple[int, ...]:
        tokens = {vote.token for vote in votes.values()} | {one.token for one in folders}
        tokens |= {one.proofs[number].token for one in asked if number in one.proofs}
        tokens |= {txn.token for one in asked for txn in one.pending if txn.epoch == number}
        tokens |= {one.token for one in self._states if one.epoch == number}
        return tuple(sorted(tokens | ({manifest.token} if manifest else set())))

    @cached_property
    def _states(self) -> list[Execution]:
        """What has written keyed state."""
        if self.defined.identity is KeyedBy.INTERVAL:
            return []
        found = self.staging.state(self.deployment, self.pipeline).executions()
        return [Execution(one.epoch, one.token, one.folder) for one in found if one.epoch != START]

    def _request(self, wal: SealedWal | None) -> StageRequest | None:
        if wal is None:
            return None
        try:
            return StageRequest.from_json(self.staging.read_json(wal.folder, REQUEST))
        except (LockstepError, KeyError, TypeError, ValueError) as error:
            _log.info("%s has no request that can be read: %s", wal.folder, error)
            return None

    def _plan(self, number: int, request: StageRequest | None, votes: Mapping[str, Vote]) -> Plan:
        """As it was, where it is kept; else of the sinks that have a part in it, as the definition has them now."""
        if self.defined.identity is KeyedBy.CURSOR:
            kept = self.staging.kept_plan(self.deployment, self.pipeline, number)
            if kept is not None:
                planned = Plan.from_json(kept)
                return Plan(planned.sources, self._sinks(votes, planned.sinks), planned.reads)
        sources: Mapping[str, SourceRange] = request.sources if request else {}
        return Plan(sources, self._sinks(votes, {}), self.defined.reads_from())

    def _sinks(self, votes: Mapping[str, Vote], planned: Mapping[str, Json]) -> dict[str, Json]:
        return {name: planned.get(name, self._specs[name]) for name in votes}

    def _folder(
        self, number: int, wal: SealedWal | None, manifest: Manifest | None, markers: Mapping[str, Marker]
    ) -> str:
        if wal is not None:
            return wal.folder
        token = manifest.token if manifest else min(marker.token for marker in markers.values())
        return self.staging.folder(self.deployment, self.pipeline, number, token)

    # --- all of them ---

    def _tell_gaps(self, shown: Sequence[int], kept: Sequence[int]) -> None:
        if lost := sorted(set(kept) - set(shown)):
            self._refuse(
                f"no sink shows {_epochs(lost)}, and every one did: their manifests are kept. Bring back what the "
                "sinks have lost, or move these manifests away if their rows may be shown again"
            )
        missing = sorted(set(range(1, (shown or [0])[-1])) - set(shown))
        if missing:
            self.unproven.append(f"nothing is known of {_epochs(missing)}: given up, or skipped by a person, or lost")

    def _require_positions(self, epochs: Sequence[RebuiltEpoch]) -> None:
        """Where each source goes on, and that nothing is missing before."""
        if not epochs:
            return
        unknown = [one.id for one in epochs if not one.plan.sources]
        last = epochs[-1]
        if unknown and not set(self.defined.sources) <= set(last.plan.sources):
            self._refuse(f"where {_epochs([last.id])} ended isn't known: its plan isn't kept, nor is its WAL")
        if unknown:
            self.unproven.append(f"where {_epochs(unknown)} began and ended isn't known")
        ends: dict[str, tuple[int, Json]] = {}
        for one in epochs:
            divided = {name: found for name, found in one.plan.sources.items() if not found.snapshot}
            for source, found in divided.items():
                before, end = ends.get(source, (one.id, found.start))
                if end != found.start and not any(before < number < one.id for number in unknown):
                    self._refuse(f"an epoch between {before} and {one.id} is lost: source {source} doesn't go on there")
                ends[source] = (one.id, found.end)
        if self.defined.state and last.based_on is None:
            self._refuse(f"the state of epoch {last.id} isn't known: its manifest isn't kept")

    def _with_claims(self, epochs: Sequence[RebuiltEpoch]) -> list[RebuiltEpoch]:
        """With the files that each one owns."""
        if self.refused:
            return list(epochs)
        found = [replace(one, claims=find_claims(self.runtime, one.plan) if one.plan.sources else {}) for one in epochs]
        if any(one.claims for one in found) and not all(one.plan.sources for one in found):
            self._refuse("which files earlier epochs have read isn't known, and they would be read again")
        return found

    def _tell_what_nobody_knows(self, epochs: Sequence[RebuiltEpoch], asked: Sequence[_Asked]) -> None:
        self.unproven += [f"{_epochs(numbers)}: {what}" for what, numbers in self.noted.items()]
        if silent := [one for one in asked if not one.keeps_record]:
            self.unproven.append(f"{_names(silent)} keeps no record: what was cleaned up counts as sent there")
        if self.defined.identity is KeyedBy.INTERVAL and epochs:
            self.unproven.append("which files each interval has read: late and changed ones aren't told any more")
        self.unproven.append(
            "what only the ledger knew is gone: its history, verdicts of audits, ranges given up, and what people said "
            "(renumber, redefine, override, resolve)"
        )

    def _left(self, asked: Sequence[_Asked], executions: Iterable[Execution], shown: set[int]) -> list[str]:
        """Of epochs that no sink shows. Where the next epoch reads what they have read, nobody may finish them."""
        pending = [f"{one.sink.name}: {txn.handle}" for one in asked for txn in one.pending if txn.epoch not in shown]
        states = [one.folder for one in self._states if one.epoch not in shown]
        left = [*pending, *states, *(one.folder for one in executions if one.epoch not in shown)]
        if left:
            self.unproven.append(
                "what no sink shows counts as never decided; what is left of it is nobody's, recovery names it until "
                f"it is rolled back, or deleted: {list_some(left, _NAMED)}"
            )
        if self.defined.identity is KeyedBy.CURSOR and (lock_holders := pending + states):
            self._refuse(
                "what no sink shows is read again, and would be shown twice if somebody finished what is left of it: "
                f"roll back, or delete, {list_some(lock_holders, _NAMED)}"
            )
        return left

    def _largest(
        self, asked: Sequence[_Asked], executions: Iterable[Execution], shown: Sequence[int], kept: Sequence[int]
    ) -> tuple[int, int]:
        """Token and number that nothing exceeds."""
        pairs = [(one.token, one.epoch) for one in [*executions, *self._states]]
        pairs += [(marker.token, marker.epoch) for one in asked for marker in one.proofs.values()]
        pairs += [(txn.token, txn.epoch) for one in asked for txn in one.pending]
        tokens, numbers = zip((0, 0), *pairs, strict=True)
        return max(tokens), max([*numbers, *shown, *kept])


def _ask(sink: Sink, context: SinkContext, kept: Container[int], now: str | None = None) -> _Asked:
    """`kept`: epochs that every sink has shown. Of any other a marker may be but one of several that it takes."""
    with sink.opened(context) as opened:
        opened.preflight(None)
        keeps = opened.guarantee is not Guarantee.NONE
        markers = {marker.epoch: marker for marker in opened.markers()} if keeps else {}
        begun = {one: found for one, found in markers.items() if one not in kept and opened.find_marker(one) is None}
        whole = {number: marker for number, marker in markers.items() if number not in begun}
        partly = tuple(number for number in begun if not opened.can_complete(number))
        holds, pending = isinstance(opened, TwoPhaseCommitSink), tuple(opened.pending())
        none = isinstance(opened, TwoPhaseCommitSink) and opened.may_hold_none
        beside = tuple(dict.fromkeys(name for name, _ in opened.markers_of_other_sinks()))
        return _Asked(sink, whole, pending, begun, partly, opened.target_id(), holds, none, keeps, beside, now)


def _pending_of(one: _Asked, number: int, manifest_hash: str) -> list[Txn]:
    return [txn for txn in one.pending if txn.epoch == number and txn.manifest == manifest_hash[:12]]


def _names(asked: Iterable[_Asked]) -> str:
    return ", ".join(one.sink.name for one in asked)


def _epochs(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"epoch{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:_NAMED]))}{more}"

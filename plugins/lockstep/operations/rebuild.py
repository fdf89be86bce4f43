"""rebuild: fill an empty ledger with what sinks and staging prove, and report what they don't prove.

A sink shows an epoch only after it was decided, so one marker proves the decision; a manifest is archived only after
every sink has shown the epoch. An epoch that no sink shows counts as never decided. Nothing is written if the proofs
don't exclude doubled or lost rows.
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
    """The result of a look. `refused`: why nothing can be written; `unproven`: what a person has to accept; `left`:
    remains of epochs that no sink shows, by name. New epochs get numbers above `beyond`, tokens above `token`."""

    pipeline: str
    deployment: str
    epochs: tuple[RebuiltEpoch, ...]
    refused: tuple[str, ...]
    unproven: tuple[str, ...]
    left: tuple[str, ...]
    beyond: int
    token: int

    def to_json(self) -> Json:
        """The form that the ledger keeps and `--json` prints."""
        return {
            "pipeline": self.pipeline,
            "deployment": self.deployment,
            "epochs": len(self.epochs),
            "half_published": [epoch.id for epoch in self.epochs if not epoch.published],
            "refused": list(self.refused),
            "unproven": list(self.unproven),
            "left": list(self.left),
            "beyond": self.beyond,
            "token": self.token,
        }


def look(runtime: Runtime, deployment: str | None = None) -> Rebuilding:
    """Ask every sink of the definition, and staging. Nothing is written except what a sink's preflight creates.

    `deployment`: id of the lost ledger, if staging has this pipeline under several or none. Raises `IllegalTransition`
    if this ledger has epochs of the pipeline, `LedgerRefused` for an unknown id, and what sinks and staging raise.
    """
    if (last := runtime.ledger.last_epoch(runtime.pipeline)) is not None:
        raise IllegalTransition(
            f"this ledger has epochs of pipeline {runtime.pipeline} ({last} is the last): one that is older than its "
            f"sinks goes on with `lockstep renumber {runtime.pipeline}`, only an empty one is rebuilt"
        )
    return _Look(runtime, _find_deployment(runtime, deployment)).rebuilding()


def rebuild(runtime: Runtime, reason: str, deployment: str | None = None) -> Rebuilding:
    """Write what `look` finds. The half of an epoch that is missing is published by recovery, from its WAL.

    As the owner of the ledger's tables, and with everything stopped that ran with the lost ledger. Raises as `look`,
    and `IllegalTransition` where what was found doesn't suffice.
    """
    rebuilding = look(runtime, deployment)
    if rebuilding.refused:
        raise IllegalTransition(f"pipeline {runtime.pipeline} can't be rebuilt: {'; '.join(rebuilding.refused)}")
    reach(CrashPoint.REBUILD_BEFORE_ADOPT)
    runtime.ledger.adopt_deployment(rebuilding.deployment)
    reach(CrashPoint.REBUILD_AFTER_ADOPT)
    register_pipeline(runtime)
    reach(CrashPoint.REBUILD_BEFORE_RECORD)
    runtime.ledger.rebuild_pipeline(
        runtime.pipeline, rebuilding.epochs, rebuilding.beyond, rebuilding.token, rebuilding.to_json(), reason
    )
    reach(CrashPoint.REBUILD_AFTER_RECORD)
    _log.warning("pipeline %s: %s epochs are in the ledger again", runtime.pipeline, len(rebuilding.epochs))
    return rebuilding


def _find_deployment(runtime: Runtime, deployment: str | None) -> str:
    staging = runtime.staging
    candidates = [name for name in staging.deployments() if runtime.pipeline in staging.pipelines(name)]
    if deployment is not None:
        return deployment
    if len(candidates) == 1:
        return candidates[0]
    where = f"under {', '.join(candidates)}" if candidates else "nowhere"
    raise LedgerRefused(
        f"staging has pipeline {runtime.pipeline} {where}: say which ledger was lost by --deployment and its id (also "
        "the table lockstep_target of a warehouse, and markers, have it)"
    )


@dataclass(frozen=True)
class _Asked:
    """The markers and transactions of a sink."""

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
        """Markers that prove a decision."""
        return {**self.begun, **self.markers}


@dataclass(frozen=True)
class _Place:
    """An epoch's range and generation by its markers. `succeeded`: another epoch has replaced it."""

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
    _places: dict[int, _Place] = field(default_factory=dict)  #: of an interval pipeline

    @cached_property
    def _specs(self) -> dict[str, Json]:
        """Specs of the definition's sinks, and of former ones with today's settings."""
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

    def rebuilding(self) -> Rebuilding:
        executions = self.staging.executions(self.deployment, self.pipeline)
        retained = self.staging.kept_epochs(self.deployment, self.pipeline)
        context = SinkContext(self.deployment, self.pipeline, self.runtime.connections)
        records = [_ask(sink, context, set(retained)) for sink in self.defined.sinks]
        for record in [*records]:  # what a renamed sink has shown under its former name stands in its table
            for name in {*record.beside} - self._specs.keys():
                spec = record.sink.spec()
                self._specs[name] = {**spec, "arguments": {**spec["arguments"], "name": name}}
                records.append(_ask(Sink.from_spec(self._specs[name]), context, set(retained), now=record.sink.name))
        published = sorted({number for record in records for number in record.proofs})
        self._refuse_parts(records)
        whole = [number for number in published if not any(number in record.partly for record in records)]
        self._places = self._find_generations(whole, records)
        epochs = [epoch for number in whole if (epoch := self._epoch(number, records, executions, number in retained))]
        leftovers = self._left(records, executions, set(published))
        self._tell_gaps(published, retained)
        if self.defined.identity is KeyedBy.CURSOR:
            self._require_positions(epochs)
            epochs = self._with_claims(epochs)
        self._tell_what_nobody_knows(epochs, records)
        token, beyond = self._largest(records, executions, published, retained)
        refused, unproven = tuple(self.refused), tuple(self.unproven)
        return Rebuilding(
            self.pipeline, self.deployment, tuple(epochs), refused, unproven, tuple(leftovers), beyond, token
        )

    def _refuse_parts(self, records: Iterable[_Asked]) -> None:
        for record in records:
            if record.partly:
                self._refuse(
                    f"{record.sink.name} shows {_epochs(record.partly)} in part, some shards of several: only the lost "
                    "ledger knew how many there are"
                )

    def _refuse(self, why: str) -> None:
        self.refused.append(why)

    def _note(self, number: int, what: str) -> None:
        self.noted.setdefault(what, []).append(number)

    # --- one epoch ---

    def _epoch(
        self, number: int, records: Sequence[_Asked], executions: Sequence[Execution], retained: bool
    ) -> RebuiltEpoch | None:
        markers = {record.sink.name: record.markers[number] for record in records if number in record.markers}
        proofs = {record.sink.name: record.proofs[number] for record in records if number in record.proofs}
        manifest_hash = self._agreed(number, proofs)
        if cut_off := [name for name, marker in proofs.items() if not marker.whole]:
            self._note(number, f"was cut off on its way to {', '.join(cut_off)}, and may be incomplete there")
        place = self._places.get(number)
        if manifest_hash is None or (place is None and self.defined.identity is KeyedBy.INTERVAL):
            return None
        folders = [record for record in executions if record.epoch == number]
        wal = self._find_wal(folders, manifest_hash)
        archived = self._find_manifest(number, manifest_hash) if retained else None
        publishing = {*markers, *(record.now for record in records if record.sink.name in markers)}
        lacking = [
            record
            for record in records
            if record.sink.name not in publishing and record.keeps_record and record.now is None
        ]
        lost = list[_Asked]()
        succeeded = place is not None and place.succeeded  # which isn't planned before all that
        if archived is not None or succeeded:  # every sink of its plan has shown it
            if lacking:
                self._note(number, f"was cleaned up, and {_names(lacking)} shows none of it: it came later, or lost it")
            lost, lacking = [record for record in lacking if min(record.markers, default=number) < number], []
        manifest = wal.manifest if wal else archived
        if lacking and not self._can_complete(number, lacking, wal, manifest_hash):
            return None
        if manifest is None and any(record.sink.adopts for record in records):
            self._refuse(f"the manifest of epoch {number} isn't kept: nobody knows which files its tables have adopted")
        elif manifest is None:
            self._note(number, "has no kept manifest: `lockstep verify` can't compare it")
        votes = self._votes(number, records, markers, [*lacking, *lost], manifest, manifest_hash)
        request = self._request(wal)
        tokens = self._tokens(number, records, folders, votes, manifest)
        return RebuiltEpoch(
            id=number,
            interval=place.interval if place else None,
            generation=place.generation if place else None,
            plan=self._plan(number, request, votes),
            wal=self._folder(number, wal, manifest, proofs),
            manifest_hash=manifest_hash,
            summary=manifest.summary() if manifest else {"outputs": {}, "sources": {}},
            based_on=manifest.state.based_on if manifest and manifest.state else None,
            votes=votes,
            shown=frozenset(votes) - {record.sink.name for record in lacking},
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
            f"sinks {', '.join(markers)} show epoch {number} of different manifests: one has another version of it"
        )
        return None

    def _find_generations(self, whole: Sequence[int], records: Sequence[_Asked]) -> dict[int, _Place]:
        """Range and generation of each epoch, by its markers. A range with a missing or duplicate generation isn't
        rebuilt at all."""
        ranges: dict[Interval, dict[int, int]] = {}
        for number in whole:
            markers = [record.proofs[number] for record in records if number in record.proofs]
            span = self._span(number, markers)
            if span is None:
                continue
            interval, generation = span
            numbers = ranges.setdefault(interval, {})
            if generation in numbers:
                problem = f"epochs {numbers[generation]} and {number} are both generation {generation} of {interval}"
                self._refuse(f"{problem}: one of them is of another ledger, or of this one before it was restored")
            numbers[generation] = number
        generations: dict[int, _Place] = {}
        for interval, numbers in ranges.items():
            if self._refuse_gaps(interval, numbers, records):
                continue
            for place, number in numbers.items():
                generation_data = (
                    Generation(numbers[0], place, numbers[place - 1], _NOBODY_KNOWS_WHY) if place else None
                )
                generations[number] = _Place(interval, generation_data, place + 1 in numbers)
        if restated := [number for number, generation_data in generations.items() if generation_data.generation]:
            self.unproven.append(
                f"why {_epochs(sorted(restated))} took the place of others isn't known, nor which runs and commands "
                "asked for it: one of these that is run again, or cleared, restates its range once more"
            )
        return generations

    def _span(self, number: int, markers: Sequence[Marker]) -> tuple[Interval, int] | None:
        spans = {marker.span for marker in markers if marker.span}
        if self.defined.identity is KeyedBy.CURSOR:
            if spans:
                problem = f"epoch {number} is a restatement, or has an interval ({spans.pop()})"
                self._refuse(f"{problem}, and the definition's are numbers")
            elif any(marker.replaced for marker in markers):
                self._refuse(f"epoch {number} has taken the place of others: from where on isn't found again")
            return None
        if len(spans) != 1:
            problem = f"the intervals {', '.join(sorted(spans))}" if spans else "no interval"
            self._refuse(f"the markers of epoch {number} carry {problem}: what it has read would be shown twice")
            return None
        [span] = spans
        try:
            return parse_span(span)
        except (ValueError, IntervalMissing) as error:
            self._refuse(f"the markers of epoch {number} carry {span!a}, which is no interval: {error}")
            return None

    def _refuse_gaps(self, interval: Interval, by_generation: Mapping[int, int], records: Sequence[_Asked]) -> bool:
        """True if the generations of a range aren't consecutive, or contradict the markers."""
        numbers = [by_generation[place] for place in sorted(by_generation)]
        if sorted(by_generation) != list(range(len(by_generation))):
            missing = ", ".join(str(place) for place in range(max(by_generation)) if place not in by_generation)
            self._refuse(
                f"{_epochs(numbers)} of {interval}: no sink has a marker of its generation {missing}, though markers "
                "are never deleted: bring it back"
            )
            return True
        if numbers != sorted(numbers):
            self._refuse(f"the generations of {interval} are {_epochs(numbers)}, and none takes a younger one's place")
            return True
        for place, number in enumerate(numbers):
            proofs = [record.proofs[number] for record in records if number in record.proofs]
            replaced = {epoch for proof in proofs for epoch in proof.replaced}
            if strange := sorted(replaced - set(numbers[:place])):
                self._refuse(f"epoch {number} has replaced {_epochs(strange)}, which isn't a generation of {interval}")
                return True
        return False

    def _kept(self, wal: SealedWal | None) -> tuple[str, int] | None:
        """The retained WAL of a replaced epoch, whose cleanup isn't repeated. Not a WAL that refers to another one,
        because the reference is lost with the ledger."""
        if wal is None or wal.manifest.rows_in is not None or not self.defined.wal_retention.keeps:
            return None
        return wal.folder, sum(wal.manifest.outputs[name].bytes for name in wal.own)

    def _find_wal(self, folders: Iterable[Execution], manifest_hash: str) -> SealedWal | None:
        for folder in folders:
            try:
                return self.staging.open(folder.folder, manifest_hash)
            except (WalCorrupt, FormatUnknown) as error:
                _log.info("%s isn't the WAL: %s", folder.folder, error)
        return None

    def _find_manifest(self, number: int, manifest_hash: str) -> Manifest | None:
        try:
            return self.staging.kept_manifest(self.deployment, self.pipeline, number, manifest_hash)
        except (WalCorrupt, FormatUnknown) as error:
            _log.info("epoch %s: %s", number, error)
            return None

    def _can_complete(self, number: int, lacking: Sequence[_Asked], wal: SealedWal | None, manifest_hash: str) -> bool:
        """True if the rest of an epoch that only some sinks show can be published safely."""
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
        for record in lacking:
            if record.sink.numbers_rows and number not in record.begun:  # these are the very files, in their order
                why = f"nobody knows what {record.sink.name} has sent of it, and in how many transactions"
            elif record.holds_rows and not _pending_of(record, number, manifest_hash):
                other_handles = [txn.handle for txn in record.pending if txn.epoch == number]
                if not record.may_hold_none:
                    why = f"{record.sink.name} neither shows nor holds it"
                elif other_handles:  # whose marker would be in the way
                    some = list_some(other_handles, _NAMED)
                    why = f"{record.sink.name} holds {some}, of another manifest: roll that back"
        if why is not None:
            self._refuse(
                f"epoch {number} is not shown by {_names(lacking)}, and others show it; it can't be completed: {why}. "
                "Take its rows and its marker out of those that show it, or bring the missing part back"
            )
        return why is None

    def _votes(
        self,
        number: int,
        records: Sequence[_Asked],
        markers: Mapping[str, Marker],
        lacking: Sequence[_Asked],
        manifest: Manifest | None,
        manifest_hash: str,
    ) -> dict[str, Vote]:
        votes = {}
        for record in records:
            rows = {
                output: manifest.outputs[output].rows
                for output in record.sink.outputs
                if manifest and output in manifest.outputs
            }
            name = record.sink.name
            if name in markers:
                # of what a table may have adopted nothing goes that was staged since its oldest vote
                token = manifest.token if record.sink.adopts and manifest else markers[name].token
                votes[name] = Vote(token, None, record.target_id, rows)
            elif record in lacking and record.holds_rows and (pending := _pending_of(record, number, manifest_hash)):
                newest = max(pending, key=lambda txn: txn.token)
                votes[name] = Vote(newest.token, newest.handle, record.target_id, rows)
            elif (record in lacking or not record.keeps_record) and manifest is not None:
                votes[name] = Vote(manifest.token, None, record.target_id, rows)
        return votes

    def _tokens(
        self,
        number: int,
        records: Sequence[_Asked],
        folders: Sequence[Execution],
        votes: Mapping[str, Vote],
        manifest: Manifest | None,
    ) -> tuple[int, ...]:
        tokens = {vote.token for vote in votes.values()} | {record.token for record in folders}
        tokens |= {record.proofs[number].token for record in records if number in record.proofs}
        tokens |= {txn.token for record in records for txn in record.pending if txn.epoch == number}
        tokens |= {record.token for record in self._states if record.epoch == number}
        return tuple(sorted(tokens | ({manifest.token} if manifest else set())))

    @cached_property
    def _states(self) -> list[Execution]:
        """Executions that have written keyed state."""
        if self.defined.identity is KeyedBy.INTERVAL:
            return []
        executions = self.staging.state(self.deployment, self.pipeline).executions()
        return [
            Execution(execution.epoch, execution.token, execution.folder)
            for execution in executions
            if execution.epoch != START
        ]

    def _request(self, wal: SealedWal | None) -> StageRequest | None:
        if wal is None:
            return None
        try:
            return StageRequest.from_json(self.staging.read_json(wal.folder, REQUEST))
        except (LockstepError, KeyError, TypeError, ValueError) as error:
            _log.info("%s has no request that can be read: %s", wal.folder, error)
            return None

    def _plan(self, number: int, request: StageRequest | None, votes: Mapping[str, Vote]) -> Plan:
        """The archived plan; without one, a plan of the participating sinks as defined now."""
        if self.defined.identity is KeyedBy.CURSOR:
            archived = self.staging.kept_plan(self.deployment, self.pipeline, number)
            if archived is not None:
                planned = Plan.from_json(archived)
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

    def _tell_gaps(self, published: Sequence[int], retained: Sequence[int]) -> None:
        if lost := sorted(set(retained) - set(published)):
            self._refuse(
                f"no sink shows {_epochs(lost)}, and every one did: their manifests are kept. Bring back what the "
                "sinks have lost, or move these manifests away if their rows may be shown again"
            )
        missing = sorted(set(range(1, (published or [0])[-1])) - set(published))
        if missing:
            self.unproven.append(f"nothing is known of {_epochs(missing)}: given up, or skipped by a person, or lost")

    def _require_positions(self, epochs: Sequence[RebuiltEpoch]) -> None:
        """Check that each source's position is known and nothing before it is missing."""
        if not epochs:
            return
        unknown = [epoch.id for epoch in epochs if not epoch.plan.sources]
        last = epochs[-1]
        if unknown and not set(self.defined.sources) <= set(last.plan.sources):
            self._refuse(f"where {_epochs([last.id])} ended isn't known: its plan isn't kept, nor is its WAL")
        if unknown:
            self.unproven.append(f"where {_epochs(unknown)} began and ended isn't known")
        ends: dict[str, tuple[int, Json]] = {}
        for epoch in epochs:
            divided = {
                name: source_range for name, source_range in epoch.plan.sources.items() if not source_range.snapshot
            }
            for source, source_range in divided.items():
                before, end = ends.get(source, (epoch.id, source_range.start))
                if end != source_range.start and not any(before < number < epoch.id for number in unknown):
                    self._refuse(
                        f"an epoch between {before} and {epoch.id} is lost: source {source} doesn't go on there"
                    )
                ends[source] = (epoch.id, source_range.end)
        if self.defined.state and last.based_on is None:
            self._refuse(f"the state of epoch {last.id} isn't known: its manifest isn't kept")

    def _with_claims(self, epochs: Sequence[RebuiltEpoch]) -> list[RebuiltEpoch]:
        """The epochs with the files that each owns."""
        if self.refused:
            return list(epochs)
        claimed = [
            replace(epoch, claims=find_claims(self.runtime, epoch.plan) if epoch.plan.sources else {})
            for epoch in epochs
        ]
        if any(epoch.claims for epoch in claimed) and not all(epoch.plan.sources for epoch in claimed):
            self._refuse("which files earlier epochs have read isn't known, and they would be read again")
        return claimed

    def _tell_what_nobody_knows(self, epochs: Sequence[RebuiltEpoch], records: Sequence[_Asked]) -> None:
        self.unproven += [f"{_epochs(numbers)}: {what}" for what, numbers in self.noted.items()]
        if silent := [record for record in records if not record.keeps_record]:
            self.unproven.append(f"{_names(silent)} keeps no record: what was cleaned up counts as sent there")
        if self.defined.identity is KeyedBy.INTERVAL and epochs:
            self.unproven.append("which files each interval has read: late and changed ones aren't told any more")
        self.unproven.append(
            "what only the ledger knew is gone: its history, verdicts of audits, ranges given up, and what people said "
            "(renumber, redefine, override, resolve)"
        )

    def _left(self, records: Sequence[_Asked], executions: Iterable[Execution], published: set[int]) -> list[str]:
        """Remains of epochs that no sink shows. They must not be finished, because the next epoch reads the same
        input."""
        pending = [
            f"{item.sink.name}: {txn.handle}" for item in records for txn in item.pending if txn.epoch not in published
        ]
        states = [item.folder for item in self._states if item.epoch not in published]
        leftovers = [*pending, *states, *(item.folder for item in executions if item.epoch not in published)]
        if leftovers:
            self.unproven.append(
                "what no sink shows counts as never decided; what is left of it is nobody's, recovery names it until "
                f"it is rolled back, or deleted: {list_some(leftovers, _NAMED)}"
            )
        if self.defined.identity is KeyedBy.CURSOR and (lock_holders := pending + states):
            self._refuse(
                "what no sink shows is read again, and would be shown twice if somebody finished what is left of it: "
                f"roll back, or delete, {list_some(lock_holders, _NAMED)}"
            )
        return leftovers

    def _largest(
        self,
        records: Sequence[_Asked],
        executions: Iterable[Execution],
        published: Sequence[int],
        retained: Sequence[int],
    ) -> tuple[int, int]:
        """Token and number that nothing exceeds."""
        pairs = [(execution.token, execution.epoch) for execution in [*executions, *self._states]]
        pairs += [(marker.token, marker.epoch) for execution in records for marker in execution.proofs.values()]
        pairs += [(txn.token, txn.epoch) for execution in records for txn in execution.pending]
        tokens, numbers = zip((0, 0), *pairs, strict=True)
        return max(tokens), max([*numbers, *published, *retained])


def _ask(sink: Sink, context: SinkContext, retained: Container[int], now: str | None = None) -> _Asked:
    """`retained`: epochs that every sink has shown. Of any other a marker may be but one of several that it takes."""
    with sink.opened(context) as opened:
        opened.preflight(None)
        keeps = opened.guarantee is not Guarantee.NONE
        markers = {marker.epoch: marker for marker in opened.markers()} if keeps else {}
        unfinished = {
            epoch: proof
            for epoch, proof in markers.items()
            if epoch not in retained and opened.find_marker(epoch) is None
        }
        whole = {number: marker for number, marker in markers.items() if number not in unfinished}
        partly = tuple(number for number in unfinished if not opened.can_complete(number))
        holds, pending = isinstance(opened, TwoPhaseCommitSink), tuple(opened.pending())
        none = isinstance(opened, TwoPhaseCommitSink) and opened.may_hold_none
        beside = tuple(dict.fromkeys(name for name, _ in opened.markers_of_other_sinks()))
        return _Asked(sink, whole, pending, unfinished, partly, opened.target_id(), holds, none, keeps, beside, now)


def _pending_of(record: _Asked, number: int, manifest_hash: str) -> list[Txn]:
    return [txn for txn in record.pending if txn.epoch == number and txn.manifest == manifest_hash[:12]]


def _names(records: Iterable[_Asked]) -> str:
    return ", ".join(record.sink.name for record in records)


def _epochs(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"epoch{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:_NAMED]))}{more}"

"""What the roles work with: a pipeline's name and definition, its ledger, its staging, its connections."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from lockstep.epoch import Attempt, Epoch, Json, RunKey, SourceRange
from lockstep.errors import InvalidPipeline, NotPrepared, RunMismatch, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.observability import suggestions
from lockstep.pipeline import Pipeline
from lockstep.sinks.base import Sink, current_type
from lockstep.sinks.kept import SinkPool
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Replaced, SinkContext, SinkEpoch
from lockstep.sources.base import OpenSource, SourceContext, planned_source
from lockstep.wal.reading import SealedWal
from lockstep.wal.staging import Staging
from lockstep.wal.state_staging import StateStaging

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Runtime:
    """`definition` None: only roles that need no source and no transform can run (recover, abort, verify, resolve)."""

    pipeline: str
    ledger: Ledger
    staging: Staging
    connections: Mapping[str, str]
    definition: Pipeline | None = None
    kept: SinkPool | None = None  #: where sinks stay open from one epoch to the next

    @classmethod
    def of(cls, definition: Pipeline, ledger: Ledger, staging: Staging, connections: Mapping[str, str]) -> Runtime:
        return cls(definition.name, ledger, staging, connections, definition)

    @property
    def defined(self) -> Pipeline:
        """Raises `InvalidPipeline` where the definition isn't known."""
        if self.definition is None:
            raise InvalidPipeline(f"pipeline {self.pipeline}: this needs its definition, not only its name")
        return self.definition

    def find_attempt(self, run: RunKey) -> Attempt | None:
        """The attempt of this run's own `begin`, if it got to open one. Raises `RunMismatch` if the run id stands for
        another pipeline's epoch, or for another interval than the run is to move."""
        attempt = self.ledger.find_run(run)
        if attempt is None:
            return None
        known = self.epoch_of(attempt)
        if known.pipeline != self.pipeline or run.interval not in (None, known.interval):
            asked = f"{self.pipeline}{f' {run.interval}' if run.interval else ''}"
            raise RunMismatch(
                f"run {run.run_id} of {run.dag_id} stands for {known}, and is asked for {asked}: a run id is one "
                "epoch's for good, so nothing was done. Run it under a new run id (run_epoch: another run_id, or none; "
                "Airflow: trigger its interval again)"
            )
        return attempt

    def attempt_of(self, run: RunKey) -> Attempt:
        """The attempt of this run's own `begin`. Raises `RunMismatch`, `UnknownEpoch` if it never got to open one."""
        attempt = self.find_attempt(run)
        if attempt is None:
            raise UnknownEpoch(
                f"run {run.run_id} of {run.dag_id} has no attempt in the ledger, whatever its "
                f"task states say: clear from begin: {suggestions.clear(run.dag_id, run.run_id)}"
            )
        return attempt

    def epoch_of(self, attempt: Attempt) -> Epoch:
        return self.ledger.epoch(attempt.pipeline, attempt.epoch)

    def sink_context(self) -> SinkContext:
        return SinkContext(self.ledger.deployment(), self.pipeline, self.connections)

    def source_context(self, name: str) -> SourceContext:
        """For a source that is asked about frozen ranges; to plan it needs to know more."""
        return SourceContext(
            self.pipeline, name, partial(self.ledger.find_claimed_paths, self.pipeline, name), self.connections
        )

    def open_source(self, name: str, planned: SourceRange) -> AbstractContextManager[OpenSource]:
        """The source as its plan froze it, for questions about the range, until the block ends. Raises
        `InvalidPipeline`."""
        defined = self.definition.sources.get(name) if self.definition else None
        return planned_source(name, planned.spec, defined).opened(self.source_context(name))

    def states(self) -> StateStaging:
        """Where the pipeline's keyed state is."""
        return self.staging.state(self.ledger.deployment(), self.pipeline)

    def sink_of(self, epoch: Epoch, name: str) -> Sink:
        """The sink as the epoch's plan froze it. Raises `UnknownEpoch` if the plan has no such sink."""
        if name not in epoch.plan.sinks:
            raise UnknownEpoch(f"{epoch} was planned without sink {name}; it has {', '.join(epoch.plan.sinks)}")
        return self.sink_from(epoch.plan.sinks[name])

    def sink_from(self, spec: Json) -> Sink:
        """The sink of a frozen spec, with the operational arguments that are in force now: a person's, else those of
        the definition, else of the one that began last, else what an old plan says. Raises `InvalidPipeline`."""
        planned = Sink.from_spec(spec)
        if not planned.operational:
            return planned
        found = self.ledger.settings(self.pipeline, planned.name)
        deployed = self._deployed(planned, found.deployed)
        try:
            planned = Sink.from_spec(spec, deployed)
        except InvalidPipeline as error:  # of a definition that is another one in more than these
            _log.warning("%s; sink %s works as it was planned", error, planned.name)
            deployed = {}
        if not found.override:
            return planned
        told = ", ".join(f"{name}={value}" for name, value in found.override.items())
        _log.info("sink %s works with %s, as a person said", planned.name, told)
        try:
            return Sink.from_spec(spec, {**deployed, **found.override})
        except InvalidPipeline as error:  # of a definition that was another one when that was said
            raise InvalidPipeline(
                f"{error}; a person said {told}: take it back with `lockstep override {self.pipeline} {planned.name} "
                "--clear --reason …`"
            ) from error

    @contextmanager
    def opened(self, sink: Sink) -> Iterator[OpenSink]:
        """The sink, connected until the block ends, or for longer where this runtime keeps its sinks."""
        keep = self.kept.opened if self.kept else Sink.opened
        with keep(sink, self.sink_context()) as found:
            yield found

    @contextmanager
    def beside(self) -> Iterator[Runtime]:
        """The same on connections of its own, for one thread that moves many epochs: its sinks stay open between them
        where they can."""
        kept = SinkPool()
        with closing(self.ledger.clone()) as ledger, closing(kept):
            yield replace(self, ledger=ledger, kept=kept)

    def sink_to_sweep(self, spec: Json) -> Sink:
        """The same to be looked into and tidied up, which needs no settings: as it was planned where a person's word,
        said of the sink as it is now, doesn't go with it. Raises `InvalidPipeline` if its class is gone."""
        try:
            return self.sink_from(spec)
        except InvalidPipeline as error:
            planned = Sink.from_spec(spec)
            _log.info("%s; sink %s is looked into as it was planned", error, planned.name)
            return planned

    def _deployed(self, planned: Sink, kept: Json) -> Mapping[str, Json]:
        """`kept`: as the ledger has it from the definition that began last."""
        if self.definition is not None:
            kept = self.definition.sink_settings().get(planned.name, kept)
        return kept["arguments"] if kept and current_type(kept["type"]) == planned.spec()["type"] else {}

    def sink_epoch(self, epoch: Epoch, token: int) -> SinkEpoch:
        """What a sink is told of a sealed epoch."""
        told = SinkEpoch(epoch.id, token, epoch.manifest_hash or "", epoch.planned_at, epoch.interval)
        if epoch.generation is None:
            return told
        before, generation = self.ledger.replaced(epoch), epoch.generation
        known, foreign = (
            tuple(map(_to_replaced, before)),
            tuple(Replaced(*one, foreign=True) for one in epoch.plan.foreign),
        )
        earlier = tuple(self._replaced_by(before))
        lacking = {one.id for one in (*foreign, *earlier) if one.foreign}
        return replace(
            told,
            replaced=(*foreign, *known) if epoch.interval else (*known, *foreign),
            earlier=earlier,
            generation=generation.number + len(lacking),
            root=generation.through or epoch.root,
            lacking=frozenset(lacking),
        )

    def _replaced_by(self, lives: Iterable[Epoch]) -> Iterator[Replaced]:
        """The lives before these, and before those, each with the number of the one that took its place."""
        ahead = list(lives)
        while ahead:
            replaced_by = ahead.pop()
            before = self.ledger.replaced(replaced_by)
            yield from (Replaced(*one, replaced_by=replaced_by.id, foreign=True) for one in replaced_by.plan.foreign)
            yield from (replace(_to_replaced(one), replaced_by=replaced_by.id) for one in before)
            ahead += before

    def sealed_outputs(self, epoch: Epoch, sink: OpenSink) -> SealedOutputs:
        """The sink's outputs of the sealed WAL, opened when first iterated."""
        return SealedOutputs(self.staging, epoch, sink.outputs)


def _to_replaced(epoch: Epoch) -> Replaced:
    outputs = epoch.summary["outputs"] if epoch.summary else {}
    return Replaced(epoch.id, epoch.manifest_hash or "", {name: output["rows"] for name, output in outputs.items()})


@dataclass(frozen=True)
class SealedOutputs:
    """Opens the WAL only when somebody reads it: to commit a prepared branch needs none. Raises `WalCorrupt`."""

    staging: Staging
    epoch: Epoch
    outputs: tuple[str, ...]

    def __iter__(self) -> Iterator[Batches]:
        return iter(open_wal(self.staging, self.epoch).outputs(self.outputs))


def open_wal(staging: Staging, epoch: Epoch) -> SealedWal:
    """The epoch's sealed WAL, or what was staged in its place. Raises `WalCorrupt` if it isn't what the ledger knows,
    `NotPrepared` if there is none."""
    if epoch.wal is None or epoch.manifest_hash is None:
        raise NotPrepared(f"{epoch} is {epoch.state} and has no sealed WAL: clear from stage")
    if epoch.restaged is not None:
        return staging.open(epoch.restaged.wal, epoch.restaged.manifest_hash)
    return staging.open(epoch.wal, epoch.manifest_hash)

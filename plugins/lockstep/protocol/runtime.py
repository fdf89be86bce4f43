"""The environment of the roles: a pipeline's name and definition, its ledger, staging, connections and features."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from lockstep.epoch import Attempt, Epoch, Json, RunKey, SourceRange
from lockstep.errors import InvalidPipeline, NotPrepared, RunMismatch, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.observability import suggestions
from lockstep.pipeline import Pipeline
from lockstep.protocol.hooks import Feature
from lockstep.sinks.base import Sink, SinkPool, current_type
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, SinkContext, SinkEpoch
from lockstep.sources.base import OpenSource, SourceContext, planned_source
from lockstep.wal.reading import SealedWal
from lockstep.wal.staging import Staging
from lockstep.wal.state_staging import StateStaging

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Runtime:
    """The environment of every role. Built by `lockstep.features.assembly.runtime_for`.

    Without a `definition` only roles run that need no source and no transform: recover, abort, verify, resolve.
    """

    pipeline: str
    ledger: Ledger
    staging: Staging
    connections: Mapping[str, str]
    features: tuple[Feature, ...]
    definition: Pipeline | None = None
    kept: SinkPool | None = None  #: where sinks stay open from one epoch to the next

    def with_feature(self, feature: Feature) -> Runtime:
        """Return the same for one run that has a feature of its own, behind all others."""
        return replace(self, features=(*self.features, feature))

    @property
    def defined(self) -> Pipeline:
        """Raises `InvalidPipeline` where the definition isn't known."""
        if self.definition is None:
            raise InvalidPipeline(f"pipeline {self.pipeline}: this needs its definition, not only its name")
        return self.definition

    def find_attempt(self, run: RunKey) -> Attempt | None:
        """Return the attempt that this run's `begin` opened, if it did. Raises `RunMismatch` if the run id belongs to
        an epoch of another pipeline or interval."""
        attempt = self.ledger.find_run(run)
        if attempt is None:
            return None
        epoch = self.epoch_of(attempt)
        if epoch.pipeline != self.pipeline or run.interval not in (None, epoch.interval):
            expected = f"{self.pipeline}{f' {run.interval}' if run.interval else ''}"
            raise RunMismatch(
                f"run {run.run_id} of {run.dag_id} stands for {epoch}, and is asked for {expected}: a run id is one "
                "epoch's for good, so nothing was done. Run it under a new run id (run_epoch: another run_id, or none; "
                "Airflow: trigger its interval again)"
            )
        return attempt

    def attempt_of(self, run: RunKey) -> Attempt:
        """Return the attempt that this run's `begin` opened. Raises `RunMismatch`, `UnknownEpoch` if it didn't."""
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
        """Return the context of a source that is asked about frozen ranges. Planning needs more, see `make_plan`."""
        return SourceContext(
            self.pipeline, name, partial(self.ledger.find_claimed_paths, self.pipeline, name), self.connections
        )

    def open_source(self, name: str, planned: SourceRange) -> AbstractContextManager[OpenSource]:
        """Open the source as its plan froze it, for questions about the range. Raises `InvalidPipeline`."""
        defined = self.definition.sources.get(name) if self.definition else None
        return planned_source(name, planned.spec, defined).opened(self.source_context(name))

    def states(self) -> StateStaging:
        """Return the folders of the pipeline's keyed state."""
        return self.staging.state(self.ledger.deployment(), self.pipeline)

    def sink_of(self, epoch: Epoch, name: str) -> Sink:
        """Return the sink as the epoch's plan froze it. Raises `UnknownEpoch` if the plan has no such sink."""
        if name not in epoch.plan.sinks:
            raise UnknownEpoch(f"{epoch} was planned without sink {name}; it has {', '.join(epoch.plan.sinks)}")
        return self.sink_from(epoch.plan.sinks[name])

    def sink_from(self, spec: Json) -> Sink:
        """Return the sink of a frozen spec with the current operational arguments: a person's override, else the
        definition's, else those of the last `begin`, else the plan's. Raises `InvalidPipeline`."""
        planned = Sink.from_spec(spec)
        if not planned.operational:
            return planned
        settings = self.ledger.settings(self.pipeline, planned.name)
        deployed = self._deployed(planned, settings.deployed)
        try:
            planned = Sink.from_spec(spec, deployed)
        except InvalidPipeline as error:  # the definition differs in more than operational arguments
            _log.warning("%s; sink %s works as it was planned", error, planned.name)
            deployed = {}
        if not settings.override:
            return planned
        arguments = ", ".join(f"{name}={value}" for name, value in settings.override.items())
        _log.info("sink %s works with %s, as a person said", planned.name, arguments)
        try:
            return Sink.from_spec(spec, {**deployed, **settings.override})
        except InvalidPipeline as error:  # the definition was another one when that was said
            raise InvalidPipeline(
                f"{error}; a person said {arguments}: take it back with "
                f"`lockstep override {self.pipeline} {planned.name} --clear --reason …`"
            ) from error

    @contextmanager
    def opened(self, sink: Sink) -> Iterator[OpenSink]:
        """Connect the sink until the block ends, or for longer if this runtime has a pool."""
        keep = self.kept.opened if self.kept else Sink.opened
        with keep(sink, self.sink_context()) as opened:
            yield opened

    @contextmanager
    def for_thread(self) -> Iterator[Runtime]:
        """Yield a copy with connections of its own for one thread. Its sinks stay open from epoch to epoch."""
        pool = SinkPool()
        with closing(self.ledger.clone()) as ledger, closing(pool):
            yield replace(self, ledger=ledger, kept=pool)

    def sink_to_sweep(self, spec: Json) -> Sink:
        """Return the sink to sweep, which needs no settings: as it was planned if an override doesn't fit. Raises
        `InvalidPipeline` if its class no longer exists."""
        try:
            return self.sink_from(spec)
        except InvalidPipeline as error:
            planned = Sink.from_spec(spec)
            _log.info("%s; sink %s is swept as it was planned", error, planned.name)
            return planned

    def _deployed(self, planned: Sink, deployed: Json) -> Mapping[str, Json]:
        """Return the definition's operational arguments. `deployed`: the ledger's of the last `begin`."""
        if self.definition is not None:
            deployed = self.definition.sink_settings().get(planned.name, deployed)
        return deployed["arguments"] if deployed and current_type(deployed["type"]) == planned.spec()["type"] else {}

    def sink_epoch(self, epoch: Epoch, token: int) -> SinkEpoch:
        """Return the description of a sealed epoch for sinks."""
        described = SinkEpoch(epoch.id, token, epoch.manifest_hash or "", epoch.planned_at, epoch.interval)
        for feature in self.features:
            described = feature.describing(self, epoch, described)
        return described

    def sealed_outputs(self, epoch: Epoch, sink: OpenSink) -> SealedOutputs:
        """Return the sink's outputs of the sealed WAL, which is opened when they are first iterated."""
        return SealedOutputs(self.staging, epoch, sink.outputs)


@dataclass(frozen=True)
class SealedOutputs:
    """Outputs of a WAL that is opened when first read: committing a prepared branch needs none. Raises `WalCorrupt`."""

    staging: Staging
    epoch: Epoch
    outputs: tuple[str, ...]

    def __iter__(self) -> Iterator[Batches]:
        return iter(open_wal(self.staging, self.epoch).outputs(self.outputs))


def open_wal(staging: Staging, epoch: Epoch) -> SealedWal:
    """Return the epoch's sealed WAL, or the restaged one. Raises `WalCorrupt` if it isn't the one in the ledger,
    `NotPrepared` if there is none."""
    if epoch.wal is None or epoch.manifest_hash is None:
        raise NotPrepared(f"{epoch} is {epoch.state} and has no sealed WAL: clear from stage")
    if epoch.restaged is not None:
        return staging.open(epoch.restaged.wal, epoch.restaged.manifest_hash)
    return staging.open(epoch.wal, epoch.manifest_hash)

"""Identity: is a definition the pipeline that runs under its name, and a ledger the one whose epochs sinks show?"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lockstep.epoch import Epoch, Json
from lockstep.errors import InvalidPipeline, LedgerConflict, NameTaken, UnknownEpoch
from lockstep.ledger import LedgerReader
from lockstep.pipeline import Pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Marker
from lockstep.states import DECIDED

REDEFINED, RENUMBERED = "redefined", "renumbered"  #: as the ledger keeps them
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Places:
    """The places that a pipeline reads and fills, whatever their names. Snapshots don't count, as many pipelines read
    the same table. `reads` None: a plan of an older version, which doesn't say."""

    sources: frozenset[str]  #: names
    reads: frozenset[str] | None
    writes: frozenset[str]

    def shares_source(self, places: _Places) -> bool:
        if self.reads is None or places.reads is None:
            return bool(self.sources & places.sources)
        return bool(self.reads & places.reads)

    @property
    def read(self) -> str:
        return ", ".join(sorted(self.reads or {f"source {name}" for name in self.sources}))

    def __str__(self) -> str:
        return f"reads {self.read} and fills {', '.join(sorted(self.writes))}"


def register_pipeline(runtime: Runtime) -> None:
    """Store the pipeline's definition in the ledger. Raises `InvalidPipeline` if its kind of epochs has changed."""
    defined = runtime.defined
    runtime.ledger.ensure_pipeline(
        defined.name, defined.identity, defined.recovery_grace, defined.sink_settings(), defined.wal_retention
    )


def require_same_pipeline(runtime: Runtime) -> None:
    """Raise `NameTaken` if the definition shares no source and no sink with the pipeline that goes by its name."""
    last = runtime.ledger.last_epoch(runtime.pipeline)
    if last is None:
        return
    mine, theirs = _of_definition(runtime.defined), _of_epoch(last)
    if mine.shares_source(theirs):
        return
    if mine.writes & theirs.writes:
        _log.warning(
            "pipeline %s reads %s, and its last epoch read %s: what is published stays as it is",
            *(runtime.pipeline, mine.read, theirs.read),
        )
        return
    if not _is_redefined(runtime, mine):
        raise NameTaken(
            f"{last} {theirs}; the definition of pipeline {runtime.pipeline} {mine}: nothing is the same, so this "
            "looks like another pipeline under a name that is taken. Give it a name of its own; or, if it is what the "
            f"pipeline is from now on, say so: lockstep redefine {runtime.pipeline} --reason …"
        )


def require_known_markers(ledger: LedgerReader, pipeline: str, sink: OpenSink) -> list[Marker]:
    """Return the newest markers of `sink`. Raises `LedgerConflict` if they are of epochs that this ledger hasn't
    decided, or carry tokens that it never issued: it is older than the sink. Markers that a person has checked since
    (`renumber`) are known."""
    newest = sink.newest_markers()  # before the ledger is read: what is visible was decided earlier
    for marker in newest:
        if not _is_known(ledger, pipeline, marker) and marker.token > last_renumbered_token(ledger, pipeline):
            raise LedgerConflict(
                f"sink {sink.name} shows epoch {marker.epoch} of pipeline {pipeline} (token {marker.token}, "
                f"manifest {marker.manifest_hash[:12]}), which this ledger hasn't decided so: the ledger is older than "
                "its sinks, restored from a backup or promoted too early. Nothing is planned, or numbers would be "
                "given out twice. Restore it further if there is any way to (docs/ledger.md); else look what it lacks "
                f"and go on with: lockstep renumber {pipeline} --reason …"
            )
    return newest


def last_renumbered_token(ledger: LedgerReader, pipeline: str) -> int:
    """Return the largest token in use when a person last renumbered the pipeline; 0 if that never happened."""
    change = ledger.pipeline_change(pipeline, RENUMBERED)
    return int(change["token"]) if change else 0


def _is_known(ledger: LedgerReader, pipeline: str, marker: Marker) -> bool:
    try:
        epoch = ledger.epoch(pipeline, marker.epoch)
    except UnknownEpoch:
        return False
    decided = epoch.state in DECIDED and epoch.manifest_hash == marker.manifest_hash
    return decided and bool(ledger.find_issued_tokens(pipeline, marker.epoch, [marker.token]))


def describe_identity(pipeline: Pipeline) -> Json:
    """Return what the ledger stores of a definition that a person has declared to be the pipeline's."""
    places = _of_definition(pipeline)
    return {"sources": sorted(places.sources), "reads": sorted(places.reads or ()), "writes": sorted(places.writes)}


def _is_redefined(runtime: Runtime, mine: _Places) -> bool:
    change = runtime.ledger.pipeline_change(runtime.pipeline, REDEFINED)
    if change is None:
        return False
    accepted = _Places(frozenset(change["sources"]), frozenset(change["reads"]), frozenset(change["writes"]))
    return mine.shares_source(accepted) or bool(mine.writes & accepted.writes)


def _of_definition(pipeline: Pipeline) -> _Places:
    reads = {name: place for name, place in pipeline.reads_from().items() if not pipeline.sources[name].is_snapshot}
    writes = frozenset[str]().union(*(sink.writes_to() for sink in pipeline.sinks))
    return _Places(frozenset(reads), frozenset(reads.values()), writes)


def _of_epoch(epoch: Epoch) -> _Places:
    divided = epoch.plan.sources.keys() - {*epoch.plan.snapshots}
    reads = frozenset(place for name, place in epoch.plan.reads.items() if name in divided) or None
    return _Places(frozenset(divided), reads, frozenset().union(*map(_filled_by, epoch.plan.sinks.values())))


def _filled_by(spec: Json) -> frozenset[str]:
    try:
        return Sink.from_spec(spec).writes_to()
    except (InvalidPipeline, TypeError):  # its class no longer exists, or takes other arguments
        return frozenset({f"sink of type {spec['type']}"})

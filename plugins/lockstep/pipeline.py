"""A pipeline: named sources, one transform, named sinks. Imports no Airflow, so that any process can load it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from lockstep.audits.audit import Audit, Conserved, require_sound
from lockstep.definition.conservation import Conservation, require_known
from lockstep.definition.keyed_state import KeyedState
from lockstep.definition.user_code import hash_source
from lockstep.definition.wal_retention import WalRetention
from lockstep.epoch import Json, KeyedBy, require_name
from lockstep.errors import InvalidPipeline
from lockstep.sinks.base import Sink
from lockstep.sources.base import Source

#: (inputs) -> outputs, or with state (inputs, state) -> (outputs, changes); each a mapping of DataFrames by name
Transform: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Pipeline:
    """A declaration of what moves from which sources into which sinks.

    `transform` gets one DataFrame a source and returns one a named output; it may run again until the WAL is sealed and
    never after the decision. With `state`, which only a cursor pipeline may declare, it gets the `StateRows` of each
    name as second argument, and returns two mappings: the outputs, and the changes of each state. A version of the
    state goes once `keep_state` further epochs are published. `drop_state`: names that earlier epochs had and that may
    go; a state that is simply no longer declared is refused.

    `keep_wal`: how long sealed WALs stay after cleanup, a time or a number of epochs; None: cleanup deletes them.
    `audits` (see `lockstep.audits`) are asked of the sealed output before any sink takes part.

    `on_stuck`: what the next run does with a cursor's last epoch that its own run has left undecided, and of which
    nothing is sealed: "resume" it as it is, or "merge" it with what a new epoch would read.

    `max_in_flight` bounds the unpublished epochs of a cursor pipeline. `recovery_grace` is how long
    `recover` leaves an undecided attempt alone: longer than the DAG's own retries take. Raises `InvalidPipeline`.
    """

    name: str
    sources: Mapping[str, Source]
    transform: Transform
    sinks: Sequence[Sink]
    max_in_flight: int = 2
    recovery_grace: timedelta = timedelta(hours=2)
    state: Mapping[str, KeyedState] = field(default_factory=dict)
    keep_state: int = 10
    drop_state: Sequence[str] = ()
    keep_wal: timedelta | int | None = None
    audits: Sequence[Audit] = ()
    version: str | None = None  #: recorded by the seal; default: a hash of the transform's module
    conservation: Sequence[Conservation] = ()  #: how rows travel through the transform; the seal proves it
    on_stuck: Literal["resume", "merge"] = "resume"
    identity: KeyedBy = field(init=False)
    wal_retention: WalRetention = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_name("pipeline", self.name)
        for source in self.sources:
            require_name("source", source)
        if not self.sources or not self.sinks:
            raise InvalidPipeline(f"pipeline {self.name}: give at least one source and one sink")
        names = [sink.name for sink in self.sinks]
        if len(set(names)) != len(names):
            raise InvalidPipeline(f"pipeline {self.name}: two sinks share a name: {sorted(names)}")
        adopted = [sink.output for sink in self.sinks if sink.adopts]
        if twice := sorted({output for output in adopted if adopted.count(output) > 1}):
            raise InvalidPipeline(
                f"pipeline {self.name}: outputs {twice} have two sinks that adopt files, which one table at a time can "
                "have: return the rows as two outputs, one for each"
            )
        if self.max_in_flight < 1:
            raise InvalidPipeline(f"pipeline {self.name}: max_in_flight must be at least 1, is {self.max_in_flight}")
        object.__setattr__(self, "wal_retention", WalRetention.of(self.name, self.keep_wal))
        object.__setattr__(self, "identity", self._identity_of_sources())
        if self.on_stuck not in ("resume", "merge"):
            raise InvalidPipeline(f"pipeline {self.name}: on_stuck must be 'resume' or 'merge', is {self.on_stuck!r}")
        if self.on_stuck == "merge" and self.identity is KeyedBy.INTERVAL:
            raise InvalidPipeline(
                f"pipeline {self.name}: its epochs are intervals, and no other one may have the rows of one that is "
                "stuck; on_stuck='merge' is for a cursor's"
            )
        require_known(self.name, self.conservation, list(self.sources), self.outputs)
        self._require_conserved()
        self._require_sound_state()
        require_sound(self.name, self.audits, self.outputs, adopted)
        holding = [sink.name for sink in self.sinks if sink.holds_keys]
        if self.identity is KeyedBy.INTERVAL and len(holding) > 1:
            raise InvalidPipeline(
                f"pipeline {self.name}: sinks {holding} upsert with protocol='two_phase': two epochs could each hold "
                "keys in one that the other one waits for; say protocol='write_ahead' in all of them but one"
            )

    def _identity_of_sources(self) -> KeyedBy:
        """Return the identity of the sources that aren't snapshots: these go with either. Raises `InvalidPipeline`."""
        divided = {name: source.identity for name, source in self.sources.items() if not source.is_snapshot}
        if not divided:
            raise InvalidPipeline(
                f"pipeline {self.name}: all of its sources are snapshots, which epochs use nothing up of, so nothing "
                "says what an epoch is; have one whose rows are new ones in each"
            )
        if len({*divided.values()}) > 1:
            by_interval = sorted(name for name, kind in divided.items() if kind is KeyedBy.INTERVAL)
            by_cursor = sorted(divided.keys() - {*by_interval})
            raise InvalidPipeline(
                f"pipeline {self.name}: its sources mix intervals ({', '.join(by_interval)}) and cursors "
                f"({', '.join(by_cursor)}); an epoch is named by one of them: intervals run in any order, and a cursor "
                "only goes on. Have one of them read whole by each epoch, Snapshot(…), if its rows aren't used up; or "
                "make two pipelines of it"
            )
        [identity] = {*divided.values()}
        timed = sorted(name for name, source in self.sources.items() if source.identity is KeyedBy.INTERVAL)
        if identity is KeyedBy.CURSOR and timed:
            raise InvalidPipeline(
                f"pipeline {self.name}: its epochs are numbers, and snapshot {timed[0]} is another one in each "
                "interval: give its path no placeholder"
            )
        return identity

    def _require_conserved(self) -> None:
        declared = {output for conservation in self.conservation for output in conservation.outputs}
        audited = {output for audit in self.audits if isinstance(audit, Conserved) for output in audit.outputs}
        if silent := sorted(audited - declared):
            raise InvalidPipeline(
                f"pipeline {self.name}: an audit asks whether rows were conserved into {silent}: say in conservation= "
                "how they travel there"
            )

    def _require_sound_state(self) -> None:
        for name in self.state:
            require_name("state", name)
        if self.state and self.identity is KeyedBy.INTERVAL:
            raise InvalidPipeline(
                f"pipeline {self.name}: its epochs are intervals, which run in any order; state goes from one epoch to "
                "the next, so it needs sources with a cursor"
            )
        if self.keep_state < 1:
            raise InvalidPipeline(f"pipeline {self.name}: keep_state must be at least 1, is {self.keep_state}")
        if both := sorted(set(self.state) & set(self.drop_state)):
            raise InvalidPipeline(f"pipeline {self.name}: states {both} are declared and dropped at once")

    def __str__(self) -> str:
        return self.name  # Airflow keeps an argument of a mapped task as text: with addresses each parse is a new DAG

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that sinks take, in a stable order."""
        return tuple(dict.fromkeys(output for sink in self.sinks for output in sink.outputs))

    def sink_specs(self) -> dict[str, object]:
        """Return what a plan freezes of the sinks."""
        return {sink.name: sink.spec() for sink in self.sinks}

    def audit_specs(self) -> tuple[Json, ...]:
        """Return what a plan freezes of the audits."""
        return tuple(audit.spec() for audit in self.audits)

    def reads_from(self) -> dict[str, str]:
        """Return what a plan freezes about the place that each source reads."""
        return {name: source.reads_from() for name, source in self.sources.items()}

    def sink_settings(self) -> dict[str, object]:
        """Return the sinks' specs with the operational arguments instead of the frozen ones."""
        return {sink.name: {**sink.spec(), "arguments": sink.settings()} for sink in self.sinks if sink.operational}

    def code_version(self) -> str:
        """Return `version`, or 12 hex digits of the sha256 of the transform's module."""
        return self.version or hash_source(self.transform) or "unknown"

    def reference(self) -> str:
        """Return the `module:name` by which another process imports this pipeline. Raises `InvalidPipeline` if there is
        none."""
        name = self.transform.__module__
        module = sys.modules.get(name)
        for attribute, value in vars(module).items() if module else ():
            if value is self:
                return f"{name}:{attribute}"
        raise InvalidPipeline(
            f"pipeline {self.name}: another process can't import it; define it at the top of the module "
            f"that defines its transform ({name}), for spark-submit as spark_apps.<module>"
        )

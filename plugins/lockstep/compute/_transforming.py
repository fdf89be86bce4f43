"""A pipeline's transform, called: checks of what it returns, and its errors by kind and place without the trace.

The text of an error may quote a value of a row that the transform has looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lockstep.compute._conservation import Balances, conserved
from lockstep.compute._inputs import SourceInput
from lockstep.compute._quarantining import Quarantining
from lockstep.compute._state_writing import StateWriter
from lockstep.compute.state import StateRows
from lockstep.definition.user_code import describe_place
from lockstep.definition.windows import ABSORBED
from lockstep.errors import InvalidPipeline, LockstepError, StageFailed
from lockstep.observability.redaction import cause, describe_raised
from lockstep.pipeline import Pipeline
from lockstep.wal.request import StageRequest

T = TypeVar("T")
_STATE = "state:"  #: prefix of a state's frame among the frames by name
#: errors that a mistake in the code raises, again on every retry
_MISTAKES = (TypeError, NameError, AttributeError, LookupError, ImportError, AssertionError)


class _Unknown(KeyError):
    """The transform reads a name that doesn't exist."""


class ByName(dict[str, T]):
    """A transform's inputs or states by name; the error for a missing one lists the names that exist."""

    def __init__(self, kind: str, values: Mapping[str, T]) -> None:
        super().__init__(values)
        self.kind = kind

    def __missing__(self, name: object) -> T:
        raise _Unknown(f"asks for the {self.kind} {name!r}; there {_suggest(self, name)}")


def call_transform(pipeline: Pipeline, *arguments: Mapping[str, Any]) -> Any:
    """Call the transform. Raises `InvalidPipeline` for a mistake in it, `StageFailed` for an error that a retry may
    avoid."""
    try:
        return pipeline.transform(*arguments)
    except _Unknown as error:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: its transform {error.args[0]} ({describe_place(error, __file__)})"
        ) from cause(error, quotes=True)
    except LockstepError:
        raise
    except Exception as error:
        if isinstance(error, PySparkException) and not isinstance(error, _MISTAKES):
            raise  # Spark's error is more precise than the place of the query
        failure = InvalidPipeline if isinstance(error, _MISTAKES) else StageFailed
        condition = error.getCondition() if isinstance(error, PySparkException) else None  # it quotes no values
        kind = describe_raised(error, " ".join(filter(None, (type(error).__name__, condition))))
        place = describe_place(error, __file__)
        raise failure(f"pipeline {pipeline.name}: its transform raises {kind} ({place})") from cause(error, quotes=True)


def require_frames(pipeline: Pipeline, kind: str, frames: object) -> Mapping[str, DataFrame]:
    """The result if it is DataFrames by name. Raises `InvalidPipeline`. `kind`: the name is one of what."""
    example = "{" + ", ".join(f"{name!r}: …" for name in pipeline.outputs) + "}" if kind == "output" else "{…}"
    if not isinstance(frames, Mapping):
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: its transform returns {_kind_of(frames)}, expected are DataFrames by {kind}: "
            f"return {example}"
        )
    for name, frame in frames.items():
        if not isinstance(frame, DataFrame):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: its transform returns {_kind_of(frame)} for the {kind} {name!r}, expected "
                "is a DataFrame"
            )
    return frames


def require_outputs(pipeline: Pipeline, epoch: int, planned: Collection[str], returned: Collection[str]) -> None:
    """Raise `InvalidPipeline` unless the transform returns exactly what the sinks take; the sinks are frozen."""
    if set(planned) == set(returned):
        return
    lacking = [
        f"sink {sink.name} takes {output!r}, which it doesn't return"
        for sink in pipeline.sinks
        for output in sink.outputs
        if output not in returned
    ]
    idle = [f"no sink takes {output!r}" for output in returned if output not in planned]
    raise InvalidPipeline(
        f"pipeline {pipeline.name}: its transform returns the outputs {sorted(returned)}, its sinks take "
        f"{sorted(planned)}: {'; '.join([*lacking, *idle])}. Correct the transform and run the epoch again; or the "
        f"sinks, and then `lockstep replan {pipeline.name} {epoch} --reason 'other sinks'` before it is run again"
    )


def _suggest(names: Collection[str], name: object) -> str:
    close = get_close_matches(str(name), names, 1)
    listed = "is " + ", ".join(map(repr, names)) if len(names) == 1 else "are " + ", ".join(map(repr, names))
    return (listed if names else "is none") + (f"; did you mean {close[0]!r}?" if close and len(names) > 1 else "")


def _kind_of(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def require_deletes(pipeline: Pipeline, outputs: Mapping[str, DataFrame], balances: Balances) -> None:
    """Raise `InvalidPipeline` if a sink upserts sessions and can't delete those that later sessions absorb."""
    without_deletes = [
        (sink.name, output)
        for sink in pipeline.sinks
        for output in sink.outputs
        if output in outputs and sink.lacks_deletes(output)
    ]
    parts = [part for balance in balances.by_name.values() if balance.retracts for part in balance.written]
    for sink, output in without_deletes:
        if any(part.what == "results" and part.counted.observed.uses_in(outputs[output]) for part in parts):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: sink {sink} upserts {output}, which holds sessions that may be absorbed by "
                f'others: say deleted="{ABSORBED}" in the sink, or their rows would stay beside those of the sessions '
                "that they are part of now"
            )


@dataclass(frozen=True)
class Frames:
    """The frames of one run of a transform: a DataFrame for each output, and for each state that changes."""

    outputs: Mapping[str, DataFrame]
    changes: Mapping[str, DataFrame]
    has_enrichments: bool = False  #: true if it has enrichments, which may run only once

    @classmethod
    def of(cls, frames: Mapping[str, DataFrame]) -> Frames:
        """The inverse of `by_name`."""
        outputs = {name: frame for name, frame in frames.items() if ":" not in name}
        states = {name: frame for name, frame in frames.items() if name.startswith(_STATE)}
        return cls(outputs, {name.removeprefix(_STATE): frame for name, frame in states.items()})

    def by_name(self) -> dict[str, DataFrame]:
        """All frames, by names that are unique over outputs and states."""
        return {**self.outputs, **{f"{_STATE}{name}": frame for name, frame in self.changes.items()}}

    def collect_changes(self, states: Mapping[str, StateRows]) -> None:
        """Compute frames that are both an output and changes of a state once, if they are small."""
        for name, changes in self.changes.items():
            if any(changes is output for output in self.outputs.values()):
                StateWriter(states[name]).collect(changes)


@dataclass(frozen=True)
class TransformRun:
    """A pipeline's transform in one execution, with what its runs register; only the last run counts."""

    pipeline: Pipeline
    request: StageRequest
    states: Mapping[str, StateRows]
    balances: Balances
    quarantining: Quarantining

    def frames(self, inputs: Sequence[SourceInput]) -> Frames:
        """Call the transform; return its outputs, counted as they are written, and its changes of state."""
        pipeline = self.pipeline
        frames = ByName("input", {source.name: source.frame for source in inputs})
        changes: Mapping[str, DataFrame] = {}
        if self.states:
            outputs, changes = self._outputs_and_changes(frames)
        else:
            outputs = require_frames(pipeline, "output", call_transform(pipeline, frames))
        require_outputs(pipeline, self.request.epoch, self.request.outputs, outputs)
        require_deletes(pipeline, outputs, self.balances)
        marked = self.quarantining.mark(outputs)
        counted = conserved(pipeline, marked, self.balances, self.request.conserved, self.quarantining.offends)
        return Frames(self.quarantining.keep(counted), changes)

    def _outputs_and_changes(
        self, frames: Mapping[str, DataFrame]
    ) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
        pipeline = self.pipeline
        match call_transform(pipeline, frames, ByName("state", self.states)):
            case (outputs, changes):
                require_frames(pipeline, "output", outputs)
                require_frames(pipeline, "state", changes)
            case returned:
                raise InvalidPipeline(
                    f"pipeline {pipeline.name} has state: its transform must return two mappings, the outputs and the "
                    f"changes of each state, and returns a {type(returned).__name__}"
                )
        if unknown := sorted(set(changes) - set(self.states)):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: its transform returns changes of {unknown}, it declares "
                f"{sorted(self.states)}"
            )
        return outputs, changes

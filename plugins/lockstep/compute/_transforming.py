"""A pipeline's transform, called: checks of what it returns, and its errors by kind and place without the trace.

The text of an error may quote a value of a row that the transform has looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lockstep.compute._conservation import Balances
from lockstep.definition.user_code import describe_place
from lockstep.definition.windows import ABSORBED
from lockstep.errors import InvalidPipeline, LockstepError, StageFailed
from lockstep.observability.redaction import cause, describe_raised
from lockstep.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


T = TypeVar("T")
#: errors that a mistake in the code raises, again on every retry
_MISTAKES = (TypeError, NameError, AttributeError, LookupError, ImportError, AssertionError)


class _Unknown(KeyError):
    """The transform asked for a name that isn't there."""


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
        kind, place = describe_raised(error, _kind_of_error(error)), describe_place(error, __file__)
        raise failure(f"pipeline {pipeline.name}: its transform raises {kind} ({place})") from cause(error, quotes=True)


def require_frames(pipeline: Pipeline, kind: str, frames: object) -> Mapping[str, DataFrame]:
    """`found` if it is DataFrames by name. Raises `InvalidPipeline`. `kind`: the name is one of what."""
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


def _kind_of_error(error: Exception) -> str:
    """The error's class, and for pyspark's errors the condition, which quotes no values."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return " ".join(filter(None, (type(error).__name__, condition)))


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
    parts = [part for balance in balances.by_name.values() if balance.takes_back for part in balance.written]
    for sink, output in without_deletes:
        if any(part.what == "results" and part.counted.observed.uses_in(outputs[output]) for part in parts):
            raise InvalidPipeline(
                f"pipeline {pipeline.name}: sink {sink} upserts {output}, which holds sessions that may be absorbed by "
                f'others: say deleted="{ABSORBED}" in the sink, or their rows would stay beside those of the sessions '
                "that they are part of now"
            )

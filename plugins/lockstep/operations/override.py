"""override: change a sink's timeouts, shards or tries from now on, also for decided epochs.

For changes that can't wait for a deployment, and for recovery, which has no definition. The override is in the ledger
with its reason, and takes precedence over the deployed settings until it is cleared.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Iterator, Mapping

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, UnknownEpoch
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink


def override(runtime: Runtime, name: str, assigned: Iterable[str], reason: str) -> Mapping[str, Json]:
    """Keep the assignments ("name=value", to those in force); what is in force now. Raises `InvalidPipeline`."""
    plans = _plans(runtime, name)
    before = runtime.ledger.settings(runtime.pipeline, name).override
    settings = {**before, **dict(_typed(plans[-1], assignment) for assignment in assigned)}
    for spec in _specs(runtime, name):
        Sink.from_spec(spec, settings)  # whatever it refuses is refused here
    runtime.ledger.override_settings(runtime.pipeline, name, settings, reason)
    return settings


def clear_override(runtime: Runtime, name: str, reason: str) -> None:
    """The sink works as it is deployed. Raises `UnknownEpoch` where no override is in force, and no plan has it."""
    if not runtime.ledger.settings(runtime.pipeline, name).override:  # else it may be of a sink that was out meanwhile
        _plans(runtime, name)
    runtime.ledger.override_settings(runtime.pipeline, name, {}, reason)


def _plans(runtime: Runtime, name: str) -> list[Sink]:
    """The sink as each plan has it that may need it yet. Raises `UnknownEpoch`."""
    sinks = [Sink.from_spec(spec) for spec in _specs(runtime, name)]
    if not sinks:
        raise UnknownEpoch(
            f"no epoch of pipeline {runtime.pipeline} that is unfinished, or its last, has a sink {name}"
        )
    return sinks


def _specs(runtime: Runtime, name: str) -> Iterator[Json]:
    last = runtime.ledger.last_epoch(runtime.pipeline)
    for epoch in [*runtime.ledger.unfinished_epochs(runtime.pipeline), *([last] if last else [])]:
        if name in epoch.plan.sinks:
            yield epoch.plan.sinks[name]


def _typed(sink: Sink, assigned: str) -> tuple[str, Json]:
    name, _, text = assigned.partition("=")
    if name not in sink.operational:
        may = ", ".join(sorted(sink.operational)) or "nothing"
        raise InvalidPipeline(f"sink {sink.name}: {name!r} can't be overridden, only {may}: say name=value")
    kind, value = _kind(sink, name), _value(text)
    if kind is float and type(value) is int and abs(value) < 1 << 53:
        value = float(value)
    if type(value) is not kind or value in (math.inf, -math.inf):
        raise InvalidPipeline(f"sink {sink.name}: {name}={text}: that is no {kind.__name__}")
    return name, value


def _kind(sink: Sink, name: str) -> type:
    """The type of a setting, by its default if it has one: a float in a plan may happen to be a whole number."""
    default = inspect.signature(type(sink).__init__).parameters[name].default
    return type(sink.settings()[name] if default in (None, inspect.Parameter.empty) else default)


def _value(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text

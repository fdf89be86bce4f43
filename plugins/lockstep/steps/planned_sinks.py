"""A plan's sinks against the definition's."""

from __future__ import annotations

from lockstep.epoch import Epoch
from lockstep.runtime import Runtime
from lockstep.sinks.base import Sink


def find_changed_sinks(runtime: Runtime, epoch: Epoch) -> list[str]:
    """Names of the sinks that are others now than `epoch` was planned with, or that only one of the two has. Raises
    `InvalidPipeline` where the definition isn't known."""
    # through the sink: a release may have added an argument with a default that the plan doesn't know
    planned = {name: Sink.from_spec(spec).spec() for name, spec in epoch.plan.sinks.items()}
    defined = runtime.defined.sink_specs()
    return sorted(name for name in planned.keys() | defined.keys() if planned.get(name) != defined.get(name))

"""A plan's sinks against the definition's."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.epoch import Epoch
from lockstep.errors import RestateRefused
from lockstep.runtime import Runtime
from lockstep.sinks.base import Sink


def find_changed_sinks(runtime: Runtime, epoch: Epoch) -> list[str]:
    """Names of the sinks that are others now than `epoch` was planned with, or that only one of the two has. Raises
    `InvalidPipeline` where the definition isn't known."""
    # through the sink: a release may have added an argument with a default that the plan doesn't know
    planned = {name: Sink.from_spec(spec).spec() for name, spec in epoch.plan.sinks.items()}
    defined = runtime.defined.sink_specs()
    return sorted(name for name in planned.keys() | defined.keys() if planned.get(name) != defined.get(name))


def require_shown_alike(runtime: Runtime, replaced: Iterable[Epoch], doing: str, advice: str) -> None:
    """One decision swaps the rows in every sink that shows them. Raises `RestateRefused` where others do than are
    defined; `doing`: what can't be done then, `advice`: what to do first."""
    for one in replaced:
        if changed := find_changed_sinks(runtime, one):
            raise RestateRefused(
                f"can't {doing}: {one} was published with other sinks (changed: {', '.join(changed)}), and what those "
                f"show would stay; {advice}"
            )

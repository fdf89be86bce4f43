"""A plan's sinks and sources against the definition's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lockstep.epoch import Epoch, Json
from lockstep.errors import RestateRefused
from lockstep.observability import suggestions
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink, current_type
from lockstep.states import DECIDED, EpochState

#: arguments that no published row depends on; older versions froze some of the operational ones
_NOT_IN_ROWS = frozenset({"create", "lock_timeout", "on_missing", "on_restate", "register", "shards"})


def find_changed_sinks(runtime: Runtime, epoch: Epoch) -> list[str]:
    """Return the names of sinks whose definition differs from the plan of `epoch`, or that only one of the two has.
    Raises `InvalidPipeline` without a definition."""
    # through the sink: a release may have added an argument with a default that the plan doesn't know
    planned = {name: Sink.from_spec(spec).spec() for name, spec in epoch.plan.sinks.items()}
    defined = runtime.defined.sink_specs()
    return sorted(name for name in planned.keys() | defined.keys() if planned.get(name) != defined.get(name))


def require_shown_alike(runtime: Runtime, replaced: Iterable[Epoch], doing: str, advice: str) -> None:
    """Raise `RestateRefused` if a replaced epoch was published with other sinks than are defined now: one decision
    swaps the rows in every sink that shows them. `doing`: what is refused, `advice`: what to do first."""
    for epoch in replaced:
        if changed := find_changed_sinks(runtime, epoch):
            raise RestateRefused(
                f"can't {doing}: {epoch} was published with other sinks (changed: {', '.join(changed)}), and what "
                f"those show would stay; {advice}"
            )


def find_redefined(epoch: Epoch, sinks: Mapping[str, Json], reads: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sinks, and for an interval the sources, whose definition differs from a decided epoch's plan, such as
    "sink files". `sinks`, `reads`: what a plan would freeze of the definition. Imports no class of the plan."""
    if epoch.state not in DECIDED or epoch.state is EpochState.REPLACED:
        return ()
    planned = epoch.plan.sinks
    names = [f"sink {sink}" for sink in sorted({*planned, *sinks}) if _differs(planned.get(sink), sinks.get(sink))]
    if epoch.interval is not None and epoch.plan.reads and reads:
        names += [f"source {name}" for name in sorted({name for name, _ in epoch.plan.reads.items() ^ reads.items()})]
    return tuple(names)


def _differs(planned: Json, defined: Json) -> bool:
    """Compare two specs. An argument that only one of them has is a default in the other, or unknown to that release:
    it counts only if it is set, and never if published rows don't depend on it."""
    if planned is None or defined is None or current_type(planned["type"]) != current_type(defined["type"]):
        return True
    mine, theirs = (spec.get("arguments", {}) for spec in (planned, defined))
    both, every = mine.keys() & theirs.keys(), (mine.keys() | theirs.keys()) - _NOT_IN_ROWS
    return any(mine[name] != theirs[name] if name in both else mine.get(name) or theirs.get(name) for name in every)


def describe_redefined(epoch: Epoch, redefined: Sequence[str]) -> str:
    """Return a sentence that says what was redefined, and what can be done."""
    way = f"{suggestions.restate(epoch.pipeline, epoch.id)} reads it by the new definition"
    if any(name.startswith("sink ") for name in redefined):
        way = "to have its rows in the new sinks, too, move it by a pipeline of another name that has only those; "
        way += "`lockstep restate` needs the old ones, as what they show would stay"
    return f"{epoch} was decided by another definition of {', '.join(redefined)}, and stays as it is: {way}"

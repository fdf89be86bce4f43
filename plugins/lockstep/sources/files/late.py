"""Files that arrive for an interval after its epoch was decided: nobody reads them, so somebody has to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.epoch import Epoch, Json
from lockstep.sources.files.places import ROOTS, Places
from lockstep.states import DECIDED

#: Key of a position: the absolute path or pattern at which its files were looked for. A source that claims files by
#: their paths and puts it into its positions has its late files reported.
EXPECTS = "expects"

Claimed = Callable[[str, str, Iterable[str]], set[str]]  #: pipeline, source, paths → those that some epoch owns


def late_files(epoch: Epoch, claimed: Claimed) -> tuple[str, ...]:
    """Paths that match what a decided `epoch` looked for and stand in no plan. A folder that refuses a look says so."""
    if epoch.state not in DECIDED:
        return ()
    return tuple(
        path
        for name, planned in epoch.plan.sources.items()
        if isinstance(planned.end, dict) and isinstance(where := planned.end.get(EXPECTS), str)
        for path in _unclaimed(epoch.pipeline, name, where, _places(planned.end, where), claimed)
    )


def _places(end: Json, where: str) -> Places:
    roots = end.get(ROOTS)
    return Places(roots[-1]) if roots else Places.of(where)


def _unclaimed(pipeline: str, source: str, where: str, places: Places, claimed: Claimed) -> list[str]:
    try:
        found = places.files(where)
    except OSError as error:
        return [f"{where} (can't be listed: {error.strerror})"]
    taken = claimed(pipeline, source, {*found, *found.values()}) if found else set()
    return [path for name, path in found.items() if not {name, path} & taken]

"""Files that arrive for an interval after its epoch was decided: nobody reads them, so somebody has to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.epoch import Epoch
from lockstep.sources.files.paths import files_at
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
        for path in _unclaimed(epoch.pipeline, name, where, claimed)
    )


def _unclaimed(pipeline: str, source: str, where: str, claimed: Claimed) -> list[str]:
    try:
        found = files_at(where)
    except OSError as error:
        return [f"{where} (can't be listed: {error.strerror})"]
    taken = claimed(pipeline, source, found) if found else set()
    return [path for path in found if path not in taken]

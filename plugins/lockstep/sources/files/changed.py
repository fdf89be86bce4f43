"""Files that changed after an epoch took them: nobody reads them again, so somebody has to be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep.epoch import Claim, Epoch, Json
from lockstep.errors import SourceChanged, SourceNotReady
from lockstep.sources.files.frozen import FrozenFile
from lockstep.sources.files.growing import FrozenRange
from lockstep.states import DECIDED


@dataclass(frozen=True)
class ChangedFile:
    """`difference`: what was, and what is, in words."""

    path: str
    difference: str

    def __str__(self) -> str:
        return f"{self.path} ({self.difference})"


def changed_files(epoch: Epoch) -> tuple[ChangedFile, ...]:
    """Files of a decided `epoch` that are no longer what it read; not those that are gone, as files are archived.

    One look at each file's facts; of a growing one also its first and last bytes.
    """
    if epoch.state not in DECIDED:
        return ()
    ends = [planned.end for planned in epoch.plan.sources.values()]
    return tuple(changed for end in ends for fact in _facts(end) if (changed := _changed(fact)))


def changed_since(claims: Mapping[str, Claim]) -> list[ChangedFile]:
    """The same for claims on whole files, as the ledger keeps them."""
    known = [
        FrozenFile(claim.mtime_ns, path, claim.size)
        for path, claim in claims.items()
        if claim.ends is None and claim.size is not None and claim.mtime_ns is not None
    ]
    return [changed for file in known if (changed := _changed_file(file))]


def require_no_rest(claims: Mapping[str, Claim]) -> None:
    """Raise `SourceChanged` for files of which ranges were taken and bytes are left: nobody would read those."""
    left = [f"{path} (from byte {claim.ends})" for path, claim in claims.items() if _has_rest(claim)]
    if left:
        raise SourceChanged(
            f"growing files were read in part, and without grow nobody reads the rest: {shown(left, 3)}; set grow=True "
            "again until all is read, or move them away to go on without it"
        )


def _has_rest(claim: Claim) -> bool:
    try:
        return claim.ends is not None and claim.ends < FrozenFile.of(claim.path).size
    except SourceNotReady:
        return False


def shown(files: Iterable[object], most: int) -> str:
    """The first `most` of them in one line."""
    named = sorted(map(str, files))
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return ", ".join(named[:most]) + more


def _facts(end: Json) -> Iterator[Json]:
    files = end.get("files") if isinstance(end, dict) else None
    for fact in files if isinstance(files, list) else ():
        if isinstance(fact, dict) and {"path", "size", "mtime_ns"} <= fact.keys():
            yield fact


def _changed(fact: Json) -> ChangedFile | None:
    if "to" not in fact:
        return _changed_file(FrozenFile.from_json(fact))
    frozen = FrozenRange.from_json(fact)
    if not Path(frozen.path).exists():
        return None
    try:
        frozen.check()
    except SourceChanged as error:
        return ChangedFile(frozen.path, str(error))
    return None


def _changed_file(was: FrozenFile) -> ChangedFile | None:
    try:
        difference = was.differences(FrozenFile.of(was.path))
    except SourceNotReady:
        return None
    return ChangedFile(was.path, difference) if difference else None

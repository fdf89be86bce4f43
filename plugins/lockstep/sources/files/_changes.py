"""Files that came too late, or changed after an epoch took them: nobody reads them, so somebody has to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from lockstep.epoch import ChangedFile, Claim, Json, Position
from lockstep.errors import SourceChanged, SourceNotReady
from lockstep.observability.redaction import list_some
from lockstep.sources.files._file_system import FileSystem
from lockstep.sources.files._frozen_file import FrozenFile
from lockstep.sources.files._growth import FrozenRange
from lockstep.sources.files.places import EXPECTS, ROOTS, Places


def find_late(files: FileSystem, end: Position, claimed: Callable[[Iterable[str]], set[str]]) -> list[str]:
    """Paths that match what an interval's epoch looked for and that no epoch owns. A folder that refuses a look says
    so."""
    if not isinstance(where := end.get(EXPECTS), str):
        return []
    roots = end.get(ROOTS)
    places = Places(files, roots[-1]) if roots else Places.of(files, where)
    try:
        found = places.files_at(where)
    except OSError as error:
        return [f"{where} (can't be listed: {error.strerror})"]
    taken = claimed({*found, *found.values()}) if found else set()
    return [path for name, path in found.items() if not {name, path} & taken]


def find_changed(files: FileSystem, end: Position) -> list[ChangedFile]:
    """Files that are no longer what the range has of them; not those that are gone, as files are archived.

    One look at each file's facts; of a growing one also its first and last bytes.
    """
    return [changed for fact in _facts(end) if (changed := _changed(files, fact))]


def find_changed_since(files: FileSystem, claims: Mapping[str, Claim]) -> list[ChangedFile]:
    """The same for claims on whole files, as the ledger keeps them."""
    known = filter(None, map(FrozenFile.from_claim, claims.values()))
    return [changed for file in known if (changed := _changed_file(files, file))]


def require_no_rest(claims: Mapping[str, Claim]) -> None:
    """Raise `SourceChanged` for files of which ranges were taken and bytes are left: nobody would read those."""
    left = [f"{path} (from byte {claim.ends})" for path, claim in claims.items() if _has_rest(claim)]
    if left:
        raise SourceChanged(
            f"growing files were read in part, and without grow nobody reads the rest: {list_some(left, 3)}; set "
            "grow=True again until all is read, or move them away to go on without it"
        )


def _has_rest(claim: Claim) -> bool:
    try:
        return claim.ends is not None and claim.ends < FrozenFile.of(claim.path).size
    except SourceNotReady:
        return False


def _facts(end: Json) -> Iterator[Json]:
    for fact in end.get("files", ()):  # of a plan of old, perhaps by a source of somebody's own
        if isinstance(fact, dict) and {"path", "size", "mtime_ns"} <= fact.keys():
            yield fact


def _changed(files: FileSystem, fact: Json) -> ChangedFile | None:
    if "to" not in fact:
        return _changed_file(files, FrozenFile.from_json(fact))
    frozen = FrozenRange.from_json(fact)
    if not Path(frozen.path).exists():
        return None
    try:
        frozen.check()
    except SourceChanged as error:
        return ChangedFile(frozen.path, str(error))
    return None


def _changed_file(files: FileSystem, was: FrozenFile) -> ChangedFile | None:
    try:
        difference = was.differences(files.facts(was.path))
    except SourceNotReady:
        return None
    return ChangedFile(was.path, difference) if difference else None

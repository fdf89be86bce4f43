"""What is new in a watched folder. The ledger is asked for names by chunks: no list of all files is made or sent."""

from __future__ import annotations

import heapq
import logging
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from lockstep.epoch import ChangedFile, Claim, Json, Position
from lockstep.errors import SourceChanged, SourceNotReady, SourceRefused
from lockstep.observability.redaction import list_some
from lockstep.sources.base import SourceContext
from lockstep.sources.files.file_systems import FileSystem
from lockstep.sources.files.frozen import FileRange, FrozenFile, grown, next_range, require_apart, require_unknown
from lockstep.sources.files.paths import each_file, files_at, folder_of, require_readable

#: key of a position: the absolute path or pattern at which its files were looked for
EXPECTS = "expects"
ROOTS = "roots"  #: key of a position: the folders that the source's files were below, the last one now
_SHOWN_MOVED = 3


@dataclass(frozen=True)
class Places:
    """The names of the files below `root`. `same`: what that folder was called before; `others`: what may be others."""

    files: FileSystem
    root: str
    same: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    _folders: dict[str, str] = field(default_factory=dict, init=False)
    _seen: dict[tuple[int, int], str] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, files: FileSystem, where: str, start: Position | None = None, formerly: Sequence[str] = ()) -> Places:
        """`where`: an absolute pattern. `start`: the position before, `formerly`: what a person says of the root."""
        root = folder_of(where)
        before = [one for one in start[ROOTS] if one != root] if start else []
        same = [one for one in before if _is_same(one, root)]
        same += [one for one in formerly if one not in (root, *same)]
        return cls(files, root, tuple(same), tuple(one for one in before if one not in same))

    def to_json(self) -> list[str]:
        return [*self.others, *self.same, self.root]

    def name(self, path: str) -> str:
        """The name of a listed file, but for a link that the file itself may be: that costs a look at it."""
        if not self.files.has_links:
            return path
        folder, _, name = path.rpartition("/")
        if (known := self._folders.get(folder)) is None:
            known = self._folders[folder] = self._name_of_folder(folder)
        return path if known == folder else f"{known}/{name}"

    def true_name(self, path: str) -> str:
        """`name`, also where the file is a link."""
        if not self.files.has_links or not os.path.islink(path):  # noqa: PTH114 - one of very many
            return self.name(path)
        return self.name(os.path.realpath(path))

    def files_at(self, where: str) -> dict[str, str]:
        """The finished files that a pattern means now, path by name, in the order of their paths."""
        found: dict[str, str] = {}
        for path in files_at(self.files, where):
            name = self.true_name(path)
            found[name] = path if name == path else found.get(name, path)
        return found

    def former(self, name: str) -> list[str]:
        """What the file was called as long as the root had other names."""
        return [moved for root in self.same if (moved := self._below(root, name))]

    def require_not_moved(self, context: SourceContext, new: Mapping[str, str]) -> None:
        """Raise `SourceChanged` if unclaimed files, path by name, were claimed below another root."""
        for other in self.others:
            paths = {moved: path for name, path in new.items() if (moved := self._below(other, name))}
            claims = context.claims(paths) if paths else {}
            if read := sorted(paths[name] for name, claim in claims.items() if self._may_be(claim, paths[name])):
                raise SourceChanged(
                    f"source {context.source}: its files were read below {other}, and {self.root} has {len(read)} that "
                    f"have the same names and sizes ({', '.join(read[:_SHOWN_MOVED])}): if it is that folder, moved or "
                    f"mounted elsewhere, say formerly=({other!r},), and what was read there is not read again; if "
                    "these are other files, give the source another name"
                )

    def _may_be(self, claim: Claim, path: str) -> bool:
        size = self.files.facts(path).size
        return size >= claim.ends if claim.ends is not None else claim.size in (None, size)

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self.root)

    def _below(self, root: str, name: str) -> str | None:
        below = self.root.rstrip("/") + "/"
        return f"{root.rstrip('/')}/{name.removeprefix(below)}" if name.startswith(below) else None

    def _name_of_folder(self, folder: str) -> str:
        real, root = os.path.realpath(folder), self._real_root
        self._require_one_name(real)
        if real == root:
            return self.root.rstrip("/")
        below = root.rstrip("/") + "/"
        return f"{self.root.rstrip('/')}/{real.removeprefix(below)}" if real.startswith(below) else real

    def _require_one_name(self, folder: str) -> None:
        """A folder that is mounted at two places has two names that no link explains."""
        facts = os.stat(folder)  # noqa: PTH116
        other = self._seen.setdefault((facts.st_dev, facts.st_ino), folder)
        if other != folder and facts.st_ino:  # some file systems number nothing
            raise SourceRefused(
                f"folders {other} and {folder} are one folder under two names, by a mount: its files would be read "
                "twice; have the source's path mean only one of them"
            )


def require_one_name(files: Iterable[FrozenFile], places: Places, everywhere: str) -> None:
    """Raise `SourceRefused` for a hard link: a file with another name among those that the source ever reads.

    `everywhere`: the pattern of all of these. They are looked at only if one of `files` has several names.
    """
    known: dict[tuple[int, int] | None, FrozenFile] = {}
    for file in (file for file in files if file.inode is not None):
        other = known.setdefault(file.inode, file)
        if other is not file and (file.links > 1 or file == replace(other, path=file.path)):
            raise _linked(other.path, file.path)
    linked = {file.inode: file for file in known.values() if file.links > 1}
    for path in each_file(places.files, everywhere) if linked else ():
        found = linked.get(_inode(path))
        if found is not None and places.true_name(path) != found.name:
            raise _linked(found.path, path)


def _linked(path: str, other: str) -> SourceRefused:
    return SourceRefused(
        f"files {path} and {other} are one file under two names, by a hard link: it would be read twice; remove one of "
        "the names, or have the source's path mean only one"
    )


def _inode(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _is_same(folder: str, other: str) -> bool:
    try:
        return Path(folder).samefile(other)
    except OSError:
        return False


CHUNK = 10_000
_SHOWN_CHANGED = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WatchedFolder:
    """A folder or pattern, and about how much of it an epoch takes."""

    where: str
    places: Places
    max_files: int | None = None
    max_bytes: int | None = None
    hash: bool = False
    header: bool = False  #: the first line of a file that grows is no record

    def new_files(self, context: SourceContext) -> list[FrozenFile]:
        """The oldest files that nobody owns, within the caps. Says in the log which consumed ones have changed.

        Raises `SourceChanged` for a file that was read as a growing one, and not to its end, and for one of a folder
        that has moved; `SourceRefused` for one with two names, or a name that Spark can't read.
        """
        new: dict[str, str] = {}
        compared: set[str] = set()
        for number, chunk in enumerate(self._chunks(), start=1):
            taken = self._sift(context, chunk, new)
            if random.randrange(number) == 0:  # noqa: S311 - one chunk of all, each as likely as the others
                compared = taken
        self._compare(context, compared)
        self.places.require_not_moved(context, new)
        oldest = (self.places.files.facts(path, name) for name, path in new.items())
        files = sorted(oldest) if self.max_files is None else heapq.nsmallest(self.max_files, oldest)
        capped = self._capped(files)
        require_one_name(capped, self.places, self.where)
        return [self._checked(file) for file in capped]

    def _sift(self, context: SourceContext, paths: list[str], new: dict[str, str]) -> set[str]:
        """Put those that nobody owns into `new`, path by name, each once; the names that somebody owns."""
        names = {path: self.places.name(path) for path in paths}
        taken = self._claimed(context, names)
        left = {path: self.places.true_name(path) for path, name in names.items() if name not in taken}
        taken |= self._claimed(context, {path: name for path, name in left.items() if name != names[path]})
        for path, name in left.items():
            if name not in taken:
                new[name] = path if path == name else min(path, new.get(name, path))
        return taken

    def _claimed(self, context: SourceContext, names: Mapping[str, str]) -> set[str]:
        """Those of the files, name by path, that somebody owns, as they are listed or by another of their names."""
        asked = dict(names)
        for name in names.values():
            asked[name] = name
            if self.places.same:
                asked |= dict.fromkeys(self.places.former(name), name)
        return {asked[one] for one in context.claimed(list(asked))} if asked else set()

    def new_lines(self, context: SourceContext) -> list[FileRange]:
        """Of the files that have grown the complete lines behind their claims, within the caps.

        Raises `SourceChanged` for a file that isn't the one that was claimed, has two names, or has moved.
        """
        ranges: list[FileRange] = []
        files: list[FrozenFile] = []
        room = self.max_bytes
        for now, claim in self._grown(context):
            if room is not None and room <= 0:
                break
            found = next_range(now, claim, room, hashed=self.hash)
            if found is None:
                continue
            if ranges and room is not None and found.ends - found.starts > room:
                break
            ranges.append(found)
            files.append(now)
            room = None if room is None else room - (found.ends - found.starts)
            if len(ranges) == self.max_files:
                break
        require_apart(ranges)
        require_one_name(files, self.places, self.where)
        self._require_unknown(context, ranges)
        return ranges

    def _require_unknown(self, context: SourceContext, ranges: list[FileRange]) -> None:
        """Raises `SourceChanged` for a file that was claimed under another name."""
        new = [found for found in ranges if found.head is not None and found.starts == 0]
        alike = context.claimed_by_head({found.head for found in new if found.head}) if new else set()
        claims = list(context.claims(alike).values()) if alike else []
        for found in new if claims else ():
            require_unknown(found, claims, header=self.header)

    def _grown(self, context: SourceContext) -> list[tuple[FrozenFile, Claim | None]]:
        def claims(names: Iterable[str]) -> Mapping[str, Claim]:
            asked = {other: name for name in names for other in (name, *self.places.former(name))}
            found = context.claims(list(asked))
            return {asked[other]: claim for other, claim in sorted(found.items(), key=lambda pair: pair[1].ends or 0)}

        named = ({self.places.true_name(path): path for path in chunk} for chunk in self._chunks())
        files = grown(named, claims)
        self.places.require_not_moved(context, {now.name: now.path for now, claim in files if claim is None})
        return files

    def _checked(self, file: FrozenFile) -> FrozenFile:
        require_readable(file.path)
        return self.places.files.facts_now(file.path, hashed=True, name=file.name) if self.hash else file

    def _capped(self, files: list[FrozenFile]) -> list[FrozenFile]:
        """The oldest that fit the caps: at least one, or a file larger than the cap would stop the pipeline."""
        taken: list[FrozenFile] = []
        total = 0
        for file in files:
            total += file.size
            if taken and self.max_bytes is not None and total > self.max_bytes:
                break
            taken.append(file)
        return taken

    def _compare(self, context: SourceContext, taken: set[str]) -> None:
        claims = context.claims(taken) if taken else {}
        require_no_rest(claims)
        if changed := find_changed_since(self.places.files, claims):
            _log.warning(
                "source %s: these files changed after an epoch had taken them, and are not read again: %s",
                context.source,
                list_some(changed, _SHOWN_CHANGED),
            )

    def _chunks(self) -> Iterator[list[str]]:
        files = each_file(self.places.files, self.where)
        while chunk := list(islice(files, CHUNK)):
            _require_text(chunk)
            yield chunk


def _require_text(paths: list[str]) -> None:
    """A plan is JSON and the ledger UTF-8. Raises `SourceNotReady` for a name that isn't."""
    try:
        "\n".join(paths).encode()
    except UnicodeEncodeError as error:
        odd = [ascii(path) for path in paths if not path.isprintable()]
        raise SourceNotReady(f"file names are not UTF-8: {', '.join(odd[:_SHOWN_CHANGED])}; rename them") from error


# --- late and changed files ---


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
    frozen = FileRange.from_json(fact)
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

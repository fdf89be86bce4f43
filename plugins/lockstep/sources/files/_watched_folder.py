"""Names of files, new files of watched folders, and files that were late or changed.

One file has one name, by which it is claimed, however many links and folders lead to it. Links below the folder that a
path begins with are followed; the folder itself keeps the name in the path, as each machine may mount it elsewhere. The
ledger is queried in chunks of names, so that no list of all files is built or sent.
"""

from __future__ import annotations

import heapq
import logging
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from lockstep.epoch import ChangedFile, Claim, Position
from lockstep.errors import SourceChanged, SourceNotReady, SourceRefused
from lockstep.observability.redaction import list_some
from lockstep.sources.base import SourceContext
from lockstep.sources.files.file_systems import FileSystem
from lockstep.sources.files.frozen import FileRange, FrozenFile, grown, next_range, require_apart, require_unknown
from lockstep.sources.files.paths import each_file, files_at, folder_of, require_readable

#: key of a position: the absolute path or pattern of its files
EXPECTS = "expects"
ROOTS = "roots"  #: key of a position: the root folders of the source's files, the present one last
CHUNK = 10_000  #: names per query of the ledger
_SHOWN_MOVED, _SHOWN_CHANGED = 3, 10  #: files in one message
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileNames:
    """The names of the files below `root`. `former_roots`: earlier names of that folder. `other_roots`: folders of
    earlier epochs that may be another folder."""

    files: FileSystem
    root: str
    former_roots: tuple[str, ...] = ()
    other_roots: tuple[str, ...] = ()
    _folders: dict[str, str] = field(default_factory=dict, init=False)
    _seen: dict[tuple[int, int], str] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls, files: FileSystem, where: str, start: Position | None = None, formerly: Sequence[str] = ()
    ) -> FileNames:
        """Build the names for an absolute pattern. `start`: the previous position, `formerly`: the source's."""
        root = folder_of(where)
        roots = [folder for folder in start[ROOTS] if folder != root] if start else []
        former = [folder for folder in roots if _is_same(folder, root)]
        former += [folder for folder in formerly if folder not in (root, *former)]
        return cls(files, root, tuple(former), tuple(folder for folder in roots if folder not in former))

    def to_json(self) -> list[str]:
        return [*self.other_roots, *self.former_roots, self.root]

    def name(self, path: str) -> str:
        """Return the name of a listed file, without checking whether the file itself is a link, which costs a call."""
        if not self.files.has_links:
            return path
        folder, _, name = path.rpartition("/")
        if (folder_name := self._folders.get(folder)) is None:
            folder_name = self._folders[folder] = self._name_of_folder(folder)
        return path if folder_name == folder else f"{folder_name}/{name}"

    def true_name(self, path: str) -> str:
        """Return the name of a listed file, also if it is a link."""
        if not self.files.has_links or not os.path.islink(path):  # noqa: PTH114 - on a hot path
            return self.name(path)
        return self.name(os.path.realpath(path))

    def files_at(self, where: str) -> dict[str, str]:
        """Return the finished files that match a pattern now: path by name, ordered by path."""
        paths_by_name: dict[str, str] = {}
        for path in files_at(self.files, where):
            name = self.true_name(path)
            paths_by_name[name] = path if name == path else paths_by_name.get(name, path)
        return paths_by_name

    def former(self, name: str) -> list[str]:
        """Return the names that a file had while the root had its former names."""
        return [moved for root in self.former_roots if (moved := self._below(root, name))]

    def require_not_moved(self, context: SourceContext, new: Mapping[str, str]) -> None:
        """Raise `SourceChanged` if unclaimed files, path by name, may have been claimed below another root."""
        for former_root in self.other_roots:
            paths = {moved: path for name, path in new.items() if (moved := self._below(former_root, name))}
            claims = context.claims(paths) if paths else {}
            same = []
            for name, claim in claims.items():
                size = self.files.facts(paths[name]).size
                if size >= claim.ends if claim.ends is not None else claim.size in (None, size):
                    same.append(paths[name])
            if same:
                raise SourceChanged(
                    f"source {context.source}: its files were read below {former_root}, and {self.root} has "
                    f"{len(same)} with the same names and sizes ({', '.join(sorted(same)[:_SHOWN_MOVED])}): if it is "
                    f"that folder, moved or mounted elsewhere, say formerly=({former_root!r},), so that files read "
                    "there are not read again; if these are other files, give the source another name"
                )

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self.root)

    def _below(self, root: str, name: str) -> str | None:
        below = self.root.rstrip("/") + "/"
        return f"{root.rstrip('/')}/{name.removeprefix(below)}" if name.startswith(below) else None

    def _name_of_folder(self, folder: str) -> str:
        """Return a folder's name. Raises `SourceRefused` if it is mounted twice, and so has two names without links."""
        real, root = os.path.realpath(folder), self._real_root
        facts = os.stat(real)  # noqa: PTH116
        first_name = self._seen.setdefault((facts.st_dev, facts.st_ino), real)
        if first_name != real and facts.st_ino:  # some file systems have no inodes
            raise SourceRefused(
                f"folders {first_name} and {real} are one folder under two names, by a mount: its files would be read "
                "twice; have the source's path match only one of them"
            )
        if real == root:
            return self.root.rstrip("/")
        below = root.rstrip("/") + "/"
        return f"{self.root.rstrip('/')}/{real.removeprefix(below)}" if real.startswith(below) else real


def require_one_name(files: Iterable[FrozenFile], file_names: FileNames, everywhere: str) -> None:
    """Raise `SourceRefused` for a hard link: a file with another name among all files of the source.

    `everywhere`: the pattern of all its files, which is listed only if one of `files` has several links.
    """
    files_by_inode: dict[tuple[int, int] | None, FrozenFile] = {}
    for file in (file for file in files if file.inode is not None):
        first = files_by_inode.setdefault(file.inode, file)
        if first is not file and (file.links > 1 or file == replace(first, path=file.path)):
            raise _hard_link(first.path, file.path)
    linked = {file.inode: file for file in files_by_inode.values() if file.links > 1}
    for path in each_file(file_names.files, everywhere) if linked else ():
        try:
            facts = os.stat(path)  # noqa: PTH116
        except FileNotFoundError:
            continue
        linked_file = linked.get((facts.st_dev, facts.st_ino))
        if linked_file is not None and file_names.true_name(path) != linked_file.name:
            raise _hard_link(linked_file.path, path)


def _hard_link(path: str, second_path: str) -> SourceRefused:
    return SourceRefused(
        f"files {path} and {second_path} are one file under two names, by a hard link: it would be read twice; remove "
        "one of the names, or have the source's path match only one"
    )


def _is_same(folder: str, second_folder: str) -> bool:
    try:
        return Path(folder).samefile(second_folder)
    except OSError:
        return False


@dataclass(frozen=True)
class WatchedFolder:
    """A folder or pattern, and the limits per epoch."""

    where: str
    file_names: FileNames
    max_files: int | None = None
    max_bytes: int | None = None
    hash: bool = False
    header: bool = False  #: the first line of a growing file is no record

    def new_files(self, context: SourceContext) -> list[FrozenFile]:
        """Return the oldest unclaimed files within the limits. Logs which consumed files have changed, by sample.

        Raises `SourceChanged` for a file that was partly read as a growing file, or in a moved folder;
        `SourceRefused` for one with two names, or a name that Spark can't read.
        """
        new: dict[str, str] = {}
        compared: set[str] = set()
        for number, chunk in enumerate(self._chunks(), start=1):
            claimed = self._sift(context, chunk, new)
            if random.randrange(number) == 0:  # noqa: S311 - picks each chunk with equal probability
                compared = claimed
        claims = context.claims(compared) if compared else {}
        require_read_to_end(claims)
        if changed := find_changed_since(self.file_names.files, claims):
            _log.warning(
                "source %s: these files changed after an epoch had read them, and are not read again: %s",
                context.source,
                list_some(changed, _SHOWN_CHANGED),
            )
        self.file_names.require_not_moved(context, new)
        unsorted = (self.file_names.files.facts(path, name) for name, path in new.items())
        oldest = sorted(unsorted) if self.max_files is None else heapq.nsmallest(self.max_files, unsorted)
        files: list[FrozenFile] = []
        total = 0
        for file in oldest:
            total += file.size
            if files and self.max_bytes is not None and total > self.max_bytes:
                break  # never without any file, or one larger than the limit would block the pipeline
            files.append(file)
        require_one_name(files, self.file_names, self.where)
        for number, file in enumerate(files):
            require_readable(file.path)
            if self.hash:
                files[number] = self.file_names.files.facts_now(file.path, hashed=True, name=file.name)
        return files

    def _sift(self, context: SourceContext, paths: list[str], new: dict[str, str]) -> set[str]:
        """Add unclaimed files to `new`, path by name, each once. Returns the claimed names."""
        names = {path: self.file_names.name(path) for path in paths}
        claimed = self._claimed(context, names)
        unclaimed = {path: self.file_names.true_name(path) for path, name in names.items() if name not in claimed}
        claimed |= self._claimed(context, {path: name for path, name in unclaimed.items() if name != names[path]})
        for path, name in unclaimed.items():
            if name not in claimed:
                new[name] = path if path == name else min(path, new.get(name, path))
        return claimed

    def _claimed(self, context: SourceContext, names: Mapping[str, str]) -> set[str]:
        """Return those of the files, name by path, that are claimed by their listed name or a former one."""
        names_by_alias = dict(names)
        for name in names.values():
            names_by_alias[name] = name
            if self.file_names.former_roots:
                names_by_alias |= dict.fromkeys(self.file_names.former(name), name)
        return {names_by_alias[alias] for alias in context.claimed(list(names_by_alias))} if names_by_alias else set()

    def new_lines(self, context: SourceContext) -> list[FileRange]:
        """Return the complete lines after the claims of the files that have grown, within the limits.

        Raises `SourceChanged` for a file that isn't the claimed one, has two names, or has moved.
        """
        ranges: list[FileRange] = []
        files: list[FrozenFile] = []
        room = self.max_bytes
        for now, claim in self._grown(context):
            if room is not None and room <= 0:
                break
            file_range = next_range(now, claim, room, hashed=self.hash)
            if file_range is None:
                continue
            if ranges and room is not None and file_range.ends - file_range.starts > room:
                break
            ranges.append(file_range)
            files.append(now)
            room = None if room is None else room - (file_range.ends - file_range.starts)
            if len(ranges) == self.max_files:
                break
        require_apart(ranges)
        require_one_name(files, self.file_names, self.where)
        new = [file_range for file_range in ranges if file_range.head is not None and file_range.starts == 0]
        names = context.claimed_by_head({file_range.head for file_range in new if file_range.head}) if new else set()
        claims = list(context.claims(names).values()) if names else []
        for file_range in new if claims else ():
            require_unknown(file_range, claims, header=self.header)
        return ranges

    def _grown(self, context: SourceContext) -> list[tuple[FrozenFile, Claim | None]]:
        def claims(names: Iterable[str]) -> Mapping[str, Claim]:
            names_by_alias = {alias: name for name in names for alias in (name, *self.file_names.former(name))}
            claims_by_alias = context.claims(list(names_by_alias))
            by_end = sorted(claims_by_alias.items(), key=lambda pair: pair[1].ends or 0)
            return {names_by_alias[alias]: claim for alias, claim in by_end}

        chunks = ({self.file_names.true_name(path): path for path in chunk} for chunk in self._chunks())
        files = grown(chunks, claims)
        self.file_names.require_not_moved(context, {now.name: now.path for now, claim in files if claim is None})
        return files

    def _chunks(self) -> Iterator[list[str]]:
        files = each_file(self.file_names.files, self.where)
        while chunk := list(islice(files, CHUNK)):
            try:
                "\n".join(chunk).encode()  # plans and the ledger are UTF-8
            except UnicodeEncodeError as error:
                odd = ", ".join([ascii(path) for path in chunk if not path.isprintable()][:_SHOWN_CHANGED])
                raise SourceNotReady(f"file names are not UTF-8: {odd}; rename them") from error
            yield chunk


# --- late and changed files ---


def find_late(files: FileSystem, end: Position, claimed: Callable[[Iterable[str]], set[str]]) -> list[str]:
    """Return unclaimed paths that match the interval's pattern; if a folder can't be listed, a text that says so."""
    if not isinstance(where := end.get(EXPECTS), str):
        return []
    roots = end.get(ROOTS)
    file_names = FileNames(files, roots[-1]) if roots else FileNames.of(files, where)
    try:
        paths_by_name = file_names.files_at(where)
    except OSError as error:
        return [f"{where} (can't be listed: {error.strerror})"]
    claimed_names = claimed({*paths_by_name, *paths_by_name.values()}) if paths_by_name else set()
    return [path for name, path in paths_by_name.items() if not {name, path} & claimed_names]


def find_changed(files: FileSystem, end: Position) -> list[ChangedFile]:
    """Return files that differ from the range, except deleted ones, which may have been archived.

    Stats each file once; of growing files reads the first and last bytes.
    """
    changes = []
    for fact in end.get("files", ()):
        if not isinstance(fact, dict) or not {"path", "size", "mtime_ns"} <= fact.keys():
            continue  # an old plan's, perhaps by a custom source
        if "to" not in fact:
            changes.append(_changed_file(files, FrozenFile.from_json(fact)))
            continue
        file_range = FileRange.from_json(fact)
        try:
            if Path(file_range.path).exists():
                file_range.check()
        except SourceChanged as error:
            changes.append(ChangedFile(file_range.path, str(error)))
    return [change for change in changes if change is not None]


def find_changed_since(files: FileSystem, claims: Mapping[str, Claim]) -> list[ChangedFile]:
    """Return files that differ from their claims on whole files."""
    frozen_files = filter(None, map(FrozenFile.from_claim, claims.values()))
    return [changed for file in frozen_files if (changed := _changed_file(files, file))]


def require_read_to_end(claims: Mapping[str, Claim]) -> None:
    """Raise `SourceChanged` for files of which only ranges were read: the rest would never be read."""
    unread = []
    for path, claim in claims.items():
        with suppress(SourceNotReady):
            if claim.ends is not None and claim.ends < FrozenFile.of(claim.path).size:
                unread.append(f"{path} (from byte {claim.ends})")
    if unread:
        raise SourceChanged(
            f"growing files were read in part, and without grow the rest is not read: {list_some(unread, 3)}; set "
            "grow=True again until they are read to the end, or move them away to skip the rest"
        )


def _changed_file(files: FileSystem, was: FrozenFile) -> ChangedFile | None:
    try:
        difference = was.differences(files.facts(was.path))
    except SourceNotReady:
        return None
    return ChangedFile(was.path, difference) if difference else None

"""By which name a file is claimed: one file has one, however many links and folders lead to it.

Links below the folder that a path begins with are followed; the folder itself keeps the name that the path gives it, as
each machine may mount it elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lockstep.epoch import Claim, Position
from lockstep.errors import SourceChanged, SourceRefused
from lockstep.sources.base import SourceContext
from lockstep.sources.files._file_system import FileSystem
from lockstep.sources.files._frozen_file import FrozenFile
from lockstep.sources.files._paths import each_file, files_at, folder_of

#: key of a position: the absolute path or pattern at which its files were looked for
EXPECTS = "expects"
ROOTS = "roots"  #: key of a position: the folders that the source's files were below, the last one now
_NAMED = 3


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
                    f"have the same names and sizes ({', '.join(read[:_NAMED])}): if it is that folder, moved or "
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

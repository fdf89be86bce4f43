"""What a power cut may leave: file operations are recorded, then replayed in every order that POSIX allows.

A file system keeps what was fsynced and may lose or reorder all the rest: a folder's names (made, linked, renamed,
removed) until the folder is fsynced, a file's bytes until the file is. The idea is ALICE's (Pillai et al., "All File
Systems Are Not Created Equal", OSDI 2014).
"""

from __future__ import annotations

import io
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import pytest

MOST_STATES = 64  #: of one crash point; more are sampled
ROOT = 0

Content = bytes | None  #: of a file; None for a folder


@dataclass(frozen=True)
class Naming:
    """A change of a folder's names: those taken away, those that now stand for a node. Happens whole or not."""

    folder: int
    gone: tuple[str, ...] = ()
    named: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Sync:
    """Of a file or a folder."""

    node: int


@dataclass(frozen=True)
class Mark:
    """Something that others rely on from here on: a vote, a seal."""

    told: str


@dataclass
class Recording:
    """The operations below `root`, in order. `contents` holds what each file had when it was last seen."""

    root: Path
    steps: list[Naming | Sync | Mark] = field(default_factory=list)
    contents: dict[int, Content] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What stands there already is durable."""
        self._ids[self.root.stat().st_ino], self.contents[ROOT] = ROOT, None
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                self.name(Path(folder) / name)
            self.sync(Path(folder))
        for node in list(self.contents):
            self.steps.append(Sync(node))

    def mark(self, told: str) -> None:
        self.steps.append(Mark(told))

    def name(self, path: Path) -> None:
        """`path` is new, or has just been linked."""
        self.steps.append(Naming(self._id(path.parent), named=((path.name, self._seen(path)),)))

    def remove(self, path: Path) -> None:
        self.steps.append(Naming(self._id(path.parent), gone=(path.name,)))

    def rename(self, source: Path, target: Path) -> None:
        assert source.parent == target.parent, "a rename across folders is two changes: record it as such"
        naming = Naming(self._id(target.parent), (source.name,), ((target.name, self._id(target)),))
        self.steps.append(naming)

    def sync(self, path: Path) -> None:
        self.steps.append(Sync(self._seen(path)))

    def covers(self, path: Any) -> bool:
        return Path(os.fsdecode(path)).is_relative_to(self.root) if isinstance(path, str | os.PathLike) else False

    def _id(self, path: Path) -> int:
        return self._ids[path.stat().st_ino]

    def _seen(self, path: Path) -> int:
        """The node's number; a new one where the file system reuses that of a file that is gone."""
        number, found = path.stat().st_ino, path.is_dir()
        fresh = path.stat().st_nlink == 1 and not found and path.stat().st_size == 0
        if number not in self._ids or fresh:
            self._ids[number] = len(self.contents)
        self.contents[self._ids[number]] = None if found else path.read_bytes()
        return self._ids[number]


@contextmanager
def recorded(root: Path) -> Iterator[Recording]:
    """Record what this process does below `root` through Python's own calls."""
    recording = Recording(root)
    patch = pytest.MonkeyPatch()

    def after(module: Any, name: str, tell: Callable[..., None]) -> None:
        real = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            known = isinstance(args[0], str | os.PathLike) and os.path.lexists(args[0])
            result = real(*args, **kwargs)
            if isinstance(args[0], int) or recording.covers(args[0]):
                tell(known, result, *args)
            return result

        patch.setattr(module, name, call)

    def made(known: bool, result: Any, path: Any, *more: Any) -> None:
        if not known and not isinstance(path, int):
            recording.name(Path(path))

    def synced(known: bool, result: Any, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if recording.covers(path):
            recording.sync(path)

    after(os, "mkdir", made)
    after(os, "open", made)
    after(io, "open", made)
    after(os, "link", lambda known, result, source, target, *more: recording.name(Path(target)))
    after(os, "fsync", synced)
    for name in ("unlink", "rmdir"):
        after(os, name, lambda known, result, path, *more: recording.remove(Path(path)))
    for name in ("rename", "replace"):
        after(os, name, lambda known, result, source, target, *more: recording.rename(Path(source), Path(target)))
    try:
        yield recording
    finally:
        patch.undo()


# --- what may be left ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CrashState:
    """One legal outcome of a power cut after `done` steps."""

    recording: Recording
    done: int
    names: tuple[Naming, ...]
    torn: tuple[tuple[int, int], ...]  #: (file, bytes that are left of it)

    @property
    def marks(self) -> set[str]:
        """What others had been told by then."""
        return {step.told for step in self.recording.steps[: self.done] if isinstance(step, Mark)}

    def build(self, root: Path) -> None:
        """Make it real in the empty folder `root`."""
        folders: dict[int, dict[str, int]] = {}
        for naming in self.names:
            entries = folders.setdefault(naming.folder, {})
            for name in naming.gone:
                entries.pop(name, None)
            entries.update(naming.named)
        built: dict[int, Path] = {}
        waiting = [(root, ROOT)]
        while waiting:
            path, node = waiting.pop()
            for name, inner in folders.get(node, {}).items():
                self._place(path / name, inner, built)
                if self.recording.contents[inner] is None:
                    waiting.append((path / name, inner))

    def _place(self, path: Path, node: int, built: dict[int, Path]) -> None:
        content = self.recording.contents[node]
        if content is None:
            path.mkdir()
        elif node in built:
            os.link(built[node], path)
        else:
            path.write_bytes(content[: dict(self.torn).get(node, len(content))])
            built[node] = path


def crash_states(recording: Recording) -> Iterator[CrashState]:
    """Every state after every step that changed something; sampled where there are more than `MOST_STATES`."""
    start = next((n for n, step in enumerate(recording.steps) if isinstance(step, Mark)), 0)
    for done in range(start + 1, len(recording.steps) + 1):
        steps = recording.steps[:done]
        last_sync = {step.node: number for number, step in enumerate(steps) if isinstance(step, Sync)}
        namings = [(number, step) for number, step in enumerate(steps) if isinstance(step, Naming)]
        loose = [number for number, step in namings if number > last_sync.get(step.folder, -1)]
        unsynced = _unsynced_files(recording, namings, last_sync)
        ways = list(product(_subsets(loose), product(*(_cuts(recording, node) for node in unsynced))))
        for lost, torn in ways if len(ways) <= MOST_STATES else _sampled(ways, done):
            kept = tuple(step for number, step in namings if number not in lost)
            yield CrashState(recording, done, kept, torn)


def broken_states(
    recording: Recording, root: Path, check: Callable[[CrashState], None], broken: tuple[type[Exception], ...]
) -> tuple[int, list[str]]:
    """Build every state at `root`, the one place that what is recorded knows, and check it there.

    The number of states, and one text for each whose check raised one of `broken`.
    """
    number, found = 0, []
    for state in crash_states(recording):
        number += 1
        shutil.rmtree(root)
        root.mkdir()
        state.build(root)
        try:
            check(state)
        except broken as error:
            found.append(f"after step {state.done}: {type(error).__name__}: {error}")
    return number, found


def _unsynced_files(recording: Recording, namings: list[tuple[int, Naming]], last_sync: dict[int, int]) -> list[int]:
    named = dict.fromkeys(node for _, naming in namings for _, node in naming.named)
    return [node for node in named if recording.contents[node] is not None and node not in last_sync]


def _cuts(recording: Recording, node: int) -> list[tuple[int, int]]:
    size = len(recording.contents[node] or b"")
    return [(node, left) for left in sorted({0, size // 2, size})]


def _subsets(numbers: list[int]) -> list[frozenset[int]]:
    every = chain.from_iterable(combinations(numbers, count) for count in range(len(numbers) + 1))
    return [frozenset(found) for found in every] if len(numbers) < 12 else _random_subsets(numbers)


def _random_subsets(numbers: list[int]) -> list[frozenset[int]]:
    chance = random.Random(len(numbers))
    return [frozenset(number for number in numbers if chance.random() < 0.5) for _ in range(4 * MOST_STATES)]


def _sampled(ways: list[Any], seed: int) -> list[Any]:
    """The extremes, where everything or nothing is lost, and some in between."""
    return [ways[0], ways[-1], *random.Random(seed).sample(ways, MOST_STATES - 2)]

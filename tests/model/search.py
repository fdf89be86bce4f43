"""The search of the smaller models: every world that a protocol can reach, breadth first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol, TypeVar

W = TypeVar("W", bound=Hashable)


class Searched(Protocol[W]):
    """A protocol, with at most one planted bug."""

    @property
    def start(self) -> W: ...

    def successors(self, world: W) -> Iterator[tuple[str, W]]: ...

    def violation(self, world: W) -> str:
        """The rule that this world breaks, or that what is left can't be brought to an end; empty if neither."""


def explore(protocol: Searched[W]) -> tuple[int, str, list[str]]:
    """How many worlds there are, the first rule that is broken, and the steps that lead there."""
    parents: dict[W, tuple[W, str] | None] = {protocol.start: None}
    layer = [protocol.start]
    while layer:
        following = []
        for world in layer:
            for label, after in protocol.successors(world):
                if after in parents:
                    continue
                parents[after] = (world, label)
                if violation := protocol.violation(after):
                    return len(parents), violation, _trace(parents, after)
                following.append(after)
        layer = following
    return len(parents), "", []


def _trace(parents: dict[W, tuple[W, str] | None], world: W) -> list[str]:
    lines: list[str] = []
    while (step := parents[world]) is not None:
        lines.append(step[1])
        world = step[0]
    return [f"{number:>3}. {line}" for number, line in enumerate(reversed(lines), 1)]

"""What a run takes of a sweep: a share by its seed, or the whole.

With seeds 0, 1, 2, … every item of a sweep is run in every way that the sweep has.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def seed_of(checkout: Path) -> int:
    """The number of commits behind HEAD, so that a commit always runs the same cases; 0 without git."""
    count = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=checkout, check=False, capture_output=True, text=True
    ).stdout
    return int(count or 0)


@dataclass
class Sampling:
    """`seed`: None takes everything. `run` of `swept` items were taken, for the report."""

    seed: int | None = None
    run: int = field(default=0, init=False)
    swept: int = field(default=0, init=False)

    def share(self, items: Sequence[T], turn: int, turns: int) -> list[T]:
        """Every `turns`-th item, so that each item is in the share of exactly one turn."""
        seed = self.seed
        return self._count(
            items, [item for place, item in enumerate(items) if seed is None or (place + seed) % turns == turn]
        )

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """At most `size` items, neighbours."""
        if self.seed is None or size >= len(items):
            return self._count(items, items)
        start = self.seed * size
        return self._count(items, [items[place % len(items)] for place in range(start, start + size)])

    def _count(self, items: Sequence[T], taken: Sequence[T]) -> list[T]:
        self.swept += len(items)
        self.run += len(taken)
        return list(taken)

"""What `make test` runs of a sweep that `make test-all` runs whole: a share, which the seed turns round.

With seeds 0, 1, 2, … each item of a sweep comes to be run in each way that the sweep has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Cover:
    """`seed`: None runs everything. `run` of `swept` items were taken, for the report."""

    seed: int | None = None
    run: int = field(default=0, init=False)
    swept: int = field(default=0, init=False)

    def share(self, items: Sequence[T], turn: int, turns: int) -> list[T]:
        """Every `turns`-th item, so that each is in the share of one turn."""
        seed = self.seed
        return self._count(
            items, [one for place, one in enumerate(items) if seed is None or (place + seed) % turns == turn]
        )

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """As many neighbours."""
        if self.seed is None or size >= len(items):
            return self._count(items, items)
        start = self.seed * size
        return self._count(items, [items[place % len(items)] for place in range(start, start + size)])

    def _count(self, items: Sequence[T], taken: Sequence[T]) -> list[T]:
        self.swept += len(items)
        self.run += len(taken)
        return list(taken)

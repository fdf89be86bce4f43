"""Counts that must agree before an epoch is sealed: rows in against what became of them, each counted where it happens.

The counts of rows in come from reading them, those of what became of them from what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.compute._inputs import ObservedFrame
from lockstep.definition.conservation import UNACCOUNTED
from lockstep.errors import InvalidPipeline, Unbalanced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CountedFrame:
    """A DataFrame whose rows the first action that reads it counts, as `aggregates` (SQL, by name) say.

    `shown`: what a transform gets, without the column that is only counted by.
    """

    frame: DataFrame
    observed: ObservedFrame
    plain: DataFrame
    aggregates: Mapping[str, str]
    shown: DataFrame

    @classmethod
    def of(cls, frame: DataFrame, hidden: str | None = None, /, **aggregates: str) -> CountedFrame:
        """`hidden`: the column that is only counted by."""
        observed = ObservedFrame.of(frame, **aggregates)
        shown = observed.frame.drop(hidden) if hidden else observed.frame
        return cls(observed.frame, observed, frame, aggregates, shown)

    def counts(self) -> dict[str, int]:
        """What was counted; counts now if the optimizer knew of no rows and cut the frame out of the plan."""
        if found := self.observed.counts():
            return found
        columns = [F.expr(aggregate).alias(name) for name, aggregate in self.aggregates.items()]
        [row] = self.plain.agg(*columns).collect()
        return row.asDict()


@dataclass(frozen=True)
class Part:
    """A frame that must be written whole, and the counts that it adds to. `what`: as a message calls it.

    `terms`: what it adds to, by what it counts that as; None: all that it counts, called alike.
    """

    what: str
    counted: CountedFrame
    terms: Mapping[str, str] | None = None

    def counts(self) -> dict[str, int]:
        """By term."""
        found = self.counted.counts()
        return found if self.terms is None else {term: int(found[name]) for term, name in self.terms.items()}


_DETERMINISTIC = (
    "Is what the transform does to the rows before deterministic, and does it write whole what it was handed?"
)


@dataclass(frozen=True)
class Balance:
    """`read`: counts of the rows when they were read: "in", those that were dropped for a reason (`left_out`), and
    details; or what tells them once the rows were read.

    `written` adds `terms`, which with `left_out` must make "in", and details. `absent`: of these there may be none.
    `key`: the term, of what was read and of what was written, by which the same number of rows are the same rows.
    `hint`: what to do about it. `audited`: what is at fault is sealed, and an audit holds the epoch for it.
    `takes_back`: its results may say of a key that it goes.
    """

    name: str
    read: Mapping[str, int] | Callable[[], Mapping[str, int]]
    written: Sequence[Part]
    terms: Sequence[str]
    left_out: Sequence[str] = ("filtered",)
    absent: Sequence[str] = ()
    key: str | None = None
    hint: str = _DETERMINISTIC
    audited: bool = False
    takes_back: bool = False

    def settle_counts(self, frames: Collection[DataFrame]) -> dict[str, int]:
        """The counts, after `frames` were written. Raises `InvalidPipeline` for a part that isn't among them.

        Raises `Unbalanced` if rows in are not those that were accounted for, unless an audit tells of that.
        """
        read = dict(self.read() if callable(self.read) else self.read)
        found = dict.fromkeys(self.terms, 0)
        for part in self.written:
            for term, rows in self._counts_of(part, frames).items():
                found[term] = found.get(term, 0) + rows
        keys = (read.pop(self.key), found.pop(self.key)) if self.key is not None else (0, 0)
        counts = {**read, **found}
        missing = counts["in"] - sum(counts[term] for term in (*self.terms, *self.left_out))
        unwanted = next((term for term in self.absent if counts[term]), None)
        if missing:
            said = f", {abs(missing)} {'lost' if missing > 0 else 'too many'}"
            return self._unbalanced(f"in must be {' + '.join([*self.terms, *self.left_out])}", counts, missing, said)
        if keys[0] != keys[1]:
            said = ", but other ones: some lost, some doubled"
            return self._unbalanced("what goes in must come out", counts, 1, said)
        if unwanted is not None:
            return self._unbalanced(f"none may be {unwanted}", counts, counts[unwanted], "")
        return counts

    def _unbalanced(self, rule: str, counts: Mapping[str, int], rows: int, said: str) -> dict[str, int]:
        """The counts with the rows that are at fault. Raises `Unbalanced` unless an audit is to tell of these."""
        if self.audited:
            return {**counts, UNACCOUNTED: abs(rows)}
        told = ", ".join(f"{rows} {term}" for term, rows in counts.items())
        raise Unbalanced(f"balance of {self.name}: {rule}, found {told}{said}; nothing was sealed. {self.hint}")

    def _counts_of(self, part: Part, frames: Collection[DataFrame]) -> dict[str, int]:
        if not any(part.counted.observed.uses_in(frame) for frame in frames):
            raise InvalidPipeline(
                f"balance of {self.name}: the transform doesn't return {part.what}: rows would be lost"
            )
        return part.counts()


@dataclass
class Balances:
    """Those that one run of a transform makes. `sources`: what was counted of what was read, once it was."""

    made: dict[str, Balance] = field(default_factory=dict)
    sources: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def add(self, balance: Balance) -> None:
        """Raises `InvalidPipeline` for a second one of a name."""
        if balance.name in self.made:
            raise InvalidPipeline(f"two folds into {balance.name}: give each windows a name, and fold once an epoch")
        self.made[balance.name] = balance

    def shares_parts(self, frames: Collection[DataFrame]) -> bool:
        """Whether two of `frames` read one part: whichever is written first then counts it, so they go one by one."""
        parts = [part for balance in self.made.values() for part in balance.written]
        return any(sum(part.counted.observed.uses_in(frame) for frame in frames) > 1 for part in parts)

    def settle_counts(self, frames: Collection[DataFrame]) -> dict[str, dict[str, int]]:
        """The counts by name, after `frames` (outputs and state, as the transform returned them) were written.

        Raises `Unbalanced`, `InvalidPipeline`.
        """
        return {name: balance.settle_counts(frames) for name, balance in self.made.items()}


_made: ContextVar[Balances | None] = ContextVar("balances", default=None)


@contextmanager
def collecting_balances(balances: Balances) -> Iterator[None]:
    """While this lasts, one run of a transform, `balances` is told of what must agree; it forgets an earlier run."""
    balances.made.clear()
    token = _made.set(balances)
    try:
        yield
    finally:
        _made.reset(token)


def register(balance: Balance) -> Balance:
    """Tell whoever runs the transform; outside of a stage nobody."""
    if (balances := _made.get()) is not None:
        balances.add(balance)
    return balance

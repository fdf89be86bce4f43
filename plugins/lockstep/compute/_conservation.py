"""Counts that must agree before an epoch is sealed: rows in against what became of them, each counted where it happens.

Rows in are counted as they are read, what became of them as it is written. A pipeline's conservation is proven by sums,
which need no order. Rows with a key have sums of their hashes, too: the same number of rows with the same sum are the
same rows, but for one chance in 2**64. As a text a key is hashed alike whatever type a transform gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from lockstep.compute._counting import CountedFrame
from lockstep.definition.conservation import QUARANTINED, UNACCOUNTED, Conservation
from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline, StageFailed, Unbalanced
from lockstep.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


KEYS = ""  #: the term for sums of hashes; no reason and no output is called so
UNMATCHED = "unmatched"
_DETERMINISTIC = (
    "Is what the transform does to the rows before deterministic, and does it write whole what it was handed?"
)
_collecting: ContextVar[Balances | None] = ContextVar("balances", default=None)
_HINT = (
    "Correct the transform, or what the pipeline says of its conservation, and run the epoch again: it waits as it was "
    "planned"
)


def numbered(declared: Sequence[Conservation]) -> Iterator[tuple[int, Conservation]]:
    """Number the declared rules, with the mirrored rule of a one-to-one join; the number is part of their counts'
    names."""
    return enumerate(rule for both in declared for rule in (both, both.mirrored) if rule is not None)


def name_of(number: int, term: str) -> str:
    """Name of a count within one frame."""
    return f"{number} {term}"


def counts_of_source(declared: Sequence[Conservation], source: str, good: str | None = None) -> dict[str, str]:
    """SQL aggregates by name over the rows read from `source`. `good`: SQL that is true of a row that goes in; None:
    all."""
    counts = {}
    for number, rule in numbered(declared):
        if source not in rule.sources:
            continue
        malformed = [(f"NOT ({good})", "0L")] if good else []
        weight, reasons = "1L", list(rule.dropped.items())  # weight: how many rows one row becomes
        if rule.array is not None:
            weight = f"CAST(greatest(coalesce(size({rule.array}), 0), {int(rule.outer)}) AS BIGINT)"
        counts[name_of(number, "in")] = _sum(malformed, weight)
        for place, (reason, condition) in enumerate(reasons):
            rules = [*malformed, *_any_rule(earlier for _, earlier in reasons[:place]), (f"({condition})", weight)]
            counts[name_of(number, reason)] = _sum(rules, "0L")
        if rule.key:
            key = _hash(rule.key.values(), weight if rule.array else None)
            counts[name_of(number, KEYS)] = _sum([*malformed, *_any_rule(rule.dropped.values())], key)
    return counts


def counts_of_output(declared: Sequence[Conservation], output: str, offends: str | None = None) -> dict[str, str]:
    """SQL aggregates by name over the rows of `output`. `offends`: SQL, true of a row that goes to quarantine."""
    counts = {}
    for number, rule in numbered(declared):
        if output not in rule.outputs:
            continue
        count = f"CAST({quote_name(rule.count)} AS BIGINT)" if rule.count is not None else None
        counts[name_of(number, output)] = _sum([], count) if count else "count(1)"
        if offends:
            counts[name_of(number, output)] = _sum([(offends, "0L")], count or "1L")
            counts[name_of(number, QUARANTINED)] = _sum([(f"NOT ({offends})", "0L")], count or "1L")
        if rule.key:
            counts[name_of(number, KEYS)] = _sum([], _hash(map(quote_name, rule.key), count))
        if rule.unmatched is not None:
            counts[name_of(number, UNMATCHED)] = f"count(CASE WHEN ({rule.unmatched}) THEN 1 END)"
    return counts


def _any_rule(conditions: Iterable[str]) -> list[tuple[str, str]]:
    """The case that counts 0 for rows of which one of `conditions` is true."""
    either = " OR ".join(f"({condition})" for condition in conditions)
    return [(either, "0L")] if either else []


def _sum(rules: Sequence[tuple[str, str]], otherwise: str) -> str:
    cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in rules)
    return f"coalesce(sum({f'CASE {cases} ELSE {otherwise} END' if cases else otherwise}), 0L)"


def _hash(key: Iterable[str], times: str | None) -> str:
    """A row's hash as a decimal, so that a sum over more rows than a BIGINT counts still fits."""
    columns = ", ".join(f"({expression}) IS NULL, CAST(({expression}) AS STRING)" for expression in key)
    hash_sql = f"CAST(xxhash64({columns}) AS DECIMAL(20, 0))"
    return f"{hash_sql} * CAST({times} AS DECIMAL(18, 0))" if times else hash_sql


@dataclass(frozen=True)
class Part:
    """A frame that must be written completely, and the terms that it counts. `what`: its name in messages.

    `terms`: names of its counts by term; None: each count is a term of the same name.
    """

    what: str
    counted: CountedFrame
    terms: Mapping[str, str] | None = None

    def counts(self) -> dict[str, int]:
        """Counts by term."""
        counts = self.counted.counts()
        return counts if self.terms is None else {term: int(counts[name]) for term, name in self.terms.items()}


@dataclass(frozen=True)
class Balance:
    """An equation between the rows read and the rows written.

    `read`: counts of the rows read: "in", those dropped for a reason (`left_out`), and details; or a function that
    returns them once the rows were read. `written`: frames that count `terms`, which with `left_out` must add up
    to "in", and details. `absent`: terms that must be 0. `key`: the term that must be equal on both sides, a sum of
    hashes. `hint`: what to do about a difference. `audited`: a difference is sealed as a count, and an audit judges it.
    `retracts`: its results may delete keys.
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
    retracts: bool = False

    def settle_counts(self, frames: Collection[DataFrame]) -> dict[str, int]:
        """Return the counts, after `frames` were written.

        Raises `InvalidPipeline` for a part that isn't among them, `Unbalanced` if the counts differ, unless an audit
        judges that.
        """
        read = dict(self.read() if callable(self.read) else self.read)
        written = dict.fromkeys(self.terms, 0)
        for part in self.written:
            if not any(part.counted.observed.uses_in(frame) for frame in frames):
                raise InvalidPipeline(
                    f"balance of {self.name}: the transform doesn't return {part.what}: rows would be lost"
                )
            for term, rows in part.counts().items():
                written[term] = written.get(term, 0) + rows
        keys = (read.pop(self.key), written.pop(self.key)) if self.key is not None else (0, 0)
        counts = {**read, **written}
        missing = counts["in"] - sum(counts[term] for term in (*self.terms, *self.left_out))
        unwanted = next((term for term in self.absent if counts[term]), None)
        if missing:
            remark = f", {abs(missing)} {'lost' if missing > 0 else 'too many'}"
            return self._unbalanced(f"in must be {' + '.join([*self.terms, *self.left_out])}", counts, missing, remark)
        if keys[0] != keys[1]:
            remark = ", but other ones: some lost, some doubled"
            return self._unbalanced("what goes in must come out", counts, 1, remark)
        if unwanted is not None:
            return self._unbalanced(f"none may be {unwanted}", counts, counts[unwanted], "")
        return counts

    def _unbalanced(self, rule: str, counts: Mapping[str, int], rows: int, remark: str) -> dict[str, int]:
        """Return the counts with the number of unaccounted rows. Raises `Unbalanced` unless an audit judges them."""
        if self.audited:
            return {**counts, UNACCOUNTED: abs(rows)}
        summary = ", ".join(f"{rows} {term}" for term, rows in counts.items())
        raise Unbalanced(f"balance of {self.name}: {rule}, found {summary}{remark}; nothing was sealed. {self.hint}")


@dataclass
class Balances:
    """Balances that one run of a transform registers. `sources`: counts of each source, once it was read."""

    by_name: dict[str, Balance] = field(default_factory=dict)
    sources: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def add(self, balance: Balance) -> None:
        """Register a balance. Raises `InvalidPipeline` for a second one of the same name."""
        if balance.name in self.by_name:
            raise InvalidPipeline(f"two folds into {balance.name}: give each windows a name, and fold once an epoch")
        self.by_name[balance.name] = balance

    def shares_parts(self, frames: Collection[DataFrame]) -> bool:
        """True if two of `frames` read one part: the first to be written counts it, so they are written in turn."""
        parts = [part for balance in self.by_name.values() for part in balance.written]
        return any(sum(part.counted.observed.uses_in(frame) for frame in frames) > 1 for part in parts)

    def settle_counts(self, frames: Collection[DataFrame]) -> dict[str, dict[str, int]]:
        """Return the counts by name, after `frames` (outputs and state, as the transform returned them) were written.

        Raises `Unbalanced`, `InvalidPipeline`.
        """
        return {name: balance.settle_counts(frames) for name, balance in self.by_name.items()}


@contextmanager
def collecting_balances(balances: Balances) -> Iterator[None]:
    """Collect the balances that one run of a transform registers; those of an earlier run are dropped."""
    balances.by_name.clear()
    token = _collecting.set(balances)
    try:
        yield
    finally:
        _collecting.reset(token)


def register(balance: Balance) -> Balance:
    """Add the balance to those of the running transform, if one runs."""
    if (balances := _collecting.get()) is not None:
        balances.add(balance)
    return balance


def conserved(
    pipeline: Pipeline,
    outputs: Mapping[str, DataFrame],
    balances: Balances,
    audited: Collection[str] = (),
    offends: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, DataFrame]:
    """Return the outputs, counted as they are written, and add a balance for each rule of the pipeline's conservation.

    `audited`: outputs whose differences an audit judges. `offends`: by output, SQL that is true of a row that goes to
    quarantine."""
    aggregates = {name: counts_of_output(pipeline.conservation, name, offends.get(name)) for name in outputs}
    counted = {name: _WrittenFrame.of(outputs[name], None, **counts) for name, counts in aggregates.items() if counts}

    def part_of(output: str, number: int, rule: Conservation) -> Part:
        terms = [
            output,
            *([QUARANTINED] if output in offends else []),
            *([KEYS] if rule.key else []),
            *([UNMATCHED] if rule.unmatched is not None else []),
        ]
        return Part(f"output {output}", counted[output], {term: name_of(number, term) for term in terms})

    for number, rule in numbered(pipeline.conservation):
        balances.add(
            Balance(
                name=rule.name,
                read=partial(_read_counts, balances, number, rule),
                written=[part_of(name, number, rule) for name in rule.outputs],
                terms=(*rule.outputs, *([QUARANTINED] if {*rule.outputs} & {*offends} else [])),
                left_out=tuple(rule.dropped),
                absent=(UNMATCHED,) if rule.unmatched is not None and rule.join != "left" else (),
                key=KEYS if rule.key else None,
                hint=_HINT,
                audited=set(rule.outputs) <= set(audited),
            )
        )
    return {name: counted[name].frame if name in counted else frame for name, frame in outputs.items()}


@dataclass(frozen=True)
class _WrittenFrame(CountedFrame):
    """An output, which only the write itself may count."""

    def counts(self) -> dict[str, int]:
        if not (counts := self.observed.counts()):
            raise StageFailed("Spark wrote an output whose rows are to be conserved, and didn't say how many")
        return counts


def _read_counts(balances: Balances, number: int, rule: Conservation) -> dict[str, int]:
    terms = ["in", *rule.dropped, *([KEYS] if rule.key else [])]
    read = [balances.sources[source] for source in rule.sources]
    return {term: sum(int(counts[name_of(number, term)]) for counts in read) for term in terms}

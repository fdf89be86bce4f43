"""What is counted of rows, in Spark's SQL, so that a pipeline's conservation is proven: sums, which need no order.

Of rows that have a key sums of its hashes, too: the same number of rows with the same sum are the same rows, but for
one chance in 2**64. As a text a key is hashed alike whatever type a transform gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lockstep.definition.conservation import QUARANTINED, Conservation
from lockstep.definition.ddl import quote_name

KEYS = ""  #: the term for sums of hashes; no reason and no output is called so
UNMATCHED = "unmatched"


def numbered(declared: Sequence[Conservation]) -> Iterator[tuple[int, Conservation]]:
    """Each one, and what it says of a partner's rows, with a number by which its counts are known."""
    every = (found for one in declared for found in (one, one.mirrored) if found is not None)
    return enumerate(every)


def name_of(number: int, term: str) -> str:
    """What a count is called among those of one frame."""
    return f"{number} {term}"


def counts_of_source(declared: Sequence[Conservation], source: str, good: str | None = None) -> dict[str, str]:
    """Aggregates, by name, over what is read of `source`. `good`: true of a row that goes in; None: every one does."""
    found = {}
    for number, one in numbered(declared):
        if source not in one.sources:
            continue
        malformed = [(f"NOT ({good})", "0L")] if good else []
        weight, reasons = _weight(one), list(one.dropped.items())
        found[name_of(number, "in")] = _sum(malformed, weight)
        for place, (reason, condition) in enumerate(reasons):
            rules = [*malformed, *_any(earlier for _, earlier in reasons[:place]), (f"({condition})", weight)]
            found[name_of(number, reason)] = _sum(rules, "0L")
        if one.key:
            key = _hash(one.key.values(), weight if one.array else None)
            found[name_of(number, KEYS)] = _sum([*malformed, *_any(one.dropped.values())], key)
    return found


def counts_of_output(declared: Sequence[Conservation], output: str, offends: str | None = None) -> dict[str, str]:
    """Aggregates, by name, over what is written of `output`. `offends`: true of a row that goes to quarantine."""
    found = {}
    for number, one in numbered(declared):
        if output not in one.outputs:
            continue
        count = f"CAST({quote_name(one.count)} AS BIGINT)" if one.count is not None else None
        found[name_of(number, output)] = _sum([], count) if count else "count(1)"
        if offends:
            found[name_of(number, output)] = _sum([(offends, "0L")], count or "1L")
            found[name_of(number, QUARANTINED)] = _sum([(f"NOT ({offends})", "0L")], count or "1L")
        if one.key:
            found[name_of(number, KEYS)] = _sum([], _hash(map(quote_name, one.key), count))
        if one.unmatched is not None:
            found[name_of(number, UNMATCHED)] = f"count(CASE WHEN ({one.unmatched}) THEN 1 END)"
    return found


def _weight(one: Conservation) -> str:
    """How many rows one row becomes."""
    if one.array is None:
        return "1L"
    return f"CAST(greatest(coalesce(size({one.array}), 0), {int(one.outer)}) AS BIGINT)"


def _any(conditions: Iterable[str]) -> list[tuple[str, str]]:
    """The rule that leaves out rows for which one of them is true."""
    found = " OR ".join(f"({condition})" for condition in conditions)
    return [(found, "0L")] if found else []


def _sum(rules: Sequence[tuple[str, str]], otherwise: str) -> str:
    cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in rules)
    return f"coalesce(sum({f'CASE {cases} ELSE {otherwise} END' if cases else otherwise}), 0L)"


def _hash(key: Iterable[str], times: str | None) -> str:
    """As a decimal: a sum of more rows than a BIGINT counts still fits."""
    told = ", ".join(f"({one}) IS NULL, CAST(({one}) AS STRING)" for one in key)
    found = f"CAST(xxhash64({told}) AS DECIMAL(20, 0))"
    return f"{found} * CAST({times} AS DECIMAL(18, 0))" if times else found

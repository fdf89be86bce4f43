"""A pipeline's conservation as balances: what was counted of its sources' rows against what was written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from lockstep.compute._balances import Balance, Balances, CountedFrame, Part
from lockstep.compute._conservation_sql import KEYS, UNMATCHED, counts_of_output, name_of, numbered
from lockstep.definition.conservation import QUARANTINED, Conservation
from lockstep.errors import StageFailed
from lockstep.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HINT = (
    "Correct the transform, or what the pipeline says of its conservation, and run the epoch again: it waits as it was "
    "planned"
)


def conserved(
    pipeline: Pipeline,
    outputs: Mapping[str, DataFrame],
    balances: Balances,
    audited: Collection[str] = (),
    offends: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, DataFrame]:
    """The outputs, counted as they are written, and a balance for each thing that the pipeline says of them; `audited`
    are those of which audits tell what is at fault; `offends`: by output, true of a row that goes to quarantine."""
    found = {name: counts_of_output(pipeline.conservation, name, offends.get(name)) for name in outputs}
    counted = {name: _WrittenFrame.of(outputs[name], None, **counts) for name, counts in found.items() if counts}
    for number, one in numbered(pipeline.conservation):
        balances.add(
            Balance(
                name=one.name,
                read=partial(_read, balances, number, one),
                written=[
                    Part(f"output {name}", counted[name], _terms(number, one, name, name in offends))
                    for name in one.outputs
                ],
                terms=(*one.outputs, *([QUARANTINED] if {*one.outputs} & {*offends} else [])),
                left_out=tuple(one.dropped),
                absent=(UNMATCHED,) if one.unmatched is not None and one.join != "left" else (),
                key=KEYS if one.key else None,
                hint=_HINT,
                audited=set(one.outputs) <= set(audited),
            )
        )
    return {name: counted[name].frame if name in counted else frame for name, frame in outputs.items()}


@dataclass(frozen=True)
class _WrittenFrame(CountedFrame):
    """An output: nothing is counted but what is written."""

    def counts(self) -> dict[str, int]:
        if not (found := self.observed.counts()):
            raise StageFailed("Spark wrote an output whose rows are to be conserved, and didn't say how many")
        return found


def _terms(number: int, one: Conservation, output: str, quarantines: bool) -> dict[str, str]:
    terms = [
        output,
        *([QUARANTINED] if quarantines else []),
        *([KEYS] if one.key else []),
        *([UNMATCHED] if one.unmatched is not None else []),
    ]
    return {term: name_of(number, term) for term in terms}


def _read(balances: Balances, number: int, one: Conservation) -> dict[str, int]:
    terms = ["in", *one.dropped, *([KEYS] if one.key else [])]
    read = [balances.sources[source] for source in one.sources]
    return {term: sum(int(counts[name_of(number, term)]) for counts in read) for term in terms}

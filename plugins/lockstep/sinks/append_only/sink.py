"""What is said of targets that take records and forget: no transactions, nothing to look up, nothing to take back.

At least once: a crash between a delivery and its record sends the epoch again. Every record carries a key that is the
same each time, so a receiver that drops keys it has seen has every row once. At most once: the record goes first, and
what a crash cuts off is never sent, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.committers import check_committer
from lockstep.sinks.values import Guarantee

MAX_RECORD_BYTES = 1 << 20

#: gets a record as the receiver will parse it, without its key; returns why the receiver would refuse it, or None
Validator: TypeAlias = Callable[[Mapping[str, Any]], str | None]


class OnRestate(StrEnum):
    """What to do with an epoch that is to take the place of one that was sent."""

    REFUSE = "refuse"
    SEND = "send"  #: after it, and said so: who reads drops what it replaces


@dataclass(frozen=True, kw_only=True)
class AppendOnlySink(Sink):
    """One output, as JSON records, to a target without transactions; `open` gives an `OpenRecordSink`.

    `committer`: what remembers the epochs that were sent: a folder, or "postgres:<connection id>" for table
    `lockstep_sent` of that database. `max_record_bytes`: a longer record is refused before the decision; afterwards it
    would block the pipeline. `validator`: "module:function", a `Validator` that is asked about each record before the
    decision. `guarantee`: "at_most_once" has the committer remember an epoch before its first record goes out, and
    sends none again; "none" does without a committer and without the target's answers. `on_restate`: "send" sends an
    epoch that takes the place of another one after that one, whose number each of its records names; "refuse" has it
    refused.
    """

    name: str = field(kw_only=False)
    output: str
    committer: str | None = None
    guarantee: str = Guarantee.AT_LEAST_ONCE  # type: ignore[assignment]  # given as text, it is one
    max_record_bytes: int = MAX_RECORD_BYTES
    validator: str | None = None
    on_restate: str = OnRestate.REFUSE

    operational: ClassVar[frozenset[str]] = frozenset({"on_restate"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if self.max_record_bytes <= 0:
            raise InvalidPipeline(f"sink {self.name}: max_record_bytes is {self.max_record_bytes}, has to be above 0")
        object.__setattr__(self, "guarantee", require_guarantee(self.name, self.guarantee, self.committer))
        object.__setattr__(self, "committer", check_committer(self.name, self.committer))
        object.__setattr__(self, "on_restate", require_on_restate(self.name, self.on_restate))

    def arguments(self) -> dict[str, Json]:
        usual = {one.name: one.default for one in fields(AppendOnlySink)}
        given = super().arguments()
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}


def require_on_restate(name: str, given: str) -> OnRestate:
    """Raises `InvalidPipeline`."""
    if given not in tuple(OnRestate):
        raise InvalidPipeline(f"sink {name}: on_restate={given!r} is neither 'refuse' nor 'send'")
    return OnRestate(given)


def require_guarantee(name: str, given: str, committer: str | None) -> Guarantee:
    """Raises `InvalidPipeline` for what a target without transactions can't keep."""
    if given not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE, Guarantee.NONE):
        raise InvalidPipeline(
            f"sink {name}: guarantee is {given!r}, this target has no transactions: 'at_least_once' (the records' keys "
            "let the receiver drop repeats), 'at_most_once' (what a crash cuts off is never sent) or 'none'"
        )
    guarantee = Guarantee(given)
    if guarantee is Guarantee.NONE and committer is not None:
        raise InvalidPipeline(f"sink {name}: guarantee 'none' remembers nothing, so it takes no committer")
    if guarantee is not Guarantee.NONE and committer is None:
        raise InvalidPipeline(
            f"sink {name}: committer is missing: give a folder, or 'postgres:<connection id>', that remembers which "
            "epochs were sent"
        )
    return guarantee


def what_follows(guarantee: str) -> str:
    """Of an epoch that was sent in part, for messages."""
    if guarantee == Guarantee.AT_MOST_ONCE:
        return "what has not come is not sent again, since the sink sends at most once"
    return "the epoch will be sent again"

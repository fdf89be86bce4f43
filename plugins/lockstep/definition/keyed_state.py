"""Keyed state: rows, one per key, that each epoch of a cursor pipeline passes to the next, as Flink's keyed state.

Each epoch stages a version next to its WAL, and its commit row decides both: state and sinks are always of the same
epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep.errors import InvalidPipeline

DELETED = "_deleted"  #: a boolean column of a transform's changes: true where the key is deleted


@dataclass(frozen=True)
class KeyedState:
    """The declaration of a pipeline's rows per key.

    `schema`: Spark DDL of the rows. `key`: the columns that identify a row; never null. `buckets`: number of parts into
    which keys are hashed. An epoch rewrites the buckets it touches and refers to the others. More buckets make epochs
    of few keys cheaper, and epochs of many keys more expensive, by a file each; the next epoch applies a change of the
    number. `expires`: a TIMESTAMP column, the time when a row expires; a search for expired rows skips buckets that
    have none. `found_by`: the columns of the key by which rows are looked up, if not all: rows with equal values are in
    one bucket, and found together. `self_expiring`: a row expires by itself: epochs that are planned after its
    `expires`, by the ledger's clock, don't see it; its space is freed bucket by bucket. Raises `InvalidPipeline`.
    """

    schema: str
    key: Sequence[str]
    buckets: int = 16
    expires: str | None = None
    found_by: Sequence[str] = ()
    self_expiring: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple(self.key))
        object.__setattr__(self, "found_by", tuple(self.found_by or self.key))
        if not self.key or len(set(self.key)) < len(self.key):
            raise InvalidPipeline(f"keyed state: key {list(self.key)} must name at least one column, each once")
        if not 1 <= self.buckets <= 4096:
            raise InvalidPipeline(f"keyed state: buckets must be 1 to 4096, is {self.buckets}")
        if self.self_expiring and self.expires is None:
            raise InvalidPipeline(
                "keyed state: self_expiring needs expires=, the column with the time when a row expires"
            )
        if set(self.found_by) - set(self.key) or len(set(self.found_by)) < len(self.found_by):
            raise InvalidPipeline(
                f"keyed state: found_by {list(self.found_by)} must name columns of the key {list(self.key)}, each once"
            )

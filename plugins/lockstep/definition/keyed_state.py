"""Keyed state: rows that each epoch of a cursor pipeline hands to the next, one a key.

What Flink calls keyed state. It is staged beside the WAL, a version an epoch, and decided by the epoch's one commit
row: state and sinks are always of the same epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep.errors import InvalidPipeline

DELETED = "_deleted"  #: a boolean column of a transform's changes: true where the key goes


@dataclass(frozen=True)
class KeyedState:
    """What a pipeline keeps of each key.

    `schema`: Spark DDL of the rows. `key`: the columns by which a row is found again; never null. `buckets`: into how
    many parts the keys are hashed; an epoch writes the parts it touches anew and takes the others over by reference.
    More buckets make an epoch of few keys cheaper, and one of many keys dearer, by a file each; a change of the number
    is carried out by the next epoch. `expires`: a TIMESTAMP column by which rows go; looking for those that are due
    leaves out the parts that have none. `found_by`: the columns of the key by which rows are looked up, where that
    isn't all of it: rows that are alike in them stand in one part, and are found together. `self_expiring`: a row goes
    by itself once `expires` has passed: an epoch that is planned then, by the ledger's clock, doesn't see it; the space
    is freed part by part. Raises `InvalidPipeline`.
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
            raise InvalidPipeline("keyed state: self_expiring needs expires=, the column that says when a row goes")
        if set(self.found_by) - set(self.key) or len(set(self.found_by)) < len(self.found_by):
            raise InvalidPipeline(
                f"keyed state: found_by {list(self.found_by)} must name columns of the key {list(self.key)}, each once"
            )

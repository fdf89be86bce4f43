"""Whether Spark planned to read text files by the sizes that the plan froze.

To ask for a file's size has Spark copy each row; where the block of a row begins and how long it is costs next to
nothing. Spark cuts a file into blocks of one length and a shorter last one, as `FilePartition.splitFiles` says. So a
block that ends elsewhere than a frozen file does is as long as all others, or the last one of a file that Spark took
for a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.sources.records import Records

_SIZE, _END, _LONGEST = "size", "end", "longest"
_LEAST_ODD, _MOST_ODD = "least_odd", "most_odd"  #: lengths of blocks that end where no frozen file does
_MOST_SIZES = 1000  #: that are told one by one


def counts_of_blocks(records: Records) -> dict[str, str]:
    """Aggregates over records as they are read; none where Spark doesn't go by sizes of its own."""
    if not records.sizes:
        return {}
    length, end = "input_file_block_length()", "(input_file_block_start() + input_file_block_length())"
    odd = f"CASE WHEN {end} NOT {_known(records.sizes)} THEN {length} END"
    found = {_LEAST_ODD: f"min({odd})", _MOST_ODD: f"max({odd})"}
    return {_LONGEST: f"max({length})", _END: f"max({end})", **found}


def count_of_sizes(records: Records) -> dict[str, str]:
    """An aggregate for `unknown_size`, which costs a quarter of the job."""
    if not records.sizes or "_metadata" in map(str.casefold, records.columns):
        return {}
    size = "_metadata.file_size"
    return {_SIZE: f"max(CASE WHEN {size} NOT {_known(records.sizes)} THEN {size} END)"}


def unknown_size(counts: dict[str, Any]) -> int | None:
    """Takes it out of what was counted: the size of a file, as Spark planned to read it, that no frozen one has."""
    found = counts.pop(_SIZE, None)
    return None if found is None else int(found)


@dataclass(frozen=True)
class Blocks:
    """What one job told of the blocks that it read, in bytes."""

    longest: int | None
    end: int | None
    odd: tuple[int | None, int | None]

    @classmethod
    def taken_from(cls, counts: dict[str, Any]) -> Blocks:
        """Takes them out of what was counted."""
        longest, end, least, most = (counts.pop(name, None) for name in (_LONGEST, _END, _LEAST_ODD, _MOST_ODD))
        return cls(longest, end, (least, most))

    def are_whole(self, sizes: frozenset[int]) -> bool:
        """Whether no file was taken for a shorter one. False also where these can't tell: a job stopped early, a file
        in blocks stands beside one that can't be cut, no record begins in the largest file's last block."""
        alike = self.odd == (self.longest, self.longest)
        return self.odd == (None, None) or (alike and self.end == max(sizes))

    def are_cut_as(self, other: Blocks) -> bool:
        """Whether all were cut by the length by which another job did, which went by the frozen sizes."""
        least, most = self.odd
        return least == most and self.odd == other.odd


def _known(sizes: frozenset[int]) -> str:
    if len(sizes) > _MOST_SIZES:
        return f"BETWEEN {min(sizes)}L AND {max(sizes)}L"
    return f"IN ({', '.join(f'{one}L' for one in sorted(sizes))})"

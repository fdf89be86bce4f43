"""Whether Spark planned to read text files by the sizes that the plan froze.

To ask for a file's size has Spark copy each row; where the block of a row begins and how long it is costs next to
nothing. Spark cuts a file into blocks of one length and a shorter last one, as `FilePartition.splitFiles` says. So a
block that ends elsewhere than a frozen file does is as long as all others, or the last one of a file that Spark took
for a shorter one. If that one is as long as all others, too, only the plan of the job tells: it is asked for files of
other sizes, which Spark answers by its list of files, and opens none of those that have a frozen size.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from lockstep.sources.records import SourceRecords

_SIZE, _END, _LONGEST = "size", "end", "longest"
_FILE_SIZE = "_metadata.file_size"
_LEAST_ODD, _MOST_ODD = "least_odd", "most_odd"  #: lengths of blocks that end where no frozen file does
_MOST_SIZES = 1000  #: that are told one by one


def counts_of_blocks(records: SourceRecords) -> dict[str, str]:
    """Aggregates over records as they are read; none where Spark doesn't go by sizes of its own."""
    if not records.sizes:
        return {}
    length, end = "input_file_block_length()", "(input_file_block_start() + input_file_block_length())"
    odd = f"CASE WHEN {end} NOT {_known(records.sizes)} THEN {length} END"
    found = {_LEAST_ODD: f"min({odd})", _MOST_ODD: f"max({odd})"}
    return {_LONGEST: f"max({length})", _END: f"max({end})", **found}


def count_of_sizes(records: SourceRecords) -> dict[str, str]:
    """An aggregate for `unknown_size`, which costs a quarter of the job."""
    if not records.sizes or "_metadata" in map(str.casefold, records.columns):
        return {}
    return {_SIZE: f"max(CASE WHEN {_FILE_SIZE} NOT {_known(records.sizes)} THEN {_FILE_SIZE} END)"}


def planned_size(records: SourceRecords) -> int | None:
    """The size of a file, as Spark plans to read it, that no frozen one has. A Connect server looks the files up anew
    for that, unless it keeps plans."""
    if not count_of_sizes(records):
        return None
    strange = records.frame.where(f"{_FILE_SIZE} NOT {_known(records.sizes)}")
    [found] = strange.selectExpr(f"max({_FILE_SIZE}) AS {_SIZE}").collect()
    return unknown_size(found.asDict())


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

    def are_whole(self, sizes: Collection[int]) -> bool:
        """Whether no file was taken for a shorter one. False also where these can't tell: besides what `may_be_whole`
        says, several files are in blocks."""
        return self.odd == (None, None) or (self.may_be_whole(sizes) and self._in_blocks(sizes) == 1)

    def may_be_whole(self, sizes: Collection[int]) -> bool:
        """Whether none was, but for a stale size of so many blocks. False also where these can't tell: a job stopped
        early, a file in blocks stands beside one that can't be cut, no record begins in the largest file's last
        block."""
        return self.odd == (self.longest, self.longest) and self.end == max(sizes)

    def _in_blocks(self, sizes: Collection[int]) -> int:
        return sum(size > (self.longest or 0) for size in sizes)

    def are_cut_as(self, other: Blocks) -> bool:
        """Whether all were cut by the length by which another job did, which went by the frozen sizes."""
        least, most = self.odd
        return least == most and self.odd == other.odd


def _known(sizes: Collection[int]) -> str:
    known = sorted(set(sizes))
    if len(known) > _MOST_SIZES:
        return f"BETWEEN {known[0]}L AND {known[-1]}L"
    return f"IN ({', '.join(f'{one}L' for one in known)})"

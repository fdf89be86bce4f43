"""One source's frozen range as a DataFrame that counts what flows through it, and its malformed records.

Malformed records fail the epoch by file and line, or go to quarantine, counted. Why a record doesn't parse is asked of
the parser that refused it: which column, which type, and never which value.

`Blocks` checks that Spark planned to read text files by the sizes that the plan froze. To ask for a file's size has
Spark copy each row; where the block of a row begins and how long it is costs next to nothing. Spark cuts a file into
blocks of one length and a shorter last one, as `FilePartition.splitFiles` says. So a block that ends elsewhere than a
frozen file does is as long as all others, or the last one of a file that Spark took for a shorter one. If that one is
as long as all others, too, only the plan of the job tells: it is asked for files of other sizes, which Spark answers by
its list of files, and opens none of those that have a frozen size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lockstep.compute._conservation import counts_of_source
from lockstep.compute._counting import ObservedFrame
from lockstep.definition.conservation import Conservation
from lockstep.definition.ddl import Field, fields_of, quote_name
from lockstep.epoch import SourceRange
from lockstep.errors import BadRecords, StageFailed
from lockstep.sources._strict import plain_text
from lockstep.sources.open_source import OpenSource
from lockstep.sources.records import BAD, FILE, WHY, OpenRecordSource, Reading, Records, lines_of, path_of
from lockstep.wal.manifest import SourceCount
from lockstep.wal.sealing import QUARANTINE

_SIZE, _END, _LONGEST = "size", "end", "longest"
_FILE_SIZE = "_metadata.file_size"
_LEAST_ODD, _MOST_ODD = "least_odd", "most_odd"  #: lengths of blocks that end where no frozen file does
_MOST_SIZES = 1000  #: that are told one by one


def counts_of_blocks(records: Records) -> dict[str, str]:
    """Aggregates over records as they are read; none where Spark doesn't go by sizes of its own."""
    if not records.sizes:
        return {}
    length, end = "input_file_block_length()", "(input_file_block_start() + input_file_block_length())"
    odd = f"CASE WHEN {end} NOT {_size_condition(records.sizes)} THEN {length} END"
    bounds = {_LEAST_ODD: f"min({odd})", _MOST_ODD: f"max({odd})"}
    return {_LONGEST: f"max({length})", _END: f"max({end})", **bounds}


def count_of_sizes(records: Records) -> dict[str, str]:
    """An aggregate for `unknown_size`, which costs a quarter of the job."""
    if not records.sizes or "_metadata" in map(str.casefold, records.columns):
        return {}
    return {_SIZE: f"max(CASE WHEN {_FILE_SIZE} NOT {_size_condition(records.sizes)} THEN {_FILE_SIZE} END)"}


def planned_size(records: Records) -> int | None:
    """The size of a file, as Spark plans to read it, that no frozen one has. A Connect server looks the files up anew
    for that, unless it keeps plans."""
    if not count_of_sizes(records):
        return None
    strange = records.frame.where(f"{_FILE_SIZE} NOT {_size_condition(records.sizes)}")
    [row] = strange.selectExpr(f"max({_FILE_SIZE}) AS {_SIZE}").collect()
    return unknown_size(row.asDict())


def unknown_size(counts: dict[str, Any]) -> int | None:
    """Takes it out of what was counted: the size of a file, as Spark planned to read it, that no frozen one has."""
    size = counts.pop(_SIZE, None)
    return None if size is None else int(size)


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

    def are_cut_as(self, reference: Blocks) -> bool:
        """Whether all were cut by the length by which another job did, which went by the frozen sizes."""
        least, most = self.odd
        return least == most and self.odd == reference.odd


def _size_condition(sizes: Collection[int]) -> str:
    distinct = sorted(set(sizes))
    if len(distinct) > _MOST_SIZES:
        return f"BETWEEN {distinct[0]}L AND {distinct[-1]}L"
    return f"IN ({', '.join(f'{size}L' for size in distinct)})"


@dataclass(frozen=True)
class Input:
    """One source of an epoch. `observed` None: the range is known to be empty."""

    name: str
    source: OpenSource
    range: SourceRange
    records: Records
    observed: ObservedFrame | None
    declared: Sequence[Conservation] = ()
    seen: ObservedFrame | None = None  #: whatever reads what was kept, if somebody has to know
    planned: Records | None = None  #: as they are read, before anything is counted

    @classmethod
    def plan(
        cls,
        spark: SparkSession,
        name: str,
        source: OpenSource,
        frozen: SourceRange,
        declared: Sequence[Conservation] = (),
        *,
        sound: bool = False,
    ) -> Input:
        """Plan the read; nothing is read yet. `declared`: of which rows travel how. `sound`: by a job that fails at a
        malformed record, where that is cheaper and none goes to quarantine."""
        records = (_sound_records(spark, source, frozen) if sound else None) or _records(spark, source, frozen)
        if source.is_empty(frozen.start, frozen.end):
            return cls(name, source, frozen, records, None, declared)
        observed = _observe(records, name, declared)
        counted = replace(records, frame=observed.frame)
        return cls(name, source, frozen, counted, observed, declared, planned=records)

    @property
    def quarantines(self) -> bool:
        """Whether malformed records go to quarantine."""
        marked = self.records.marked
        return marked and isinstance(self.source, OpenRecordSource) and self.source.on_bad_records == "quarantine"

    def marked(self) -> Records:
        """The records with the malformed ones marked, also where no mark was asked for at first."""
        if not self.records.sound:
            return self.records
        return _records(self.records.frame.sparkSession, self.source, self.range)

    @cached_property
    def frame(self) -> DataFrame:
        """What the transform gets: the rows that parse. It never sees the others, even where they fail the epoch."""
        if not self.records.marked:
            return self.records.frame
        return self.records.frame.where(f"{BAD} IS NULL").drop(
            BAD, FILE, WHY
        )  # who counts has read every column already

    def uses(self, outputs: Iterable[DataFrame]) -> int:
        """How often the outputs' plans read this input."""
        observed = self.seen or self.observed
        return sum(observed.uses_in(output) for output in outputs) if observed else 0

    def materialize(self) -> Input:
        """Read the range now, once; whatever reads this input afterwards sees the same rows.

        A local checkpoint and not `persist`: no other plan can match it, a dead client's copy goes with its session,
        and 3 M flights took three quarters of the time.
        """
        if self.observed is None:
            return self
        return replace(self, records=replace(self.records, frame=self.observed.checkpoint()))

    def materialize_traceably(self) -> Input:
        """`kept`, such that `uses` can still tell who reads it."""
        materialized = self.materialize()
        if materialized.observed is None:
            return materialized
        seen = ObservedFrame.of(materialized.records.frame, rows="count(1)")
        return replace(materialized, records=replace(materialized.records, frame=seen.frame), seen=seen)

    def counts(self, spark: SparkSession) -> dict[str, int]:
        """Rows read, of them bad (malformed) ones, and what is counted for the pipeline's conservation; reads the range
        now if the optimizer found no need to, or the transform stopped before its end, or it has to be told from one
        whose file was read short. Raises `StageFailed` if Spark hasn't read the files to their end."""
        if self.observed is None:
            return dict.fromkeys(("rows", "bad", *counts_of_source(self.declared, self.name)), 0)
        expected = self.source.rows_held(self.range.start, self.range.end) or 0
        counts, sizes = self.observed.counts(), self.records.sizes
        blocks = Blocks.taken_from(counts)
        all_held = bool(counts) and counts["rows"] >= expected
        if all_held and blocks.are_whole(sizes):
            return counts
        if self.planned is not None and (size := planned_size(self.planned)) is not None:
            raise StageFailed(self._told_of(f"a file as one of {size} bytes"))
        if all_held and blocks.may_be_whole(sizes):
            return counts
        recount, whole = self._read_again(spark)
        if recount["rows"] < expected:
            raise StageFailed(
                f"source {self.name}: the footers of its files say {expected} rows, and Spark read {recount['rows']}; "
                "nothing was sealed"
            )
        alike = blocks.are_whole(sizes) or blocks.are_cut_as(whole)
        if not alike and counts["rows"] != recount["rows"]:  # as many rows were all of them, however they were cut
            raise StageFailed(self._told_of(f"files in blocks of {' to '.join(map(str, blocks.odd))} bytes"))
        return counts if all_held else recount

    def _read_again(self, spark: SparkSession) -> tuple[dict[str, int], Blocks]:
        """By a job that asks for each file's size, too."""
        records = _records(spark, self.source, self.range)
        again = _observe(records, self.name, self.declared, count_of_sizes(records))
        again.read()
        counts = again.counts()
        blocks = Blocks.taken_from(counts)
        if (size := unknown_size(counts)) is not None:
            raise StageFailed(self._told_of(f"a file as one of {size} bytes"))
        return counts, blocks

    def _told_of(self, what: str) -> str:
        return (
            f"source {self.name}: Spark read {what}, and no file that the plan froze is so: it goes by what it knew of "
            "an earlier one; nothing was sealed"
        )


def _records(spark: SparkSession, source: OpenSource, frozen: SourceRange) -> Records:
    if isinstance(source, OpenRecordSource):
        return source.read_records(spark, frozen.start, frozen.end)
    return Records(source.read(spark, frozen.start, frozen.end), ())


def _sound_records(spark: SparkSession, source: OpenSource, frozen: SourceRange) -> Records | None:
    if not isinstance(source, OpenRecordSource) or source.on_bad_records != "fail":
        return None
    return source.read_sound(spark, frozen.start, frozen.end)


def _observe(
    records: Records, source: str, declared: Sequence[Conservation], sizes: Mapping[str, str] | None = None
) -> ObservedFrame:
    more = counts_of_source(declared, source, f"{BAD} IS NULL" if records.marked else None)
    more |= counts_of_blocks(records) | dict(sizes or {})
    if records.sound:
        empty = f"count(CASE WHEN {records.no_value} THEN 1 END)"  # or columns that nobody asks for aren't parsed
        return ObservedFrame.of(records.frame, rows="count(1)", bad="count_if(false)", empty=empty, **more)
    if not records.marked:
        return ObservedFrame.of(records.frame, rows="count(1)", bad="count_if(false)", **more)
    # count_if would give each row one more column, and copy it for that
    bad = f"count(CASE WHEN {BAD} IS NOT NULL AND {records.every_column} THEN 1 END)"
    return ObservedFrame.of(records.frame, rows="count(1)", bad=bad, **more)


_MAX_COLUMNS = 3


def reasons_of(spark: SparkSession, reading: Reading, records: Sequence[str]) -> list[str]:
    """A reason a record. Each is parsed again with all columns as text, then with one of them as what it should be."""
    fields = fields_of(reading.schema or "")
    tried = ", ".join(_fails(reading, fields, typed) for typed in (None, *fields))
    frame = spark.createDataFrame(list(enumerate(records)), "number INT, value STRING")
    fails_by_number = {
        row["number"]: row["fails"] for row in frame.selectExpr("number", f"array({tried}) AS fails").collect()
    }
    return [_reason(reading, fields, fails_by_number[number]) for number in range(len(records))]


def _fails(reading: Reading, fields: Sequence[Field], typed: Field | None) -> str:
    columns = [f"{quote_name(field.name)} {plain_text(field.type) if field is typed else 'STRING'}" for field in fields]
    parsed = reading.parser(", ".join(columns), "value")
    return f"{parsed}.{BAD} IS NOT NULL"


def _reason(reading: Reading, fields: Sequence[Field], fails: Sequence[bool]) -> str:
    if fails[0]:
        counted = f"another number of values than the schema's {len(fields)} columns"
        return counted if reading.format == "csv" else "no JSON object"
    failed = [field for field, wrong in zip(fields, fails[1:], strict=True) if wrong]
    columns = [f"column {field.name} is no {field.type}" for field in failed]
    more = f" and {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
    return ", ".join(columns[:_MAX_COLUMNS]) + more if columns else "doesn't parse"


_SHOWN = 10


def settle(source_input: Input, count: SourceCount, folder: str) -> None:
    """Quarantine the input's malformed records, `count.quarantined` of them, in the execution's `folder`.

    Raises `BadRecords`, with the first ten by file, line, column and reason, if the source wants none in quarantine;
    and what the source raises if it can't be said yet that they are malformed.
    """
    if count.quarantined == 0:
        return
    records = source_input.marked()
    if records.confirm_bad is not None:
        records.confirm_bad(records)
    bad = records.bad()
    if not source_input.quarantines:
        raise BadRecords(_message(source_input.name, count, records, bad))
    bad.write.mode("error").json(f"{folder}/{QUARANTINE}/{source_input.name}")


def _message(source: str, count: SourceCount, records: Records, bad: DataFrame) -> str:
    bad_rows = [row.asDict() for row in bad.limit(_SHOWN).collect()]
    rows = [(path_of(row["file"]), row["record"]) for row in bad_rows]
    reading = records.reading
    why = reasons_of(bad.sparkSession, reading, [record for _, record in rows]) if reading else [""] * len(rows)
    why = [row.get("why") or reason for row, reason in zip(bad_rows, why, strict=False)]
    places = "".join(f"\n  {place}{reason}" for place, reason in _by_place(rows, why))
    more = f"\n  and {count.quarantined - len(rows)} more" if count.quarantined > len(rows) else ""
    return (
        f"source {source}: {count.quarantined} of {count.rows} records don't parse; nothing was sealed; correct the "
        f"input, or say on_bad_records='quarantine', which keeps them:{places}{more}"
    )


def _by_place(rows: Sequence[tuple[str, str]], why: Sequence[str]) -> Iterable[tuple[str, str]]:
    reasons = [f": {reason}" if reason else "" for reason in why]
    for path, group in groupby(sorted(zip(rows, reasons, strict=True)), key=lambda items: items[0][0]):
        items = list(group)
        lines = lines_of(path, [record for (_, record), _ in items])
        numbered = zip(lines, (reason for _, reason in items), strict=True)
        for line, reason in sorted(numbered, key=lambda pair: pair[0] or 0):
            yield (f"{path}:{line}" if line is not None else path), reason

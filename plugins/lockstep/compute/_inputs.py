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
from lockstep.sources._checked_schema import BAD, WHY, plain_text
from lockstep.sources.base import OpenSource
from lockstep.sources.records import FILE, OpenRecordSource, Reading, SourceRecords, lines_of, path_of
from lockstep.wal.manifest import SourceCount
from lockstep.wal.sealing import QUARANTINE

_SIZE, _END, _LONGEST = "size", "end", "longest"
_FILE_SIZE = "_metadata.file_size"
_LEAST_ODD, _MOST_ODD = "least_odd", "most_odd"  #: lengths of blocks that end where no frozen file does
_MAX_SIZES = 1000  #: of one condition; of more sizes the least and the greatest
_MAX_COLUMNS = 3  #: named in a message
_MAX_RECORDS = 10  #: named in a message


def counts_of_blocks(records: SourceRecords) -> dict[str, str]:
    """SQL aggregates by name over records as they are read; none where Spark doesn't rely on its own file sizes."""
    if not records.sizes:
        return {}
    length, end = "input_file_block_length()", "(input_file_block_start() + input_file_block_length())"
    odd = f"CASE WHEN {end} NOT {_size_condition(records.sizes)} THEN {length} END"
    bounds = {_LEAST_ODD: f"min({odd})", _MOST_ODD: f"max({odd})"}
    return {_LONGEST: f"max({length})", _END: f"max({end})", **bounds}


def count_of_sizes(records: SourceRecords) -> dict[str, str]:
    """The SQL aggregate that `unknown_size` takes, by name; it costs a quarter of the job."""
    if not records.sizes or "_metadata" in map(str.casefold, records.columns):
        return {}
    return {_SIZE: f"max(CASE WHEN {_FILE_SIZE} NOT {_size_condition(records.sizes)} THEN {_FILE_SIZE} END)"}


def planned_size(records: SourceRecords) -> int | None:
    """A file size that Spark plans to read and that no frozen file has. A Connect server lists the files again for
    that, unless it caches plans."""
    if not count_of_sizes(records):
        return None
    strange = records.frame.where(f"{_FILE_SIZE} NOT {_size_condition(records.sizes)}")
    [row] = strange.selectExpr(f"max({_FILE_SIZE}) AS {_SIZE}").collect()
    return unknown_size(row.asDict())


def unknown_size(counts: dict[str, Any]) -> int | None:
    """Remove from `counts` the file size that Spark planned to read and that no frozen file has, and return it."""
    size = counts.pop(_SIZE, None)
    return None if size is None else int(size)


@dataclass(frozen=True)
class Blocks:
    """Lengths and ends of the blocks that one job read, in bytes."""

    longest: int | None
    end: int | None
    odd: tuple[int | None, int | None]

    @classmethod
    def taken_from(cls, counts: dict[str, Any]) -> Blocks:
        """Remove them from `counts`."""
        longest, end, least, most = (counts.pop(name, None) for name in (_LONGEST, _END, _LEAST_ODD, _MOST_ODD))
        return cls(longest, end, (least, most))

    def are_whole(self, sizes: Collection[int]) -> bool:
        """Return true if every file was read to its frozen end. False also if that is unknown: as in `may_be_whole`, or
        if several files are in blocks."""
        return self.odd == (None, None) or (
            self.may_be_whole(sizes) and sum(size > (self.longest or 0) for size in sizes) == 1
        )

    def may_be_whole(self, sizes: Collection[int]) -> bool:
        """Return true if every file was read to its end, unless a stale size is a whole number of blocks. False also if
        that is unknown: the job stopped early, one file is in blocks and another can't be cut, or no record begins in
        the largest file's last block."""
        return self.odd == (self.longest, self.longest) and self.end == max(sizes)

    def are_cut_as(self, reference: Blocks) -> bool:
        """Return true if all files were cut by the same length as by `reference`, a job that used the frozen sizes."""
        least, most = self.odd
        return least == most and self.odd == reference.odd


def _size_condition(sizes: Collection[int]) -> str:
    distinct = sorted(set(sizes))
    if len(distinct) > _MAX_SIZES:
        return f"BETWEEN {distinct[0]}L AND {distinct[-1]}L"
    return f"IN ({', '.join(f'{size}L' for size in distinct)})"


@dataclass(frozen=True)
class SourceInput:
    """One source of an epoch. `observed` None: the range is known to be empty."""

    name: str
    source: OpenSource
    range: SourceRange
    records: SourceRecords
    observed: ObservedFrame | None
    declared: Sequence[Conservation] = ()
    seen: ObservedFrame | None = None  #: observes reads of the materialized rows
    planned: SourceRecords | None = None  #: the records without counts

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
    ) -> SourceInput:
        """Plan the read without reading. `declared`: the pipeline's conservation. `sound`: use a job that fails at a
        malformed record, where that is cheaper and no record goes to quarantine."""
        records = None
        if sound and isinstance(source, OpenRecordSource) and source.on_bad_records == "fail":
            records = source.read_sound(spark, frozen.start, frozen.end)
        records = records or _records(spark, source, frozen)
        if source.is_empty(frozen.start, frozen.end):
            return cls(name, source, frozen, records, None, declared)
        observed = _observe(records, name, declared)
        counted = replace(records, frame=observed.frame)
        return cls(name, source, frozen, counted, observed, declared, planned=records)

    @property
    def quarantines(self) -> bool:
        """True if malformed records go to quarantine."""
        marked = self.records.marked
        return marked and isinstance(self.source, OpenRecordSource) and self.source.on_bad_records == "quarantine"

    def marked(self) -> SourceRecords:
        """The records with the malformed ones marked, even if they were read as sound."""
        if not self.records.sound:
            return self.records
        return _records(self.records.frame.sparkSession, self.source, self.range)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows that parse, which the transform gets; never the others, even where they fail the epoch."""
        if not self.records.marked:
            return self.records.frame
        # the counts before it have read every column
        return self.records.frame.where(f"{BAD} IS NULL").drop(BAD, FILE, WHY)

    def uses(self, outputs: Iterable[DataFrame]) -> int:
        """Number of times that the outputs' plans read this input."""
        observed = self.seen or self.observed
        return sum(observed.uses_in(output) for output in outputs) if observed else 0

    def materialize(self) -> SourceInput:
        """Read the range now, once; every later read of this input sees the same rows.

        A local checkpoint and not `persist`: no other plan can match it, a dead client's copy goes with its session,
        and 3 M flights took three quarters of the time.
        """
        if self.observed is None:
            return self
        return replace(self, records=replace(self.records, frame=self.observed.checkpoint()))

    def materialize_traceably(self) -> SourceInput:
        """As `materialize`, with reads of the materialized rows observed, so that `uses` counts them."""
        materialized = self.materialize()
        if materialized.observed is None:
            return materialized
        seen = ObservedFrame.of(materialized.records.frame, rows="count(1)")
        return replace(materialized, records=replace(materialized.records, frame=seen.frame), seen=seen)

    def counts(self, spark: SparkSession) -> dict[str, int]:
        """Return the numbers of rows read and of bad (malformed) ones, and the counts for the pipeline's conservation.

        Reads the range again if the optimizer skipped it, the transform stopped before its end, or the counts don't
        show that the files were read to their end. Raises `StageFailed` if Spark hasn't read them to their end.
        """
        if self.observed is None:
            return dict.fromkeys(("rows", "bad", *counts_of_source(self.declared, self.name)), 0)
        expected = self.source.rows_held(self.range.start, self.range.end) or 0
        counts, sizes = self.observed.counts(), self.records.sizes
        blocks = Blocks.taken_from(counts)
        all_held = bool(counts) and counts["rows"] >= expected
        if all_held and blocks.are_whole(sizes):
            return counts
        if self.planned is not None and (size := planned_size(self.planned)) is not None:
            raise self._stale_read(f"a file as one of {size} bytes")
        if all_held and blocks.may_be_whole(sizes):
            return counts
        records = _records(spark, self.source, self.range)
        observed = _observe(records, self.name, self.declared, count_of_sizes(records))
        observed.read()
        recount = observed.counts()
        whole = Blocks.taken_from(recount)
        if (size := unknown_size(recount)) is not None:
            raise self._stale_read(f"a file as one of {size} bytes")
        if recount["rows"] < expected:
            raise StageFailed(
                f"source {self.name}: the footers of its files say {expected} rows, and Spark read {recount['rows']}; "
                "nothing was sealed"
            )
        alike = blocks.are_whole(sizes) or blocks.are_cut_as(whole)
        if not alike and counts["rows"] != recount["rows"]:  # as many rows were all of them, however they were cut
            raise self._stale_read(f"files in blocks of {' to '.join(map(str, blocks.odd))} bytes")
        return counts if all_held else recount

    def _stale_read(self, what: str) -> StageFailed:
        return StageFailed(
            f"source {self.name}: Spark read {what}, and no file that the plan froze is so: it used the size of an "
            "earlier version of a file; nothing was sealed"
        )


def _records(spark: SparkSession, source: OpenSource, frozen: SourceRange) -> SourceRecords:
    if isinstance(source, OpenRecordSource):
        return source.read_records(spark, frozen.start, frozen.end)
    return SourceRecords(source.read(spark, frozen.start, frozen.end), ())


def _observe(
    records: SourceRecords, source: str, declared: Sequence[Conservation], sizes: Mapping[str, str] | None = None
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


def reasons_of(spark: SparkSession, reading: Reading, records: Sequence[str]) -> list[str]:
    """Return one reason per record. Each is parsed again with all columns as text, then with one column as its type."""
    fields = fields_of(reading.schema or "")

    def fails(typed: Field | None) -> str:
        columns = ", ".join(
            f"{quote_name(field.name)} {plain_text(field.type) if field is typed else 'STRING'}" for field in fields
        )
        return f"{reading.parser(columns, 'value')}.{BAD} IS NOT NULL"

    tried = ", ".join(map(fails, (None, *fields)))
    frame = spark.createDataFrame(list(enumerate(records)), "number INT, value STRING")
    fails_by_number = {
        row["number"]: row["fails"] for row in frame.selectExpr("number", f"array({tried}) AS fails").collect()
    }
    return [_reason(reading, fields, fails_by_number[number]) for number in range(len(records))]


def _reason(reading: Reading, fields: Sequence[Field], fails: Sequence[bool]) -> str:
    if fails[0]:
        counted = f"another number of values than the schema's {len(fields)} columns"
        return counted if reading.format == "csv" else "no JSON object"
    failed = [field for field, wrong in zip(fields, fails[1:], strict=True) if wrong]
    columns = [f"column {field.name} is no {field.type}" for field in failed]
    more = f" and {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
    return ", ".join(columns[:_MAX_COLUMNS]) + more if columns else "doesn't parse"


def settle_bad_records(source_input: SourceInput, count: SourceCount, folder: str) -> None:
    """Write the input's malformed records, `count.quarantined` of them, to quarantine in the execution's `folder`.

    Raises `BadRecords` with the first ten by file, line, column and reason if the source has no quarantine, and what
    the source raises if it can't confirm yet that they are malformed.
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


def _message(source: str, count: SourceCount, records: SourceRecords, bad: DataFrame) -> str:
    bad_rows = [row.asDict() for row in bad.limit(_MAX_RECORDS).collect()]
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

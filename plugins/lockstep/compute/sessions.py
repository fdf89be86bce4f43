"""One epoch's fold into sessions: rows into panes, panes and the sessions before into the current sessions.

A row that is no older than `forgotten` can't have a part in a session that was forgotten: that ended by then. An older
row can, unless it is within a session that is kept, which no other session overlaps. So the sessions are those of one
computation over all rows that were taken in.

Few panes and sessions are joined in this process (`join`), many by Spark (`_pieces`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from lockstep.compute._counting import CountedFrame, ObservedFrame
from lockstep.compute._key_hash import buckets_of
from lockstep.compute._local_rows import frame_of
from lockstep.compute._reading_once import require_kept
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_merging import Merged, Unsure, merge, result_table
from lockstep.compute._window_sql import (
    AT,
    BEGAN,
    FRESH,
    PASSES,
    ROWS,
    SEEN,
    changes_of,
    combined,
    counts_of_any,
    result_columns,
    results_of,
    rows_with,
)
from lockstep.compute.windows import (
    Folded,
    ReadRows,
    add_up,
    checkpointed,
    count_frames,
    count_local,
    none_late,
    read_marks,
    read_rows,
)
from lockstep.definition.ddl import quote_name
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.windows import (
    ABSORBED,
    DUE,
    EMITTED,
    END,
    REVISION,
    START,
    SessionDefinition,
    WindowDefinition,
    micros,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute.state import StateRows

SINCE = "_window_since"  #: start of a key's earliest session that is kept, in µs
_TIME = pa.timestamp("us", "UTC")
_NEVER = np.iinfo(np.int64).max
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Truths = np.ndarray[tuple[int], np.dtype[np.bool_]]
_KEY = "_window_key"
#: of a piece: its own start; the greatest end before it; whether it was closed when the epoch began
_OWN, _REACH, _CLOSED = "_window_own", "_window_reach", "_window_closed"


@dataclass(frozen=True)
class SessionBounds:
    """Times in µs: sessions that end by `closed` are closed, by `forgotten` forgotten."""

    closed: int
    forgotten: int
    gap: int

    @classmethod
    def of(cls, windows: SessionDefinition, before: Watermark) -> SessionBounds:
        return cls(before.bound, before.forgetting(windows).forgotten, micros(windows.gap))

    @property
    def pane(self) -> str:
        """SQL for a row's pane: its rows are less than the gap apart; each time that may be late is a pane of its
        own."""
        stretch = f"greatest({AT} - pmod({AT}, {self.gap}L), {self.forgotten}L)"
        return f"CASE WHEN {AT} < {self.forgotten}L THEN {AT} ELSE {stretch} END"

    @property
    def doubtful(self) -> str:
        """SQL that is true of a row that is late unless a session that is kept began before it."""
        return f"({PASSES} AND {AT} < {self.forgotten}L)"

    def counts(self, windows: SessionDefinition) -> dict[str, str]:
        """SQL aggregates by name over rows as they are read."""
        return {**counts_of_any(windows), "missed": rows_with(self.doubtful)}


@dataclass(frozen=True)
class Joined:
    """Panes joined with the sessions before.

    `parts`: the panes that aren't late, each with the start of its session. `old`: the sessions before, each with the
    start of its current session. `absorbed`: the sessions before that have another start now, as they were. `late`:
    number of late rows. `corrected`: number of rows of sessions that were closed before, or have a part that was.
    `since`: SINCE of each key with a session that is kept.
    """

    parts: pa.Table
    old: pa.Table
    absorbed: pa.Table
    late: int
    corrected: int
    since: pa.Table


def join(windows: SessionDefinition, bounds: SessionBounds, panes: pa.Table, old: pa.Table) -> Joined:
    """Join panes with the sessions before. `old`: rows of the state with all of the panes' keys, and others."""
    key, new = list(windows.key), len(panes)
    starts, ends = (np.asarray(old[name].cast(pa.int64())) for name in (START, END))
    first: Numbers = np.concatenate([np.asarray(panes[BEGAN]), starts])
    last: Numbers = np.concatenate([np.asarray(panes[SEEN]), ends - bounds.gap])
    key_numbers = _numbers(panes, old, key)
    fresh = np.arange(len(first)) < new
    remembered = ~fresh & (last + bounds.gap > bounds.forgotten)
    since: Numbers = np.full(key_numbers.max(initial=-1) + 1, _NEVER)
    np.minimum.at(since, key_numbers[remembered], first[remembered])
    late = fresh & (first < bounds.forgotten) & (first < since[key_numbers])
    start, corrected = _starts(bounds, key_numbers, first, last, fresh, np.flatnonzero(~late))
    rows = np.asarray(panes[ROWS])
    parts = panes.append_column(START, pa.array(start[:new])).append_column(END, pa.array(last[:new] + bounds.gap))
    place = old.schema.get_field_index(START)
    return Joined(
        parts.filter(pa.array(~late[:new])),
        old.set_column(place, old.schema.field(START), pa.array(start[new:]).cast(_TIME)),
        old.filter(pa.array(start[new:] != starts)),
        int(rows[late[:new]].sum()),
        int(rows[corrected[:new]].sum()),
        _since(old.select(key), key_numbers[new:][remembered[new:]], np.flatnonzero(remembered[new:]), since),
    )


def merge_sessions(windows: SessionDefinition, joined: Joined, after: Watermark) -> Merged:
    """Results and changes of the current sessions, and of those that they have absorbed.

    Raises `Unsure`.
    """
    merged = merge(windows, joined.parts, joined.old, after)
    absorbed = joined.absorbed.append_column(ROWS, pa.array([0] * len(joined.absorbed), pa.int64()))
    emitted = absorbed.append_column(REVISION, absorbed[EMITTED]).filter(pc.greater(absorbed[EMITTED], 0))
    results = _with_absorbed(merged.results, False)
    deleted = absorbed.append_column(DELETED, pa.array([True] * len(absorbed), pa.bool_()))
    return Merged(
        pa.concat_tables([results, _with_absorbed(result_table(windows, emitted), True).cast(results.schema)]),
        pa.concat_tables([merged.changes, deleted.select(merged.changes.column_names).cast(merged.changes.schema)]),
    )


def _with_absorbed(results: pa.Table, absorbed: bool) -> pa.Table:
    """Results with the column ABSORBED: true where the session is part of another one now."""
    place = results.schema.get_field_index(ROWS)
    return results.add_column(place, ABSORBED, pa.array([absorbed] * len(results), pa.bool_()))


def _numbers(panes: pa.Table, old: pa.Table, key: Sequence[str]) -> Numbers:
    """A number for each row of `panes`, then of `old`: equal for rows with equal keys."""
    numbers: Numbers = np.zeros(len(panes) + len(old), np.int64)
    for name in key:
        column = pa.chunked_array([*panes[name].chunks, *old[name].chunks], panes[name].type)
        codes = np.asarray(column.combine_chunks().dictionary_encode().indices).astype(np.int64)
        _, numbers = np.unique(numbers * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return numbers


def _starts(
    bounds: SessionBounds, key_numbers: Numbers, first: Numbers, last: Numbers, fresh: Truths, stays: Numbers
) -> tuple[Numbers, Truths]:
    """The start of each remaining piece's session, and whether the piece is a pane that corrects one."""
    order = stays[np.lexsort((first[stays], key_numbers[stays]))]
    key, begin, end = key_numbers[order], first[order], last[order]
    times, rank = np.unique(end, return_inverse=True)  # makes each key's greatest end so far one running maximum
    reach = times[np.maximum.accumulate(key * len(times) + rank) % max(1, len(times))]
    begins: Truths = np.ones(len(order), bool)
    begins[1:] = (key[1:] != key[:-1]) | (begin[1:] - reach[:-1] >= bounds.gap)
    session = np.cumsum(begins) - 1
    start: Numbers = np.zeros(len(first), np.int64)
    start[order] = begin[begins][session]
    until: Numbers = np.full(int(begins.sum()), -_NEVER)
    np.maximum.at(until, session, end + bounds.gap)
    closed = until <= bounds.closed
    closed[session[~fresh[order] & (end + bounds.gap <= bounds.closed)]] = True
    corrects: Truths = np.zeros(len(first), bool)
    corrects[order] = fresh[order] & closed[session]
    return start, corrects


def _since(keys: pa.Table, key_numbers: Numbers, rows: Numbers, since: Numbers) -> pa.Table:
    """Each key with its SINCE. `rows`: places in `keys` of the kept sessions, whose keys have the `key_numbers`."""
    numbers, places = np.unique(key_numbers, return_index=True)
    return keys.take(pa.array(rows[places])).append_column(SINCE, pa.array(since[numbers]))


@dataclass(frozen=True)
class _Merged:
    """`late`: number of rows that are late, or may be. `since`: SINCE of the keys that have it; None if no key has."""

    results: CountedFrame
    changes: CountedFrame
    late: int
    since: DataFrame | None
    corrected: int


def fold(windows: SessionDefinition, frame: DataFrame, state: Mapping[str, StateRows], where: str | None) -> Folded:
    """See `Sessions.fold`."""
    before = read_marks(windows, state)
    bounds = SessionBounds.of(windows, before)
    read = read_rows(windows, frame, state, where, before, bounds.pane, bounds.counts(windows), _panes)
    merged = _merge_panes(windows, bounds, read)
    if merged.late:
        require_kept("rows are late, and shown")
    read.counts["corrected"] = merged.corrected
    no_rows = None if merged.late or read.local_panes is None else none_late(read)
    late = no_rows or _late(windows, bounds, read, merged)
    return read.folded(merged.results, late, merged.changes, retracts=windows.retracts)


def _panes(windows: WindowDefinition, rows: DataFrame) -> DataFrame:
    times = [F.min(AT).alias(BEGAN), *([F.max(AT).alias(SEEN)] if windows.partition is None else [])]
    return add_up(windows, rows, *times)


def _late(windows: SessionDefinition, bounds: SessionBounds, read: ReadRows, merged: _Merged) -> CountedFrame:
    """The rows that are older than `forgotten`, and in no session that is kept."""
    rows = read.rows.where(bounds.doubtful if merged.late else "false")
    if merged.since is not None:
        key_columns = [f"{_KEY}{number}" for number in range(len(windows.key))]
        same = " AND ".join(
            f"{quote_name(name)} = {column}" for name, column in zip(windows.key, key_columns, strict=True)
        )
        rows = rows.join(merged.since.toDF(*key_columns, SINCE), F.expr(same), "left")
        rows = rows.where(f"{SINCE} IS NULL OR {AT} < {SINCE}")
    return CountedFrame.of(rows.select(*map(quote_name, read.schema.names)), late=rows_with("true"))


def _merge_panes(windows: SessionDefinition, bounds: SessionBounds, read: ReadRows) -> _Merged:
    """Results and changes of the state: made by this process if the panes and the state are few, else by Spark."""
    panes = read.panes
    if read.local_panes is not None:
        with suppress(Unsure):
            return _merge_here(windows, bounds, read, read.local_panes)
        panes = frame_of(read.rows_before.spark, read.local_panes)
    return _merge_by_spark(windows, bounds, read, panes)


def _merge_here(windows: SessionDefinition, bounds: SessionBounds, read: ReadRows, panes: pa.Table) -> _Merged:
    """Results and changes, made by this process. Raises `Unsure` if Spark has to make them."""
    before, after = read.rows_before, read.after
    declared, spark = before.declared, before.spark
    touched = set(map(int, np.unique(buckets_of(panes, declared.found_by, declared.buckets))))
    old = before.local_rows(None if before.needs_rewrite else touched, after.at)
    if old is None:
        raise Unsure("the sessions before are too many")
    joined = join(windows, bounds, panes, old)
    merged = merge_sessions(windows, joined, after)
    since = frame_of(spark, joined.since) if joined.late and len(joined.since) else None
    return _Merged(*count_local(spark, merged.results, merged.changes), joined.late, since, joined.corrected)


def _merge_by_spark(windows: SessionDefinition, bounds: SessionBounds, read: ReadRows, panes: DataFrame) -> _Merged:
    before, after = read.rows_before, read.after
    old = before.of(panes.select(*windows.key))
    if after.at is not None:
        old = old.unionByName(before.until(after.at)).dropDuplicates([*windows.key, START])
    pieces = checkpointed(_pieces(windows, bounds, panes, old))
    merged, corrected = _combine_pieces(windows, bounds, pieces, after)
    moved = pieces.where(f"NOT {FRESH} AND {_OWN} <> unix_micros({START})")
    absorbed = moved.withColumn(START, F.timestamp_micros(_OWN))  # the sessions before that have another start now
    taken_back = absorbed.where(f"{EMITTED} > 0").withColumn(REVISION, F.col(EMITTED))
    results, changes = results_of(windows, merged, after), changes_of(windows, merged, after)
    counted = count_frames(
        _with_absorbed_column(results, False).unionByName(
            _with_absorbed_column(result_columns(windows, taken_back, F.lit(0)), True)
        ),
        changes.unionByName(absorbed.withColumn(DELETED, F.lit(True)).select(*changes.columns)),
    )
    remembered = pieces.where(f"NOT {FRESH} AND {_end(bounds)} > {bounds.forgotten}L")
    since = remembered.groupBy(*windows.key).agg(F.min(_OWN).alias(SINCE))
    return _Merged(*counted, read.maybe_late, since, corrected)


def _pieces(windows: SessionDefinition, bounds: SessionBounds, panes: DataFrame, old: DataFrame) -> DataFrame:
    """Panes that aren't late and the sessions before, each with the start of its current session."""
    state = [column for aggregate in windows.aggregate_columns() for column in aggregate.state_columns()]
    columns = [*windows.key, *state, EMITTED, DUE, ROWS, _OWN, SEEN, FRESH]
    nothing = {EMITTED: F.lit(None).cast("int"), DUE: F.lit(None).cast("timestamp")}
    fresh = panes.withColumns({**nothing, _OWN: F.col(BEGAN), FRESH: F.lit(True)})
    last, none = F.unix_micros(END) - bounds.gap, F.lit(0).cast("long")
    before = old.withColumns({_OWN: F.unix_micros(START), SEEN: last, ROWS: none, FRESH: F.lit(False)})
    pieces = before.select(*columns).unionByName(fresh.select(*columns))

    partition = f"PARTITION BY {', '.join(map(quote_name, windows.key))}"
    remembered = f"NOT {FRESH} AND {_end(bounds)} > {bounds.forgotten}L"
    pieces = pieces.withColumn(SINCE, F.expr(f"min(CASE WHEN {remembered} THEN {_OWN} END) OVER ({partition})"))
    late = f"{FRESH} AND {_OWN} < {bounds.forgotten}L AND ({SINCE} IS NULL OR {_OWN} < {SINCE})"
    until = f"{partition} ORDER BY {_OWN} ROWS BETWEEN UNBOUNDED PRECEDING AND"
    pieces = pieces.where(f"NOT ({late})").withColumn(_REACH, F.expr(f"max({SEEN}) OVER ({until} 1 PRECEDING)"))
    begins = f"CASE WHEN {_REACH} IS NULL OR {_OWN} - {_REACH} >= {bounds.gap}L THEN {_OWN} END"
    start = F.timestamp_micros(F.expr(f"max({begins}) OVER ({until} CURRENT ROW)"))
    closed = F.expr(f"NOT {FRESH} AND {_end(bounds)} <= {bounds.closed}L")
    end = F.timestamp_micros(F.expr(_end(bounds)))
    return pieces.withColumns({START: start, END: end, _CLOSED: closed}).drop(SINCE, _REACH)


def _combine_pieces(
    windows: SessionDefinition, bounds: SessionBounds, pieces: DataFrame, after: Watermark
) -> tuple[DataFrame, int]:
    """Each session that this epoch touches or that is due, computed; and the number of rows that correct one."""
    sessions, more = pieces.drop(_OWN, SEEN), [F.max(name).alias(name) for name in (_CLOSED, DUE)]
    combination = combined(windows, sessions.where(f"NOT {FRESH}"), sessions.where(FRESH), *more)
    due = combination.where(f"{FRESH} OR unix_micros({DUE}) <= {after.bound}L").drop(DUE)
    closed = f"{_CLOSED} OR unix_micros({END}) <= {bounds.closed}L"
    counting = f"coalesce(sum(CASE WHEN {closed} THEN {ROWS} END), 0L)"
    observed = ObservedFrame.of(due, corrected=counting)
    merged = observed.checkpoint()
    corrected = observed.counts().get("corrected")
    if corrected is None:  # Spark reported no metrics
        corrected = merged.agg(F.expr(counting)).collect()[0][0]
    return merged.drop(_CLOSED), corrected


def _with_absorbed_column(results: DataFrame, absorbed: bool) -> DataFrame:
    """Results with the column ABSORBED: true where the session is part of another one now."""
    columns = [name for name in results.columns if name != ROWS]
    return results.select(*columns, F.lit(absorbed).alias(ABSORBED), F.col(ROWS).cast("long").alias(ROWS))


def _end(bounds: SessionBounds) -> str:
    return f"({SEEN} + {bounds.gap}L)"

"""An epoch's panes and the sessions before, joined where less than the gap is between them, in this process: what
`sessions.py` has Spark do with many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.compute._lateness import BEGAN, ROWS, SEEN
from lockstep.compute._session_bounds import SessionBounds
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_merging import Merged, merge, shown
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.sessions import ABSORBED, SessionDefinition
from lockstep.definition.windows import EMITTED, END, REVISION, START

SINCE = "_window_since"  #: of a key: where the earliest of its sessions that are kept began, in µs
_TIME = pa.timestamp("us", "UTC")
_NEVER = np.iinfo(np.int64).max

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Truths = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Joined:
    """`parts`: the panes that aren't late, each with the start of its session. `old`: the sessions before, each with
    the start of the one that it is part of now. `absorbed`: those of them that begin otherwise now, as they were.

    `late`: rows. `corrected`: rows of sessions that end where, or have a part that, was closed before. `since`: SINCE
    of each key that has a session which is kept.
    """

    parts: pa.Table
    old: pa.Table
    absorbed: pa.Table
    late: int
    corrected: int
    since: pa.Table


def join(windows: SessionDefinition, bounds: SessionBounds, panes: pa.Table, old: pa.Table) -> Joined:
    """`old`: as the state has them, all of the panes' keys and of some others."""
    key, new = list(windows.key), len(panes)
    starts, ends = (np.asarray(old[name].cast(pa.int64())) for name in (START, END))
    first: Numbers = np.concatenate([np.asarray(panes[BEGAN]), starts])
    last: Numbers = np.concatenate([np.asarray(panes[SEEN]), ends - bounds.gap])
    whose = _numbers(panes, old, key)
    fresh = np.arange(len(first)) < new
    kept = ~fresh & (last + bounds.gap > bounds.forgotten)
    since: Numbers = np.full(whose.max(initial=-1) + 1, _NEVER)
    np.minimum.at(since, whose[kept], first[kept])
    late = fresh & (first < bounds.forgotten) & (first < since[whose])
    start, corrected = _starts(bounds, whose, first, last, fresh, np.flatnonzero(~late))
    rows = np.asarray(panes[ROWS])
    parts = panes.append_column(START, pa.array(start[:new])).append_column(END, pa.array(last[:new] + bounds.gap))
    place = old.schema.get_field_index(START)
    return Joined(
        parts.filter(pa.array(~late[:new])),
        old.set_column(place, old.schema.field(START), pa.array(start[new:]).cast(_TIME)),
        old.filter(pa.array(start[new:] != starts)),
        int(rows[late[:new]].sum()),
        int(rows[corrected[:new]].sum()),
        _since(old.select(key), whose[new:][kept[new:]], np.flatnonzero(kept[new:]), since),
    )


def merge_sessions(windows: SessionDefinition, joined: Joined, after: Watermark) -> Merged:
    """Results and changes: of the sessions as they are now, and of those that they have absorbed.

    Raises `Unsure`.
    """
    found = merge(windows, joined.parts, joined.old, after)
    gone = joined.absorbed.append_column(ROWS, pa.array([0] * len(joined.absorbed), pa.int64()))
    emitted = gone.append_column(REVISION, gone[EMITTED]).filter(pc.greater(gone[EMITTED], 0))
    results = _told(found.results, False)
    deleted = gone.append_column(DELETED, pa.array([True] * len(gone), pa.bool_()))
    return Merged(
        pa.concat_tables([results, _told(shown(windows, emitted), True).cast(results.schema)]),
        pa.concat_tables([found.changes, deleted.select(found.changes.column_names).cast(found.changes.schema)]),
    )


def _told(results: pa.Table, absorbed: bool) -> pa.Table:
    """Results with the column that says whether their sessions are part of others now."""
    place = results.schema.get_field_index(ROWS)
    return results.add_column(place, ABSORBED, pa.array([absorbed] * len(results), pa.bool_()))


def _numbers(panes: pa.Table, old: pa.Table, key: Sequence[str]) -> Numbers:
    """Of each row of both a number that says whose it is: alike for rows of one key."""
    found: Numbers = np.zeros(len(panes) + len(old), np.int64)
    for name in key:
        column = pa.chunked_array([*panes[name].chunks, *old[name].chunks], panes[name].type)
        codes = np.asarray(column.combine_chunks().dictionary_encode().indices).astype(np.int64)
        _, found = np.unique(found * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return found


def _starts(
    bounds: SessionBounds, whose: Numbers, first: Numbers, last: Numbers, fresh: Truths, stays: Numbers
) -> tuple[Numbers, Truths]:
    """Of each piece that `stays` where its session begins; and whether it is a pane that corrects one."""
    order = stays[np.lexsort((first[stays], whose[stays]))]
    key, begin, end = whose[order], first[order], last[order]
    times, rank = np.unique(end, return_inverse=True)  # so that each key's greatest end so far is one running maximum
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


def _since(keys: pa.Table, whose: Numbers, kept: Numbers, since: Numbers) -> pa.Table:
    """`whose`: of each of those of `keys` that are `kept`."""
    numbers, places = np.unique(whose, return_index=True)
    return keys.take(pa.array(kept[places])).append_column(SINCE, pa.array(since[numbers]))

"""What is computed in this process, without Spark: sessions over many cuts into epochs, and keys among others'."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any, Literal

import pyarrow as pa
import pytest

from lockstep import Sessions
from lockstep.compute._key_hash import among, can_hash
from lockstep.compute._local_rows import arrow_schema
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_sql import BEGAN, ROWS, SEEN
from lockstep.compute.sessions import SessionBounds, join, merge_sessions
from lockstep.definition.keyed_state import DELETED
from lockstep.spark.ddl import struct_of
from tests.sampling import Sampling

GAP, MICRO = 10, timedelta(microseconds=1)
START = datetime(1970, 1, 1, tzinfo=UTC)
Row = tuple[str, int, int]  #: key, value, µs since 1970
Found = dict[tuple[str, int], tuple[int, int, int]]  #: rows, sum and end, by key and start


def batch(rows: Sequence[Row]) -> Found:
    found: Found = {}
    last: dict[str, tuple[int, int]] = {}
    for key, value, at in sorted(rows, key=lambda row: row[2]):
        start, before = last.get(key, (at, at))
        start = start if at - before < GAP else at
        last[key] = (start, at)
        count, total, _ = found.get((key, start), (0, 0, 0))
        found[key, start] = (count + 1, total + value, at + GAP)
    return found


def panes_of(bounds: SessionBounds, rows: Sequence[Row]) -> pa.Table:
    """As Spark adds them up: `SessionBounds.pane` in Python."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        pane = row[2] if row[2] < bounds.forgotten else max(row[2] - row[2] % GAP, bounds.forgotten)
        found.setdefault((row[0], pane), []).append(row)
    columns: dict[str, list[int]] = {"n": [], "total": [], ROWS: [], BEGAN: [], SEEN: []}
    for part in found.values():
        times = [at for _, _, at in part]
        told = (len(part), sum(value for _, value, _ in part), len(part), min(times), max(times))
        for column, value in zip(columns.values(), told, strict=True):
            column.append(value)
    keys = pa.array([key for key, _ in found], pa.string())
    return pa.table({"key": keys, **{name: pa.array(values, pa.int64()) for name, values in columns.items()}})


class Epochs:
    """Epochs one after the other: their state, what a sink holds of them, and the rows that weren't late."""

    def __init__(self, windows: Sessions) -> None:
        self.windows, self.mark = windows, Watermark()
        self.state = arrow_schema(struct_of(windows.state()["windows"].schema)).empty_table()
        self.taken: list[Row] = []
        self.shown: dict[tuple[str, int], dict[str, Any]] = {}

    def fold(self, rows: Sequence[Row]) -> None:
        bounds = SessionBounds.of(self.windows, self.mark)
        joined = join(self.windows, bounds, panes_of(bounds, rows), self.state)
        late = self._late(bounds, rows)
        assert joined.late == len(late)
        self.taken += [row for row in rows if row not in late]
        self.mark = self.mark.advance(self.windows, {"": max(at for _, _, at in rows)} if rows else {})
        found = merge_sessions(self.windows, joined, self.mark)
        changes = found.changes.to_pylist()
        folded = sum(found.results[ROWS].to_pylist()) + sum(row[ROWS] for row in changes if not row[DELETED])
        assert folded == len(rows) - len(late)
        self._show(found.results.to_pylist())
        changed = {(row["key"], row["window_start"]) for row in changes}
        assert len(changed) == len(changes), "a session changes twice"
        kept = [row for row in self.state.to_pylist() if (row["key"], row["window_start"]) not in changed]
        self.state = pa.Table.from_pylist([*kept, *(row for row in changes if not row[DELETED])], self.state.schema)

    def _late(self, bounds: SessionBounds, rows: Sequence[Row]) -> list[Row]:
        kept = [start for start, (_, _, end) in batch(self.taken).items() if end > bounds.forgotten]
        return [
            (key, value, at)
            for key, value, at in rows
            if at < bounds.forgotten and not any(key == whose and start <= at for whose, start in kept)
        ]

    def _show(self, results: Sequence[dict[str, Any]]) -> None:
        for row in results:
            start = (row["key"], (row["window_start"] - START) // MICRO)
            before = self.shown.get(start)
            assert before is None or row["revision"] > before["revision"]
            assert before is not None or not row["absorbed"], "what never stood there was taken back"
            if before is not None and row["absorbed"]:
                assert [before[name] for name in ("n", "total")] == [row["n"], row["total"]]
            self.shown[start] = row

    def standing(self) -> Found:
        return {
            start: (row["n"], row["total"], (row["window_end"] - START) // MICRO)
            for start, row in self.shown.items()
            if not row["absorbed"]
        }


def test_any_epochs_leave_the_sessions_of_one_batch_over_all_rows_that_were_not_late(sampling: Sampling) -> None:
    absorbed = late = 0
    emits: list[Literal["final", "updates"]] = ["final", "updates"]
    for emit, lateness, seed in product(emits, (0, 15, 60), sampling.sample(range(12), 6)):
        chance, at = random.Random(seed), f"{emit}, lateness {lateness}, seed {seed}"
        windows = Sessions(
            schema="key STRING, n BIGINT, total BIGINT",
            key=["key"],
            time="at",
            gap=GAP * MICRO,
            aggregates={"n": "count(*)", "total": "sum(value)"},
            out_of_order=chance.choice([0, 20]) * MICRO,
            lateness=lateness * MICRO,
            emit=emit,
        )
        epochs, every = Epochs(windows), 0
        for number in range(7):
            size = chance.choice([0, 1, 5, 12])
            times = [number * 40 + chance.randrange(-90, 60) for _ in range(size)]
            rows = [(chance.choice("ab"), chance.randrange(9), time) for time in times]
            every += size
            epochs.fold(rows)
            assert epochs.standing().items() <= batch(epochs.taken).items(), f"{at}: a session that is no more"
        epochs.fold([("end", 1, 10**7)])
        found = batch([row for row in epochs.taken if row[0] != "end"])
        assert {start: one for start, one in epochs.standing().items() if start[0] != "end"} == found, at
        assert {row["key"] for row in epochs.state.to_pylist()} == {"end"}, f"{at}: forgotten sessions are kept"
        late += every + 1 - len(epochs.taken)
        taken_back = sum(row["absorbed"] for row in epochs.shown.values())
        assert not taken_back or lateness or emit == "updates", at
        absorbed += taken_back
    assert late > 100 and absorbed > 5, "too few were late, or absorbed"


# --- keys among others', as SQL has it ---------------------------------------------------------------------------

_VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-1, 2, 3]),
    (pa.int32(), [-1, 2, 3]),
    (pa.int64(), [-(2**62), 2, 3]),
    (pa.date32(), [date(1969, 1, 1), date(2026, 1, 1), date(9999, 1, 1)]),
    (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2026, 1, 1)]),
    (pa.decimal128(12, 2), [Decimal("-1.10"), Decimal("0.00")]),
    (pa.decimal128(38, 10), [Decimal("-1.1000000000"), Decimal("9" * 28)]),
    (pa.string(), ["", "a", "ä\0b"]),
    (pa.binary(), [b"", b"\0", b"\xff"]),
]


def test_a_key_is_found_whatever_its_type(subtests: pytest.Subtests) -> None:
    for kind, values in _VALUES:
        for columns in (1, 2):
            with subtests.test(kind=kind, values=values, columns=columns):
                assert can_hash(kind)
                key = ["k", "j"][:columns]
                rows = pa.table(
                    {"v": range(len(values)), "k": pa.array(values, kind), "j": pa.array([7] * len(values), pa.int64())}
                )
                for found in range(len(values)):
                    wanted = [values[found], values[found], None]  # repeated keys and nulls do no harm
                    others = pa.table({"j": pa.array([7, 7, None], pa.int64()), "k": pa.array(wanted, kind)})
                    assert rows.filter(among(rows, others, key))["v"].to_pylist() == [found]
                assert rows.filter(among(rows, others.slice(0, 0), key)).num_rows == 0
                assert len(among(rows.slice(0, 0), others, key)) == 0


def test_rows_keep_their_order_and_their_chunks_count_for_nothing() -> None:
    rows = pa.concat_tables([pa.table({"a": [5, 4, 3], "b": [1, 1, 1]}), pa.table({"a": [2, 5], "b": [2, 2]})])
    others = pa.concat_tables([pa.table({"a": [2], "b": [2]}), pa.table({"a": [5, 4], "b": [1, 1]})])
    assert rows.filter(among(rows, others, ["a"]))["a"].to_pylist() == [5, 4, 2, 5]
    assert rows.filter(among(rows, others, ["a", "b"]))["a"].to_pylist() == [5, 4, 2]

"""Two publishers of every epoch, two compactions and a reader at once: the reader never sees a row twice, or one go."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from lockstep.errors import CompactionOvertaken, Retryable
from lockstep.sinks import compacting
from lockstep.sinks.compacting import CompactingTable
from lockstep.testing._children import ended, fork
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import epoch, opened, prepare
from tests.apart import apart
from tests.sinks.compaction.lakes import EVERYTHING, Lake

ROWS = 4


def test_beside_publishers_every_row_is_shown_once(lake: Lake, tmp_path: Path) -> None:
    wals = {number: sealed(ROWS, start=100 * number) for number in range(1, 6)}
    votes = apart(lambda: {n: prepare(lake.target, epoch(n, token=n, manifest=str(n)), wal) for n, wal in wals.items()})
    over = tmp_path / "over"

    def publish_all(token: int) -> None:
        for number, wal in wals.items():
            at = epoch(number, token=token + number, manifest=str(number))
            with opened(lake.target) as sink:
                sink.publish(at, votes[number], lake.target.staged(at, wal))

    def compact_all() -> None:
        def act(table: CompactingTable[Any]) -> None:
            while not over.exists():
                with suppress(CompactionOvertaken):
                    compacting.compact(table, EVERYTHING)

        lake.with_table(act)

    def read_all() -> None:
        shown = 0
        while not over.exists():
            with suppress(Retryable, FileNotFoundError):
                now = sum(lake.files().values())
                assert now >= shown and now % ROWS == 0
                shown = now

    with ExitStack() as children:
        publishers = [children.enter_context(ended(fork(partial(publish_all, token)))) for token in (1000, 2000)]
        others = [children.enter_context(ended(fork(act))) for act in (compact_all, compact_all, read_all)]
        assert [child.wait() for child in publishers] == [0, 0]
        over.touch()
        assert [child.wait() for child in others] == [0, 0, 0]
    expected = Counter(100 * number + row for number in wals for row in range(ROWS))
    assert Counter(lake.target.visible()["id"].to_pylist()) == expected

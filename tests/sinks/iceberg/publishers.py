"""Publishers that show epoch after epoch at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import SinkUnderTest, epoch, expect_rows, opened

ROWS = 4


def publish_at_once(target: SinkUnderTest, rounds: int, publishers: int) -> list[list[Publication]]:
    """Each round's answers. Fails unless every row of all of them is shown once."""
    start, answers = threading.Barrier(publishers), list[list[Publication]]()
    with opened(target) as voter:
        wal = sealed(ROWS)
        voter.preflight(None)
        voter.preflight({batches.output: batches.schema for batches in wal})
        epochs = []
        for number in range(1, rounds + 1):
            at = epoch(number, token=10 * number, manifest=str(number))
            output = target.staged(at, sealed(0 if number % 5 == 0 else ROWS, start=number * ROWS))
            epochs.append((at, voter.prepare(at, output), output))

    def run(publisher: int) -> list[Publication]:
        told = []
        with opened(target) as sink:
            for at, vote, output in epochs:
                start.wait(60)
                again = epoch(at.id, token=at.token + 1 + publisher, manifest=str(at.id))
                told.append(sink.publish(again, vote, output))
        return told

    with ThreadPoolExecutor(publishers) as pool:
        answers = [list(round) for round in zip(*pool.map(run, range(publishers)), strict=True)]
    shown = [sealed(ROWS, start=number * ROWS) for number in range(1, rounds + 1) if number % 5]
    expect_rows(target, *shown)
    return answers

"""Many pipelines that begin an epoch a second each, side by side: what tasks ask of the ledger, and nothing else."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from benchmarks.aims import percentile
from lockstep.epoch import Attempt
from lockstep.ledger import Ledger
from lockstep.protocol.begin import begin
from lockstep.protocol.commit import commit
from lockstep.states import Role

if TYPE_CHECKING:
    from benchmarks.ledger import Bench

_PROCESSES = 2


def run_load(bench: Bench, numbers: list[int], seconds: float) -> dict[str, Any]:
    """Each pipeline of `numbers` on a connection of its own, kept open. `seconds`: of each epoch."""
    start = time.time() + 2
    shares = [numbers[each::_PROCESSES] for each in range(_PROCESSES)]
    with get_context("spawn").Pool(_PROCESSES) as pool:
        found = pool.starmap(_run_share, [(bench, share, start, seconds) for share in shares])
    epochs = [one for share in found for one in share]
    late = sum(one["late"] > 1 for one in epochs)
    steps = {step: [one[step] * 1000 for one in epochs] for step in ("begin", "commit", "epoch")}
    return {
        "seconds": [one["epoch"] for one in epochs],
        "epochs": f"{len(epochs):,} of {len(numbers)} pipelines in {seconds:.0f} s, {late} begun more than 1 s late",
        **{
            f"{step}, ms": " · ".join(f"p{share} {percentile(times, share / 100):.1f}" for share in (50, 99, 99.9))
            for step, times in steps.items()
        },
    }


def _run_share(bench: Bench, numbers: list[int], start: float, seconds: float) -> list[dict[str, float]]:
    with ThreadPoolExecutor(len(numbers)) as threads:
        runs = [
            threads.submit(_run_pipeline, bench, number, start + place / len(numbers), seconds)
            for place, number in enumerate(numbers)
        ]
        return [one for run in runs for one in run.result()]


def _run_pipeline(bench: Bench, number: int, start: float, seconds: float) -> list[dict[str, float]]:
    ledger, found = Ledger(bench.dsn, "bench"), []
    for tick in range(int(seconds)):
        time.sleep(max(0.0, start + tick - time.time()))
        found.append(_epoch(bench, number, ledger) | {"late": 0.0})
        found[-1]["late"] = time.time() - found[-1]["epoch"] - (start + tick)
    ledger.close()
    return found


def _epoch(bench: Bench, number: int, ledger: Ledger) -> dict[str, float]:
    from benchmarks.ledger import publish, seal, vote_of

    name, file, run, interval = bench._next(number)
    started = time.perf_counter()
    epoch = begin(bench.runtime(number, ledger), run, interval)
    begun = time.perf_counter()
    file.unlink()
    attempt = Attempt(name, epoch.id, epoch.attempt)
    seal(ledger, attempt)
    vote = vote_of(ledger, attempt)
    voted = time.perf_counter()
    commit(bench.runtime(number, ledger), run)
    committed = time.perf_counter()
    publish(ledger, epoch, vote)
    ledger.record_cleanup(epoch, Role.CLEANUP)
    return {"begin": begun - started, "commit": committed - voted, "epoch": time.perf_counter() - started}

"""Rows that are loaded while Spark still writes: shown only if the seal proves them, wherever the process dies."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import LedgerConflict
from lockstep.features import early_load
from lockstep.features.early_load import EarlyLoads
from lockstep.protocol.prepare import prepare
from lockstep.protocol.stage import stage
from lockstep.protocol.stage_job import Launch
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from tests.crash.test_adoption import SWEEPS
from tests.crash.test_kill_and_zombie import RESUMES
from tests.crash.victims import Action, Hit, Victim, hits_of, in_turn, overtake, sacrifice
from tests.crash.world import ROWS, Row, World, failing_as_spark_does, rows_of_day
from tests.sampling import Sampling

HALF = ROWS // 2
TASK = "prepare.warehouse"  #: what is tried again after a victim of `_decide`: everything from stage on
P = CrashPoint

pytestmark = pytest.mark.parametrize("world", ["two_phase"], indirect=True)


@pytest.fixture(autouse=True)
def early_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_load, "LEAST_BYTES", 0)
    monkeypatch.setattr(early_load, "POLL_SECONDS", 0.002)
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")


class Job:
    """Spark with two tasks: the second one is done when the rows of the first one are loaded. `between`: what else
    happens to the folder of the output by then."""

    def __init__(self, first: Callable[[list[Row]], list[Row]] = list, between: Callable[[Path], None] | None = None):
        self._first, self._between = first, between

    def __call__(self, request_uri: str) -> None:
        with failing_as_spark_does():
            self._write(Path(request_uri.removeprefix("file://")).parent)

    def _write(self, folder: Path) -> None:
        request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
        rows = rows_of_day(request.sources["numbers"].end["day"])
        [output] = request.outputs
        (folder / output).mkdir()
        loaded = threading.Event()
        stop = crash.observe(lambda point: loaded.set() if point is P.PREPARE_AFTER_WRITE else None)
        write_part(folder / output, 0, self._first(rows[:HALF]))
        while not loaded.wait(0.002) and any(thread.name.startswith("early load") for thread in threading.enumerate()):
            pass
        stop()
        if self._between:
            self._between(folder / output)
        write_part(folder / output, 1, rows[HALF:])
        result = StageResult({output: ROWS}, {"numbers": SourceCount(ROWS, 0)}, "test")
        (folder / RESULT).write_text(json.dumps(result.to_json()))


def write_part(folder: Path, number: int, rows: list[Row]) -> None:
    """Under its name when it is whole, as a task's commit does it."""
    types = {"day": pa.int64(), "number": pa.int32(), "label": pa.string()}
    columns = zip(*rows, strict=True)
    table = pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})
    draft = folder / f".part-{number}"
    pq.write_table(table, draft)
    draft.rename(folder / f"part-{number:05}.parquet")


def decide(world: World, run: RunKey, day: int, job: Launch) -> None:
    """What `run_epoch` does between begin and commit."""
    runtime = world.runtime()
    with EarlyLoads() as early:
        runtime = runtime.with_feature(early)
        stage(runtime, run, job)
        for sink in world.pipeline.sinks:
            prepare(runtime, run, sink.name)
    runtime.ledger.close()


@pytest.fixture
def points() -> Iterator[list[CrashPoint]]:
    reached: list[CrashPoint] = []
    stop = crash.observe(reached.append)
    yield reached
    stop()


def begun(world: World) -> tuple[RunKey, int]:
    day = next(world.days)
    run = RunKey("early", f"day {day}")
    world.run_task("begin", run, day)
    return run, day


def finish(world: World, run: RunKey, day: int) -> None:
    world.run(run, day, start="commit")
    world.require_exactly_once(day)
    world.require_tidy()


def test_what_the_seal_proves_is_shown_without_a_second_load(world: World, points: list[CrashPoint]) -> None:
    run, day = begun(world)
    decide(world, run, day, Job())
    assert points.index(P.PREPARE_AFTER_WRITE) < points.index(P.STAGE_BEFORE_MANIFEST)
    assert points.index(P.STAGE_AFTER_SEAL) < points.index(P.PREPARE_AFTER_MANIFEST)
    assert points.count(P.PREPARE_AFTER_WRITE) == 2
    world.require_nothing_shown(day)
    finish(world, run, day)


@pytest.mark.fault("L17")
def test_nothing_is_loaded_into_a_target_that_lacks_what_was_published_there(
    world: World, points: list[CrashPoint]
) -> None:
    earlier, known = begun(world)
    decide(world, earlier, known, Job())
    finish(world, earlier, known)
    run, day = begun(world)
    del points[:]
    other = "UPDATE lockstep_marker SET manifest_hash = reverse(manifest_hash) WHERE epoch = %s"
    world.execute(world.warehouse_dsn, other, (world.epoch_of(known).id,))
    with pytest.raises(LedgerConflict, match="the target has the marker of manifest"):
        decide(world, run, day, Job())
    assert P.PREPARE_AFTER_PREFLIGHT not in points and P.PREPARE_AFTER_WRITE not in points
    world.execute(world.warehouse_dsn, other, (world.epoch_of(known).id,))
    world.run(run, day, start="prepare.warehouse")
    world.require_exactly_once(day)


def _rewrite(folder: Path) -> None:
    """A task that was tried again."""
    write_part(folder, 0, rows_of_day(int(pq.read_table(folder / "part-00000.parquet")["day"][0].as_py()))[:HALF])


def _mistaken(rows: list[Row]) -> list[Row]:
    return [(day, number, "not to be shown") for day, number, _ in rows]


def _split(folder: Path) -> None:
    """As many rows in other files."""
    rows = pq.read_table(folder / "part-00000.parquet")
    (folder / "part-00000.parquet").unlink()
    pq.write_table(rows, folder / "part-00002.parquet")


@pytest.mark.parametrize("job", [Job(_mistaken, _rewrite), Job(between=_split)], ids=["rewritten", "renamed"])
def test_what_the_seal_does_not_prove_is_rolled_back_and_loaded_anew(
    world: World, points: list[CrashPoint], job: Job
) -> None:
    run, day = begun(world)
    decide(world, run, day, job)
    assert P.PREPARE_AFTER_MANIFEST not in points
    finish(world, run, day)


def test_a_job_that_fails_leaves_no_transaction_open(world: World, points: list[CrashPoint]) -> None:
    def fail(folder: Path) -> None:
        raise ZeroDivisionError

    run, day = begun(world)
    with pytest.raises(ZeroDivisionError):
        decide(world, run, day, Job(between=fail))
    assert P.PREPARE_AFTER_WRITE in points
    alone = "SET LOCAL lock_timeout = '30s'; LOCK TABLE public.numbers IN ACCESS EXCLUSIVE MODE"
    world.execute(world.warehouse_dsn, alone)
    decide(world, run, day, Job())
    finish(world, run, day)


def test_a_lost_session_is_made_up_for(world: World, points: list[CrashPoint]) -> None:
    def cut(folder: Path) -> None:
        ended = world.execute(
            world.warehouse_dsn,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'idle in transaction'",
        )
        assert ended == [(True,)]

    run, day = begun(world)
    decide(world, run, day, Job(between=cut))
    finish(world, run, day)


HOLDING = {
    "a unique key": (
        "CREATE UNIQUE INDEX wanted ON public.numbers (day, number, label) WHERE number > 0",
        "INDEX wanted",
    ),
    "a foreign key": (
        "CREATE TABLE public.days (day bigint PRIMARY KEY); INSERT INTO public.days SELECT generate_series(0, 999); "
        "ALTER TABLE public.numbers ADD CONSTRAINT of_days FOREIGN KEY (day) REFERENCES public.days",
        "TABLE public.days CASCADE",
    ),
}


@pytest.mark.parametrize(("made", "dropped"), HOLDING.values(), ids=HOLDING)
def test_what_others_may_want_is_not_held_while_spark_writes(
    world: World, points: list[CrashPoint], made: str, dropped: str
) -> None:
    world.execute(world.warehouse_dsn, made)
    try:
        run, day = begun(world)
        decide(world, run, day, Job())
        finish(world, run, day)
        assert P.PREPARE_AFTER_WRITE in points and P.PREPARE_AFTER_MANIFEST not in points
    finally:
        world.execute(world.warehouse_dsn, f"SET LOCAL lock_timeout = '30s'; DROP {dropped}")
    run, day = begun(world)
    decide(world, run, day, Job())
    assert P.PREPARE_AFTER_MANIFEST in points, "what is gone holds nobody up"
    finish(world, run, day)


TRIES = 5  #: an early load gives way to whatever holds it up on a busy machine, and other points are reached then


def _hits(world: World) -> list[Hit]:
    for _ in range(TRIES):
        run, day = begun(world)
        reached: list[CrashPoint] = []
        stop = crash.observe(reached.append)
        decide(world, run, day, Job())
        stop()
        finish(world, run, day)
        if P.PREPARE_AFTER_MANIFEST in reached:
            return hits_of("decide", Counter(reached))
    raise AssertionError("nothing was loaded early")


@pytest.mark.tier("all")
def test_every_row_is_shown_once_wherever_a_process(
    world: World, tmp_path: Path, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    for (action, resume), hit in in_turn(sampling, _hits(world), SWEEPS, every=4):
        with subtests.test(f"{action} {hit} {resume}"):
            _strike(world, hit, action, resume, tmp_path)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def _strike(world: World, hit: Hit, action: Action, resume: str, folder: Path) -> None:
    for _ in range(TRIES):
        run, day = begun(world)
        victim = sacrifice([("decide", partial(decide, world, run, day, Job()))], hit, action, folder / "victim.log")
        if victim.struck:
            _go_on(world, victim, run, day, resume)
            return
        finish(world, run, day)
    raise AssertionError("the point was not reached")


def _go_on(world: World, victim: Victim, run: RunKey, day: int, resume: str) -> None:
    def resumed() -> None:
        world.require_nothing_shown(day)
        RESUMES[resume](world, run, day, "stage")

    overtake(victim, resumed, partial(world.require_exactly_once, day))

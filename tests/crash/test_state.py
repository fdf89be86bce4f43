"""Keyed state under kill -9 and zombies at every crash point: state and sinks are always of the same epoch."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import BadRecords, LedgerConflict, OutOfOrder, PlanMismatch, RestageRefused
from lockstep.ledger import Ledger
from lockstep.operations.replan import void
from lockstep.protocol.pack import Member, move_pack
from lockstep.protocol.restage import restage
from lockstep.protocol.stage_job import Launch
from lockstep.states import UNDECIDED
from lockstep.wal.request import read_request
from lockstep.wal.state_staging import BUCKET, StateStaging
from lockstep.wal.storages import ObjectStorage
from tests.crash.recording import recorded
from tests.crash.state_world import StateWorld, add_up, write_without_state
from tests.crash.victims import Action, Hit, hits_of, in_turn, sacrifice
from tests.sampling import Sampling
from tests.wal.conftest import local_store


@pytest.fixture
def world(ledger_dsn: str, memory: Path) -> StateWorld:
    return StateWorld.make(ledger_dsn, memory)


def _dry_run(world: StateWorld, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """As many epochs as it takes until older state goes; every point that the last one reaches, by task."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    for number in range(5):
        world.run(RunKey("dry", str(number)))
    hits = []
    for task in world.tasks():
        reached: list[CrashPoint] = []
        stop = crash.observe(reached.append)
        world.run_task(task, RunKey("dry", "last"))
        stop()
        hits += hits_of(task, Counter(reached))
    monkeypatch.delenv("LOCKSTEP_TESTING")
    for epoch in (5, 6):
        world.require_state_and_sink_agree(epoch)
    return hits


def _retry(world: StateWorld, run: RunKey, task: str) -> None:
    world.run(run, start=task)


def _recovery(world: StateWorld, run: RunKey, task: str) -> None:
    """What is decided is finished; what recovery has to void, a new run brings."""
    world.expire_leases()
    before = world.last()
    assert before is not None
    assert world.recover().problems == []
    if before.state in UNDECIDED or task == "begin":
        world.run(RunKey(run.dag_id, f"{run.run_id} again"))


WAYS: list[tuple[Action, Callable[[StateWorld, RunKey, str], None]]] = [
    ("kill", _retry),
    ("kill", _recovery),
    ("hang", _recovery),
]


@pytest.mark.fault("K1", "L11")
def test_state_and_sinks_are_of_the_same_epoch_wherever_a_process(
    world: StateWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch and begun the next."""
    hits = _dry_run(world, monkeypatch)
    assert {hit.task for hit in hits} == set(world.tasks()) and len(hits) > 40
    for (action, resume), hit in in_turn(sampling, hits, WAYS, every=6):
        with subtests.test(f"{action} {hit} {resume.__name__}"):
            _strike(world, hit, action, resume, tmp_path)
    world.expire_leases()
    assert world.recover().problems == []
    world.run(RunKey("crash", "last"))
    world.require_tidy()


def _settle(world: StateWorld, run: RunKey) -> None:
    """A zombie of the scenario before may have planned an epoch of its own once it was released."""
    world.expire_leases()
    assert world.recover().problems == []
    last = world.last()
    if last is not None and last.state in UNDECIDED:
        world.run(RunKey(run.dag_id, f"{run.run_id} settling"))


def _strike(
    world: StateWorld,
    hit: Hit,
    action: Action,
    resume: Callable[[StateWorld, RunKey, str], None],
    folder: Path,
) -> None:
    run = RunKey("crash", f"{action} {hit} {resume.__name__}")
    tasks = [(task, partial(world.run_task, task, run)) for task in world.tasks()]
    _settle(world, run)
    before = world.last()
    assert before is not None
    victim = sacrifice(tasks, hit, action, folder / "victim.log")
    try:
        assert victim.struck, "the point was not reached"
        resume(world, run, hit.task)
        world.require_state_and_sink_agree(before.id + 1)
        if action == "hang":
            following = RunKey("crash", f"{run.run_id} following")
            for task in ("begin", "stage"):
                world.run_task(task, following)
            victim.release()
            assert victim.alarm is None
            world.require_state_and_sink_agree(before.id + 1)
            world.run(following, start="prepare")
            world.require_state_and_sink_agree(before.id + 2)
    finally:
        victim.kill()


def test_no_two_side_effects_on_state_fall_between_the_same_two_crash_points(
    world: StateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        world.run(RunKey("dry", str(number)))
    with recorded(monkeypatch, world.folder) as recording:

        def job(request: str) -> None:
            with recording.paused():  # Spark's effects are Spark's
                add_up(request)

        for task in world.tasks():
            world.run_task(task, RunKey("dry", "recorded"), job)
        with recording.paused():
            world.require_state_and_sink_agree(5)
    assert any("state/epoch=" in what for kind, what in recording.events if kind == "effect")
    assert recording.unseparated() == []


def _without_state(world: StateWorld, **arguments: Any) -> StateWorld:
    return replace(world, pipeline=replace(world.pipeline, state={}, **arguments))


@pytest.mark.fault("K9")
def test_code_without_the_state_waits_for_the_epoch_before_and_is_refused(world: StateWorld) -> None:
    world.run(RunKey("run", "1"))
    world.run_task("begin", RunKey("run", "2"))
    stateless = _without_state(world)
    stateless.run_task("begin", RunKey("run", "3"))
    with pytest.raises(OutOfOrder):
        stateless.run_task("stage", RunKey("run", "3"))
    world.run(RunKey("run", "2"), start="stage")
    with pytest.raises(PlanMismatch, match="doesn't declare"):
        stateless.run_task("stage", RunKey("run", "3"))
    world.run(RunKey("run", "3"))
    world.require_state_and_sink_agree(3)


@pytest.mark.fault("K9")
def test_an_epoch_that_was_sealed_without_the_state_before_is_never_decided(world: StateWorld) -> None:
    world.run_task("begin", RunKey("run", "1"))
    stateless = _without_state(world)
    for task in ("begin", "stage"):  # nobody knows yet that the epoch before will have state
        stateless.run_task(task, RunKey("run", "2"), write_without_state)
    world.run(RunKey("run", "1"), start="stage")
    stateless.run_task("prepare", RunKey("run", "2"))
    with pytest.raises(LedgerConflict, match="based on nothing"):
        stateless.run_task("commit", RunKey("run", "2"))


def test_a_state_that_was_dropped_goes_from_staging_too(world: StateWorld) -> None:
    world.run(RunKey("run", "1"))
    dropped = _without_state(world, drop_state=["totals"])
    for number in range(2, 5):
        for task in dropped.tasks():
            dropped.run_task(task, RunKey("run", str(number)), write_without_state)
    assert not list((world.folder / "staging").rglob("state/**/*.parquet"))


def test_a_successor_that_is_voided_while_older_state_goes_raises_no_alarm(
    world: StateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        world.run(RunKey("run", str(number)))
    for task in world.tasks()[:5]:
        world.run_task(task, RunKey("run", "5"))
    for task in ("begin", "stage"):
        world.run_task(task, RunKey("run", "6"))
    listed = Ledger.sealed_epochs

    def and_void(ledger: Ledger, pipeline: str, oldest: int) -> Any:
        found = listed(ledger, pipeline, oldest)
        void(world.runtime(), 6, "meanwhile")
        return found

    monkeypatch.setattr(Ledger, "sealed_epochs", and_void)
    world.run_task("cleanup", RunKey("run", "5"))
    monkeypatch.undo()
    world.require_state_and_sink_agree(5)


def _decided_and_damaged(world: StateWorld, file: str) -> Epoch:
    """Epoch 2 of three, without its pending files; `file` of its WAL is cut short."""
    world.run(RunKey("run", "1"))
    for task in world.tasks()[:4]:
        world.run_task(task, RunKey("run", "2"))
    for task in ("begin", "stage"):
        world.run_task(task, RunKey("run", "3"))
    epoch = world.runtime().ledger.epoch("adding", 2)
    [pending] = (path for path in (world.folder / "out" / ".lockstep").iterdir() if path.name.isdecimal())
    shutil.rmtree(pending)
    path = world.folder / "staging" / str(epoch.wal) / file
    path.write_bytes(path.read_bytes()[:-1])
    return epoch


@pytest.mark.fault("L12")
def test_a_decided_epoch_that_is_staged_again_hands_on_the_state_that_was_decided(world: StateWorld) -> None:
    epoch = _decided_and_damaged(world, "totals/part-00000.parquet")
    restage(world.runtime(), 2, add_up, "a test")
    world.run(RunKey("run", "2"), start="publish")
    assert world.runtime().ledger.epoch("adding", 2).manifest_hash == epoch.manifest_hash
    world.run(RunKey("run", "3"), start="prepare")
    world.run(RunKey("run", "4"))
    for number in (3, 4):
        world.require_state_and_sink_agree(number)
    assert world.recover().problems == []
    world.require_tidy()


def test_a_decided_epoch_whose_manifest_names_state_and_is_damaged_is_not_staged_again(world: StateWorld) -> None:
    epoch = _decided_and_damaged(world, "_manifest.json")
    with pytest.raises(RestageRefused, match="names the state that later epochs go on from"):
        restage(world.runtime(), 2, add_up, "a test")
    assert world.runtime().ledger.epoch("adding", 2) == epoch


def test_a_sweeper_that_stood_still_leaves_the_state_of_another_attempt_on_an_object_store(tmp_path: Path) -> None:
    storage = ObjectStorage(local_store(tmp_path))
    states = StateStaging(storage, "deployment/pipeline")
    folder = f"deployment/pipeline/state/epoch=1/7/totals/{BUCKET}=0"
    storage.replace(f"{folder}/part.parquet", b"rubbish")
    [dead] = states.executions()
    storage.replace(folder.replace("/7/", "/8/") + "/part.parquet", b"of another attempt")
    states.discard(dead)
    assert [found.token for found in states.executions()] == [8]


def refuse_second(request_uri: str) -> None:
    if read_request(request_uri).epoch == 2:
        raise BadRecords("the numbers of epoch 2 are not what they should be")
    add_up(request_uri)


def test_a_pack_makes_each_state_from_the_one_that_was_decided_before(world: StateWorld) -> None:
    run = RunKey("adding", "pack")
    runs = [run.member(None, number) for number in range(1, 5)]

    def move(job: Launch) -> list[Member]:
        runtime = world.runtime()
        with closing(runtime.ledger):
            return move_pack(runtime, runs, job, jobs=2)

    failed = move(refuse_second)
    assert [type(member.error) for member in failed] == [type(None), BadRecords], "none is begun behind it"
    world.require_state_and_sink_agree(1)
    moved = move(add_up)
    assert [member.error for member in moved] == [None] * len(runs)
    assert [member.epoch.id for member in moved if member.epoch] == [1, 2, 3, 4]
    for epoch in (3, 4):
        world.require_state_and_sink_agree(epoch)
    world.require_tidy()

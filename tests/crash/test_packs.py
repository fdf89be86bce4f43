"""Packs: failures of one epoch, members that go their own way, two owners at once."""

from __future__ import annotations

import threading

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import BadRecords, EpochBusy, Fenced, LockstepError, PackFailed, TargetFull
from lockstep.pack import Member, require_all_moved
from lockstep.roles.begin import begin
from lockstep.roles.prepare import prepare
from lockstep.roles.stage import stage
from lockstep.runtime import Runtime
from lockstep.states import UNDECIDED
from lockstep.steps.stage_job import Launch
from lockstep.wal.request import read_request
from tests.crash.packs import PACK, days_of_pack, is_harmless, move, move_all
from tests.crash.world import World, interval_of, write_parquet


def _refusing(refused: int) -> Launch:
    """Stages every day but one, of which it finds the records bad."""

    def launch(request_uri: str) -> None:
        if read_request(request_uri).sources["numbers"].end["day"] == refused:
            raise BadRecords(f"day {refused} is not what it should be")
        write_parquet(request_uri)

    return launch


def test_an_epoch_that_fails_is_named_and_keeps_no_other_from_being_shown(world: World) -> None:
    days = days_of_pack(world)
    run = RunKey("packs", f"one fails {days[0]}")
    members = move(world, run, days, _refusing(days[1]))
    with pytest.raises(PackFailed, match=rf"1 of 3 .*epoch {world.epoch_of(days[1]).id} .*BadRecords: day {days[1]}"):
        require_all_moved(members)
    world.require_exactly_once(days[0])
    world.require_exactly_once(days[2])
    world.require_nothing_shown(days[1])
    assert world.state_of(days[1]) == "planned"
    move_all(world, run, days)
    world.require_exactly_once(days[1])
    world.require_tidy()


def test_a_member_that_is_aborted_while_it_waits_for_the_decision_drops_out_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = days_of_pack(world)
    run = RunKey("packs", f"one is aborted {days[0]}")
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    aborted = threading.Event()

    def abort_second(point: CrashPoint) -> None:
        if point is CrashPoint.COMMIT_BEFORE_DECISION and not aborted.is_set() and _is_begun(world, days[1]):
            aborted.set()
            world.run_task("abort", run.member(interval_of(days[1]), 1), days[1])

    stop = crash.observe(abort_second)
    members = move(world, run, days)
    stop()
    assert aborted.is_set()
    fenced = [member for member in members if member.error]
    assert [type(member.error).__name__ for member in fenced] in (["Fenced"], [])
    for member, day in zip(members, days, strict=True):
        world.require_nothing_shown(day) if member.error else world.require_exactly_once(day)
    move_all(world, run, days)
    for day in days:
        world.require_exactly_once(day)
    world.require_tidy()


def _is_begun(world: World, day: int) -> bool:
    return world.state_of(day) is not None


def test_two_packs_of_the_same_intervals_at_once_show_each_once(world: World) -> None:
    days = days_of_pack(world)
    runs = [RunKey("packs", f"{name} of two {days[0]}") for name in ("first", "second")]
    found: list[list[Member]] = [[], []]

    def move_one(place: int) -> None:
        found[place] = move(world, runs[place], days if place else days[::-1])

    threads = [threading.Thread(target=move_one, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [member.error for members in found for member in members if member.error]
    assert all(isinstance(error, LockstepError) and is_harmless(error) for error in errors), errors
    assert not errors or any(isinstance(error, EpochBusy) for error in errors), errors
    for run in runs:
        move_all(world, run, days)
    for day in days:
        world.require_exactly_once(day)
    world.require_tidy()


def test_a_pack_that_is_moved_again_finds_its_epochs_shown(world: World) -> None:
    days = days_of_pack(world)
    run = RunKey("packs", f"again {days[0]}")
    first, second = move(world, run, days), move(world, run, days)
    assert [member.already for member in first] == [False] * PACK
    assert [member.already for member in second] == [True] * PACK
    assert [member.epoch.id for member in first if member.epoch] == [m.epoch.id for m in second if m.epoch]
    for day in days:
        world.require_exactly_once(day)


def test_what_has_no_room_is_prepared_when_others_of_the_pack_are_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = days_of_pack(world)
    voted: set[str] = set()

    def prepare_with_room_for_one(runtime: Runtime, run: RunKey, sink: str) -> object:
        runs = [one for one in voted if one != run.run_id and _undecided(runtime, RunKey(run.dag_id, one))]
        if runs:
            raise TargetFull(f"{runs} take all the room")
        voted.add(run.run_id)
        return prepare(runtime, run, sink)

    monkeypatch.setattr("lockstep.pack.prepare", prepare_with_room_for_one)
    move_all(world, RunKey("packs", f"room for one {days[0]}"), days)
    for day in days:
        world.require_exactly_once(day)


def _undecided(runtime: Runtime, run: RunKey) -> bool:
    return runtime.epoch_of(runtime.attempt_of(run)).state in UNDECIDED


def test_a_pack_that_was_overtaken_before_it_staged_leaves_the_attempt_of_who_overtook_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, younger = next(world.days), list[int]()
    run = RunKey("packs", f"overtaken {day}")

    def stage_late(runtime: Runtime, own: RunKey, launch: Launch, reference: str) -> Epoch:
        world.expire_leases()
        younger.append(begin(world.runtime(), own, own.interval).attempt)
        return stage(runtime, own, launch, reference)

    def fenced(*_: object) -> None:
        raise Fenced("a younger token was taken")

    with monkeypatch.context() as patched:
        patched.setattr("lockstep.pack.stage", stage_late)
        patched.setattr("lockstep.pack.prepare", fenced)
        [member] = move(world, run, [day])
    assert isinstance(member.error, Fenced)
    assert ([world.epoch_of(day).attempt], world.state_of(day)) == (younger, "staged")
    world.expire_leases()
    move_all(world, run, [day])
    world.require_exactly_once(day)
    world.require_tidy()


def test_a_pack_that_is_interrupted_holds_no_lease(world: World) -> None:
    days = days_of_pack(world)

    struck = threading.Lock()  # one worker: what interrupts another one while the first gives up leaves its lease

    def interrupted(request_uri: str) -> None:
        if struck.acquire(blocking=False):
            raise KeyboardInterrupt
        write_parquet(request_uri)

    with pytest.raises(KeyboardInterrupt):
        move(world, RunKey("packs", f"interrupted {days[0]}"), days, interrupted)
    for thread in threading.enumerate():
        if thread.name in ("pack", "lease"):
            thread.join(timeout=30)
            assert not thread.is_alive()
    world.expire_leases()
    move_all(world, RunKey("packs", f"after the interrupt {days[0]}"), days)
    for day in days:
        world.require_exactly_once(day)


def test_a_cause_that_many_epochs_share_is_told_once(world: World) -> None:
    def member(day: int, error: Exception | None) -> Member:
        return Member(RunKey("packs", f"told {day}", interval_of(day)), error=error)

    shared = [member(day, BadRecords("the same for all")) for day in range(300)]
    own = [member(day, BadRecords(f"day {day} alone")) for day in range(300, 350)]
    with pytest.raises(PackFailed, match=r"350 of 350 .* and 290 more: BadRecords: the same for all; ") as raised:
        require_all_moved([*shared, *own])
    told = str(raised.value)
    assert told.count("the same for all") == 1 and "day 308 alone" in told and "day 309 alone" not in told
    assert "and 41 more causes" in told and len(told) < 5000

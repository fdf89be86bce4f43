"""Packs: failures of one epoch, members that go their own way, two owners at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import BadRecords, PackFailed, TargetFull
from lockstep.protocol import pack
from lockstep.protocol.begin import begin_unless_idle
from lockstep.protocol.pack import Member, move_pack, require_all_moved
from lockstep.protocol.prepare import prepare
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Launch
from lockstep.states import UNDECIDED
from lockstep.wal.request import read_request
from tests.crash.victims import HARMLESS
from tests.crash.world import World, interval_of, write_parquet

PACK = 3


def days_of_pack(world: World) -> list[int]:
    return [next(world.days) for _ in range(PACK)]


def move(world: World, run: RunKey, days: Sequence[int], job: Launch = write_parquet) -> list[Member]:
    runtime = world.runtime()
    runs = [run.member(interval_of(day), number) for number, day in enumerate(days)]
    members = move_pack(runtime, runs, job, jobs=2)
    runtime.ledger.close()
    return members


def move_all(world: World, run: RunKey, days: Sequence[int]) -> None:
    require_all_moved(move(world, run, days))


def move_as_victim(world: World, run: RunKey, days: Sequence[int]) -> None:
    """Raises what a person would have to look at before what is only overtaken."""
    errors = [member.error for member in move(world, run, days) if member.error]
    for error in sorted(errors, key=is_harmless):
        raise error


def is_harmless(error: Exception) -> bool:
    return bool(HARMLESS.intersection(kind.__name__ for kind in type(error).__mro__))


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

    monkeypatch.setattr("lockstep.protocol.pack.prepare", prepare_with_room_for_one)
    move_all(world, RunKey("packs", f"room for one {days[0]}"), days)
    for day in days:
        world.require_exactly_once(day)


def _undecided(runtime: Runtime, run: RunKey) -> bool:
    return runtime.epoch_of(runtime.attempt_of(run)).state in UNDECIDED


def test_a_pack_that_is_interrupted_holds_no_lease(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker is, the second one where it has begun its epoch after the pack has given up."""
    days, given_up, calls = days_of_pack(world), threading.Event(), count()
    begin, give_up = begin_unless_idle, pack._Pack._give_up

    def begin_later(*arguments: Any, **options: Any) -> Any:
        if next(calls):
            assert given_up.wait(30)
        return begin(*arguments, **options)

    def give_up_first(self: Any, workers: int) -> None:
        give_up(self, workers)
        given_up.set()

    def interrupted(request_uri: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pack, "begin_unless_idle", begin_later)
    monkeypatch.setattr(pack._Pack, "_give_up", give_up_first)
    with pytest.raises(KeyboardInterrupt):
        move(world, RunKey("packs", f"interrupted {days[0]}"), days, interrupted)
    for thread in threading.enumerate():
        if thread.name in ("pack", "lease"):
            thread.join(timeout=30)
            assert not thread.is_alive()
    monkeypatch.undo()
    world.expire_leases()
    move_all(world, RunKey("packs", f"after the interrupt {days[0]}"), days)
    for day in days:
        world.require_exactly_once(day)

"""Packs of three days in the crash suite's world."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.epoch import RunKey
from lockstep.pack import Member, move_pack, require_all_moved
from lockstep.steps.stage_job import Launch
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

"""`verify` tells apart epochs whose files are the table's, whose rows were compacted, and whose rows are gone."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.operations.verify import verify
from lockstep.sinks.values import Presence
from tests.apart import apart
from tests.crash import test_expiry
from tests.crash.adopting_world import AdoptingWorld
from tests.crash.test_compaction import compacted, publish
from tests.crash.test_expiry import compact_by_others, is_iceberg
from tests.crash.test_iceberg_epochs import loaded_table
from tests.sinks.delta_target import on_table

pytestmark = pytest.mark.sample(1)
world = test_expiry.world
LIVE, COMPACTED, ROLLED_BACK, DELETED = Presence


def presences(world: AdoptingWorld) -> dict[int, Presence | None]:
    """By epoch, in the table; no other sink has any."""

    def look() -> dict[int, Presence | None]:
        runtime = world.runtime()
        last = runtime.ledger.last_epoch("numbers")
        assert last is not None
        epochs = [runtime.ledger.epoch("numbers", number) for number in range(1, last.id + 1)]
        found = [one for epoch in epochs for one in verify(runtime, epoch)]
        runtime.ledger.close()
        assert {one.presence for one in found if one.sink != "lake"} == {None}
        assert all(one.agrees == (one.presence in (LIVE, COMPACTED)) for one in found if one.sink == "lake")
        return {one.epoch: one.presence for one in found if one.sink == "lake"}

    return apart(look)


def back_by(world: AdoptingWorld, commits: int) -> None:
    """Somebody takes the table back to what it was so many commits ago."""
    if not is_iceberg(world):
        on_table(world.lake.root, lambda found: found.restore(found.version() - commits) and None)
        return
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        snapshot = table.current_snapshot()
        for _ in range(commits):
            assert snapshot is not None and snapshot.parent_snapshot_id is not None
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id)
        assert snapshot is not None
        table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()


def delete(world: AdoptingWorld, day: int) -> None:
    """Somebody deletes half of a day's rows."""

    def act(found: Any) -> None:
        found.delete(f"day = {day} AND number < 10")

    if not is_iceberg(world):
        on_table(world.lake.root, act)
        return
    with loaded_table(world.warehouse_dsn) as table:
        assert table is not None
        table.delete(f"day = {day} and number < 10")


@pytest.mark.parametrize("who", ["lockstep", "others"])
def test_what_is_compacted_is_told_from_what_is_live(world: AdoptingWorld, who: str) -> None:
    publish(world, 2)
    assert presences(world) == {1: LIVE, 2: LIVE}
    if who == "lockstep":
        compacted(world)
    else:
        compact_by_others(world)
    publish(world)
    assert presences(world) == {1: COMPACTED, 2: COMPACTED, 3: LIVE}


def test_what_is_rolled_back_is_told_from_what_is_deleted(world: AdoptingWorld) -> None:
    days = publish(world, 3)
    back_by(world, 1)
    assert presences(world) == {1: LIVE, 2: LIVE, 3: ROLLED_BACK}
    delete(world, days[0])
    publish(world)
    assert presences(world) == {1: DELETED, 2: LIVE, 3: ROLLED_BACK, 4: LIVE}

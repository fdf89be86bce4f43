"""The pipeline's definition changes while epochs of the old one are about."""

from __future__ import annotations

from dataclasses import replace

import psycopg2
import pytest

from lockstep.epoch import RunKey
from lockstep.errors import PlanMismatch
from lockstep.pipeline import Pipeline
from lockstep.roles import operate
from lockstep.sinks.files import FileSink
from tests.crash.world import World


def _with_sinks(world: World, *sinks: object) -> World:
    old = world.pipeline
    return replace(world, pipeline=Pipeline(old.name, old.sources, old.transform, sinks))  # type: ignore[arg-type]


def test_a_sink_that_came_later_is_no_business_of_a_decided_epoch(world: World) -> None:
    day = next(world.days)
    world.run(RunKey("old", f"{day}"), day)
    more = FileSink("more", output="numbers", path=str(world.folder / "more"), format="csv")
    later = _with_sinks(world, *world.pipeline.sinks, more)
    later.run(RunKey("again", f"{day}"), day)
    assert later.state_of(day) == "cleaned"
    later.require_exactly_once(day)
    assert not (world.folder / "more").exists()


def test_an_undecided_epoch_whose_sinks_changed_names_replan(world: World) -> None:
    day = next(world.days)
    world.run_until(RunKey("old", f"{day}"), day, "prepare.files")
    world.expire_leases()
    fewer = _with_sinks(world, world.pipeline.sinks[1])
    with pytest.raises(PlanMismatch, match="lockstep replan numbers"):
        fewer.run(RunKey("new", f"{day}"), day)
    operate.replan(fewer.runtime(), world.epoch_of(day).id, "the warehouse moves out")
    fewer.run(RunKey("new", f"{day}"), day)
    assert fewer.shown_in_files(day)
    assert not fewer.shown_in_warehouse(day)
    assert fewer.prepared() == []


@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_what_an_old_prepare_leaves_in_a_sink_that_was_replanned_away_is_swept(world: World) -> None:
    day = next(world.days)
    world.run_until(RunKey("old", f"{day}"), day, "prepare.files")
    [gid] = world.prepared()
    fewer = _with_sinks(world, world.pipeline.sinks[1])
    operate.replan(fewer.runtime(), world.epoch_of(day).id, "the warehouse moves out")
    assert fewer.prepared() == []
    _prepare(world.warehouse_dsn, gid)  # what the old process does when it goes on
    assert fewer.recover().problems == []
    assert fewer.prepared() == []
    fewer.run(RunKey("new", f"{day}"), day)
    assert not fewer.shown_in_warehouse(day)


def _prepare(dsn: str, gid: str) -> None:
    connection = psycopg2.connect(dsn)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO public.numbers VALUES (0, 0, 'a zombie', 0)")
        cursor.execute("PREPARE TRANSACTION %s", (gid,))
    connection.close()

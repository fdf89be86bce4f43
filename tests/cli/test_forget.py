"""A mistyped pipeline: what never began leaves nothing, what never decided anything can be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from lockstep.epoch import RunKey
from lockstep.errors import InvalidPipeline, PreflightRefused
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.pipeline import Pipeline
from lockstep.sinks.postgres import PostgresSink
from tests.crash.test_definitions import Tens
from tests.crash.world import World, make_world, untouched

Lockstep = Callable[..., Result]
RUN = RunKey("cli", "run")


@pytest.fixture
def world(ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> World:
    return make_world(ledger_dsn, warehouse_dsn, tmp_path, "two_phase")


def _mistyped(world: World, table: str = "public.nmbers") -> World:
    sink = PostgresSink("warehouse", tables={"numbers": table}, connection="warehouse")
    pipeline = Pipeline("nmbers", world.pipeline.sources, untouched, [sink])
    return replace(world, pipeline=pipeline)


def _known(world: World) -> list[str]:
    return [found.name for found in Report(world.ledger_dsn).pipelines(limit=1)]


def test_a_pipeline_that_never_passed_its_preflight_leaves_nothing_in_the_ledger(world: World) -> None:
    with pytest.raises(PreflightRefused, match=r"public\.nmbers"):
        _mistyped(world).run_task("begin", RUN, 0)
    assert _known(world) == []
    assert Ledger(world.ledger_dsn).find_run(RUN) is None


def test_a_pipeline_is_known_with_its_first_epoch(world: World) -> None:
    world.run_task("begin", RUN, 0)
    assert _known(world) == ["numbers"]
    assert Ledger(world.ledger_dsn).hold("numbers") == world.pipeline.hold


def test_another_identity_is_refused_before_a_source_is_asked(world: World) -> None:
    world.run_task("begin", RUN, 0)

    class Silent(Tens):
        def latest(self, *_: object) -> object:
            raise AssertionError("nobody may ask a source of the wrong identity")

    other = Pipeline("numbers", {"numbers": Silent()}, untouched, world.pipeline.sinks)
    with pytest.raises(InvalidPipeline, match=r"interval epochs in the ledger.*another name"):
        replace(world, pipeline=other).run_task("begin", RunKey("cli", "other"), 1)

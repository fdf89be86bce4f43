"""What a good epoch says of itself: a line each for stage, prepare and publish, with rows, files and seconds."""

from __future__ import annotations

import logging
import re

import pytest

from lockstep.epoch import RunKey
from lockstep.steps.wording import describe_rows
from tests.crash.world import World


def test_each_step_that_moves_rows_says_how_many_and_how_long_it_took(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    day = next(world.days)
    with caplog.at_level(logging.INFO, "lockstep.roles"):
        world.run(RunKey("told", f"{day}"), day)
    said = [re.sub(r"\d+\.\d s", "N s", record.getMessage()) for record in caplog.records]
    epoch = str(world.epoch_of(day))
    [staged] = [line for line in said if line.startswith(f"{epoch} is staged after N s: numbers 20 rows in ")]
    assert re.search(r" in \d+ files? of \d+ (kB|bytes)$", staged)
    for sink in world.pipeline.sinks:
        assert f"{epoch}: {sink.name} voted after N s: numbers 20 rows" in said
        [shown] = [line for line in said if line.startswith(f"{epoch}: {sink.name} shows it (")]
        assert shown.endswith("after N s: numbers 20 rows")


def test_rows_are_told_by_output_and_none_too() -> None:
    assert describe_rows({"flights": 1842, "delays": 1}) == "flights 1,842 rows, delays 1 row"
    assert describe_rows({"flights": 0}) == "flights 0 rows"

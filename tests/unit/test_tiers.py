"""The table of the suite: nothing in it is stale, nothing is missing."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import core, settings

from tests.tiers import SUITE, TESTS, Tier, files, part_of


def test_every_row_names_a_folder_or_a_file_that_is_there() -> None:
    assert [name for name in SUITE if not (TESTS / name).exists()] == []


def test_a_row_below_another_differs_from_it() -> None:
    assert [name for name in SUITE if name.endswith(".py") and SUITE[name] == SUITE[name.split("/")[0]]] == []


def test_every_test_file_is_in_the_last_tier_and_a_tier_holds_the_one_before() -> None:
    tiers = [set(files(tier)) for tier in Tier]
    assert tiers[-1] == {PurePosixPath(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}
    assert tiers[0] < tiers[1] < tiers[2]
    assert all(part_of(path).tier is Tier.CHECK for path in tiers[0])


def test_a_commit_draws_the_same_examples(request: pytest.FixtureRequest) -> None:
    assert core.global_force_seed == request.config.option.seed
    assert settings().database is None

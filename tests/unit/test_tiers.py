"""The table of the suite: nothing in it is stale, nothing is missing."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.tiers import SUITE, TESTS, Tier, begins, files, order, part_of


def test_every_row_names_a_folder_or_a_file_that_is_there() -> None:
    assert [name for name in SUITE if not (TESTS / name).exists()] == []


def test_a_row_below_another_differs_from_it() -> None:
    assert [name for name in SUITE if name.endswith(".py") and SUITE[name] == SUITE[name.split("/")[0]]] == []


def test_every_test_file_is_in_the_last_tier_and_a_tier_holds_the_one_before() -> None:
    tiers = [set(files(tier)) for tier in Tier]
    assert tiers[-1] == {PurePosixPath(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}
    assert tiers[0] < tiers[1] < tiers[2]
    assert all(part_of(path).tier is Tier.CHECK for path in tiers[0])


@pytest.mark.parametrize("seed", [None, 0, 17])
def test_who_hurries_runs_everything_and_the_last_tier_last(seed: int | None) -> None:
    found = order(files(Tier.ALL), lambda path: path, seed, hurried=True)
    earlier = len(files(Tier.TEST))
    assert set(found[:earlier]) == set(files(Tier.TEST)) and set(found) == set(files(Tier.ALL))


def test_who_hurries_leaves_out_the_last_tier_then_the_one_before_and_never_the_first() -> None:
    left_out = [[tier for tier in Tier if not begins(tier, passed, 50)] for passed in (49, 51, 74, 76, 1000)]
    assert left_out == [[], [Tier.ALL], [Tier.ALL], [Tier.TEST, Tier.ALL], [Tier.TEST, Tier.ALL]]


def test_seeds_that_follow_one_another_leave_out_others() -> None:
    begun = [
        set(order(files(Tier.ALL), lambda path: path, seed, hurried=True)[: -len(LAST) // 2]) for seed in range(10)
    ]
    assert set.union(*begun) == set(files(Tier.ALL))


def test_who_has_time_runs_by_rank() -> None:
    ranks = [part_of(path).rank for path in order(files(Tier.ALL), lambda path: path, 3, hurried=False)]
    assert ranks == sorted(ranks)


LAST = set(files(Tier.ALL)) - set(files(Tier.TEST))

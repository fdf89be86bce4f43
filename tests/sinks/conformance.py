"""Behaviours of the suite one after another, each with a target that nothing is in yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lockstep.sinks.values import Guarantee
from lockstep.testing import SinkUnderTest, behaviours
from lockstep.testing import _behaviour as behaviour
from lockstep.testing._behaviour import CRASHES, Behaviour
from tests.sampling import Sampling

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"], "on_missing": "delete"}
#: an upsert refuses a key that stands twice, and a table that others write to
NOT_FOR_UPSERTS = (
    behaviour.rows_that_are_twice_in_the_wal_are_kept_twice,
    behaviour.pending_lists_its_own_and_nothing_foreign,
)
#: where a mode of a table has code of its own
DIFFERING = (
    behaviour.publish_shows_exactly_the_rows,
    behaviour.epochs_add_up_and_are_told_apart,
    behaviour.a_sink_declares_its_guarantee,
    behaviour.publishing_twice_shows_the_rows_once,
    behaviour.processes_that_publish_at_once_show_the_rows_once,
    behaviour.a_sink_says_whether_its_epochs_can_be_replaced,
    behaviour.a_lost_handle_is_repaired_from_the_wal,
    behaviour.a_replacement_shows_its_rows_instead_of_the_replaced,
    behaviour.an_epoch_that_is_not_shown_as_decided_is_not_replaced,
    behaviour.a_restored_target_shows_the_decided_epoch_and_no_earlier_generation,
)


def in_parts(those: Sequence[Behaviour], *, later: Sequence[Behaviour] = ()) -> pytest.MarkDecorator:
    """The quick ones as one test, each that sweeps crashes as one of its own; those of `later` are left to tier all."""
    swept = [
        pytest.param([one], id=one.__name__, marks=[pytest.mark.tier("all")] if one in later else [])
        for one in those
        if one in CRASHES
    ]
    quick = [one for one in those if one not in CRASHES]
    return pytest.mark.parametrize("part", [pytest.param(quick, id="quick"), *swept])


def of_mode(target: SinkUnderTest, sampling: Sampling, *, upserts: bool) -> list[Behaviour]:
    """Those without a crash in which modes differ, and a sample of the others."""
    left_out = [*CRASHES, *(NOT_FOR_UPSERTS if upserts else ())]
    asked = [one for one in behaviours(target) if one not in left_out]
    if target.guarantee is Guarantee.NONE:
        return asked
    differing = [one for one in asked if one in DIFFERING]
    return [*differing, *sampling.sample([one for one in asked if one not in DIFFERING], 2)]


def check(those: Sequence[Behaviour], fresh: Callable[[], SinkUnderTest], subtests: pytest.Subtests) -> None:
    for one in those:
        with subtests.test(one.__name__):
            one(fresh())

"""How lives of a range, and a cursor's epochs, follow one another: green as it stands, red for every planted bug. `-s`
shows the traces."""

from __future__ import annotations

import pytest

from tests.model import cursors
from tests.model.cursors import Cursors
from tests.model.generations import Generations, Knockout, explore


def test_readers_see_one_life_of_a_range_whatever_happens_when() -> None:
    worlds, violation, trace = explore(Generations())
    assert not violation, "\n".join([violation, *trace])
    assert worlds > 1_000


def test_a_planted_bug_turns_the_model_of_generations_red(subtests: pytest.Subtests) -> None:
    for knockout in Knockout:
        with subtests.test(knockout.name.lower()):
            worlds, violation, trace = explore(Generations(knockout))
            print("\n".join([f"\n{knockout}: {violation}, in {worlds} worlds", *trace]))
            assert violation, f"nobody notices that {knockout}"


@pytest.mark.parametrize("state", [False, True], ids=["without state", "with state"])
def test_a_cursor_whose_epochs_are_restated_has_every_position_once(state: bool) -> None:
    worlds, violation, trace = cursors.explore(Cursors(state, most_lives=4))
    assert not violation, "\n".join([violation, *trace])
    assert worlds > 1_000


def test_a_planted_bug_turns_the_model_of_cursors_red(subtests: pytest.Subtests) -> None:
    for knockout in cursors.Knockout:
        with subtests.test(knockout.name.lower()):
            state = knockout not in cursors.STATELESS
            worlds, violation, trace = cursors.explore(Cursors(state, knockout, most_lives=4))
            print("\n".join([f"\n{knockout}: {violation}, in {worlds} worlds", *trace]))
            assert violation, f"nobody notices that {knockout}"

"""How lives of a range follow one another: green as it stands, red for every planted bug. `-s` shows the traces."""

from __future__ import annotations

import pytest

from tests.model.generations import Generations, Knockout, explore


def test_readers_see_one_life_of_a_range_whatever_happens_when() -> None:
    worlds, violation, trace = explore(Generations())
    assert not violation, "\n".join([violation, *trace])
    assert worlds > 1_000


@pytest.mark.parametrize("knockout", Knockout, ids=lambda knockout: knockout.name.lower())
def test_a_planted_bug_turns_the_model_of_generations_red(knockout: Knockout) -> None:
    worlds, violation, trace = explore(Generations(knockout))
    print("\n".join([f"\n{knockout}: {violation}, in {worlds} worlds", *trace]))
    assert violation, f"nobody notices that {knockout}"

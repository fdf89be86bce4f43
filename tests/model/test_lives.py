"""How lives of a range, a cursor's epochs and kept WALs follow one another: green as it stands, red for every planted
bug. `-s` shows the traces."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from tests.model import cursors, generations, kept_wals
from tests.model.cursors import Cursors
from tests.model.generations import Generations
from tests.model.kept_wals import KeptWals
from tests.model.search import Searched, explore

GREEN: dict[str, Searched[Any]] = {
    "readers see one life of a range": Generations(),
    "a cursor's positions stand once": Cursors(state=False, most_lives=4),
    "a cursor's state is true": Cursors(state=True, most_lives=4),
    "what is kept or referred to is there": KeptWals(),
}


@pytest.mark.parametrize("protocol", GREEN.values(), ids=GREEN)
def test_it_holds_whatever_happens_when(protocol: Searched[Any]) -> None:
    worlds, violation, trace = explore(protocol)
    assert not violation, "\n".join([violation, *trace])
    assert worlds > 1_000


def planted() -> Iterator[tuple[StrEnum, Searched[Any]]]:
    yield from ((knockout, Generations(knockout)) for knockout in generations.Knockout)
    yield from ((knockout, KeptWals(knockout)) for knockout in kept_wals.Knockout)
    for knockout in cursors.Knockout:
        yield knockout, Cursors(knockout not in cursors.STATELESS, knockout, most_lives=4)


def test_a_planted_bug_turns_its_model_red(subtests: pytest.Subtests) -> None:
    for knockout, protocol in planted():
        with subtests.test(knockout.name.lower()):
            worlds, violation, trace = explore(protocol)
            print("\n".join([f"\n{knockout}: {violation}, in {worlds} worlds", *trace]))
            assert violation, f"nobody notices that {knockout}"

"""What becomes of kept WALs: green as it stands, red for every planted bug. `-s` shows the traces."""

from __future__ import annotations

import pytest

from tests.model.kept_wals import KeptWals, Knockout, explore


def test_what_is_kept_or_referred_to_is_there_whatever_happens_when() -> None:
    worlds, violation, trace = explore(KeptWals())
    assert not violation, "\n".join([violation, *trace])
    assert worlds > 1_000


def test_a_planted_bug_turns_the_model_of_kept_wals_red(subtests: pytest.Subtests) -> None:
    for knockout in Knockout:
        with subtests.test(knockout.name.lower()):
            worlds, violation, trace = explore(KeptWals(knockout))
            print("\n".join([f"\n{knockout}: {violation}, in {worlds} worlds", *trace]))
            assert violation, f"nobody notices that {knockout}"

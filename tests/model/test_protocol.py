"""The protocol, walked through exhaustively: green as it stands, red for every planted bug. `-s` shows the traces."""

from __future__ import annotations

import pytest

from lockstep.states import (
    EPOCH_TRANSITIONS,
    PARTICIPANT_TRANSITIONS,
    TRANSITIONS,
    Fence,
    ParticipantState,
)
from tests.model import generations, search
from tests.model.checker import Exploration, explore, wander
from tests.model.model import Arrow, Knockout, Protocol
from tests.sampling import Sampling


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return Protocol()


@pytest.fixture(scope="module")
def exploration(protocol: Protocol) -> Exploration:
    return explore(protocol)


@pytest.mark.fault("B5", "B7", "B18", "B19", "D12", "F3", "F5", "G1", "G2", "G3", "J2")
def test_every_reachable_world_keeps_every_invariant_and_can_be_finished(exploration: Exploration) -> None:
    print(exploration)
    assert not exploration.violation, exploration
    assert exploration.worlds > 10_000


def test_every_arrow_of_the_table_is_taken_by_each_of_its_roles(protocol: Protocol, exploration: Exploration) -> None:
    declared = {
        (machine, arrow.source, arrow.target, role)
        for machine, arrows in TRANSITIONS.items()
        for arrow in arrows
        for role in arrow.roles
    }
    replacing = generations.Generations()
    search.explore(replacing)
    assert exploration.worlds and protocol.exercised | replacing.exercised == declared


#: Processes and folders at once: many a bug shows in a world that is smaller than the one that is searched whole.
SIZES = ((1, 2), (2, 1), (2, 2))


def _first_red(knockout: Knockout | None = None, unfenced: Arrow | None = None) -> Exploration:
    for processes, folders in SIZES:
        found = explore(Protocol(knockout, unfenced, most_processes=processes, most_folders=folders))
        if found.violation:
            break
    return found


def test_smaller_worlds_are_green() -> None:
    """So what turns one red is the bug that was planted."""
    for processes, folders in SIZES[:-1]:
        found = explore(Protocol(most_processes=processes, most_folders=folders))
        assert not found.violation, found


@pytest.mark.tier("all")
@pytest.mark.fault("C14", "F3", "F7")
def test_a_planted_bug_turns_the_model_red(subtests: pytest.Subtests) -> None:
    for knockout in Knockout:
        with subtests.test(knockout.name.lower()):
            found = _first_red(knockout)
            print(f"\n{knockout}: {found}")
            assert found.violation, f"nobody notices that {knockout}"
            assert found.trace


ARROWS: tuple[Arrow, ...] = (*EPOCH_TRANSITIONS, *PARTICIPANT_TRANSITIONS)

# prepared → prepared is missing: a larger vote that a smaller one replaces no longer counts, see OLD_VOTE_COUNTS
FENCED = [
    arrow
    for arrow in ARROWS
    if arrow.fence in (Fence.ATTEMPT, Fence.EXECUTION) and arrow.source is not ParticipantState.PREPARED
]


def test_an_arrow_without_its_fence_turns_the_model_red(subtests: pytest.Subtests) -> None:
    for arrow in FENCED:
        with subtests.test(f"{arrow.source}-{arrow.target}"):
            found = _first_red(unfenced=arrow)
            print(f"\n{arrow.source} → {arrow.target} open to everybody: {found}")
            assert found.violation, f"nobody notices that {arrow} lost its fence"


@pytest.mark.fault("J8")
def test_random_histories_of_five_processes_keep_every_invariant(sampling: Sampling) -> None:
    for seed in sampling.sample(range(6), 3):
        found = wander(Protocol(most_processes=5, most_folders=3), seed, steps=1500)
        assert not found.violation, f"seed {seed}: {found}"

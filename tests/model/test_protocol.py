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
from tests.model import generations
from tests.model.checker import Exploration, explore, wander
from tests.model.model import Arrow, Knockout, Protocol


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return Protocol()


@pytest.fixture(scope="module")
def exploration(protocol: Protocol) -> Exploration:
    return explore(protocol)


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
    generations.explore(replacing)
    assert exploration.worlds and protocol.exercised | replacing.exercised == declared


@pytest.mark.parametrize("knockout", Knockout, ids=lambda knockout: knockout.name.lower())
def test_a_planted_bug_turns_the_model_red(knockout: Knockout) -> None:
    found = explore(Protocol(knockout))
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


@pytest.mark.parametrize("arrow", FENCED, ids=lambda arrow: f"{arrow.source}-{arrow.target}")
def test_an_arrow_without_its_fence_turns_the_model_red(arrow: Arrow) -> None:
    found = explore(Protocol(unfenced=arrow))
    print(f"\n{arrow.source} → {arrow.target} open to everybody: {found}")
    assert found.violation, f"nobody notices that {arrow} lost its fence"


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_of_five_processes_keep_every_invariant(seed: int) -> None:
    found = wander(Protocol(most_processes=5, most_folders=3), seed, steps=1500)
    assert not found.violation, found

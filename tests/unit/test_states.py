"""The automaton itself: what can be reached, what is final, who owns which arrow."""

from __future__ import annotations

from enum import StrEnum

from lockstep.states import (
    DECIDED,
    EPOCH_TRANSITIONS,
    PARTICIPANT_TRANSITIONS,
    SHOWN,
    TRANSITIONS,
    UNDECIDED,
    EpochState,
    Fence,
    ParticipantState,
    Role,
)


def reachable(kind: type[StrEnum], start: StrEnum | None) -> set[StrEnum]:
    found: set[StrEnum] = set()
    frontier: list[StrEnum | None] = [start]
    while frontier:
        source = frontier.pop()
        for arrow in TRANSITIONS[kind]:
            if arrow.source == source and arrow.target not in found:
                found.add(arrow.target)
                frontier.append(arrow.target)
    return found


def test_every_state_can_be_reached_from_nothing() -> None:
    assert {kind: reachable(kind, None) for kind in TRANSITIONS} == {kind: set(kind) for kind in TRANSITIONS}


def test_no_arrow_is_named_twice() -> None:
    for arrows in TRANSITIONS.values():
        assert len({(arrow.source, arrow.target) for arrow in arrows}) == len(arrows)


def test_an_epoch_is_undecided_decided_or_void() -> None:
    assert UNDECIDED.isdisjoint(DECIDED)
    assert UNDECIDED | DECIDED | {EpochState.VOID} == set(EpochState)
    assert SHOWN < DECIDED


def test_no_arrow_leads_out_of_the_decision() -> None:
    for state in DECIDED:
        assert reachable(EpochState, state) <= DECIDED


def test_only_commit_decides() -> None:
    deciding = [arrow for arrow in EPOCH_TRANSITIONS if arrow.target in DECIDED and arrow.source not in DECIDED]
    assert [(arrow.source, arrow.target, arrow.roles) for arrow in deciding] == [
        (EpochState.STAGED, EpochState.COMMITTED, frozenset({Role.COMMIT}))
    ]


def test_void_and_replaced_are_final() -> None:
    assert reachable(EpochState, EpochState.VOID) == reachable(EpochState, EpochState.REPLACED) == set()


def test_what_is_cleaned_up_leaves_its_place_only_to_a_decision() -> None:
    [arrow] = [arrow for arrow in EPOCH_TRANSITIONS if arrow.source is EpochState.CLEANED]
    assert (arrow.target, arrow.roles, arrow.fence) == (EpochState.REPLACED, frozenset({Role.COMMIT}), Fence.SUCCESSOR)


def test_a_published_participant_is_final() -> None:
    assert reachable(ParticipantState, ParticipantState.PUBLISHED) == set()


def test_only_a_person_gives_a_range_up() -> None:
    assert {role for arrow in EPOCH_TRANSITIONS if arrow.target is EpochState.VOID for role in arrow.roles} == {
        Role.OPERATOR
    }


def test_only_what_the_decision_covers_is_open_to_stale_attempts() -> None:
    for arrow in EPOCH_TRANSITIONS:
        assert (arrow.fence in (Fence.NONE, Fence.SUCCESSOR)) == (arrow.source in DECIDED)
    for vote in PARTICIPANT_TRANSITIONS:
        assert (vote.fence is Fence.NONE) == (vote.target is ParticipantState.PUBLISHED)


def test_a_vote_is_voided_only_by_a_new_attempt() -> None:
    voiding = [arrow for arrow in PARTICIPANT_TRANSITIONS if arrow.target is ParticipantState.PENDING]
    assert {arrow.fence for arrow in voiding} == {Fence.NEW_ATTEMPT}

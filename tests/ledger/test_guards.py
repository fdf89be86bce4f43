"""Votes, the decision and publication: what counts, what is fenced, what is repeated without harm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.epoch import Epoch, Vote
from lockstep.errors import AlreadyDecided, Fenced, IllegalTransition, NotPrepared, OutOfOrder, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.states import EpochState, ParticipantState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    RUN,
    SINKS,
    Sql,
    attempt_of,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    seal,
    show,
    vote,
    vote_all,
    voted,
)


def test_the_decision_wants_the_vote_of_every_planned_sink(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    vote(ledger, epoch, "warehouse")
    with pytest.raises(NotPrepared, match="lacks the vote of delays"):
        ledger.commit_epoch(attempt_of(epoch))
    vote(ledger, epoch, "delays")
    assert ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


def test_the_decision_wants_a_sealed_wal(ledger: Ledger) -> None:
    with pytest.raises(NotPrepared, match="not sealed"):
        ledger.commit_epoch(attempt_of(planned(ledger)))


def test_epochs_are_decided_in_one_transaction_but_for_those_that_may_not_be(ledger: Ledger, sql: Sql) -> None:
    pack = [voted(ledger, planned(ledger, number)) for number in (1, 2, 3, 4)]
    ledger.raise_attempt(FLIGHTS, pack[1].id, Role.ABORT)
    ledger.take_token(attempt_of(pack[2]), Role.PREPARE, "delays")
    found = ledger.commit_epochs([attempt_of(epoch) for epoch in reversed(pack)])[::-1]
    assert [type(one) for one in found] == [Epoch, Fenced, NotPrepared, Epoch]
    states = [ledger.epoch(FLIGHTS, epoch.id).state for epoch in pack]
    assert states == [EpochState.COMMITTED, EpochState.STAGED, EpochState.STAGED, EpochState.COMMITTED]
    assert len(sql("SELECT DISTINCT xmin::text FROM lockstep.epoch WHERE state = 'committed'")) == 1
    assert ledger.commit_epochs([attempt_of(pack[0])]) == [ledger.epoch(FLIGHTS, pack[0].id)]


def test_a_cursors_epochs_are_decided_together_in_their_order(ledger: Ledger) -> None:
    pack = [voted(ledger, clicked(ledger, after)) for after in (0, 1, 2)]
    ledger.raise_attempt(CLICKS, pack[1].id, Role.ABORT)
    found = ledger.commit_epochs([attempt_of(epoch) for epoch in reversed(pack)])[::-1]
    assert [type(one) for one in found] == [Epoch, Fenced, OutOfOrder]


@pytest.mark.fault("D11")
def test_votes_of_mixed_attempts_are_no_decision(ledger: Ledger) -> None:
    old = seal(ledger, planned(ledger))
    vote(ledger, old, "warehouse")
    new = ledger.take_over(FLIGHTS, old.id, RUN)
    vote(ledger, new, "delays")
    with pytest.raises(NotPrepared, match="warehouse"):
        ledger.commit_epoch(attempt_of(new))


@pytest.mark.fault("D11")
def test_votes_of_mixed_attempts_are_no_decision_even_if_they_stand_in_the_table(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    with sql.unwatched():
        sql("UPDATE lockstep.participant SET attempt = attempt - 1 WHERE sink = 'delays'")
    with pytest.raises(NotPrepared, match="delays"):
        ledger.commit_epoch(attempt_of(epoch))


@pytest.mark.fault("B19")
def test_a_stale_attempt_can_not_seal(ledger: Ledger) -> None:
    old = planned(ledger)
    ledger.take_over(FLIGHTS, old.id, RUN)
    with pytest.raises(Fenced, match="clear from begin"):
        ledger.seal_epoch(attempt_of(old), "folder", HASH, {}, "v1")


@pytest.mark.fault("C15")
def test_a_stale_attempt_can_not_vote(ledger: Ledger) -> None:
    old = seal(ledger, planned(ledger))
    token = ledger.take_token(attempt_of(old), Role.PREPARE, "warehouse")
    ledger.take_over(FLIGHTS, old.id, RUN)
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(old), "warehouse", Vote(token, "h", "t"))
    assert ledger.participants(FLIGHTS, old.id)["warehouse"].vote is None


@pytest.mark.fault("D5")
def test_a_stale_attempt_can_not_decide(ledger: Ledger) -> None:
    old = voted(ledger, planned(ledger))
    vote_all(ledger, ledger.take_over(FLIGHTS, old.id, RUN))
    with pytest.raises(Fenced):
        ledger.commit_epoch(attempt_of(old))


def test_a_new_attempt_voids_every_vote_and_a_stale_one_starts_no_execution(ledger: Ledger) -> None:
    old = voted(ledger, planned(ledger))
    ledger.take_over(FLIGHTS, old.id, RUN)
    for participant in ledger.participants(FLIGHTS, old.id).values():
        assert (participant.state, participant.vote, participant.execution) == (ParticipantState.PENDING, None, None)
    for role in (Role.STAGE, Role.PREPARE):
        with pytest.raises(Fenced):
            ledger.take_token(attempt_of(old), role, "warehouse")
    with pytest.raises(Fenced):
        ledger.require_current(attempt_of(old))


def test_the_younger_executions_vote_replaces_the_elders(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    elder, younger = (vote(ledger, epoch, "warehouse") for _ in range(2))
    assert elder.token < younger.token
    assert ledger.participants(FLIGHTS, epoch.id)["warehouse"].vote == younger


@pytest.mark.fault("C24")
def test_an_elder_execution_can_not_vote_after_a_younger_has_started(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    elder = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    younger = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    with pytest.raises(Fenced, match="younger"):
        ledger.record_vote(attempt_of(epoch), "warehouse", Vote(elder, "h", "t"))
    ledger.record_vote(attempt_of(epoch), "warehouse", Vote(younger, "h", "t"))


@pytest.mark.fault("C24")
def test_an_elders_vote_does_not_count_once_a_younger_execution_has_started(ledger: Ledger) -> None:
    """The younger one rolls the elder's branch back before it votes: the decision must not rest on that branch."""
    epoch = voted(ledger, planned(ledger))
    old = ledger.participants(FLIGHTS, epoch.id)["warehouse"].vote
    assert old is not None
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    with pytest.raises(NotPrepared, match="warehouse"):
        ledger.commit_epoch(attempt_of(epoch))
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(epoch), "warehouse", old)
    ledger.record_vote(attempt_of(epoch), "warehouse", Vote(token, "h", "t"))
    assert ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


def test_a_vote_may_be_repeated_before_and_after_the_decision(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    votes = vote_all(ledger, epoch)
    ledger.record_vote(attempt_of(epoch), "warehouse", votes["warehouse"])
    ledger.commit_epoch(attempt_of(epoch))
    ledger.record_vote(attempt_of(epoch), "warehouse", votes["warehouse"])


def test_the_decision_freezes_the_votes(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    before = ledger.participants(FLIGHTS, epoch.id)
    with pytest.raises(AlreadyDecided, match="nothing left to do"):
        ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    with pytest.raises(Fenced, match="was decided with another vote"):
        ledger.record_vote(attempt_of(epoch), "warehouse", Vote(10**9, "h", "t"))
    assert ledger.participants(FLIGHTS, epoch.id) == before


def test_a_sink_that_was_not_planned_has_no_vote(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    with pytest.raises(UnknownEpoch, match="without sink stranger"):
        ledger.record_vote(attempt_of(epoch), "stranger", Vote(99, "h", "t"))


def test_the_decision_may_be_repeated_by_anybody(ledger: Ledger) -> None:
    old = planned(ledger)
    new = ledger.take_over(FLIGHTS, old.id, RUN)
    decided = committed(ledger, new)
    assert ledger.commit_epoch(attempt_of(new)) == decided
    assert ledger.commit_epoch(attempt_of(old)) == decided


@pytest.mark.fault("B18")
def test_the_second_seal_gets_the_first_ones_wal(ledger: Ledger) -> None:
    epoch = planned(ledger)
    assert seal(ledger, epoch, "first").wal == "first"
    again = seal(ledger, epoch, "second", "b" * 64)
    assert (again.wal, again.manifest_hash) == ("first", HASH)


def test_only_the_decided_vote_is_published(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    with pytest.raises(Fenced, match="the decided vote of warehouse is"):
        ledger.record_publication(epoch, "warehouse", 10**9, "sent", Role.PUBLISH)
    epoch = show(ledger, epoch, "warehouse")
    with pytest.raises(Fenced):
        ledger.record_publication(epoch, "warehouse", 10**9, "sent", Role.PUBLISH)


def test_an_epoch_is_published_with_its_last_sink_and_publication_may_be_repeated(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    assert show(ledger, epoch, SINKS[0]).state is EpochState.COMMITTED
    assert show(ledger, epoch, SINKS[0]).state is EpochState.COMMITTED
    assert show(ledger, epoch, SINKS[1]).state is EpochState.PUBLISHED
    assert show(ledger, epoch, SINKS[1]).state is EpochState.PUBLISHED


def test_nothing_undecided_is_published(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    with pytest.raises(IllegalTransition, match="staged, not committed"):
        show(ledger, epoch, "warehouse")


@pytest.mark.fault("F2", "F7")
def test_cleanup_only_after_every_sink_has_published(ledger: Ledger) -> None:
    epoch = show(ledger, committed(ledger, planned(ledger)), SINKS[0])
    with pytest.raises(IllegalTransition, match="committed, not published"):
        ledger.record_cleanup(epoch, Role.CLEANUP)
    epoch = show(ledger, epoch, SINKS[1])
    assert ledger.record_cleanup(epoch, Role.CLEANUP).state is EpochState.CLEANED
    left = ledger.record_cleanup(epoch, Role.RECOVER)
    assert left.state is EpochState.CLEANED
    assert (left.summary["outputs"]["flights"]["rows"], left.manifest_hash) == (7, HASH)


def test_the_attempt_of_a_decided_epoch_is_not_raised(ledger: Ledger) -> None:
    for number, finish in enumerate((committed, published, cleaned), 1):
        epoch = finish(ledger, planned(ledger, number))
        assert ledger.raise_attempt(FLIGHTS, epoch.id, Role.ABORT, reason="too late") == epoch, finish
        assert ledger.take_over(FLIGHTS, epoch.id, RUN) == epoch, finish


def test_an_unknown_epoch_has_a_name_in_the_error(ledger: Ledger) -> None:
    ghost = replace(planned(ledger), id=77)
    for ask in (
        lambda: ledger.epoch(FLIGHTS, 77),
        lambda: ledger.commit_epoch(attempt_of(ghost)),
        lambda: ledger.require_current(attempt_of(ghost)),
        lambda: ledger.take_over(FLIGHTS, 77, RUN),
    ):
        with pytest.raises(UnknownEpoch, match="no epoch 77 of pipeline flights"):
            ask()


def test_a_discarded_seal_opens_a_new_attempt_of_the_same_run(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    discarded = ledger.discard_seal(attempt_of(epoch), "part-0 has the wrong sha256")
    assert (discarded.state, discarded.wal, discarded.summary) == (EpochState.PLANNED, None, None)
    assert discarded.attempt > epoch.attempt
    assert ledger.find_run(RUN) == attempt_of(discarded)
    assert all(p.vote is None for p in ledger.participants(FLIGHTS, epoch.id).values())
    assert ledger.discard_seal(attempt_of(discarded), "again") == discarded


def test_a_vote_for_a_discarded_wal_does_not_count_for_the_next(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    discarded = ledger.discard_seal(attempt_of(epoch), "torn")
    seal(ledger, discarded, "another", "b" * 64)
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(epoch), "warehouse", Vote(token, "h", "t"))


def test_a_decided_wal_is_never_discarded(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    with pytest.raises(IllegalTransition, match="committed, not staged"):
        ledger.discard_seal(attempt_of(epoch), "torn")


def test_only_issued_tokens_are_known(ledger: Ledger) -> None:
    epoch = planned(ledger)
    token = ledger.take_token(attempt_of(epoch), Role.STAGE)
    other = planned(ledger, 2)
    assert ledger.find_issued_tokens(FLIGHTS, epoch.id, [epoch.attempt, token, other.attempt, 10**9]) == {
        epoch.attempt,
        token,
    }

"""Votes, the decision and publication: what counts, what is fenced, what is repeated without harm."""

from __future__ import annotations

from dataclasses import replace

import psycopg2
import pytest

from lockstep.epoch import Epoch, RunKey, Vote
from lockstep.errors import Fenced, IllegalTransition, KeysHeld, NotPrepared, OutOfOrder, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    RUN,
    SINKS,
    Sql,
    attempt_of,
    clicked,
    committed,
    planned,
    seal,
    show,
    vote,
    vote_all,
    voted,
)


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
def test_votes_of_mixed_attempts_are_no_decision_even_if_they_stand_in_the_table(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    for by_hand in ("UPDATE lockstep.participant SET attempt = attempt - 1", "DELETE FROM lockstep.participant"):
        with sql.unwatched():
            sql(f"{by_hand} WHERE sink = 'delays'")
        with pytest.raises(NotPrepared, match="delays"):
            ledger.commit_epoch(attempt_of(epoch))


@pytest.mark.fault("B19", "C15", "D5")
def test_a_stale_attempt_can_not_seal_vote_or_decide(ledger: Ledger) -> None:
    unsealed = planned(ledger)
    ledger.take_over(FLIGHTS, unsealed.id, RUN)
    with pytest.raises(Fenced, match="clear from begin"):
        ledger.seal_epoch(attempt_of(unsealed), "folder", HASH, {}, "v1")
    old = seal(ledger, planned(ledger, 2))
    token = ledger.take_token(attempt_of(old), Role.PREPARE, "warehouse")
    new = ledger.take_over(FLIGHTS, old.id, RUN)
    for stale in (
        lambda: ledger.record_vote(attempt_of(old), "warehouse", Vote(token, "h", "t")),
        lambda: ledger.require_current(attempt_of(old)),
        lambda: ledger.take_token(attempt_of(old), Role.STAGE, "warehouse"),
    ):
        with pytest.raises(Fenced):
            stale()
    assert ledger.participants(FLIGHTS, old.id)["warehouse"].vote is None
    vote_all(ledger, new)
    with pytest.raises(Fenced):
        ledger.commit_epoch(attempt_of(old))


@pytest.mark.fault("C24")
def test_an_elders_vote_does_not_count_once_a_younger_execution_has_started(ledger: Ledger) -> None:
    """The younger one rolls the elder's branch back before it votes: the decision must not rest on that branch."""
    epoch = voted(ledger, planned(ledger))
    old = ledger.participants(FLIGHTS, epoch.id)["warehouse"].vote
    assert old is not None
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    with pytest.raises(NotPrepared, match="warehouse"):
        ledger.commit_epoch(attempt_of(epoch))
    with pytest.raises(Fenced, match="younger"):
        ledger.record_vote(attempt_of(epoch), "warehouse", old)
    ledger.record_vote(attempt_of(epoch), "warehouse", Vote(token, "h", "t"))
    assert ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


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


def test_a_discarded_seal_opens_a_new_attempt_of_the_same_run_and_no_vote_for_it_counts(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    discarded = ledger.discard_seal(attempt_of(epoch), "part-0 has the wrong sha256")
    assert (discarded.state, discarded.wal, discarded.summary) == (EpochState.PLANNED, None, None)
    assert discarded.attempt > epoch.attempt
    assert ledger.find_run(RUN) == attempt_of(discarded)
    assert all(p.vote is None for p in ledger.participants(FLIGHTS, epoch.id).values())
    assert ledger.discard_seal(attempt_of(discarded), "again") == discarded
    seal(ledger, discarded, "another", "b" * 64)
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(epoch), "warehouse", Vote(token, "h", "t"))
    decided = committed(ledger, planned(ledger, 2))
    with pytest.raises(IllegalTransition, match="committed, not staged"):
        ledger.discard_seal(attempt_of(decided), "torn")


def test_only_issued_tokens_are_known(ledger: Ledger) -> None:
    epoch = planned(ledger)
    token = ledger.take_token(attempt_of(epoch), Role.STAGE)
    other = planned(ledger, 2)
    assert ledger.find_issued_tokens(FLIGHTS, epoch.id, [epoch.attempt, token, other.attempt, 10**9]) == {
        epoch.attempt,
        token,
    }


# --- epochs whose rows could collide take turns: from the validation to the publication ---


def asking(ledger: Ledger, epoch: Epoch, sink: str = "warehouse") -> int:
    """Start `prepare` and take the turn; the execution's token."""
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, sink)
    ledger.take_turn(attempt_of(epoch), sink, token)
    return token


def run_of(number: int) -> RunKey:
    return RunKey("flights", f"day {number}")


def staged(ledger: Ledger, number: int) -> Epoch:
    return seal(ledger, planned(ledger, number, run_of(number)))


def test_the_turn_lasts_until_the_epoch_is_shown_where_it_took_it(ledger: Ledger) -> None:
    first, second = staged(ledger, 1), staged(ledger, 2)
    token = asking(ledger, first)
    vote(ledger, first, "delays")
    ledger.record_vote(attempt_of(first), "warehouse", Vote(token, None, "target", {"flights": 7}))
    with pytest.raises(KeysHeld, match="epoch 1 is prepared in warehouse"):
        asking(ledger, second)
    ledger.commit_epoch(attempt_of(first))
    with pytest.raises(KeysHeld):
        asking(ledger, second, "delays")  # the turn is the pipeline's
    show(ledger, first, "warehouse")
    asking(ledger, second)


def test_a_vote_of_the_same_sink_counts_though_it_took_no_turn(ledger: Ledger) -> None:
    """It was given before there were turns, or before the table had the unique key."""
    first, second = staged(ledger, 1), staged(ledger, 2)
    vote(ledger, first, "warehouse")
    with pytest.raises(KeysHeld):
        asking(ledger, second)
    asking(ledger, second, "delays")


def test_a_new_attempt_ends_the_turn_and_a_zombie_does_not_get_it_back(ledger: Ledger) -> None:
    first, second = staged(ledger, 1), staged(ledger, 2)
    token = asking(ledger, first)
    ledger.take_over(FLIGHTS, 1, run_of(1))
    asking(ledger, second)
    with pytest.raises(Fenced):
        ledger.take_turn(attempt_of(first), "warehouse", token)
    older = ledger.take_token(attempt_of(second), Role.PREPARE, "warehouse")
    asking(ledger, second)
    with pytest.raises(Fenced, match="superseded"):
        ledger.take_turn(attempt_of(second), "warehouse", older)
    ledger.void_epoch(FLIGHTS, 2, "not needed")
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(first), "warehouse", Vote(token, None, "target", {}))


def test_the_database_itself_refuses_two_epochs_with_the_turn(ledger: Ledger, sql: Sql) -> None:
    asking(ledger, staged(ledger, 1))
    staged(ledger, 2)
    with pytest.raises(psycopg2.errors.ExclusionViolation, match="one_turn_per_pipeline"):
        sql("UPDATE lockstep.participant SET turn = true WHERE epoch = 2 AND sink = 'delays'")
    sql.rollback()
    sql("UPDATE lockstep.participant SET turn = true WHERE epoch = 1 AND sink = 'delays'")

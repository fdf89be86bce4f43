"""Epochs whose rows could collide take turns: one at a time, from its validation to its publication."""

from __future__ import annotations

import psycopg2
import pytest

from lockstep.epoch import Attempt, Epoch, RunKey, Vote
from lockstep.errors import Fenced, KeysHeld
from lockstep.ledger import Ledger
from lockstep.states import Role
from tests.ledger import racers
from tests.ledger.epochs import FLIGHTS, Sql, attempt_of, planned, seal, show, vote
from tests.ledger.test_races import many_epochs

ROUNDS = 60


def asking(ledger: Ledger, epoch: Epoch, sink: str = "warehouse") -> int:
    """Start `prepare` and take the turn; the execution's token."""
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, sink)
    ledger.take_turn(attempt_of(epoch), sink, token)
    return token


def run_of(number: int) -> RunKey:
    return RunKey("flights", f"day {number}")


def staged(ledger: Ledger, number: int) -> Epoch:
    return seal(ledger, planned(ledger, number, run_of(number)))


@pytest.mark.fault("L10")
def test_of_two_that_ask_at_once_one_gets_the_turn(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, 2 * ROUNDS, "pending")
    pairs = list(zip(sorted(attempts)[::2], sorted(attempts)[1::2], strict=True))
    for side in (0, 1):  # each side's executions have started
        with racers._ledger(migrated_dsn, "starter") as ledger:
            for pair in pairs:
                ledger.take_token(Attempt(FLIGHTS, pair[side], attempts[pair[side]]), Role.PREPARE, "warehouse")
    tokens = dict(sql("SELECT epoch, execution FROM lockstep.participant WHERE sink = 'warehouse'"))
    sides = [[(pair[side], attempts[pair[side]], tokens[pair[side]]) for pair in pairs] for side in (0, 1)]
    first, second = racers.race(*[(racers.take_turns, (migrated_dsn, side)) for side in sides])
    winners = [(one in first) + (other in second) for one, other in pairs]
    assert winners == [1] * ROUNDS
    assert first and second, "one side won every round: no race at all"


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
    ledger.void_epoch(FLIGHTS, 2, "not needed")
    with pytest.raises(Fenced):
        ledger.record_vote(attempt_of(first), "warehouse", Vote(token, None, "target", {}))


def test_an_execution_that_was_superseded_gets_no_turn(ledger: Ledger) -> None:
    epoch = staged(ledger, 1)
    older = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    asking(ledger, epoch)
    with pytest.raises(Fenced, match="superseded"):
        ledger.take_turn(attempt_of(epoch), "warehouse", older)


def test_the_database_itself_refuses_two_epochs_with_the_turn(ledger: Ledger, sql: Sql) -> None:
    asking(ledger, staged(ledger, 1))
    staged(ledger, 2)
    with pytest.raises(psycopg2.errors.ExclusionViolation, match="one_epoch_has_the_turn"):
        sql("UPDATE lockstep.participant SET turn = true WHERE epoch = 2 AND sink = 'delays'")
    sql.rollback()
    sql("UPDATE lockstep.participant SET turn = true WHERE epoch = 1 AND sink = 'delays'")

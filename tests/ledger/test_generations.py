"""One decision ends one life of a range and begins another: never two at once, never none."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg2
import pytest

from lockstep.epoch import Epoch, Generation, RunKey
from lockstep.errors import Fenced, IllegalTransition, IntervalOverlap, NotPrepared, SourceClaimed
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    FLIGHTS,
    RUN,
    SINKS,
    Finish,
    Sql,
    a_plan,
    attempt_of,
    cleaned,
    committed,
    day,
    planned,
    published,
    seal,
    show,
    vote_all,
    voted,
    whole_files,
)

AGAIN = RunKey("flights", "again")


def restated(
    ledger: Ledger, current: Epoch, run: RunKey = AGAIN, claims: Sequence[str] = (), because: str = "a late file"
) -> Epoch:
    """Planned, to take the place of `current`."""
    found = ledger.plan_generation(current, a_plan(), whole_files({"landing": claims}), run, because)
    assert found is not None
    return found


def test_the_decision_of_a_generation_ends_the_one_before(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    new = restated(ledger, old)
    assert new.generation == Generation(root=old.id, number=1, replaces=old.id, because="a late file")
    assert (new.interval, new.root) == (old.interval, old.id)
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == ledger.epoch(FLIGHTS, old.id), "until it is decided"
    new = committed(ledger, new)
    old = ledger.epoch(FLIGHTS, old.id)
    assert (old.state, new.state) == (EpochState.REPLACED, EpochState.COMMITTED)
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == new
    assert ledger.successor(old) == new
    [before] = [one for one in Report(ledger._connection.dsn).history(FLIGHTS, old.id) if one.target == "replaced"]
    assert before.role == Role.COMMIT


def test_generations_follow_one_another(ledger: Ledger) -> None:
    lives = [cleaned(ledger, planned(ledger))]
    for number in (1, 2, 3):
        lives.append(cleaned(ledger, restated(ledger, lives[-1], RunKey("flights", f"{number}"))))
        assert lives[-1].generation == Generation(lives[0].id, number, lives[-2].id, "a late file")
    found = ledger.generations(lives[2])
    assert [one.id for one in found] == [one.id for one in lives]
    assert [one.state for one in found] == [EpochState.REPLACED] * 3 + [EpochState.CLEANED]


@pytest.mark.parametrize("bring", [voted, committed, published])
def test_only_what_every_sink_shows_and_is_cleaned_up_can_be_replaced(ledger: Ledger, bring: Finish) -> None:
    with pytest.raises(IllegalTransition, match="can't replace"):
        restated(ledger, bring(ledger, planned(ledger)))


def test_a_root_has_one_undecided_generation(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    new = restated(ledger, old)
    assert ledger.plan_generation(old, a_plan(), {}, RUN, "another reason") is None
    assert ledger.rival_generation(old) == new
    committed(ledger, new)
    assert ledger.plan_generation(old, a_plan(), {}, RUN, "another reason") is None


def test_a_generation_that_is_given_up_leaves_everything_as_it_was(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger, claims={"landing": ["a"]}))
    given_up = restated(ledger, old, claims=["a", "late"])
    ledger.void_epoch(FLIGHTS, given_up.id, "a mistake")
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == ledger.epoch(FLIGHTS, old.id)
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "late"]) == {"a"}
    new = restated(ledger, old, RunKey("flights", "third"), claims=["a", "late"])
    assert new.generation is not None and new.generation.number == 1, "nothing has taken that number"
    assert committed(ledger, new).state is EpochState.COMMITTED


def test_the_claims_of_a_range_are_those_of_all_its_lives(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger, claims={"landing": ["a", "b"]}))
    neighbour = planned(ledger, 2, RUN, claims={"landing": ["c"]})
    with pytest.raises(SourceClaimed, match=f"c \\(epoch {neighbour.id}\\)"):
        restated(ledger, old, claims=["a", "c"])
    new = restated(ledger, old, claims=["b", "late"])
    assert ledger.find_own_paths(FLIGHTS, "landing", ["a", "b", "c", "late"], [old.id, new.id]) == {"a", "b", "late"}
    with pytest.raises(SourceClaimed, match="late"):
        planned(ledger, 3, RunKey("flights", "3"), claims={"landing": ["late"]})


def test_intervals_are_excluded_by_their_originals(ledger: Ledger) -> None:
    restated(ledger, cleaned(ledger, planned(ledger)))
    with pytest.raises(IntervalOverlap):
        ledger.plan_epoch(FLIGHTS, a_plan(), {}, RunKey("flights", "wide"), interval=day(1, days=2), after=None)
    assert ledger.plan_epoch(FLIGHTS, a_plan(), {}, RunKey("flights", "same"), interval=day(1), after=None) is None


def test_a_stale_attempt_decides_no_generation(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    stale = voted(ledger, restated(ledger, old))
    ledger.take_over(FLIGHTS, stale.id, AGAIN)
    with pytest.raises(Fenced):
        ledger.commit_epoch(attempt_of(stale))
    assert ledger.epoch(FLIGHTS, old.id).state is EpochState.CLEANED


def test_without_its_votes_a_generation_replaces_nothing(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    with pytest.raises(NotPrepared):
        ledger.commit_epoch(attempt_of(seal(ledger, restated(ledger, old))))
    assert ledger.epoch(FLIGHTS, old.id).state is EpochState.CLEANED


def test_what_is_replaced_stays_published(ledger: Ledger) -> None:
    """Late publishers, cleaners and deciders of it find that all is done."""
    old = cleaned(ledger, planned(ledger))
    new = committed(ledger, restated(ledger, old))
    assert ledger.commit_epoch(attempt_of(old)).state is EpochState.REPLACED
    assert show(ledger, old, "warehouse").state is EpochState.REPLACED
    assert ledger.record_cleanup(old, Role.RECOVER).state is EpochState.REPLACED
    assert [one.id for one in ledger.unfinished_epochs(FLIGHTS)] == [new.id]


def test_a_pack_decides_generations_too(ledger: Ledger) -> None:
    olds = [cleaned(ledger, planned(ledger, number, RunKey("flights", f"{number}"))) for number in (1, 2)]
    news = [voted(ledger, restated(ledger, old, RunKey("flights", f"again {old.id}"))) for old in olds]
    ledger.raise_attempt(FLIGHTS, news[0].id, Role.ABORT)
    found = ledger.commit_epochs([attempt_of(one) for one in news])
    assert [type(one) for one in found] == [Fenced, Epoch]
    assert [ledger.epoch(FLIGHTS, old.id).state for old in olds] == [EpochState.CLEANED, EpochState.REPLACED]


def test_the_report_counts_what_was_replaced(ledger: Ledger, sql: Sql) -> None:
    old = cleaned(ledger, planned(ledger))
    sql("INSERT INTO lockstep.finished VALUES (%s, %s, 1, 0, '{}')", FLIGHTS, old.id + 1)
    sql.commit()
    cleaned(ledger, restated(ledger, old))
    found = Report(ledger._connection.dsn).pipeline(FLIGHTS)
    assert found is not None
    assert found.counts == {EpochState.CLEANED: 1, EpochState.REPLACED: 1}
    assert found.stuck == () and found.holes == ()
    sql("DELETE FROM lockstep.finished")
    sql.commit()


# --- whoever writes by hand -----------------------------------------------------------------------------------------


def test_by_hand_nobody_decides_a_generation_and_leaves_the_other_standing(ledger: Ledger, sql: Sql) -> None:
    new = voted(ledger, restated(ledger, cleaned(ledger, planned(ledger))))
    sql.act_as("commit")
    sql("UPDATE lockstep.epoch SET state = 'committed' WHERE id = %s", new.id)
    with pytest.raises(psycopg2.Error, match="is not replaced"):
        sql.commit()


def test_by_hand_nothing_is_replaced_by_nothing(ledger: Ledger, sql: Sql) -> None:
    old = cleaned(ledger, planned(ledger))
    vote_all(ledger, seal(ledger, restated(ledger, old)))
    sql.act_as("commit")
    with pytest.raises(psycopg2.Error, match="nothing takes the place"):
        sql("UPDATE lockstep.epoch SET state = 'replaced' WHERE id = %s", old.id)


@pytest.mark.parametrize("change", ["generation = 2", "replaces = id", "root = id", "restated_because = 'x'"])
def test_by_hand_nobody_changes_whose_place_it_takes(ledger: Ledger, sql: Sql, change: str) -> None:
    new = restated(ledger, cleaned(ledger, planned(ledger)))
    sql.act_as("operator")
    with pytest.raises(psycopg2.Error, match="keeps its generation"):
        sql(f"UPDATE lockstep.epoch SET {change} WHERE id = %s", new.id)


def test_what_was_amiss_goes_with_the_rows_and_what_is_left_of_them_is_amiss(ledger: Ledger) -> None:
    def verified() -> int:
        found = Report(ledger._connection.dsn).pipeline(FLIGHTS)
        assert found is not None
        return found.verified_through

    old = cleaned(ledger, planned(ledger))
    ledger.record_comparison(old, "delays", "shows 6 rows")
    assert verified() == 0
    new = committed(ledger, restated(ledger, old))
    assert verified() == 0, "the sink shows them until it shows those that take their place"
    ledger.record_comparison(old, "delays", "shows none")
    assert verified() == 0, "who has read before the decision says nothing of what stands behind it"
    for sink in SINKS:
        new = show(ledger, new, sink)
    assert verified() == 2
    replaced = ledger.epoch(FLIGHTS, old.id)
    ledger.record_comparison(replaced, "delays", "shows 7 rows still")
    assert verified() == 0
    ledger.record_comparison(replaced, "delays", None)
    assert verified() == 2

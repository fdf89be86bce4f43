"""What a person may do, and when it is refused."""

from __future__ import annotations

import pytest

from lockstep.epoch import Epoch
from lockstep.errors import Fenced, IllegalTransition, NotPrepared, SourceClaimed
from lockstep.ledger import Ledger
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    OTHER_RUN,
    RUN,
    Finish,
    Sql,
    a_plan,
    attempt_of,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    seal,
    show,
    vote_all,
    voted,
    whole_files,
)

DECIDING = [committed, published, cleaned]


def test_void_gives_up_an_undecided_epoch_and_says_why(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    void = ledger.void_epoch(FLIGHTS, epoch.id, "the source was wrong")
    assert (void.state, void.reason, void.wal) == (EpochState.VOID, "the source was wrong", None)
    assert ledger.void_epoch(FLIGHTS, epoch.id, "again") == void
    last = sql("SELECT target_state, role, actor, reason FROM lockstep.transition WHERE sink IS NULL ORDER BY id DESC")[
        0
    ]
    assert last == ("void", "operator", "tester", "the source was wrong")


def test_void_fences_what_runs(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    ledger.void_epoch(FLIGHTS, epoch.id, "stop")
    with pytest.raises(Fenced):
        ledger.commit_epoch(attempt_of(epoch))


@pytest.mark.fault("H19")
@pytest.mark.parametrize("finish", DECIDING)
def test_a_decided_epoch_is_neither_voided_nor_replanned(ledger: Ledger, finish: Finish) -> None:
    epoch = finish(ledger, planned(ledger))
    with pytest.raises(IllegalTransition, match="only an undecided epoch"):
        ledger.void_epoch(FLIGHTS, epoch.id, "no")
    with pytest.raises(IllegalTransition, match="only an undecided epoch"):
        ledger.replan_epoch(FLIGHTS, epoch.id, a_plan(), {}, "no")
    assert ledger.epoch(FLIGHTS, epoch.id) == epoch


def test_a_void_epoch_is_not_replanned(ledger: Ledger) -> None:
    epoch = planned(ledger)
    ledger.void_epoch(FLIGHTS, epoch.id, "no")
    with pytest.raises(IllegalTransition):
        ledger.replan_epoch(FLIGHTS, epoch.id, a_plan(), {}, "yes")


def test_void_keeps_the_claims_and_replan_releases_them(ledger: Ledger) -> None:
    first = planned(ledger, 1, claims={"landing": ["a"]})
    ledger.void_epoch(FLIGHTS, first.id, "no")
    second = planned(ledger, 2, claims={"landing": ["b"]})
    ledger.replan_epoch(FLIGHTS, second.id, a_plan(), whole_files({"landing": ["c"]}), "yes")
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "b", "c"]) == {"a", "c"}


def test_replan_claims_no_file_of_another_epoch(ledger: Ledger) -> None:
    planned(ledger, 1, claims={"landing": ["a"]})
    second = planned(ledger, 2, OTHER_RUN, claims={"landing": ["b"]})
    with pytest.raises(SourceClaimed, match="epoch 1"):
        ledger.replan_epoch(FLIGHTS, second.id, a_plan(), whole_files({"landing": ["a"]}), "greedy")
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "b"]) == {"a", "b"}
    assert ledger.epoch(FLIGHTS, second.id) == second


@pytest.mark.fault("H15")
def test_replan_takes_new_sinks_and_forgets_the_wal(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    new = ledger.replan_epoch(FLIGHTS, epoch.id, a_plan(end=20, sinks=["lake"]), {}, "warehouse is gone")
    assert (new.state, new.wal, new.manifest_hash, new.summary) == (EpochState.PLANNED, None, None, None)
    assert new.plan == a_plan(end=20, sinks=["lake"])
    assert set(ledger.participants(FLIGHTS, epoch.id)) == {"lake"}
    with pytest.raises(Fenced):
        seal(ledger, epoch)
    taken = seal(ledger, ledger.take_over(FLIGHTS, epoch.id, RUN))
    with pytest.raises(NotPrepared, match="lake"):
        ledger.commit_epoch(attempt_of(taken))
    vote_all(ledger, taken)


def test_a_replanned_sink_has_to_vote_even_if_its_participant_is_missing(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    with sql.unwatched():
        sql("DELETE FROM lockstep.participant WHERE sink = 'delays'")
    with pytest.raises(NotPrepared, match="delays"):
        ledger.commit_epoch(attempt_of(epoch))


def test_replan_keeps_cursor_ranges_joined(ledger: Ledger) -> None:
    for after in range(3):
        clicked(ledger, after)
    with pytest.raises(IllegalTransition, match="source landing would end at 25 and go on at 20"):
        ledger.replan_epoch(CLICKS, 2, a_plan(10, 25), {}, "more")
    with pytest.raises(IllegalTransition, match="would end at 20 and go on at 15"):
        ledger.replan_epoch(CLICKS, 3, a_plan(15, 30), {}, "more")
    assert ledger.replan_epoch(CLICKS, 2, a_plan(10, 20, ["lake"]), {}, "other sinks").id == 2
    assert ledger.replan_epoch(CLICKS, 3, a_plan(20, 35), {}, "more").plan == a_plan(20, 35)
    assert clicked_from(ledger, 35).id == 4


def test_replan_takes_no_source_away_that_a_later_epoch_goes_on_with(ledger: Ledger) -> None:
    clicked(ledger, 0)
    clicked(ledger, 1)
    weather = a_plan(source="weather")
    with pytest.raises(IllegalTransition, match="source landing would end at null and go on at 10"):
        ledger.replan_epoch(CLICKS, 1, weather, {}, "another source")
    assert ledger.replan_epoch(CLICKS, 2, weather, {}, "another source").plan == weather
    with pytest.raises(IllegalTransition, match="would end at 10 and go on at 20"):
        ledger.replan_epoch(CLICKS, 2, a_plan(20, 30), {}, "more")


def clicked_from(ledger: Ledger, start: int) -> Epoch:
    epoch = ledger.plan_epoch(CLICKS, a_plan(start, start + 10), {}, RUN, interval=None, after=3)
    assert epoch is not None
    return epoch


def test_resolve_points_a_decided_sink_to_its_new_target_and_notes_it(ledger: Ledger, sql: Sql) -> None:
    epoch = committed(ledger, planned(ledger))
    ledger.retarget_participant(epoch, "warehouse", "restored", "restored from the backup of May")
    found = ledger.participants(FLIGHTS, epoch.id)["warehouse"]
    assert found.vote is not None
    assert found.vote.target_id == "restored"
    notes = sql("SELECT sink, role, reason FROM lockstep.transition WHERE role = 'operator'")
    assert notes == [("warehouse", "operator", "restored from the backup of May")]


def test_resolve_is_refused_before_the_decision_and_after_publication(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    with pytest.raises(IllegalTransition, match="not committed"):
        ledger.retarget_participant(epoch, "warehouse", "t", "no")
    epoch = show(ledger, ledger.commit_epoch(attempt_of(epoch)), "warehouse")
    with pytest.raises(IllegalTransition, match="has published already"):
        ledger.retarget_participant(epoch, "warehouse", "t", "no")


def test_a_persons_word_publishes_a_sink(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    for sink, participant in ledger.participants(FLIGHTS, epoch.id).items():
        assert participant.vote is not None
        epoch = ledger.record_publication(epoch, sink, participant.vote.token, "resolved", Role.OPERATOR, "I looked")
    assert epoch.state is EpochState.PUBLISHED

"""No vote and no decision of an epoch with audits without a verdict of the WAL that is sealed: the ledger says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import psycopg2
import pytest

from lockstep.epoch import AuditResult, Epoch, Outcome, Plan, Verdict, Vote
from lockstep.errors import EpochHeld, Fenced, IllegalTransition, NotAudited, NotPrepared
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.states import EpochState, Role
from tests.ledger.epochs import FLIGHTS, HASH, OTHER_RUN, RUN, Sql, a_plan, attempt_of, day, seal, vote, vote_all

SPEC = {"kind": "row_count", "name": "some", "outputs": ["flights"], "blocking": True, "at_least": 1, "at_most": None}
PASSED = [AuditResult("some", 0, True), AuditResult("odd", 3, False, 7.0)]
HELD = [AuditResult("some", 1, True, told="0 rows, at least 1 expected")]
OTHER_HASH = "b" * 64


def planned(ledger: Ledger, number: int = 1) -> Epoch:
    plan: Plan = replace(a_plan(), audits=(SPEC,))
    epoch = ledger.plan_epoch(FLIGHTS, plan, {}, RUN, interval=day(number), after=None)
    assert epoch is not None
    return epoch


@pytest.fixture
def staged(ledger: Ledger) -> Epoch:
    return seal(ledger, planned(ledger))


def judged(ledger: Ledger, epoch: Epoch, results: list[AuditResult]) -> Verdict:
    return ledger.record_verdict(attempt_of(epoch), epoch.manifest_hash or "", results)


def test_without_a_verdict_no_sink_starts_votes_or_is_decided(ledger: Ledger, staged: Epoch) -> None:
    with pytest.raises(NotAudited, match="clear from audit"):
        ledger.take_token(attempt_of(staged), Role.PREPARE, "warehouse")
    with pytest.raises(NotAudited):
        ledger.record_vote(attempt_of(staged), "warehouse", Vote(10**6, None, "target", {}))
    with pytest.raises(NotAudited):
        ledger.commit_epoch(attempt_of(staged))


def test_rows_may_be_loaded_before_the_seal_and_their_vote_waits_for_the_verdict(ledger: Ledger) -> None:
    epoch = planned(ledger)
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    epoch = seal(ledger, epoch)
    early = Vote(token, "handle", "target", {"flights": 7})
    with pytest.raises(NotAudited):
        ledger.record_vote(attempt_of(epoch), "warehouse", early)
    judged(ledger, epoch, PASSED)
    ledger.record_vote(attempt_of(epoch), "warehouse", early)


def test_what_passes_goes_on_and_keeps_what_was_found(ledger: Ledger, staged: Epoch) -> None:
    assert ledger.epoch(FLIGHTS, staged.id).plan.audits == (SPEC,)
    with pytest.raises(IllegalTransition, match="no audit holds it"):
        ledger.release_epoch(FLIGHTS, staged.id, "why")
    verdict = judged(ledger, staged, PASSED)
    assert str(verdict) == "2 audits passed"
    assert (verdict.outcome, verdict.results, verdict.manifest_hash) == (Outcome.PASSED, tuple(PASSED), HASH)
    with pytest.raises(IllegalTransition, match="its audits passed"):
        ledger.release_epoch(FLIGHTS, staged.id, "why")
    vote_all(ledger, staged)
    assert ledger.commit_epoch(attempt_of(staged)).state is EpochState.COMMITTED
    assert ledger.verdict(FLIGHTS, staged.id) == verdict


def test_what_is_held_waits_for_a_person_and_says_for_which(ledger: Ledger, staged: Epoch) -> None:
    assert judged(ledger, staged, HELD).outcome is Outcome.HELD
    for refused in (
        lambda: ledger.take_token(attempt_of(staged), Role.PREPARE, "warehouse"),
        lambda: ledger.record_vote(attempt_of(staged), "warehouse", Vote(10**6, None, "target", {})),
        lambda: ledger.commit_epoch(attempt_of(staged)),
        lambda: ledger.require_not_held(staged),
    ):
        with pytest.raises(
            EpochHeld, match=r"held by some \(0 rows, at least 1 expected\).*`lockstep release flights 1"
        ):
            refused()


def test_a_verdict_is_given_once_and_outlives_an_abort(ledger: Ledger, staged: Epoch) -> None:
    first = judged(ledger, staged, HELD)
    assert judged(ledger, staged, PASSED) == first
    ledger.raise_attempt(FLIGHTS, staged.id, Role.ABORT)
    again = ledger.take_over(FLIGHTS, staged.id, OTHER_RUN)
    assert judged(ledger, staged, PASSED) == first, "nor does a zombie change it"
    ledger.release_epoch(FLIGHTS, staged.id, "looked")
    vote_all(ledger, again)
    assert ledger.commit_epoch(attempt_of(again)).state is EpochState.COMMITTED


def test_a_release_lets_it_go_on_with_the_reason_in_the_history(
    ledger: Ledger, staged: Epoch, migrated_dsn: str
) -> None:
    judged(ledger, staged, HELD)
    for _ in range(2):
        ledger.release_epoch(FLIGHTS, staged.id, "a strike")
    found = ledger.verdict(FLIGHTS, staged.id)
    assert found is not None and (found.outcome, found.reason, found.results) == (
        Outcome.RELEASED,
        "a strike",
        tuple(HELD),
    )
    vote_all(ledger, staged)
    decided = ledger.commit_epoch(attempt_of(staged))
    assert decided.state is EpochState.COMMITTED
    told = [(one.role, one.reason) for one in Report(migrated_dsn).history(FLIGHTS, staged.id) if one.reason]
    assert told == [("audit", "held by some (0 rows, at least 1 expected)"), ("operator", "released: a strike")]


def stage_anew(ledger: Ledger, staged: Epoch, how: str) -> Epoch:
    """The same epoch with other rows sealed, behind a damaged WAL or another plan."""
    if how == "discarded":
        again = ledger.discard_seal(attempt_of(staged), "damaged")
    else:
        ledger.replan_epoch(FLIGHTS, staged.id, staged.plan, {}, "anew")
        again = ledger.take_over(FLIGHTS, staged.id, RUN)
    return seal(ledger, again, "another", OTHER_HASH)


@pytest.mark.fault("N11")
@pytest.mark.parametrize("how", ["discarded", "replanned"])
def test_rows_that_were_staged_after_somebody_looked_are_not_released(ledger: Ledger, staged: Epoch, how: str) -> None:
    judged(ledger, staged, HELD)
    again = stage_anew(ledger, staged, how)
    assert ledger.verdict(FLIGHTS, staged.id) is None
    with pytest.raises(NotAudited):
        vote(ledger, again, "warehouse")
    with pytest.raises(NotPrepared, match="isn't the one"):
        ledger.record_verdict(attempt_of(again), HASH[:-1] + "c", PASSED)
    judged(ledger, again, [AuditResult("some", 2_000_000, True)])
    now = rf"held by some \(2,000,000 rows\).*`lockstep release flights 1 --manifest {OTHER_HASH[:12]} "
    for seen, why in (
        (HASH, "staged again since"),
        (HASH[:12], "staged again since"),
        ("b", "staged again since"),
        ("", "manifest that was reviewed"),
    ):
        with pytest.raises(IllegalTransition, match=f"can't release .*{why}: it is {now}"):
            ledger.release_epoch(FLIGHTS, staged.id, "a strike", only=seen)
    with pytest.raises(EpochHeld):
        ledger.require_not_held(again)
    for seen in (OTHER_HASH[:12], OTHER_HASH):
        assert ledger.release_epoch(FLIGHTS, staged.id, "looked again", only=seen) == again
    with pytest.raises(IllegalTransition, match=r"manifest bbbbbbbbbbbb is released by .*: looked again"):
        ledger.release_epoch(FLIGHTS, staged.id, "a strike", only=HASH)
    vote_all(ledger, again)


def test_who_audited_a_wal_that_was_discarded_gives_no_verdict(ledger: Ledger, staged: Epoch) -> None:
    again = ledger.discard_seal(attempt_of(staged), "damaged")
    with pytest.raises(Fenced):
        judged(ledger, staged, PASSED)
    seal(ledger, again, "another", OTHER_HASH)
    with pytest.raises(Fenced):
        judged(ledger, staged, PASSED)
    assert ledger.verdict(FLIGHTS, staged.id) is None


def test_recovery_leaves_what_is_held_to_a_person(ledger: Ledger, staged: Epoch, sql: Sql) -> None:
    sql("UPDATE lockstep.epoch SET lease_until = NULL, attempted_at = now() - interval '1 day'")
    sql("UPDATE lockstep.epoch SET changed_at = now() - interval '1 day'")
    sql.commit()
    assert [one.id for one in ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2))] == [staged.id]
    judged(ledger, staged, HELD)
    assert ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2)) == []
    ledger.release_epoch(FLIGHTS, staged.id, "looked")
    assert [one.id for one in ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2))] == [staged.id]


def test_status_says_at_once_that_it_is_held_and_what_goes_on(ledger: Ledger, staged: Epoch, migrated_dsn: str) -> None:
    judged(ledger, staged, HELD)
    found = Report(migrated_dsn).pipeline(FLIGHTS)
    assert found is not None
    [one] = found.epochs
    assert one.leased and one.held and found.trouble and one.verdict == ledger.verdict(FLIGHTS, staged.id)
    assert one.stuck and one.stuck.startswith("held by some (0 rows, at least 1 expected), and not published")
    other = seal(ledger, planned(ledger, 2))
    judged(ledger, other, HELD)
    ledger.release_epoch(FLIGHTS, staged.id, "looked")
    ledger.void_epoch(FLIGHTS, other.id, "given up")
    found = Report(migrated_dsn).pipeline(FLIGHTS)
    assert found is not None and not any(one.held or one.stuck for one in found.epochs)


def test_what_was_measured_is_the_history_of_later_epochs(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        epoch = seal(ledger, planned(ledger, number))
        judged(ledger, epoch, [AuditResult("some", 0, True, float(number))])
        vote_all(ledger, epoch)
        if number < 3:
            ledger.commit_epoch(attempt_of(epoch))
    last = planned(ledger, 4)
    found = ledger.measured_before(last, 5)
    assert [measured for _, measured in found] == [{"some": 2.0}, {"some": 1.0}], "epoch 3 isn't decided"
    assert found[0][0]["outputs"]["flights"]["rows"] == 7
    assert len(ledger.measured_before(last, 1)) == 1


def test_the_tables_refuse_a_vote_and_a_decision_from_whoever_writes_to_them(
    ledger: Ledger, staged: Epoch, sql: Sql
) -> None:
    with sql.unwatched():
        sql("UPDATE lockstep.participant SET execution = 10000000")
    sql.act_as("prepare")
    with pytest.raises(psycopg2.Error, match="no verdict that passed"):
        sql(
            "UPDATE lockstep.participant SET state = 'prepared', token = execution, attempt = %s, target_id = 't'"
            " WHERE sink = 'warehouse'",
            staged.attempt,
        )
    sql.rollback()
    with sql.unwatched():
        sql("UPDATE lockstep.participant SET execution = NULL")
    judged(ledger, staged, PASSED)
    vote_all(ledger, staged)
    with sql.unwatched():
        sql("DELETE FROM lockstep.verdict")
    sql.act_as("commit")
    with pytest.raises(psycopg2.Error, match="no verdict that passed"):
        sql("UPDATE lockstep.epoch SET state = 'committed'")


BEHIND_ITS_BACK = [
    ("operator", "UPDATE lockstep.verdict SET outcome = 'passed'"),
    ("audit", "UPDATE lockstep.verdict SET outcome = 'released', reason = 'none'"),
    ("operator", "UPDATE lockstep.verdict SET outcome = 'released', reason = 'r', results = '[]'"),
    ("operator", "UPDATE lockstep.verdict SET outcome = 'released'"),
    ("operator", "DELETE FROM lockstep.verdict"),
    (
        "prepare",
        "INSERT INTO lockstep.verdict SELECT pipeline, id, manifest_hash, 'passed', '[]', 'me' FROM lockstep.epoch",
    ),
    (
        "audit",
        "INSERT INTO lockstep.verdict SELECT pipeline, id, repeat('c', 64), 'passed', '[]', 'me' FROM lockstep.epoch",
    ),
]


def test_a_verdict_changes_in_no_other_way(ledger: Ledger, staged: Epoch, sql: Sql, subtests: pytest.Subtests) -> None:
    judged(ledger, staged, HELD)
    for role, statement in BEHIND_ITS_BACK:
        with subtests.test(f"{role}: {statement}"):
            sql.act_as(role)
            with pytest.raises(psycopg2.Error):
                sql(statement)
        sql.rollback()

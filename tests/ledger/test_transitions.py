"""The database enforces the state machine of lockstep.states, whoever asks, and keeps its history."""

from __future__ import annotations

from itertools import product

import psycopg2
import pytest

from lockstep.ledger import Ledger
from lockstep.states import TRANSITIONS, EpochState, ParticipantState, Role
from tests.ledger.epochs import (
    HASH,
    RUN,
    SINKS,
    Sql,
    attempt_of,
    committed,
    planned,
    seal,
    show,
    vote_all,
)

SUBJECTS = {EpochState: "epoch", ParticipantState: "participant"}
ILLEGAL = "LS001"


def declared() -> set[tuple[str, str | None, str, str]]:
    return {
        (SUBJECTS[kind], arrow.source, arrow.target, role)
        for kind, arrows in TRANSITIONS.items()
        for arrow in arrows
        for role in arrow.roles
    }


def test_the_database_knows_exactly_the_declared_arrows_and_roles(sql: Sql) -> None:
    assert set(sql("SELECT * FROM lockstep.legal_transition")) == declared()


def refused(sql: Sql, statement: str, *parameters: object) -> str:
    """The server's words, when it refuses; the state of the session is as before."""
    sql("SAVEPOINT before")
    with pytest.raises(psycopg2.Error) as caught:
        sql(statement, *parameters)
    sql("ROLLBACK TO SAVEPOINT before")
    assert caught.value.pgcode == ILLEGAL
    return str(caught.value)


def place(sql: Sql, table: str, state: str) -> None:
    """Put the one epoch, or one participant of it, into `state`, past every trigger, with what its checks want."""
    if table == "epoch":
        sql(
            "UPDATE lockstep.epoch SET state = %s, wal = %s, manifest_hash = %s",
            state,
            *((None, None) if state in ("planned", "void") else ("folder", HASH)),
        )
    else:
        publication = "committed" if state == "published" else None
        vote = (None, None, None) if state == "pending" else (1, 1, "target")
        sql(
            "UPDATE lockstep.participant SET state = %s, attempt = %s, token = %s, target_id = %s, publication = %s",
            state,
            *vote,
            publication,
        )


def test_every_arrow_that_is_not_declared_is_refused_even_by_hand(
    ledger: Ledger, sql: Sql, subtests: pytest.Subtests
) -> None:
    planned(ledger)
    for role in (*Role, "nobody"):
        with subtests.test(role):
            _require_refusals(sql, role)


def _require_refusals(sql: Sql, role: str) -> None:
    for kind, table in SUBJECTS.items():
        for source, target in product(kind, kind):
            if (table, source, target, role) in declared() or source == target == EpochState(EpochState.PLANNED):
                continue
            if source == target and table == "epoch":
                continue  # no change of state: what else may change is guarded elsewhere
            if source == target == ParticipantState.PENDING:
                continue
            with sql.unwatched():
                place(sql, table, source)
            sql.act_as(role)
            changes = {"pending": "token = NULL", "published": "publication = 'sent', token = 2"}
            change = changes.get(target, "token = 2") if table == "participant" else "reason = ''"
            refused(sql, f"UPDATE lockstep.{table} SET state = %s, {change}", target)
            sql.rollback()


def test_no_role_but_begin_inserts_an_epoch_and_only_a_planned_one(
    ledger: Ledger, sql: Sql, subtests: pytest.Subtests
) -> None:
    for role, state in product(Role, EpochState):
        if (role, state) == (Role.BEGIN, EpochState.PLANNED):
            continue
        sql.act_as(role)
        with subtests.test(f"{role} {state}"):
            refused(
                sql,
                "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash)"
                " VALUES ('clicks', 1, %s, 1, '{}', 'folder', %s)",
                state,
                HASH,
            )


def test_what_was_recorded_stays(ledger: Ledger, sql: Sql) -> None:
    committed(ledger, planned(ledger))
    sql.act_as("operator")
    for table in ("transition", "execution", "deployment", "epoch", "participant", "verdict"):
        refused(sql, f"DELETE FROM lockstep.{table}")
        refused(sql, f"TRUNCATE lockstep.{table} CASCADE")


def test_a_decided_epoch_can_not_be_changed_by_hand(ledger: Ledger, sql: Sql, subtests: pytest.Subtests) -> None:
    committed(ledger, planned(ledger))
    for role in ("commit", "operator", "begin"):
        sql.act_as(role)
        for change in (
            "attempt = attempt + 1",
            "attempt = attempt - 1",
            "wal = 'another'",
            "wal = NULL, manifest_hash = NULL",
            f"manifest_hash = '{'b' * 64}'",
            "plan = '{}'",
            "span = span + tstzrange(upper(span), upper(span) + interval '1 d')",
            "id = id + 1",
        ):
            with subtests.test(f"{role}: {change}"):
                refused(sql, f"UPDATE lockstep.epoch SET {change}")


def test_a_decided_vote_can_not_be_changed_by_hand(ledger: Ledger, sql: Sql, subtests: pytest.Subtests) -> None:
    epoch = committed(ledger, planned(ledger))
    columns = ("token = token + 1", "attempt = attempt + 1", "handle = 'x'", "state = 'pending'", "epoch = 2")
    changes = [f"UPDATE lockstep.participant SET {change}" for change in columns]
    for role in Role:
        sql.act_as(role)
        for change in (*changes, "DELETE FROM lockstep.participant"):
            with subtests.test(f"{role}: {change}"):
                refused(sql, change)
    sql.rollback()
    show(ledger, epoch, SINKS[0])
    for role in Role:
        sql.act_as(role)
        with subtests.test(f"{role}: of what is published"):
            refused(sql, "UPDATE lockstep.participant SET target_id = 'x' WHERE state = 'published'")


def test_the_wal_is_set_once_and_the_plan_is_frozen_for_all_but_an_operator(ledger: Ledger, sql: Sql) -> None:
    epoch = seal(ledger, planned(ledger), "first")
    assert seal(ledger, epoch, "second", "b" * 64).wal == "first"
    for role in Role:
        sql.act_as(role)
        refused(sql, "UPDATE lockstep.epoch SET wal = 'second'")
        refused(sql, "UPDATE lockstep.epoch SET wal = NULL, manifest_hash = NULL")
        if role is not Role.OPERATOR:
            refused(sql, "UPDATE lockstep.epoch SET plan = '{}'")


def test_nothing_is_decided_voted_or_published_by_hand_too_early(ledger: Ledger, sql: Sql) -> None:
    epoch = seal(ledger, planned(ledger))
    sql.act_as("begin")
    refused(sql, "UPDATE lockstep.epoch SET attempt = attempt - 1")
    stale = "UPDATE lockstep.participant SET state = 'prepared', attempt = %s, token = 99, target_id = 't'"
    sql.act_as("prepare")
    refused(sql, stale, epoch.attempt - 1)
    decide = "UPDATE lockstep.epoch SET state = 'committed'"
    sql.act_as("commit")
    assert "lacks a vote" in refused(sql, decide)
    sql.rollback()
    vote_all(ledger, epoch)
    new = ledger.take_over(epoch.pipeline, epoch.id, RUN)
    sql.act_as("commit")
    assert "lacks a vote" in refused(sql, decide)
    sql.rollback()
    vote_all(ledger, new)
    show(ledger, ledger.commit_epoch(attempt_of(new)), SINKS[0])
    sql.act_as("publish")
    assert "is not published in every sink" in refused(sql, "UPDATE lockstep.epoch SET state = 'published'")

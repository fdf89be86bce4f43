"""Numbered, forward-only, safe from two processes; another version's schema is refused."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import psycopg2
import pytest

from lockstep.errors import LedgerRefused, LedgerUnavailable
from lockstep.ledger import Ledger, migrate
from lockstep.ledger import migrations as migrating
from lockstep.ledger._statements import migrations
from lockstep.ledger.report import Report, Unproven
from stack.postgres import PostgresServer
from tests.ledger import racers
from tests.ledger.epochs import Sql


def test_two_processes_migrate_once(memory_server: PostgresServer) -> None:
    dsn = memory_server.create_database("migrated_twice")
    first, second = racers.race(*[(racers.migrating, (dsn,))] * 2)
    assert sorted([first, second]) == [[], [name for _, name, _ in migrations()]]
    assert migrate(dsn) == []
    deployments = {Ledger(dsn).deployment() for _ in range(2)}
    assert len(deployments) == 1


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [version for version, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_database_without_a_ledger_is_refused(memory_server: PostgresServer) -> None:
    with pytest.raises(LedgerRefused, match="holds no ledger: run `lockstep migrate`"):
        Ledger(memory_server.dsn("postgres")).deployment()


@pytest.mark.fault("G5", "J9")
@pytest.mark.parametrize(("version", "advice"), [(999, "upgrade Lockstep"), (0, "run the ledger's migrations")])
def test_a_schema_of_another_version_is_refused(migrated_dsn: str, sql: Sql, version: int, advice: str) -> None:
    known = migrations()[-1][0]
    sql("UPDATE lockstep.migration SET version = %s WHERE version = %s", version, known)
    sql.commit()
    try:
        with pytest.raises(LedgerRefused, match=advice):
            Ledger(migrated_dsn).deployment()
        if version > known:
            with pytest.raises(LedgerRefused, match="upgrade"):
                migrate(migrated_dsn)
    finally:
        sql("UPDATE lockstep.migration SET version = %s WHERE version = %s", known, version)
        sql.commit()


@pytest.mark.fault("G5")
def test_a_plan_of_an_unknown_format_is_refused(migrated_dsn: str, sql: Sql) -> None:
    with sql.unwatched():
        sql(
            "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan)"
            """ VALUES ('clicks', 1, 'planned', 1, '{"format": 2}')"""
        )
    with pytest.raises(LedgerRefused, match="plan has format 2"):
        Ledger(migrated_dsn).epoch("clicks", 1)


def test_migrate_says_why_it_can_not_connect(memory_server: PostgresServer) -> None:
    with pytest.raises(LedgerUnavailable, match='database "nowhere" does not exist'):
        migrate(memory_server.dsn("nowhere"))


def test_an_older_ledgers_sources_are_found_where_they_ended_and_its_tasks_may_go_on(
    memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = memory_server.create_database("before_sources")
    with monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda: migrations()[:11])
        migrate(dsn)
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql("INSERT INTO lockstep.pipeline (name, identity, last_epoch) VALUES ('clicks', 'cursor', 9)")
            sql(
                "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan) SELECT 'clicks', n, 'void', n,"
                """ jsonb_build_object('format', 1, 'sinks', '{}'::jsonb, 'sources', jsonb_build_object("""
                "CASE WHEN n < 4 THEN 'gone' ELSE 'landing' END, jsonb_build_object('start', n - 1, 'end', n)))"
                " FROM generate_series(1, 9) n"
            )
        sql("DO $$ BEGIN CREATE ROLE task_of_old LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        sql("GRANT SELECT, INSERT, UPDATE ON lockstep.participant TO task_of_old")
        sql.commit()
        migrate(dsn)
        with closing(Ledger(dsn)) as ledger:
            ends = [ledger.source_end("clicks", name, before=10) for name in ("gone", "landing", "new")]
        assert ends == [3, 9, None]
        rights = "SELECT r FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r"
        rights += " WHERE has_table_privilege('task_of_old', 'lockstep.planned_source', r)"
        assert sql(rights) == [("SELECT",), ("INSERT",), ("UPDATE",)]
        sql("DROP OWNED BY task_of_old")
        sql("DROP ROLE task_of_old")
        sql.commit()
    memory_server.drop_database("before_sources")


def test_what_an_older_ledger_took_a_persons_word_for_is_unproven(
    memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = memory_server.create_database("before_comparisons")
    with monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda: migrations()[:13])
        migrate(dsn)
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql("INSERT INTO lockstep.pipeline (name, identity, last_epoch) VALUES ('clicks', 'cursor', 3)")
            sql(
                "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash)"
                """ SELECT 'clicks', n, 'cleaned', n, '{"format": 1, "sources": {}, "sinks": {}}', 'w',"""
                " repeat('a', 64) FROM generate_series(1, 3) n"
            )
            sql(
                "INSERT INTO lockstep.participant (pipeline, epoch, sink, state, attempt, token, target_id,"
                " publication) SELECT 'clicks', n, 'out', 'published', n, n, 't',"
                " CASE n WHEN 2 THEN 'resolved' ELSE 'sent' END FROM generate_series(1, 3) n"
            )
        migrate(dsn)
        with closing(Report(dsn)) as report:
            found = report.pipeline("clicks")
    assert found is not None
    assert (found.verified_through, found.unproven) == (1, Unproven(2, "out", "a person has said that it was applied"))
    memory_server.drop_database("before_comparisons")


def test_what_an_older_version_published_in_the_last_week_is_looked_for_as_news_of_now(
    memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = memory_server.create_database("before_news")
    with monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda: migrations()[:20])
        migrate(dsn)
    rebuilt, by_nobody = ("clicks", 3), ("notes", 1)
    epochs = {  # state of the epoch, and of its sink, and for how many days
        ("clicks", 1): ("cleaned", "published", 8),
        ("clicks", 2): ("cleaned", "published", 6),
        rebuilt: ("cleaned", "published", 1),
        ("clicks", 4): ("replaced", "published", 1),
        ("clicks", 5): ("committed", "published", 1),
        ("clicks", 6): ("committed", "prepared", 1),
        by_nobody: ("cleaned", "published", 1),
    }
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql("INSERT INTO lockstep.pipeline (name, identity, last_epoch) VALUES ('clicks', 'cursor', 6)")
            sql("INSERT INTO lockstep.pipeline (name, identity, last_epoch) VALUES ('notes', 'cursor', 1)")
            for (pipeline, number), (state, of_sink, days) in epochs.items():
                sql(
                    "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash)"
                    """ VALUES (%s, %s, %s, 1, '{"format": 1, "sources": {}, "sinks": {}}', 'w', repeat('a', 64))""",
                    *(pipeline, number, state),
                )
                sql(
                    "INSERT INTO lockstep.participant (pipeline, epoch, sink, state, attempt, token, target_id,"
                    " publication, changed_at) VALUES (%s, %s, 'out', %s, 1, 1, 't', %s, now() - %s)",
                    *(pipeline, number, of_sink, "sent" if of_sink == "published" else None, timedelta(days)),
                )
                if (pipeline, number) != rebuilt:
                    sql(
                        "INSERT INTO lockstep.transition (pipeline, epoch, sink, source_state, target_state, role,"
                        " actor) VALUES (%s, %s, 'out', 'prepared', %s, 'publish', 'tester')",
                        *(pipeline, number, of_sink),
                    )
                sql(
                    "INSERT INTO lockstep.run (dag_id, run_id, pipeline, epoch, attempt) VALUES (%s, %s, %s, %s, 1)",
                    *("run_epoch" if pipeline == "notes" else "clicks", str(number), pipeline, number),
                )
        migrate(dsn)
    with closing(Ledger(dsn)) as ledger:
        found = {(one.pipeline, one.epoch): one.age for one in ledger.all_untold(10)}
    assert found.keys() == {("clicks", 2), ("clicks", 5)}
    age = found["clicks", 2]
    assert age is not None and age >= timedelta(6), "its run's turn is over"
    memory_server.drop_database("before_news")

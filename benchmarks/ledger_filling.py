"""A ledger as years leave it: many finished epochs, put there by set-based SQL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2.extras import Json

from lockstep.ledger import migrate
from lockstep.ledger._connection import statement
from stack.postgres import PostgresServer

SOURCE = "landing"
FIRST_DAY = "2000-01-01"  # of every interval pipeline's first epoch; an epoch is a minute
_AT_ONCE = 250  # epochs of every pipeline in one statement

_EPOCHS = """
INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, attempted_at, owner_dag, owner_run, plan, wal,
                            manifest_hash, code_version, summary, planned_at, changed_at)
SELECT p.name, n, CASE p.keyed_by WHEN 'interval' THEN
           tstzrange(%(day)s::timestamptz + (n - 1) * interval '1 min',
                     %(day)s::timestamptz + n * interval '1 min') END,
       'cleaned', (n - 1) * %(pipelines)s + p.ordinal, at, p.name, 'run ' || n, p.plan,
       'wal/' || p.name || '/' || n, repeat(md5(p.name || n), 2), 'v1', %(summary)s::jsonb, at, at
FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
CROSS JOIN (
    SELECT name, keyed_by, row_number() OVER (ORDER BY name) AS ordinal,
           CASE keyed_by WHEN 'interval' THEN replace(%(interval_plan)s, 'p0001', name)
                         ELSE replace(%(cursor_plan)s, 'p0002', name) END::jsonb AS plan
    FROM lockstep.pipeline) p
CROSS JOIN LATERAL (SELECT now() - (%(each)s + 1 - n) * %(every)s::interval AS at) t
"""
_OF_EPOCHS = """
FROM lockstep.epoch e WHERE e.id BETWEEN %(first)s AND %(last)s
"""
_PARTICIPANTS = (
    """
INSERT INTO lockstep.participant (pipeline, epoch, sink, state, execution, attempt, token, target_id, rows, publication,
                                  changed_at)
SELECT e.pipeline, e.id, 'out', 'published', e.attempt, e.attempt, e.attempt, 'target', '{"rows": 7}', 'sent',
       e.changed_at
"""
    + _OF_EPOCHS
)
_RUNS = (
    "INSERT INTO lockstep.run SELECT e.pipeline, e.owner_run, e.pipeline, e.id, e.attempt, e.planned_at" + _OF_EPOCHS
)
_EXECUTIONS = (
    "INSERT INTO lockstep.execution SELECT e.attempt, e.pipeline, e.id, NULL, e.attempt, 'begin', 'bench', e.planned_at"
    + _OF_EPOCHS
)
_TRANSITIONS = """
INSERT INTO lockstep.transition (pipeline, epoch, sink, source_state, target_state, attempt, token, role, actor, at)
SELECT e.pipeline, e.id, s.sink, s.source, s.target, e.attempt, NULL, s.role, 'airflow@worker-1/4711', e.planned_at
FROM lockstep.epoch e CROSS JOIN (VALUES
    (NULL, NULL, 'planned', 'begin'), ('out', NULL, 'pending', 'begin'), (NULL, 'planned', 'staged', 'stage'),
    ('out', 'pending', 'prepared', 'prepare'), (NULL, 'staged', 'committed', 'commit'),
    ('out', 'prepared', 'published', 'publish'), (NULL, 'committed', 'published', 'publish'),
    (NULL, 'published', 'cleaned', 'cleanup')) s (sink, source, target, role)
WHERE e.id BETWEEN %(first)s AND %(last)s AND e.id > %(each)s - %(history)s
"""
_CLAIMS = """
INSERT INTO lockstep.claim (pipeline, source, path, epoch, size, mtime_ns)
SELECT %(pipeline)s, %(source)s, '/landing/' || %(pipeline)s || '/' || n || '.csv',
       1 + (n - 1) %% %(each)s, 100, 1700000000000000000 + n
FROM generate_series(1, %(claims)s) n
"""
_COUNT = statement("count_finished")


@dataclass(frozen=True)
class Size:
    """`epochs` of all pipelines together; `claims` of the first interval and the first cursor pipeline each; `history`:
    of how many of a pipeline's youngest epochs the transitions are there."""

    epochs: int
    pipelines: int
    claims: int
    history: int

    @property
    def each(self) -> int:
        """Epochs of one pipeline."""
        return self.epochs // self.pipelines

    def name(self, number: int) -> str:
        return f"p{number:04d}"


def fill(server: PostgresServer, database: str, size: Size, plans: tuple[Any, Any], say: Callable[[str], None]) -> str:
    """A migrated ledger of that size; its DSN. `plans`: of an epoch of p0001 (an interval), and of
    p0002 (a cursor).

    Half of the pipelines are of intervals. Every epoch is cleaned, the youngest one a minute ago.
    """
    dsn = server.create_database(database)
    migrate(dsn)
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        _fill(cursor, size, plans, say)
    connection.close()
    return dsn


def _fill(cursor: Any, size: Size, plans: tuple[Any, Any], say: Callable[[str], None]) -> None:
    cursor.execute("SET session_replication_role = replica")  # no triggers: they would write a history of their own
    cursor.execute("SET synchronous_commit = off")
    cursor.execute("SET maintenance_work_mem = '1GB'")
    cursor.execute(
        "INSERT INTO lockstep.pipeline (name, keyed_by, last_epoch)"
        " SELECT 'p' || to_char(n, 'FM0000'), CASE n %% 2 WHEN 1 THEN 'interval' ELSE 'cursor' END, %s"
        " FROM generate_series(1, %s) n",
        (size.each, size.pipelines),
    )
    interval_plan, cursor_plan = map(json.dumps, plans)
    values: dict[str, Any] = {"each": size.each, "pipelines": size.pipelines, "history": size.history}
    values |= {"day": FIRST_DAY, "interval_plan": interval_plan, "cursor_plan": cursor_plan, "every": "1 min"}
    values["summary"] = Json({"outputs": {"rows": {"rows": 7, "digest": "0" * 32}}, "sources": {SOURCE: {"rows": 7}}})
    cursor.execute("ALTER TABLE lockstep.epoch DROP CONSTRAINT one_root_per_interval")
    started = time.monotonic()
    for first in range(1, size.each + 1, _AT_ONCE):
        part = {**values, "first": first, "last": min(first + _AT_ONCE - 1, size.each)}
        for insert in (_EPOCHS, _PARTICIPANTS, _RUNS, _EXECUTIONS, _TRANSITIONS):
            cursor.execute(insert, part)
        if first // _AT_ONCE % 4 == 3:
            done = part["last"] * size.pipelines
            say(f"{done:,} of {size.epochs:,} epochs, {time.monotonic() - started:.0f} s")
    cursor.execute(
        "INSERT INTO lockstep.planned_source SELECT name, %s, last_epoch FROM lockstep.pipeline"
        " WHERE keyed_by = 'cursor'",
        (SOURCE,),
    )
    for number in (1, 2):
        of = {"pipeline": size.name(number), "source": SOURCE, "claims": size.claims, "each": size.each}
        cursor.execute(_CLAIMS, of)
    say("the exclusion constraint …")
    cursor.execute(
        "ALTER TABLE lockstep.epoch ADD CONSTRAINT one_root_per_interval"
        " EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (span IS NOT NULL AND generation = 0)"
    )
    say("what is finished, as cleanups count it …")
    for number in range(1, size.pipelines + 1):
        cursor.execute(_COUNT, {"pipeline": size.name(number)})
    cursor.execute("SELECT setval('lockstep.token', %s)", (size.epochs + 1,))
    cursor.execute("VACUUM (ANALYZE)")
    cursor.execute("CHECKPOINT")

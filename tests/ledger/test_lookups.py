"""What every task asks stays one look into an index, with two hundred thousand epochs in the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest

import lockstep.ledger
from lockstep.ledger import migrate
from lockstep.ledger._connection import statement
from stack.postgres import PostgresServer
from tests.ledger.epochs import Sql, day

EPOCHS = 200_000
DAYS = 5_000  #: intervals: they cost more to insert
LAST = EPOCHS - 10
PARAMETERS: dict[str, Any] = {
    "epoch": LAST,
    "attempt": LAST,
    "token": LAST,
    "tokens": [1, LAST],
    "sink": "warehouse",
    "role": "stage",
    "actor": "tester",
    "sinks": ["warehouse", "new"],
    "source": "landing",
    "paths": ["file 7", "file 8"],
    "starts": [0, 0],
    "ends": [None, None],
    "exclude": None,
    "heads": ["a", "b"],
    "start": day(DAYS).start,
    "end": day(DAYS).end,
    "dag_id": "clicks",
    "run_id": f"run {LAST}",
    "run_ids": [f"run {LAST}", f"run {LAST}/clicks"],
    "recovery_grace": timedelta(hours=2),
    "limit": 20,
    "before": None,
    "below": None,
    "unfinished": None,
    "brief": True,
    "most": 101,
    "change": "renumbered",
}
HOT = [
    "lock_epoch",
    "find_epoch",
    "find_epoch_of_interval",
    "find_last_epoch",
    "find_last_original",
    "find_epoch_before",
    "find_pipeline_change",
    "find_predecessor",
    "find_predecessor_of_sink",
    "list_predecessors",
    "find_source_before",
    "find_source_after",
    "find_abandoned_epoch",
    "list_abandoned_epochs",
    "list_unfinished_epochs",
    "count_in_flight",
    "find_run",
    "find_lease",
    "list_unclaimed_paths",
    "find_claims",
    "find_claimed_heads",
    "find_conflicting_claims",
    "find_any_claim",
    "find_any_keyed_state",
    "find_executions",
    "find_own_execution",
    "list_participants",
    "list_last_published",
    "list_publishers",
    "list_transitions",
    "list_epochs",
    "list_timeline",
    "list_epoch_times",
    "find_last_note",
    "find_verified",
    "list_dags",
    "list_pipelines_of_dag",
    "list_epochs_of_runs",
    "find_verdict",
    "list_measured_epochs",
]


ROWS = [
    "INSERT INTO lockstep.pipeline VALUES ('clicks', 'cursor', {epochs}), ('flights', 'interval', {days}),"
    " ('summed', 'cursor', {days})",
    "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash)"
    " SELECT 'clicks', n, CASE WHEN n > {last} THEN 'staged' ELSE 'cleaned' END, n,"
    """ '{{"sources": {{"landing": {{"start": null, "end": 1}}}}}}', 'w', repeat('a', 64)"""
    " FROM generate_series(1, {epochs}) n",
    "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash, span)"
    " SELECT 'flights', n, 'cleaned', n, '{{}}', 'w', repeat('a', 64), tstzrange("
    " '2013-01-01'::timestamptz + (n - 1) * interval '1 d', '2013-01-01'::timestamptz + n * interval '1 d')"
    " FROM generate_series(1, {days}) n",
    "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash)"
    " SELECT 'summed', n, CASE WHEN n > 5 THEN 'replaced' ELSE 'cleaned' END, n, '{{}}', 'w', repeat('a', 64)"
    " FROM generate_series(1, {days} - 1) n",
    "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan, wal, manifest_hash, root, generation, replaces,"
    " replaces_to, restate_reason) VALUES"
    " ('summed', {days}, 'cleaned', {days}, '{{}}', 'w', repeat('a', 64), 6, 1, 6, {days} - 1, 'a test')",
    "UPDATE lockstep.epoch SET plan = replace(plan::text, 'landing', 'gone')::jsonb"
    " WHERE pipeline = 'clicks' AND id < 8",
    "INSERT INTO lockstep.planned_source VALUES ('clicks', 'gone', 7), ('clicks', 'landing', {epochs})",
    "INSERT INTO lockstep.participant (pipeline, epoch, sink, state, attempt, token, target_id, publication)"
    " SELECT 'clicks', n, 'warehouse', CASE WHEN n > {last} THEN 'prepared' ELSE 'published' END, n, n, 't',"
    " CASE WHEN n > {last} THEN NULL ELSE 'committed' END {series}",
    """INSERT INTO lockstep.planned_sink (pipeline, sink, spec) VALUES ('clicks', 'warehouse', '{{}}')""",
    "INSERT INTO lockstep.run SELECT 'clicks', 'run ' || n, 'clicks', n, n {series}",
    "INSERT INTO lockstep.claim SELECT 'flights', 'landing', 'file ' || n, n {series}",
    "INSERT INTO lockstep.claim SELECT 'clicks', 'landing', 'file ' || n, n {series}",
    "INSERT INTO lockstep.execution SELECT n, 'clicks', n, NULL, n, 'begin', 'tester' {series}",
    "INSERT INTO lockstep.verdict SELECT 'clicks', n, repeat('a', 64), 'passed', '[]', 'tester' {series}",
    "INSERT INTO lockstep.transition (pipeline, epoch, target_state, role, actor)"
    " SELECT 'clicks', n, 'planned', 'begin', 'tester' {series}",
]


@pytest.fixture(scope="module")
def full(ledger_server: PostgresServer) -> Iterator[Sql]:
    """A ledger whose epochs are all cleaned but the last ten."""
    dsn = ledger_server.create_database("full")
    migrate(dsn)
    connection = psycopg2.connect(dsn)
    sql = Sql(connection)
    sql("SET session_replication_role = replica")
    series = f"FROM generate_series(10, {EPOCHS}, 10) n"
    for insert in ROWS:
        sql(insert.format(series=series, epochs=EPOCHS, last=LAST, days=DAYS))
    sql("ANALYZE")
    yield sql
    connection.close()


def test_a_hot_lookup_reads_an_index_and_few_rows(full: Sql, subtests: pytest.Subtests) -> None:
    for name in HOT:
        pipeline = "flights" if name == "find_epoch_of_interval" else "clicks"
        with subtests.test(name):
            require_few_rows(full, name, pipeline=pipeline, pipelines=[pipeline], epochs=[LAST])


def test_nothing_walks_through_old_replaced_or_finished_epochs(full: Sql) -> None:
    require_few_rows(full, "list_epochs", pipelines=["clicks"], before=EPOCHS // 2, unfinished=0)
    require_few_rows(full, "list_timeline", pipeline="clicks", before=EPOCHS // 2)
    require_few_rows(full, "list_predecessors", pipeline="summed", epoch=DAYS)
    found = {"pipeline": "summed", "epoch": DAYS, "limit": 4}
    full._cursor.execute("SELECT id FROM (" + statement("list_predecessors") + ") AS found", found)
    assert full._cursor.fetchall() == [(DAYS,), (5,), (4,), (3,)]
    for source in ("landing", "gone", "new"):
        require_few_rows(full, "find_source_before", pipeline="clicks", source=source)
    for pipeline in ("clicks", "flights"):
        full._cursor.execute(statement("count_finished"), {"pipeline": pipeline})
        for name in ("count_states", "find_gaps", "list_freshness"):  # of which the finished ones were counted
            require_few_rows(full, name, pipelines=[pipeline])


def require_few_rows(full: Sql, name: str, **of: Any) -> None:
    full._cursor.execute("EXPLAIN (ANALYZE, TIMING off) " + statement(name), {**PARAMETERS, **of})
    plan = "\n".join(row[0] for row in full._cursor.fetchall())
    assert not re.search(r"Seq Scan on (?!pipeline|planned_s|savepoint|finished|transition_from_2)", plan), plan
    rows = [int(float(count)) for count in re.findall(r"actual rows=([\d.]+)", plan)]
    assert rows, plan
    assert max(rows) <= 40, plan
    removed = [int(float(count)) for count in re.findall(r"Rows Removed by \w[\w ]*: ([\d.]+)", plan)]
    assert sum(removed) <= 40, plan


def test_every_statement_has_a_name_of_its_own_and_is_executed_by_it() -> None:
    ledger = Path(lockstep.ledger.__file__).parent
    names = [
        name for file in ledger.glob("sql/*.sql") for name in re.findall(r"^-- name: (\w+)$", file.read_text(), re.M)
    ]
    code = "".join(file.read_text() for file in ledger.glob("*.py"))
    assert len(set(names)) == len(names) > 100
    assert [name for name in names if not re.search(rf"""["']{name}["']""", code)] == []

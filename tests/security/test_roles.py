"""The roles of docs/security.md: its very SQL on real servers, and an epoch under what it grants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg2
import pytest
from psycopg2 import errors, sql
from psycopg2.extensions import make_dsn, parse_dsn

from lockstep.epoch import RunKey
from lockstep.errors import LedgerRefused
from lockstep.ledger import migrate
from lockstep.ledger._connection import connect
from lockstep.ledger.administration import examine_ledger
from lockstep.ledger.rebuilding import adopt_deployment
from lockstep.ledger.report import Report
from lockstep.operations.verify import verify
from lockstep.pipeline import Pipeline
from lockstep.sinks import FileSink, PostgresSink
from stack.postgres import PostgresServer
from tests.crash.world import Numbers, World, rows_of_day, untouched

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
ROLES = ("lockstep_owner", "lockstep_tasks", "lockstep_reader", "lockstep_writer", "orders_reader")
RUN = RunKey("roles", "run")
PASSWORD = "w0rd '@:/% \\"


def block(first_line: str) -> str:
    """The SQL of the page that begins with this comment."""
    found: list[str] = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    [wanted] = [text for text in found if text.startswith(f"-- {first_line}\n")]
    return wanted


def execute(dsn: str, statement: str | sql.Composable) -> list[tuple[object, ...]]:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


@dataclass(frozen=True)
class Granted:
    """A ledger and a warehouse set up by the page, and each role's way to them."""

    ledger: str
    warehouse: str
    folder: Path

    def dsn(self, role: str) -> str:
        admin = self.warehouse if role in ("lockstep_writer", "orders_reader") else self.ledger
        return str(make_dsn(**{**parse_dsn(admin), "user": role, "password": PASSWORD}))

    def world(self) -> World:
        pipeline = Pipeline(
            name="numbers",
            sources={"numbers": Numbers()},
            transform=untouched,
            sinks=[
                PostgresSink(
                    "warehouse", tables={"numbers": "public.orders"}, connection="warehouse", schema="lockstep"
                ),
                FileSink("files", output="numbers", path=str(self.folder / "out"), format="parquet"),
            ],
        )
        staging = self.folder / "staging"
        return World(self.dsn("lockstep_tasks"), self.dsn("lockstep_writer"), self.folder, pipeline, staging)


@pytest.fixture
def admin(
    empty_dsn: str, warehouse_dsn: str, ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path: Path
) -> Iterator[Granted]:
    """The page's roles, with passwords, and nothing in their databases yet but a table of orders."""
    execute(warehouse_dsn, "CREATE TABLE public.orders (day bigint, number int, label text, lockstep_epoch bigint)")
    execute(empty_dsn, block("ledger"))
    execute(warehouse_dsn, block("warehouse"))
    for dsn, roles in ((empty_dsn, ROLES[:3]), (warehouse_dsn, ROLES[3:])):
        for role in roles:
            execute(dsn, sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(PASSWORD)))
    yield Granted(empty_dsn, warehouse_dsn, tmp_path)
    for dsn, roles in ((empty_dsn, ROLES[:3]), (warehouse_dsn, ROLES[3:])):
        for role in roles:
            execute(dsn, sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}").format(sql.Identifier(role)))


@pytest.fixture
def granted(admin: Granted) -> Granted:
    migrate_as_owner(admin)
    return admin


def migrate_as_owner(admin: Granted) -> None:
    migrate(admin.dsn("lockstep_owner"))
    execute(admin.dsn("lockstep_owner"), block("ledger, after lockstep migrate"))


def test_an_epoch_runs_under_these_roles(granted: Granted) -> None:
    world = granted.world()
    world.run(RUN, 0)
    world.run(RunKey("roles", "next"), 1)
    shown = execute(granted.warehouse, "SELECT day, number, label FROM public.orders")
    assert sorted(shown) == sorted([*rows_of_day(0), *rows_of_day(1)])
    runtime = world.runtime()
    assert all(found.agrees for found in verify(runtime, world.epoch_of(0)))
    runtime.ledger.close()
    world.run_until(RunKey("roles", "killed"), 2, "commit")
    assert world.recover().problems == []
    world.run_until(RunKey("roles", "left"), 3, "prepare.warehouse")
    world.run_task("abort", RunKey("roles", "left"), 3)
    assert world.prepared() == []
    shown = execute(granted.warehouse, "SELECT day, number, label FROM public.orders")
    assert sorted(shown) == sorted(row for day in range(3) for row in rows_of_day(day))


@pytest.mark.fault("J25")
def test_a_role_that_may_call_what_the_first_migrations_brought_needs_no_more_of_later_ones(granted: Granted) -> None:
    """As where rights to functions are nobody's by default, and were given when the ledger was set up."""
    owner = granted.dsn("lockstep_owner")
    execute(owner, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA lockstep FROM PUBLIC")
    assert not examine_ledger(granted.dsn("lockstep_tasks")).may_write
    for function in (
        "require_legal_transition(text, text, text)",
        "require_verdict(lockstep.epoch)",
        "require_votes(text, bigint, bigint)",
        "write_transition(text, bigint, text, text, text, bigint, bigint)",
    ):
        execute(owner, sql.SQL("GRANT EXECUTE ON FUNCTION lockstep.{} TO lockstep_tasks").format(sql.SQL(function)))
    assert examine_ledger(granted.dsn("lockstep_tasks")).may_write
    granted.world().run(RUN, 0)
    assert execute(granted.ledger, "SELECT sink FROM lockstep.pending_asset_event ORDER BY 1") == [
        ("files",),
        ("warehouse",),
    ]


def test_the_tasks_role_can_neither_rewrite_history_nor_change_the_schema(granted: Granted) -> None:
    granted.world().run(RUN, 0)
    for statement in (
        "UPDATE lockstep.transition SET reason = 'nothing happened'",
        "DELETE FROM lockstep.transition",
        "TRUNCATE lockstep.transition",
        "INSERT INTO lockstep.legal_transition SELECT * FROM lockstep.legal_transition",
        "UPDATE lockstep.deployment SET id = gen_random_uuid()",
        "ALTER TABLE lockstep.epoch DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "CREATE TABLE lockstep.mine ()",
        "DROP TABLE lockstep.epoch",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            execute(granted.dsn("lockstep_tasks"), statement)


def test_only_the_owner_migrates_a_ledger_and_gives_an_empty_one_the_id_of_a_lost_one(admin: Granted) -> None:
    with pytest.raises(LedgerRefused, match="run `lockstep migrate` as the owner"):
        migrate(admin.dsn("lockstep_tasks"))
    migrate_as_owner(admin)
    lost = "0b2f9c1e-1111-4222-8333-444455556666"
    with pytest.raises(LedgerRefused, match="rebuild as the owner"):
        adopt_deployment(admin.dsn("lockstep_tasks"), lost)
    adopt_deployment(admin.dsn("lockstep_owner"), lost)
    with closing(Report(admin.dsn("lockstep_reader"))) as report:
        assert report.deployment() == lost
    with pytest.raises(psycopg2.Error, match="is immutable"):
        execute(admin.dsn("lockstep_owner"), "UPDATE lockstep.deployment SET id = gen_random_uuid()")
    # what a DSN says of its sessions stands beside what the ledger needs
    execute(admin.ledger, "GRANT lockstep_owner TO lockstep_tasks")
    dsn = make_dsn(admin.dsn("lockstep_tasks"), options="-c role=lockstep_owner -c statement_timeout=5s")
    with closing(connect(dsn, "test", options="-c statement_timeout=60s")) as session, session.cursor() as cursor:
        cursor.execute("SELECT current_user, current_setting('statement_timeout')")
        assert cursor.fetchone() == ("lockstep_owner", "1min")


def test_the_reading_role_shows_status_and_changes_nothing(granted: Granted) -> None:
    world = granted.world()
    world.run(RUN, 0)
    reader = granted.dsn("lockstep_reader")
    with closing(Report(reader)) as report:
        [found] = report.pipelines(limit=5)
    assert [one.epoch.id for one in found.epochs] == [1]
    for statement in ("UPDATE lockstep.epoch SET reason = 'x'", "SELECT nextval('lockstep.token')"):
        with pytest.raises(errors.InsufficientPrivilege):
            execute(reader, statement)
    # it may verify, and what it finds is not kept
    execute(granted.warehouse, "DELETE FROM public.orders WHERE number = 3")
    reading = replace(world, ledger_dsn=granted.dsn("lockstep_reader")).runtime()
    assert not all(found.agrees for found in verify(reading, world.epoch_of(0)))
    reading.ledger.close()
    with closing(Report(granted.dsn("lockstep_reader"))) as report:
        assert [found.verified_through for found in report.pipelines()] == [1]
    runtime = world.runtime()
    verify(runtime, world.epoch_of(0))
    runtime.ledger.close()
    with closing(Report(granted.dsn("lockstep_reader"))) as report:
        assert [found.verified_through for found in report.pipelines()] == [0]


def test_a_reader_sees_published_rows_and_changes_nothing(granted: Granted) -> None:
    world, reader = granted.world(), granted.dsn("orders_reader")
    world.run(RUN, 0)
    world.run_until(RunKey("roles", "half"), 1, "prepare.warehouse")
    assert execute(reader, "SELECT DISTINCT day FROM public.orders") == [(0,)]
    assert execute(reader, "SELECT epoch FROM lockstep.lockstep_marker") == [(1,)]
    for statement in ("DELETE FROM public.orders", "DELETE FROM lockstep.lockstep_marker"):
        with pytest.raises(errors.InsufficientPrivilege):
            execute(reader, statement)
    world.run_task("abort", RunKey("roles", "half"), 1)


def test_the_page_grants_the_roles_that_the_test_asks_for() -> None:
    assert set(re.findall(r"CREATE ROLE (\w+)", PAGE.read_text())) == set(ROLES)

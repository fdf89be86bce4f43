"""Values of rows that a server refuses appear in no message, log or ledger; what was refused, and by what, does."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lockstep.disclosure import SHOW_ROWS
from lockstep.epoch import RunKey
from lockstep.errors import LockstepError, PublishBlocked, SinkRejected
from lockstep.ledger.report import Report, to_json
from lockstep.roles.abort import abort
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from stack.postgres import PostgresServer
from tests.crash import world
from tests.crash.world import ROWS
from tests.sinks import mariadb_target, postgres_target
from tests.sinks.append.feed import Feed
from tests.sinks.postgres_target import LOCK_TIMEOUT

CANARY = "it's \"quoted\"\n: sw0rdfish\" for key 'x'"
NEEDLE = "sw0rdfish"
COLUMNS = "day bigint, number int, label {text}, lockstep_epoch bigint NOT NULL"
_numbers = count(1)

POSTGRES = {
    "a unique key": ("CREATE UNIQUE INDEX once ON target (label)", "constraint once; table public.target"),
    "a check": ("ALTER TABLE target ADD CONSTRAINT wrong CHECK (label LIKE 'x%')", "constraint wrong"),
    "a foreign key": (
        "CREATE TABLE parent (label text PRIMARY KEY); ALTER TABLE target ADD CONSTRAINT orphan FOREIGN KEY (label) "
        "REFERENCES parent DEFERRABLE INITIALLY DEFERRED",
        "constraint orphan",
    ),
    "an exclusion": ("ALTER TABLE target ADD CONSTRAINT apart EXCLUDE (label WITH =)", "constraint apart"),
    "a null": ("ALTER TABLE target ADD CONSTRAINT set CHECK (day IS NULL)", "constraint set"),
    "a cast": (
        "ALTER TABLE target ADD COLUMN broken int GENERATED ALWAYS AS (label::int) STORED",
        "syntax for type integer",
    ),
    "a trigger that raises": (
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''bad %'', NEW.label; END'; "
        "CREATE TRIGGER bad BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION bad()",
        r"function bad\(\)",
    ),
    "a trigger that raises as another": (
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE ''bad %'', NEW.label USING ERRCODE = ''42P01''; END'; "
        "CREATE TRIGGER bad BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION bad()",
        r"function bad\(\)",
    ),
    "a trigger that breaks": (
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM NEW.label::date; RETURN NEW; END'; "
        "CREATE TRIGGER bad BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION bad()",
        r"function bad\(\)",
    ),
}
TRIGGER = "CREATE TRIGGER bad BEFORE INSERT ON target FOR EACH ROW"
MARIADB = {
    "a unique key": ("CREATE UNIQUE INDEX once ON target (label(60))", "for key 'once'"),
    "a check": ("ALTER TABLE target ADD CONSTRAINT wrong CHECK (label LIKE 'x%')", "CONSTRAINT `wrong` failed"),
    "a length": ("ALTER TABLE target MODIFY label varchar(5)", "truncated for column 'label'"),
    "a foreign key": (
        "ALTER TABLE target MODIFY label varchar(99), "
        "ADD CONSTRAINT orphan FOREIGN KEY (label) REFERENCES parent (label)",
        "took 0 of|CONSTRAINT `orphan`",
    ),
    "a cast": ("ALTER TABLE target ADD COLUMN broken int AS (label) STORED", "value|error"),
    "a trigger that raises": (
        f"{TRIGGER} BEGIN DECLARE told text DEFAULT concat('bad ', NEW.label); "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = told; END",
        "error 1644",
    ),
    "a trigger that raises as another": (
        f"{TRIGGER} BEGIN DECLARE told text DEFAULT concat('bad ', NEW.label); "
        "SIGNAL SQLSTATE '23000' SET MESSAGE_TEXT = told, MYSQL_ERRNO = 1062; END",
        "error 1062",
    ),
    "a trigger with a number of its own": (
        f"{TRIGGER} BEGIN DECLARE told text DEFAULT concat('bad ', NEW.label); "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = told, MYSQL_ERRNO = 31001; END",
        "error 31001",
    ),
    "a partition": (
        "ALTER TABLE target MODIFY label varchar(99) PARTITION BY LIST COLUMNS (label) (PARTITION p VALUES IN ('x'))",
        "no partition",
    ),
}


@pytest.fixture(autouse=True)
def rows_with_a_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "rows_of_day", lambda day: [(day, number, CANARY) for number in range(ROWS)])


Make = Callable[..., Feed]


@pytest.fixture
def feed(request: pytest.FixtureRequest, memory_server: PostgresServer, memory: Path) -> Iterator[Make]:
    memory_server.start()
    name = f"canaries_{next(_numbers)}"
    ledger = memory_server.create_database(name)

    def made(kind: str, ddl: str, **arguments: Any) -> Feed:
        mariadb = kind == "mariadb"
        dsn: str
        if mariadb:
            dsn = mariadb_target.empty(
                request.getfixturevalue("mariadb_server"), request.getfixturevalue("mariadb_dsn")
            )
        else:
            dsn = postgres_target.empty(request.getfixturevalue("warehouse_dsn"))
        execute = mariadb_target.execute if mariadb else postgres_target.execute
        if arguments.get("mode") != "upsert":
            execute(dsn, f"CREATE TABLE target ({COLUMNS.format(text='longtext' if mariadb else 'text')})")
        if mariadb and "parent" in ddl:
            execute(dsn, "CREATE TABLE parent (label varchar(99) PRIMARY KEY)")
        if ddl:
            execute(dsn, ddl)
        kinds: dict[str, Any] = {"mariadb": MariaDbSink, "postgres": PostgresSink}
        sink = kinds[kind](
            "warehouse", tables={"numbers": "target"}, connection="w", lock_timeout=LOCK_TIMEOUT, **arguments
        )
        return Feed.of(ledger, memory, [sink], {"w": dsn})

    yield made
    memory_server.drop_database(name)


def everything_told(feed: Feed, error: LockstepError, caplog: pytest.LogCaptureFixture, run: int = 0) -> str:
    """What anybody gets to see of a failed epoch: message, traceback, logs, and the whole ledger."""
    with feed.runtime() as runtime:
        abort(runtime, RunKey("feed", str(run)), f"{type(error).__name__}: {error}")
    report = Report(feed.ledger_dsn)
    seen = [to_json(report.pipelines()), to_json(report.history("numbers", run + 1))]
    report.close()
    tables = ("epoch", "participant", "transition", "execution", "run", "planned_sink")
    rows = [postgres_target.execute(feed.ledger_dsn, f"SELECT t::text FROM lockstep.{name} t") for name in tables]
    return "\n".join([str(error), *traceback.format_exception(error), caplog.text, json.dumps(seen), str(rows)])


def table_of(kind: str, name: str) -> tuple[str, str]:
    return (POSTGRES if kind == "postgres" else MARIADB)[name]


#: each way of refusing by one protocol, and the commonest by both: who writes is the same
@pytest.mark.fault("J15")
@pytest.mark.parametrize(
    ("kind", "protocol", "names"),
    [
        ("postgres", "two_phase", [name for name in POSTGRES if name != "a foreign key"]),
        ("postgres", "write_ahead", ["a unique key", "a foreign key"]),
        ("mariadb", "write_ahead", [*MARIADB]),
        ("mariadb", "two_phase", ["a unique key"]),
    ],
)
def test_no_value_of_a_refused_row_is_told(
    feed: Make, kind: str, protocol: str, names: list[str], caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    caplog.set_level(logging.DEBUG)
    for run, name in enumerate(names):
        with subtests.test(name):
            ddl, named = table_of(kind, name)
            given = feed(kind, ddl, protocol=protocol)
            with pytest.raises(SinkRejected, match=named) as raised:
                given.decide(run)
            told = everything_told(given, raised.value, caplog, run)
            assert NEEDLE not in told
            assert f"{SHOW_ROWS}=1" in str(raised.value)


@pytest.mark.parametrize(("kind", "name"), [("postgres", "a unique key"), ("mariadb", "a unique key")])
def test_values_are_told_to_those_who_ask(feed: Make, kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHOW_ROWS, "1")
    given = feed(kind, table_of(kind, name)[0])
    with pytest.raises(SinkRejected, match=NEEDLE):
        given.decide(0)


@pytest.mark.fault("J15")
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_refusal_after_the_decision_tells_no_value(feed: Make, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ddl, named = table_of(kind, "a check")
    given = feed(kind, ddl, protocol="write_ahead", validate="schema")
    given.decide(0)
    with pytest.raises(PublishBlocked, match=named) as raised:
        given.publish(0, "warehouse")
    problems = given.recover().problems
    assert problems and NEEDLE not in str(problems)
    assert NEEDLE not in everything_told(given, raised.value, caplog)


@pytest.mark.fault("J15")
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_key_that_stands_twice_is_not_quoted(feed: Make, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    given = feed(kind, "", mode="upsert", key=["label"], create=True)
    with pytest.raises(SinkRejected, match=r"a key label .* stands more than once") as raised:
        given.decide(0)
    assert NEEDLE not in everything_told(given, raised.value, caplog)

"""Values of rows that a server refuses appear in no message, log or ledger; what was refused, and by what, does."""

from __future__ import annotations

import json
import logging
import traceback

import pytest

from lockstep.errors import LockstepError, PublishBlocked, SinkRejected
from lockstep.ledger.report import Report, to_json
from lockstep.observability.redaction import SHOW_ROWS
from tests.crash import world
from tests.crash.world import ROWS
from tests.sinks import postgres_target
from tests.sinks.table_feeds import TableFeed, TableFeeds, table_feeds

__all__ = ["table_feeds"]

CANARY = "it's \"quoted\"\n: sw0rdfish\" for key 'x'"
NEEDLE = "sw0rdfish"
POSTGRES = {
    "a unique key": ("CREATE UNIQUE INDEX once ON target (label)", "constraint once; table public.target"),
    "a check": ("ALTER TABLE target ADD CONSTRAINT wrong CHECK (label LIKE 'x%')", "constraint wrong"),
    "a foreign key": (
        "CREATE TABLE parent (label text PRIMARY KEY); ALTER TABLE target ADD CONSTRAINT orphan FOREIGN KEY (label) "
        "REFERENCES parent DEFERRABLE INITIALLY DEFERRED",
        "constraint orphan",
    ),
    "an exclusion": ("ALTER TABLE target ADD CONSTRAINT apart EXCLUDE (label WITH =)", "constraint apart"),
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
}
TRIGGER = "CREATE TRIGGER bad BEFORE INSERT ON target FOR EACH ROW"
MARIADB = {
    "a unique key": ("CREATE UNIQUE INDEX once ON target (label(60))", "for key 'once'"),
    "a check": ("ALTER TABLE target ADD CONSTRAINT wrong CHECK (label LIKE 'x%')", "CONSTRAINT `wrong` failed"),
    "a length": ("ALTER TABLE target MODIFY label varchar(5)", "truncated for column 'label'"),
    "a foreign key": (
        "CREATE TABLE parent (label varchar(99) PRIMARY KEY);\nALTER TABLE target MODIFY label varchar(99), "
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
    "a partition": (
        "ALTER TABLE target MODIFY label varchar(99) PARTITION BY LIST COLUMNS (label) (PARTITION p VALUES IN ('x'))",
        "no partition",
    ),
}


REFUSALS = {"postgres": POSTGRES, "mariadb": MARIADB}


@pytest.fixture(autouse=True)
def rows_with_a_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "rows_of_day", lambda day: [(day, number, CANARY) for number in range(ROWS)])


def everything_told(feed: TableFeed, error: LockstepError, caplog: pytest.LogCaptureFixture, run: int = 0) -> str:
    """What anybody gets to see of a failed epoch: message, traceback, logs, and the whole ledger."""
    feed.abort(run, f"{type(error).__name__}: {error}")
    report = Report(feed.ledger_dsn)
    seen = [to_json(report.pipelines()), to_json(report.history("numbers", run + 1))]
    report.close()
    tables = ("epoch", "participant", "transition", "execution", "run", "planned_sink")
    rows = [postgres_target.execute(feed.ledger_dsn, f"SELECT t::text FROM lockstep.{name} t") for name in tables]
    return "\n".join([str(error), *traceback.format_exception(error), caplog.text, json.dumps(seen), str(rows)])


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
    table_feeds: TableFeeds,
    kind: str,
    protocol: str,
    names: list[str],
    caplog: pytest.LogCaptureFixture,
    subtests: pytest.Subtests,
) -> None:
    caplog.set_level(logging.DEBUG)
    for run, name in enumerate(names):
        with subtests.test(name):
            ddl, named = REFUSALS[kind][name]
            given = table_feeds(kind, ddl, protocol=protocol)
            with pytest.raises(SinkRejected, match=named) as raised:
                given.decide(run)
            assert NEEDLE not in everything_told(given, raised.value, caplog, run)
            assert f"{SHOW_ROWS}=1" in str(raised.value)


@pytest.mark.fault("J15")
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_refusal_after_the_decision_and_a_key_that_stands_twice_tell_values_only_to_those_who_ask(
    table_feeds: TableFeeds, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    given = table_feeds(kind, "", mode="upsert", key=["label"], create=True)
    with pytest.raises(SinkRejected, match=r"a key label .* occurs more than once") as rejected:
        given.decide(0)
    assert NEEDLE not in everything_told(given, rejected.value, caplog)
    with monkeypatch.context() as asked:
        asked.setenv(SHOW_ROWS, "1")
        given = table_feeds(kind, REFUSALS[kind]["a unique key"][0])
        with pytest.raises(SinkRejected, match=NEEDLE):
            given.decide(1)
        given.abort(1)
    caplog.clear()
    ddl, named = REFUSALS[kind]["a check"]
    given = table_feeds(kind, "")
    given.decide(2)
    given.run_sql(ddl)
    with pytest.raises(PublishBlocked, match=named) as blocked:
        given.publish(2, "redo")
    problems = given.recover().problems
    assert problems and NEEDLE not in str(problems)
    assert NEEDLE not in everything_told(given, blocked.value, caplog, 2)

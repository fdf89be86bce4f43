"""PostgresSink under the suite that every sink has to pass; its modes; what it does for each guarantee.

The suite has a fault at every step. A crash between rows and their record leaves what the guarantee says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lockstep.crash import CrashInjected, CrashPoint
from lockstep.epoch import Vote
from lockstep.errors import InvalidPipeline
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from lockstep.testing._sealed_rows import OUTPUT, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.postgres import PostgresServer
from tests.sampling import Sampling
from tests.sinks.conformance import UPSERT, check, in_parts, of_mode
from tests.sinks.guarantees import expect_row
from tests.sinks.postgres_target import PostgresUnderTest, empty, execute


@pytest.fixture
def stride() -> int:
    return 4


REPLACING = [one for one in REPLACING_BEHAVIOURS if one not in CRASHES]


@pytest.mark.fault("A10", "C3", "C6", "C7", "C9", "C14", "C23", "C26", "D15", "E4", "E5", "E6", "E13", "G3", "J5")
@in_parts([*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING])
def test_two_phase(warehouse_dsn: str, other_dsn: str, part: list[Behaviour], subtests: pytest.Subtests) -> None:
    check(part, lambda: PostgresUnderTest(empty(warehouse_dsn), other_dsn, "two_phase"), subtests)


@pytest.mark.fault("C6", "C9", "C14", "C26", "D15", "E13")
@in_parts([*BEHAVIOURS, *REPLACING])
def test_write_ahead(warehouse_dsn: str, other_dsn: str, part: list[Behaviour], subtests: pytest.Subtests) -> None:
    check(part, lambda: PostgresUnderTest(empty(warehouse_dsn), other_dsn, "write_ahead"), subtests)


# --- modes -----------------------------------------------------------------------------------------------------------

RECORDED: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:warehouse"}
MODES_OF_THE_PAGE: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "write ahead, at least once": ("write_ahead", RECORDED),
    "write ahead, none": ("write_ahead", {"guarantee": "none"}),
    "upsert": ("write_ahead", UPSERT),
    "upsert, at least once": ("write_ahead", UPSERT | RECORDED),
    "upsert, two phases": ("two_phase", UPSERT),
}
ASKED = [name for name in MODES_OF_THE_PAGE if name not in ("two phases", "write ahead", "upsert, at least once")]


@pytest.mark.parametrize("name", ASKED)
def test_what_differs(
    warehouse_dsn: str, other_dsn: str, sampling: Sampling, name: str, subtests: pytest.Subtests
) -> None:
    protocol, arguments = MODES_OF_THE_PAGE[name]

    def target() -> PostgresUnderTest:
        return PostgresUnderTest(empty(warehouse_dsn), other_dsn, protocol, **arguments)

    check(of_mode(target(), sampling, upserts="mode" in arguments), target, subtests)


@pytest.mark.fault("E26")
@pytest.mark.tier("all")
@pytest.mark.parametrize("name", MODES_OF_THE_PAGE)
def test_the_page_of_guarantees_tells_the_truth(
    warehouse_dsn: str, other_dsn: str, warehouse_server: PostgresServer, name: str
) -> None:
    protocol, arguments = MODES_OF_THE_PAGE[name]
    target = PostgresUnderTest(warehouse_dsn, other_dsn, protocol, warehouse_server, **arguments)
    expect_row(f"PostgresSink, {name}", target)


# --- guarantees ------------------------------------------------------------------------------------------------------

ROWS = 50
WAL = sealed(ROWS)
AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:records"}


@pytest.fixture
def dsns(warehouse_dsn: str, other_dsn: str) -> dict[str, str]:
    """For the rows, and for the records."""
    return {"warehouse": warehouse_dsn, "records": other_dsn}


def sink(protocol: ProtocolName = "write_ahead", **arguments: Any) -> PostgresSink:
    tables = {OUTPUT: "public.target"}
    given: dict[str, Any] = {"protocol": protocol, "create": True, "lock_timeout": 0.3, **arguments}
    return PostgresSink("warehouse", tables=tables, connection="warehouse", **given)


def prepare(dsns: dict[str, str], given: PostgresSink) -> Vote:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", dsns)) as live:
        live.preflight({OUTPUT: WAL[0].schema})
        return live.prepare(epoch(), WAL)


def publish(dsns: dict[str, str], given: PostgresSink, vote: Vote) -> Publication:
    with given.opened(SinkContext(DEPLOYMENT, "pipe", dsns)) as live:
        return live.publish(replace(epoch(), token=11), vote, WAL)


def rows(dsns: dict[str, str]) -> int:
    [(found,)] = execute(dsns["warehouse"], "SELECT count(*) FROM target")
    return int(found)


REFUSED: list[tuple[ProtocolName, dict[str, Any], str]] = [
    ("two_phase", {"guarantee": "at_least_once", "committer": "/records"}, "exactly_once"),
    ("two_phase", {"guarantee": "none"}, "write_ahead"),
    ("two_phase", {"committer": "/records"}, "write_ahead"),
    ("write_ahead", {"guarantee": "perhaps"}, "none of none, at_least_once, exactly_once"),
    ("write_ahead", {"guarantee": "at_least_once"}, "needs a committer"),
    ("write_ahead", {"guarantee": "none", "committer": "/records"}, "nothing else takes one"),
    ("write_ahead", {"committer": "/records"}, "nothing else takes one"),
]


def test_a_promise_that_cant_be_kept_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for protocol, arguments, told in REFUSED:
        with subtests.test(f"{protocol} {arguments}"), pytest.raises(InvalidPipeline, match=told):
            sink(protocol, **arguments)


@pytest.mark.fault("E26")
@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": ["id"]}])
def test_at_least_once_sends_again_what_a_crash_left_unrecorded(
    dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any]
) -> None:
    arguments: dict[str, Any] = {**AT_LEAST_ONCE, **mode}
    given = sink(**arguments)
    vote = prepare(dsns, given)
    with monkeypatch.context() as dying:  # when its rows are durable and nobody has recorded it
        dying.setenv("LOCKSTEP_TESTING", "1")
        dying.setenv("LOCKSTEP_CRASH", f"{CrashPoint.PUBLISH_AFTER_SINK_COMMIT}:raise")
        with pytest.raises(CrashInjected):
            publish(dsns, given, vote)
    assert rows(dsns) == ROWS
    assert publish(dsns, given, vote) is Publication.SENT
    assert rows(dsns) == (ROWS if mode else 2 * ROWS), "an upsert changes nothing the second time"
    assert publish(dsns, given, vote) is Publication.FOUND
    assert execute(dsns["records"], "SELECT epoch FROM lockstep_sent WHERE epoch > 0") == [(1,)]
    assert execute(dsns["warehouse"], "SELECT count(*) FROM lockstep_marker") == [(0,)]


def test_none_remembers_nothing_and_waits_for_no_disk(dsns: dict[str, str]) -> None:
    given = sink(guarantee="none")
    execute(
        dsns["warehouse"],
        "CREATE TABLE settings (value text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO settings VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'",
    )
    vote = prepare(dsns, given)
    execute(
        dsns["warehouse"],
        "CREATE TRIGGER note AFTER INSERT ON target FOR EACH STATEMENT EXECUTE FUNCTION note()",
    )
    assert [publish(dsns, given, vote) for _ in range(2)] == [Publication.SENT] * 2
    assert rows(dsns) == 2 * ROWS
    assert execute(dsns["warehouse"], "SELECT DISTINCT value FROM settings") == [("off",)]
    assert publish(dsns, sink(), vote) is Publication.SENT
    assert ("on",) in execute(dsns["warehouse"], "SELECT DISTINCT value FROM settings")

"""Write-ahead into unique keys: epochs whose rows would collide are never both decided, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Identity, RunKey
from lockstep.errors import KeysHeld, PreflightRefused, SinkRejected
from lockstep.roles.abort import abort
from lockstep.roles.begin import begin
from lockstep.roles.commit import commit
from lockstep.roles.prepare import prepare
from lockstep.roles.stage import stage
from lockstep.sinks.base import Sink
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.testing._children import fork
from stack.postgres import PostgresServer
from tests.crash import world
from tests.crash.world import ROWS, interval_of, write_parquet
from tests.sinks import mariadb_target, postgres_target
from tests.sinks.append.feed import Feed
from tests.sinks.postgres_target import LOCK_TIMEOUT

COLUMNS = "day bigint, number int, label {text}, lockstep_epoch bigint NOT NULL"
_numbers = count(1)


@dataclass
class Days:
    """Epochs of a pipeline whose days have the same numbers, moved task by task."""

    feed: Feed
    run_sql: Callable[[str], Any]

    def staged(self, day: int) -> None:
        key = RunKey("feed", str(day))
        interval = interval_of(day) if self.feed.pipeline.identity is Identity.INTERVAL else None
        with self.feed.runtime() as runtime:
            begin(runtime, key, interval)
            stage(runtime, key, write_parquet)

    def prepare(self, day: int, sink: str = "redo") -> None:
        with self.feed.runtime() as runtime:
            prepare(runtime, RunKey("feed", str(day)), sink)

    def commit(self, day: int) -> None:
        with self.feed.runtime() as runtime:
            commit(runtime, RunKey("feed", str(day)))

    def abort(self, day: int) -> None:
        with self.feed.runtime() as runtime:
            abort(runtime, RunKey("feed", str(day)))

    def shown(self) -> list[tuple[Any, ...]]:
        return list(self.run_sql("SELECT day, count(*) FROM target GROUP BY day ORDER BY day"))


Make = Callable[..., Days]


@pytest.fixture
def distinct_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each day has the numbers of every other day, none of them twice."""
    monkeypatch.setattr(world, "rows_of_day", lambda day: [(day, number, f"row {number}") for number in range(ROWS)])


#: what a database tells of its keys; what comes of it is the same
IN_BOTH = pytest.mark.parametrize("days", ["postgres", "mariadb"], indirect=True)


@pytest.fixture(params=["postgres"])
def days(
    request: pytest.FixtureRequest, memory_server: PostgresServer, memory: Path, distinct_rows: None
) -> Iterator[Make]:
    memory_server.start()
    name = f"collisions_{next(_numbers)}"
    ledger = memory_server.create_database(name)
    mariadb = request.param == "mariadb"
    dsn: str = request.getfixturevalue("mariadb_dsn" if mariadb else "warehouse_dsn")

    def run_sql(statement: str) -> Any:
        return (mariadb_target.execute if mariadb else postgres_target.execute)(dsn, statement)

    def sink(name: str = "redo", table: str = "target", **arguments: Any) -> Sink:
        given = {"connection": "w", "lock_timeout": LOCK_TIMEOUT, "protocol": "write_ahead", **arguments}
        return (MariaDbSink if mariadb else PostgresSink)(name, tables={"numbers": table}, **given)

    def made(key: str, *others: dict[str, Any], cursor: bool = False, **arguments: Any) -> Days:
        columns = COLUMNS.format(text="longtext" if mariadb else "text")
        if mariadb:
            mariadb_target.empty(request.getfixturevalue("mariadb_server"), dsn)
        else:
            postgres_target.empty(dsn)
        run_sql(f"CREATE TABLE target ({columns}{key})")
        sinks = [sink(**arguments), *(sink(**other) for other in others)]
        return Days(Feed.of(ledger, memory, sinks, {"w": dsn}, cursor=cursor), run_sql)

    yield made
    memory_server.drop_database(name)


@pytest.mark.fault("L10")
@IN_BOTH
def test_two_epochs_that_would_collide_are_never_both_decided(days: Make) -> None:
    pipeline = days(", UNIQUE (number)")
    for day in (0, 1):
        pipeline.staged(day)
    pipeline.prepare(0)
    with pytest.raises(
        KeysHeld, match=r"waits: sink redo .* epoch 1 is prepared in redo and not published.*lockstep abort"
    ):
        pipeline.prepare(1)
    pipeline.commit(0)
    with pytest.raises(KeysHeld):
        pipeline.prepare(1)
    pipeline.feed.finish(0)
    with pytest.raises(SinkRejected):  # it has the rows to compare with now
        pipeline.prepare(1)
    assert pipeline.shown() == [(0, ROWS)]


def test_an_epoch_that_is_given_up_lets_the_next_one_go_on(days: Make) -> None:
    pipeline = days(", UNIQUE (number)")
    for day in (0, 1):
        pipeline.staged(day)
    pipeline.prepare(0)
    pipeline.abort(0)
    pipeline.prepare(1)
    with pytest.raises(KeysHeld):
        pipeline.feed.decide(0)
    pipeline.commit(1)
    pipeline.feed.finish(1)
    assert pipeline.shown() == [(1, ROWS)]


@pytest.mark.fault("L10")
def test_a_validation_that_was_killed_before_its_vote_keeps_others_out_until_it_is_voided(
    days: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it could be stopped only, vote later, and be decided beside the other one."""
    pipeline = days(", UNIQUE (number)")
    for day in (0, 1):
        pipeline.staged(day)

    def victim() -> None:
        monkeypatch.setenv("LOCKSTEP_TESTING", "1")
        monkeypatch.setenv("LOCKSTEP_CRASH", "prepare.before_vote")
        pipeline.prepare(0)

    assert fork(victim).wait() == -9
    with pytest.raises(KeysHeld, match="epoch 1 is pending in redo"):
        pipeline.prepare(1)
    pipeline.prepare(0)  # the retry of its own task
    pipeline.abort(0)
    pipeline.prepare(1)


def _require_side_by_side(pipeline: Days) -> None:
    """Both epochs are validated before either is shown, and the later one is shown first."""
    for day in (0, 1):
        pipeline.staged(day)
        pipeline.prepare(day)
    for day in (1, 0):
        pipeline.commit(day)
        pipeline.feed.finish(day)
    assert pipeline.shown() == [(0, ROWS), (1, ROWS)]


@pytest.mark.parametrize(
    ("days", "key"),
    [("postgres", ""), *((kind, ", UNIQUE (lockstep_epoch, number)") for kind in ("postgres", "mariadb"))],
    indirect=["days"],
    ids=["no key", "a key by epoch", "a key by epoch in MariaDB"],
)
def test_epochs_that_can_not_collide_are_validated_side_by_side(days: Make, key: str) -> None:
    pipeline = days(key)
    _require_side_by_side(pipeline)


@IN_BOTH
def test_keys_that_the_server_makes_itself_ask_for_no_turn(days: Make, request: pytest.FixtureRequest) -> None:
    numbered = "id bigint AUTO_INCREMENT PRIMARY KEY" if "mariadb" in request.node.name else "id bigserial PRIMARY KEY"
    pipeline = days(f", {numbered}")
    _require_side_by_side(pipeline)


@pytest.mark.fault("L10")
def test_two_such_sinks_never_wait_for_each_other(days: Make) -> None:
    """Epoch 1 has voted in one, epoch 2 would in the other: the turn is the pipeline's, not the sink's."""
    pipeline = days(", UNIQUE (day, number)", {"name": "more", "table": "more"})
    pipeline.run_sql(
        "CREATE TABLE more LIKE target" if _is_mariadb(pipeline) else "CREATE TABLE more (LIKE target INCLUDING ALL)"
    )
    for day in (0, 1):
        pipeline.staged(day)
    pipeline.prepare(0, "redo")
    with pytest.raises(KeysHeld):
        pipeline.prepare(1, "more")
    pipeline.prepare(0, "more")
    pipeline.commit(0)
    pipeline.feed.publish(0, "redo")
    with pytest.raises(KeysHeld, match="in more"):
        pipeline.prepare(1, "redo")
    pipeline.feed.finish(0)
    for sink in ("more", "redo"):
        pipeline.prepare(1, sink)
    pipeline.commit(1)
    pipeline.feed.finish(1)
    assert pipeline.shown() == [(0, ROWS), (1, ROWS)]


def _is_mariadb(pipeline: Days) -> bool:
    return isinstance(pipeline.feed.pipeline.sinks[0], MariaDbSink)


UPSERT: dict[str, Any] = {"name": "latest", "table": "latest", "protocol": "two_phase", "create": True}
UPSERT |= {"mode": "upsert", "key": ["number"]}


def test_an_interval_pipeline_in_which_two_epochs_could_wait_in_a_circle_is_refused(days: Make) -> None:
    pipeline = days(", UNIQUE (day, number)", UPSERT)
    pipeline.staged(0)
    with pytest.raises(PreflightRefused, match=r"sinks \['latest'\] hold keys.*two epochs could wait for each other"):
        pipeline.prepare(0, "redo")


WRITERS: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([{"name": "second"}], {}, r"other sinks write there too \(numbers\.second\)"),
    ([], {"shared": True}, "other sinks write there too"),
    ([], {"validate": "schema"}, "validate='schema' doesn't look"),
    ([], {"guarantee": "none"}, "guarantee='none' sends rows again"),
]


@pytest.mark.fault("L10")
@IN_BOTH
def test_what_a_turn_can_not_keep_from_colliding_is_refused_by_preflight(days: Make, subtests: pytest.Subtests) -> None:
    for day, (others, arguments, told) in enumerate(WRITERS):
        with subtests.test(told):
            pipeline = days(", UNIQUE (number)", *others, **arguments)
            pipeline.staged(day)
            with pytest.raises(PreflightRefused, match=f"has the unique key .*number.*{told}"):
                pipeline.prepare(day)
            assert pipeline.shown() == []
            pipeline.abort(day)

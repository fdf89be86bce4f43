"""Write-ahead into unique keys: epochs whose rows would collide are never both decided, and nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.errors import KeysHeld, PreflightRefused, SinkRejected
from lockstep.testing._crash_sweep import fork
from tests.crash import world
from tests.crash.world import ROWS
from tests.sinks.table_feeds import TableFeeds, table_feeds

__all__ = ["table_feeds"]

IN_BOTH = pytest.mark.parametrize("database", ["postgres", "mariadb"])
UNIQUE = "ALTER TABLE target ADD UNIQUE (number)"


@pytest.fixture(autouse=True)
def distinct_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each day has the numbers of every other day, none of them twice."""
    monkeypatch.setattr(world, "rows_of_day", lambda day: [(day, number, f"row {number}") for number in range(ROWS)])


@pytest.mark.fault("L10")
@IN_BOTH
def test_two_epochs_that_would_collide_are_never_both_decided(table_feeds: TableFeeds, database: str) -> None:
    pipeline = table_feeds(database, UNIQUE)
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
    pipeline.finish(0)
    with pytest.raises(SinkRejected):  # it has the rows to compare with now
        pipeline.prepare(1)
    assert pipeline.shown() == [(0, ROWS)]


@pytest.mark.fault("L10")
def test_a_validation_that_was_killed_before_its_vote_keeps_others_out_until_it_is_voided(
    table_feeds: TableFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it could be stopped only, vote later, and be decided beside the other one."""
    pipeline = table_feeds("postgres", UNIQUE)
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


@pytest.mark.parametrize(
    ("database", "ddl"),
    [
        ("postgres", ""),
        ("postgres", "ALTER TABLE target ADD UNIQUE (lockstep_epoch, number)"),
        ("mariadb", "ALTER TABLE target ADD UNIQUE (lockstep_epoch, number)"),
        ("postgres", "ALTER TABLE target ADD id bigserial PRIMARY KEY"),
        ("mariadb", "ALTER TABLE target ADD id bigint AUTO_INCREMENT PRIMARY KEY"),
    ],
)
def test_epochs_that_can_not_collide_are_validated_side_by_side(
    table_feeds: TableFeeds, database: str, ddl: str
) -> None:
    """Without a key, with one by epoch, and with one that the server makes; the later epoch is shown first."""
    pipeline = table_feeds(database, ddl)
    for day in (0, 1):
        pipeline.staged(day)
        pipeline.prepare(day)
    for day in (1, 0):
        pipeline.commit(day)
        pipeline.finish(day)
    assert pipeline.shown() == [(0, ROWS), (1, ROWS)]


@pytest.mark.fault("L10")
def test_two_such_sinks_never_wait_for_each_other(table_feeds: TableFeeds) -> None:
    """Epoch 1 has voted in one, epoch 2 would in the other: the turn is the pipeline's, not the sink's."""
    keys = "ALTER TABLE target ADD UNIQUE (day, number);\nCREATE TABLE more (LIKE target INCLUDING ALL)"
    pipeline = table_feeds("postgres", keys, {"name": "more", "table": "more"})
    for day in (0, 1):
        pipeline.staged(day)
    pipeline.prepare(0, "redo")
    with pytest.raises(KeysHeld):
        pipeline.prepare(1, "more")
    pipeline.prepare(0, "more")
    pipeline.commit(0)
    pipeline.publish(0, "redo")
    with pytest.raises(KeysHeld, match="in more"):
        pipeline.prepare(1, "redo")
    pipeline.finish(0)
    for sink in ("more", "redo"):
        pipeline.prepare(1, sink)
    pipeline.commit(1)
    pipeline.finish(1)
    assert pipeline.shown() == [(0, ROWS), (1, ROWS)]


UPSERT: dict[str, Any] = {"name": "latest", "table": "latest", "protocol": "two_phase", "create": True}
UPSERT |= {"mode": "upsert", "key": ["number"]}


def test_an_interval_pipeline_in_which_two_epochs_could_wait_in_a_circle_is_refused(
    table_feeds: TableFeeds,
) -> None:
    pipeline = table_feeds("postgres", "ALTER TABLE target ADD UNIQUE (day, number)", UPSERT)
    pipeline.staged(0)
    with pytest.raises(PreflightRefused, match=r"sinks \['latest'\] hold keys.*two epochs could wait for each other"):
        pipeline.prepare(0, "redo")


WRITERS: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([{"name": "second"}], {}, r"other sinks write there too \(numbers\.second\)"),
    ([], {"shared": True}, "other sinks write there too"),
]


@pytest.mark.fault("L10")
@IN_BOTH
def test_what_a_turn_can_not_keep_from_colliding_is_refused_by_preflight(
    table_feeds: TableFeeds, database: str, subtests: pytest.Subtests
) -> None:
    for day, (others, arguments, told) in enumerate(WRITERS):
        with subtests.test(told):
            pipeline = table_feeds(database, UNIQUE, *others, **arguments)
            pipeline.staged(day)
            with pytest.raises(PreflightRefused, match=f"has the unique key .*number.*{told}"):
                pipeline.prepare(day)
            assert pipeline.shown() == []
            pipeline.abort(day)

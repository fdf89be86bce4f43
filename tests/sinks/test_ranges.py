"""Markers carry the interval, whatever number its epoch has, and an epoch takes another one's place in one step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval, Vote
from lockstep.errors import LedgerConflict, PreflightRefused, Retryable, SinkRejected
from lockstep.sinks.values import Guarantee, Marker, Replaced, SinkEpoch
from lockstep.testing import SinkUnderTest, sealed
from lockstep.testing._sealed_rows import OUTPUT
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, expect_settled, opened, prepare, publish
from tests.sinks.kafka_target import KafkaUnderTest
from tests.sinks.kinds import table_under_test
from tests.sinks.postgres_target import TableUnderTest
from tests.sinks.targets import FilesUnderTest

TABLES = ("postgres two_phase", "mariadb write_ahead")
TARGETS = (*TABLES, "files", "kafka", "kafka in shards", "recorded in a folder")


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, memory: Path) -> SinkUnderTest:
    kind, _, protocol = request.param.partition(" ")
    match kind:
        case "files":
            return FilesUnderTest(memory, "parquet")
        case "kafka":
            return KafkaUnderTest(request.getfixturevalue("kafka_broker"), shards=2 if protocol else 1)
        case "recorded":
            elsewhere: dict[str, Any] = {"guarantee": "at_least_once", "committer": str(memory / "sent")}
            return KafkaUnderTest(request.getfixturevalue("kafka_broker"), **elsewhere)
        case _:
            return table_under_test(request, request.param)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> TableUnderTest:
    return table_under_test(request, request.param)


def of_day(day: int, id: int, *, token: int = 10, manifest: str = "a") -> SinkEpoch:
    start = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=day)
    return replace(epoch(id, token=token, manifest=manifest), interval=Interval(start, start + timedelta(days=1)))


def marker(of: SinkEpoch, token: int) -> Marker:
    return Marker(of.id, token, of.manifest_hash, of.span)


@pytest.mark.fault("L3")
def test_a_range_is_found_under_another_number_and_refused_before_the_vote(target: SinkUnderTest) -> None:
    first, wal = of_day(1, 3), sealed(50)
    publish(target, first, prepare(target, first, wal), wal)
    with opened(target) as sink:
        assert sink.find_marker(3) == marker(first, 10)  # Kafka's waits until the transaction is closed
        assert sink.find_marker_of_span(first.span or "") == marker(first, 10)
        for again in (of_day(1, 8, token=20), of_day(1, 3, token=20, manifest="b")):
            with pytest.raises(LedgerConflict, match="can't be taken, the target shows epoch 3 of 2013-01-02T00:00"):
                sink.refuse_shown(again)
        sink.refuse_shown(of_day(1, 3, token=30))
        sink.refuse_shown(of_day(2, 8, token=30))
        assert sink.find_marker_of_span(of_day(2, 8).span or "") is None


@pytest.mark.fault("L3")
def test_a_range_that_two_ledgers_have_decided_is_shown_once(target: SinkUnderTest) -> None:
    first, second, wal = of_day(1, 3), of_day(1, 8, token=20, manifest="b"), sealed(50)
    vote = prepare(target, first, wal)
    publish(target, first, vote, wal)
    late = replace(vote, token=second.token, handle=None)
    with opened(target) as sink, pytest.raises((LedgerConflict, Retryable)):
        sink.publish(second, sink.prepare(second, wal) if target.votes_with_data else late, wal)
    expect_rows(target, wal)


@pytest.mark.fault("L3")
def test_the_newest_markers_are_told_and_all_of_them(target: SinkUnderTest) -> None:
    """Of tables those with the largest number and the largest token, which a parallel backfill tells apart."""
    wal = sealed(10)
    epochs = [of_day(2, 1, token=10), of_day(1, 2, token=19), of_day(0, 4, token=12), epoch(5, token=13)]
    with opened(target) as sink:
        sink.preflight(None)
        assert sink.newest_markers() == []
    for one in epochs:
        publish(target, one, prepare(target, one, wal), wal)
    with opened(target) as sink:
        found = sink.newest_markers()
        assert marker(epochs[3], 13) in found
        if isinstance(target, TableUnderTest) and target.guarantee is Guarantee.EXACTLY_ONCE:
            assert {(one.epoch, one.token) for one in found} == {(5, 13), (2, 19)}
        assert sorted(sink.markers(), key=lambda one: one.epoch) == [marker(one, one.token) for one in epochs]


def test_an_epoch_whose_marker_was_taken_away_by_hand_is_written_anew_under_its_number(table: TableUnderTest) -> None:
    wal, first, anew = sealed(10), of_day(1, 3), of_day(1, 3, token=20, manifest="b")
    publish(table, first, prepare(table, first, wal), wal)
    table.execute("DELETE FROM lockstep_marker")
    table.execute("DELETE FROM rows")
    with opened(table) as sink:
        sink.refuse_shown(anew)
        with pytest.raises(LedgerConflict, match="with its row of lockstep_range"):
            sink.refuse_shown(of_day(1, 8, token=20))
    publish(table, anew, prepare(table, anew, wal), wal)
    expect_rows(table, wal)
    with opened(table) as sink:
        assert sink.markers() == [marker(anew, 20)]


OLD, BESIDE = epoch(1), epoch(2, manifest="beside")
WRONG, OTHERS, RIGHT = sealed(40), sealed(30, start=1_000), sealed(50, start=2_000)


def in_place_of(
    old: SinkEpoch, *, id: int = 7, token: int = 70, manifest: str = "right", rows: int | None = None
) -> SinkEpoch:
    replaced = (Replaced(old.id, old.manifest_hash, {} if rows is None else {OUTPUT: rows}),)
    return replace(epoch(id, token=token, manifest=manifest), replaced=replaced, generation=old.generation + 1)


def show_wrong(table: TableUnderTest) -> Vote:
    publish(table, BESIDE, prepare(table, BESIDE, OTHERS), OTHERS)
    vote = prepare(table, OLD, WRONG)
    publish(table, OLD, vote, WRONG)
    expect_rows(table, WRONG, OTHERS)
    return vote


def test_an_older_execution_gives_way_with_what_it_has_deleted_whatever_the_epoch_column_is_called(
    table: TableUnderTest,
) -> None:
    table.arguments["epoch_column"] = "%s of 100 %"
    show_wrong(table)
    first, second = in_place_of(OLD, token=70), in_place_of(OLD, token=71)
    prepare(table, first, RIGHT)
    vote = prepare(table, second, RIGHT)
    publish(table, second, vote, RIGHT)
    expect_rows(table, RIGHT, OTHERS)
    expect_proof(table, OLD, sealed(0))
    expect_settled(table)


def test_rows_of_a_former_owner_with_the_same_number_are_never_taken(table: TableUnderTest) -> None:
    show_wrong(table)
    with_others = in_place_of(OLD, rows=39)  # one of the forty is somebody else's
    with pytest.raises(SinkRejected, match="40 rows have the number of epoch 1, which brought 39"):
        prepare(table, with_others, RIGHT)
    expect_rows(table, WRONG, OTHERS)
    expect_settled(table)
    new = in_place_of(OLD, rows=40, token=71)
    publish(table, new, prepare(table, new, RIGHT), RIGHT)
    expect_rows(table, RIGHT, OTHERS)


def test_rows_that_a_person_has_deleted_before_hold_nothing_up(table: TableUnderTest) -> None:
    show_wrong(table)
    table.execute("DELETE FROM rows WHERE lockstep_epoch = 1 AND id % 2 = 0")
    new = in_place_of(OLD, rows=40)
    publish(table, new, prepare(table, new, RIGHT), RIGHT)
    expect_rows(table, RIGHT, OTHERS)


def test_a_decided_replacement_is_shown_where_a_restored_target_never_showed_what_it_replaces(
    table: TableUnderTest,
) -> None:
    show_wrong(table)
    new = in_place_of(OLD, rows=40)
    vote = prepare(table, new, RIGHT)
    if vote.handle is not None:
        table.lose(vote.handle)
    table.execute("DELETE FROM rows WHERE lockstep_epoch = 1")
    table.execute("DELETE FROM lockstep_marker WHERE epoch = 1")
    publish(table, new, vote, RIGHT)
    expect_rows(table, RIGHT, OTHERS)


def test_tables_that_others_may_join_or_rows_elsewhere_refer_to_are_refused(table: TableUnderTest) -> None:
    show_wrong(table)
    with (
        opened(table, shared=True) as sink,
        pytest.raises(PreflightRefused, match="other sinks may write to its tables"),
    ):
        sink.require_replaceable()
    table.execute("ALTER TABLE rows ADD CONSTRAINT one_of_each UNIQUE (id, lockstep_epoch)")
    table.execute(
        "CREATE TABLE referring (id bigint, epoch bigint, CONSTRAINT to_them FOREIGN KEY (id, epoch) "
        "REFERENCES rows (id, lockstep_epoch) ON DELETE CASCADE)",
    )
    with opened(table) as sink, pytest.raises(PreflightRefused, match="foreign keys of"):
        sink.require_replaceable()


@pytest.mark.parametrize("table", ["postgres two_phase", "postgres write_ahead"], indirect=True)
def test_rows_that_the_table_keeps_are_never_shown_beside_those_that_take_their_place(table: TableUnderTest) -> None:
    show_wrong(table)
    table.execute("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    table.execute("CREATE TRIGGER keep BEFORE DELETE ON rows FOR EACH ROW EXECUTE FUNCTION keep()")
    for sealed_rows in (40, None):
        with pytest.raises(SinkRejected, match="rows of epoch 1 are still there"):
            prepare(table, in_place_of(OLD, rows=sealed_rows), RIGHT)
    expect_rows(table, WRONG, OTHERS)

"""Markers carry the interval: it is found whatever number its epoch has, and before a sink votes for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval
from lockstep.errors import LedgerConflict, Retryable
from lockstep.sinks.values import Guarantee, Marker, SinkEpoch
from lockstep.testing import SinkUnderTest, sealed
from lockstep.testing._under_test import epoch, expect_rows, opened, prepare, publish
from tests.sinks.kafka_target import KafkaUnderTest
from tests.sinks.kinds import table_under_test
from tests.sinks.postgres_target import PostgresUnderTest, TableUnderTest
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
            return PostgresUnderTest(request.getfixturevalue("warehouse_dsn"), "", "write_ahead", **elsewhere)
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


def test_what_an_older_version_has_decided_is_published_though_nobody_has_made_room_for_ranges(
    table: TableUnderTest,
) -> None:
    wal, decided = sealed(10), of_day(1, 2)
    with opened(table) as sink:
        sink.preflight({batches.output: batches.schema for batches in wal})
        table.execute("DROP TABLE lockstep_range")
        vote = sink.prepare(decided, wal)
    publish(table, decided, vote, wal)
    expect_rows(table, wal)
    with opened(table) as sink:
        assert sink.find_marker(2) == Marker(2, 10, decided.manifest_hash)
        assert sink.find_marker_of_span(decided.span or "") is None
        assert [one.epoch for one in sink.newest_markers()] == [one.epoch for one in sink.markers()] == [2]


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

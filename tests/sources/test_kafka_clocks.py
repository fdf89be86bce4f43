"""Brokers' clocks that are behind this machine's: what they stamp as of a time that is over here is lost to nobody.

The cluster is a list of stamps for each partition, so that its clock is the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.connection import Asker
from lockstep.epoch import Interval, Position
from lockstep.errors import OffsetsExpired, SourceUnavailable
from lockstep.sources.kafka._decoding import Decoding
from lockstep.sources.kafka._offsets import Ending
from lockstep.sources.kafka._ranges import ranges_of
from lockstep.sources.kafka.open_source import CursorKafkaSource, IntervalKafkaSource

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
BEFORE, INTERVAL, NEXT = (Interval(NOON + n * HOUR, NOON + (n + 1) * HOUR) for n in (-1, 0, 1))
KEY, VALUE = (Decoding.of("test", part, "bytes", None) for part in ("key", "value"))


@dataclass
class Brokers:
    """A cluster with one topic, `orders`: of each partition what its records are stamped, from `oldest` on."""

    logs: list[list[datetime]]
    oldest: dict[int, int] = field(default_factory=dict)
    id_of_topic: str | None = "1"
    kept: timedelta | None = None  #: by retention
    asked: int = 0
    between: Callable[[], Any] = lambda: None  #: done after each answer
    who: Asker = field(default_factory=lambda: Asker("source orders", SourceUnavailable))

    def send(self, number: int, stamp: datetime, records: int = 1) -> None:
        self.logs[number] += [stamp] * records

    def id(self) -> str:
        if self.id_of_topic is None:
            raise SourceUnavailable("source orders: no answer")
        return "cluster"

    def topic(self, name: str) -> Topic | None:
        return Topic(name, self.id_of_topic, len(self.logs), 1, 1) if self.id_of_topic else None

    require_topic = topic

    def topic_settings(self, name: str) -> dict[str, str]:
        kept = -1 if self.kept is None else int(self.kept / timedelta(milliseconds=1))
        return {"message.timestamp.type": "LogAppendTime", "retention.ms": str(kept), "retention.bytes": "-1"}

    def ends(self, name: str, numbers: Iterable[int], **more: Any) -> dict[int, int]:
        return self._answer({number: len(self.logs[number]) for number in numbers})

    def stable_ends(self, name: str, numbers: Iterable[int]) -> dict[int, tuple[int, None]]:
        """No transaction holds up what is there, or comes meanwhile."""
        return {number: (len(self.logs[number]) + 1000, None) for number in numbers}

    def beginnings(self, name: str, numbers: Iterable[int]) -> dict[int, int]:
        return {number: self.oldest.get(number, 0) for number in numbers}

    def offsets_at(self, name: str, numbers: Iterable[int], time: datetime) -> dict[int, int | None]:
        return self._answer({number: self._first(number, time) for number in numbers})

    def _first(self, number: int, time: datetime) -> int | None:
        found = (offset for offset, stamp in enumerate(self.logs[number]) if stamp >= time)
        return next((offset for offset in found if offset >= self.oldest.get(number, 0)), None)

    def _answer(self, found: dict[int, Any]) -> dict[int, Any]:
        self.asked += 1
        self.between()
        return found


def by_interval(brokers: Brokers, accept_loss: tuple[str, ...] = ()) -> IntervalKafkaSource:
    cluster = cast(Cluster, brokers)
    return IntervalKafkaSource(
        cluster, ("orders",), None, accept_loss, KEY, VALUE, False, "fail", None, None, (), settle=MINUTE
    )


def up_to(brokers: Brokers, end: datetime) -> CursorKafkaSource:
    ending = Ending(end, {"topics": ["orders"]}, MINUTE)
    return CursorKafkaSource(
        *(cast(Cluster, brokers), ("orders",), None, (), KEY, VALUE, False, "fail", None, None, ()),
        *("earliest", "none", ending, None),
    )


def taken(position: Position) -> dict[int, tuple[int, int]]:
    return dict(ranges_of(position)["orders"].partitions)


# --- by interval ---


@pytest.mark.fault("A27")
def test_records_that_come_into_an_interval_once_it_was_planned_are_named() -> None:
    brokers = Brokers([[NOON] * 100, [NOON] * 5 + [NEXT.start]])
    source = by_interval(brokers)
    position = source.latest(None, INTERVAL)
    assert taken(position) == {0: (0, 100), 1: (0, 5)}
    assert (source.lacks(None, position), source.late_files(None, position)) == (None, [])
    brokers.send(0, INTERVAL.end - MINUTE, 20)
    for _ in ("nothing of the next one is there", "its first record is"):
        assert "kafka:orders/0@100 to 119" in (source.lacks(None, position) or "")
        assert source.late_files(None, position) == ["kafka:orders/0@100 to 119"]
        brokers.send(0, NEXT.start)
    assert taken(source.latest(None, NEXT))[0] == (120, 122), "so nobody else reads them"
    planned_anew = source.latest(None, INTERVAL)
    assert taken(planned_anew)[0] == (0, 120)
    assert source.lacks(None, planned_anew) is None


def test_what_belongs_to_later_intervals_is_not_missed() -> None:
    brokers = Brokers([[NOON] * 3, []])
    source = by_interval(brokers)
    position = source.latest(None, INTERVAL)
    for number in (0, 1):
        brokers.send(number, NEXT.start, 4)
        brokers.send(number, INTERVAL.start, 2)  # of another leader, behind a record of the next: that one's
    assert source.lacks(None, position) is None
    assert taken(source.latest(None, NEXT)) == {0: (3, 9), 1: (0, 6)}


@pytest.mark.fault("J2")
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 179)), max_size=12))
def test_each_record_is_in_one_interval_whatever_comes_while_it_is_planned(sent: list[tuple[int, int]]) -> None:
    """Clocks go on meanwhile, each partition's by itself, and some are behind."""
    coming = sorted(sent, key=lambda one: one[1])
    brokers = Brokers([[], []])

    def go_on() -> None:
        if coming:
            number, minute = coming.pop(0)
            brokers.send(number, BEFORE.start + minute * MINUTE)

    brokers.between = go_on
    source, intervals = by_interval(brokers), (BEFORE, INTERVAL, NEXT)
    found = [source.latest(None, one) for one in intervals]
    while coming:
        go_on()
    for index, interval in enumerate(intervals):
        while source.lacks(None, found[index]):
            found[index] = source.latest(None, interval)
    for number, log in enumerate(brokers.logs):
        read = [offset for one in found for offset in range(*taken(one)[number])]
        assert read == list(range(len(log)))


def test_a_clock_that_is_ahead_of_this_machines_may_have_let_an_intervals_records_expire() -> None:
    over = datetime.now(UTC) - 2 * MINUTE
    interval = Interval(over - HOUR, over)
    brokers = Brokers([[interval.start] * 3], {0: 2})
    source = by_interval(brokers)
    for more, expired in ((MINUTE / 2, True), (2 * MINUTE, False)):
        brokers.kept = datetime.now(UTC) - interval.start + more
        if expired:
            with pytest.raises(OffsetsExpired):
                source.latest(None, interval)
        else:
            assert taken(source.latest(None, interval)) == {0: (2, 3)}


# --- up to a time ---


@pytest.mark.fault("A27")
def test_records_that_come_before_a_time_that_is_over_are_read_by_the_next_epoch() -> None:
    brokers = Brokers([[NOON] * 100, [NOON, NEXT.start]])
    source = up_to(brokers, NEXT.start)
    first = source.latest(None, None)
    assert (taken(first), source.is_finished(None, first)) == ({0: (0, 100), 1: (0, 1)}, True)
    assert source.is_empty(first, source.latest(first, None))
    brokers.send(0, NEXT.start - MINUTE, 20)
    second = source.latest(first, None)
    assert (taken(second), source.is_finished(first, second)) == ({0: (100, 120), 1: (1, 1)}, True)
    brokers.send(0, NEXT.start)
    brokers.send(0, NOON)  # of another leader, behind the first record of the end: nobody's
    third = source.latest(second, None)
    assert (source.is_empty(second, third), source.is_finished(second, third)) == (True, True)


def test_a_finished_source_misses_no_cluster_and_no_record_that_is_gone_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = Brokers([[NOON]])
    source = up_to(brokers, NEXT.start)
    first = source.latest(None, None)
    brokers.id_of_topic = None
    second = source.latest(first, None)
    assert (source.is_empty(first, second), source.is_finished(first, second)) == (True, True)
    assert "whether more records came before the end" in caplog.text
    brokers.id_of_topic = "1"
    brokers.send(0, NOON)
    third = source.latest(second, None)
    assert taken(third) == {0: (1, 2)}
    brokers.send(0, NEXT.start, 5)
    brokers.oldest[0] = 7
    fourth = source.latest(third, None)
    assert (source.is_empty(third, fourth), source.is_finished(third, fourth)) == (True, True)
    assert "records of orders, partitions [0], are gone" in caplog.text
    assert source.latest(fourth, None) == fourth

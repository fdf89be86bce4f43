"""KafkaSink and an epoch that takes the place of another one: refused, or sent after it with a header that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import InvalidPipeline, LedgerConflict, PreflightRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Publication
from lockstep.testing import sealed
from lockstep.testing._under_test import epoch, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.kafka_target import KafkaUnderTest, committed

FIRST = epoch()
SECOND = epoch(2, token=20, manifest="b", replaced=[FIRST])
THIRD = epoch(3, token=30, manifest="c")
BOTH = epoch(4, token=40, manifest="d", replaced=[SECOND, THIRD])


def test_it_is_refused_unless_the_sink_says_send(kafka_broker: KafkaBroker) -> None:
    with opened(KafkaUnderTest(kafka_broker)) as sink, pytest.raises(PreflightRefused, match="on_restate='send'"):
        sink.require_replaceable()
    with opened(KafkaUnderTest(kafka_broker, on_restate="send")) as sink:
        sink.require_replaceable()
    with pytest.raises(InvalidPipeline, match="'refuse' nor 'send'"):
        KafkaUnderTest(kafka_broker, on_restate="drop").sink()


def test_no_plan_freezes_it_so_that_it_can_be_said_later(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    before = target.sink()
    target.more = {"on_restate": "send"}
    assert before.spec() == target.sink().spec()
    assert Sink.from_spec(before.spec(), target.sink().settings()) == target.sink()


@pytest.mark.parametrize(
    "more", [{}, {"shards": 3}, {"guarantee": "at_least_once"}], ids=["exactly once", "shards", "at least once"]
)
def test_each_record_names_the_epochs_whose_place_it_takes(
    kafka_broker: KafkaBroker, more: dict[str, Any], tmp_path: Path
) -> None:
    committer = {"committer": str(tmp_path)} if "guarantee" in more else {}
    target = KafkaUnderTest(kafka_broker, on_restate="send", **more, **committer)
    for at in (FIRST, SECOND, THIRD, BOTH):
        wal = sealed(40, start=1000 * at.id)
        vote = prepare(target, at, wal)
        assert publish(target, at, vote, wal) is Publication.SENT
    told = [dict(message.headers()) for message in committed(target.broker, target.topic)]
    found = sorted((int(one["lockstep"].split(b"/")[3]), one.get("lockstep-replaces")) for one in told)
    sent = [(1, None), (2, b"1"), (3, None), (4, b"2,3")]
    assert found == [one for one in sent for _ in range(40)]


def test_nothing_takes_the_place_of_what_was_not_sent_as_decided(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, on_restate="send")
    with pytest.raises(LedgerConflict, match="no marker"):
        prepare(target, SECOND, sealed(1))
    other = epoch(manifest="another life")
    publish(target, other, prepare(target, other, sealed(1)), sealed(1))
    with pytest.raises(LedgerConflict, match="the marker of manifest"):
        prepare(target, SECOND, sealed(1))

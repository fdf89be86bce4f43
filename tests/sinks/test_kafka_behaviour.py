"""KafkaSink against a real broker: the suite of all sinks, for each guarantee and for shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sinks.values import Guarantee
from lockstep.testing import behaviours
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._trial import ROWS
from stack.kafka import KafkaBroker
from tests.sinks.guarantees import expect_row
from tests.sinks.kafka_observer import observed
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest


class WeakerKafkaUnderTest(KafkaUnderTest):
    guarantee = Guarantee.AT_LEAST_ONCE


class NoPromiseKafkaUnderTest(KafkaUnderTest):
    guarantee = Guarantee.NONE


def _weaker(broker: KafkaBroker, folder: Path) -> WeakerKafkaUnderTest:
    return WeakerKafkaUnderTest(broker, guarantee="at_least_once", committer=str(folder))


@pytest.mark.parametrize("behaviour", behaviours(KafkaUnderTest), ids=lambda one: one.__name__)
def test_an_exactly_once_sink(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(KafkaUnderTest(kafka_broker))


@pytest.mark.parametrize(
    "behaviour", [one for one in behaviours(KafkaUnderTest) if one not in CRASHES], ids=lambda one: one.__name__
)
def test_a_sink_of_three_shards(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(KafkaUnderTest(kafka_broker, shards=3))


@pytest.mark.parametrize("behaviour", behaviours(WeakerKafkaUnderTest), ids=lambda one: one.__name__)
def test_an_at_least_once_sink(behaviour: Behaviour, kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    behaviour(_weaker(kafka_broker, tmp_path))


@pytest.mark.parametrize("behaviour", behaviours(NoPromiseKafkaUnderTest), ids=lambda one: one.__name__)
def test_a_sink_that_promises_nothing(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(NoPromiseKafkaUnderTest(kafka_broker, guarantee="none"))


@pytest.mark.tier("all")
@pytest.mark.parametrize(("name", "shards"), [("KafkaSink", 1), ("KafkaSink, three shards", 3)])
def test_the_page_of_guarantees_tells_the_truth(name: str, shards: int, kafka_broker: KafkaBroker) -> None:
    """A reader reads throughout, while publishers are killed and stopped at every point."""
    target = KafkaUnderTest(kafka_broker, shards=shards)
    with observed(kafka_broker, target.topic, PARTITIONS) as reader:
        expect_row(name, target)
        epochs = {one.epoch for one in reader.finish()}
        reader.expect(dict.fromkeys(range(1, len(epochs) + 1), ROWS), ordered=shards == 1)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth_of_weaker_ones(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    expect_row("KafkaSink, at least once", _weaker(kafka_broker, tmp_path))
    expect_row("KafkaSink, none", NoPromiseKafkaUnderTest(kafka_broker, guarantee="none"))

"""KafkaSink on three brokers that die in its transaction: who led a partition, who coordinated it, who was neither."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lockstep.crash import CrashPoint
from lockstep.sinks.values import Publication
from lockstep.testing._under_test import publish
from tests.sinks.kafka_cluster import KafkaCluster, three_brokers
from tests.sinks.kafka_target import KafkaUnderTest
from tests.sinks.kafka_watching import Interrupted, at, once, until_sent, watching

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(memory_folder: Path, kafka_jars: None) -> Iterator[KafkaCluster]:
    with three_brokers(memory_folder / "three-brokers") as found:
        yield found


def test_a_leader_may_die_between_two_sends(cluster: KafkaCluster) -> None:
    target = KafkaUnderTest(cluster)  # of as many partitions as there are nodes: each leads one
    with watching(target) as watched:
        at_, vote, wal = watched.voted()
        dies = once(partial(until_sent, target), cluster.nodes[0].kill)
        assert publish(target, at_, vote, [Interrupted(wal[0].table, batch_rows=500, action=dies)])
        watched.expect(2)
    cluster.heal()


def test_any_broker_may_die_between_the_last_send_and_the_commit(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = KafkaUnderTest(cluster)
    with watching(target) as watched:
        for number, node in enumerate(cluster.nodes, 2):
            voted = watched.voted(number)
            with at(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT, once(partial(until_sent, target), node.kill), monkeypatch):
                assert publish(target, *voted) is Publication.SENT
            cluster.heal(target.topic, target.markers)
        watched.expect(2, 3, 4)

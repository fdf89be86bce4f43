"""Three brokers that are one cluster, every topic on all of them: any one may die."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lockstep.kafka.cluster import Cluster
from stack.kafka import KafkaBroker, Quorum
from tests.sinks.kafka_admin import cluster_of
from tests.waiting import until

NODES = 3
REPLICATED = {
    "default.replication.factor": NODES,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": NODES,
    "transaction.state.log.replication.factor": NODES,
    "transaction.state.log.min.isr": 2,
}


@dataclass(frozen=True)
class KafkaCluster:
    """What tests of one broker want of it, and its nodes."""

    nodes: list[KafkaBroker]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def heal(self, *topics: str) -> None:
        """Start whatever died, and wait until every node has all of these topics again."""
        for node in self.nodes:
            node.start()
        with cluster_of(self) as cluster:
            for topic in topics:
                until(partial(_is_in_sync, cluster, topic), f"{topic} isn't in sync")


@contextmanager
def three_brokers(folder: Path) -> Iterator[KafkaCluster]:
    quorum = Quorum.of(NODES)
    nodes = [
        KafkaBroker(folder / str(node), settings=REPLICATED, quorum=quorum, node=node) for node in quorum.controllers
    ]
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(_end, node)
        with ThreadPoolExecutor(NODES) as pool:  # none serves before the second one has started
            list(pool.map(KafkaBroker.start, nodes))
        yield KafkaCluster(nodes)


def _is_in_sync(cluster: Cluster, topic: str) -> bool:
    return cluster.require_topic(topic).in_sync == NODES


def _end(node: KafkaBroker) -> None:
    """At once: a node that goes in order waits for the others, who have gone."""
    if node.lives:
        node.kill()
    node.remove()

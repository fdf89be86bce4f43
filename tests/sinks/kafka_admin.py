"""What an administrator does to a broker's topics, and what can be seen there, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from stack.kafka import KafkaBroker
from tests.waiting import until

SECONDS = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def asking_for(user: str, password: str) -> dict[str, str]:
    """Settings of a broker that lets nobody else in."""
    login = f'{PLAIN} required username="{user}" password="{password}" user_{user}="{password}";'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": login,
    }


class Brokers(Protocol):
    """One broker, or several that are one cluster."""

    @property
    def bootstrap(self) -> str: ...


@contextmanager
def cluster_of(broker: Brokers) -> Iterator[Cluster]:
    with closing(Cluster({"bootstrap.servers": broker.bootstrap}, Asker("test"))) as cluster:
        yield cluster


def restart(broker: KafkaBroker) -> None:
    """As after a power cut of the process."""
    broker.kill()
    broker.start()


def delete(broker: Brokers, topic: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = _admin(broker)  # by name: a client that nobody knows any more never answers
    admin.delete_topics([topic])[topic].result(SECONDS)
    with cluster_of(broker) as cluster:
        until(lambda: cluster.topic(topic) is None, f"{topic} is still there")


def delete_records(broker: Brokers, topic: str, partitions: int) -> None:
    """Delete every record; a topic that is only compacted refuses that."""
    everything = [TopicPartition(topic, number, OFFSET_END) for number in range(partitions)]
    admin = _admin(broker)
    for future in admin.delete_records(everything).values():
        future.result(SECONDS)


def configure(broker: Brokers, topic: str, setting: str, value: str) -> None:
    """Change one setting and wait until it holds."""
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = _admin(broker)
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
    with cluster_of(broker) as cluster:
        until(lambda: cluster.topic_settings(topic)[setting] == value, f"{setting} of {topic} did not change")


def held(broker: Brokers, topic: str, partitions: int) -> list[int]:
    """The partitions in which an open transaction holds readers of committed records back."""
    with cluster_of(broker) as cluster:
        ends, stable = (cluster.ends(topic, range(partitions), stable=only) for only in (False, True))
    return [number for number in ends if ends[number] != stable[number]]


def transactional_ids(broker: KafkaBroker) -> list[str]:
    """Lockstep's, as far as the broker remembers them."""
    tool = "org.apache.kafka.tools.TransactionsCommand"
    told = broker.run_tool(tool, ["--bootstrap-server", broker.bootstrap, "list"])
    return [line.split()[0] for line in told.splitlines() if line.startswith("lockstep-")]


def is_compacted(broker: KafkaBroker, topic: str) -> bool:
    """Whether the cleaner has been over a partition of it."""
    noted = broker.folder / "data" / "cleaner-offset-checkpoint"
    lines = [line.split() for line in noted.read_text().splitlines()] if noted.exists() else []
    return any(line[0] == topic and int(line[2]) > 0 for line in lines if len(line) == 3)


def _admin(broker: Brokers) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

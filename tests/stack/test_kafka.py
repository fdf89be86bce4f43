"""The private broker: on loopback, and what it acknowledged outlives it."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from stack.kafka import KafkaBroker

pytestmark = pytest.mark.usefixtures("kafka_jars")

TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")).for_a_while() as broker:
        yield broker


def test_a_killed_broker_comes_back_under_its_address_with_its_topics(broker: KafkaBroker) -> None:
    address = broker.bootstrap
    broker.run_tool(TOPICS, ["--bootstrap-server", address, "--create", "--topic", "kept"])
    broker.kill()
    assert not broker.lives
    broker.start()
    assert broker.bootstrap == address
    assert broker.run_tool(TOPICS, ["--bootstrap-server", address, "--list"]).split() == ["kept"]


def test_it_listens_on_loopback_only(broker: KafkaBroker) -> None:
    assert broker.pid is not None
    listening = [c for c in psutil.Process(broker.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}

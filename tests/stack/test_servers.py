"""The private S3 server, broker, YARN and HDFS: on loopback, and what they acknowledged outlives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import obstore
import psutil
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsFileSystem
from stack.hadoop import VERSION
from stack.hdfs import HDFS, HdfsServer
from stack.jars import spark_jars
from stack.kafka import KafkaBroker
from stack.s3 import MISSING, S3Server, weed
from stack.yarn import YarnCluster, fetched

TOPICS = "org.apache.kafka.tools.TopicCommand"


def require_loopback(pids: Iterable[int | None]) -> None:
    for pid in pids:
        assert pid is not None
        listening = [c for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
        assert listening
        assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}


@pytest.fixture
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    if weed() is None:
        pytest.skip(MISSING)
    with S3Server(tmp_path_factory.mktemp("s3")).for_a_while() as server:
        yield server


def test_a_killed_s3_server_comes_back_under_its_address_with_its_objects_and_its_login(s3: S3Server) -> None:
    require_loopback([s3.pid])
    endpoint, store = s3.endpoint, s3.store("kept")
    obstore.put(store, "folder/small", b"small")
    obstore.put(store, "folder/large", bytes(range(256)) * 40_000)
    s3.kill()
    assert not s3.lives
    s3.start()
    assert s3.endpoint == endpoint
    assert bytes(obstore.get(store, "folder/small").bytes()) == b"small"
    assert bytes(obstore.get(store, "folder/large").bytes()) == bytes(range(256)) * 40_000
    assert sorted(meta["path"] for chunk in obstore.list(store) for meta in chunk) == ["folder/large", "folder/small"]
    wrong = S3Store(
        "kept",
        endpoint=endpoint,
        access_key_id=s3.access_key,
        secret_access_key="guessed",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    with pytest.raises(BaseError, match=r"403|denied|Unauthenticated"):
        obstore.get(wrong, "folder/small")


@pytest.mark.usefixtures("kafka_jars")
def test_a_killed_broker_comes_back_under_its_address_with_its_topics(tmp_path_factory: pytest.TempPathFactory) -> None:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")).for_a_while() as broker:
        require_loopback([broker.pid])
        address = broker.bootstrap
        broker.run_tool(TOPICS, ["--bootstrap-server", address, "--create", "--topic", "kept"])
        broker.kill()
        assert not broker.lives
        broker.start()
        assert broker.bootstrap == address
        assert broker.run_tool(TOPICS, ["--bootstrap-server", address, "--list"]).split() == ["kept"]


@pytest.mark.slow
@pytest.mark.skipif(not fetched(), reason="YARN is not here: `make yarn` fetches it")
def test_a_yarn_has_a_node_with_room(tmp_path_factory: pytest.TempPathFactory) -> None:
    with YarnCluster(tmp_path_factory.mktemp("yarn")).for_a_while() as yarn:
        require_loopback(yarn.pids)
        [node] = yarn.ask("nodes")["nodes"]["node"]
        assert (node["state"], node["availMemoryMB"]) == ("RUNNING", 4096)


@pytest.mark.skipif(not HDFS.present, reason="HDFS is not here: `make hdfs` fetches it")
def test_a_killed_hdfs_comes_back_under_its_address_with_its_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert [jar.name for jar in spark_jars("hadoop-client-api")] == [f"hadoop-client-api-{VERSION}.jar"]
    with HdfsServer(tmp_path_factory.mktemp("hdfs")).for_a_while() as server:
        require_loopback(server.pids)
        uri, files = server.uri, HdfsFileSystem.at(HdfsAddress.of(server.uri))
        files.make_folder("/kept")
        files.create("/kept/small", b"small")
        files.create("/kept/large", bytes(range(256)) * 40_000)
        server.kill()
        assert not server.lives
        server.start()
        assert server.uri == uri
        assert files.read("/kept/small") == b"small"
        assert files.read("/kept/large") == bytes(range(256)) * 40_000
        assert sorted(found.name for found in files.children("/kept")) == ["large", "small"]

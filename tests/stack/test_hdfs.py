"""The private HDFS: on loopback, of the Hadoop that pyspark ships, what it acknowledged outlives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.hdfs.address import HdfsAddress
from lockstep.hdfs.file_system import HdfsFileSystem
from stack.hadoop import VERSION
from stack.hdfs import HDFS, HdfsServer
from stack.jars import spark_jars
from tests.stack.test_servers import require_loopback

pytestmark = pytest.mark.skipif(not HDFS.present, reason="HDFS is not here: `make hdfs` fetches it")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with HdfsServer(tmp_path_factory.mktemp("hdfs")).for_a_while() as server:
        yield server


def test_it_is_of_the_hadoop_that_spark_talks_with() -> None:
    assert [jar.name for jar in spark_jars("hadoop-client-api")] == [f"hadoop-client-api-{VERSION}.jar"]


def test_a_killed_server_comes_back_under_its_address_with_its_files(server: HdfsServer) -> None:
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

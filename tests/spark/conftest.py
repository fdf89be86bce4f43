"""A warm Connect session with Lockstep's settings, and a server that reaches S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockstep.spark.session import connect
from stack.processes import Processes
from stack.s3 import SPARK_S3, S3Server
from stack.spark import ConnectServer
from tests.s3_proxy import S3Proxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def session(spark_connect: str) -> Iterator[SparkSession]:
    opened = connect(spark_connect)
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def spark_on_s3(s3_server: S3Server, proxy: S3Proxy, servers_folder: Path) -> Iterator[str]:
    """A server whose login stands in its environment alone. It, too, goes by the proxy."""
    if not SPARK_S3.present:
        pytest.skip("what Spark reaches S3 by is not here: `make s3` fetches it")
    processes = Processes(servers_folder / "spark-s3" / "stack.json")
    server = ConnectServer(processes, servers_folder / "spark-s3")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in s3_server.environment.items():
            environment.setenv(name, value)
        try:
            server.wait(server.launch(s3_server.spark_configuration(proxy.endpoint)))
            yield server.url
        finally:
            processes.stop()

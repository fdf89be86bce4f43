"""The private YARN: on loopback, with a node that takes jobs."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from stack.yarn import YarnCluster, fetched

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not fetched(), reason="YARN is not here: `make yarn` fetches it")]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    with YarnCluster(tmp_path_factory.mktemp("yarn")).for_a_while() as cluster:
        yield cluster


def test_its_node_has_room(yarn: YarnCluster) -> None:
    [node] = yarn.ask("nodes")["nodes"]["node"]
    assert (node["state"], node["availMemoryMB"]) == ("RUNNING", 4096)


def test_it_listens_on_loopback_only(yarn: YarnCluster) -> None:
    for pid in yarn.pids:
        listening = [c for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
        assert listening
        assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}

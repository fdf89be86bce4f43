"""The private S3 server: on loopback, what it acknowledged outlives it."""

from __future__ import annotations

from collections.abc import Iterator

import obstore
import psutil
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

from stack.s3 import MISSING, S3Server, weed

pytestmark = pytest.mark.skipif(weed() is None, reason=MISSING)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")).for_a_while() as server:
        yield server


def test_a_killed_server_comes_back_under_its_address_with_its_objects(server: S3Server) -> None:
    endpoint, store = server.endpoint, server.store("kept")
    obstore.put(store, "folder/small", b"small")
    obstore.put(store, "folder/large", bytes(range(256)) * 40_000)
    server.kill()
    assert not server.lives
    server.start()
    assert server.endpoint == endpoint
    assert bytes(obstore.get(store, "folder/small").bytes()) == b"small"
    assert bytes(obstore.get(store, "folder/large").bytes()) == bytes(range(256)) * 40_000
    assert sorted(meta["path"] for chunk in obstore.list(store) for meta in chunk) == ["folder/large", "folder/small"]


def test_it_listens_on_loopback_only(server: S3Server) -> None:
    assert server.pid is not None
    listening = [c for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}


def test_it_knows_one_login(server: S3Server) -> None:
    obstore.put(server.store("closed"), "mine", b"")
    wrong = S3Store(
        "closed",
        endpoint=server.endpoint,
        access_key_id=server.access_key,
        secret_access_key="guessed",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    with pytest.raises(BaseError, match=r"403|denied|Unauthenticated"):
        obstore.get(wrong, "mine")

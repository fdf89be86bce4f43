"""Where files land, of each kind; pipelines from a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from stack.s3 import S3Server
from tests.s3_proxy import S3Proxy
from tests.sources.folder_world import FolderWorld, Make
from tests.sources.landings import Landing, Mounted, OnHdfs, OnS3


@pytest.fixture(params=["mounted", "s3", pytest.param("hdfs", marks=pytest.mark.tier("all"))])
def landing(request: pytest.FixtureRequest, tmp_path: Path) -> Landing:
    """A mounted folder asks for no server."""
    makers: dict[str, Callable[[], Landing]] = {
        "mounted": lambda: Mounted(tmp_path),
        "s3": lambda: OnS3(request.getfixturevalue("s3_uri")),
        "hdfs": lambda: OnHdfs(request.getfixturevalue("hdfs_uri")),
    }
    return makers[request.param]()


@pytest.fixture
def proxy(s3_environment: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_environment.endpoint) as proxy:
        yield proxy


@pytest.fixture
def make(ledger_dsn: str, memory: Path) -> Make:
    """Makes worlds in one folder, with one ledger."""
    return partial(FolderWorld.make, ledger_dsn, memory)

"""IcebergSink by a catalog in PostgreSQL, with its tables on a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from lockstep.sinks.iceberg import IcebergSink
from lockstep.sinks.iceberg._durable_io import DurableFileIO
from lockstep.testing._behaviour import BEHAVIOURS
from lockstep.testing._sealed_rows import OUTPUT
from stack.s3 import S3Server
from tests.sampling import Sampling
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest
from tests.sinks.open_apart import FORKING


class OnS3(IcebergUnderTest):
    def __init__(self, dsn: str, warehouse: str, server: S3Server) -> None:
        super().__init__(dsn, Path())
        self.warehouse, self.server = warehouse, server

    def _sink(self, table: str) -> IcebergSink:
        place = {"warehouse": self.warehouse, "create": True}
        return IcebergSink("lake", output=OUTPUT, table=table, catalog="lake", **place)  # type: ignore[arg-type]

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        login = {"s3.access-key-id": self.server.access_key, "s3.secret-access-key": self.server.secret_key}
        place = {"s3.endpoint": self.server.endpoint, "s3.region": "us-east-1"}
        catalog = SqlCatalog("lake", uri=self.dsn.replace("postgresql://", "postgresql+psycopg2://"), **login, **place)
        try:
            yield catalog
        finally:
            catalog.engine.dispose()


def test_postgres_catalog_on_s3(
    s3_environment: S3Server, s3_uri: str, catalog_dsn: str, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """On local files every behaviour is run."""
    for behaviour in sampling.sample([one for one in BEHAVIOURS if one not in FORKING], 3):
        with subtests.test(behaviour.__name__):
            target = OnS3(catalog_dsn, s3_uri, s3_environment)
            target.name = f"db.{behaviour.__name__}"
            behaviour(target)


def test_whoever_makes_it_the_environment_says_where_s3_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyiceberg makes one of its own for a table that is made."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert DurableFileIO().properties["s3.endpoint"] == "http://127.0.0.1:9000"
    assert DurableFileIO({"s3.endpoint": "http://other"}).properties["s3.endpoint"] == "http://other"

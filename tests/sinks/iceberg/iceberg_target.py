"""IcebergSink on a catalog in PostgreSQL, for the behaviour suite; read back by pyiceberg alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from lockstep.sinks.base import Sink
from lockstep.sinks.iceberg import IcebergSink
from lockstep.sinks.values import Batches, SinkContext, SinkEpoch
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, staged_below_table
from lockstep.testing._under_test import SinkUnderTest
from lockstep.wal.table_staging import TableStaging
from stack.s3 import S3Server

TABLE = "db.rows"

logging.getLogger("pyiceberg").setLevel(logging.ERROR)


class IcebergUnderTest(SinkUnderTest):
    """The table `db.rows` of catalog `lake`, with its files below `folder`. `dsn`: what the catalog is reached by."""

    votes_with_data = False
    replaceable = True
    name = TABLE

    def __init__(self, dsn: str, folder: Path, **arguments: Any) -> None:
        self.dsn, self.folder, self.arguments = dsn, folder, {"create": True, **arguments}
        self._homes: dict[str, TableStaging] = {}

    def sink(self, *, shared: bool = False) -> IcebergSink:
        return self._sink(self.name)

    def _sink(self, table: str) -> IcebergSink:
        return IcebergSink(
            "lake", output=OUTPUT, table=table, catalog="lake", warehouse=str(self.folder), **self.arguments
        )

    def connections(self) -> dict[str, str]:
        return {"lake": self.dsn}

    def staged(self, at: SinkEpoch, wal: Sequence[SealedRows]) -> Sequence[Batches]:
        """As `begin` has frozen it, where the table is to be."""
        if self.name not in self._homes:
            self._homes[self.name] = self.sink().home(self.context())
        context = self.context()
        return [
            staged_below_table(one, self._homes[self.name], at, context.deployment, context.pipeline) for one in wal
        ]

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = self._sink("db.elsewhere")
        with sink.opened(self.context()) as live:
            live.preflight({OUTPUT: SCHEMA})
        return sink, self.context()

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """A reader's own, or that of somebody else who writes."""
        catalog = SqlCatalog("lake", uri=self.dsn.replace("postgresql://", "postgresql+psycopg2://"))
        try:
            yield catalog
        finally:
            catalog.engine.dispose()

    @contextmanager
    def table(self) -> Iterator[Table]:
        with self.catalog() as catalog:
            yield catalog.load_table(self.name)

    def visible(self) -> pa.Table:
        with self.catalog() as catalog:
            try:
                return (
                    catalog.load_table(self.name)
                    .scan(selected_fields=tuple(SCHEMA.names))
                    .to_arrow()
                    .select(SCHEMA.names)
                    .cast(SCHEMA)
                )
            except NoSuchTableError:
                return SCHEMA.empty_table()

    def unsettled(self) -> list[str]:
        """Files that a commit which met another one has left are nobody's, and stay: a late request may need them."""
        return []

    def lose(self, handle: str) -> None:
        raise AssertionError("it has no handles")


class RestUnderTest(IcebergUnderTest):
    """The same in a table bucket of `server`, by its REST catalog. `namespace`: of this test alone."""

    def __init__(self, server: S3Server, bucket: str, namespace: str, **arguments: Any) -> None:
        login = f"{server.access_key}:{server.secret_key}"
        super().__init__(server.iceberg.replace("://", f"://{login}@"), Path(), **arguments)
        self.server, self.bucket, self.namespace, self.credential = server, bucket, namespace, login
        self.name = f"{namespace}.rows"

    def _sink(self, table: str) -> IcebergSink:
        name = f"{self.namespace}.{table.rpartition('.')[2]}"
        place = f"s3://{self.bucket}/{name.replace('.', '/')}"
        return IcebergSink(
            "lake",
            output=OUTPUT,
            table=name,
            catalog="lake",
            warehouse=f"s3://{self.bucket}",
            location=place,
            **self.arguments,
        )

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        login = {"s3.access-key-id": self.server.access_key, "s3.secret-access-key": self.server.secret_key}
        yield RestCatalog(
            "lake",
            uri=self.server.iceberg,
            warehouse=f"s3://{self.bucket}",
            credential=self.credential,
            **{**login, "s3.endpoint": self.server.endpoint, "s3.region": "us-east-1"},
        )

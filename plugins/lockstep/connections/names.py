"""Names of places outside: absolute paths, tables, and what catalogues of lineage call them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.object_store.address import Address, is_object_store


def absolute(path: str) -> str:
    """The absolute path, with `..` resolved. Relative paths of a definition start at LOCKSTEP_HOME, or at the current
    folder; a URI with a scheme stays as it is."""
    if "://" in path:
        return path
    return os.path.abspath(  # noqa: PTH100 - symlinks stay
        Path(os.environ.get("LOCKSTEP_HOME", "."), path)
    )


@dataclass(frozen=True, order=True)
class Relation:
    """Schema and name of a table, exactly as the catalogue has them. MariaDB calls a schema a database."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, schema: str) -> Relation:
        """`schema.table`; without a schema: `schema`."""
        first, dot, rest = text.partition(".")
        return cls(first, rest) if dot else cls(schema, first)

    @property
    def names(self) -> tuple[str, str]:
        return self.schema, self.table

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, order=True)
class Dataset:
    """A dataset by OpenLineage's naming rules (openlineage.io/docs/spec/naming), so that other tools use the same
    name for the same place. Contains no login."""

    namespace: str
    name: str

    @classmethod
    def on(cls, system: str, host: str, port: int | str, name: str) -> Self:
        """A dataset of a server: the first of several hosts; a socket is localhost."""
        first = host.split(",")[0]
        return cls(f"{system}://{first if first and not first.startswith('/') else 'localhost'}:{port}", name)


def dataset_at(place: str) -> Dataset:
    """The dataset of a path, or of a URI of an object store or HDFS. Raises `StoreRefused`."""
    if is_object_store(place):
        address = Address.of(place)
        namespace = address.hadoop.removesuffix(f"/{address.prefix}").replace("s3a://", "s3://", 1)
        return Dataset(namespace, address.prefix or "/")
    if is_hdfs(place):
        hdfs = HdfsAddress.of(place)
        return Dataset(hdfs.namenode, hdfs.path)
    return Dataset("file", absolute(place.removeprefix("file://")))

"""Resettable inputs. Importing this package needs no Spark, and the driver of no database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.distribution import import_lazily
from lockstep.sources.base import OpenSource as OpenSource
from lockstep.sources.base import Snapshot as Snapshot
from lockstep.sources.base import Source as Source
from lockstep.sources.base import SourceContext as SourceContext
from lockstep.sources.files import FileSource as FileSource

if TYPE_CHECKING:
    from lockstep.sources._data_source import DataSourceSource as DataSourceSource
    from lockstep.sources._data_source import SequenceSource as SequenceSource
    from lockstep.sources.kafka import KafkaSource as KafkaSource
    from lockstep.sources.tables.mariadb_table import MariaDbTableSource as MariaDbTableSource
    from lockstep.sources.tables.postgres_table import PostgresTableSource as PostgresTableSource

_HOMES = {
    "DataSourceSource": "lockstep.sources._data_source",
    "KafkaSource": "lockstep.sources.kafka",
    "MariaDbTableSource": "lockstep.sources.tables.mariadb_table",
    "PostgresTableSource": "lockstep.sources.tables.postgres_table",
    "SequenceSource": "lockstep.sources._data_source",
}
__all__ = sorted([*_HOMES, "FileSource", "OpenSource", "Snapshot", "Source", "SourceContext"])


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)

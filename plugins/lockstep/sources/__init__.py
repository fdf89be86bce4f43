"""Resettable inputs. Importing this package needs no Spark, and the driver of no database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.extras import import_lazily
from lockstep.sources._snapshot import Snapshot
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.files import FileSource
from lockstep.sources.open_source import OpenSource

if TYPE_CHECKING:
    from lockstep.sources._data_source import DataSourceSource
    from lockstep.sources._sequence import SequenceSource
    from lockstep.sources.kafka import KafkaSource
    from lockstep.sources.tables.mariadb_table import MariaDbTableSource
    from lockstep.sources.tables.mariadb_table import MySqlTableSource as MySqlTableSource  # as it was called
    from lockstep.sources.tables.postgres_table import PostgresTableSource

__all__ = [
    "DataSourceSource",
    "FileSource",
    "KafkaSource",
    "MariaDbTableSource",
    "OpenSource",
    "PostgresTableSource",
    "SequenceSource",
    "Snapshot",
    "Source",
    "SourceContext",
]

_HOMES = {
    "DataSourceSource": "lockstep.sources._data_source",
    "KafkaSource": "lockstep.sources.kafka",
    "MariaDbTableSource": "lockstep.sources.tables.mariadb_table",
    "MySqlTableSource": "lockstep.sources.tables.mariadb_table",
    "PostgresTableSource": "lockstep.sources.tables.postgres_table",
    "SequenceSource": "lockstep.sources._sequence",
}


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _HOMES, name)

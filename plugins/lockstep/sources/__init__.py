"""Sources: resettable inputs. Importing this package loads neither Spark nor a database driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.distribution import import_lazily
from lockstep.sources.base import OpenSource as OpenSource
from lockstep.sources.base import Snapshot as Snapshot
from lockstep.sources.base import Source as Source
from lockstep.sources.base import SourceContext as SourceContext
from lockstep.sources.files.source import FileSource as FileSource

if TYPE_CHECKING:
    from lockstep.sources._data_source import DataSourceSource as DataSourceSource
    from lockstep.sources._data_source import SequenceSource as SequenceSource
    from lockstep.sources.kafka.source import KafkaSource as KafkaSource
    from lockstep.sources.tables.mariadb_table import MariaDbTableSource as MariaDbTableSource
    from lockstep.sources.tables.postgres_table import PostgresTableSource as PostgresTableSource

_MODULES = {
    "DataSourceSource": "lockstep.sources._data_source",
    "KafkaSource": "lockstep.sources.kafka.source",
    "MariaDbTableSource": "lockstep.sources.tables.mariadb_table",
    "PostgresTableSource": "lockstep.sources.tables.postgres_table",
    "SequenceSource": "lockstep.sources._data_source",
}
__all__ = sorted([*_MODULES, "FileSource", "OpenSource", "Snapshot", "Source", "SourceContext"])


def __getattr__(name: str) -> Any:
    return import_lazily(__name__, _MODULES, name)

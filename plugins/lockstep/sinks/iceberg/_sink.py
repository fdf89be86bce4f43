"""IcebergSink: the sealed files of an epoch become a table's, by one commit of its catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table

from lockstep.connections.names import Dataset, dataset_at
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline, PreflightRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.handles import SinkName
from lockstep.sinks.iceberg._catalogs import CatalogLink, open_catalog
from lockstep.sinks.iceberg._open_sink import OpenIcebergSink
from lockstep.sinks.iceberg._partitioning import parse_partition, texts_of
from lockstep.sinks.iceberg._table import LakeTable
from lockstep.sinks.values import SinkContext
from lockstep.wal.table_staging import TableStaging

NEW_COLUMNS = ("refuse", "add")
_QUOTING = "%#?;"  #: to some a part of a file's name, to others not


@dataclass(frozen=True, kw_only=True)
class IcebergSink(Sink):
    """One output as a table of Apache Iceberg, exactly once: no row is written twice.

    `table`: `namespace.table`. `catalog`: a connection, to a PostgreSQL database that holds the catalog of that name,
    or to the URL of a REST catalog. `warehouse`: where a PostgreSQL catalog puts new tables, a URI or a path; what a
    REST catalog is asked for. `create`: make the table where there is none, at `location`, if the warehouse doesn't
    say where. `partition_by`: of a table that is made: columns, and `year(column)`, `month(…)`, `day(…)`, `hour(…)`.
    `on_new_columns`: of the output that the table lacks, "refuse" or "add". `epoch_column` has each row's epoch.
    Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    table: str
    catalog: str
    warehouse: str | None = None
    location: str | None = None
    create: bool = False
    partition_by: tuple[str, ...] = ()
    on_new_columns: str = NEW_COLUMNS[0]
    epoch_column: str = "lockstep_epoch"

    adopts: ClassVar[bool] = True
    compacts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        for text in self.partition_by:
            parse_partition(text, self._who)
        if not all(self.table.split(".")) or "." not in self.table:
            raise InvalidPipeline(f"{self._who}: table {self.table!r} has to be namespace.table")
        if self.on_new_columns not in NEW_COLUMNS:
            raise InvalidPipeline(f"{self._who}: on_new_columns={self.on_new_columns!r} is none of {NEW_COLUMNS}")
        for argument in ("warehouse", "location"):
            if (place := getattr(self, argument)) and Path(place).is_absolute():
                object.__setattr__(self, argument, f"file://{place}")

    @property
    def _who(self) -> str:
        return f"sink {self.name}"

    def arguments(self) -> dict[str, Json]:
        """Without what is as usual."""
        usual = {one.name: one.default for one in fields(self)}
        return {name: value for name, value in super().arguments().items() if value not in (usual[name], [])}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"table {self.table} of catalog {self.catalog}"})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        """By the folder, as Spark's own lineage calls it; where only the catalog knows that there is no name."""
        return {self.output: dataset_at(self.location)} if self.location else {}

    def open(self, context: SinkContext) -> OpenIcebergSink:
        link = self._link(context)
        return OpenIcebergSink(self, link, LakeTable(link, SinkName.of(context, self.name), self.table))

    def home(self, context: SinkContext) -> TableStaging:
        link = self._link(context)
        try:
            table = LakeTable(link, SinkName.of(context, self.name), self.table).find()
            partition_by = texts_of(table.metadata) if table is not None else self.partition_by
            ids = {field.name: field.field_id for field in table.schema().fields} if table is not None else {}
            return TableStaging(self.place_of(table, link), self.epoch_column, partition_by, ids)
        finally:
            link.close()

    def place_of(self, table: Table | None, link: CatalogLink) -> str:
        """URI of the table's folder, of one that is yet to be made too. Raises `PreflightRefused` if nobody says, or
        if it leads elsewhere depending on who takes it."""
        place = self._location_of(table, link)
        if odd := sorted({one for one in place if one in _QUOTING or not one.isprintable()}):
            raise PreflightRefused(
                f"{self._who}: the location of table {self.table} has {', '.join(map(repr, odd))}, by which readers, "
                "Spark and staging find different folders: give the table a location without"
            )
        return _uri(place)

    def _location_of(self, table: Table | None, link: CatalogLink) -> str:
        if table is not None:
            return table.location()
        if self.location:
            return self.location
        if isinstance(link.catalog, MetastoreCatalog):
            namespace, _, name = self.table.rpartition(".")
            try:
                with link.naming(f"looking where namespace {namespace} is"):
                    return link.catalog._get_default_warehouse_location(namespace, name)
            except (NoSuchNamespaceError, PreflightRefused):
                if self.warehouse:
                    return f"{self.warehouse.rstrip('/')}/{namespace}/{name}"
            except ValueError:  # there is no warehouse
                pass
        raise PreflightRefused(
            f"{self._who}: table {self.table} is missing, and nothing says where it is to be: make it, or give "
            "location='…' (of a PostgreSQL catalog warehouse='…' does, too)"
        )

    def _link(self, context: SinkContext) -> CatalogLink:
        return open_catalog(self._who, self.catalog, context.dsn(self.catalog, self.name), self.warehouse)


def _uri(location: str) -> str:
    """As Spark and Lockstep's staging take it."""
    place = location.rstrip("/")
    if place.startswith("file:") and not place.startswith("file://"):
        return f"file://{place.removeprefix('file:')}"
    return f"file://{place}" if place.startswith("/") else place

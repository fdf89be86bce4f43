"""IcebergSink: the sealed files of an epoch become a table's, by one commit to its catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import ancestors_of

from lockstep.connections.names import Dataset, dataset_at
from lockstep.definition.ddl import quote_name
from lockstep.epoch import Json, require_name
from lockstep.errors import (
    InvalidPipeline,
    LockstepError,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    TargetChanged,
    UnknownEpoch,
)
from lockstep.observability.redaction import cause, describe_error
from lockstep.observability.suggestions import REPLAN
from lockstep.sinks.adopting import PUT_BACK, AdoptingSink, CommitOutcome
from lockstep.sinks.base import Sink
from lockstep.sinks.handles import SinkName
from lockstep.sinks.iceberg._catalogs import CatalogLink, connect_catalog
from lockstep.sinks.iceberg._columns import (
    new_columns,
    parse_partition,
    partition_texts,
    schema_faults,
    unmapped_columns,
)
from lockstep.sinks.iceberg._compacting import IcebergCompaction
from lockstep.sinks.iceberg._data_files import SealedDataFile, all_faults, unsupported_partitions
from lockstep.sinks.iceberg._markers import EpochMarker, TableMarkers
from lockstep.sinks.iceberg._table import FORMATS, Append, LakeTable, target_id_of, widened
from lockstep.sinks.row_removal import NOTHING, RowRemover
from lockstep.sinks.values import Adoptable, EpochCut, Marker, ReadCut, SinkContext, SinkEpoch
from lockstep.wal.table_staging import TableStaging

NEW_COLUMNS = ("refuse", "add")
_QUOTING = "%#?;"  #: characters that some readers decode and others take literally


@dataclass(frozen=True, kw_only=True)
class IcebergSink(Sink):
    """Writes one output into a table of Apache Iceberg, exactly once.

    `table`: `namespace.table`. `catalog`: a connection to the PostgreSQL database with the catalog of that name, or to
    the URL of a REST catalog. `warehouse`: where a PostgreSQL catalog creates tables, a URI or a path; or the warehouse
    to request from a REST catalog. `create`: create the table if there is none, at `location` unless the warehouse
    determines it. `partition_by`: of a created table: columns, and `year(column)`, `month(…)`, `day(…)`, `hour(…)`.
    `on_new_columns`: what to do with columns that the table lacks, "refuse" or "add". `epoch_column`: the column for
    the epoch's number. Raises `InvalidPipeline`.
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
            parse_partition(text, self._label)
        if not all(self.table.split(".")) or "." not in self.table:
            raise InvalidPipeline(f"{self._label}: table {self.table!r} has to be namespace.table")
        if self.on_new_columns not in NEW_COLUMNS:
            raise InvalidPipeline(f"{self._label}: on_new_columns={self.on_new_columns!r} is none of {NEW_COLUMNS}")
        for argument in ("warehouse", "location"):
            if (place := getattr(self, argument)) and Path(place).is_absolute():
                object.__setattr__(self, argument, f"file://{place}")

    @property
    def _label(self) -> str:
        return f"sink {self.name}"

    def arguments(self) -> dict[str, Json]:
        """Arguments that differ from their defaults."""
        defaults = {argument.name: argument.default for argument in fields(self)}
        return {name: value for name, value in super().arguments().items() if value not in (defaults[name], [])}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"table {self.table} of catalog {self.catalog}"})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        """Named by location, as in Spark's lineage; empty where only the catalog knows the location."""
        return {self.output: dataset_at(self.location)} if self.location else {}

    def open(self, context: SinkContext) -> OpenIcebergSink:
        link = self._link(context)
        return OpenIcebergSink(self, link, LakeTable(link, SinkName.of(context, self.name), self.table))

    def home(self, context: SinkContext) -> TableStaging:
        link = self._link(context)
        try:
            table = LakeTable(link, SinkName.of(context, self.name), self.table).find()
            partition_by = partition_texts(table.metadata) if table is not None else self.partition_by
            ids = {field.name: field.field_id for field in table.schema().fields} if table is not None else {}
            return TableStaging(self.location_uri(table, link), self.epoch_column, partition_by, ids)
        finally:
            link.close()

    def location_uri(self, table: Table | None, link: CatalogLink) -> str:
        """URI of the table's folder, also before the table exists. Raises `PreflightRefused` if it is undefined, or has
        characters that readers interpret differently."""
        location = self._raw_location(table, link)
        if unsafe := sorted(
            {character for character in location if character in _QUOTING or not character.isprintable()}
        ):
            raise PreflightRefused(
                f"{self._label}: the location of table {self.table} has {', '.join(map(repr, unsafe))}, which readers, "
                "Spark and staging interpret differently: give the table a location without"
            )
        return _uri(location)

    def _raw_location(self, table: Table | None, link: CatalogLink) -> str:
        if table is not None:
            return table.location()
        if self.location:
            return self.location
        if isinstance(link.catalog, MetastoreCatalog):
            namespace, _, name = self.table.rpartition(".")
            try:
                with link.naming(f"reading the location of namespace {namespace}"):
                    return link.catalog._get_default_warehouse_location(namespace, name)
            except (NoSuchNamespaceError, PreflightRefused):
                if self.warehouse:
                    return f"{self.warehouse.rstrip('/')}/{namespace}/{name}"
            except ValueError:  # no warehouse is configured
                pass
        raise PreflightRefused(
            f"{self._label}: table {self.table} is missing, and its location is not defined: create it, or give "
            "location='…' (with a PostgreSQL catalog, warehouse='…' is enough)"
        )

    def _link(self, context: SinkContext) -> CatalogLink:
        return connect_catalog(self._label, self.catalog, context.dsn(self.catalog, self.name), self.warehouse)


def _uri(location: str) -> str:
    """The location as Spark and staging take it."""
    place = location.rstrip("/")
    if place.startswith("file:") and not place.startswith("file://"):
        return f"file://{place.removeprefix('file:')}"
    return f"file://{place}" if place.startswith("/") else place


_MAX_FAULTS = 3  #: in a message
#: Properties that the table's own writers obey and adoption doesn't, with the value that adopted files comply with
_BYPASSED = {
    **dict.fromkeys(("encryption.key-id", "write.data.path", "write.folder-storage.path", "write.object-storage.path")),
    **dict.fromkeys(("write.location-provider.impl", "write.py-location-provider.impl")),
    **dict.fromkeys(("write.object-storage.enabled", "write.upsert.enabled", "write.wap.enabled"), "false"),
    "write.format.default": "parquet",
}
_RESTAGE = (
    f"if the table was partitioned differently when the epoch was planned, {REPLAN} it; with more than 1000 "
    "partitions, repartition by them in the transform"
)


class OpenIcebergSink(AdoptingSink[Table]):
    """A connection to the catalog. Every call loads the table again."""

    serves_many = True

    def __init__(self, sink: IcebergSink, link: CatalogLink, table: LakeTable) -> None:
        super().__init__(sink)
        self._definition, self._link, self._table = sink, link, table
        self._row_remover: RowRemover[Table] | None = None

    def close(self) -> None:
        self._link.close()

    # --- before the decision ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        if (existing := self._table.find()) is not None:
            self._definition.location_uri(existing, self._link)  # a claim would write there
        table = self._table.claim()
        if table is not None:
            self._refuse_unsupported(table)
        elif not self._definition.create:
            raise PreflightRefused(
                f"{self._label}: the catalog has no table {self._table.name}: create it, with a column "
                f"{self._definition.epoch_column} BIGINT, or set create=True"
            )
        location = self._definition.location_uri(table, self._link)
        if schemas is None:
            return
        output = self.sink.output
        if output not in schemas:
            raise PreflightRefused(f"{self._label}: the transform returned no output {output}, but {sorted(schemas)}")
        schema = self._with_epoch(schemas[output])
        if table is None:
            table = self._table.create(schema, location, self._definition.partition_by)
            self._table.claim()  # another process may have created it
        self._require_fit(table, schema, PreflightRefused(f"{self._where} can't take output {output}"))
        self.adds_columns = bool(new_columns(table.metadata, schema).names)

    def disclaim(self) -> None:
        self._table.disclaim()

    def validate(self, head: Table, epoch: SinkEpoch, output: Adoptable) -> None:
        schema, faults = self._with_epoch(output.schema), list[str]()
        self._require_fit(head, schema, PreflightRefused(f"{self._where} can't take output {output.output}"))
        metadata = widened(head, new_columns(head.metadata, schema))
        prefix = f"{self._definition.location_uri(head, self._link)}/"
        files = list(self._files(output))
        for file in files:
            if not file.uri.startswith(prefix):
                raise TargetChanged(
                    f"{self._label}: {file.uri} was staged outside of the table's location {prefix}: run `lockstep "
                    "abort`, then clear the epoch's run from begin"
                )
        faults += [f"{file.uri.rpartition('/')[2]}: {fault}" for file, fault in all_faults(metadata, files, _RESTAGE)]
        if faults:
            raise SinkRejected(f"{self._where} can't adopt what was staged: {_first_faults(faults)}")
        try:
            self._table.rehearse(head, Append(epoch, files, output.rows, new_columns(head.metadata, schema)))
        except LockstepError:
            raise
        except Exception as error:  # any error of pyiceberg would recur at publish
            raise SinkRejected(
                f"{self._where} can't adopt what was staged: its commit can't be built: {describe_error(error)}"
            ) from cause(error, quotes=True)

    # --- AdoptingSink ---

    def load_head(self) -> Table:
        return self._table.load()

    def target_of(self, head: Table) -> str:
        return target_id_of(head)

    def target_id(self) -> str:
        """Id of the table, with or without owner: the next preflight claims it."""
        return target_id_of(self._table.find() or self.load_head())

    def marker_in(self, head: Table, epoch: int) -> Marker | None:
        return _marker_of(self._table.markers(head).find(epoch))

    def marker_of_span_in(self, head: Table, span: str) -> Marker | None:
        return _marker_of(self._table.markers(head).find_span(span))

    def has_replaced(self, head: Table, epoch: int) -> bool:
        return self._table.markers(head).is_replaced(epoch)

    def adopt(self, head: Table, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        changed = PublishBlocked(
            f"{self._where} was changed since epoch {epoch.id} was decided, and can't take it: {PUT_BACK}"
        )
        try:
            self._refuse_unsupported(head)
        except PreflightRefused as error:
            raise PublishBlocked(f"{changed}: {error}") from error
        schema = self._with_epoch(output.schema)
        self._require_fit(head, schema, changed)
        columns, files = new_columns(head.metadata, schema), list(self._files(output))
        metadata = widened(head, columns)
        if faults := [fault for _, fault in all_faults(metadata, files)]:
            raise PublishBlocked(f"{changed}: {_first_faults(faults)}")
        removal = self._remover_of(epoch).removal_at(head) if epoch.replaced else NOTHING
        compaction = self.compaction()
        removed, added = compaction.found(head, removal.removed), compaction.written(head, removal.added)
        return self._table.adopt(head, Append(epoch, files, output.rows, columns, removed, added, removal.number))

    def require_replaceable(self) -> None:
        """Nothing to check: one snapshot replaces the rows of any epoch."""

    def require_removable(self, head: Table, epoch: SinkEpoch) -> None:
        with self._link.naming(f"looking for the rows of epochs that epoch {epoch.id} replaces"):
            self._remover_of(epoch).require_removable(head)

    def _remover_of(self, epoch: SinkEpoch) -> RowRemover[Table]:
        if self._row_remover is None or self._row_remover.epoch != epoch:
            self._row_remover = RowRemover(self.compaction(), self._definition.epoch_column, epoch, self.sink.output)
        return self._row_remover

    def was_rolled_back(self, head: Table, epoch: int) -> bool:
        marker = self._table.markers(head).find(epoch)
        return marker is not None and _is_rolled_back(head, marker)

    def compaction(self) -> IcebergCompaction:
        return IcebergCompaction(self._table, self._definition.epoch_column, self._load_to_compact)

    def _load_to_compact(self) -> Table:
        table = self.load_head()
        self._refuse_unsupported(table)
        return table

    def last_failure(self) -> str | None:
        return self._link.last_failure

    # --- recovery and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        return _marker_of(markers.find(epoch)) if (markers := self._markers()) else None

    def find_marker_of_span(self, span: str) -> Marker | None:
        return _marker_of(markers.find_span(span)) if (markers := self._markers()) else None

    def newest_markers(self) -> list[Marker]:
        return [marker.proof for marker in markers.newest()] if (markers := self._markers()) else []

    def markers(self) -> Iterable[Marker]:
        return [marker.proof for marker in markers] if (markers := self._markers()) else []

    def _markers(self) -> TableMarkers | None:
        """None if the table doesn't exist yet."""
        table = self._table.find()
        return self._table.markers(table) if table else None

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows by the epoch column, in the adopted files or wherever they were compacted to.

        Raises `TargetChanged` if every row is missing: rolled back, or deleted.
        """
        if output != self.sink.output:
            raise InvalidPipeline(f"{self._label} takes the output {self.sink.output!r}, not {output!r}")
        head = self.load_head()
        markers = self._table.markers(head)
        marker = markers.find(epoch)
        if marker is None:
            return
        columns = {field.name for field in head.schema().fields}
        if lost := [name for name in (*schema.names, self._definition.epoch_column) if name not in columns]:
            raise PreflightRefused(f"{self._where} has lost the column {', '.join(lost)} of epoch {epoch}'s rows")
        rows = 0
        with self._link.naming(f"reading epoch {epoch}"):
            rows_of_epoch = EqualTo(self._definition.epoch_column, epoch)  # type: ignore[call-arg, arg-type]  # pydantic's
            scan = head.scan(rows_of_epoch, selected_fields=tuple(schema.names))
            for batch in scan.to_arrow_batch_reader():
                rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(
                    [batch.column(field.name).cast(field.type) for field in schema], schema=schema
                )
        if marker.rows and not rows and not markers.is_replaced(epoch):
            finding = f"none of the {marker.rows} rows of epoch {epoch} is left"
            raise TargetChanged(f"{self._where}: {finding}: {_reason_gone(head, marker)}")

    def snapshot_of(self, epoch: int) -> int:
        """The snapshot with which the table first showed an epoch, for time travel. Raises `UnknownEpoch` if it never
        did, `TargetChanged` if the snapshot has expired."""
        head = self.load_head()
        marker = self._table.markers(head).find(epoch)
        if marker is None:
            raise UnknownEpoch(f"{self._label}: table {self._table.name} shows no epoch {epoch}")
        if head.metadata.snapshot_by_id(marker.snapshot) is None:
            raise TargetChanged(f"{self._label}: snapshot {marker.snapshot}, of epoch {epoch}, has expired")
        return marker.snapshot

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """Cuts by the epoch column, and adds a snapshot if one that hasn't expired shows exactly these epochs."""
        head, name = self.load_head(), ".".join(map(quote_name, self._table.name.split(".")))
        predicate = epochs.predicate(quote_name(self._definition.epoch_column))
        return [ReadCut(self.sink.output, name, predicate, snapshot=self._snapshot_of_cut(head, epochs))]

    def _snapshot_of_cut(self, head: Table, epochs: EpochCut) -> int | None:
        order = {entry.snapshot_id: number for number, entry in enumerate(head.history())}
        position = {marker: order.get(marker.snapshot, -1) for marker in self._table.markers(head)}
        last = max((marker for marker in position if marker.epoch in epochs), key=position.__getitem__, default=None)
        if last is None or head.metadata.snapshot_by_id(last.snapshot) is None:
            return None
        mixed = any(number <= position[last] for marker, number in position.items() if marker.epoch not in epochs)
        return None if mixed else last.snapshot

    # --- what is checked ---

    @property
    def _label(self) -> str:
        return f"sink {self.name}"

    @property
    def _where(self) -> str:
        return f"{self._label}: table {self._table.name}"

    def _with_epoch(self, schema: pa.Schema) -> pa.Schema:
        column = self._definition.epoch_column
        if column in schema.names:
            raise PreflightRefused(f"{self._label}: the output has a column {column} of its own: rename it")
        return schema.append(pa.field(column, pa.int64()))

    def _refuse_unsupported(self, table: Table) -> None:
        metadata, faults = table.metadata, []
        if metadata.format_version not in FORMATS:
            faults.append(f"has format version {metadata.format_version}, for which pyiceberg can't write manifests")
        if not metadata.sort_order().is_unsorted:
            faults.append("has a sort order, which the sealed files don't have: remove it, or compact by it")
        for name, accepted in _BYPASSED.items():
            if (value := table.properties.get(name)) is not None and value.lower() != accepted:
                faults.append(f"has {name}={value}, which adopted files don't comply with: remove that property")
        if partitions := unsupported_partitions(metadata):
            faults.append(f"is partitioned by {', '.join(partitions)}, which file statistics don't determine")
        if faults:
            raise PreflightRefused(f"{self._where} {'; and '.join(faults)}")

    def _require_fit(self, table: Table, schema: pa.Schema, refusal: LockstepError) -> None:
        faults = schema_faults(table.metadata, schema, adds=self._definition.on_new_columns == "add")
        faults += [
            f"the table's name mapping doesn't map {name} to its column"
            for name in unmapped_columns(table.metadata, schema)
        ]
        if faults:
            raise type(refusal)(f"{refusal}: {_first_faults(faults)}")

    def _files(self, output: Adoptable) -> Iterator[SealedDataFile]:
        """Every file with rows."""
        for file, facts in output.facts():
            if file.rows:
                yield SealedDataFile(file.uri, file.bytes, facts)


def _marker_of(marker: EpochMarker | None) -> Marker | None:
    return marker.proof if marker else None


def _first_faults(faults: list[str]) -> str:
    more = f", and {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
    return "; ".join(faults[:_MAX_FAULTS]) + more


def _is_rolled_back(head: Table, marker: EpochMarker) -> bool:
    """According to the snapshots that haven't expired."""
    if head.metadata.snapshot_by_id(marker.snapshot) is None:
        return False
    current = head.metadata.snapshot_by_name(MAIN_BRANCH)
    return marker.snapshot not in [snapshot.snapshot_id for snapshot in ancestors_of(current, head.metadata)]


def _reason_gone(head: Table, marker: EpochMarker) -> str:
    if head.metadata.snapshot_by_id(marker.snapshot) is None:
        return f"they were deleted, or rolled back; snapshot {marker.snapshot}, which showed them, has expired"
    if _is_rolled_back(head, marker):
        return f"the table was rolled back to before snapshot {marker.snapshot}; the epoch is not published again"
    return f"they were deleted or overwritten since snapshot {marker.snapshot}; the epoch is not published again"

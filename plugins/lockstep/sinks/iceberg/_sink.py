"""IcebergSink: the sealed files of an epoch become a table's, by one commit of its catalog."""

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

from lockstep.connections.dataset import Dataset
from lockstep.connections.folder_dataset import dataset_at
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
from lockstep.sinks.iceberg._catalogs import CatalogLink, open_catalog
from lockstep.sinks.iceberg._columns import misfits, new_columns, parse_partition, texts_of, unmapped
from lockstep.sinks.iceberg._compacting import IcebergCompaction
from lockstep.sinks.iceberg._data_files import SealedDataFile, all_faults, unkept_partitions
from lockstep.sinks.iceberg._markers import EpochMarker, TableMarkers
from lockstep.sinks.iceberg._table import FORMATS, Adoption, LakeTable, target_id_of, widened
from lockstep.sinks.row_removal import NOTHING, RowRemover
from lockstep.sinks.values import Adoptable, EpochCut, Marker, ReadCut, SinkContext, SinkEpoch
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


_SHOWN = 3  #: faults that a message names
#: What a table's own writers do as its properties say; with the value, if any, by which an adopted file does, too.
_BYPASSED = {
    **dict.fromkeys(("encryption.key-id", "write.data.path", "write.folder-storage.path", "write.object-storage.path")),
    **dict.fromkeys(("write.location-provider.impl", "write.py-location-provider.impl")),
    **dict.fromkeys(("write.object-storage.enabled", "write.upsert.enabled", "write.wap.enabled"), "false"),
    "write.format.default": "parquet",
}
_RESTAGE = (
    f"if the table was partitioned otherwise when it was planned, {REPLAN} the epoch; if its rows are of more than "
    "1000 partitions, have the transform repartition by them"
)


class OpenIcebergSink(AdoptingSink[Table]):
    """One process' link to the catalog; each step loads the table afresh."""

    serves_many = True

    def __init__(self, sink: IcebergSink, link: CatalogLink, table: LakeTable) -> None:
        super().__init__(sink)
        self._described, self._link, self._table = sink, link, table
        self._row_remover: RowRemover[Table] | None = None

    def close(self) -> None:
        self._link.close()

    # --- before the decision ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        if (theirs := self._table.find()) is not None:
            self._described.place_of(theirs, self._link)  # a claim would write there
        table = self._table.claim()
        if table is not None:
            self._refuse_what_adoption_bypasses(table)
        elif not self._described.create:
            raise PreflightRefused(
                f"{self._who}: the catalog has no table {self._table.name}: make it, with a column "
                f"{self._described.epoch_column} BIGINT, or say create=True"
            )
        location = self._described.place_of(table, self._link)
        if schemas is None:
            return
        output = self.sink.output
        if output not in schemas:
            raise PreflightRefused(f"{self._who}: the transform gave no output {output}, but {sorted(schemas)}")
        schema = self._with_epoch(schemas[output])
        if table is None:
            table = self._table.create(schema, location, self._described.partition_by)
            self._table.claim()  # of whoever was quicker
        self._require_fit(table, schema, PreflightRefused(f"{self._where} can't take output {output}"))
        self.adds_columns = bool(new_columns(table.metadata, schema).names)

    def disclaim(self) -> None:
        self._table.disclaim()

    def validate(self, head: Table, epoch: SinkEpoch, output: Adoptable) -> None:
        schema, found = self._with_epoch(output.schema), list[str]()
        self._require_fit(head, schema, PreflightRefused(f"{self._where} can't take output {output.output}"))
        wide = widened(head, new_columns(head.metadata, schema))
        below = f"{self._described.place_of(head, self._link)}/"
        files = list(self._files(output))
        for file in files:
            if not file.uri.startswith(below):
                raise TargetChanged(
                    f"{self._who}: {file.uri} was staged where the table was to be, which is at {below}: clear the "
                    "epoch's run from begin, after `lockstep abort`"
                )
        found += [f"{file.uri.rpartition('/')[2]}: {fault}" for file, fault in all_faults(wide, files, _RESTAGE)]
        if found:
            raise SinkRejected(f"{self._where} can't adopt what was staged: {_few(found)}")
        try:
            self._table.rehearse(head, Adoption(epoch, files, output.rows, new_columns(head.metadata, schema)))
        except LockstepError:
            raise
        except Exception as error:  # of a library that makes manifests: publish would meet it for ever
            raise SinkRejected(
                f"{self._where} can't adopt what was staged: its commit can't be built: {describe_error(error)}"
            ) from cause(error, quotes=True)

    # --- the table, as the template asks ---

    def load_head(self) -> Table:
        return self._table.load()

    def target_of(self, head: Table) -> str:
        return target_id_of(head)

    def target_id(self) -> str:
        """Also of a table that nobody owns: the next preflight claims it."""
        return target_id_of(self._table.find() or self.load_head())

    def marker_in(self, head: Table, epoch: int) -> Marker | None:
        return _proof(self._table.markers(head).find(epoch))

    def marker_of_span_in(self, head: Table, span: str) -> Marker | None:
        return _proof(self._table.markers(head).find_span(span))

    def has_replaced(self, head: Table, epoch: int) -> bool:
        return self._table.markers(head).is_replaced(epoch)

    def adopt(self, head: Table, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        changed = PublishBlocked(
            f"{self._where} was changed since epoch {epoch.id} was decided, and can't take it: {PUT_BACK}"
        )
        try:
            self._refuse_what_adoption_bypasses(head)
        except PreflightRefused as error:
            raise PublishBlocked(f"{changed}: {error}") from error
        schema = self._with_epoch(output.schema)
        self._require_fit(head, schema, changed)
        columns, files = new_columns(head.metadata, schema), list(self._files(output))
        wide = widened(head, columns)
        if wrong := [fault for _, fault in all_faults(wide, files)]:
            raise PublishBlocked(f"{changed}: {_few(wrong)}")
        lifted = self._remover_of(epoch).removal_at(head) if epoch.replaced else NOTHING
        table = self.compaction()
        gone, rests = table.found(head, lifted.removed), table.written(head, lifted.added)
        return self._table.adopt(head, Adoption(epoch, files, output.rows, columns, gone, rests, lifted.number))

    def require_replaceable(self) -> None:
        """Any epoch can be: one snapshot takes its rows away and shows the others."""

    def require_removable(self, head: Table, epoch: SinkEpoch) -> None:
        with self._link.naming(f"looking for the rows of epochs that epoch {epoch.id} takes the place of"):
            self._remover_of(epoch).require_removable(head)

    def _remover_of(self, epoch: SinkEpoch) -> RowRemover[Table]:
        if self._row_remover is None or self._row_remover.epoch != epoch:
            self._row_remover = RowRemover(self.compaction(), self._described.epoch_column, epoch, self.sink.output)
        return self._row_remover

    def was_rolled_back(self, head: Table, epoch: int) -> bool:
        marker = self._table.markers(head).find(epoch)
        return marker is not None and _is_rolled_back(head, marker)

    def compaction(self) -> IcebergCompaction:
        return IcebergCompaction(self._table, self._described.epoch_column, self._load_to_compact)

    def _load_to_compact(self) -> Table:
        table = self.load_head()
        self._refuse_what_adoption_bypasses(table)
        return table

    def last_failure(self) -> str | None:
        return self._link.last_failure

    # --- recovery and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        return _proof(markers.find(epoch)) if (markers := self._markers()) else None

    def find_marker_of_span(self, span: str) -> Marker | None:
        return _proof(markers.find_span(span)) if (markers := self._markers()) else None

    def newest_markers(self) -> list[Marker]:
        return [marker.proof for marker in markers.newest()] if (markers := self._markers()) else []

    def markers(self) -> Iterable[Marker]:
        return [marker.proof for marker in markers] if (markers := self._markers()) else []

    def _markers(self) -> TableMarkers | None:
        """None of a table that is yet to be made."""
        table = self._table.find()
        return self._table.markers(table) if table else None

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows by its column: in the adopted files, or wherever somebody has compacted them to.

        Raises `TargetChanged` if every row is gone: rolled back, or deleted.
        """
        if output != self.sink.output:
            raise InvalidPipeline(f"{self._who} takes the output {self.sink.output!r}, not {output!r}")
        head = self.load_head()
        markers = self._table.markers(head)
        marker = markers.find(epoch)
        if marker is None:
            return
        columns = {field.name for field in head.schema().fields}
        if lost := [name for name in (*schema.names, self._described.epoch_column) if name not in columns]:
            raise PreflightRefused(f"{self._where} has no column {', '.join(lost)} any more, of epoch {epoch}'s rows")
        rows = 0
        with self._link.naming(f"reading epoch {epoch}"):
            rows_of_epoch = EqualTo(self._described.epoch_column, epoch)  # type: ignore[call-arg, arg-type]  # pydantic's
            scan = head.scan(rows_of_epoch, selected_fields=tuple(schema.names))
            for batch in scan.to_arrow_batch_reader():
                rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(
                    [batch.column(field.name).cast(field.type) for field in schema], schema=schema
                )
        if marker.rows and not rows and not markers.is_replaced(epoch):
            gone = f"none of the {marker.rows} rows of epoch {epoch} is left"
            raise TargetChanged(f"{self._where}: {gone}: {_why(head, marker)}")

    def snapshot_of(self, epoch: int) -> int:
        """The snapshot with which the table first showed an epoch, for time travel. Raises `UnknownEpoch` if it never
        did, `TargetChanged` if the snapshot is expired."""
        head = self.load_head()
        marker = self._table.markers(head).find(epoch)
        if marker is None:
            raise UnknownEpoch(f"{self._who}: table {self._table.name} shows no epoch {epoch}")
        if head.metadata.snapshot_by_id(marker.snapshot) is None:
            raise TargetChanged(f"{self._who}: snapshot {marker.snapshot}, of epoch {epoch}, has expired")
        return marker.snapshot

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """By the epoch column; and a snapshot where one shows just these epochs, and isn't expired."""
        head, name = self.load_head(), ".".join(map(quote_name, self._table.name.split(".")))
        predicate = epochs.predicate(quote_name(self._described.epoch_column))
        return [ReadCut(self.sink.output, name, predicate, snapshot=self._snapshot_of_cut(head, epochs))]

    def _snapshot_of_cut(self, head: Table, epochs: EpochCut) -> int | None:
        order = {entry.snapshot_id: place for place, entry in enumerate(head.history())}
        shown = {marker: order.get(marker.snapshot, -1) for marker in self._table.markers(head)}
        last = max((marker for marker in shown if marker.epoch in epochs), key=shown.__getitem__, default=None)
        if last is None or head.metadata.snapshot_by_id(last.snapshot) is None:
            return None
        mixed = any(place <= shown[last] for marker, place in shown.items() if marker.epoch not in epochs)
        return None if mixed else last.snapshot

    # --- what is checked ---

    @property
    def _who(self) -> str:
        return f"sink {self.name}"

    @property
    def _where(self) -> str:
        return f"{self._who}: table {self._table.name}"

    def _with_epoch(self, schema: pa.Schema) -> pa.Schema:
        column = self._described.epoch_column
        if column in schema.names:
            raise PreflightRefused(f"{self._who}: the output has a column {column} of its own: rename it")
        return schema.append(pa.field(column, pa.int64()))

    def _refuse_what_adoption_bypasses(self, table: Table) -> None:
        metadata, found = table.metadata, []
        if metadata.format_version not in FORMATS:
            found.append(f"has format version {metadata.format_version}, of which pyiceberg writes no manifests")
        if not metadata.sort_order().is_unsorted:
            found.append("has a sort order, which the sealed files don't have: take it away, or compact by it")
        for name, usual in _BYPASSED.items():
            if (value := table.properties.get(name)) is not None and value.lower() != usual:
                found.append(f"says {name}={value}, which its own writers obey and adopted files don't: take it away")
        if partitions := unkept_partitions(metadata):
            found.append(f"is partitioned by {', '.join(partitions)}, which a file's statistics don't tell")
        if found:
            raise PreflightRefused(f"{self._where} {'; and '.join(found)}")

    def _require_fit(self, table: Table, schema: pa.Schema, refusal: LockstepError) -> None:
        found = misfits(table.metadata, schema, adds=self._described.on_new_columns == "add")
        found += [f"the table's name mapping doesn't lead {name} to it" for name in unmapped(table.metadata, schema)]
        if found:
            raise type(refusal)(f"{refusal}: {_few(found)}")

    def _files(self, output: Adoptable) -> Iterator[SealedDataFile]:
        """Every file that has rows."""
        for file, facts in output.facts():
            if file.rows:
                yield SealedDataFile(file.uri, file.bytes, facts)


def _proof(marker: EpochMarker | None) -> Marker | None:
    return marker.proof if marker else None


def _few(found: list[str]) -> str:
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _is_rolled_back(head: Table, marker: EpochMarker) -> bool:
    """As far as snapshots aren't expired."""
    if head.metadata.snapshot_by_id(marker.snapshot) is None:
        return False
    now = head.metadata.snapshot_by_name(MAIN_BRANCH)
    return marker.snapshot not in [one.snapshot_id for one in ancestors_of(now, head.metadata)]


def _why(head: Table, marker: EpochMarker) -> str:
    if head.metadata.snapshot_by_id(marker.snapshot) is None:
        return f"they were deleted, or rolled back; snapshot {marker.snapshot}, which showed them, has expired"
    if _is_rolled_back(head, marker):
        return f"somebody has rolled the table back to before snapshot {marker.snapshot}; nothing publishes it again"
    return f"somebody has deleted or overwritten them since snapshot {marker.snapshot}; nothing publishes it again"

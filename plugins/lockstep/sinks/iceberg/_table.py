"""A table of a catalog: loaded on every call, claimed by a property, changed by conditional commits.

pyiceberg retries a conflicting commit by itself, on the new head, which may already have the epoch's files: that would
duplicate the epoch. So transactions are built here and sent once, conditional on the snapshot they were built on. Every
commit adds a snapshot, also for an empty epoch or a claim: properties alone move no head, so two such commits could
undo each other.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _pyarrow_to_schema_without_ids
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import _OverwriteFiles, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

from lockstep.errors import LockstepError, PreflightRefused, PublishBlocked, SinkUnavailable, TargetChanged, TargetOwned
from lockstep.observability.redaction import cause, describe_error
from lockstep.sinks.adopting import CommitOutcome
from lockstep.sinks.handles import SinkName
from lockstep.sinks.iceberg._catalogs import CatalogLink, RehearsalIO
from lockstep.sinks.iceberg._columns import partition_spec
from lockstep.sinks.iceberg._data_files import SealedDataFile, data_files
from lockstep.sinks.iceberg._markers import CompactionMarkers, EpochMarker, TableMarkers
from lockstep.sinks.values import SinkEpoch

OWNER = "lockstep.owner"
FORMATS = (1, 2)  #: versions of the table format that pyiceberg writes
#: Properties of created tables: without them each small commit leaves a manifest and a metadata file
_CREATED = {
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
}
_log = logging.getLogger(__name__)


class OverwriteFiles(_OverwriteFiles):
    """Builds an evaluator per manifest: pyiceberg shares one between threads, though it keeps the bounds of a
    manifest."""

    def _build_manifest_evaluator(self, spec_id: int) -> Callable[[ManifestFile], bool]:
        build = super()._build_manifest_evaluator
        return lambda manifest: build(spec_id)(manifest)


class ReplaceFiles(OverwriteFiles):
    """Marks the snapshot as `replace`: readers of changes skip it, because its rows are those of its parent."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        counted = super()._summary(snapshot_properties)  # pyiceberg counts only the three operations that it makes
        return Summary(Operation.REPLACE, **counted.additional_properties)


class _Building(Transaction):
    """Caches the metadata for a list of updates: pyiceberg copies every snapshot on each access."""

    _cached: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            return self._table.metadata
        if self._cached is None or self._cached[0] is not self._updates:
            self._cached = (self._updates, super().table_metadata)
        return self._cached[1]


@dataclass(frozen=True)
class Append:
    """Content of one commit: the files of an epoch, and columns that the table lacks. `removed`: files with replaced
    rows; `rewritten`: files with those of their other rows, written by compaction `number`."""

    epoch: SinkEpoch
    files: Sequence[SealedDataFile]
    rows: int
    columns: pa.Schema
    removed: Sequence[DataFile] = ()
    rewritten: Sequence[SealedDataFile] = ()
    number: int | None = None


@dataclass(frozen=True)
class LakeTable:
    """The table `name` of a connected catalog, on behalf of the sink `owner`."""

    link: CatalogLink
    owner: SinkName
    name: str

    @property
    def label(self) -> str:
        return self.link.label

    # --- looking ---

    def find(self) -> Table | None:
        """Load the table; None if the catalog has none. Raises `SinkUnavailable`, `PreflightRefused`."""
        with self.link.naming(f"loading table {self.name}"):
            try:
                return self.link.catalog.load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def load(self) -> Table:
        """Load the table. Raises `TargetChanged` if it is missing, or has another owner."""
        table = self.find()
        if table is None:
            raise TargetChanged(f"{self.label}: the catalog has lost table {self.name}: nothing was written")
        if owner_of(table) != self.owner:
            raise TargetChanged(
                f"{self.label}: table {self.name} is now {_owner_phrase(owner_of(table))}: nothing was written"
            )
        return table

    def markers(self, table: Table) -> TableMarkers:
        return TableMarkers(self.owner, table.properties, lambda path: _read(table, path))

    # --- owning ---

    def create(self, schema: pa.Schema, location: str, partition_by: Sequence[str]) -> Table:
        """Create the table with this owner, or load it if it was created concurrently. Raises `PreflightRefused`."""
        try:
            iceberg_schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))
        except (ValueError, TypeError, UnsupportedPyArrowTypeException) as error:
            raise PreflightRefused(f"{self.label}: Iceberg lacks a type for a column: {error}") from error
        spec = (
            partition_spec(iceberg_schema, partition_by, self.label) if partition_by else UNPARTITIONED_PARTITION_SPEC
        )
        properties = {
            **_CREATED,
            OWNER: _owner_json(self.owner),
            TableProperties.DEFAULT_NAME_MAPPING: _mapping(iceberg_schema),
        }
        with self.link.naming(f"creating table {self.name}"):
            self.link.catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            try:
                return self.link.catalog.create_table(self.name, iceberg_schema, location, spec, properties=properties)
            except TableAlreadyExistsError:
                return self.link.catalog.load_table(self.name)

    def claim(self) -> Table | None:
        """Make this sink the owner of an existing table. Raises `TargetOwned`, `PreflightRefused` for a catalog that
        ignores conditions of commits."""
        while (table := self.find()) is not None:
            owner = owner_of(table)
            if owner == self.owner:
                return table
            if owner is not None:
                raise TargetOwned(
                    f"{self.label}: table {self.name} is {_owner_phrase(owner)}: give each pipeline a separate table, "
                    f"or remove its property {OWNER} if that pipeline doesn't exist any more"
                )
            self._require_conditions(table)
            if self._send_owner(table, _owner_json(self.owner)) is CommitOutcome.UNKNOWN:
                raise SinkUnavailable(f"{self.label}: the outcome of claiming table {self.name} is unknown")
        return None

    def disclaim(self) -> None:
        """Give up the ownership, if any."""
        while (table := self.find()) is not None and owner_of(table) == self.owner:
            if self._send_owner(table, None) is CommitOutcome.UNKNOWN:
                raise SinkUnavailable(f"{self.label}: the outcome of giving up table {self.name} is unknown")

    def _send_owner(self, table: Table, owner: str | None) -> CommitOutcome:
        transaction = _Building(table)
        with transaction._append_snapshot_producer({"lockstep.owner": owner or "nobody"}):
            pass
        if owner is None:
            transaction.remove_properties(OWNER)
        else:
            transaction.set_properties({OWNER: owner})
        return self._send(table, transaction)

    def _require_conditions(self, table: Table) -> None:
        """Send a commit that must be refused, because it is for another table's id."""
        transaction = _Building(table).set_properties({"lockstep.condition": "ignored"})
        wrong_table = AssertTableUUID(uuid=uuid.uuid4())
        with self.link.naming("testing conditional commits"):
            try:
                self.link.catalog.commit_table(table, (wrong_table,), transaction._updates)
            except CommitFailedException:
                return
        raise PreflightRefused(
            f"{self.label}: the catalog applies a commit whose condition is false: two publishers would write an epoch "
            "twice; use a catalog with atomic compare-and-swap"
        )

    # --- writing ---

    def adopt(self, table: Table, adoption: Append) -> CommitOutcome:
        """Build the commit on the head `table`, and send it once. The files it writes are never deleted here: a delayed
        request may still need them. Raises `PublishBlocked` if it can't be built."""
        try:
            with self.link.naming(f"writing metadata of table {self.name}"):
                transaction = self._build(table, adoption)
        except LockstepError:
            raise
        except Exception as error:  # any error of pyiceberg
            raise PublishBlocked(
                f"{self.label}: table {self.name}: the commit of epoch {adoption.epoch.id} can't be built: "
                f"{describe_error(error)}: restore the table as it was when the epoch was decided"
            ) from cause(error, quotes=True)
        return self._send(table, transaction)

    def rehearse(self, table: Table, adoption: Append) -> None:
        """Build in memory the commit that `adopt` would send. Raises whatever prevents it from being built."""
        in_memory = Table((), table.metadata, table.metadata_location, RehearsalIO(table.io.properties), table.catalog)
        with self.link.naming(f"building a commit to table {self.name}"):
            self._build(in_memory, adoption)

    def _build(self, table: Table, adoption: Append) -> Transaction:
        epoch, transaction = adoption.epoch, _Building(table)
        if table.metadata.name_mapping() is None:
            transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: _mapping(table.schema())})
        _widen(transaction, adoption.columns)
        summary = {"lockstep.pipeline": self.owner.pipeline, "lockstep.sink": self.owner.sink}
        summary["lockstep.epoch"] = str(epoch.id)
        snapshot: _SnapshotProducer[Any] = (
            OverwriteFiles(Operation.OVERWRITE, transaction, table.io, snapshot_properties=summary)
            if epoch.replaced
            else transaction._append_snapshot_producer(summary)
        )
        with snapshot as producer:
            for data_file in adoption.removed:
                producer.delete_data_file(data_file)
            for file in data_files(transaction.table_metadata, [*adoption.files, *adoption.rewritten]):
                producer.append_data_file(file)
        marker = EpochMarker(
            epoch.id,
            epoch.token,
            epoch.manifest_hash,
            epoch.span,
            producer.snapshot_id,
            len(adoption.files),
            adoption.rows,
            tuple(old_epoch.id for old_epoch in epoch.replaced),
        )
        if adoption.number is not None:
            transaction.set_properties(self.compactions(table).with_done(adoption.number))
        folding = self.markers(table).add(marker)
        if folding.file is not None:
            path, data = folding.file
            with table.io.new_output(_below(table, path)).create(overwrite=True) as output:  # its name has its hash
                output.write(data)
        transaction.set_properties(dict(folding.updates))
        if folding.removals:
            transaction.remove_properties(*folding.removals)
        return transaction

    # --- compaction ---

    def compactions(self, table: Table) -> CompactionMarkers:
        return CompactionMarkers.of(self.owner, table.properties)

    def replace(
        self, table: Table, number: int, removed: Sequence[DataFile], added: Sequence[DataFile]
    ) -> CommitOutcome:
        """Replace files by others with the same rows, and record compaction `number`, by one commit on the head
        `table`, sent once."""
        with self.link.naming(f"writing metadata of table {self.name}"):
            transaction = _Building(table)
            summary = {"lockstep.compaction": str(number), "lockstep.sink": self.owner.sink}
            with ReplaceFiles(Operation.OVERWRITE, transaction, table.io, snapshot_properties=summary) as replacing:
                for file in removed:
                    replacing.delete_data_file(file)
                for file in added:
                    replacing.append_data_file(file)
            transaction.set_properties(self.compactions(table).with_done(number))
        return self._send(table, transaction)

    def fence(self, table: Table, number: int) -> CommitOutcome:
        """Make `number` the last compaction, without one."""
        with self.link.naming(f"writing metadata of table {self.name}"):
            transaction = _Building(table)
            with transaction._append_snapshot_producer({"lockstep.fence": str(number)}):
                pass
            transaction.set_properties(self.compactions(table).with_last(number))
        return self._send(table, transaction)

    def _send(self, table: Table, transaction: Transaction) -> CommitOutcome:
        metadata = table.metadata
        head = metadata.snapshot_by_name(MAIN_BRANCH)
        conditions: tuple[TableRequirement, ...] = (
            AssertTableUUID(uuid=metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": head.snapshot_id if head else None}),
            AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
        )
        try:
            with self.link.naming(f"committing to table {self.name}"):
                done = self.link.catalog.commit_table(table, conditions, transaction._updates)
        except CommitFailedException:
            return CommitOutcome.CONFLICT
        except Exception as error:  # the request may have been applied, whatever the error
            _log.info("%s: a commit has an unknown outcome: %s", self.label, error)
            self.link.last_failure = str(error) if isinstance(error, LockstepError) else type(error).__name__
            return CommitOutcome.UNKNOWN
        self._forget_old_metadata(table, done.metadata)
        return CommitOutcome.APPLIED

    def _forget_old_metadata(self, table: Table, now: object) -> None:
        """Apply `write.metadata.delete-after-commit`."""
        try:
            self.link.catalog._delete_old_metadata(table.io, table.metadata, now)  # type: ignore[arg-type]
        except Exception as error:  # the commit is applied
            _log.info("%s: old metadata of table %s was not deleted: %s", self.label, self.name, error)


def widened(table: Table, columns: pa.Schema) -> TableMetadata:
    """The metadata as it would be with these columns added."""
    return _widen(_Building(table), columns).table_metadata


def _widen(transaction: Transaction, columns: pa.Schema) -> Transaction:
    if columns.names:
        with transaction.update_schema() as update:
            update.union_by_name(columns)
    return transaction


def owner_of(table: Table) -> SinkName | None:
    """The sink that has claimed the table. Raises `TargetOwned` if the property is malformed."""
    text = table.properties.get(OWNER)
    if text is None:
        return None
    try:
        content = json.loads(text)
        return SinkName(str(content["deployment"]), str(content["pipeline"]), str(content["sink"]))
    except (ValueError, KeyError, TypeError) as error:
        raise TargetOwned(f"the table's property {OWNER} isn't Lockstep's: remove it by hand") from error


def target_id_of(table: Table) -> str:
    """Id of this table, which a recreated table doesn't share."""
    return str(table.metadata.table_uuid)


def _owner_json(owner: SinkName) -> str:
    content = {"deployment": owner.deployment, "pipeline": owner.pipeline, "sink": owner.sink}
    return json.dumps(content, sort_keys=True)


def _owner_phrase(owner: SinkName | None) -> str:
    if owner is None:
        return "owned by no sink"
    return f"owned by sink {owner.sink} of pipeline {owner.pipeline}, deployment {owner.deployment}"


def _mapping(schema: Schema) -> str:
    return schema.name_mapping.model_dump_json()


def _below(table: Table, path: str) -> str:
    return f"{table.location().rstrip('/')}/{path}"


def _read(table: Table, path: str) -> bytes:
    with closing(table.io.new_input(_below(table, path)).open()) as file:
        return bytes(file.read())

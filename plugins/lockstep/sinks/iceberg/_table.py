"""One table of a catalog as Lockstep sees it: loaded afresh, claimed by a property, changed by conditional commits.

pyiceberg tries a commit that meets another one again by itself, on the new head, where an epoch's files may stand
already: that doubles the epoch. So its transactions are built here, and sent once, with the snapshot that they were
built on as a requirement. Every commit of ours makes a snapshot, of an empty epoch and of a claim too: properties alone
would move no head, and two such commits could undo each other.
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
from lockstep.sinks.iceberg._markers import Compactions, EpochMarker, TableMarkers
from lockstep.sinks.values import SinkEpoch

OWNER = "lockstep.owner"
FORMATS = (1, 2)  #: versions of the table format that pyiceberg writes
#: Of tables that are made here: small commits would leave a manifest and a metadata file each.
_CREATED = {
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
}
_log = logging.getLogger(__name__)


class OverwriteFiles(_OverwriteFiles):
    """pyiceberg asks one evaluator from several threads, and it keeps the bounds of the manifest that it is at."""

    def _build_manifest_evaluator(self, spec_id: int) -> Callable[[ManifestFile], bool]:
        build = super()._build_manifest_evaluator
        return lambda manifest: build(spec_id)(manifest)


class ReplaceFiles(OverwriteFiles):
    """Readers of changes pass over such a snapshot: its rows are those of the one before."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        counted = super()._summary(snapshot_properties)  # pyiceberg counts only the three operations that it makes
        return Summary(Operation.REPLACE, **counted.additional_properties)


class _Building(Transaction):
    """Works the metadata out once for so many updates: pyiceberg copies every snapshot at each look."""

    _known: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            return self._table.metadata
        if self._known is None or self._known[0] is not self._updates:
            self._known = (self._updates, super().table_metadata)
        return self._known[1]


@dataclass(frozen=True)
class Adoption:
    """What one commit adds: the files of an epoch, and columns that the table lacks. `removed`: files that go with the
    rows whose place they take, and `rests`, written by compaction `number`, have what is to stay of these."""

    epoch: SinkEpoch
    files: Sequence[SealedDataFile]
    rows: int
    columns: pa.Schema
    removed: Sequence[DataFile] = ()
    rests: Sequence[SealedDataFile] = ()
    number: int | None = None


@dataclass(frozen=True)
class LakeTable:
    """The table `name` of a connected catalog, for the sink `owner`."""

    link: CatalogLink
    owner: SinkName
    name: str

    @property
    def who(self) -> str:
        return self.link.who

    # --- looking ---

    def find(self) -> Table | None:
        """As it is now, or None where the catalog has none. Raises `SinkUnavailable`, `PreflightRefused`."""
        with self.link.naming(f"loading table {self.name}"):
            try:
                return self.link.catalog.load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def load(self) -> Table:
        """As it is now. Raises `TargetChanged` if it is gone, or belongs to somebody else by now."""
        table = self.find()
        if table is None:
            raise TargetChanged(f"{self.who}: the catalog has no table {self.name} any more: nothing was written")
        if owner_of(table) != self.owner:
            raise TargetChanged(f"{self.who}: table {self.name} is {_told(owner_of(table))} now: nothing was written")
        return table

    def markers(self, table: Table) -> TableMarkers:
        return TableMarkers(self.owner, table.properties, lambda path: _read(table, path))

    # --- owning ---

    def create(self, schema: pa.Schema, location: str, partition_by: Sequence[str]) -> Table:
        """Make it, ours; or load it if somebody else was quicker. Raises `PreflightRefused`."""
        fresh = assign_fresh_schema_ids(_unnumbered(schema, self.who))
        spec = partition_spec(fresh, partition_by, self.who) if partition_by else UNPARTITIONED_PARTITION_SPEC
        told = {**_CREATED, OWNER: _owner(self.owner), TableProperties.DEFAULT_NAME_MAPPING: _mapping(fresh)}
        with self.link.naming(f"creating table {self.name}"):
            self.link.catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            try:
                return self.link.catalog.create_table(self.name, fresh, location, spec, properties=told)
            except TableAlreadyExistsError:
                return self.link.catalog.load_table(self.name)

    def claim(self) -> Table | None:
        """Have a table that is there belong to this sink. Raises `TargetOwned`, `PreflightRefused` of a catalog whose
        commits have no conditions."""
        while (table := self.find()) is not None:
            owner = owner_of(table)
            if owner == self.owner:
                return table
            if owner is not None:
                raise TargetOwned(
                    f"{self.who}: table {self.name} is {_told(owner)}: give each pipeline a table of its own, or take "
                    f"its property {OWNER} away if that pipeline is gone"
                )
            self._require_conditions(table)
            if self._send_owner(table, _owner(self.owner)) is CommitOutcome.UNKNOWN:
                raise SinkUnavailable(f"{self.who}: the catalog didn't say whether table {self.name} is claimed")
        return None

    def disclaim(self) -> None:
        """Own it no longer; fine where that was never so."""
        while (table := self.find()) is not None and owner_of(table) == self.owner:
            if self._send_owner(table, None) is CommitOutcome.UNKNOWN:
                raise SinkUnavailable(f"{self.who}: the catalog didn't say whether table {self.name} is let go")

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
        """Try a commit that must be refused: it is for a table that isn't there."""
        transaction = _Building(table).set_properties({"lockstep.condition": "ignored"})
        other = AssertTableUUID(uuid=uuid.uuid4())
        with self.link.naming("trying whether the catalog keeps conditions"):
            try:
                self.link.catalog.commit_table(table, (other,), transaction._updates)
            except CommitFailedException:
                return
        raise PreflightRefused(
            f"{self.who}: the catalog applies a commit whose condition doesn't hold: two publishers would write an "
            "epoch twice; use a catalog that compares and swaps"
        )

    # --- writing ---

    def adopt(self, table: Table, adoption: Adoption) -> CommitOutcome:
        """Build the one commit on the head that `table` is, and send it once. Nothing that it wrote is ever deleted
        here: a late request may still need it. Raises `PublishBlocked` if it can't be built."""
        try:
            with self.link.naming(f"writing metadata of table {self.name}"):
                transaction = self._build(table, adoption)
        except LockstepError:
            raise
        except Exception as error:  # of a library that makes manifests
            raise PublishBlocked(
                f"{self.who}: table {self.name}: the commit of epoch {adoption.epoch.id} can't be built: "
                f"{describe_error(error)}: have the table as it was when the epoch was decided"
            ) from cause(error, quotes=True)
        return self._send(table, transaction)

    def rehearse(self, table: Table, adoption: Adoption) -> None:
        """Build the very commit that `adopt` would send, in memory. Raises whatever keeps it from being built."""
        in_memory = Table((), table.metadata, table.metadata_location, RehearsalIO(table.io.properties), table.catalog)
        with self.link.naming(f"building a commit to table {self.name}"):
            self._build(in_memory, adoption)

    def _build(self, table: Table, adoption: Adoption) -> Transaction:
        epoch, transaction = adoption.epoch, _Building(table)
        if table.metadata.name_mapping() is None:
            transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: _mapping(table.schema())})
        _widen(transaction, adoption.columns)
        told = {"lockstep.pipeline": self.owner.pipeline, "lockstep.sink": self.owner.sink}
        with self._producer(transaction, table, adoption, {**told, "lockstep.epoch": str(epoch.id)}) as producer:
            for old in adoption.removed:
                producer.delete_data_file(old)
            for file in data_files(transaction.table_metadata, [*adoption.files, *adoption.rests]):
                producer.append_data_file(file)
        counts, replaced = (len(adoption.files), adoption.rows), tuple(one.id for one in epoch.replaced)
        proof = (epoch.id, epoch.token, epoch.manifest_hash, epoch.span)
        marker = EpochMarker(*proof, producer.snapshot_id, *counts, replaced)
        if adoption.number is not None:
            transaction.set_properties(self.compactions(table).with_done(adoption.number))
        folding = self.markers(table).add(marker)
        if folding.file is not None:
            path, data = folding.file
            with table.io.new_output(_below(table, path)).create(overwrite=True) as output:  # named by what it holds
                output.write(data)
        transaction.set_properties(dict(folding.updates))
        if folding.removals:
            transaction.remove_properties(*folding.removals)
        return transaction

    def _producer(
        self, transaction: Transaction, table: Table, adoption: Adoption, told: dict[str, str]
    ) -> _SnapshotProducer[Any]:
        if not adoption.epoch.replaced:
            return transaction._append_snapshot_producer(told)
        return OverwriteFiles(Operation.OVERWRITE, transaction, table.io, snapshot_properties=told)

    # --- compaction ---

    def compactions(self, table: Table) -> Compactions:
        """Those that the table knows of."""
        return Compactions.of(self.owner, table.properties)

    def replace(self, table: Table, number: int, old: Sequence[DataFile], new: Sequence[DataFile]) -> CommitOutcome:
        """Take files out and others in, which hold the same rows, by one commit on the head that `table` is; sent once.
        The table knows compaction `number` from then on."""
        with self.link.naming(f"writing metadata of table {self.name}"):
            transaction = _Building(table)
            told = {"lockstep.compaction": str(number), "lockstep.sink": self.owner.sink}
            with ReplaceFiles(Operation.OVERWRITE, transaction, table.io, snapshot_properties=told) as replacing:
                for file in old:
                    replacing.delete_data_file(file)
                for file in new:
                    replacing.append_data_file(file)
            transaction.set_properties(self.compactions(table).with_done(number))
        return self._send(table, transaction)

    def fence(self, table: Table, number: int) -> CommitOutcome:
        """Have `number` be the last compaction, though there was none."""
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
        except Exception as error:  # whatever it is, the request may have come as far as it was to come
            _log.info("%s: no answer that tells: %s", self.who, error)
            self.link.last_failure = str(error) if isinstance(error, LockstepError) else type(error).__name__
            return CommitOutcome.UNKNOWN
        self._forget_old_metadata(table, done.metadata)
        return CommitOutcome.APPLIED

    def _forget_old_metadata(self, table: Table, now: object) -> None:
        """What `write.metadata.delete-after-commit` asks of whoever commits."""
        try:
            self.link.catalog._delete_old_metadata(table.io, table.metadata, now)  # type: ignore[arg-type]
        except Exception as error:  # the commit stands
            _log.info("%s: old metadata of table %s is left: %s", self.who, self.name, error)


def widened(table: Table, columns: pa.Schema) -> TableMetadata:
    """As it would be with these columns, too."""
    return _widen(_Building(table), columns).table_metadata


def _widen(transaction: Transaction, columns: pa.Schema) -> Transaction:
    if columns.names:
        with transaction.update_schema() as update:
            update.union_by_name(columns)
    return transaction


def owner_of(table: Table) -> SinkName | None:
    """The sink that has claimed the table. Raises `TargetOwned` if its claim can't be read."""
    text = table.properties.get(OWNER)
    if text is None:
        return None
    try:
        told = json.loads(text)
        return SinkName(str(told["deployment"]), str(told["pipeline"]), str(told["sink"]))
    except (ValueError, KeyError, TypeError) as error:
        raise TargetOwned(f"the table's property {OWNER} isn't Lockstep's: take it away by hand") from error


def target_id_of(table: Table) -> str:
    """The id that a table gets when it is made: one that is dropped and made anew has another one."""
    return str(table.metadata.table_uuid)


def _owner(owner: SinkName) -> str:
    told = {"deployment": owner.deployment, "pipeline": owner.pipeline, "sink": owner.sink}
    return json.dumps(told, sort_keys=True)


def _told(owner: SinkName | None) -> str:
    if owner is None:
        return "nobody's"
    return f"that of sink {owner.sink} of pipeline {owner.pipeline}, deployment {owner.deployment}"


def _mapping(schema: Schema) -> str:
    return schema.name_mapping.model_dump_json()


def _unnumbered(schema: pa.Schema, who: str) -> Schema:
    try:
        return _pyarrow_to_schema_without_ids(schema)
    except (ValueError, TypeError, UnsupportedPyArrowTypeException) as error:
        raise PreflightRefused(f"{who}: Iceberg has no type for a column: {error}") from error


def _below(table: Table, path: str) -> str:
    return f"{table.location().rstrip('/')}/{path}"


def _read(table: Table, path: str) -> bytes:
    with closing(table.io.new_input(_below(table, path)).open()) as file:
        return bytes(file.read())

"""DeltaSink, connected to its table: each look at it is one fresh load of its log."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetOwned,
)
from lockstep.sinks.adopting import AdoptingSink, Answer
from lockstep.sinks.delta._columns import delta_schema, new_columns, refuse_unkept, refuse_zoned, required_columns
from lockstep.sinks.delta._markers import TxnMarkers
from lockstep.sinks.delta._statistics import each_null_count, partition_values, statistics
from lockstep.sinks.durable_file import sync_folder
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Adoptable, AdoptableFile, Marker, SinkContext, SinkEpoch

if TYPE_CHECKING:
    from lockstep.sinks.delta._sink import DeltaSink

OWNER = "lockstep.owner"  #: the table's property that says whose it is
CHECKPOINT_EVERY = 100  #: versions
_LOG = "_delta_log"
_CLAIMS = 20
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)  # nothing that isn't durable
_log = logging.getLogger(__name__)


class OpenDeltaSink(AdoptingSink[DeltaTable]):
    """One process' view of the table."""

    def __init__(self, sink: DeltaSink, context: SinkContext) -> None:
        super().__init__(sink)
        self._described = sink
        self._owner = SinkName.of(context, sink.name)
        self._markers = TxnMarkers(self._owner)
        self._whose = f"{self._owner.deployment}/{self._owner.pipeline}/{self._owner.sink}"

    # --- life cycle ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        path = Path(self._described.path)
        if path.exists() and not path.is_dir():
            raise PreflightRefused(f"sink {self.name}: {path} is not a folder; give this sink another path")
        if schemas is not None and self.sink.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.sink.output!r} among {list(schemas)}")
        table = self._find()
        if table is None and not self._described.create:
            raise PreflightRefused(
                f"sink {self.name}: there is no Delta table at {path}: make it, with a column "
                f"{self._described.epoch_column} BIGINT, or say create=True"
            )
        if table is None and schemas is not None:
            table = self._create(schemas[self.sink.output])
            self._make_place_durable(path)
        if table is not None:
            table = self._claimed(table)
            self._require_fit(table, schemas)
        if table is not None and schemas is not None:
            self.adds_columns = bool(new_columns(self.name, table, schemas[self.sink.output]))

    def _make_place_durable(self, path: Path) -> None:
        with self._reaching(), suppress(PermissionError):  # who may not read it has not made the table's folder
            sync_folder(path.parent)

    def _require_fit(self, table: DeltaTable, schemas: Mapping[str, pa.Schema] | None) -> None:
        refuse_unkept(self.name, table)
        self._require_partitions(table)
        columns = [] if schemas is None else list(schemas[self.sink.output])
        found = new_columns(self.name, table, pa.schema([*columns, self._epoch_field()]))
        if any(column.name == self._described.epoch_column for column in found):
            raise PreflightRefused(
                f"sink {self.name}: the table has no column {self._described.epoch_column}, by which its epochs are "
                "told apart: add it as BIGINT, or name another one as epoch_column"
            )
        if found and self._described.on_new_columns == "refuse":
            raise PreflightRefused(
                f"sink {self.name}: the table lacks the columns {', '.join(column.name for column in found)}: add "
                "them, leave them out in the transform, or say on_new_columns='add'"
            )

    def _epoch_field(self) -> pa.Field:
        return pa.field(self._described.epoch_column, pa.int64())

    def _require_partitions(self, table: DeltaTable) -> None:
        found, told = table.metadata().partition_columns, list(self._described.partition_by)
        if told and told != found:
            raise PreflightRefused(
                f"sink {self.name}: the table is partitioned by {', '.join(found) or 'nothing'}, the sink says "
                f"{', '.join(told)}: correct partition_by"
            )
        refuse_zoned(self.name, table.schema(), found)

    def _create(self, schema: pa.Schema) -> DeltaTable:
        if self._described.epoch_column in schema.names:
            raise PreflightRefused(
                f"sink {self.name}: the output has a column {self._described.epoch_column}: rename it, or the sink's "
                "epoch_column"
            )
        columns = delta_schema(self.name, pa.schema([*schema, self._epoch_field()]))
        missing = sorted(set(self._described.partition_by) - {column.name for column in columns.fields})
        if missing:
            raise PreflightRefused(f"sink {self.name}: the output has no columns {missing} to partition by")
        refuse_zoned(self.name, columns, self._described.partition_by)
        with self._reaching(), suppress(DeltaError):  # somebody else's table is found, and looked at, below
            DeltaTable.create(
                self._described.path,
                columns,
                mode="error",
                partition_by=list(self._described.partition_by),
                configuration={OWNER: self._whose},
                raise_if_key_not_exists=False,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            )
        table = self.load_head()
        self.make_durable(table)
        return table

    def _claimed(self, table: DeltaTable) -> DeltaTable:
        """The table, once it is this sink's. Raises `TargetOwned`."""
        for _ in range(_CLAIMS):
            owner = table.metadata().configuration.get(OWNER)
            if owner == self._whose:
                return table
            if owner:
                raise TargetOwned(self._said_of(owner))
            self._set_owner(table, self._whose)
            table = self.load_head()
        raise SinkUnavailable(f"sink {self.name}: the table changes faster than it can be claimed; it is tried again")

    def _require_own(self, table: DeltaTable) -> None:
        """Raises `TargetChanged` for what another sink has claimed since the vote."""
        if (owner := table.metadata().configuration.get(OWNER)) and owner != self._whose:
            raise TargetChanged(f"{self._said_of(owner)}; nothing was written")

    def _said_of(self, owner: str) -> str:
        return (
            f"sink {self.name}: the table {self._described.path} belongs to {owner} by its property {OWNER}: give "
            "every sink a table of its own"
        )

    def _set_owner(self, table: DeltaTable, owner: str) -> None:
        with self._reaching(), suppress(CommitFailedError):
            table.alter.set_table_properties(
                {OWNER: owner},
                raise_if_not_exists=False,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            )

    def disclaim(self) -> None:
        table = self._find()
        if table is not None and table.metadata().configuration.get(OWNER) == self._whose:
            self._set_owner(table, "")

    # --- the template ---

    def load_head(self) -> DeltaTable:
        table = self._find()
        if table is None:
            raise TargetChanged(f"sink {self.name}: there is no Delta table at {self._described.path}: put it back")
        return table

    def _find(self) -> DeltaTable | None:
        with self._reaching():
            try:
                return DeltaTable(self._described.path)
            except TableNotFoundError:
                return None

    def target_of(self, head: DeltaTable) -> str:
        return str(head.metadata().id)

    def marker_in(self, head: DeltaTable, epoch: int) -> Marker | None:
        with self._reaching():
            return self._markers.of(head, epoch)

    def marker_of_span_in(self, head: DeltaTable, span: str) -> Marker | None:
        with self._reaching():
            return self._markers.of_span(head, span)

    def validate(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> None:
        self._require_fit(head, {output.output: output.schema})
        self._add_actions(head, output)

    def _add_actions(self, head: DeltaTable, output: Adoptable) -> list[AddAction | RemoveAction]:
        """Of every file that has rows. Raises `SinkRejected` for one that the table can't take."""
        required, found = required_columns(head), list[AddAction | RemoveAction]()
        for file, footer in output.footers():
            if not file.rows:
                continue
            nulls = dict(each_null_count(footer))
            if wrong := [name for name in required if nulls.get(name) != 0]:
                raise SinkRejected(
                    f"sink {self.name}: {file.path} has nulls in {', '.join(wrong)}, or may have, where the table has "
                    "NOT NULL"
                )
            found.append(self._add_action(head, file, footer))
        return found

    def adopt(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> Answer:
        self._require_own(head)
        try:
            self._require_fit(head, {output.output: output.schema})
            adds = self._add_actions(head, output)
        except (PreflightRefused, SinkRejected) as error:
            raise PublishBlocked(f"epoch {epoch.id} was decided before the table was changed: {error}") from error
        if lacking := new_columns(self.name, head, output.schema):
            return self._add_columns(head, lacking)
        properties = CommitProperties(
            custom_metadata={"lockstep.epoch": str(epoch.id), "lockstep.manifest": epoch.manifest_hash},
            max_commit_retries=0,
            app_transactions=self._markers.transactions(head, epoch, output.rows),
        )
        partitions = head.metadata().partition_columns
        return self._send(
            head,
            lambda: head.create_write_transaction(
                adds,
                "append",
                head.schema(),
                partitions,
                commit_properties=properties,
                post_commithook_properties=_NO_HOOKS,
            ),
        )

    def _add_columns(self, head: DeltaTable, columns: list[Field]) -> Answer:
        """A commit of its own, after which the table is looked at anew: it shows nothing of the epoch."""
        answer = self._send(
            head,
            lambda: head.alter.add_columns(
                columns,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            ),
        )
        return Answer.CONFLICT if answer is Answer.APPLIED else answer

    def _send(self, head: DeltaTable, commit: Callable[[], object]) -> Answer:
        """Raises `PublishBlocked` where the library refuses the commit though nobody else made one."""
        try:
            commit()
        except CommitFailedError as error:
            _log.info("sink %s: %s", self.name, _first_line(error))
            if self.load_head().version() == head.version():
                raise PublishBlocked(
                    f"sink {self.name}: deltalake refuses the commit, and nobody else made one: {_first_line(error)}"
                ) from error
            return Answer.CONFLICT
        except (DeltaError, OSError) as error:
            _log.warning(
                "sink %s: a commit was answered with %s: %s", self.name, type(error).__name__, _first_line(error)
            )
            return Answer.UNKNOWN
        return Answer.APPLIED

    def _add_action(self, head: DeltaTable, file: AdoptableFile, footer: pq.FileMetaData) -> AddAction:
        partitions = partition_values(self.name, file.path, footer, head.metadata().partition_columns)
        modified = int((Path(self._described.path) / file.path).stat().st_mtime * 1000)
        return AddAction(
            file.path, file.bytes, partitions, modified, True, statistics(footer, self._described.epoch_column)
        )

    def make_durable(self, head: DeltaTable) -> None:
        """All of the log: an entry that is lost hides every later one."""
        log = Path(self._described.path) / _LOG
        with self._reaching():
            _sync_files(log.iterdir())
            for folder in (log, log.parent):
                sync_folder(folder)
        if head.version() and head.version() % CHECKPOINT_EVERY == 0:
            self._checkpoint(head, log)

    def _checkpoint(self, head: DeltaTable, log: Path) -> None:
        """For whoever reads the log; nothing of Lockstep's rests on it."""
        try:
            head.create_checkpoint()
            _sync_files(path for path in log.iterdir() if "checkpoint" in path.name)
            sync_folder(log)
        except (DeltaError, OSError) as error:
            _log.warning("sink %s: no checkpoint of version %s was made: %s", self.name, head.version(), error)

    # --- recovery and verification ---

    def newest_markers(self) -> list[Marker]:
        table = self._find()
        return self._markers.newest(table) if table is not None else []

    def markers(self) -> Iterator[Marker]:
        yield from self._markers.all(self.load_head())

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows that the table shows of an epoch, whichever files they are in by now.

        Raises `TargetChanged` if rows that were published are gone: rolled back, deleted, or put under another epoch.
        """
        if output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {output!r}")
        table, found = self.load_head(), 0
        absent = [name for name in schema.names if name not in {column.name for column in table.schema().fields}]
        if absent:
            raise TargetChanged(f"sink {self.name}: the table has lost the columns {', '.join(absent)}")
        with self._reaching():
            column = self._described.epoch_column.replace('"', '""')
            rows = pa.RecordBatchReader.from_stream(table.scan(columns=schema.names, predicate=f'"{column}" = {epoch}'))
            for batch in rows:
                found += batch.num_rows
                yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
        published = self._markers.rows(table, epoch)
        if published is not None and found < published:
            raise TargetChanged(
                f"sink {self.name}: the table shows {found} of the {published} rows that epoch {epoch} brought, at "
                f"version {table.version()}: somebody has rolled it back, or deleted or changed them (its history "
                "tells who); the epoch stays published, nothing is written again"
            )

    # --- errors ---

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """What the storage or the log refuses becomes `SinkUnavailable`."""
        try:
            yield
        except TableNotFoundError:
            raise
        except (DeltaError, OSError) as error:
            raise SinkUnavailable(
                f"sink {self.name}: the table {self._described.path} can't be read or written now: {_first_line(error)}"
            ) from error


def _first_line(error: Exception) -> str:
    """Without the trace of the library's own calls."""
    return str(error).partition("\n")[0]


def _sync_files(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError, IsADirectoryError):  # of a log that is cleaned up meanwhile
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

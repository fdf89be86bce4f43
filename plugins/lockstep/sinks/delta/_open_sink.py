"""DeltaSink connected to its table. Every call loads the log again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from lockstep.definition.ddl import quote_name
from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetOwned,
)
from lockstep.observability.suggestions import REPLAN
from lockstep.sinks.adopting import PUT_BACK, AdoptingSink, CommitOutcome
from lockstep.sinks.delta._columns import (
    delta_schema,
    new_columns,
    partition_values,
    plain_columns,
    refuse_changed_protocol,
    refuse_unsupported,
    refuse_zoned_partitions,
    required_columns,
    statistics,
)
from lockstep.sinks.delta._compacting import DeltaCompaction
from lockstep.sinks.delta._locations import location_of
from lockstep.sinks.delta._log import TxnMarkers, log_entry_of, metadata_action, needs_raw_entry
from lockstep.sinks.handles import SinkName
from lockstep.sinks.row_removal import NOTHING, RowRemover
from lockstep.sinks.values import Adoptable, EpochCut, Marker, ReadCut, SinkContext, SinkEpoch

if TYPE_CHECKING:
    from lockstep.sinks.delta import DeltaSink

OWNER = "lockstep.owner"  #: the table's property that names the sink
CHECKPOINT_EVERY = 100  #: versions
_CLAIMS = 20
_RESTAGE = (
    "set partition_by=[…] in the sink, as in the table, so that each partition is staged as separate files, and "
    f"{REPLAN} the epoch; with more than 1000 partitions, repartition by them in the transform"
)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)  # they don't fsync
_log = logging.getLogger(__name__)


class OpenDeltaSink(AdoptingSink[DeltaTable]):
    """The table as one process sees it."""

    def __init__(self, sink: DeltaSink, context: SinkContext) -> None:
        super().__init__(sink)
        self._definition = sink
        self._location = location_of(sink.path)
        self._owner = SinkName.of(context, sink.name)
        self._markers = TxnMarkers(self._owner)
        self._owner_text = f"{self._owner.deployment}/{self._owner.pipeline}/{self._owner.sink}"
        self._last_failure: str | None = None
        self._row_remover: RowRemover[DeltaTable] | None = None

    # --- life cycle ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._location.require_usable(self.name)
        if schemas is not None and self.sink.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.sink.output!r} among {list(schemas)}")
        table = self._find()
        if table is None and not self._definition.create:
            raise PreflightRefused(
                f"sink {self.name}: there is no Delta table at {self._location.uri}: create it, with a column "
                f"{self._definition.epoch_column} BIGINT, or set create=True"
            )
        if table is None and schemas is not None:
            table = self._create(schemas[self.sink.output])
            with self._storage_errors():
                self._location.make_new_durable()
        if table is not None:
            refuse_unsupported(self.name, table)  # such a table can't be claimed either
            table = self._claim(table)
            self._require_fit(table, schemas)
            for warning in self.warnings():
                _log.warning("%s", warning)
        if table is not None and schemas is not None:
            self.adds_columns = bool(new_columns(self.name, table, schemas[self.sink.output]))

    def _require_fit(self, table: DeltaTable, schemas: Mapping[str, pa.Schema] | None) -> None:
        refuse_unsupported(self.name, table)
        columns = None if schemas is None else list(schemas[self.sink.output])
        self._require_partitions(table, columns)
        missing = new_columns(self.name, table, pa.schema([*(columns or []), self._epoch_field()]))
        if any(column.name == self._definition.epoch_column for column in missing):
            raise PreflightRefused(
                f"sink {self.name}: the table has no column {self._definition.epoch_column} for the epoch's number: "
                "add it as BIGINT, or name another one as epoch_column"
            )
        if missing and self._definition.on_new_columns == "refuse":
            raise PreflightRefused(
                f"sink {self.name}: the table lacks the columns {', '.join(column.name for column in missing)}: add "
                "them, drop them in the transform, or set on_new_columns='add'"
            )

    def _epoch_field(self) -> pa.Field:
        return pa.field(self._definition.epoch_column, pa.int64())

    def _require_partitions(self, table: DeltaTable, columns: Sequence[pa.Field] | None) -> None:
        actual, declared = table.metadata().partition_columns, list(self._definition.partition_by)
        if declared and declared != actual:
            raise PreflightRefused(
                f"sink {self.name}: the table is partitioned by {', '.join(actual) or 'nothing'}, the sink says "
                f"{', '.join(declared)}: correct partition_by"
            )
        refuse_zoned_partitions(self.name, table.schema(), actual)
        if columns is not None and (lacking := sorted(set(actual) - {column.name for column in columns})):
            raise PreflightRefused(
                f"sink {self.name}: the table is partitioned by {', '.join(lacking)}, which the output lacks: add it "
                "in the transform"
            )

    def _create(self, schema: pa.Schema) -> DeltaTable:
        if self._definition.epoch_column in schema.names:
            raise PreflightRefused(
                f"sink {self.name}: the output has a column {self._definition.epoch_column}: rename it, or the sink's "
                "epoch_column"
            )
        columns = delta_schema(self.name, pa.schema([*schema, self._epoch_field()]))
        missing = sorted(set(self._definition.partition_by) - {column.name for column in columns.fields})
        if missing:
            raise PreflightRefused(f"sink {self.name}: the output has no columns {missing} to partition by")
        refuse_zoned_partitions(self.name, columns, self._definition.partition_by)
        with self._storage_errors():
            self._location.require_exclusive(self.name)
        with self._storage_errors(), suppress(DeltaError):  # a table created concurrently is loaded below
            DeltaTable.create(
                self._location.uri,
                columns,
                mode="error",
                partition_by=list(self._definition.partition_by),
                configuration={OWNER: self._owner_text},
                raise_if_key_not_exists=False,
                storage_options=self._location.options,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            )
        table = self.load_head()
        self.make_durable(table)
        return table

    def _claim(self, table: DeltaTable) -> DeltaTable:
        """Make this sink the table's owner. Raises `TargetOwned`."""
        for _ in range(_CLAIMS):
            owner = table.metadata().configuration.get(OWNER)
            if owner == self._owner_text:
                return table
            if owner:
                raise TargetOwned(self._owner_message(owner))
            with self._storage_errors():
                self._location.require_exclusive(self.name)
            self._set_owner(table, self._owner_text)
            table = self.load_head()
        raise SinkUnavailable(f"sink {self.name}: the table changes faster than it can be claimed; this is retried")

    def _require_own(self, table: DeltaTable) -> None:
        """Raise `TargetChanged` if another sink has claimed the table since the vote."""
        if (owner := table.metadata().configuration.get(OWNER)) and owner != self._owner_text:
            raise TargetChanged(f"{self._owner_message(owner)}; nothing was written")

    def _owner_message(self, owner: str) -> str:
        return (
            f"sink {self.name}: the table {self._location.uri} belongs to {owner} according to its property {OWNER}: "
            "give every sink a separate table"
        )

    def _set_owner(self, table: DeltaTable, owner: str) -> None:
        refuse_changed_protocol(self.name, table, owner)
        with self._storage_errors(), suppress(CommitFailedError):
            table.alter.set_table_properties(
                {OWNER: owner},
                raise_if_not_exists=False,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            )

    def warnings(self) -> list[str]:
        """Warnings found in the newest log entries."""
        with self._storage_errors():
            entries = table.history(20) if (table := self._find()) else []
        if not any(entry.get("engineInfo", "").startswith("Apache-Spark") for entry in entries):
            return []
        return [
            f"sink {self.name}: Spark has written to {self._location.uri}: Delta for Spark may replace a log entry "
            "that another writer has just created, in folders and on S3; let it write only while no epoch is published"
        ]

    def require_replaceable(self) -> None:
        table = self._find()
        if table is not None and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
            raise PreflightRefused(
                f"sink {self.name}: the table has delta.appendOnly=true, so its rows can't be replaced: remove that "
                "property, or keep the epoch as it is"
            )

    def disclaim(self) -> None:
        table = self._find()
        if table is not None and table.metadata().configuration.get(OWNER) == self._owner_text:
            self._set_owner(table, "")

    # --- AdoptingSink ---

    def load_head(self) -> DeltaTable:
        table = self._find()
        if table is None:
            raise TargetChanged(f"sink {self.name}: there is no Delta table at {self._location.uri}: restore it")
        return table

    def _find(self) -> DeltaTable | None:
        with self._storage_errors():
            try:
                return self._location.load()
            except TableNotFoundError:
                return None

    def target_of(self, head: DeltaTable) -> str:
        return str(head.metadata().id)

    def marker_in(self, head: DeltaTable, epoch: int) -> Marker | None:
        with self._storage_errors():
            return self._markers.of(head, epoch)

    def marker_of_span_in(self, head: DeltaTable, span: str) -> Marker | None:
        with self._storage_errors():
            return self._markers.of_span(head, span)

    def has_replaced(self, head: DeltaTable, epoch: int) -> bool:
        with self._storage_errors():
            return self._markers.replaced_by(head, epoch) is not None

    def validate(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> None:
        self._require_fit(head, {output.output: output.schema})
        self._add_actions(head, output, _RESTAGE)

    def _add_actions(self, head: DeltaTable, output: Adoptable, remedy: str = "") -> list[AddAction | RemoveAction]:
        """One action per non-empty file. Raises `SinkRejected` for a file that the table can't take; `remedy`: for rows
        of several partitions."""
        required, partition_by = required_columns(head), head.metadata().partition_columns
        actions = list[AddAction | RemoveAction]()
        for file, facts in output.facts():
            if not file.rows:
                continue
            columns = plain_columns(facts)
            if wrong := [name for name in required if name not in columns or columns[name].nulls != 0]:
                raise SinkRejected(
                    f"sink {self.name}: {file.path} has, or may have, nulls in {', '.join(wrong)}, which the table "
                    "declares NOT NULL"
                )
            partitions = partition_values(self.name, file.path, facts, partition_by, remedy)
            stats, modified = statistics(facts, self._definition.epoch_column), self._location.modified(file.path)
            actions.append(AddAction(file.path, file.bytes, partitions, modified, True, stats))
        return actions

    def adopt(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        self._require_own(head)
        try:
            self._require_fit(head, {output.output: output.schema})
            additions = self._add_actions(head, output)
        except (PreflightRefused, SinkRejected) as error:
            changed = f"epoch {epoch.id} was decided before the table was changed"
            raise PublishBlocked(f"{changed}: {PUT_BACK}: {error}") from error
        if missing := new_columns(self.name, head, output.schema):
            return self._add_columns(head, missing)
        removal = self._remover_of(epoch).removal_at(head) if epoch.replaced else NOTHING
        transactions = self._markers.transactions(head, epoch, output.rows)
        if removal.number is not None:
            transactions += self._markers.compacted(removal.number, sum(file.facts.rows for file in removal.added))
        properties = CommitProperties(
            custom_metadata={"lockstep.epoch": str(epoch.id), "lockstep.manifest": epoch.manifest_hash},
            max_commit_retries=0,
            app_transactions=transactions,
        )
        swap = self.compaction().exchange(head, removal.removed, removal.added, changes=True)
        return self._send_files(head, swap + additions, properties)

    def require_removable(self, head: DeltaTable, epoch: SinkEpoch) -> None:
        self.require_replaceable()
        with self._storage_errors():
            self._remover_of(epoch).require_removable(head)

    def _remover_of(self, epoch: SinkEpoch) -> RowRemover[DeltaTable]:
        if self._row_remover is None or self._row_remover.epoch != epoch:
            self._row_remover = RowRemover(self.compaction(), self._definition.epoch_column, epoch, self.sink.output)
        return self._row_remover

    def _send_files(
        self, head: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties
    ) -> CommitOutcome:
        partitions = head.metadata().partition_columns
        # a concurrent OPTIMIZE by deltalake ignores removals without a data change, but conflicts with metadata
        metadata = metadata_action(head) if actions and not any(action.data_change for action in actions) else []

        def commit() -> None:
            if metadata or needs_raw_entry(actions):
                return self._location.append(head.version() + 1, log_entry_of(actions, properties, metadata))
            return head.create_write_transaction(
                actions,
                "append",
                head.schema(),
                partitions,
                commit_properties=properties,
                post_commithook_properties=_NO_HOOKS,
            )

        outcome = self._send(head, commit)
        removed = {action.path for action in actions if isinstance(action, RemoveAction)}
        paths = pa.table(self.load_head().get_add_actions())["path"].to_pylist() if removed else []
        if outcome is CommitOutcome.APPLIED and (remaining := removed.intersection(paths)):
            raise TargetChanged(
                f"sink {self.name}: version {head.version() + 1} removes {min(remaining)}, but the table still has it: "
                "rows may be duplicated; check DESCRIBE HISTORY for a RESTORE, and run `lockstep verify`"
            )
        return outcome

    def _add_columns(self, head: DeltaTable, columns: list[Field]) -> CommitOutcome:
        """Add columns by a separate commit; the caller then loads the table again. It shows nothing of the epoch."""
        outcome = self._send(
            head,
            lambda: head.alter.add_columns(
                columns,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            ),
        )
        return CommitOutcome.CONFLICT if outcome is CommitOutcome.APPLIED else outcome

    def _send(self, head: DeltaTable, commit: Callable[[], object]) -> CommitOutcome:
        """Raises `PublishBlocked` if the library refuses the commit though there was no concurrent one."""
        try:
            commit()
        except CommitFailedError as error:
            message = self._location.describe(error)
            _log.info("sink %s: %s", self.name, message)
            if self.load_head().version() == head.version():
                raise PublishBlocked(
                    f"sink {self.name}: deltalake refuses the commit, and there is no concurrent one: {message}"
                ) from error
            return CommitOutcome.CONFLICT
        except FileExistsError:
            return CommitOutcome.CONFLICT
        except (DeltaError, OSError) as error:
            self._last_failure = f"{type(error).__name__}: {self._location.describe(error)}"
            _log.warning("sink %s: a commit has an unknown outcome: %s", self.name, self._last_failure)
            return CommitOutcome.UNKNOWN
        return CommitOutcome.APPLIED

    def last_failure(self) -> str | None:
        return self._last_failure

    def was_rolled_back(self, head: DeltaTable, epoch: int) -> bool:
        """According to the log, as far as it reaches back."""
        oldest_restored = None
        with self._storage_errors():
            for entry in head.history():  # the newest first
                if entry.get("operation") == "RESTORE":
                    to = str(entry.get("operationParameters", {}).get("version", ""))
                    oldest_restored = min(
                        int(to) if to.isdecimal() else 0, head.version() if oldest_restored is None else oldest_restored
                    )
                elif entry.get("lockstep.epoch") == str(epoch):
                    return oldest_restored is not None and oldest_restored < entry["version"]
        return oldest_restored is not None

    def compaction(self) -> DeltaCompaction:
        column = self._definition.epoch_column
        return DeltaCompaction(
            self._markers, self._location, column, self._load_own, self._send_files, self.make_durable
        )

    def _load_own(self) -> DeltaTable:
        head = self.load_head()
        if head.metadata().configuration.get(OWNER) != self._owner_text:
            raise TargetChanged(f"sink {self.name}: the table isn't owned by this sink: nothing was changed")
        refuse_unsupported(self.name, head)
        return head

    def make_durable(self, head: DeltaTable) -> None:
        with self._storage_errors():
            self._location.make_log_durable()
        if head.version() and head.version() % CHECKPOINT_EVERY == 0:
            try:
                self._location.checkpoint(head)  # for readers of the log; Lockstep doesn't depend on it
            except (DeltaError, OSError) as error:
                message = self._location.describe(error)
                _log.warning("sink %s: checkpoint of version %s failed: %s", self.name, head.version(), message)

    # --- recovery and verification ---

    def find_marker(self, epoch: int) -> Marker | None:
        return self.marker_in(table, epoch) if (table := self._find()) is not None else None

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self.marker_of_span_in(table, span) if (table := self._find()) is not None else None

    def newest_markers(self) -> list[Marker]:
        table = self._find()
        return self._markers.newest(table) if table is not None else []

    def markers(self) -> Iterator[Marker]:
        table = self._find()
        if table is not None:
            yield from self._markers.all(table)

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows in the table, whichever files they are in.

        Raises `TargetChanged` if published rows are missing: rolled back, deleted, or moved to another epoch.
        """
        if output != self.sink.output:
            raise InvalidPipeline(f"sink {self.name} takes the output {self.sink.output!r}, not {output!r}")
        table, count = self.load_head(), 0
        lost = [name for name in schema.names if name not in {column.name for column in table.schema().fields}]
        if lost:
            raise TargetChanged(f"sink {self.name}: the table has lost the columns {', '.join(lost)}")
        with self._storage_errors():
            column = self._definition.epoch_column.replace('"', '""')
            rows = pa.RecordBatchReader.from_stream(table.scan(columns=schema.names, predicate=f'"{column}" = {epoch}'))
            for batch in rows:
                count += batch.num_rows
                yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
        published = self._markers.rows(table, epoch)
        if published is not None and count < published and self._markers.replaced_by(table, epoch) is None:
            raise TargetChanged(
                f"sink {self.name}: the table shows {count} of the {published} rows that epoch {epoch} added, at "
                f"version {table.version()}: it was rolled back, or rows were deleted or changed (see its history); "
                "the epoch stays published, nothing is written again"
            )

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """Cuts by the epoch column: which version first showed an epoch is only known as long as the log is kept."""
        predicate = epochs.predicate(quote_name(self._definition.epoch_column))
        return [ReadCut(self.sink.output, f"delta.{quote_name(self._location.uri)}", predicate)]

    # --- errors ---

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """Turn errors of the storage, the log or a file into `SinkUnavailable`."""
        try:
            yield
        except TableNotFoundError:
            raise
        except (DeltaError, OSError, pa.ArrowException) as error:
            message = self._location.describe(error)
            raise SinkUnavailable(
                f"sink {self.name}: the table {self._location.uri} can't be read or written now: {message}"
            ) from error

"""DeltaSink, connected to its table: each look at it is one fresh load of its log."""

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
    refuse_unkept,
    refuse_zoned,
    required_columns,
    statistics,
)
from lockstep.sinks.delta._compacting import DeltaCompaction
from lockstep.sinks.delta._log import TxnMarkers, entry_of, metadata_of, needs_own_entry
from lockstep.sinks.delta._places import place_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.row_removal import NOTHING, RowRemoval, RowRemover
from lockstep.sinks.values import Adoptable, AdoptableFile, EpochCut, Marker, ReadCut, SinkContext, SinkEpoch
from lockstep.wal.file_facts import FileFacts

if TYPE_CHECKING:
    from lockstep.sinks.delta import DeltaSink

OWNER = "lockstep.owner"  #: the table's property that says whose it is
CHECKPOINT_EVERY = 100  #: versions
_CLAIMS = 20
_RESTAGE = (
    "say partition_by=[…] in the sink, as the table has it, so that each partition is staged as files of its own, and "
    f"{REPLAN} the epoch; if its rows are of more than 1000, have the transform repartition by them"
)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)  # nothing that isn't durable
_log = logging.getLogger(__name__)


class OpenDeltaSink(AdoptingSink[DeltaTable]):
    """One process' view of the table."""

    def __init__(self, sink: DeltaSink, context: SinkContext) -> None:
        super().__init__(sink)
        self._described = sink
        self._place = place_of(sink.path)
        self._owner = SinkName.of(context, sink.name)
        self._markers = TxnMarkers(self._owner)
        self._whose = f"{self._owner.deployment}/{self._owner.pipeline}/{self._owner.sink}"
        self._last_failure: str | None = None
        self._row_remover: RowRemover[DeltaTable] | None = None

    # --- life cycle ---

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        self._place.require_usable(self.name)
        if schemas is not None and self.sink.output not in schemas:
            raise PreflightRefused(f"sink {self.name}: no output {self.sink.output!r} among {list(schemas)}")
        table = self._find()
        if table is None and not self._described.create:
            raise PreflightRefused(
                f"sink {self.name}: there is no Delta table at {self._place.uri}: make it, with a "
                f"column {self._described.epoch_column} BIGINT, or say create=True"
            )
        if table is None and schemas is not None:
            table = self._create(schemas[self.sink.output])
            with self._reaching():
                self._place.make_new_durable()
        if table is not None:
            refuse_unkept(self.name, table)  # such a table can't be claimed either
            table = self._claimed(table)
            self._require_fit(table, schemas)
            for warning in self.warnings():
                _log.warning("%s", warning)
        if table is not None and schemas is not None:
            self.adds_columns = bool(new_columns(self.name, table, schemas[self.sink.output]))

    def _require_fit(self, table: DeltaTable, schemas: Mapping[str, pa.Schema] | None) -> None:
        refuse_unkept(self.name, table)
        columns = None if schemas is None else list(schemas[self.sink.output])
        self._require_partitions(table, columns)
        found = new_columns(self.name, table, pa.schema([*(columns or []), self._epoch_field()]))
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

    def _require_partitions(self, table: DeltaTable, columns: Sequence[pa.Field] | None) -> None:
        found, told = table.metadata().partition_columns, list(self._described.partition_by)
        if told and told != found:
            raise PreflightRefused(
                f"sink {self.name}: the table is partitioned by {', '.join(found) or 'nothing'}, the sink says "
                f"{', '.join(told)}: correct partition_by"
            )
        refuse_zoned(self.name, table.schema(), found)
        if columns is not None and (lacking := sorted(set(found) - {column.name for column in columns})):
            raise PreflightRefused(
                f"sink {self.name}: the table is partitioned by {', '.join(lacking)}, which the output lacks: add it "
                "in the transform"
            )

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
        with self._reaching():
            self._place.require_exclusive(self.name)
        with self._reaching(), suppress(DeltaError):  # somebody else's table is found, and looked at, below
            DeltaTable.create(
                self._place.uri,
                columns,
                mode="error",
                partition_by=list(self._described.partition_by),
                configuration={OWNER: self._whose},
                raise_if_key_not_exists=False,
                storage_options=self._place.options,
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
            with self._reaching():
                self._place.require_exclusive(self.name)
            self._set_owner(table, self._whose)
            table = self.load_head()
        raise SinkUnavailable(f"sink {self.name}: the table changes faster than it can be claimed; it is tried again")

    def _require_own(self, table: DeltaTable) -> None:
        """Raises `TargetChanged` for what another sink has claimed since the vote."""
        if (owner := table.metadata().configuration.get(OWNER)) and owner != self._whose:
            raise TargetChanged(f"{self._said_of(owner)}; nothing was written")

    def _said_of(self, owner: str) -> str:
        return (
            f"sink {self.name}: the table {self._place.uri} belongs to {owner} by its property {OWNER}: give "
            "every sink a table of its own"
        )

    def _set_owner(self, table: DeltaTable, owner: str) -> None:
        refuse_changed_protocol(self.name, table, owner)
        with self._reaching(), suppress(CommitFailedError):
            table.alter.set_table_properties(
                {OWNER: owner},
                raise_if_not_exists=False,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            )

    def warnings(self) -> list[str]:
        """By the newest entries of the log."""
        with self._reaching():
            entries = table.history(20) if (table := self._find()) else []
        if not any(entry.get("engineInfo", "").startswith("Apache-Spark") for entry in entries):
            return []
        return [
            f"sink {self.name}: Spark has written to {self._place.uri}: Delta for Spark may replace a log entry that "
            "another writer has just created, in folders and on S3; let it write only while no epoch is published"
        ]

    def require_replaceable(self) -> None:
        table = self._find()
        if table is not None and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
            raise PreflightRefused(
                f"sink {self.name}: the table has delta.appendOnly=true, so no row of it can be replaced: take that "
                "property away, or leave the epoch as it is"
            )

    def disclaim(self) -> None:
        table = self._find()
        if table is not None and table.metadata().configuration.get(OWNER) == self._whose:
            self._set_owner(table, "")

    # --- the template ---

    def load_head(self) -> DeltaTable:
        table = self._find()
        if table is None:
            raise TargetChanged(f"sink {self.name}: there is no Delta table at {self._place.uri}: put it back")
        return table

    def _find(self) -> DeltaTable | None:
        with self._reaching():
            try:
                return self._place.load()
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

    def has_replaced(self, head: DeltaTable, epoch: int) -> bool:
        with self._reaching():
            return self._markers.replaced_by(head, epoch) is not None

    def validate(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> None:
        self._require_fit(head, {output.output: output.schema})
        self._add_actions(head, output, _RESTAGE)

    def _add_actions(self, head: DeltaTable, output: Adoptable, if_several: str = "") -> list[AddAction | RemoveAction]:
        """Of every file that has rows. Raises `SinkRejected` for one that the table can't take; `if_several` says what
        to do about rows of several partitions."""
        required, found = required_columns(head), list[AddAction | RemoveAction]()
        for file, facts in output.facts():
            if not file.rows:
                continue
            columns = plain_columns(facts)
            if wrong := [name for name in required if name not in columns or columns[name].nulls != 0]:
                raise SinkRejected(
                    f"sink {self.name}: {file.path} has nulls in {', '.join(wrong)}, or may have, where the table has "
                    "NOT NULL"
                )
            found.append(self._add_action(head, file, facts, if_several))
        return found

    def adopt(self, head: DeltaTable, epoch: SinkEpoch, output: Adoptable) -> CommitOutcome:
        self._require_own(head)
        try:
            self._require_fit(head, {output.output: output.schema})
            adds = self._add_actions(head, output)
        except (PreflightRefused, SinkRejected) as error:
            changed = f"epoch {epoch.id} was decided before the table was changed"
            raise PublishBlocked(f"{changed}: {PUT_BACK}: {error}") from error
        if lacking := new_columns(self.name, head, output.schema):
            return self._add_columns(head, lacking)
        lifted = self._lift(head, epoch)
        transactions = self._markers.transactions(head, epoch, output.rows)
        if lifted.number is not None:
            transactions += self._markers.compacted(lifted.number, sum(file.facts.rows for file in lifted.added))
        properties = CommitProperties(
            custom_metadata={"lockstep.epoch": str(epoch.id), "lockstep.manifest": epoch.manifest_hash},
            max_commit_retries=0,
            app_transactions=transactions,
        )
        gone = self.compaction().exchange(head, lifted.removed, lifted.added, changes=True)
        return self._send_files(head, gone + adds, properties)

    def _lift(self, head: DeltaTable, epoch: SinkEpoch) -> RowRemoval:
        """What takes the rows away whose place the epoch takes."""
        return self._remover_of(epoch).removal_at(head) if epoch.replaced else NOTHING

    def require_removable(self, head: DeltaTable, epoch: SinkEpoch) -> None:
        self.require_replaceable()
        with self._reaching():
            self._remover_of(epoch).require_removable(head)

    def _remover_of(self, epoch: SinkEpoch) -> RowRemover[DeltaTable]:
        if self._row_remover is None or self._row_remover.epoch != epoch:
            self._row_remover = RowRemover(self.compaction(), self._described.epoch_column, epoch, self.sink.output)
        return self._row_remover

    def _send_files(
        self, head: DeltaTable, actions: list[AddAction | RemoveAction], properties: CommitProperties
    ) -> CommitOutcome:
        partitions = head.metadata().partition_columns
        # deltalake's OPTIMIZE of an older version passes over removals without a change of data, not over metadata
        metadata = metadata_of(head) if actions and not any(action.data_change for action in actions) else []

        def commit() -> None:
            if metadata or needs_own_entry(actions):
                return self._place.append(head.version() + 1, entry_of(actions, properties, metadata))
            return head.create_write_transaction(
                actions,
                "append",
                head.schema(),
                partitions,
                commit_properties=properties,
                post_commithook_properties=_NO_HOOKS,
            )

        answer = self._send(head, commit)
        removed = {action.path for action in actions if isinstance(action, RemoveAction)}
        paths = pa.table(self.load_head().get_add_actions())["path"].to_pylist() if removed else []
        if answer is CommitOutcome.APPLIED and (left := removed.intersection(paths)):
            raise TargetChanged(
                f"sink {self.name}: version {head.version() + 1} removes {min(left)}, and the table still has it: rows "
                "may be there twice; see DESCRIBE HISTORY whether somebody has restored it, and `lockstep verify`"
            )
        return answer

    def _add_columns(self, head: DeltaTable, columns: list[Field]) -> CommitOutcome:
        """A commit of its own, after which the table is looked at anew: it shows nothing of the epoch."""
        answer = self._send(
            head,
            lambda: head.alter.add_columns(
                columns,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NO_HOOKS,
            ),
        )
        return CommitOutcome.CONFLICT if answer is CommitOutcome.APPLIED else answer

    def _send(self, head: DeltaTable, commit: Callable[[], object]) -> CommitOutcome:
        """Raises `PublishBlocked` where the library refuses the commit though nobody else made one."""
        try:
            commit()
        except CommitFailedError as error:
            said = self._place.said(error)
            _log.info("sink %s: %s", self.name, said)
            if self.load_head().version() == head.version():
                raise PublishBlocked(
                    f"sink {self.name}: deltalake refuses the commit, and nobody else made one: {said}"
                ) from error
            return CommitOutcome.CONFLICT
        except FileExistsError:
            return CommitOutcome.CONFLICT
        except (DeltaError, OSError) as error:
            self._last_failure = f"{type(error).__name__}: {self._place.said(error)}"
            _log.warning("sink %s: a commit was answered with %s", self.name, self._last_failure)
            return CommitOutcome.UNKNOWN
        return CommitOutcome.APPLIED

    def last_failure(self) -> str | None:
        return self._last_failure

    def _add_action(self, head: DeltaTable, file: AdoptableFile, facts: FileFacts, if_several: str) -> AddAction:
        partitions = partition_values(self.name, file.path, facts, head.metadata().partition_columns, if_several)
        told = statistics(facts, self._described.epoch_column)
        return AddAction(file.path, file.bytes, partitions, self._place.modified(file.path), True, told)

    def was_rolled_back(self, head: DeltaTable, epoch: int) -> bool:
        """As far as the log goes back."""
        back = None
        with self._reaching():
            for entry in head.history():  # the newest first
                if entry.get("operation") == "RESTORE":
                    to = str(entry.get("operationParameters", {}).get("version", ""))
                    back = min(int(to) if to.isdecimal() else 0, head.version() if back is None else back)
                elif entry.get("lockstep.epoch") == str(epoch):
                    return back is not None and back < entry["version"]
        return back is not None

    def compaction(self) -> DeltaCompaction:
        column = self._described.epoch_column
        return DeltaCompaction(self._markers, self._place, column, self._load_own, self._send_files, self.make_durable)

    def _load_own(self) -> DeltaTable:
        head = self.load_head()
        if head.metadata().configuration.get(OWNER) != self._whose:
            raise TargetChanged(f"sink {self.name}: the table isn't this sink's: it is left as it is")
        refuse_unkept(self.name, head)
        return head

    def make_durable(self, head: DeltaTable) -> None:
        with self._reaching():
            self._place.make_log_durable()
        if head.version() and head.version() % CHECKPOINT_EVERY == 0:
            self._checkpoint(head)

    def _checkpoint(self, head: DeltaTable) -> None:
        """For whoever reads the log; nothing of Lockstep's rests on it."""
        try:
            self._place.checkpoint(head)
        except (DeltaError, OSError) as error:
            said = self._place.said(error)
            _log.warning("sink %s: no checkpoint of version %s was made: %s", self.name, head.version(), said)

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
        if published is not None and found < published and self._markers.replaced_by(table, epoch) is None:
            raise TargetChanged(
                f"sink {self.name}: the table shows {found} of the {published} rows that epoch {epoch} brought, at "
                f"version {table.version()}: somebody has rolled it back, or deleted or changed them (its history "
                "tells who); the epoch stays published, nothing is written again"
            )

    def cut(self, epochs: EpochCut) -> list[ReadCut]:
        """By the epoch column: which version showed an epoch isn't kept for longer than the log."""
        predicate = epochs.predicate(quote_name(self._described.epoch_column))
        return [ReadCut(self.sink.output, f"delta.{quote_name(self._place.uri)}", predicate)]

    # --- errors ---

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """What the storage, the log or a file of the table refuses becomes `SinkUnavailable`."""
        try:
            yield
        except TableNotFoundError:
            raise
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise SinkUnavailable(
                f"sink {self.name}: the table {self._place.uri} can't be read or written now: {self._place.said(error)}"
            ) from error

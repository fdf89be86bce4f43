"""Delta's log: epochs' markers as application transactions (`txn` actions), and log entries written without deltalake.

A `txn` survives checkpoints, log clean-up and RESTORE, and is looked up by name; `commitInfo` goes with its log entry
after a month, and a table property would make every commit a metadata change, which fails all concurrent commits. A
`txn` carries one number, so a marker is several of them, named by sink and epoch.

deltalake percent-encodes the path of each `remove`. If that differs from the path of the `add`, as for files that Spark
wrote with blanks, '%' or text beyond ASCII, nothing is removed: such entries are written here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from lockstep.epoch import Json
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker, SinkEpoch

_DIGITS = 13  # hex digits of the manifest's hash in one number
_PARTS = 5
_BOUNDS = ("start", "end")  # of the interval, in microseconds since _ZERO
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TxnMarkers:
    """The markers of one sink."""

    owner: SinkName

    def of(self, table: DeltaTable, epoch: int) -> Marker | None:
        """The epoch's marker in this table version."""
        token = table.transaction_version(self._name(epoch))
        if token is None:
            return None
        parts = [table.transaction_version(self._name(epoch, f"manifest:{part}")) for part in range(_PARTS)]
        return Marker(
            epoch,
            token,
            _joined([part or 0 for part in parts]),
            self._span(table, epoch),
            tuple(self._replaced(table, epoch)),
        )

    def _span(self, table: DeltaTable, epoch: int) -> str | None:
        start, end = (table.transaction_version(self._name(epoch, bound)) for bound in _BOUNDS)
        if start is None or end is None:
            return None
        generation = table.transaction_version(self._name(epoch, "generation"))
        bounds = "/".join((_ZERO + timedelta(microseconds=micros)).isoformat() for micros in (start, end))
        return f"{bounds}/{generation}" if generation else bounds

    def _replaced(self, table: DeltaTable, epoch: int) -> Iterator[int]:
        """The epochs that this epoch has replaced."""
        for number in count():
            replaced = table.transaction_version(self._name(epoch, f"replaced:{number}"))
            if replaced is None:
                return
            yield replaced

    def replaced_by(self, table: DeltaTable, epoch: int) -> int | None:
        """The epoch that has replaced this one."""
        return table.transaction_version(self._name(epoch, "replaced by"))

    def of_span(self, table: DeltaTable, span: str) -> Marker | None:
        epoch = table.transaction_version(self._name("span", span))
        marker = self.of(table, epoch) if epoch is not None else None
        return replace(marker, span=span) if marker else None

    def rows(self, table: DeltaTable, epoch: int) -> int | None:
        """Number of rows that the epoch added; None if it has no marker."""
        return table.transaction_version(self._name(epoch, "rows"))

    def newest(self, table: DeltaTable) -> list[Marker]:
        """The marker with the largest epoch, and the one committed last, which has the largest
        token."""
        numbers = [table.transaction_version(self._name(name)) for name in ("newest", "last")]
        epochs = {epoch for epoch in numbers if epoch is not None}
        return [marker for epoch in sorted(epochs) if (marker := self.of(table, epoch))]

    def all(self, table: DeltaTable) -> Iterator[Marker]:
        newest = table.transaction_version(self._name("newest")) or 0
        yield from (marker for epoch in range(newest + 1) if (marker := self.of(table, epoch)))

    def transactions(self, table: DeltaTable, epoch: SinkEpoch, rows: int) -> list[Transaction]:
        """The marker to commit on this table version, without times: a `txn` expires only under a retention of
        transactions, which is refused."""
        newest = max(epoch.id, table.transaction_version(self._name("newest")) or 0)
        versions = {
            self._name(epoch.id): epoch.token,
            self._name(epoch.id, "rows"): rows,
            **{self._name(epoch.id, f"manifest:{n}"): part for n, part in enumerate(_split(epoch.manifest_hash))},
            **({self._name("span", epoch.span): epoch.id} if epoch.span else {}),
            **dict(self._range_versions(epoch)),
            **{self._name(epoch.id, f"replaced:{n}"): replaced.id for n, replaced in enumerate(epoch.replaced)},
            **{self._name(replaced.id, "replaced by"): epoch.id for replaced in epoch.replaced},
            self._name("newest"): newest,
            self._name("last"): epoch.id,
        }
        return [Transaction(name, number) for name, number in versions.items()]

    def _range_versions(self, epoch: SinkEpoch) -> Iterator[tuple[str, int]]:
        """Interval and generation, so that the range is found by the epoch's number alone."""
        if epoch.interval is None:
            return
        for name, bound in zip(_BOUNDS, (epoch.interval.start, epoch.interval.end), strict=True):
            yield self._name(epoch.id, name), (bound - _ZERO) // timedelta(microseconds=1)
        if epoch.generation:
            yield self._name(epoch.id, "generation"), epoch.generation

    def compacted(self, number: int, rows: int) -> list[Transaction]:
        """Permanent record of a compaction, whatever the name of the sink."""
        return [Transaction(self._name_of_any("compaction", number), rows), *self.fenced(number)]

    def fenced(self, number: int) -> list[Transaction]:
        return [Transaction(self._name_of_any("compaction"), number)]

    def last_compaction(self, table: DeltaTable) -> int | None:
        """The last compaction committed or fenced."""
        return table.transaction_version(self._name_of_any("compaction"))

    def has_compaction(self, table: DeltaTable, number: int) -> bool:
        return table.transaction_version(self._name_of_any("compaction", number)) is not None

    def _name(self, *what: object) -> str:
        return self._name_for(self.owner.sink, *what)

    def _name_of_any(self, *what: object) -> str:
        """A name shared by all sinks that the pipeline ever has for the table. No sink's name contains '*'."""
        return self._name_for("*", *what)

    def _name_for(self, sink: str, *what: object) -> str:
        return ":".join(("lockstep", self.owner.deployment, self.owner.pipeline, sink, *map(str, what)))


def _split(manifest_hash: str) -> list[int]:
    """64 hex digits as numbers of at most 52 bits."""
    return [int(manifest_hash[at : at + _DIGITS], 16) for at in range(0, 64, _DIGITS)]


def _joined(parts: list[int]) -> str:
    widths = [min(_DIGITS, 64 - at) for at in range(0, 64, _DIGITS)]
    return "".join(f"{part:0{width}x}" for part, width in zip(parts, widths, strict=True))


_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]*")  #: paths that deltalake writes unchanged


def needs_raw_entry(actions: Sequence[AddAction | RemoveAction]) -> bool:
    """True if deltalake would change the path of a file to be removed."""
    return any(isinstance(action, RemoveAction) and not _PLAIN.fullmatch(action.path) for action in actions)


def metadata_action(head: DeltaTable) -> list[Json]:
    """An action that repeats the table's metadata: commits based on an older version conflict with it."""
    metadata = head.metadata()
    action: dict[str, Json] = {"id": metadata.id, "name": metadata.name, "description": metadata.description}
    action |= {"format": {"provider": "parquet", "options": {}}, "schemaString": head.schema().to_json()}
    action |= {"partitionColumns": metadata.partition_columns, "configuration": metadata.configuration}
    return [{"metaData": {**action, "createdTime": metadata.created_time}}]


def log_entry_of(
    actions: Sequence[AddAction | RemoveAction], properties: CommitProperties, metadata: Sequence[Json] = ()
) -> bytes:
    """The log entry that deltalake would write for these actions, with unchanged paths in `remove` actions."""
    info = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    lines: list[Json] = [{"commitInfo": {**info, **(properties.custom_metadata or {})}}]
    lines += metadata
    lines += [
        {"txn": {"appId": transaction.app_id, "version": transaction.version}}
        for transaction in properties.app_transactions or ()
    ]
    for action in actions:
        common = {"path": action.path, "dataChange": action.data_change, "size": action.size}
        common["partitionValues"] = dict(action.partition_values or {})
        if isinstance(action, RemoveAction):
            removal = {"deletionTimestamp": action.deletion_timestamp, "extendedFileMetadata": True}
            lines.append({"remove": {**common, **removal}})
        else:
            lines.append({"add": {**common, "modificationTime": action.modification_time, "stats": action.stats}})
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()

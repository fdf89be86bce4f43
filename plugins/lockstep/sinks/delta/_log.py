"""The marker of an epoch as Delta's application transactions (`txn` actions).

What else a log entry tells (`commitInfo`) goes with the entry, a month later; a table property would make every commit
one of metadata, which fails everybody else's. A `txn` outlives checkpoints, log clean-up and RESTORE, is looked up by
its name, and carries one number: so the marker is a few of them, each named by whose it is and which epoch.
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

_DIGITS = 13  # hex digits of the manifest's hash that one number carries
_PARTS = 5
_BOUNDS = ("start", "end")  # of its interval, in microseconds since
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TxnMarkers:
    """The markers of one sink."""

    owner: SinkName

    def of(self, table: DeltaTable, epoch: int) -> Marker | None:
        """The epoch's marker in this state of the table."""
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
        life = table.transaction_version(self._name(epoch, "generation"))
        bounds = "/".join((_ZERO + timedelta(microseconds=one)).isoformat() for one in (start, end))
        return f"{bounds}/{life}" if life else bounds

    def _replaced(self, table: DeltaTable, epoch: int) -> Iterator[int]:
        """Those whose places it has taken."""
        for number in count():
            found = table.transaction_version(self._name(epoch, f"replaced:{number}"))
            if found is None:
                return
            yield found

    def replaced_by(self, table: DeltaTable, epoch: int) -> int | None:
        """The epoch that has taken the place of another one."""
        return table.transaction_version(self._name(epoch, "replaced by"))

    def of_span(self, table: DeltaTable, span: str) -> Marker | None:
        epoch = table.transaction_version(self._name("span", span))
        found = self.of(table, epoch) if epoch is not None else None
        return replace(found, span=span) if found else None

    def rows(self, table: DeltaTable, epoch: int) -> int | None:
        """How many rows the epoch brought; None if it has no marker."""
        return table.transaction_version(self._name(epoch, "rows"))

    def newest(self, table: DeltaTable) -> list[Marker]:
        """Those with the largest epoch and with the largest token: whoever commits last has taken the youngest."""
        told = [table.transaction_version(self._name(name)) for name in ("newest", "last")]
        epochs = {epoch for epoch in told if epoch is not None}
        return [marker for epoch in sorted(epochs) if (marker := self.of(table, epoch))]

    def all(self, table: DeltaTable) -> Iterator[Marker]:
        newest = table.transaction_version(self._name("newest")) or 0
        yield from (marker for epoch in range(newest + 1) if (marker := self.of(table, epoch)))

    def transactions(self, table: DeltaTable, epoch: SinkEpoch, rows: int) -> list[Transaction]:
        """The marker to be committed on this state of the table. None of them says when it was made: only with
        a retention of transactions, which is refused, does any expire."""
        newest = max(epoch.id, table.transaction_version(self._name("newest")) or 0)
        told = {
            self._name(epoch.id): epoch.token,
            self._name(epoch.id, "rows"): rows,
            **{self._name(epoch.id, f"manifest:{n}"): part for n, part in enumerate(_split(epoch.manifest_hash))},
            **({self._name("span", epoch.span): epoch.id} if epoch.span else {}),
            **dict(self._told_of_range(epoch)),
            **{self._name(epoch.id, f"replaced:{n}"): replaced.id for n, replaced in enumerate(epoch.replaced)},
            **{self._name(replaced.id, "replaced by"): epoch.id for replaced in epoch.replaced},
            self._name("newest"): newest,
            self._name("last"): epoch.id,
        }
        return [Transaction(name, number) for name, number in told.items()]

    def _told_of_range(self, epoch: SinkEpoch) -> Iterator[tuple[str, int]]:
        """So that who knows only the epoch's number finds its range."""
        if epoch.interval is None:
            return
        for name, bound in zip(_BOUNDS, (epoch.interval.start, epoch.interval.end), strict=True):
            yield self._name(epoch.id, name), (bound - _ZERO) // timedelta(microseconds=1)
        if epoch.generation:
            yield self._name(epoch.id, "generation"), epoch.generation

    def compacted(self, number: int, rows: int) -> list[Transaction]:
        """What the table knows a compaction by, for good, whatever its sink is called by then."""
        return [Transaction(self._name_of_any("compaction", number), rows), *self.fenced(number)]

    def fenced(self, number: int) -> list[Transaction]:
        return [Transaction(self._name_of_any("compaction"), number)]

    def last_compaction(self, table: DeltaTable) -> int | None:
        """The last one that was committed or fenced."""
        return table.transaction_version(self._name_of_any("compaction"))

    def has_compaction(self, table: DeltaTable, number: int) -> bool:
        return table.transaction_version(self._name_of_any("compaction", number)) is not None

    def _name(self, *what: object) -> str:
        return self._named(self.owner.sink, *what)

    def _name_of_any(self, *what: object) -> str:
        """Of whichever sink the pipeline has for the table: one at a time. No sink's name has a '*'."""
        return self._named("*", *what)

    def _named(self, sink: str, *what: object) -> str:
        return ":".join(("lockstep", self.owner.deployment, self.owner.pipeline, sink, *map(str, what)))


def _split(manifest_hash: str) -> list[int]:
    """64 hex digits as numbers of at most 52 bits."""
    return [int(manifest_hash[at : at + _DIGITS], 16) for at in range(0, 64, _DIGITS)]


def _joined(parts: list[int]) -> str:
    widths = [min(_DIGITS, 64 - at) for at in range(0, 64, _DIGITS)]
    return "".join(f"{part:0{width}x}" for part, width in zip(parts, widths, strict=True))


_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]*")  #: what deltalake writes as it is


def needs_own_entry(actions: Sequence[AddAction | RemoveAction]) -> bool:
    """Whether one of the removed paths is of other characters than deltalake writes unchanged."""
    return any(isinstance(action, RemoveAction) and not _PLAIN.fullmatch(action.path) for action in actions)


def metadata_of(head: DeltaTable) -> list[Json]:
    """The action that repeats the table's metadata: a commit that is based on an older version fails on it."""
    known = head.metadata()
    action: dict[str, Json] = {"id": known.id, "name": known.name, "description": known.description}
    action |= {"format": {"provider": "parquet", "options": {}}, "schemaString": head.schema().to_json()}
    action |= {"partitionColumns": known.partition_columns, "configuration": known.configuration}
    return [{"metaData": {**action, "createdTime": known.created_time}}]


def entry_of(
    actions: Sequence[AddAction | RemoveAction], properties: CommitProperties, metadata: Sequence[Json] = ()
) -> bytes:
    """The log entry that deltalake would write of these actions, with the removed paths as they are."""
    told = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    lines: list[Json] = [{"commitInfo": {**told, **(properties.custom_metadata or {})}}]
    lines += metadata
    lines += [{"txn": {"appId": one.app_id, "version": one.version}} for one in properties.app_transactions or ()]
    for action in actions:
        common = {"path": action.path, "dataChange": action.data_change, "size": action.size}
        common["partitionValues"] = dict(action.partition_values or {})
        if isinstance(action, RemoveAction):
            removal = {"deletionTimestamp": action.deletion_timestamp, "extendedFileMetadata": True}
            lines.append({"remove": {**common, **removal}})
        else:
            lines.append({"add": {**common, "modificationTime": action.modification_time, "stats": action.stats}})
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()

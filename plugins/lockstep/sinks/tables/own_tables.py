"""What Lockstep keeps in a target database, beside the data: markers, owners, and the database's own id.

    lockstep_marker     one row for each published (deployment, pipeline, sink, epoch), written with the epoch's rows
    lockstep_range      the interval of each marker, written with it: by that it is found whatever number its epoch has
    lockstep_target     who owns which table
    lockstep_target_id  one random id: tells this database from any other one
    lockstep_keys       for upserts: how many new keys each epoch brought, written with its rows

Every method takes a cursor of the caller's connection; what changes data expects the caller's transaction, and what
looks for markers a new one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused, SinkUnavailable, TargetChanged, TargetOwned
from lockstep.sinks.handles import SinkName
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.tables.upserts import AS_OLD_ROWS
from lockstep.sinks.values import Marker, SinkEpoch

MARKERS, RANGES, TARGETS = "lockstep_marker", "lockstep_range", "lockstep_target"
IDENTITY, KEYS = "lockstep_target_id", "lockstep_keys"

_SELECT = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {markers} m
    LEFT JOIN {ranges} r USING (deployment, pipeline, sink, token, epoch)
    WHERE m.deployment = %s AND m.pipeline = %s AND m.sink = %s
"""
_BY_EPOCH = f"{_SELECT} AND m.epoch = %s"
_EVERY = f"{_SELECT} ORDER BY m.epoch DESC"
_LAST = f"{_EVERY} LIMIT 1"
_YOUNGEST = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {ranges} r
    JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s ORDER BY r.token DESC, r.epoch DESC LIMIT 1
"""
_BY_SPAN = """
    SELECT r.epoch, r.token, COALESCE(m.manifest_hash, ''), r.span FROM {ranges} r
    LEFT JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s AND r.span = %s
"""
_SINKS_BESIDE = """
    SELECT DISTINCT other.sink FROM {targets} mine JOIN {targets} other USING (relation, deployment, pipeline)
    WHERE mine.deployment = %s AND mine.pipeline = %s AND mine.sink = %s AND other.sink <> mine.sink
"""
_INSERT_MARKER = (
    "INSERT INTO {markers} (deployment, pipeline, sink, epoch, token, manifest_hash) VALUES (%s, %s, %s, %s, %s, %s)"
)
_INSERT_RANGE = "INSERT INTO {ranges} (deployment, pipeline, sink, span, epoch, token) VALUES (%s, %s, %s, %s, %s, %s)"
_TAKE_RANGE = "UPDATE {ranges} SET token = %s WHERE deployment = %s AND pipeline = %s AND sink = %s AND span = %s"
# never (a, b) = (%s, %s): MariaDB's UPDATE and DELETE use no index for it, and would read, and lock, the whole table
_UPDATE_ROWS = (
    "UPDATE {markers} SET {rows} = %s WHERE deployment = %s AND pipeline = %s AND sink = %s AND epoch = %s "
    "AND token = %s"
)
_UPDATE_MANIFEST = _UPDATE_ROWS.replace("{rows}", "manifest_hash")
_SELECT_SHARED = "SELECT shared FROM {targets} WHERE relation = %s AND deployment = %s AND pipeline = %s AND sink = %s"
_INSERT_OWNER = "INSERT INTO {targets} (shared, relation, deployment, pipeline, sink) VALUES (%s, %s, %s, %s, %s)"
_UPDATE_OWNER = (
    "UPDATE {targets} SET shared = %s WHERE relation = %s AND deployment = %s AND pipeline = %s AND sink = %s"
)
_DELETE_OWNER = "DELETE FROM {targets} WHERE deployment = %s AND pipeline = %s AND sink = %s"
_OTHER_OWNERS = (
    "SELECT deployment, pipeline, sink, shared FROM {targets} WHERE {relation} IN %s "
    "AND NOT (deployment = %s AND pipeline = %s AND sink = %s)"
)
_BROUGHT = (
    "SELECT new FROM {keys} WHERE deployment = %s AND pipeline = %s AND sink = %s AND relation = %s AND epoch = %s"
)
_MARKED = "SELECT epoch FROM {markers} WHERE deployment = %s AND pipeline = %s AND sink = %s AND epoch IN %s"
_COMMON_EPOCHS = (
    "SELECT COUNT(*), COUNT(mine.epoch) FROM {markers} m LEFT JOIN {markers} mine ON mine.deployment = m.deployment "
    "AND mine.pipeline = m.pipeline AND mine.epoch = m.epoch AND mine.sink = %s "
    "WHERE m.deployment = %s AND m.pipeline = %s AND m.sink = %s"
)
_MISSING_KEYS = (
    "SELECT GREATEST(0, (SELECT COALESCE(SUM(new), 0) FROM {keys} WHERE deployment = %s AND pipeline = %s "
    "AND sink = %s AND relation = %s) - (SELECT COUNT(*) FROM {table}))"
)

Cursor = TypeVar("Cursor")
Row: TypeAlias = tuple[Any, ...]


class Owner(NamedTuple):
    """A sink that says, in the `lockstep_target` of `home`, that a table is its own."""

    deployment: str
    pipeline: str
    sink: str
    shared: bool
    home: str


@dataclass(frozen=True)
class OwnTables(ABC, Generic[Cursor]):
    """Lockstep's own tables in the schema `home`, as seen by the sink `owner`; `upserts`: it replaces rows by key."""

    add_keys: ClassVar[str]  #: INSERT into {keys}, or add to `new` of the row that stands
    rows_column: ClassVar[str] = "rows"
    relation_as_stored: ClassVar[str]  #: the column `relation`, spelled as the catalogue has it

    home: str
    owner: SinkName
    upserts: bool

    # --- what each database does in its own way ---

    @abstractmethod
    def create(self, cursor: Cursor) -> None:
        """Create what is missing; who may not create passes if all is there."""

    @abstractmethod
    def _existing(self, cursor: Cursor, *tables: str) -> set[str]:
        """Those of Lockstep's own tables that are there, asked in one round trip."""

    @abstractmethod
    def _query(self, cursor: Cursor, statement: str, values: Sequence[object] = (), **names: Relation) -> list[Row]:
        """The rows of `statement`, each {name} in which is replaced by the quoted one, and each %s by a value."""

    @abstractmethod
    def _change(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> int:
        """As `_query`, for a statement that changes rows; returns how many."""

    @abstractmethod
    def _insert_once(self, cursor: Cursor, statement: str, values: Sequence[object], **names: Relation) -> bool:
        """Whether a row of that key wasn't there: then it is inserted. Waits for who holds it in a transaction."""

    @abstractmethod
    def _as_stored(self, cursor: Cursor, relation: Relation) -> Relation:
        """As the catalogue has the name, or would."""

    @abstractmethod
    def _relatives(self, cursor: Cursor, relation: Relation) -> set[str]:
        """Itself and all tables that it shows rows of, or that show its rows."""

    @abstractmethod
    def _homes(self, cursor: Cursor) -> list[str]:
        """Other schemas with a `lockstep_target` in them."""

    def _exists(self, cursor: Cursor, table: str) -> bool:
        return table in self._existing(cursor, table)

    def _require_may_own(self, cursor: Cursor) -> None:
        """Refuse, with the grant that is missing, who may not write down that a table is its own."""

    # --- owners of tables ---

    def claim(self, cursor: Cursor, outputs: Mapping[str, Relation], *, shared: bool) -> None:
        """Own the table of each output. Raises `TargetOwned` if another pipeline does and not both say shared=True;
        for upserts: if anybody else does, another sink of the same pipeline included; `PreflightRefused` where two
        outputs have one table."""
        stored = {output: self._as_stored(cursor, relation) for output, relation in outputs.items()}
        kin = {output: (str(found), self._relatives(cursor, found)) for output, found in stored.items()}
        _require_apart(self.owner.sink, kin)
        for output, relation in stored.items():
            for other in self._owners(cursor, kin[output][1]):
                another = (other.deployment, other.pipeline) != (self.owner.deployment, self.owner.pipeline)
                if self.upserts or (another and not (shared and other.shared)):
                    raise self._refusal(relation, other)
            self._record_claim(cursor, relation, shared)

    def _record_claim(self, cursor: Cursor, relation: Relation, shared: bool) -> None:
        """Whoever calls this is alone in it."""
        key, targets = (str(relation), *self.owner_key), self.table(TARGETS)
        found = self._query(cursor, _SELECT_SHARED, key, targets=targets)
        if found != [(shared,)]:  # most preflights find it, and write nothing
            self._require_may_own(cursor)
            self._change(cursor, _UPDATE_OWNER if found else _INSERT_OWNER, (shared, *key), targets=targets)

    def disclaim(self, cursor: Cursor) -> None:
        """Own nothing any more."""
        if self._exists(cursor, TARGETS):
            self._change(cursor, _DELETE_OWNER, self.owner_key, targets=self.table(TARGETS))

    def other_owners(self, cursor: Cursor, relation: Relation) -> list[Owner]:
        """Every other sink on `relation`, or on what shows its rows, in whatever schema it says so; without former
        names of this sink, whose epochs have other numbers."""
        owners = self._owners(cursor, self._relatives(cursor, self._as_stored(cursor, relation)))
        return [owner for owner in owners if not self._is_former_name(cursor, owner)]

    def _is_former_name(self, cursor: Cursor, owner: Owner) -> bool:
        """Whether `owner`, of the same pipeline, has markers here, and none of an epoch that this sink has one of. The
        same holds for the name that the sink got later. Two sinks of one plan have epochs in common, or no markers."""
        if (owner.deployment, owner.pipeline, owner.home) != (self.owner.deployment, self.owner.pipeline, self.home):
            return False
        values, markers = (self.owner.sink, *owner[:3]), self.table(MARKERS)
        [(epochs, common)] = self._query(cursor, _COMMON_EPOCHS, values, markers=markers)
        return bool(epochs) and not common

    def _owners(self, cursor: Cursor, names: Set[str]) -> list[Owner]:
        homes = [self.home, *self._homes(cursor)]
        return [owner for home in homes for owner in self._owners_in(cursor, home, names)]

    def _owners_in(self, cursor: Cursor, home: str, names: Set[str]) -> list[Owner]:
        """Other sinks that say in `home` that one of the tables `names` is theirs."""
        select = _OTHER_OWNERS.replace("{relation}", self.relation_as_stored)
        rows = self._query(cursor, select, (tuple(sorted(names)), *self.owner_key), targets=Relation(home, TARGETS))
        return [Owner(str(one), str(two), str(three), bool(four), home) for one, two, three, four in rows]

    def _refusal(self, relation: Relation, other: Owner) -> TargetOwned:
        share = "" if self.upserts else " say shared=True in both,"
        return TargetOwned(
            f"sink {self.owner.sink}: table {relation} belongs to sink {other.sink} of pipeline {other.pipeline}, "
            f"deployment {other.deployment}; write elsewhere,{share} give a renamed sink its name back, or delete its "
            f"row of {other.home}.{TARGETS} if that pipeline is gone{AS_OLD_ROWS if self.upserts else ''}"
        )

    # --- the database's id ---

    def target_id(self, cursor: Cursor) -> str:
        """Raises `TargetChanged` where Lockstep's tables are missing: no preflight has been here."""
        if self._exists(cursor, IDENTITY):
            for (found,) in self._query(cursor, "SELECT id FROM {ids}", ids=self.table(IDENTITY)):
                return str(found)
        raise TargetChanged(
            f"sink {self.owner.sink}: the database has no {self.table(IDENTITY)}, which every target has after its "
            "preflight: the connection leads to another database, or the schema argument changed"
        )

    # --- markers ---

    def insert_marker(self, cursor: Cursor, epoch: SinkEpoch) -> bool:
        """False: the marker is there already. Waits for whoever holds it, or the epoch's range, in an open or prepared
        transaction. Raises `LedgerConflict` if the range stands there under another number."""
        row = (*self.owner_key, epoch.id, epoch.token, epoch.manifest_hash)
        inserted = self._insert_once(cursor, _INSERT_MARKER, row, markers=self.table(MARKERS))
        if inserted and epoch.span is not None:
            self._insert_range(cursor, epoch, epoch.span)
        return inserted

    def _insert_range(self, cursor: Cursor, epoch: SinkEpoch, span: str) -> None:
        row = (*self.owner_key, span, epoch.id, epoch.token)
        if not self._insert_once(cursor, _INSERT_RANGE, row, ranges=self.table(RANGES)):
            shown = self.find_marker_of_span(cursor, span)
            if shown is None or shown.epoch != epoch.id:
                raise shown_before(self.owner.sink, epoch, shown or Marker(0, 0, "", span))
            # its marker was taken away by hand, and this transaction has inserted another
            self._change(cursor, _TAKE_RANGE, (epoch.token, *self.owner_key, span), ranges=self.table(RANGES))
        elif (shown := self._find_span_beside(cursor, span)) is not None and shown.epoch != epoch.id:
            raise shown_before(self.owner.sink, epoch, shown)

    def record_rows(self, cursor: Cursor, epoch: SinkEpoch, rows: Mapping[str, int]) -> None:
        """Note the rows per output in the marker that this transaction has inserted."""
        self._change_marker(cursor, _UPDATE_ROWS.replace("{rows}", self.rows_column), epoch, json.dumps(dict(rows)))

    def name_manifest(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        """Note the manifest in the marker that this transaction has inserted without knowing it."""
        self._change_marker(cursor, _UPDATE_MANIFEST, epoch, epoch.manifest_hash)

    def _change_marker(self, cursor: Cursor, statement: str, epoch: SinkEpoch, *values: object) -> None:
        """Change the marker that this transaction has inserted; `values` stand before its key."""
        row = (*values, *self.owner_key, epoch.id, epoch.token)
        if self._change(cursor, statement, row, markers=self.table(MARKERS)) != 1:
            raise SinkUnavailable(
                f"sink {self.owner.sink}: the session has lost its transaction, which had inserted the marker of epoch "
                f"{epoch.id}: is there a pooler or proxy in between that switches servers? Connect directly"
            )

    def find_marker(self, cursor: Cursor, epoch: int) -> Marker | None:
        """The epoch's."""
        return next(iter(self._select_markers(cursor, _BY_EPOCH, epoch)), None)

    def find_marker_of_span(self, cursor: Cursor, span: str) -> Marker | None:
        """That of a range, whatever number its epoch has; else that of another sink, see `sinks_beside`."""
        return next(iter(self._select_markers(cursor, _BY_SPAN, span)), None) or self._find_span_beside(cursor, span)

    def _find_span_beside(self, cursor: Cursor, span: str) -> Marker | None:
        found = (self._select_markers(cursor, _BY_SPAN, span, sink=sink) for sink in self.sinks_beside(cursor))
        return next((marker for markers in found for marker in markers), None)

    def newest_markers(self, cursor: Cursor) -> list[Marker]:
        """The one with the largest epoch, and of those with a range the one with the largest token; those of other
        sinks, see `sinks_beside`, where they are larger."""
        own, *others = (
            [marker for one in (_LAST, _YOUNGEST) for marker in self._select_markers(cursor, one, sink=sink)]
            for sink in (self.owner.sink, *self.sinks_beside(cursor))
        )
        every = [*own, *(marker for markers in others for marker in markers)]
        largest = [max(every, key=key) for key in (lambda one: one.epoch, lambda one: one.token) if every]
        return list(dict.fromkeys([*own, *largest]))

    def sinks_beside(self, cursor: Cursor) -> list[str]:
        """The pipeline's other sinks that own one of this sink's tables, in this schema: its former names, say. The
        pipeline has one ledger, so what they show says as much of it as what this one shows."""
        if not self._exists(cursor, TARGETS):
            return []
        return sorted(
            str(sink) for (sink,) in self._query(cursor, _SINKS_BESIDE, self.owner_key, targets=self.table(TARGETS))
        )

    def markers(self, cursor: Cursor, sink: str | None = None) -> list[Marker]:
        """Every one; of another `sink`."""
        return self._select_markers(cursor, _EVERY, sink=sink)

    def _select_markers(self, cursor: Cursor, statement: str, *values: object, sink: str | None = None) -> list[Marker]:
        if not self._exists(cursor, MARKERS):
            return []
        names = {"markers": self.table(MARKERS), "ranges": self.table(RANGES)}
        owner = (self.owner.deployment, self.owner.pipeline, sink or self.owner.sink)
        rows = self._query(cursor, statement, (*owner, *values), **names)
        return [Marker(*row) for row in rows]

    # --- keys of upserts ---

    def count_keys(self, cursor: Cursor, epoch: SinkEpoch, relation: Relation, new: int) -> None:
        """Note that this transaction brings `new` keys into `relation`, or, below 0, takes some away; it adds to what
        the epoch has brought before."""
        row = (*self.owner_key, str(relation), epoch.id, new)
        self._change(cursor, self.add_keys, row, keys=self.table(KEYS))

    def has_brought(self, cursor: Cursor, epoch: int, relation: Relation) -> bool:
        """Whether the epoch's rows went into `relation`, by key and with its number."""
        values, keys = (*self.owner_key, str(relation), epoch), self.table(KEYS)
        return bool(self._query(cursor, _BROUGHT, values, keys=keys))

    def unmarked(self, cursor: Cursor, epochs: Collection[int]) -> list[int]:
        """Those of `epochs` that the sink has no marker of."""
        if not epochs:
            return []
        values, markers = (*self.owner_key, tuple(epochs)), self.table(MARKERS)
        return sorted({*epochs} - {int(epoch) for (epoch,) in self._query(cursor, _MARKED, values, markers=markers)})

    def missing_keys(self, cursor: Cursor, relation: Relation) -> int:
        """How many keys `relation` has less than its epochs have brought; in one snapshot."""
        values, names = (*self.owner_key, str(relation)), {"keys": self.table(KEYS), "table": relation}
        [(missing,)] = self._query(cursor, _MISSING_KEYS, values, **names)
        return int(missing)

    @property
    def owner_key(self) -> tuple[str, str, str]:
        return self.owner.deployment, self.owner.pipeline, self.owner.sink

    def table(self, name: str) -> Relation:
        """One of Lockstep's own tables."""
        return Relation(self.home, name)


def _require_apart(sink: str, outputs: Mapping[str, tuple[str, Set[str]]]) -> None:
    """`outputs`: the table of each as the server calls it, and all names under which its rows are seen, that one
    included. Raises `PreflightRefused` where two outputs have one."""
    for (one, (table, relatives)), (other, (theirs, _)) in combinations(outputs.items(), 2):
        if theirs in relatives:
            kin = "" if table == theirs else f", of which {theirs} is a part"
            raise PreflightRefused(
                f"sink {sink}: outputs {one} and {other} go into one table, {table}{kin}, as the server reads their "
                "names: give each output a table of its own"
            )

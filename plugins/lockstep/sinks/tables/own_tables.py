"""Lockstep's own tables in a target database: markers, owners of tables, and the database's id.

    lockstep_marker     one row for each published (deployment, pipeline, sink, epoch), written with the epoch's rows
    lockstep_range      the interval of each marker, written with it: finds a marker whatever number its epoch has
    lockstep_target     the owner of each target table
    lockstep_target_id  one random id, which identifies this database
    lockstep_keys       for upserts: the number of new keys of each epoch, written with its rows

Every method takes a cursor of the caller's connection. A change belongs to the caller's transaction; a search for
markers has to run in a new one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused, SinkUnavailable, TargetChanged, TargetOwned
from lockstep.sinks.open_sink import shown_before
from lockstep.sinks.tables.dialect import Cursor, Dialect
from lockstep.sinks.tables.upserts import AS_OLD_ROWS
from lockstep.sinks.values import Marker, SinkEpoch

MARKERS, RANGES, TARGETS = "lockstep_marker", "lockstep_range", "lockstep_target"
IDENTITY, KEYS = "lockstep_target_id", "lockstep_keys"

_SELECT = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {markers} m
    LEFT JOIN {ranges} r USING (deployment, pipeline, sink, token, epoch)
    WHERE m.deployment = %s AND m.pipeline = %s AND m.sink = %s
"""
_MARKER_OF_EPOCH = f"{_SELECT} AND m.epoch = %s"
_ALL_MARKERS = f"{_SELECT} ORDER BY m.epoch DESC"
_LARGEST_EPOCH = f"{_ALL_MARKERS} LIMIT 1"
_YOUNGEST = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {ranges} r
    JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s ORDER BY r.token DESC, r.epoch DESC LIMIT 1
"""
_MARKER_OF_SPAN = """
    SELECT r.epoch, r.token, COALESCE(m.manifest_hash, ''), r.span FROM {ranges} r
    LEFT JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s AND r.span = %s
"""
_OTHER_SINKS = """
    SELECT DISTINCT other.sink FROM {targets} mine JOIN {targets} other USING (relation, deployment, pipeline)
    WHERE mine.deployment = %s AND mine.pipeline = %s AND mine.sink = %s AND other.sink <> mine.sink
"""
_INSERT_MARKER = (
    "INSERT INTO {markers} (deployment, pipeline, sink, epoch, token, manifest_hash) VALUES (%s, %s, %s, %s, %s, %s)"
)
_INSERT_RANGE = "INSERT INTO {ranges} (deployment, pipeline, sink, span, epoch, token) VALUES (%s, %s, %s, %s, %s, %s)"
_UPDATE_RANGE = "UPDATE {ranges} SET token = %s WHERE deployment = %s AND pipeline = %s AND sink = %s AND span = %s"
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
_KEYS_OF_EPOCH = (
    "SELECT new FROM {keys} WHERE deployment = %s AND pipeline = %s AND sink = %s AND relation = %s AND epoch = %s"
)
_EPOCHS_WITH_MARKER = (
    "SELECT epoch FROM {markers} WHERE deployment = %s AND pipeline = %s AND sink = %s AND epoch IN %s"
)
_COUNT_COMMON_EPOCHS = (
    "SELECT COUNT(*), COUNT(mine.epoch) FROM {markers} m LEFT JOIN {markers} mine ON mine.deployment = m.deployment "
    "AND mine.pipeline = m.pipeline AND mine.epoch = m.epoch AND mine.sink = %s "
    "WHERE m.deployment = %s AND m.pipeline = %s AND m.sink = %s"
)
_COUNT_MISSING_KEYS = (
    "SELECT GREATEST(0, (SELECT COALESCE(SUM(new), 0) FROM {keys} WHERE deployment = %s AND pipeline = %s "
    "AND sink = %s AND relation = %s) - (SELECT COUNT(*) FROM {table}))"
)


class Owner(NamedTuple):
    """A sink that is registered as owner of a table, in the `lockstep_target` of `schema`."""

    deployment: str
    pipeline: str
    sink: str
    shared: bool
    schema: str


@dataclass(frozen=True)
class OwnTables:
    """Lockstep's own tables, as seen by the sink `dialect.owner`."""

    dialect: Dialect

    # --- owners of tables ---

    def claim(self, cursor: Cursor, outputs: Mapping[str, Relation], *, shared: bool) -> None:
        """Register as owner of the table of each output.

        Raises `TargetOwned` if another pipeline owns one, unless both say shared=True; for upserts, if any other sink
        does, of the same pipeline included. Raises `PreflightRefused` where two outputs share a table.
        """
        dialect = self.dialect
        stored = {output: dialect.stored_name(cursor, relation) for output, relation in outputs.items()}
        related = {output: dialect.related_tables(cursor, relation) for output, relation in stored.items()}
        _require_distinct(self._sink, stored, related)
        for output, relation in stored.items():
            for owner in self._owners(cursor, related[output]):
                foreign = (owner.deployment, owner.pipeline) != dialect.owner_key[:2]
                if dialect.upserts or (foreign and not (shared and owner.shared)):
                    share = "" if dialect.upserts else " say shared=True in both,"
                    raise TargetOwned(
                        f"sink {self._sink}: table {relation} belongs to sink {owner.sink} of pipeline "
                        f"{owner.pipeline}, deployment {owner.deployment}; write elsewhere,{share} give a renamed sink "
                        f"its name back, or delete its row of {owner.schema}.{TARGETS} if that pipeline is gone"
                        f"{AS_OLD_ROWS if dialect.upserts else ''}"
                    )
            key, targets = (str(relation), *self.dialect.owner_key), self.table(TARGETS)
            rows = dialect.query(cursor, _SELECT_SHARED, key, targets=targets)
            if rows != [(shared,)]:  # most preflights find the row, and write nothing
                dialect.require_may_own(cursor)
                dialect.change(cursor, _UPDATE_OWNER if rows else _INSERT_OWNER, (shared, *key), targets=targets)

    def disclaim(self, cursor: Cursor) -> None:
        """Own no table any longer."""
        if self._exists(cursor, TARGETS):
            self.dialect.change(cursor, _DELETE_OWNER, self.dialect.owner_key, targets=self.table(TARGETS))

    def other_owners(self, cursor: Cursor, relation: Relation) -> list[Owner]:
        """Every other sink that owns `relation` or a related table, in any schema; without former names of this sink,
        whose epochs have other numbers."""
        related = self.dialect.related_tables(cursor, self.dialect.stored_name(cursor, relation))
        return [owner for owner in self._owners(cursor, related) if not self._is_former_name(cursor, owner)]

    def _is_former_name(self, cursor: Cursor, owner: Owner) -> bool:
        """True if `owner`, of the same pipeline, has markers here, and none of an epoch that this sink has one of.

        The same holds for a later name of the sink. Two sinks of one plan have epochs in common, or no markers.
        """
        if (owner.deployment, owner.pipeline, owner.schema) != (*self.dialect.owner_key[:2], self.dialect.own_schema):
            return False
        values, markers = (self._sink, *owner[:3]), self.table(MARKERS)
        [(epochs, common)] = self.dialect.query(cursor, _COUNT_COMMON_EPOCHS, values, markers=markers)
        return bool(epochs) and not common

    def _owners(self, cursor: Cursor, tables: Set[str]) -> list[Owner]:
        """Other sinks that own one of `tables`, in this schema and then in others."""
        select = _OTHER_OWNERS.replace("{relation}", self.dialect.relation_as_stored)
        values = (tuple(sorted(tables)), *self.dialect.owner_key)
        owners = []
        for schema in (self.dialect.own_schema, *self.dialect.other_schemas(cursor)):
            try:
                rows = self.dialect.query(cursor, select, values, targets=Relation(schema, TARGETS))
            except Exception as error:
                if schema == self.dialect.own_schema or not self.dialect.is_unreadable(error):
                    raise
                continue
            for deployment, pipeline, sink, shared in rows:
                owners.append(Owner(str(deployment), str(pipeline), str(sink), bool(shared), schema))
        return owners

    # --- the database's id ---

    def target_id(self, cursor: Cursor) -> str:
        """Raises `TargetChanged` where Lockstep's tables are missing: no preflight ran in this database."""
        if self._exists(cursor, IDENTITY):
            for (target_id,) in self.dialect.query(cursor, "SELECT id FROM {ids}", ids=self.table(IDENTITY)):
                return str(target_id)
        raise TargetChanged(
            f"sink {self._sink}: the database has no {self.table(IDENTITY)}, which every target has after its "
            "preflight: the connection leads to another database, or the schema argument changed"
        )

    # --- markers ---

    def insert_marker(self, cursor: Cursor, epoch: SinkEpoch) -> bool:
        """Insert the epoch's marker; False if it exists. Waits for open and prepared transactions that hold it, or the
        epoch's range. Raises `LedgerConflict` if the range has a marker under another number."""
        row = (*self.dialect.owner_key, epoch.id, epoch.token, epoch.manifest_hash)
        inserted = self.dialect.insert_once(cursor, _INSERT_MARKER, row, markers=self.table(MARKERS))
        if inserted and epoch.span is not None:
            self._insert_range(cursor, epoch, epoch.span)
        return inserted

    def _insert_range(self, cursor: Cursor, epoch: SinkEpoch, span: str) -> None:
        row = (*self.dialect.owner_key, span, epoch.id, epoch.token)
        if not self.dialect.insert_once(cursor, _INSERT_RANGE, row, ranges=self.table(RANGES)):
            marker = self.find_marker_of_span(cursor, span)
            if marker is None or marker.epoch != epoch.id:
                raise shown_before(self._sink, epoch, marker or Marker(0, 0, "", span))
            # its marker was deleted by hand, and this transaction has inserted another
            values = (epoch.token, *self.dialect.owner_key, span)
            self.dialect.change(cursor, _UPDATE_RANGE, values, ranges=self.table(RANGES))
        elif (marker := self._find_span_of_others(cursor, span)) is not None and marker.epoch != epoch.id:
            raise shown_before(self._sink, epoch, marker)

    def record_rows(self, cursor: Cursor, epoch: SinkEpoch, rows: Mapping[str, int]) -> None:
        """Write the rows per output into the marker that this transaction has inserted."""
        statement = _UPDATE_ROWS.replace("{rows}", self.dialect.rows_column)
        self._change_marker(cursor, statement, epoch, json.dumps(dict(rows)))

    def name_manifest(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        """Write the manifest into the marker that this transaction has inserted before it was known."""
        self._change_marker(cursor, _UPDATE_MANIFEST, epoch, epoch.manifest_hash)

    def _change_marker(self, cursor: Cursor, statement: str, epoch: SinkEpoch, value: object) -> None:
        row = (value, *self.dialect.owner_key, epoch.id, epoch.token)
        if self.dialect.change(cursor, statement, row, markers=self.table(MARKERS)) != 1:
            raise SinkUnavailable(
                f"sink {self._sink}: the session has lost its transaction, which had inserted the marker of epoch "
                f"{epoch.id}: is there a pooler or proxy in between that switches servers? Connect directly"
            )

    def find_marker(self, cursor: Cursor, epoch: int) -> Marker | None:
        return next(iter(self._select_markers(cursor, _MARKER_OF_EPOCH, epoch)), None)

    def find_marker_of_span(self, cursor: Cursor, span: str) -> Marker | None:
        """The marker of a range, whatever number its epoch has; else that of another sink, see `other_sinks`."""
        own = self._select_markers(cursor, _MARKER_OF_SPAN, span)
        return next(iter(own), None) or self._find_span_of_others(cursor, span)

    def _find_span_of_others(self, cursor: Cursor, span: str) -> Marker | None:
        for sink in self.other_sinks(cursor):
            for marker in self._select_markers(cursor, _MARKER_OF_SPAN, span, sink=sink):
                return marker
        return None

    def newest_markers(self, cursor: Cursor) -> list[Marker]:
        """The marker with the largest epoch and, of those with a range, the one with the largest token; also those of
        `other_sinks`, where they are larger."""
        own, *of_other_sinks = (
            [
                marker
                for query in (_LARGEST_EPOCH, _YOUNGEST)
                for marker in self._select_markers(cursor, query, sink=sink)
            ]
            for sink in (self._sink, *self.other_sinks(cursor))
        )
        candidates = [*own, *(marker for markers in of_other_sinks for marker in markers)]
        if not candidates:
            return []
        largest = max(candidates, key=lambda marker: marker.epoch), max(candidates, key=lambda marker: marker.token)
        return list(dict.fromkeys([*own, *largest]))

    def other_sinks(self, cursor: Cursor) -> list[str]:
        """The pipeline's other sinks that own one of this sink's tables, in this schema: its former names, for example.
        They share the pipeline's ledger, so their markers count as much as this sink's own."""
        if not self._exists(cursor, TARGETS):
            return []
        rows = self.dialect.query(cursor, _OTHER_SINKS, self.dialect.owner_key, targets=self.table(TARGETS))
        return sorted(str(sink) for (sink,) in rows)

    def markers(self, cursor: Cursor, sink: str | None = None) -> list[Marker]:
        """Every marker of this sink, or of another `sink` of the pipeline."""
        return self._select_markers(cursor, _ALL_MARKERS, sink=sink)

    def _select_markers(self, cursor: Cursor, statement: str, *values: object, sink: str | None = None) -> list[Marker]:
        if not self._exists(cursor, MARKERS):
            return []
        names = {"markers": self.table(MARKERS), "ranges": self.table(RANGES)}
        owner = (*self.dialect.owner_key[:2], sink or self._sink)
        return [Marker(*row) for row in self.dialect.query(cursor, statement, (*owner, *values), **names)]

    # --- keys of upserts ---

    def count_keys(self, cursor: Cursor, epoch: SinkEpoch, relation: Relation, new: int) -> None:
        """Record that this transaction adds `new` keys to `relation`, or removes some (negative), on top of what the
        epoch has recorded before."""
        row = (*self.dialect.owner_key, str(relation), epoch.id, new)
        self.dialect.change(cursor, self.dialect.add_keys, row, keys=self.table(KEYS))

    def has_brought(self, cursor: Cursor, epoch: int, relation: Relation) -> bool:
        """True if the epoch's rows were upserted into `relation`."""
        values = (*self.dialect.owner_key, str(relation), epoch)
        return bool(self.dialect.query(cursor, _KEYS_OF_EPOCH, values, keys=self.table(KEYS)))

    def without_marker(self, cursor: Cursor, epochs: Collection[int]) -> list[int]:
        """The subset of `epochs` without a marker of this sink."""
        if not epochs:
            return []
        values = (*self.dialect.owner_key, tuple(epochs))
        rows = self.dialect.query(cursor, _EPOCHS_WITH_MARKER, values, markers=self.table(MARKERS))
        return sorted({*epochs} - {int(epoch) for (epoch,) in rows})

    def missing_keys(self, cursor: Cursor, relation: Relation) -> int:
        """Number of keys that epochs have added to `relation` and it lacks now; in one snapshot."""
        values, names = (*self.dialect.owner_key, str(relation)), {"keys": self.table(KEYS), "table": relation}
        [(missing,)] = self.dialect.query(cursor, _COUNT_MISSING_KEYS, values, **names)
        return int(missing)

    @property
    def _sink(self) -> str:
        return self.dialect.owner.sink

    def table(self, name: str) -> Relation:
        """One of Lockstep's own tables."""
        return Relation(self.dialect.own_schema, name)

    def _exists(self, cursor: Cursor, table: str) -> bool:
        return table in self.dialect.existing_tables(cursor, table)


def _require_distinct(sink: str, tables: Mapping[str, Relation], related: Mapping[str, Set[str]]) -> None:
    """Raise `PreflightRefused` where two outputs go into one table, or into a table and a part of it."""
    for first, second in combinations(tables, 2):
        if str(tables[second]) in related[first]:
            part = "" if tables[first] == tables[second] else f", of which {tables[second]} is a part"
            raise PreflightRefused(
                f"sink {sink}: outputs {first} and {second} go into one table, {tables[first]}{part}, as the server "
                "reads their names: give each output a table of its own"
            )

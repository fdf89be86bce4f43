"""Staging below a table that adopts files: `_lockstep/<deployment>/<pipeline>/<epoch>/<token>/<output>/part-*.parquet`.

Compactions write to `_lockstep/<deployment>/<pipeline>/compacted/<number>/part-*.parquet`. Readers and VACUUM skip
folders whose name starts with `_`. No path contains a '=', which some readers would take for a partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from lockstep.crash import CrashPoint
from lockstep.epoch import Json
from lockstep.wal._storage import (
    Kind,
    Storage,
    delete_entry,
    delete_folder,
    is_hidden,
    is_wal_file,
    naming_errors,
    remove_empty_folder,
)


@dataclass(frozen=True)
class TableStaging:
    """Staging of one output below its table. `table`: URI or absolute path of the table's folder, without secrets. Each
    file has `epoch_column` as its last column and rows of one partition. `partition_by`: columns, and
    `year(column)`, `month(…)`, `day(…)`, `hour(…)` in UTC. `field_ids`: of the table, by column; empty for a new
    table, which numbers them in order; None: no field ids."""

    table: str
    epoch_column: str
    partition_by: tuple[str, ...] = ()
    field_ids: Mapping[str, int] | None = None

    def to_json(self) -> Json:
        parts = {"partition_by": list(self.partition_by)} if self.partition_by else {}
        ids = {"field_ids": dict(self.field_ids)} if self.field_ids is not None else {}
        return {"table": self.table, "epoch_column": self.epoch_column, **parts, **ids}

    @classmethod
    def from_json(cls, value: Json) -> TableStaging:
        """Parse `to_json`. Raises KeyError, TypeError."""
        table, column, parts = value["table"], value["epoch_column"], value.get("partition_by", [])
        if not (isinstance(table, str) and isinstance(column, str) and isinstance(parts, list)):
            raise TypeError(f"expected two texts and a list, found {value!r}")
        if not all(isinstance(part, str) for part in parts):
            raise TypeError(f"expected columns, found {parts!r}")
        return cls(table, column, tuple(parts), value.get("field_ids"))

    def ids_of(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Field ids of a file's columns; empty unless the table has all of them: readers then match by name."""
        if self.field_ids == {}:
            return {name: number for number, name in enumerate(columns, 1)}
        ids = self.field_ids or {}
        return {name: ids[name] for name in columns} if set(columns) <= set(ids) else {}

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path`, relative to the table's folder; not percent-encoded."""
        table = self.table.partition("?")[0].rstrip("/")
        return f"{table if '://' in table else f'file://{table}'}/{path}"


def with_field_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """`schema` with these ids, unless it has nested columns, whose fields would need ids, too."""
    if not ids or any(map(pa.types.is_nested, schema.types)):
        return schema
    return pa.schema([field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in schema])


ROOT, COMPACTED = "_lockstep", "compacted"
FOREIGN = "that others wrote"


@dataclass(frozen=True)
class CompactionFolder:
    """Compactions of one pipeline below one table."""

    deployment: str
    pipeline: str

    @property
    def all(self) -> str:
        return f"{ROOT}/{self.deployment}/{self.pipeline}/{COMPACTED}"

    def of(self, number: int) -> str:
        return f"{self.all}/{number}"

    def owner_of(self, path: str) -> tuple[int | None, str | None]:
        """The epoch that wrote the file, or None for a compaction; and why Lockstep must not compact it."""
        own = re.search(rf"(?:^|/){ROOT}/{re.escape(f'{self.deployment}/{self.pipeline}')}/(\w+)/\d+/", path)
        if own is None:
            return None, FOREIGN
        if own[1] == COMPACTED:
            return None, None
        return (int(own[1]), None) if own[1].isdigit() else (None, FOREIGN)


_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class TableStagingFolder:
    """Folder of one execution (`number` is its token) or of one compaction (`epoch` is None)."""

    path: str
    number: int
    epoch: int | None = None


@dataclass(frozen=True)
class TableStagingFolders:
    """Folders of one pipeline below one table. Raises as `Staging`."""

    storage: Storage
    deployment: str
    pipeline: str

    def folder(self, epoch: int, token: int) -> str:
        """Folder of one execution, relative to the table's folder; creates nothing."""
        return f"{self._epoch(epoch)}/{token}"

    def uri_of(self, epoch: int, token: int) -> str:
        """Absolute URI of that folder for Spark."""
        return self.storage.uri_of(self.folder(epoch, token))

    def _epoch(self, epoch: int) -> str:
        return f"{ROOT}/{self.deployment}/{self.pipeline}/{epoch}"

    def tokens(self, epoch: int) -> list[int]:
        """Executions with files of `epoch`, in order. Other entries are ignored."""
        return self._numbers(self._epoch(epoch))

    def folders(self) -> Iterator[TableStagingFolder]:
        """All folders of executions and compactions."""
        for epoch in self._numbers(f"{ROOT}/{self.deployment}/{self.pipeline}"):
            for token in self.tokens(epoch):
                yield TableStagingFolder(self.folder(epoch, token), token, epoch)
        compacted = CompactionFolder(self.deployment, self.pipeline)
        for number in self.compactions():
            yield TableStagingFolder(compacted.of(number), number)

    def sizes(self, folder: TableStagingFolder) -> dict[str, int]:
        """Bytes of each Parquet file in the folder, by path."""
        with naming_errors("list", folder.path), suppress(FileNotFoundError):
            within = [entry.path for entry in self.storage.children(folder.path) if entry.kind is Kind.FOLDER]
            return {
                f"{place}/{name}": stamp.size
                for place in (folder.path, *within)
                for name, stamp in self.storage.stamps(place).items()
                if is_wal_file(name)
            }
        return {}

    def expire(self, folder: TableStagingFolder, paths: Iterable[str]) -> None:
        """Delete files of the folder and emptied folders; already deleted files are fine. The caller has checked with
        table and ledger that no readable version consists of them."""
        with naming_errors("delete", folder.path):
            for path in paths:
                delete_entry(
                    self.storage,
                    path,
                    Kind.FILE,
                    CrashPoint.COMPACT_BEFORE_EXPIRE,
                    CrashPoint.COMPACT_AFTER_EXPIRE,
                )
            if self.storage.removes_empty_only:
                self._remove_empty(folder)

    def _remove_empty(self, folder: TableStagingFolder) -> None:
        """Remove folders that only contain hidden files."""
        within = [entry for entry in self.storage.children(folder.path) if entry.kind is Kind.FOLDER]
        above = [self._epoch(folder.epoch)] if folder.epoch is not None else []
        for place in (*[entry.path for entry in within], folder.path, *above):
            remaining = self.storage.children(place)
            if all(entry.kind is Kind.FILE and is_hidden(entry) for entry in remaining):
                for entry in remaining:
                    self.storage.delete(entry.path)
                with suppress(FileNotFoundError):
                    self.storage.remove_folder(place)

    def _numbers(self, folder: str) -> list[int]:
        with naming_errors("list", folder), suppress(FileNotFoundError):
            entries = self.storage.children(folder)
            return sorted(
                int(entry.name) for entry in entries if entry.kind is Kind.FOLDER and _NUMBER.fullmatch(entry.name)
            )
        return []

    def compactions(self) -> list[int]:
        """Numbers of the compactions with remaining files."""
        return self._numbers(CompactionFolder(self.deployment, self.pipeline).all)

    def discard_compaction(self, number: int) -> None:
        """Delete a compaction's files; fine if they are already deleted. Only if the table can't ever contain them:
        fence the compaction, then check the table."""
        folder = CompactionFolder(self.deployment, self.pipeline).of(number)
        with naming_errors("delete", folder):
            delete_folder(self.storage, folder, CrashPoint.COMPACT_BEFORE_DELETE, CrashPoint.COMPACT_AFTER_DELETE)

    def discard(self, epoch: int, token: int) -> None:
        """Delete an execution's files; already deleted parts are fine. Only if the table can't have adopted them: check
        the ledger first."""
        with naming_errors("delete", self.folder(epoch, token)):
            delete_folder(
                self.storage,
                self.folder(epoch, token),
                CrashPoint.ROLLBACK_BEFORE_FOLDER,
                CrashPoint.ROLLBACK_AFTER_FOLDER,
            )
            remove_empty_folder(self.storage, self._epoch(epoch), over=False)

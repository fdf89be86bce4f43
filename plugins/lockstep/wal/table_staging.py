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
    """The home of one output. `table`: URI or absolute path of the table's folder, free of secrets, as staging takes
    one; each file has `epoch_column` as its last column, with the epoch's number in every row, and rows of one
    partition only. `partition_by`: columns, and `year(column)`, `month(…)`, `day(…)`, `hour(…)`, which are of UTC.
    `field_ids`: the table's, by column; empty of one that is yet to be made, and will number them in their order; None:
    files have none."""

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
        """Raises KeyError, TypeError for anything that `to_json` doesn't make."""
        table, column, parts = value["table"], value["epoch_column"], value.get("partition_by", [])
        if not (isinstance(table, str) and isinstance(column, str) and isinstance(parts, list)):
            raise TypeError(f"expected two texts and a list, found {value!r}")
        if not all(isinstance(part, str) for part in parts):
            raise TypeError(f"expected columns, found {parts!r}")
        return cls(table, column, tuple(parts), value.get("field_ids"))

    def ids_of(self, columns: Sequence[str]) -> Mapping[str, int]:
        """Field ids of a file's columns; none if the table doesn't know each of them: then readers go by names."""
        if self.field_ids == {}:
            return {name: number for number, name in enumerate(columns, 1)}
        ids = self.field_ids or {}
        return {name: ids[name] for name in columns} if set(columns) <= set(ids) else {}

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path`, relative to the table's folder; neither is percent-encoded."""
        table = self.table.partition("?")[0].rstrip("/")
        return f"{table if '://' in table else f'file://{table}'}/{path}"


def with_field_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """`schema` with these ids, if it has no nested columns, whose parts would need some, too."""
    if not ids or any(map(pa.types.is_nested, schema.types)):
        return schema
    return pa.schema([field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in schema])


ROOT, COMPACTED = "_lockstep", "compacted"
FOREIGN = "that others wrote"


@dataclass(frozen=True)
class CompactionFolder:
    """Of one pipeline below one table."""

    deployment: str
    pipeline: str

    @property
    def all(self) -> str:
        return f"{ROOT}/{self.deployment}/{self.pipeline}/{COMPACTED}"

    def of(self, number: int) -> str:
        return f"{self.all}/{number}"

    def owner_of(self, path: str) -> tuple[int | None, str | None]:
        """Epoch that brought the file, None of one that a compaction wrote; and why it isn't Lockstep's to compact."""
        own = re.search(rf"(?:^|/){ROOT}/{re.escape(f'{self.deployment}/{self.pipeline}')}/(\w+)/\d+/", path)
        if own is None:
            return None, FOREIGN
        if own[1] == COMPACTED:
            return None, None
        return (int(own[1]), None) if own[1].isdigit() else (None, FOREIGN)


_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class TableStagingFolder:
    """Where one execution, by its token, or one compaction has written; `epoch` is None of a compaction."""

    path: str
    number: int
    epoch: int | None = None


@dataclass(frozen=True)
class TableStagingFolders:
    """What one pipeline has staged below one table. Every call raises as those of `Staging` do."""

    storage: Storage
    deployment: str
    pipeline: str

    def folder(self, epoch: int, token: int) -> str:
        """Of one execution, relative to the table's folder; makes nothing."""
        return f"{self._epoch(epoch)}/{token}"

    def uri_of(self, epoch: int, token: int) -> str:
        """Absolute URI of that folder for Spark."""
        return self.storage.uri_of(self.folder(epoch, token))

    def _epoch(self, epoch: int) -> str:
        return f"{ROOT}/{self.deployment}/{self.pipeline}/{epoch}"

    def tokens(self, epoch: int) -> list[int]:
        """The executions that have left something of `epoch`, in order. What isn't Lockstep's isn't told of."""
        return self._numbers(self._epoch(epoch))

    def folders(self) -> Iterator[TableStagingFolder]:
        """Every folder of an execution or a compaction that holds something."""
        for epoch in self._numbers(f"{ROOT}/{self.deployment}/{self.pipeline}"):
            for token in self.tokens(epoch):
                yield TableStagingFolder(self.folder(epoch, token), token, epoch)
        compacted = CompactionFolder(self.deployment, self.pipeline)
        for number in self.compactions():
            yield TableStagingFolder(compacted.of(number), number)

    def sizes(self, folder: TableStagingFolder) -> dict[str, int]:
        """Bytes of each Parquet file in it, by its path."""
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
        """Delete these files of it, and what is empty then; fine when they are gone. Only what no version of the table
        that anybody may read consists of, and nobody else needs: ask the table and the ledger first."""
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
        """With what Hadoop left beside the files. A folder that somebody uses stays."""
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
        """The compactions that have written something, and what they wrote hasn't all gone."""
        return self._numbers(CompactionFolder(self.deployment, self.pipeline).all)

    def discard_compaction(self, number: int) -> None:
        """Delete what a compaction wrote; fine when it is gone. Only for what the table never had, nor ever can have:
        fence it, then ask the table."""
        folder = CompactionFolder(self.deployment, self.pipeline).of(number)
        with naming_errors("delete", folder):
            delete_folder(self.storage, folder, CrashPoint.COMPACT_BEFORE_DELETE, CrashPoint.COMPACT_AFTER_DELETE)

    def discard(self, epoch: int, token: int) -> None:
        """Delete what an execution left, file by file; fine when it, or part of it, is gone.

        Only for what the table can never have adopted: ask the ledger first.
        """
        with naming_errors("delete", self.folder(epoch, token)):
            delete_folder(
                self.storage,
                self.folder(epoch, token),
                CrashPoint.ROLLBACK_BEFORE_FOLDER,
                CrashPoint.ROLLBACK_AFTER_FOLDER,
            )
            remove_empty_folder(self.storage, self._epoch(epoch), over=False)

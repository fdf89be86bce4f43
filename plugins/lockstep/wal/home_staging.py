"""Staging below a table: `_lockstep/<deployment>/<pipeline>/<epoch>/<token>/<output>/part-*.parquet`.

The name that starts with `_` hides the folder from readers of the table and from what removes files that no log names.
No part of a path has a '=': some readers would take it for a partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from lockstep.crash import CrashPoint
from lockstep.wal._discarding import delete_entry, delete_folder, forget_epoch
from lockstep.wal._storage import Kind, Storage, is_hidden, is_wal_file, naming_errors
from lockstep.wal.compaction_folder import ROOT, CompactionFolder

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class HomeFolder:
    """Where one execution, by its token, or one compaction has written; `epoch` is None of a compaction."""

    path: str
    number: int
    epoch: int | None = None


@dataclass(frozen=True)
class HomeStaging:
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

    def folders(self) -> Iterator[HomeFolder]:
        """Every folder of an execution or a compaction that holds something."""
        for epoch in self._numbers(f"{ROOT}/{self.deployment}/{self.pipeline}"):
            for token in self.tokens(epoch):
                yield HomeFolder(self.folder(epoch, token), token, epoch)
        compacted = CompactionFolder(self.deployment, self.pipeline)
        for number in self.compactions():
            yield HomeFolder(compacted.of(number), number)

    def sizes(self, folder: HomeFolder) -> dict[str, int]:
        """Bytes of each Parquet file in it, by its path."""
        with naming_errors("list", folder.path), suppress(FileNotFoundError):
            within = [one.path for one in self.storage.children(folder.path) if one.kind is Kind.FOLDER]
            return {
                f"{place}/{name}": stamp.size
                for place in (folder.path, *within)
                for name, stamp in self.storage.stamps(place).items()
                if is_wal_file(name)
            }
        return {}

    def expire(self, folder: HomeFolder, paths: Iterable[str]) -> None:
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

    def _remove_empty(self, folder: HomeFolder) -> None:
        """With what Hadoop left beside the files. A folder that somebody uses stays."""
        within = [one for one in self.storage.children(folder.path) if one.kind is Kind.FOLDER]
        above = [self._epoch(folder.epoch)] if folder.epoch is not None else []
        for place in (*[one.path for one in within], folder.path, *above):
            left = self.storage.children(place)
            if all(one.kind is Kind.FILE and is_hidden(one) for one in left):
                for one in left:
                    self.storage.delete(one.path)
                with suppress(FileNotFoundError):
                    self.storage.remove_folder(place)

    def _numbers(self, folder: str) -> list[int]:
        with naming_errors("list", folder), suppress(FileNotFoundError):
            found = self.storage.children(folder)
            return sorted(int(one.name) for one in found if one.kind is Kind.FOLDER and _NUMBER.fullmatch(one.name))
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
            forget_epoch(self.storage, self._epoch(epoch), over=False)

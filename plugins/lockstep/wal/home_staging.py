"""Staging below a table: `_lockstep/<deployment>/<pipeline>/<epoch>/<token>/<output>/part-*.parquet`.

The name that starts with `_` hides the folder from readers of the table and from what removes files that no log names.
No part of a path has a '=': some readers would take it for a partition.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from lockstep.crash import CrashPoint
from lockstep.wal._discarding import delete_folder, forget_epoch
from lockstep.wal._storage import Kind, Storage, naming_errors

ROOT = "_lockstep"
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


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
        folder = self._epoch(epoch)
        with naming_errors("list", folder), suppress(FileNotFoundError):
            found = self.storage.children(folder)
            return sorted(int(one.name) for one in found if one.kind is Kind.FOLDER and _NUMBER.fullmatch(one.name))
        return []

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

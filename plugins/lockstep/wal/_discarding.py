"""Deleting and moving what a WAL leaves, one file at a time: any crash in between is mended by doing it again."""

from __future__ import annotations

from contextlib import suppress

from lockstep.crash import CrashPoint, reach
from lockstep.wal._storage import Entry, Kind, Storage, tree


def delete_folder(storage: Storage, folder: str, before: CrashPoint, after: CrashPoint) -> None:
    """Delete `folder` with all it holds, a crash point around each step; what is gone already is fine.

    Raises `StagingRefused`, with nothing deleted, if it holds a link; OSError (ENOTEMPTY) if somebody adds to it.
    """
    with suppress(FileNotFoundError):
        for entry in tree(storage, folder):
            delete_entry(storage, entry.path, entry.kind, before, after)
        delete_entry(storage, folder, Kind.FOLDER, before, after)


def delete_entry(storage: Storage, path: str, kind: Kind, before: CrashPoint, after: CrashPoint) -> None:
    """Delete a file or an empty folder, a crash point on either side; fine when it is gone already."""
    reach(before)
    with suppress(FileNotFoundError):
        if kind is Kind.FOLDER:
            storage.remove_folder(path)
        else:
            storage.delete(path)
    reach(after)


def forget_epoch(storage: Storage, folder: str, *, over: bool) -> None:
    """Remove an epoch's folder if nothing is left in it, and make what was deleted stay deleted.

    `over`: nothing of that epoch will ever be written there again. If something may be, an object store, which can't
    remove a folder only if it is empty, keeps it.
    """
    with suppress(FileNotFoundError):
        storage.sync(folder)
        if (over or storage.removes_empty_only) and not storage.children(folder):
            storage.remove_folder(folder)
            storage.sync(folder.rpartition("/")[0])


def move_files(storage: Storage, source: str, target: str) -> None:
    """Move each file below `source` to the same place below `target`, over what an earlier try left there.

    On return every file that was there has been moved, by this call or by another one at the same time.
    """
    entries: list[Entry] = []
    with suppress(FileNotFoundError):
        entries = tree(storage, source)
    for entry in entries:
        if entry.kind is Kind.FILE:
            with suppress(FileNotFoundError):  # another cleanup has moved it
                storage.move(entry.path, target + entry.path.removeprefix(source))

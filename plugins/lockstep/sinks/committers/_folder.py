"""`FileCommitter`: records in a folder."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import lockstep.sinks.committers.external as external
from lockstep.connections.names import absolute
from lockstep.epoch import Json
from lockstep.errors import OutcomeUnknown, SinkUnavailable, TargetChanged
from lockstep.sinks.committers.external import ExternalCommitter
from lockstep.sinks.durable_file import Damaged, create_atomically, from_checked, sync_folder, to_checked
from lockstep.sinks.values import Marker, SinkEpoch
from lockstep.sinks.write_ahead import Session

_RECORD, _BEGUN = re.compile(r"epoch=([0-9]+)\.json"), re.compile(r"begun=([0-9]+)\.json")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class FileCommitter(ExternalCommitter):
    """Records each sent epoch in a small file `<path>/<job>/<operator>/epoch=<id>.json`, which is created atomically
    and only once. `span=<…>.json` for its interval is created before it, and with at most once `begun=<id>.json` before
    the rows; all of them stay.

    `path`: a folder on a local or shared file system with hard links, the same for every process that may publish.
    """

    def __init__(self, path: str) -> None:
        self._root = Path(absolute(path))

    def setting(self) -> str:
        return str(self._root)

    def create_resource(self) -> None:
        """Raises `SinkUnavailable`."""
        with self._storage_errors():
            missing = [folder for folder in (self._folder, *self._folder.parents) if not folder.exists()]
            self._drafts.mkdir(parents=True, exist_ok=True)
            if not self._id.exists():
                with suppress(FileNotFoundError):  # another process was first and removed the draft
                    create_atomically(self._id, to_checked({"id": str(uuid.uuid4())}), self._drafts)
            for folder in {self._folder.parent, self._root, *(created.parent for created in missing)}:
                sync_folder(folder)
            self._tidy()

    def resource_id(self) -> str:
        """Raises `TargetChanged`."""
        with self._storage_errors():
            try:
                return str(from_checked(self._id.read_bytes())["id"])
            except (FileNotFoundError, Damaged) as error:
                raise TargetChanged(
                    f"committer of {self.operator_id}: {self._id} is missing or damaged ({error}), so it is "
                    "unknown which epochs were sent: mount or restore the folder"
                ) from error

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """Raises `OutcomeUnknown` for a damaged record."""
        return self._read(self._file(epoch), epoch)

    def _read(self, path: Path, epoch: int, otherwise: str = "to have the epoch sent again") -> Marker | None:
        with self._storage_errors():
            try:
                record = from_checked(path.read_bytes())
            except FileNotFoundError:
                return None
            except Damaged as error:
                raise OutcomeUnknown(
                    f"committer of {self.operator_id}: {path} is damaged ({error}): restore it from a "
                    f"copy, or remove it {otherwise}"
                ) from error
        return Marker(
            int(record.get("epoch", epoch)),
            int(record["token"]),
            str(record["manifest"]),
            record.get("span"),
            whole=bool(record.get("whole", True)),
        )

    def find_span(self, span: str) -> Marker | None:
        return self._read(self._span(span), 0)

    def newest(self) -> list[Marker]:
        last = max(self._epochs(_RECORD), default=None)
        marker = self.is_checkpoint_committed(last) if last is not None else None
        return [marker] if marker else []

    def all(self) -> Iterator[Marker]:
        yield from filter(None, map(self.is_checkpoint_committed, sorted(self._epochs(_RECORD))))

    def _epochs(self, kind: re.Pattern[str]) -> list[int]:
        with self._storage_errors(), suppress(FileNotFoundError):
            return [int(match[1]) for path in self._folder.iterdir() if (match := kind.fullmatch(path.name))]
        return []

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        self._create_span(epoch)
        self._create(self._file(epoch.id), epoch)
        self._require_same(epoch)

    def _create_span(self, epoch: SinkEpoch) -> None:
        if epoch.span is not None:
            self._create(self._span(epoch.span), epoch)

    def _create(self, path: Path, epoch: SinkEpoch, extra: Mapping[str, Json] = MappingProxyType({})) -> bool:
        """Create the record; return False if it exists."""
        record = {"epoch": epoch.id, "token": epoch.token, "manifest": epoch.manifest_hash, **extra}
        if epoch.span is not None:
            record["span"] = epoch.span
        with self._storage_errors(), suppress(FileNotFoundError):  # another process was first and removed the draft
            return create_atomically(path, to_checked(record), self._drafts)
        return False

    # --- the record before the rows ---

    def begin(self, epoch: SinkEpoch) -> bool:
        """Create the file; one process succeeds. Then check for the record: if `begin` was taken back too late, the
        name is free although the epoch is recorded."""
        self._create_span(epoch)
        return self._create(self._begun(epoch.id), epoch) and self.is_checkpoint_committed(epoch.id) is None

    def end(self, epoch: SinkEpoch, *, whole: bool) -> None:
        self._create(self._file(epoch.id), epoch, {"whole": whole})
        self._require_same(epoch)

    def take_back(self, epoch: SinkEpoch) -> None:
        with self._storage_errors():
            self._begun(epoch.id).unlink(missing_ok=True)
            sync_folder(self._folder)

    def find_begun(self, epoch: int) -> Marker | None:
        """Raises `OutcomeUnknown` for a damaged record."""
        return self._read(self._begun(epoch), epoch, "if nothing of the epoch has arrived, to have it sent")

    def list_begun(self, *, newest: bool = False) -> list[Marker]:
        epochs = sorted(self._epochs(_BEGUN))[-1 if newest else 0 :]
        return [marker for epoch in epochs if (marker := self.find_begun(epoch)) is not None]

    # --- one sender at a time ---

    @contextmanager
    def sender_lock(self, epoch: SinkEpoch) -> Iterator[bool]:
        """Lock a file; the lock of a dead process is gone, and one without heartbeats is ignored."""
        path = self._drafts / f"{self._file(epoch.id).name}~sending"
        with self._storage_errors():
            self._drafts.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        try:
            with self._storage_errors():
                alone = _locked(descriptor) or self._clock() - os.fstat(descriptor).st_mtime > external.STANDSTILL
            if not alone:
                yield False
                return
            os.utime(descriptor)
            with external.heartbeat(lambda: os.utime(descriptor)):
                yield True
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def _clock(self) -> float:
        """Return the file system's own time, by which it stamps files."""
        with tempfile.TemporaryFile(dir=self._drafts) as probe:
            return os.fstat(probe.fileno()).st_mtime

    def _tidy(self) -> None:
        """Remove drafts that killed processes left, if the file that they were for exists."""
        for draft in self._drafts.iterdir():
            final = draft.name.partition("~")[0]
            if (self._folder / final).exists() or final == self._id.name:
                draft.unlink(missing_ok=True)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SinkUnavailable(f"committer of {self.operator_id}: {error}") from error

    @property
    def _folder(self) -> Path:
        return self._root / _UNSAFE.sub("_", self.job_id) / self.operator_id

    @property
    def _drafts(self) -> Path:
        return self._folder / ".drafts"

    @property
    def _id(self) -> Path:
        return self._root / "id.json"

    def _file(self, epoch: int) -> Path:
        return self._folder / f"epoch={epoch}.json"

    def _begun(self, epoch: int) -> Path:
        return self._folder / f"begun={epoch}.json"

    def _span(self, span: str) -> Path:
        return self._folder / f"span={span.replace(':', '').replace('/', '_')}.json"


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system has no locks: every process may send
    return True

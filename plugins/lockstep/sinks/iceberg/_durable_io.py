"""How metadata of a table is written: pyiceberg never calls fsync, and what a catalog points to must not be lost."""

from __future__ import annotations

import io
import os
from pathlib import Path
from uuid import uuid4

from pyarrow.fs import _MockFileSystem
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from lockstep.sinks.durable_file import sync_folder

LOCAL = "file"
IMPLEMENTATION = "py-io-impl"  #: property by which pyiceberg loads any class that a table's metadata names
_BUFFER = 1 << 20  # bytes
#: What pyarrow's S3 doesn't take from the environment by itself; the last one counts.
_ENVIRONMENT = {
    "s3.endpoint": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    "s3.region": ("AWS_DEFAULT_REGION", "AWS_REGION"),
}


class DurableFileIO(PyArrowFileIO):
    """A file that is closed, and its name, survive a power cut. Object stores promise that by themselves.

    S3 is where Amazon's other clients look, too, whoever makes this: pyiceberg does, of a table that is made.
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        told = {name: os.environ[one] for name, ones in _ENVIRONMENT.items() for one in ones if one in os.environ}
        super().__init__({**told, **properties})

    def new_output(self, location: str) -> PyArrowFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != LOCAL:
            return super().new_output(location)
        return _DurableFile(location, path, self.fs_by_scheme(scheme, netloc), _BUFFER)


class RehearsalIO(DurableFileIO):
    """Reads what is there; what is written stays in memory."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self._memory, self._written = _MockFileSystem(), dict[str, PyArrowFile]()

    def new_input(self, location: str) -> PyArrowFile:
        return self._written.get(location) or super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        return self._written.setdefault(location, PyArrowFile(location, str(len(self._written)), self._memory))


class _DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        _make_folder(Path(self._path).parent)
        return _SyncedFile(Path(self._path), overwrite)


class _SyncedFile(io.BufferedWriter):
    """A new file. Where it may take the place of one, it does so whole, when it is closed: another process may have
    committed what it wrote under that name."""

    def __init__(self, path: Path, overwrite: bool) -> None:
        self._path, self._written = path, path.with_name(f".{path.name}.{uuid4().hex}") if overwrite else path
        super().__init__(io.FileIO(self._written, "xb"), _BUFFER)

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
            if self._written != self._path:
                self._written.replace(self._path)
            sync_folder(self._path.parent)
        super().close()


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def durable_io(properties: Properties = EMPTY_DICT) -> DurableFileIO:
    """For a table of these properties, whichever class they name."""
    return DurableFileIO({name: value for name, value in properties.items() if name != IMPLEMENTATION})

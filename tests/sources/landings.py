"""Where files land: a mounted folder, a prefix of a bucket on a real S3 server, or a folder of a real HDFS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsFileSystem
from lockstep.connections.object_store.store import ObjectStore

TEXT = "id,name\n1,x\n"


class Landing(ABC):
    """`path`: as a FileSource takes it."""

    path: str

    @abstractmethod
    def land(self, name: str, text: str = TEXT) -> str:
        """Put a file there, over what was there; how a source calls it."""

    @abstractmethod
    def remove(self, name: str) -> None: ...


class Mounted(Landing):
    def __init__(self, folder: Path) -> None:
        self.path = str(folder)

    def land(self, name: str, text: str = TEXT) -> str:
        path = Path(self.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def remove(self, name: str) -> None:
        Path(self.path, name).unlink()


class OnS3(Landing):
    def __init__(self, uri: str) -> None:
        self.path, self._store = uri, ObjectStore.at(uri)

    def land(self, name: str, text: str = TEXT) -> str:
        self._store.replace(name, text.encode())
        return f"{self.path.partition('?')[0]}/{name}"

    def remove(self, name: str) -> None:
        self._store.delete([name])


class OnHdfs(Landing):
    def __init__(self, uri: str) -> None:
        address = HdfsAddress.of(uri)
        self.path, self._files, self._folder = address.uri, HdfsFileSystem.at(address), address.path

    def land(self, name: str, text: str = TEXT) -> str:
        path = f"{self._folder}/{name}"
        self._files.make_folder(path.rpartition("/")[0])
        self._files.delete(path)
        self._files.create(path, text.encode())
        return f"{self.path}/{name}"

    def remove(self, name: str) -> None:
        self._files.delete(f"{self._folder}/{name}")

    def close(self, name: str) -> None:
        """To all but its owner."""
        self._files._client.inner.set_permission(f"{self._folder}/{name}", 0o700)

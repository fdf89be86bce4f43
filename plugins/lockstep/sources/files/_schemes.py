"""Which file system a path leads to: its scheme says so. One more is one more class here."""

from __future__ import annotations

import re

from lockstep.connections.hdfs.address import SCHEME as HDFS
from lockstep.connections.hdfs.address import is_hdfs
from lockstep.connections.object_store.address import SCHEMES, is_object_store
from lockstep.errors import InvalidPipeline, StoreRefused
from lockstep.sources.files._file_system import FileSystem
from lockstep.sources.files._hdfs_files import HdfsFiles
from lockstep.sources.files._local_files import LocalFiles
from lockstep.sources.files._object_files import ObjectFiles

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_mounted(path: str) -> bool:
    """Whether it leads to a mounted file system."""
    return _SCHEME.match(path) is None


def file_system_of(path: str) -> FileSystem:
    """What lists and looks at the files of a source's path. Asks nothing of it yet.

    Raises `InvalidPipeline`, without the path if that may hold a secret.
    """
    if is_mounted(path):
        return LocalFiles()
    try:
        if is_object_store(path):
            return ObjectFiles(path)
        if is_hdfs(path):
            return HdfsFiles(path)
    except StoreRefused as error:
        raise InvalidPipeline(f"a source's path: {error}") from None
    scheme = path.partition(":")[0]
    raise InvalidPipeline(
        f"a source's path begins with {scheme}://; FileSource reads mounted folders, without a scheme, and "
        f"{', '.join(f'{known}://' for known in (*SCHEMES, HDFS))}"
    )

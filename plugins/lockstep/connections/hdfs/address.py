"""URIs of HDFS: a cluster and a path, as Hadoop's clients and Spark write them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lockstep.errors import StoreRefused

SCHEME = "hdfs"
_PORT = 8020  #: a NameNode's, where nobody says another
_AUTHORITY = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?")


@dataclass(frozen=True)
class HdfsAddress:
    """`cluster`: a NameNode's host and port, or a name service of the configuration. `path`: absolute, '/' at least."""

    cluster: str
    path: str

    @classmethod
    def of(cls, uri: str) -> HdfsAddress:
        """`hdfs://cluster/path`; `hdfs:///path` is on the cluster of the configuration (`fs.defaultFS`).

        Nothing of it is percent-encoded, as everywhere in Hadoop. Raises `StoreRefused`, which repeats no login.
        """
        scheme, separator, rest = uri.partition("://")
        cluster, _, path = rest.partition("/")
        if scheme != SCHEME or not separator:
            raise StoreRefused(f"{scheme}:// is no address of HDFS; expected hdfs://cluster/path")
        if "@" in cluster:
            raise StoreRefused("the URI of HDFS carries a user: leave him out, HADOOP_USER_NAME or a ticket says who")
        cluster = cluster or _default_cluster()
        if not _AUTHORITY.fullmatch(cluster):
            raise StoreRefused(f"{cluster!r} is no cluster of HDFS; expected host:port or the name of a name service")
        return cls(cluster, posixpath.normpath(f"/{path.lstrip('/')}"))

    @staticmethod
    def require(uri: str) -> None:
        """Raise `StoreRefused` for what `of` refuses wherever it is asked: which cluster `hdfs:///` is on, is left."""
        cluster = uri.partition("://")[2].partition("/")[0]
        HdfsAddress.of(uri if cluster else f"{SCHEME}://any/")

    @property
    def uri(self) -> str:
        return f"{SCHEME}://{self.cluster}{self.path}"

    @property
    def namenode(self) -> str:
        """URI of the cluster alone, for a client: with a port, unless it is a name service of the configuration."""
        is_complete = ":" in self.cluster or f"dfs.ha.namenodes.{self.cluster}" in configuration()
        return f"{SCHEME}://{self.cluster}{'' if is_complete else f':{_PORT}'}"


def is_hdfs(uri: str) -> bool:
    """True if `HdfsAddress.of` understands the URI's scheme."""
    return uri.startswith(f"{SCHEME}://")


def configuration() -> Mapping[str, str]:
    """Settings of Hadoop's clients on this machine: core-site.xml and hdfs-site.xml of HADOOP_CONF_DIR or HADOOP_HOME.
    Raises `StoreRefused` for a file that isn't XML."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if folder is None and (home := os.environ.get("HADOOP_HOME")):
        folder = f"{home}/etc/hadoop"
    files = [Path(folder, name) for name in ("core-site.xml", "hdfs-site.xml")] if folder else []
    return dict(item for file in files if file.exists() for item in _properties(file))


def _properties(file: Path) -> Iterator[tuple[str, str]]:
    try:
        root = ElementTree.parse(file).getroot()  # noqa: S314 - the configuration of this machine
    except ElementTree.ParseError as error:
        raise StoreRefused(f"{file}, by which Hadoop's clients find HDFS, is no XML: {error}") from error
    for node in root.iter("property"):
        if name := node.findtext("name"):
            yield name.strip(), (node.findtext("value") or "").strip()


def _default_cluster() -> str:
    default = configuration().get("fs.defaultFS", "")
    if not is_hdfs(default):
        raise StoreRefused(
            "hdfs:///… names no cluster, and no fs.defaultFS of HADOOP_CONF_DIR does: write hdfs://host:port/…, or set "
            "HADOOP_CONF_DIR to the folder of core-site.xml"
        )
    return default.removeprefix(f"{SCHEME}://").partition("/")[0]

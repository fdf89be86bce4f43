"""What lineage calls a folder, wherever it is."""

from __future__ import annotations

from lockstep.connections.dataset import Dataset
from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.home import absolute
from lockstep.connections.object_store.address import Address, is_object_store


def dataset_at(place: str) -> Dataset:
    """A folder, a file, or what is below a URI of an object store or HDFS. Raises `StoreRefused`."""
    if is_object_store(place):
        address = Address.of(place)
        namespace = address.hadoop.removesuffix(f"/{address.prefix}").replace("s3a://", "s3://", 1)
        return Dataset(namespace, address.prefix or "/")
    if is_hdfs(place):
        hdfs = HdfsAddress.of(place)
        return Dataset(hdfs.namenode, hdfs.path)
    return Dataset("file", absolute(place.removeprefix("file://")))

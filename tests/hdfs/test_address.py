"""How HDFS is named: by a cluster, or by the configuration of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.errors import StoreRefused


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://lake</value></property></configuration>"
    )
    (tmp_path / "hdfs-site.xml").write_text(
        "<configuration><property><name>dfs.ha.namenodes.lake</name><value>one,two</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))


def test_one_path_of_a_cluster_has_one_name() -> None:
    """The configured cluster goes without saying, a name service has no port, nothing is percent-encoded."""
    address = HdfsAddress.of("hdfs:///path/to/my/data")
    assert address == HdfsAddress("lake", "/path/to/my/data")
    assert address.uri == "hdfs://lake/path/to/my/data"
    assert HdfsAddress.of("hdfs://lake/a").namenode == "hdfs://lake"
    assert HdfsAddress.of("hdfs://name/a").namenode == "hdfs://name:8020"
    assert HdfsAddress.of("hdfs://name:9000/a").namenode == "hdfs://name:9000"
    assert HdfsAddress.of("hdfs://lake//a/./b/../c d%20e/").path == "/a/c d%20e"
    assert HdfsAddress.of("hdfs://lake").path == "/"
    assert HdfsAddress.of("hdfs://lake/a#b?c=d").path == "/a#b?c=d"


def test_what_names_no_cluster_is_refused_and_no_login_repeated(subtests: pytest.Subtests) -> None:
    for uri in ("hdfs://somebody:hidden@lake/a", "hdfs://some body/a", "hdfs://lake:port/a", "s3://b/a"):
        with subtests.test(uri):
            with pytest.raises(StoreRefused) as refused:
                HdfsAddress.of(uri)
            assert "hidden" not in str(refused.value)


def test_a_configuration_that_is_missing_or_no_xml_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(StoreRefused, match=r"core-site\.xml"):
        HdfsAddress.of("hdfs:///path")
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(StoreRefused, match="HADOOP_CONF_DIR"):
        HdfsAddress.of("hdfs:///path")

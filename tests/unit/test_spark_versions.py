"""Which Sparks are taken, by their numbers and by the files of an installation; no Spark is started."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockstep.errors import SparkRefused
from lockstep.spark.versions import NEWEST, OLDEST, examine, require_server, require_taken, shown


def install(site: Path, package: str, version: str) -> None:
    """As an installer does: over what is there, with a list of what it wrote."""
    written = {"pyspark/version.py": f"__version__ = {version!r}", "pyspark/sql.py": f"code = {version[:3]!r}"}
    if package == "pyspark":
        written["pyspark/jars.py"] = f"jars = {version!r}"
    info = site / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for name, text in written.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}")
    (info / "RECORD").write_text("\n".join(lines))


def site_of(folder: Path, packages: Mapping[str, str]) -> Path:
    """Where pyspark is, when these were installed in this order."""
    for package, version in packages.items():
        install(folder, package, version)
    return folder / "pyspark"


def test_any_patch_release_of_a_line_is_taken_without_a_word(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for version in ("4.0.0", "4.1.0-amzn-1", "4.2.27", "4.2.0.dev5"):
        with subtests.test(version=version):
            assert require_taken(version, "it") == []
            assert examine(tmp_path / "pyspark", version) == []  # a Spark that no installer brought


def test_a_spark_that_is_too_old_or_of_another_major_version_is_refused_with_what_is_needed(
    subtests: pytest.Subtests,
) -> None:
    for version, why in (("3.5.9", "Spark 3 has no"), ("5.0.0", "another major version")):
        told = rf"server is Spark {version}: {shown(OLDEST)} or newer is needed, and of 4\.x; {why}"
        with subtests.test(version=version), pytest.raises(SparkRefused, match=told):
            require_server(version, "4.2.0")


def test_a_line_that_nobody_has_tried_is_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    newer = f"{NEWEST[0]}.{NEWEST[1] + 1}.0"
    for _ in range(2):
        require_server(newer, "4.2.0")
    [warning] = caplog.messages
    assert f"Spark {newer}; the newest that Lockstep's tests ran with is {NEWEST[0]}.{NEWEST[1]}" in warning


def test_a_server_of_an_older_line_than_its_client_is_refused_with_what_to_install(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        require_server("4.2.7", "4.1.4")
        require_server("4.2.0", "4.2.7")
        assert caplog.messages == []
    with pytest.raises(SparkRefused, match=r"is 4\.1\.4, older than its client, 4\.2\.0: .*'pyspark-client==4\.1\.\*'"):
        require_server("4.1.4", "4.2.0")


def test_a_folder_of_two_patch_releases_is_taken_and_told_with_what_mends_it(tmp_path: Path) -> None:
    pyspark = site_of(tmp_path, {"pyspark": "4.2.1", "pyspark-client": "4.2.0"})
    [remark] = examine(pyspark, "4.2.0")
    assert remark.endswith("pip install --force-reinstall --no-deps 'pyspark==4.2.1'")
    assert "pyspark's code 4.2.0, pyspark 4.2.1, pyspark-client 4.2.0" in remark


def test_a_folder_of_two_lines_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    pyspark = site_of(tmp_path, {"pyspark": "4.2.1", "pyspark-client": "4.1.3"})
    with pytest.raises(SparkRefused, match=r"--no-deps 'pyspark==4\.2\.1'"):
        examine(pyspark, "4.1.3")
    (pyspark / "version.py").write_text("__version__ = '4.2.1'")  # as installers that write side by side may leave it
    with pytest.raises(SparkRefused, match="mixes"):
        examine(pyspark, "4.2.1")


def test_two_packages_of_different_versions_are_one_spark_where_the_whole_of_it_came_last(tmp_path: Path) -> None:
    assert examine(site_of(tmp_path / "a", {"pyspark-client": "4.1.3", "pyspark": "4.2.1"}), "4.2.1") == []
    assert examine(site_of(tmp_path / "b", {"pyspark-client": "4.1.3"}), "4.1.3") == []


def test_what_is_installed_elsewhere_says_nothing_of_the_spark_that_is_imported(tmp_path: Path) -> None:
    """A cluster's own Spark comes before the packages of an environment."""
    site_of(tmp_path / "environment", {"pyspark": "4.2.1", "pyspark-client": "4.1.3"})
    assert examine(tmp_path / "cluster" / "pyspark", "4.1.2") == []

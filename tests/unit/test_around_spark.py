"""What is around Spark, without one: which versions are taken, which Java is found, what stays of an error's words."""

from __future__ import annotations

import base64
import errno
import hashlib
import logging
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.errors import SparkRefused
from lockstep.spark.failures import without_values
from lockstep.spark.session import describe_java, permanent_java_problem
from lockstep.spark.versions import NEWEST, OLDEST, examine, line_text, require_server, require_supported
from stack.errors import JavaMissing
from stack.java import find_java


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
            assert require_supported(version, "it") == []
            assert examine(tmp_path / "pyspark", version) == []  # a Spark that no installer brought


def test_a_spark_that_is_too_old_or_of_another_major_version_is_refused_with_what_is_needed(
    subtests: pytest.Subtests,
) -> None:
    for version, why in (("3.5.9", "Spark 3 has no"), ("5.0.0", "another major version")):
        told = rf"server is Spark {version}: {line_text(OLDEST)} or newer is needed, and of 4\.x; {why}"
        with subtests.test(version=version), pytest.raises(SparkRefused, match=told):
            require_server(version, "4.2.0")


def test_a_line_that_nobody_has_tried_is_taken_with_a_warning_and_a_server_older_than_its_client_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    newer = f"{NEWEST[0]}.{NEWEST[1] + 1}.0"
    with caplog.at_level(logging.WARNING):
        for server, client in ((newer, "4.2.0"), (newer, "4.2.0"), ("4.2.7", "4.1.4"), ("4.2.0", "4.2.7")):
            require_server(server, client)
    [warning] = caplog.messages
    assert f"Spark {newer}; the newest that Lockstep's tests ran with is {NEWEST[0]}.{NEWEST[1]}" in warning
    with pytest.raises(SparkRefused, match=r"is 4\.1\.4, older than its client, 4\.2\.0: .*'pyspark-client==4\.1\.\*'"):
        require_server("4.1.4", "4.2.0")


def test_a_folder_of_two_patch_releases_is_taken_and_told_with_what_mends_it(tmp_path: Path) -> None:
    pyspark = site_of(tmp_path, {"pyspark": "4.2.1", "pyspark-client": "4.2.0"})
    [remark] = examine(pyspark, "4.2.0")
    assert "pyspark's code 4.2.0, pyspark 4.2.1, pyspark-client 4.2.0" in remark
    assert remark.endswith("pip install --force-reinstall --no-deps 'pyspark==4.2.1'")


def test_a_folder_of_two_lines_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    pyspark = site_of(tmp_path, {"pyspark": "4.2.1", "pyspark-client": "4.1.3"})
    with pytest.raises(SparkRefused, match=r"--no-deps 'pyspark==4\.2\.1'"):
        examine(pyspark, "4.1.3")
    (pyspark / "version.py").write_text("__version__ = '4.2.1'")  # as installers that write side by side may leave it
    with pytest.raises(SparkRefused, match="mixes"):
        examine(pyspark, "4.2.1")


def test_what_is_one_spark_is_taken_whatever_else_is_installed(tmp_path: Path) -> None:
    """The whole of it came last; there is one package; a cluster's own Spark comes before an environment's packages."""
    assert examine(site_of(tmp_path / "a", {"pyspark-client": "4.1.3", "pyspark": "4.2.1"}), "4.2.1") == []
    assert examine(site_of(tmp_path / "b", {"pyspark-client": "4.1.3"}), "4.1.3") == []
    site_of(tmp_path / "environment", {"pyspark": "4.2.1", "pyspark-client": "4.1.3"})
    assert examine(tmp_path / "cluster" / "pyspark", "4.1.2") == []


# --- Java -------------------------------------------------------------------------------------------------------------

NEEDED = "Java 17 or newer is needed, as Spark 4 is compiled for it"
PICKED_UP = "Picked up JAVA_TOOL_OPTIONS: -Djavax.net.ssl.keyStorePassword=hunter2"


def java_at(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return program


def test_a_java_that_is_too_old_or_missing_never_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, number in (("1.8.0_412", 8), ("11.0.2", 11)):
        program = java_at(tmp_path, f"echo 'openjdk version \"{version}\"' >&2", monkeypatch)
        assert permanent_java_problem() == f'{NEEDED}, found {program}: openjdk version "{version}"'
        with pytest.raises(
            JavaMissing, match=rf"17 or newer is needed, as Spark 4 is .*, found {number} at .*JAVA_HOME"
        ):
            find_java()
    program.unlink()
    assert permanent_java_problem() == f"{NEEDED}, {tmp_path}/bin/java can't be run: FileNotFoundError"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "found none" in str(permanent_java_problem())
    with pytest.raises(JavaMissing, match="found none"):
        find_java()


def test_a_cause_that_nobody_knows_may_pass_and_what_java_picks_up_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for told in ('openjdk version "17.0.15"', 'openjdk version "25"', ""):
        script = f"echo '{PICKED_UP}' >&2\necho '{told}' >&2; [ \"$1\" = -version ]"
        program = java_at(tmp_path, script, monkeypatch)
        assert permanent_java_problem() is None
        assert describe_java() == f"found {program}: {told or 'it reports no version'}"

    def no_memory(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "run", no_memory)
    assert permanent_java_problem() is None


# --- what stays of a failing function's error -------------------------------------------------------------------------

RAISED = """Traceback (most recent call last):
  File "/app/rules.py", line 7, in check
    raise KeyError(row) from None
KeyError: 'row 1

paragraph 1
 at home'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/rules.py", line 9, in rule
    raise ValueError(f"of {row}") from error
ValueError: of row 1

paragraph 2
"""
OURS = """Traceback (most recent call last):
  File "/app/lockstep/compute/_lookups.py", line 3, in ask
    raise errors.LookupFailed("no answer, HTTP 503")
lockstep.errors.LookupFailed: no answer, HTTP 503
"""
JAVA = "\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:581)\n"


def in_each_spark(trace: str) -> list[str]:
    """What a client, a job that was aborted and a log have of it: of 4.0, and of what came later."""
    client = "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    condition = f"[PYTHON_EXCEPTION] it failed: {trace} SQLSTATE: 38000"
    return [
        f"{client}{trace}",
        f"Lost task 0.0: org.apache.spark.api.python.PythonException: {trace}\n{JAVA}\nDriver stacktrace:{JAVA}",
        f"{client}{condition}",
        f"Lost task 0.0: org.apache.spark.api.python.PythonException: {condition}\n{JAVA}",
    ]


def test_of_a_functions_error_stay_kind_and_place_and_no_word_but_lockstep_s(subtests: pytest.Subtests) -> None:
    for said in in_each_spark(RAISED):
        with subtests.test(said=said):
            told = without_values(said)
            assert 'KeyError (File "/app/rules.py", line 7, in check).' in told
            assert 'ValueError (File "/app/rules.py", line 9, in rule).' in told
            assert not any(word in told for word in ("row 1", "paragraph", "home", "raise"))
            assert told.count(JAVA) == said.count(JAVA)
    for said in in_each_spark(OURS):
        with subtests.test(said=said):
            told = without_values(said)
            assert "no answer, HTTP 503" in told and "Traceback" not in told

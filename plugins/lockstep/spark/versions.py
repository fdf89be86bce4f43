"""The supported versions of Spark. Imports no pyspark, so that processes without it can check, too.

Any patch release of a line is supported. A line newer than the tested ones is accepted with a warning: private API that
Lockstep uses may have moved, and then fails by name, before anything is sealed.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

from lockstep.errors import SparkRefused

OLDEST = (4, 0)  #: Spark 3 lacks most of what the roles need
NEWEST = (4, 3)  #: tested: docs/versions.md
_OLDER = "Spark 3 has no data sources in Python and no checkpoints at Spark Connect"
PACKAGES = ("pyspark", "pyspark-client")
_log = logging.getLogger(__name__)

Line = tuple[int, int]


def line_of(version: str) -> Line:
    """(4, 1) of "4.1.3", "4.1.0.dev2" and "4.1.0-amzn-1"; (0, 0) of what has no such numbers."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def line_text(line: Line) -> str:
    return f"{line[0]}.{line[1]}"


def is_supported(version: str) -> bool:
    """True if the version is supported, possibly with a warning."""
    return OLDEST <= line_of(version) < (OLDEST[0] + 1, 0)


def require_supported(version: str, what: str) -> list[str]:
    """Return warnings about the version of `what`. Raises `SparkRefused` for an unsupported one."""
    if not is_supported(version):
        older = line_of(version) < OLDEST
        why = _OLDER if older else "another major version may change what Lockstep depends on"
        raise SparkRefused(
            f"{what} is Spark {version}: {line_text(OLDEST)} or newer is needed, and of {OLDEST[0]}.x; {why}"
        )
    if line_of(version) > NEWEST:
        return [f"{what} is Spark {version}; the newest that Lockstep's tests ran with is {line_text(NEWEST)}"]
    return []


def require_server(server: str, client: str) -> None:
    """Raise `SparkRefused` for a Spark Connect server that isn't supported, or is of an older line than its client:
    with a server of 4.1 a client of 4.2 can't even make a DataFrame from its own rows."""
    remarks = require_supported(server, "the Spark Connect server")
    if line_of(server) < line_of(client):
        line = line_text(line_of(server))
        raise SparkRefused(
            f"the Spark Connect server is {server}, older than its client, {client}: Spark promises only that older "
            f"clients work with newer servers; take the server's line: pip install 'pyspark-client=={line}.*', or "
            f"'pyspark=={line}.*' where a whole Spark is installed"
        )
    _warn(remarks)


@cache
def require_code(folder: Path, version: str) -> None:
    """As `examine`; logs its warnings, once."""
    _warn(examine(folder, version))


def examine(folder: Path, version: str) -> list[str]:
    """Return warnings about pyspark as imported from `folder` with `version`.

    pyspark-client installs into the same folder, where the later package overwrites files of the earlier. A mixture of
    patch releases is a warning, unless all files are of the package that was installed last.
    Raises `SparkRefused` for an unsupported version, and for a mixture of two lines.
    """
    remarks = require_supported(version, "pyspark")
    packages = {
        name: package for name in PACKAGES for package in Distribution.discover(name=name, path=[str(folder.parent)])
    }
    numbers = {"pyspark's code": version, **{name: package.version for name, package in packages.items()}}
    if len(set(numbers.values())) == 1:
        return remarks
    keeps = packages.get("pyspark", packages.get("pyspark-client"))
    assert keeps is not None  # or there would be one number
    if _is_whole(keeps):
        return remarks
    remark = (
        f"{folder} mixes {', '.join(f'{name} {number}' for name, number in numbers.items())}: they install into one "
        f"folder; pip install --force-reinstall --no-deps '{keeps.name}=={keeps.version}'"
    )
    if len(set(map(line_of, numbers.values()))) > 1:
        raise SparkRefused(remark)
    return [*remarks, remark]


def _is_whole(package: Distribution) -> bool:
    """True if every module of the package is as it was installed."""
    modules = [(file, file.hash) for file in package.files or () if file.suffix == ".py" and file.hash]
    for file, expected in modules:
        try:
            digest = hashlib.new(expected.mode, file.read_binary()).digest()
        except OSError:
            return False
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != expected.value:
            return False
    return bool(modules)


def _warn(remarks: list[str]) -> None:
    for remark in remarks:
        _warn_once(remark)


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)

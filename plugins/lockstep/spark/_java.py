"""The Java that Spark would start here, for who is told that it didn't start: which one, and whether that may pass."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pyspark

OLDEST = 17
_SECONDS = 60
_NO_PROGRAM = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC)  #: other ones pass, such as no memory to fork
_SHELL = "pyspark-shell"  #: in place of an application
#: How spark-submit, its configuration or Java say that an option has no meaning. What follows may be a password.
_BAD_OPTION = re.compile(
    r"(?:Unrecognized (?:VM )?option:?|Missing argument for option|Invalid argument to|Invalid properties file|"
    r"Not allowed to specify max heap|Invalid (?:maximum|initial) heap size|Too small (?:maximum|initial) heap)"
    r"(?: '?-[\w-]+)?"
)


def java_found() -> str:
    """The program and the version that it tells of itself, in a few words."""
    program = _program()
    if program is None:
        return "found none: JAVA_HOME isn't set, and no java is on the PATH"
    try:
        return f"found {program}: {_told_version(program) or 'it says nothing of its version'}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} can't be run: {type(error).__name__}"


def what_never_passes() -> str | None:
    """Why it won't start next time either: no Java, too old a one, an option without a meaning. None where that may
    pass: packages that couldn't be fetched, a port, memory, whatever isn't known."""
    if _lacks_java():
        return f"Java {OLDEST} or newer is needed, as Spark 4 is compiled for it, {java_found()}"
    return _bad_option()


def _program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def _lacks_java() -> bool:
    program = _program()
    if program is None:
        return True
    try:
        found = re.search(r' version "(?:1\.)?(\d+)', _told_version(program) or "")
    except OSError as error:
        return error.errno in _NO_PROGRAM
    except subprocess.SubprocessError:
        return False
    return found is not None and int(found[1]) < OLDEST


def _told_version(program: str) -> str | None:
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    said = (done.stderr or done.stdout).strip().splitlines()
    # its first line may be what JAVA_TOOL_OPTIONS says, passwords included
    return next((line for line in said if ' version "' in line), None)


def _bad_option() -> str | None:
    """Asks spark-submit for its version, by the options by which pyspark calls it: it then looks at these alone."""
    options = [one for one in shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) if one != _SHELL]
    program = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "bin", "spark-submit")
    try:
        done = subprocess.run(
            [program, *options, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _BAD_OPTION.search(done.stderr) if done.returncode else None
    return f"its options are refused: {found[0]}" if found else None

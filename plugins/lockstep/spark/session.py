"""Spark sessions with the settings that the WAL needs: through Spark Connect, or in a driver of this process.

If Spark's Java didn't start, `describe_java` names the Java here, and `permanent_java_problem` a cause that a retry
can't pass.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lockstep.errors import SparkRefused, SparkUnavailable
from lockstep.spark._pyspark import release_checkpoints, set_all
from lockstep.spark.address import listens_at
from lockstep.spark.versions import require_code, require_server

_OLDEST_JAVA = 17
_SECONDS = 60
_NO_PROGRAM = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EACCES,
    errno.ENOEXEC,
)  #: other errors may pass, such as no memory to fork
_SHELL = "pyspark-shell"  #: in place of an application
#: errors of spark-submit, its configuration or Java for an invalid option; the text after them may be a password
_BAD_OPTION = re.compile(
    r"(?:Unrecognized (?:VM )?option:?|Missing argument for option|Invalid argument to|Invalid properties file|"
    r"Not allowed to specify max heap|Invalid (?:maximum|initial) heap size|Too small (?:maximum|initial) heap)"
    r"(?: '?-[\w-]+)?"
)
T = TypeVar("T")
_log = logging.getLogger(__name__)
CONNECT_SECONDS = 10
#: Settings that values in files, in the WAL and of types depend on: Spark's defaults, also where a server has others.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.csv.enableDateTimeParsingFallback": "false",
    "spark.sql.legacy.json.enableDateTimeParsingFallback": "false",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.legacy.codingErrorAction": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default is ns to Arrow: PostgreSQL refuses it
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # a source's own option datetimeRebaseMode overrides it
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
#: Settings that the WAL and the counts rely on; all others are the user's. ANSI mode stays on, its default.
REQUIRED = {
    **_MEANING,
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # texts must match a given format completely; and encodings besides Unicode's and Latin-1 are read
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.javaCharsets": "true",
    # a server reuses a session's plan, with the sizes of its files, for an equal request. Every process numbers its
    # requests from 0, so another process would read a corrected file only up to the old file's length
    "spark.connect.session.planCache.enabled": "false",
}
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
#: errors of a server that has ended the session of an id, and accepts no other with that id
_ENDED = ("SESSION_CLOSED", "SESSION_CHANGED", "SESSION_NOT_FOUND")
_touching: set[str] = set()  #: names of shared sessions whose work needs session changes
#: ids of a stage's checkpoints at Spark Connect
_checkpoints: ContextVar[list[str] | None] = ContextVar("checkpoints", default=None)
_closers: dict[int, Callable[[], None]] = {}  # by the id of a session that they keep alive


def describe_java() -> str:
    """The Java program found here and its version, for a message."""
    program = _program()
    if program is None:
        return "found none: JAVA_HOME isn't set, and no java is on the PATH"
    try:
        return f"found {program}: {_version_line(program) or 'it reports no version'}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} can't be run: {type(error).__name__}"


def permanent_java_problem() -> str | None:
    """The reason why Spark's Java won't start on a retry either: no Java, too old a Java, an invalid option. None for
    causes that may pass, such as packages that couldn't be fetched, a port, memory, and for unknown ones."""
    if _lacks_java():
        return f"Java {_OLDEST_JAVA} or newer is needed, as Spark 4 is compiled for it, {describe_java()}"
    return _bad_option()


def _program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def _lacks_java() -> bool:
    program = _program()
    if program is None:
        return True
    try:
        match = re.search(r' version "(?:1\.)?(\d+)', _version_line(program) or "")
    except OSError as error:
        return error.errno in _NO_PROGRAM
    except subprocess.SubprocessError:
        return False
    return match is not None and int(match[1]) < _OLDEST_JAVA


def _version_line(program: str) -> str | None:
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    lines = (done.stderr or done.stdout).strip().splitlines()
    # its first line may be what JAVA_TOOL_OPTIONS says, passwords included
    return next((line for line in lines if ' version "' in line), None)


def _bad_option() -> str | None:
    """The invalid option, if any: asks spark-submit for its version with pyspark's options, which only parses them."""
    options = [option for option in shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) if option != _SHELL]
    program = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "bin", "spark-submit")
    try:
        done = subprocess.run(
            [program, *options, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _BAD_OPTION.search(done.stderr) if done.returncode else None
    return f"its options are refused: {match[0]}" if match else None


def connect(target: str | SparkSession | None) -> SparkSession:
    """A session with the required settings; on a session that is passed in they stay set.

    `target`: "sc://host:port" for Spark Connect, "local[*]", "spark://…", "yarn" or "k8s://…" for a driver in this
    process, None for the driver that spark-submit has started. Raises `SparkUnavailable`, `SparkRefused`.
    """
    require_versions()
    spark = _session(target) if target is None or isinstance(target, str) else target
    _set_connect_mode(spark)
    _require_settings(spark)
    return spark


@contextmanager
def session(target: str | SparkSession) -> Iterator[SparkSession]:
    """A session as from `connect`; a Spark Connect session that was made here is closed afterwards."""
    spark = connect(target)
    try:
        yield spark
    finally:
        if isinstance(target, str) and is_remote(spark):
            _leave(spark)


def run_in_session(target: str | SparkSession, shared_as: str, work: Callable[[SparkSession], T]) -> T:
    """Call `work` with a session as from `session`, and return its result.

    At Spark Connect it is the warm session that is shared under the name `shared_as`. If `work` tries to change the
    session, it is called again with a session of its own.
    """
    if isinstance(target, str) and target.startswith("sc://") and shared_as not in _touching:
        from lockstep.spark.shared_session import SessionTouched, can_share

        try:
            if can_share(target):
                with _shared(target, shared_as) as spark:
                    return work(spark)
        except SessionTouched as touched:
            _log.info("a session of its own for %s, which changes it: %s", shared_as, touched)
            _touching.add(shared_as)
        except _SessionGone as ended:
            _log.info("a session of its own for %s: the shared one is gone: %s", shared_as, ended)
    with session(target) as spark:
        return work(spark)


class _SessionGone(Exception):
    """The server has ended the session, and accepts no other with its id."""


@contextmanager
def _shared(url: str, name: str) -> Iterator[SparkSession]:
    from lockstep.spark.shared_session import SharedSession

    require_versions()
    shared = SharedSession(url, name, REQUIRED)
    spark = _open_remote(url, cast(Callable[[], SparkSession], shared.join))
    try:
        try:
            require_server(spark.version, pyspark.__version__)
            _set_connect_mode(spark)
            _require_settings(spark)
        except PySparkException as error:
            if any(sign in str(error) for sign in _ENDED):
                raise _SessionGone(" ".join(str(error).split())) from error
            raise
        yield spark
    finally:
        shared.forget(cast(Any, spark))
        shared.leave(cast(Any, spark))
        _leave(spark)


def forget_parent_client() -> None:
    """Remove the mark of a Spark Connect client that a parent process left in the environment of spark-submit's
    driver."""
    if "SPARK_REMOTE" not in os.environ:
        os.environ.pop(_CONNECT_MODE, None)


def is_remote(spark: SparkSession) -> bool:
    """True if `spark` is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _tag(token: int) -> str:
    """The tag that every Spark operation of an execution carries."""
    return f"lockstep-{token}"


@contextmanager
def tag_operations(spark: SparkSession, token: int) -> Iterator[None]:
    """Tag this thread's operations, so that `cancel` finds them, and make `spark` its active session, for transforms
    that use that."""
    spark.addTag(_tag(token))
    try:
        with active(spark):
            yield
    finally:
        spark.removeTag(_tag(token))


@contextmanager
def releasing_checkpoints(spark: SparkSession) -> Iterator[None]:
    """Release at the end the checkpoints that this thread passes to `release_later`."""
    checkpoints: list[str] = []
    token = _checkpoints.set(checkpoints)
    try:
        yield
    finally:
        _checkpoints.reset(token)
        if checkpoints:
            release_checkpoints(cast(Any, spark).client, checkpoints, CONNECT_SECONDS)


def release_later(checkpoint: DataFrame) -> None:
    """Leave a Connect client's checkpoint to `releasing_checkpoints`, where that is open.

    PySpark releases it in a finalizer, which waits for an answer without a deadline (SPARK-58846): a lost answer, or
    garbage collection within another gRPC call, would block the process forever.
    """
    checkpoints, relation = _checkpoints.get(), cast(Any, checkpoint)._plan
    if checkpoints is not None:
        checkpoints.append(relation._relation_id)
        relation._spark_session = None  # without it the finalizer does nothing


def cancel(spark: SparkSession, token: int) -> None:
    """Ask Spark to cancel the operations of the execution `token`. Their output is never sealed."""
    spark.interruptTag(_tag(token))


def require_versions() -> None:
    """Raise `SparkRefused` unless pyspark is of a supported version, and no mixture of two."""
    require_code(Path(pyspark.__file__).parent, pyspark.__version__)


def require_ansi(spark: SparkSession, subject: str) -> None:
    """Raise `SparkRefused` without ANSI mode, in which a value that a type can't hold becomes another value, or
    null."""
    if spark.conf.get("spark.sql.ansi.enabled") != "true":
        raise SparkRefused(
            f"{subject}: spark.sql.ansi.enabled is off: a value that its type can't hold would be wrong, not an error; "
            "leave that setting as it is by default, on"
        )


def _session(target: str | None) -> SparkSession:
    if target is not None and target.startswith("sc://"):
        spark = _open_remote(target, SparkSession.builder.remote(target).create)
        require_server(spark.version, pyspark.__version__)
        return spark
    if os.environ.get(_CONNECT_MODE) or os.environ.get("SPARK_REMOTE"):
        raise SparkRefused(
            f"Spark {target or 'of spark-submit'}: this process is a Spark Connect client already; start the driver in "
            "another one"
        )
    builder = SparkSession.builder.appName("lockstep")
    if target is not None:
        builder = builder.master(target)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        if (never := permanent_java_problem()) is not None:
            raise SparkRefused(f"Spark's Java didn't start; {never}") from error
        raise SparkUnavailable(
            f"Spark's Java didn't start, {describe_java()}; see what it printed: packages that can't be "
            "fetched now, a port, memory"
        ) from error


def _open_remote(url: str, create: Callable[[], SparkSession]) -> SparkSession:
    try:
        _call(url)
    except OSError as error:
        host, port = listens_at(url)
        raise SparkUnavailable(f"no Spark Connect server answers at {host}:{port}: {error}") from error
    spark = create()
    _closers[id(spark)] = close = partial(_close, spark, url)
    atexit.register(close)  # a session that is collected while the interpreter ends hangs in gRPC
    return spark


def _leave(spark: SparkSession) -> None:
    close = _closers.pop(id(spark))
    atexit.unregister(close)
    close()


def _call(url: str) -> None:
    """Raise `OSError` if no server listens at `url`: pyspark itself retries for minutes. Raises `NotConfigured`."""
    socket.create_connection(listens_at(url), CONNECT_SECONDS).close()


def _close(spark: SparkSession, url: str) -> None:
    """Close the session at the server with what it stores, if the server still answers."""
    try:
        _call(url)
    except OSError:
        cast(Any, spark).release_session_on_close = False
    with suppress(Exception):
        spark.stop()


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make `spark` this thread's active session; pyspark has no call for that at Spark Connect."""
    if not is_remote(spark):
        yield
        return
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    threads: Any = ConnectSession._active_session
    before = getattr(threads, "session", None)
    threads.session = spark
    try:
        yield
    finally:
        threads.session = before


def _require_settings(spark: SparkSession) -> None:
    try:
        if is_remote(spark):
            set_all(spark, REQUIRED)
            return
        for name, value in REQUIRED.items():
            spark.conf.set(name, value)
    except PySparkException as error:
        if any(sign in str(error) for sign in _ENDED):
            raise
        raise SparkRefused(f"this Spark refuses a setting that rows depend on, allow it there: {error}") from error


def require_unchanged(spark: SparkSession, subject: str) -> None:
    """Raise `SparkRefused` if a setting that values depend on was changed."""
    now = spark.conf.getAll if is_remote(spark) else {name: spark.conf.get(name) for name in _MEANING}
    if changed := [
        f"{name}={now.get(name)} (not {value})" for name, value in _MEANING.items() if now.get(name) != value
    ]:
        raise SparkRefused(
            f"{subject} has set {', '.join(changed)}: dates, times and files would mean something else; leave that away"
        )


def _set_connect_mode(spark: SparkSession) -> None:
    """Set the variable by which `pyspark.sql.functions` chooses the kind of session that its columns are for."""
    if is_remote(spark):
        os.environ[_CONNECT_MODE] = "1"
    else:
        os.environ.pop(_CONNECT_MODE, None)

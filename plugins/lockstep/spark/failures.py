"""Spark's errors and log lines as errors that a caller can act on, without values of rows.

A message of Spark's ends in its SQLSTATE. Class 22 ("data exception" in ISO/IEC 9075-2) and 23 are about values, KD000
quotes a line, and 38, 39 and P0001 carry the text of a user's function or query. All other classes are about files,
memory, plans. Spark 4.0 reports what a function raises without a condition or a state, by its trace alone. What
Lockstep raises on a worker is of `lockstep.errors`, quotes no values, and stays.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pyspark
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger

from lockstep import errors
from lockstep.errors import BadRecords, InvalidPipeline, LockstepError, SparkRefused, StageFailed
from lockstep.observability.redaction import cause, list_known, rows_shown, with_hint

#: [CONDITION] words about a value. SQLSTATE: 22018
_CONDITION = re.compile(
    r"(\[[A-Z][A-Z0-9_.]+\]) ((?:(?!SQLSTATE: ).)*?)(SQLSTATE: (?:(?:22|23|38|39)[0-9A-Z]{3}|P0001|KD000))", re.DOTALL
)
#: Spark 4.0's error of a function, as a client has it, and as Java has.
_OF_WORKER = re.compile(
    r"(An exception was thrown from the Python worker\.|PythonException:)(?: Please see the stack trace below\.)?\s"
    r"Traceback \(most recent call last\):(.*?)(?=\n\tat |\n\n\w+ stacktrace:|\Z)",
    re.DOTALL,
)
#: end of a Python traceback: its first frame, then the error's class and text
_TRACE = re.compile(
    r'(?P<frames>\n *(?P<place>File "[^\n]+)\n(?: [^\n]*\n)*)(?P<kind>[A-Za-z_][\w.]*): '
    r"(?P<words>(?:(?!\n\s*at |\n\n).)*)",
    re.DOTALL,
)
_OURS = f"{errors.__name__}."
#: Java's own messages, without a condition of Spark's
_JAVA = re.compile(r"(For input string: )\"[^\n]*\"|(Text )'[^\n]*'(?= could not be parsed)")
#: Spark's message about a CSV file's first line: its names, the schema's, and the first that differ
_HEADER = re.compile(
    r"(Header: )(.*?)(\s+Schema: )(.*?)(?:(\s+Expected: .*? but found: )(.*?))?(?=\s+CSV \w+: |\Z)", re.DOTALL
)
_LOGGERS = ("pyspark.sql.connect.logging", "DataFrameQueryContextLogger", "SQLQueryContextLogger")
_log = logging.getLogger(__name__)
#: Spark's errors for a file that doesn't match the schema; other read errors may pass
_MALFORMED = (
    "CSV header does not conform",
    "Number of column in CSV header is not equal",
    "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
    "CANNOT_READ_FILE_FOOTER",
    "UNREADABLE_VALUE",
)
_HEADERS = _MALFORMED[:2]
OTHER_HEADER = (
    "all files of an epoch must have the schema's columns: put the file into an epoch of its own (move it away, run "
    "`lockstep replan`, change the schema, bring it back), or add the column to the older files and the schema"
)
#: Spark's errors for a missing jar, through Connect and in a driver, with the jar's name without its version
_LACKING = {
    re.compile(r"Failed to find (?:the )?data source: kafka"): "spark-sql-kafka-0-10_2.13",
    re.compile("AVRO_NOT_LOADED"): "spark-avro_2.13",
}
_CAUSE = re.compile(r"Caused by: [\w.$]+: (.*?)(?=\n\s*at |\Z)", re.DOTALL)


def without_values(text: str) -> str:
    """Remove values from a message of Spark's, with or without stack traces. Conditions, SQLSTATEs, classes, places
    stay."""
    message = _CONDITION.sub(lambda match: " ".join([match[1], *_raised(match[2]), match[3]]), text)
    message = _OF_WORKER.sub(lambda match: " ".join([match[1], *_raised(match[2])]), message)
    message = _TRACE.sub(lambda trace: trace[0] if _is_ours(trace) else f"{trace['frames']}{trace['kind']}", message)
    message = _HEADER.sub(_header, message)
    return _JAVA.sub(lambda match: f"{match[1] or match[2]}…", message)


def _header(match: re.Match[str]) -> str:
    columns = match[4].split(", ")
    differs = f"{match[5]}{list_known([match[6]], columns)}" if match[5] else ""
    return f"{match[1]}{list_known(match[2].split(', '), columns)}{match[3]}{match[4]}{differs}"


def _raised(words: str) -> list[str]:
    """Lockstep's own message, or the class and place of the Python error."""
    traces = list(_TRACE.finditer(words))
    ours = [trace["words"].strip() for trace in traces if _is_ours(trace)]
    return ours[-1:] or [f"{trace['kind']} ({trace['place']})." for trace in traces]


def _is_ours(trace: re.Match[str]) -> bool:
    return trace["kind"].startswith(_OURS)


@contextmanager
def logging_at_debug() -> Iterator[None]:
    """Log pyspark's own records of errors, JSON with the traces of two languages, at DEBUG."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(_demote)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_demote)


def _demote(record: logging.LogRecord) -> bool:
    parts = [record.getMessage(), *(traceback.format_exception(record.exc_info[1]) if record.exc_info else ())]
    lines = parts if rows_shown() else map(without_values, parts)
    _log.debug("%s: %s", record.name, "\n".join(lines))
    return False


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Raise Spark's errors as `SparkRefused`, `InvalidPipeline`, `BadRecords` or `StageFailed`, without stack
    traces."""
    try:
        with logging_at_debug():
            yield
    except LockstepError:
        raise
    except PySparkException as error:
        text = str(error)
        for sign, jar in _LACKING.items():
            if sign.search(text):
                package = f"org.apache.spark:{jar}:{pyspark.__version__}"
                raise SparkRefused(
                    f"{doing}: this Spark has no {jar}: start it with --packages {package}, or set "
                    "spark.jars.packages where its server or driver starts; the epoch then goes on as planned"
                ) from error
        if isinstance(error, AnalysisException | ParseException):
            message = _first(text)
            if "PATH_ALREADY_EXISTS" in text:
                raise StageFailed(f"{doing}: {message}") from error
            if isinstance(error, AnalysisException):
                message = re.sub(r"(; '|; \+- ).*", "", message)  # the plan at its end
            raise InvalidPipeline(f"{doing}: {message}") from error
        safe = text if rows_shown() else without_values(text)
        causes = [" ".join(words.split()) for words in _CAUSE.findall(safe)]
        message = f"{doing}: {_first(safe)} {f'({causes[-1]})' if causes else ''}".rstrip()
        if any(sign in text for sign in _HEADERS):
            message = f"{message}; {OTHER_HEADER}"
        failure = BadRecords if any(sign in text for sign in _MALFORMED) else StageFailed
        quotes = safe != text
        raise failure(with_hint(message) if quotes else message) from cause(error, quotes)


def _first(message: str) -> str:
    """The message without the stack trace that Spark Connect appends."""
    return " ".join(message.split("\n\nJVM stacktrace:")[0].split("\n\tat ")[0].split())

"""From what Spark throws to what a caller can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyspark
from pyspark.errors import AnalysisException, ParseException, PySparkException

from lockstep.errors import BadRecords, InvalidPipeline, LockstepError, SparkRefused, StageFailed
from lockstep.observability.redaction import cause, rows_shown, with_hint
from lockstep.spark._foreign_logs import logging_at_debug
from lockstep.spark._quoted_values import without_values

_STACK = re.compile(r"\n\s*(at |JVM stacktrace:|\.\.\. \d+ more).*")
#: How Spark tells that a file holds something else than the schema says; other read errors may pass.
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
#: How Spark tells that it lacks a jar, through Connect and in a driver, and the jar's name without its version.
_LACKING = {
    re.compile(r"Failed to find (?:the )?data source: kafka"): "spark-sql-kafka-0-10_2.13",
    re.compile("AVRO_NOT_LOADED"): "spark-avro_2.13",
}
_CAUSE = re.compile(r"Caused by: [\w.$]+: (.*?)(?=\n\s*at |\Z)", re.DOTALL)


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Raise Spark's errors as `SparkRefused`, `InvalidPipeline`, `BadRecords` or `StageFailed`, without the stacks."""
    try:
        with logging_at_debug(), _naming_jars(doing):
            yield
    except LockstepError:
        raise
    except (AnalysisException, ParseException) as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise StageFailed(f"{doing}: {_first(str(error))}") from error
        raise InvalidPipeline(f"{doing}: {_without_plan(error)}") from error
    except PySparkException as error:
        failure = BadRecords if any(sign in str(error) for sign in _MALFORMED) else StageFailed
        whole = str(error)
        told = whole if rows_shown() else without_values(whole)
        said = f"{doing}: {_first(told)} {_cause(told)}".rstrip()
        if any(sign in whole for sign in _HEADERS):
            said = f"{said}; {OTHER_HEADER}"
        quotes = told != whole
        raise failure(with_hint(said) if quotes else said) from cause(error, quotes)


@contextmanager
def _naming_jars(doing: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        for sign, jar in _LACKING.items():
            if sign.search(str(error)):
                package = f"org.apache.spark:{jar}:{pyspark.__version__}"
                raise SparkRefused(
                    f"{doing}: this Spark has no {jar}: start it with --packages {package}, or set "
                    "spark.jars.packages where its server or driver starts; the epoch then goes on as planned"
                ) from error
        raise


def _first(said: str) -> str:
    """The message up to the stack trace, which Spark Connect appends."""
    return " ".join(said.split("\n\nJVM stacktrace:")[0].split("\n\tat ")[0].split())


def _without_plan(error: BaseException) -> str:
    """An analysis ends in the plan that it was of; a syntax error in the place, which is of use."""
    told = _first(str(error))
    return re.sub(r"(; '|; \+- ).*", "", told) if isinstance(error, AnalysisException) else told


def _cause(said: str) -> str:
    causes = [" ".join(found.split()) for found in _CAUSE.findall(said)]
    return f"({causes[-1]})" if causes else ""

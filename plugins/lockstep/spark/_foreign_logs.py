"""What pyspark logs of errors by itself, as JSON with the traces of two languages: kept for who asks for DEBUG."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

from lockstep.observability.redaction import rows_shown
from lockstep.spark._quoted_values import without_values

_LOGGERS = ("pyspark.sql.connect.logging", "DataFrameQueryContextLogger", "SQLQueryContextLogger")
_log = logging.getLogger(__name__)


@contextmanager
def logging_at_debug() -> Iterator[None]:
    """What pyspark logs meanwhile is logged here at DEBUG instead."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(_demote)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_demote)


def _demote(record: logging.LogRecord) -> bool:
    said = [record.getMessage(), *(traceback.format_exception(record.exc_info[1]) if record.exc_info else ())]
    told = said if rows_shown() else map(without_values, said)
    _log.debug("%s: %s", record.name, "\n".join(told))
    return False

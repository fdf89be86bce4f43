"""What pyspark logs of errors by itself, as JSON with the traces of two languages: kept for who asks for DEBUG."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

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
    _log.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)
    return False

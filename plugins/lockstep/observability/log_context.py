"""What log lines are about, as fields beside their text: pipeline, epoch, token and sink.

They are kept where structlog keeps what belongs to a context, so that Airflow's own JSON logs have them, and those of
`lockstep --log-format json`. `token`: the execution's, once it has taken one, before that the attempt's. A thread that
a step starts has none.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, Protocol, TextIO, TypeVar

import structlog
from structlog.contextvars import bind_contextvars, get_contextvars, unbind_contextvars
from structlog.typing import Processor

FIELDS = ("pipeline", "epoch", "token", "sink")
FORMAT = "LOCKSTEP_LOG_FORMAT"  #: an environment variable

P = ParamSpec("P")
R = TypeVar("R")


class _Attempt(Protocol):
    @property
    def pipeline(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def token(self) -> int: ...


A = TypeVar("A", bound=_Attempt)


def log_context(role: Callable[P, R]) -> Callable[P, R]:
    """A role whose fields end with it. Those of one that fails stay, for whoever logs the failure, until the next."""

    @wraps(role)
    def telling(*args: P.args, **kwargs: P.kwargs) -> R:
        before = {name: value for name, value in get_contextvars().items() if name in FIELDS}
        tell_nothing()
        result = role(*args, **kwargs)
        tell_nothing()
        bind_contextvars(**before)
        return result

    return telling


def bind_attempt(attempt: A, sink: str | None = None) -> A:
    """From here on it is about this attempt; in one sink, if that is said."""
    bind_log_context(pipeline=attempt.pipeline, epoch=attempt.epoch, token=attempt.token, sink=sink)
    return attempt


def tell_token(token: int) -> int:
    """From here on it is this execution's."""
    bind_log_context(token=token)
    return token


def bind_log_context(
    *, pipeline: str | None = None, epoch: int | None = None, token: int | None = None, sink: str | None = None
) -> None:
    """What isn't said stays as it was."""
    fields = {"pipeline": pipeline, "epoch": epoch, "token": token, "sink": sink}
    bind_contextvars(**{name: value for name, value in fields.items() if value is not None})


def tell_nothing() -> None:
    """From here on it is about nothing in particular."""
    unbind_contextvars(*FIELDS)


class _JsonHandler(logging.StreamHandler[TextIO]):
    """What `log_json` sets up."""


def logs_json() -> bool:
    """Whether this process does what `log_json` says; Airflow's own handlers look alike, and show nothing on stderr."""
    return any(isinstance(handler, _JsonHandler) for handler in logging.getLogger().handlers)


def log_json(level: int = logging.INFO) -> None:
    """Have this process write a line of JSON to stderr for each log line, of Lockstep's from `level` on."""
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
    handler = _JsonHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=last))
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger("lockstep").setLevel(level)

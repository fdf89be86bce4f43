"""Fields of log lines: pipeline, epoch, token and sink.

They live in structlog's context variables, so that Airflow's JSON logs and `lockstep --log-format json` have them.
`token` is the execution's once it has one, before that the attempt's. Threads that a step starts have no fields.
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
    """Decorator of a role: clear the fields when it starts and restore the earlier ones when it returns. When it raises
    they stay, for the log line of the failure."""

    @wraps(role)
    def telling(*args: P.args, **kwargs: P.kwargs) -> R:
        before = {name: value for name, value in get_contextvars().items() if name in FIELDS}
        clear_log_context()
        result = role(*args, **kwargs)
        clear_log_context()
        bind_contextvars(**before)
        return result

    return telling


def bind_attempt(attempt: A, sink: str | None = None) -> A:
    """Bind the attempt's pipeline, epoch and token, and the sink if given. Returns the attempt."""
    bind_log_context(pipeline=attempt.pipeline, epoch=attempt.epoch, token=attempt.token, sink=sink)
    return attempt


def bind_token(token: int) -> int:
    """Bind an execution's token. Returns it."""
    bind_log_context(token=token)
    return token


def bind_log_context(
    *, pipeline: str | None = None, epoch: int | None = None, token: int | None = None, sink: str | None = None
) -> None:
    """Bind the given fields; the others stay."""
    fields = {"pipeline": pipeline, "epoch": epoch, "token": token, "sink": sink}
    bind_contextvars(**{name: value for name, value in fields.items() if value is not None})


def clear_log_context() -> None:
    """Unbind all fields."""
    unbind_contextvars(*FIELDS)


class _JsonHandler(logging.StreamHandler[TextIO]):
    """Marks the handler that `log_json` installs."""


def logs_json() -> bool:
    """True after `log_json`. Airflow's own handlers look alike, but don't write to stderr."""
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

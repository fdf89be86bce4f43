"""Retries: with growing pauses for what may pass by itself, none for what can't."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator

from lockstep.airflow._airflow import TWOFOLD, growth_of, no_retry_of_terminal
from lockstep.errors import InvalidPipeline
from lockstep.pipeline import Pipeline

RETRIES = 4
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)


def retry_arguments() -> dict[str, Any]:
    """Arguments of every Lockstep task; a DAG's own `default_args` come after them."""
    return {
        "retries": RETRIES,
        "retry_delay": FIRST_PAUSE,
        "max_retry_delay": LONGEST_PAUSE,
        "retry_exponential_backoff": TWOFOLD,
        **no_retry_of_terminal(),
    }


def longest_wait(task: BaseOperator) -> timedelta:
    """What the pauses between a task's tries add up to at most: Airflow stretches each by up to its own length."""
    longest = _seconds(task.max_retry_delay) if task.max_retry_delay is not None else math.inf
    growth = growth_of(task)
    pauses = (2 * _seconds(task.retry_delay) * growth ** min(retry, 40) for retry in range(task.retries or 0))
    return timedelta(seconds=sum(min(pause, longest) for pause in pauses))


def _seconds(delay: timedelta | float) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay


def require_hold(pipeline: Pipeline, path: Iterable[BaseOperator]) -> None:
    """Raise `InvalidPipeline` if recovery would void an attempt that is still being retried."""
    needed = sum((longest_wait(task) for task in path), timedelta())
    if pipeline.recovery_grace < needed:
        raise InvalidPipeline(
            f"pipeline {pipeline.name}: recovery_grace is {pipeline.recovery_grace}, but the retries "
            f"before the commit may pause for {needed} in all: recovery would void living attempts. Set a longer "
            "recovery_grace or fewer retries"
        )

"""A process that has used none of the libraries whose threads don't live on in forked children, and so may fork.

pytest's own process may have used them in any test before.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class CleanProcess:
    """Started by the first call, ended with the block."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> CleanProcess:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """What `function`, of a module, returns there, with this process' environment. AssertionError: it raised."""
        value, trace = self._pool.submit(_outcome, dict(os.environ), function, arguments).result()
        assert trace is None, trace
        found: T = value
        return found


def _outcome(environment: dict[str, str], function: Callable[..., T], arguments: tuple[Any, ...]) -> Any:
    os.environ.clear()
    os.environ.update(environment)
    try:
        return function(*arguments), None
    except BaseException:
        return None, traceback.format_exc()

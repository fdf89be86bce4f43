"""Calls in a forked process, for libraries that don't live on in the children of a process that has used them."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_MAIN = os.getpid()


def apart(call: Callable[[], T]) -> T:
    """What `call` returns or raises, in a child of the test's process; in one of its children, which may be killed with
    it, here."""
    if os.getpid() != _MAIN:
        return call()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as answer:
                answer.write(_pickled(*_outcome(call)))
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    assert data, "the child died"
    value, error = pickle.loads(data)
    if error is not None:
        raise error
    found: T = value
    return found


def _outcome(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:
        error.add_note(traceback.format_exc())
        return None, error


def _pickled(value: object, error: BaseException | None) -> bytes:
    """An error of a library's own that can't be pickled becomes one that says the same."""
    try:
        return pickle.dumps((value, error))
    except Exception:
        if error is None:
            raise
        return pickle.dumps((None, AssertionError("".join(traceback.format_exception(error)))))

"""Keeps values of rows out of messages, which go to logs and the ledger, unless the environment allows them."""

from __future__ import annotations

import os
from collections.abc import Iterable

SHOW_ROWS = "LOCKSTEP_SHOW_ROWS"  #: an environment variable; 1: messages quote the values that a server refuses
HINT = f"({SHOW_ROWS}=1 in the environment shows its values)"


def rows_shown() -> bool:
    """True if messages may quote values of rows."""
    return os.environ.get(SHOW_ROWS) == "1"


def with_hint(text: str) -> str:
    """`text`, from which values were left out, and how to see them, once."""
    return text if HINT in text else f"{text} {HINT}"


def describe_error(error: Exception) -> str:
    """The text of an error that may quote values; its kind alone unless they may be shown."""
    return str(error) if rows_shown() else with_hint(type(error).__name__)


def describe_raised(error: BaseException, kind: str = "") -> str:
    """The kind of an exception that user code raised. With its text if rows may be shown, or if the text can only quote
    names of the code. (A TypeError may quote values.)"""
    kind = kind or type(error).__name__
    if rows_shown() or isinstance(error, NameError | AttributeError | ImportError):
        return f"{kind}: {' '.join(str(error).split())}"
    return with_hint(kind)


def cause(error: Exception, quotes: bool) -> Exception | None:
    """The `__cause__` for a named error: None if its traceback would quote values."""
    return error if rows_shown() or not quotes else None


def list_known(names: Iterable[str], accepted: Iterable[str]) -> str:
    """The names of a header that are `accepted`, in any case, and "?" for each other one: a file
    without a header has a row there."""
    small = {name.lower() for name in accepted}
    return ", ".join(name if rows_shown() or name.lower() in small else "?" for name in names)


def list_some(items: Iterable[object], most: int) -> str:
    """The first `most` of them in one line, and how many more there are."""
    names = sorted(map(str, items))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

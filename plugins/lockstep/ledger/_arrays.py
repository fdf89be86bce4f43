"""Long arrays as parameters: one literal, which the server reads quicker than a constructor with all its elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

CHUNK = 10_000


def texts(values: Iterable[str]) -> str:
    """An array's literal; the statement casts it to its type. No text may hold NUL, as no path can."""
    found = list(values)
    escaped = "\0".join(found).replace("\\", "\\\\").replace('"', '\\"')
    return '{"' + escaped.replace("\0", '","') + '"}' if found else "{}"


def numbers(values: Iterable[int | None]) -> str:
    """The same of numbers."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def chunks(values: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    """`values` in lists of at most `size`."""
    found = iter(values)
    while chunk := list(islice(found, size)):
        yield chunk
